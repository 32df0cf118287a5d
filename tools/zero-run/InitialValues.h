//===- InitialValues.h - What parameters begin with -------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sets the parameters and buffers of a session from a user's file of weights
// and from the files that the program names.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_INITIALVALUES_H
#define ZERO_TOOLS_ZERO_RUN_INITIALVALUES_H

#include "runtime/io/Checkpoint.h"
#include "runtime/io/TensorFile.h"
#include "zero-rt/Session.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace zero_tools {

/// The parameters and buffers of a program by name: the master copy where there
/// is one.
std::map<std::string, uint32_t> savedWeights(const zrt::Program &program);

class InitialValues {
public:
  /// `warn` receives one-line texts. All outlives this.
  InitialValues(const zrt::Program &program, zrt::Session &session,
                std::function<void(const std::string &)> warn)
      : program(program), session(session), warn(std::move(warn)) {}

  /// Sets all. `weights`: the file or folder that goes before the program's own
  /// files, which lie in `initFolder`; may be empty. Throws std::runtime_error.
  void set(const std::string &weights, const std::string &initFolder);

private:
  bool setFrom(uint32_t index, zrt::TensorFile &file, const std::string &name);
  void setPiece(uint32_t index, const zrt::StateTensor &tensor, uint64_t offset,
                size_t bytes);
  void warnOfUnused(const zrt::TensorFile &file, size_t used);

  const zrt::Program &program;
  zrt::Session &session;
  std::function<void(const std::string &)> warn;
  std::vector<uint8_t> scratch;
};

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_INITIALVALUES_H
