//===- Retry.h - Calls that a signal interrupts -----------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For the calls of FileSystem, which answer with a negated errno.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_RETRY_H
#define ZERO_RUNTIME_IO_RETRY_H

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

namespace zrt {

/// A signal interrupts a call once, not for ever: then something is broken, and
/// an error is better than a process that hangs.
constexpr int maxInterruptions = 100;

template <typename Call>
int64_t retrying(Call call) {
  int64_t result = -EINTR;
  for (int i = 0; i < maxInterruptions && result == -EINTR; ++i)
    result = call();
  return result;
}

/// "cannot open: No such file or directory".
inline std::string errorText(const char *what, int64_t error) {
  return std::string(what) + ": " + std::strerror(int(-error));
}

} // namespace zrt

#endif // ZERO_RUNTIME_IO_RETRY_H
