//===- Error.h - The exception inside the runtime -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inside the runtime an error is a C++ exception; the C interface turns it into
// a status and a message, so none leaves the library.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_ERROR_H
#define ZERO_RT_CORE_ERROR_H

#include "zero-rt/zero-rt.h"

#include <exception>
#include <sstream>
#include <string>
#include <utility>

namespace zrt {

/// An error with its class and its one-line text.
class Error : public std::exception {
public:
  Error(zrt_status code, std::string message)
      : statusCode(code), text(std::move(message)) {}

  zrt_status code() const { return statusCode; }
  const char *what() const noexcept override { return text.c_str(); }

private:
  zrt_status statusCode;
  std::string text;
};

/// Throws an Error whose text is the parts written one after the other.
template <typename... Parts>
[[noreturn]] void fail(zrt_status code, const Parts &...parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Error(code, text.str());
}

} // namespace zrt

#endif // ZERO_RT_CORE_ERROR_H
