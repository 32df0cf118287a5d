//===- Forward.h - Outputs of a model on data -------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a program that trains nothing and writes its outputs. On N ranks each
// computes its part of the batch.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_FORWARD_H
#define ZERO_TOOLS_ZERO_RUN_FORWARD_H

#include "RunGroup.h"
#include "RunOptions.h"

#include "runtime/io/TensorFile.h"
#include "zero-rt/Session.h"

#include <functional>
#include <memory>

namespace zero_tools {

class Forward {
public:
  /// `initFolder` is where the program's files with initial values lie. `warn`
  /// receives one-line texts. `group` as for Training. All outlives this.
  /// Throws std::runtime_error, as all functions here do.
  Forward(const RunOptions &options, const zrt::Program &program,
          const std::string &initFolder,
          std::function<void(const std::string &)> warn, RunGroup *group);

  /// Runs as many times as the data has batches, and writes the outputs.
  void run();

private:
  /// Where an input's values come from.
  struct Source {
    uint32_t input;
    zrt::DataType type, inputType;
    const uint8_t *data;
    /// Elements of one rank's input; the file has one for each rank of each run
    /// if `cut`, else the same for all.
    uint64_t elements;
    bool cut;
  };

  void openData();
  Source openInput(uint32_t index);
  void setInputs(int64_t run);
  void setKeys(int64_t run);
  void readOutputs(int64_t run);
  bool isCut(const zrt_output_info &output) const;
  void write();

  const RunOptions &options;
  const zrt::Program &program;
  const zrt_program_info info;
  RunGroup *const group;
  zrt::Session session;
  std::unique_ptr<zrt::TensorFile> data;
  std::vector<Source> sources;
  /// How often the program runs; 0: not known yet, by no input's samples.
  int64_t runs = 0;
  std::string runsSource; // the input that says so
  /// Of each output the parts of all runs and ranks, in this order.
  std::vector<std::string> values;
};

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_FORWARD_H
