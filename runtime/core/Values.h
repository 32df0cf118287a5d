//===- Values.h - Elements as numbers -------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What sessions of all backends do with the values they are given and give.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_VALUES_H
#define ZERO_RT_CORE_VALUES_H

#include "runtime/core/Error.h"
#include "runtime/core/Program.h"

namespace zrt {

/// Element `index` of `data` as a number.
double numberAt(const void *data, fb::DType type, uint64_t index);

/// An array of ones of a type.
std::vector<uint8_t> onesOf(fb::DType type, uint64_t bytes);

/// Throws Error where an integer is outside the input's range; `rank` may be
/// ZRT_ALL_RANKS.
void checkInputRange(const Input &input, const void *data, int rank);

/// Throws Error where the caller's data has another size than `name`'s.
void checkSizeOf(const char *what, const std::string &name, uint64_t given,
                 uint64_t expected);

/// Entry `index` of a table of the program; throws Error if it has none.
template <typename T>
const T &entryOf(const std::vector<T> &table, uint32_t index,
                 const char *what) {
  if (index >= table.size())
    fail(ZRT_ERROR_ARGUMENT, what, " ", index,
         " does not exist: the program has ", table.size());
  return table[index];
}

} // namespace zrt

#endif // ZERO_RT_CORE_VALUES_H
