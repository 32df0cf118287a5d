//===- Layout.cpp - Sizes, shapes and strided views -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Layout.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Layout.h"

#include <algorithm>
#include <utility>

using namespace zrt;

uint64_t zrt::elementBytes(fb::DType type) {
  switch (type) {
  case fb::DType_F64:
  case fb::DType_I64:
  case fb::DType_U64:
    return 8;
  case fb::DType_F32:
  case fb::DType_I32:
  case fb::DType_U32:
    return 4;
  case fb::DType_F16:
  case fb::DType_BF16:
  case fb::DType_I16:
  case fb::DType_U16:
    return 2;
  case fb::DType_I8:
  case fb::DType_U8:
  case fb::DType_Bool:
  case fb::DType_F8E4M3:
  case fb::DType_F8E5M2:
  case fb::DType_F8E8M0:
  case fb::DType_F8E4M3FNUZ:
  case fb::DType_F8E5M2FNUZ:
    return 1;
  }
  return 0;
}

const char *zrt::dtypeName(fb::DType type) {
  static const char *const names[] = {
      "f32", "f64",    "f16",    "bf16",   "i64",        "i32",
      "i16", "i8",     "u8",     "bool",   "u16",        "u32",
      "u64", "f8e4m3", "f8e5m2", "f8e8m0", "f8e4m3fnuz", "f8e5m2fnuz"};
  auto index = static_cast<size_t>(type);
  return index < std::size(names) ? names[index] : "unknown";
}

bool zrt::isFloat(fb::DType type) {
  return type == fb::DType_F32 || type == fb::DType_F64 ||
         type == fb::DType_F16 || type == fb::DType_BF16;
}

std::optional<uint64_t> zrt::checkedMul(uint64_t a, uint64_t b) {
  uint64_t result;
  if (__builtin_mul_overflow(a, b, &result))
    return std::nullopt;
  return result;
}

std::optional<uint64_t> zrt::checkedAdd(uint64_t a, uint64_t b) {
  uint64_t result;
  if (__builtin_add_overflow(a, b, &result))
    return std::nullopt;
  return result;
}

std::optional<uint64_t> zrt::elementCount(const std::vector<int64_t> &shape) {
  uint64_t count = 1;
  for (int64_t size : shape) {
    if (size < 0)
      return std::nullopt;
    std::optional<uint64_t> next = checkedMul(count, size);
    if (!next)
      return std::nullopt;
    count = *next;
  }
  return count;
}

std::optional<uint64_t> zrt::viewExtent(const View &view) {
  if (view.offset < 0 || view.sizes.size() != view.strides.size())
    return std::nullopt;
  uint64_t last = view.offset;
  bool empty = false;
  for (size_t dim = 0; dim < view.sizes.size(); ++dim) {
    if (view.sizes[dim] < 0 || view.strides[dim] < 0)
      return std::nullopt;
    if (view.sizes[dim] == 0) {
      empty = true;
      continue;
    }
    std::optional<uint64_t> step =
        checkedMul(view.sizes[dim] - 1, view.strides[dim]);
    std::optional<uint64_t> next = step ? checkedAdd(last, *step) : step;
    if (!next)
      return std::nullopt;
    last = *next;
  }
  return empty ? std::optional<uint64_t>(view.offset) : checkedAdd(last, 1);
}

/// The other sizes of an empty view may be any: products of them are not safe.
static bool isEmpty(const View &view) {
  return std::find(view.sizes.begin(), view.sizes.end(), 0) != view.sizes.end();
}

bool zrt::isContiguous(const View &view) {
  if (isEmpty(view))
    return true;
  int64_t expected = 1;
  for (size_t dim = view.sizes.size(); dim-- > 0;) {
    if (view.sizes[dim] != 1 && view.strides[dim] != expected)
      return false;
    expected *= view.sizes[dim];
  }
  return true;
}

bool zrt::overlapsItself(const View &view) {
  if (isEmpty(view))
    return false;
  // Sorted by stride, each dimension has to step over all smaller ones.
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t dim = 0; dim < view.sizes.size(); ++dim)
    if (view.sizes[dim] > 1)
      dims.emplace_back(view.strides[dim], view.sizes[dim]);
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (auto [stride, size] : dims) {
    if (stride <= reach)
      return true;
    reach += stride * (size - 1);
  }
  return false;
}

View zrt::contiguousView(const std::vector<int64_t> &sizes) {
  View view;
  view.sizes = sizes;
  view.strides.resize(sizes.size());
  int64_t stride = 1;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    view.strides[dim] = stride;
    stride *= sizes[dim];
  }
  return view;
}
