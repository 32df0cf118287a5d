//===- Kernels.cpp - Kernels that the runtime's tests launch --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Built as a shared object and put into the tests' programs, as the compiler
// puts its kernels.
//
//===----------------------------------------------------------------------===//

#include <stdexcept>

/// out[i] = 2 * in[i], four elements.
extern "C" void double4(void **buffers) {
  const float *in = static_cast<const float *>(buffers[0]);
  float *out = static_cast<float *>(buffers[1]);
  for (int i = 0; i < 4; ++i)
    out[i] = 2 * in[i];
}

/// Fails where the first element is negative.
extern "C" void refuse_negative(void **buffers) {
  if (static_cast<const float *>(buffers[0])[0] < 0)
    throw std::runtime_error("the element is negative");
}

/// Throws what is no std::exception.
extern "C" void throw_number(void **buffers) {
  if (static_cast<const float *>(buffers[0])[0] < 0)
    throw 3;
}
