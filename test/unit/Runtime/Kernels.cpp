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

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

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

/// Lets `await_flag` on another stream return.
extern "C" void set_flag(void **buffers) {
  static_cast<std::atomic<int32_t> *>(buffers[0])->store(1);
}

/// Returns once another stream has set the flag; fails when that takes so long
/// that nobody can be at work on it.
extern "C" void await_flag(void **buffers) {
  auto *flag = static_cast<std::atomic<int32_t> *>(buffers[0]);
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!flag->load()) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (std::chrono::steady_clock::now() > end)
      throw std::runtime_error("nobody sets the flag");
  }
}

/// Takes a tenth of a second without using the processor.
extern "C" void rest(void **buffers) {
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

/// Adds 1 to four elements, slowly where the second one is odd: threads meet in
/// many orders.
extern "C" void add_one4(void **buffers) {
  float *data = static_cast<float *>(buffers[0]);
  if (int(data[1]) % 2)
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  for (int i = 0; i < 4; ++i)
    data[i] += 1;
}

/// out = a + b, four floats.
extern "C" void add4(void **buffers) {
  const auto *a = static_cast<const float *>(buffers[0]);
  const auto *b = static_cast<const float *>(buffers[1]);
  auto *out = static_cast<float *>(buffers[2]);
  for (int i = 0; i < 4; ++i)
    out[i] = a[i] + b[i];
}

/// Takes half a second where the element is not zero.
extern "C" void rest_if(void **buffers) {
  if (static_cast<const float *>(buffers[0])[0] != 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
}
