//===- zero-plan.cpp - Memory, traffic and time before the run ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tool's main function: picks the mode by its flags.
//
//===----------------------------------------------------------------------===//

#include "Modes.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

static cl::OptionCategory category("zero-plan options");
static cl::opt<std::string>
    allocateFile("allocate", cl::cat(category), cl::value_desc("FILE.csv"),
                 cl::desc("Place the buffers of an allocation instance "
                          "(columns id,lower,upper,size)"));
static cl::opt<int64_t>
    capacity("capacity", cl::cat(category), cl::init(-1),
             cl::value_desc("bytes"),
             cl::desc("With --allocate: exit 1 if the arena is larger"));

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv, "zero-plan: memory, traffic and time before the run\n");
  if (!allocateFile.empty())
    return mlir::zero::runAllocate(allocateFile, capacity);
  errs() << "zero-plan: nothing to do; see --help\n";
  return 1;
}
