//===- OffloadKeysTest.cpp - Tests of what lives outside the device -------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Offload keys as rules of --offload.
//
//===----------------------------------------------------------------------===//

#include "Questions.h"

using namespace config_tests;

namespace {

/// zero_optimization with these keys.
std::string zero(const std::string &keys) {
  return "{'zero_optimization': {" + keys + "}}";
}

/// The rules, with spaces between them.
std::string rules(const ConfigResult &result) {
  std::string text;
  for (const std::string &rule : result.settings.offload)
    text += (text.empty() ? "" : " ") + rule;
  return text;
}

ConfigQuestion offloading(const std::vector<std::string> &flags) {
  ConfigQuestion question;
  question.flags.offload = flags;
  return question;
}

TEST(Offload, KeysAreRules) {
  const std::pair<const char *, const char *> cases[] = {
      {"'stage': 3", ""},
      {"'stage': 3, 'offload_optimizer': {'device': 'none'}", ""},
      {"'stage': 3, 'offload_optimizer': null", ""},
      {"'stage': 3, 'offload_optimizer': {'pin_memory': true}", ""},
      {"'stage': 2, 'offload_optimizer': {'device': 'cpu'}", "optimizer=host"},
      {"'stage': 3, 'offload_optimizer': {'device': 'cpu', 'ratio': 0.4}",
       "optimizer=host:0.4"},
      {"'stage': 3, 'offload_optimizer': {'device': 'cpu', 'ratio': 1}",
       "optimizer=host"},
      {"'stage': 3, 'offload_optimizer': {'device': 'cpu', 'ratio': 0}", ""},
      {"'stage': 3, 'offload_param': {'device': 'cpu'}, 'offload_optimizer': "
       "{'device': 'cpu'}",
       "optimizer=host parameters=host"},
      {"'stage': 3, 'offload_param': {'device': 'nvme', 'nvme_path': '/x'}",
       "parameters=disk"},
      {"'stage': 3, 'offload_optimizer': {'device': 'nvme', 'nvme_path': '/x', "
       "'ratio': 0.5}",
       "optimizer=disk:0.5"},
      {"'stage': 2, 'cpu_offload': true", "optimizer=host"},
      {"'stage': 3, 'cpu_offload_param': true, 'cpu_offload': false",
       "parameters=host"},
      {"'stage': 3, 'cpu_offload': true, 'offload_optimizer': {'device': "
       "'nvme', 'nvme_path': '/x'}",
       "optimizer=disk"},
      {"'stage': 3, 'cpu_offload': true, 'offload_optimizer': {'device': "
       "'none'}",
       ""},
  };
  for (const auto &[keys, expected] : cases) {
    ConfigResult result = read(zero(keys));
    EXPECT_TRUE(result.refusals().empty()) << keys;
    EXPECT_EQ(rules(result), expected) << keys;
  }
}

TEST(Offload, FolderOfTheDisk) {
  ConfigResult result =
      read(zero("'stage': 3, 'offload_param': {'device': 'nvme', 'nvme_path': "
                "'/x'}, 'offload_optimizer': {'device': 'nvme', 'nvme_path': "
                "'/x'}"));
  EXPECT_EQ(result.settings.offloadPath, "/x");
  EXPECT_EQ(fate(result, "zero_optimization.offload_param.nvme_path"),
            "used: --offload-path /x");
  result = read(zero("'offload_optimizer': {'device': 'cpu', 'nvme_path': "
                     "'/x'}"));
  EXPECT_EQ(result.settings.offloadPath, std::nullopt);
  EXPECT_EQ(fate(result, "zero_optimization.offload_optimizer.nvme_path"),
            "no effect: for nvme");
}

TEST(Offload, FolderOfAFlag) {
  ConfigQuestion question;
  question.flags.offloadPath = "/y";
  ConfigResult result =
      read(zero("'stage': 3, 'offload_param': {'device': 'nvme'}, "
                "'offload_optimizer': {'device': 'nvme', 'nvme_path': '/x'}"),
           question);
  EXPECT_TRUE(result.refusals().empty());
  EXPECT_EQ(result.settings.offloadPath, "/y");
  EXPECT_TRUE(hasNote(result, "zero_optimization.offload_optimizer.nvme_path: "
                              "--offload-path /y goes before it"));
}

TEST(Offload, Refusals) {
  const std::pair<const char *, const char *> cases[] = {
      {"'offload_optimizer': {'device': 'nvme'}",
       "zero_optimization.offload_optimizer.device: nvme needs nvme_path, the "
       "folder of its files (DeepSpeed ignores such an nvme in silence); give "
       "it or --offload-path"},
      {"'offload_param': {'device': 'nvme', 'nvme_path': ''}",
       "zero_optimization.offload_param.device: nvme needs nvme_path, the "
       "folder of its files (DeepSpeed ignores such an nvme in silence); give "
       "it or --offload-path"},
      {"'offload_param': {'device': 'nvme', 'nvme_path': 'auto'}",
       "zero_optimization.offload_param.nvme_path: \"auto\" needs a value "
       "here; give --offload-path"},
      {"'offload_param': {'device': 'nvme', 'nvme_path': '/y'}, "
       "'offload_optimizer': {'device': 'nvme', 'nvme_path': '/x'}",
       "zero_optimization.offload_param.nvme_path: found /y, the other "
       "nvme_path is /x; one folder has all files: give --offload-path"},
      {"'offload_optimizer': {'device': 'auto'}",
       "zero_optimization.offload_optimizer.device: found \"auto\"; expected "
       "\"none\", \"cpu\" or \"nvme\"; --offload auto chooses what --memory "
       "needs"},
      {"'offload_optimizer': {'device': 'cpu', 'ratio': 1.5}",
       "zero_optimization.offload_optimizer.ratio: found 1.5; expected a "
       "number from 0 to 1"},
      {"'offload_optimizer': {'device': 'cpu'}, 'zenflow': {'topk_ratio': 1}",
       "zero_optimization.zenflow: updates with old gradients change the "
       "training"},
  };
  for (const auto &[keys, message] : cases)
    EXPECT_EQ(refusals(zero(std::string("'stage': 3, ") + keys)), message);
}

/// A plan has none of these limits: the file is taken at its word.
TEST(Offload, WhatDeepSpeedIgnoresInSilence) {
  ConfigResult result = read(zero("'stage': 2, 'offload_param': {'device': "
                                  "'cpu'}"));
  EXPECT_EQ(rules(result), "parameters=host");
  EXPECT_TRUE(hasNote(result, "zero_optimization.offload_param.device: "
                              "DeepSpeed ignores it below stage 3 in silence; "
                              "here it acts at every stage"));
  result = read(zero("'offload_optimizer': {'device': 'cpu', 'ratio': 0.5}"));
  EXPECT_EQ(rules(result), "optimizer=host:0.5");
  EXPECT_TRUE(hasNote(result, "zero_optimization.offload_optimizer.device: "
                              "DeepSpeed ignores it below stage 1 in silence; "
                              "here it acts at every stage"));
  EXPECT_TRUE(hasNote(result, "zero_optimization.offload_optimizer.ratio: "
                              "DeepSpeed ignores it below stage 3 in silence; "
                              "here 0.5 of the bytes go at every stage"));
}

TEST(Offload, FlagsGoBefore) {
  const char *text = "'stage': 3, 'offload_param': {'device': 'cpu'}, "
                     "'offload_optimizer': {'device': 'nvme'}";
  ConfigResult result =
      read(zero(text), offloading({"optimizer@h.*=host:0.5"}));
  EXPECT_TRUE(result.refusals().empty());
  EXPECT_EQ(rules(result), "parameters=host optimizer@h.*=host:0.5");
  EXPECT_TRUE(hasNote(result, "zero_optimization.offload_optimizer.device: "
                              "--offload optimizer@h.*=host:0.5 goes before "
                              "it"));
  for (const char *flag : {"auto", "none"}) {
    result = read(zero(text), offloading({flag}));
    EXPECT_EQ(rules(result), flag);
    EXPECT_EQ(fate(result, "zero_optimization.offload_param.device"),
              std::string("no effect: --offload ") + flag + " goes before it");
  }
}

TEST(Offload, DeepCompile) {
  ConfigResult result =
      read("{'zero_optimization': {'stage': 3}, 'compile': {'deepcompile': "
           "true, 'offload_opt_states': true, 'offload_parameters': false, "
           "'offload_activation': true}}");
  EXPECT_EQ(rules(result), "optimizer=host activations=host");
  EXPECT_EQ(fate(result, "compile.offload_opt_states"),
            "mapped: --offload optimizer=host");
  EXPECT_EQ(fate(result, "compile.offload_parameters"),
            "no effect: asks for nothing");
  result = read("{'compile': {'offload_parameters': true}}");
  EXPECT_EQ(rules(result), "");
  EXPECT_EQ(fate(result, "compile.offload_parameters"),
            "no effect: compile.deepcompile is not true");
  result = read("{'zero_optimization': {'stage': 3, 'offload_param': "
                "{'device': 'cpu'}}, 'compile': {'deepcompile': true, "
                "'offload_parameters': true}}");
  EXPECT_EQ(rules(result), "parameters=host");
  EXPECT_EQ(fate(result, "compile.offload_parameters"),
            "no effect: zero_optimization says it: --offload parameters=host");
}

TEST(Offload, OldNames) {
  ConfigResult result = read(
      zero("'stage': 2, 'cpu_offload': true, 'offload_optimizer': {'device': "
           "'cpu', 'ratio': 0.5}, 'cpu_offload_param': false"));
  EXPECT_EQ(rules(result), "optimizer=host:0.5");
  EXPECT_EQ(fate(result, "zero_optimization.cpu_offload"),
            "no effect: the section says it: --offload optimizer=host:0.5");
  EXPECT_EQ(fate(result, "zero_optimization.cpu_offload_param"),
            "no effect: asks for nothing");
}

} // namespace
