//===- Environment.h - What FAKE_CUDA_* variables say ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_ENVIRONMENT_H
#define ZERO_TEST_FAKECUDA_ENVIRONMENT_H

#include <cstdint>
#include <string>

namespace fake_cuda {

struct Environment {
  int devices = 1;
  int capability = 90; ///< 90 is 9.0
  uint64_t memory = uint64_t(16) << 30;
  uint64_t seed = 0;
  std::string log;
  std::string fault;
  uint64_t dropWait = 0; ///< 0: none
  bool leaks = false;
};

/// Read once.
const Environment &environment();

/// "" or the first error of the process that sticks.
std::string stickyError();

/// Asked at the end of the process if FAKE_CUDA_LEAKS is set: what is left, or
/// "". An error then ends the process with status 1.
void addExitCheck(std::string (*leaks)());

/// The device that a line of the log belongs to: of the calling thread's
/// context; -1: none.
void setLogDevice(int device);

} // namespace fake_cuda

#endif // ZERO_TEST_FAKECUDA_ENVIRONMENT_H
