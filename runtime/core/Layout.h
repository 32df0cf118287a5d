//===- Layout.h - Sizes, shapes and strided views -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arithmetic on shapes that come from outside: every product and sum is
// checked, so that a hostile file cannot wrap around a bound.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_LAYOUT_H
#define ZERO_RT_CORE_LAYOUT_H

#include "runtime/zplan_generated.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace zrt {

/// Bytes of one element; 0 for a type the format does not know.
uint64_t elementBytes(fb::DType type);
/// "f32", "i64", ...
const char *dtypeName(fb::DType type);
bool isFloat(fb::DType type);

/// Products and sums that are nothing when they leave uint64.
std::optional<uint64_t> checkedMul(uint64_t a, uint64_t b);
std::optional<uint64_t> checkedAdd(uint64_t a, uint64_t b);

/// Number of elements of a shape; nothing if a size is negative or the
/// product overflows.
std::optional<uint64_t> elementCount(const std::vector<int64_t> &shape);

/// A strided view: offset, sizes and strides in elements.
struct View {
  int64_t offset = 0;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
};

/// Elements of the storage from its start to the end of the view; nothing if
/// a number is negative or the sum overflows.
std::optional<uint64_t> viewExtent(const View &view);
/// True if the view's elements lie one after the other in row-major order.
bool isContiguous(const View &view);
/// True if two indices of the view name one element.
bool overlapsItself(const View &view);

/// A view of consecutive elements.
View contiguousView(const std::vector<int64_t> &sizes);

} // namespace zrt

#endif // ZERO_RT_CORE_LAYOUT_H
