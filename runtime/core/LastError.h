//===- LastError.h - The text of zrt_last_error ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface is in more than one file; its last error is one.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_LASTERROR_H
#define ZERO_RT_CORE_LASTERROR_H

#include <string>

namespace zrt {

/// What zrt_last_error gives in this thread from now on.
void setLastError(const std::string &text);

} // namespace zrt

#endif // ZERO_RT_CORE_LASTERROR_H
