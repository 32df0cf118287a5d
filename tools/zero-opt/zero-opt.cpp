//===- zero-opt.cpp - the optimizer driver --------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An ordinary MLIR opt tool over all dialects and passes of the project and of
// MLIR itself. --zero-stage=K and its companions are short for the pipeline.
//
//===----------------------------------------------------------------------===//

#include "zero/Cost/Machine.h"
#include "zero/InitAll.h"
#include "zero/Pipelines.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"

#include <deque>

using namespace llvm;

static cl::extrahelp shortForms(
    "\nThe ZeRO pipeline in short, run where --zero-stage stands "
    "among the passes:\n\n"
    "  --zero-stage=<0..3>  - Partition at this ZeRO stage\n"
    "  --zero-ranks=<n>     - Number of ranks\n"
    "  --zero-grid=<shape>  - Shape of the grid, such as 8 or 4x8\n"
    "  --zero-shard=<axes>  - State cut over the last axis of a grid of two "
    "(inner) or over both (all)\n"
    "  --zero-bucket-bytes=<n> - Largest bucket; 0 for no limit\n"
    "  --zero-memory=<size> - Memory budget of one rank, such as "
    "80GiB\n"
    "  --zero-offload=<rule>,... - What lives outside device memory, such as "
    "optimizer=host,\n"
    "                         parameters@h.*=disk or optimizer=host:0.5; or "
    "auto, or none\n"
    "  --zero-host-memory=<size> - Budget of one rank's host memory\n"
    "  --zero-machine=<name> - Machine preset or .json file to plan "
    "for\n"
    "  --zero-schedule=<mode> - none, prefetch, keep, reorder, bucket "
    "or joint\n");

namespace {
/// Turns `--zero-stage=3 --zero-ranks=8` into one pipeline flag,
/// `--zero-pipeline=stage=3 ranks=8`, so that its place among other passes
/// counts.
class ShortForms {
public:
  bool read(int argc, char **argv);
  SmallVector<char *> getArguments();

private:
  bool take(StringRef flag, ArrayRef<char *> &rest);
  std::string readMemory(StringRef flag, StringRef text);
  std::string readGrid(StringRef text);

  std::deque<std::string> storage;
  SmallVector<char *> arguments;
  std::string options, stage, schedule, shard;
  bool valuesAreRead = true;
  int stageIndex = -1;
};
} // namespace

/// Bytes of "80GiB", as a number.
std::string ShortForms::readMemory(StringRef flag, StringRef text) {
  if (std::optional<int64_t> bytes = mlir::zero::parseByteSize(text))
    return std::to_string(*bytes);
  errs() << "zero-opt: --" << flag << "=" << text
         << ": expects a size such as 80GiB, 512MiB or a number of bytes above "
            "0\n";
  valuesAreRead = false;
  return text.str();
}

/// "4,8" of "4x8".
std::string ShortForms::readGrid(StringRef text) {
  constexpr int64_t mostRanks = int64_t(1) << 24;
  SmallVector<StringRef> sizes;
  text.split(sizes, 'x');
  int64_t ranks = 1;
  bool good = true;
  for (StringRef part : sizes) {
    int64_t size = 0;
    good &= !part.getAsInteger(10, size) && size >= 1 && size <= mostRanks;
    ranks *= good ? size : 1;
  }
  if (good && ranks <= mostRanks)
    return join(sizes, ",");
  errs() << "zero-opt: --zero-grid=" << text
         << ": expects sizes such as 8 or 4x8, at most " << mostRanks
         << " ranks\n";
  valuesAreRead = false;
  return text.str();
}

/// Takes one flag if it is ours; its value may be the next argument.
bool ShortForms::take(StringRef flag, ArrayRef<char *> &rest) {
  static const std::pair<StringRef, StringRef> names[] = {
      {"zero-stage", "stage"},       {"zero-ranks", "ranks"},
      {"zero-grid", "grid"},         {"zero-bucket-bytes", "bucket-bytes"},
      {"zero-memory", "memory"},     {"zero-machine", "machine"},
      {"zero-schedule", "schedule"}, {"zero-shard", "shard"},
      {"zero-offload", "offload"},   {"zero-host-memory", "host-memory"}};
  StringRef body = flag;
  if (!body.consume_front("-"))
    return false;
  body.consume_front("-");
  StringRef name = body.split('=').first;
  const auto *found =
      find_if(names, [&](auto &entry) { return entry.first == name; });
  if (found == std::end(names))
    return false;
  std::string text = body.split('=').second.str();
  // The passes of these names take options, or nothing.
  if ((name == "zero-schedule" &&
       (!body.contains('=') || text.find('=') != text.npos)) ||
      (name == "zero-offload" &&
       (!body.contains('=') || StringRef(text).starts_with("rules="))))
    return false;
  if (!body.contains('=') && !rest.empty()) {
    text = rest.front();
    rest = rest.drop_front();
  }
  if (name == "zero-grid")
    text = readGrid(text);
  if (name == "zero-memory" || name == "zero-host-memory")
    text = readMemory(name, text);
  if (name == "zero-schedule")
    schedule = text;
  if (name == "zero-shard")
    shard = text;
  if (name == "zero-stage") {
    stage = text;
    if (stageIndex < 0) {
      stageIndex = arguments.size();
      arguments.push_back(nullptr);
    }
  }
  options += (options.empty() ? "" : " ") + found->second.str() + "=" + text;
  return true;
}

/// Reads the command line; false, with a message, where it cannot be meant.
bool ShortForms::read(int argc, char **argv) {
  ArrayRef<char *> rest(argv, argc);
  while (!rest.empty()) {
    char *argument = rest.front();
    rest = rest.drop_front();
    StringRef flag(argument);
    if (!take(flag, rest))
      arguments.push_back(argument);
  }
  if (stageIndex >= 0 && !is_contained({"0", "1", "2", "3"}, stage)) {
    errs() << "zero-opt: --zero-stage=" << stage << ": stage " << stage
           << " does not exist; ZeRO stages are 0, 1, 2, 3\n";
    return false;
  }
  if (!options.empty() && stageIndex < 0) {
    errs() << "zero-opt: --zero-ranks, --zero-grid, --zero-shard, "
              "--zero-bucket-bytes, --zero-memory, --zero-host-memory, "
              "--zero-offload, --zero-machine and --zero-schedule go with "
              "--zero-stage=<0..3>, which is missing\n";
    return false;
  }
  if (!schedule.empty() && !mlir::zero::parseScheduleMode(schedule)) {
    errs() << "zero-opt: --zero-schedule=" << schedule
           << ": expects none, prefetch, keep, reorder, bucket or joint\n";
    return false;
  }
  if (!shard.empty() && shard != "inner" && shard != "all") {
    errs() << "zero-opt: --zero-shard=" << shard << ": expects inner or all\n";
    return false;
  }
  return valuesAreRead;
}

SmallVector<char *> ShortForms::getArguments() {
  // An error is one line, not the whole step; the flag still has the last word.
  if (none_of(arguments, [](char *argument) {
        return argument &&
               StringRef(argument).contains("mlir-print-op-on-diagnostic");
      }))
    arguments.push_back(
        storage.emplace_back("--mlir-print-op-on-diagnostic=false").data());
  if (stageIndex >= 0)
    arguments[stageIndex] =
        storage.emplace_back("--zero-pipeline=" + options).data();
  return arguments;
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  ShortForms forms;
  if (!forms.read(argc, argv))
    return EXIT_FAILURE;
  SmallVector<char *> arguments = forms.getArguments();
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  mlir::zero::registerAllDialects(registry);
  mlir::zero::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      arguments.size(), arguments.data(),
      "zero-opt: ZeRO partitioning of training steps\n", registry));
}
