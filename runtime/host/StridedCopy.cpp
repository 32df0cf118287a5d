//===- StridedCopy.cpp - Copies between strided views ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See StridedCopy.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/host/StridedCopy.h"

#include "runtime/core/NarrowFloat.h"

#include <cstring>

using namespace zrt;

using Dim = StridedCopy::Dim;

//===----------------------------------------------------------------------===//
// One row
//===----------------------------------------------------------------------===//

template <typename T>
static void copyRowOf(const Dim &dim, const uint8_t *from, uint8_t *to) {
  if (dim.from == sizeof(T) && dim.to == sizeof(T)) {
    std::memmove(to, from, dim.size * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < dim.size; ++i)
    std::memcpy(to + i * dim.to, from + i * dim.from, sizeof(T));
}

static StridedCopy::CopyRow copyRowOfBytes(uint64_t elementBytes) {
  switch (elementBytes) {
  case 8:
    return copyRowOf<uint64_t>;
  case 4:
    return copyRowOf<uint32_t>;
  case 2:
    return copyRowOf<uint16_t>;
  default:
    return copyRowOf<uint8_t>;
  }
}

template <typename Narrow>
static void convert(Narrow from, float &to) {
  to = from.widen();
}
template <typename Narrow>
static void convert(float from, Narrow &to) {
  to = Narrow::round(from);
}

template <typename From, typename To>
static void convertRow(const Dim &dim, const uint8_t *from, uint8_t *to) {
  if (dim.from == sizeof(From) && dim.to == sizeof(To)) {
    const auto *source = reinterpret_cast<const From *>(from);
    auto *target = reinterpret_cast<To *>(to);
    for (int64_t i = 0; i < dim.size; ++i)
      convert(source[i], target[i]);
    return;
  }
  for (int64_t i = 0; i < dim.size; ++i)
    convert(*reinterpret_cast<const From *>(from + i * dim.from),
            *reinterpret_cast<To *>(to + i * dim.to));
}

static StridedCopy::CopyRow conversion(fb::DType from, fb::DType to) {
  if (from == to)
    return copyRowOfBytes(elementBytes(from));
  if (from == fb::DType_BF16)
    return convertRow<BFloat16, float>;
  if (from == fb::DType_F16)
    return convertRow<Half, float>;
  return to == fb::DType_BF16 ? convertRow<float, BFloat16>
                              : convertRow<float, Half>;
}

//===----------------------------------------------------------------------===//
// Dimensions
//===----------------------------------------------------------------------===//

StridedCopy::StridedCopy(const View &from, const View &to,
                         uint64_t elementBytes)
    : StridedCopy(from, int64_t(elementBytes), to, int64_t(elementBytes),
                  copyRowOfBytes(elementBytes)) {}

StridedCopy::StridedCopy(const View &from, fb::DType fromType, const View &to,
                         fb::DType toType)
    : StridedCopy(from, int64_t(elementBytes(fromType)), to,
                  int64_t(elementBytes(toType)), conversion(fromType, toType)) {
}

StridedCopy::StridedCopy(const View &fromView, int64_t fromBytes,
                         const View &toView, int64_t toBytes, CopyRow copyRow)
    : copyRow(copyRow), fromOffset(fromView.offset * fromBytes),
      toOffset(toView.offset * toBytes) {
  View from = fromView, to = toView;
  if (elementCount(to.sizes) == uint64_t(0)) {
    dims.push_back({0, fromBytes, toBytes});
    return;
  }
  if (from.sizes != to.sizes) {
    // Both contiguous: the common shape is flat.
    from = to = contiguousView({int64_t(*elementCount(toView.sizes))});
  }
  for (size_t dim = 0; dim < to.sizes.size(); ++dim) {
    if (to.sizes[dim] == 1)
      continue;
    Dim next{to.sizes[dim], from.strides[dim] * fromBytes,
             to.strides[dim] * toBytes};
    // Two dimensions that step through memory as one are one.
    if (!dims.empty() && dims.back().from == next.size * next.from &&
        dims.back().to == next.size * next.to)
      dims.back() = {dims.back().size * next.size, next.from, next.to};
    else
      dims.push_back(next);
  }
  if (dims.empty())
    dims.push_back({1, fromBytes, toBytes});
}

void StridedCopy::copyDim(size_t index, const uint8_t *from,
                          uint8_t *to) const {
  const Dim &dim = dims[index];
  if (index + 1 == dims.size())
    return copyRow(dim, from, to);
  for (int64_t i = 0; i < dim.size; ++i)
    copyDim(index + 1, from + i * dim.from, to + i * dim.to);
}

void StridedCopy::run(const uint8_t *from, uint8_t *to) const {
  copyDim(0, from + fromOffset, to + toOffset);
}
