//===- MachineTest.cpp -----------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Machine files: what is read, what is refused and how it is said.
//
//===----------------------------------------------------------------------===//

#include "zero/Cost/Machine.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::zero;
using testing::HasSubstr;

static std::string errorOf(llvm::StringRef text) {
  llvm::Expected<Machine> machine = parseMachine(text, "m.json");
  return machine ? "" : llvm::toString(machine.takeError());
}

/// A complete machine with one more field.
static std::string with(const std::string &field) {
  return "{\"base\": \"h100\", " + field + "}";
}

TEST(Machine, EveryPresetIsReadAndComesBackFromItsPrint) {
  for (llvm::StringRef name : machinePresets()) {
    llvm::Expected<Machine> machine = loadMachine(name);
    ASSERT_TRUE(bool(machine)) << llvm::toString(machine.takeError());
    EXPECT_EQ(machine->name, name);
    llvm::Expected<Machine> again =
        parseMachine(printMachine(*machine), "print");
    ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
    EXPECT_TRUE(*machine == *again) << name.str();
  }
}

TEST(Machine, PresetsOfTheContractExist) {
  for (llvm::StringRef name : {"a100-40", "a100-80", "h100", "h200", "b200",
                               "gh200", "rtx4090-pcie", "this-cpu"})
    EXPECT_FALSE(machinePresetText(name).empty()) << name.str();
}

TEST(Machine, ABaseIsChangedFieldByField) {
  llvm::Expected<Machine> machine = parseMachine(
      with("\"name\": \"mine\", \"nodes\": 4, \"memory\": \"64GiB\", "
           "\"inter_node\": {\"bandwidth\": 1e9}, "
           "\"constants\": {\"overlap_slowdown\": 0.5}"),
      "m.json");
  ASSERT_TRUE(bool(machine)) << llvm::toString(machine.takeError());
  Machine h100 = llvm::cantFail(loadMachine("h100"));
  EXPECT_EQ(machine->name, "mine");
  EXPECT_EQ(machine->nodes, 4);
  EXPECT_EQ(machine->memoryBytes, int64_t(64) << 30);
  EXPECT_EQ(machine->interNode.bandwidth, 1e9);
  EXPECT_EQ(machine->interNode.latency, h100.interNode.latency);
  EXPECT_EQ(machine->constant("overlap_slowdown"), 0.5);
  EXPECT_EQ(machine->constant("attention_efficiency"),
            h100.constant("attention_efficiency"));
}

TEST(Machine, RanksShareTheMemoryOfTheirNode) {
  Machine machine = llvm::cantFail(
      parseMachine(with("\"host_memory\": \"2TiB\", \"ranks_per_node\": 4, "
                        "\"host_bandwidth\": 1e11, \"host_flops\": 2e12"),
                   "m.json"));
  EXPECT_EQ(machine.hostMemoryOfRank(), int64_t(512) << 30);
  EXPECT_EQ(machine.hostBandwidth, 1e11);
  EXPECT_EQ(machine.hostFlops, 2e12);
}

TEST(Machine, AnUnknownFieldNamesTheClosest) {
  EXPECT_EQ(errorOf(with("\"memory_bandwith\": 1")),
            "m.json: unknown field memory_bandwith; did you mean "
            "memory_bandwidth?");
  EXPECT_THAT(errorOf(with("\"constants\": {\"overlap\": 1}")),
              HasSubstr("m.json: unknown field constants.overlap"));
  EXPECT_EQ(errorOf(with("\"intra_node\": {\"all_gathr\": {}}")),
            "m.json: unknown field intra_node.all_gathr; did you mean "
            "all_gather?");
}

TEST(Machine, AWrongValueSaysWhatIsExpected) {
  EXPECT_EQ(
      errorOf(with("\"memory_bandwidth\": -1")),
      "m.json: memory_bandwidth is -1; expected a number from 1e-30 to 1e30");
  EXPECT_EQ(errorOf(with("\"matmul_efficiency\": 1.5")),
            "m.json: matmul_efficiency is 1.5; expected a number above 0 and "
            "at most 1");
  EXPECT_EQ(errorOf(with("\"nodes\": 0")),
            "m.json: nodes is 0; expected a whole number, 1 or more");
  EXPECT_EQ(errorOf(with("\"memory\": \"much\"")),
            "m.json: memory is \"much\"; expected bytes, as a whole number or "
            "like \"80GiB\"");
  EXPECT_EQ(errorOf(with("\"name\": 3")),
            "m.json: name is 3; expected a string");
  EXPECT_EQ(errorOf(with("\"kernel_latency\": true")),
            "m.json: kernel_latency is true; expected 0 or a number from 1e-30 "
            "to 1e30");
  EXPECT_EQ(errorOf(with("\"peak_flops\": 3")),
            "m.json: peak_flops is 3; expected an object of numbers");
  EXPECT_EQ(errorOf(with("\"host_bandwidth\": 0")),
            "m.json: host_bandwidth is 0; expected a number from 1e-30 to "
            "1e30");
  EXPECT_THAT(errorOf(with("\"host_flop\": 1")),
              HasSubstr("did you mean host_flops?"));
  EXPECT_EQ(errorOf(with("\"disk_read\": 3")),
            "m.json: disk_read is 3; expected an object with latency and "
            "bandwidth");
  // What would make sums of times infinite.
  EXPECT_THAT(errorOf(with("\"intra_node\": {\"bandwidth\": 1e-300}")),
              HasSubstr("bandwidth is 1e-300; expected"));
  EXPECT_THAT(errorOf(with("\"kernel_latency\": 1e300")),
              HasSubstr("e+300; expected 0 or a number"));
  // No NaN and no infinity in JSON, but numbers may overflow to one.
  EXPECT_NE(errorOf(with("\"memory_bandwidth\": 1e999")), "");
}

TEST(Machine, WhatAMachineNeedsIsNamed) {
  EXPECT_THAT(errorOf("{}"), HasSubstr("m.json: memory is missing or 0"));
  EXPECT_THAT(errorOf("{\"memory\": \"1GiB\"}"),
              HasSubstr("m.json: peak_flops is missing"));
  EXPECT_THAT(errorOf("{\"memory\": 1, \"peak_flops\": {\"f32\": 1}}"),
              HasSubstr("m.json: memory_bandwidth is missing"));
  EXPECT_THAT(errorOf("{\"memory\": 1, \"peak_flops\": {\"f32\": 1}, "
                      "\"memory_bandwidth\": 1}"),
              HasSubstr("m.json: intra_node.bandwidth is missing"));
  EXPECT_THAT(errorOf(with("\"reserved_memory\": \"80GiB\"")),
              HasSubstr("expected less than memory"));
  EXPECT_THAT(errorOf("{\"base\": \"h101\"}"),
              HasSubstr("m.json: base is \"h101\"; expected a preset"));
  EXPECT_THAT(errorOf("[]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(errorOf("{"), HasSubstr("m.json is not JSON"));
  EXPECT_EQ(errorOf(std::string(100000, '[')),
            "m.json is nested deeper than 32");
}

TEST(Machine, UnknownNamesAndFilesThatCannotBeRead) {
  llvm::Expected<Machine> slip = loadMachine("h10");
  ASSERT_FALSE(bool(slip));
  EXPECT_THAT(llvm::toString(slip.takeError()),
              HasSubstr("unknown machine 'h10'; did you mean 'h100'?"));
  llvm::Expected<Machine> file = loadMachine("/nowhere/m.json");
  ASSERT_FALSE(bool(file));
  EXPECT_THAT(llvm::toString(file.takeError()),
              HasSubstr("/nowhere/m.json: cannot read the machine"));
}

TEST(Machine, ByteSizes) {
  EXPECT_EQ(parseByteSize("80GiB"), int64_t(80) << 30);
  EXPECT_EQ(parseByteSize("80 GB"), int64_t(80000000000));
  EXPECT_EQ(parseByteSize("1.5KiB"), 1536);
  EXPECT_EQ(parseByteSize("9007199254740993"), int64_t(9007199254740993));
  for (llvm::StringRef bad :
       {"", "GiB", "-1", "0", "1XB", "1e9", "nan", "99999999TiB"})
    EXPECT_FALSE(parseByteSize(bad).has_value()) << bad.str();
}
