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

#include <cstring>

using namespace zrt;

StridedCopy::StridedCopy(const View &fromView, const View &toView,
                         uint64_t elementBytes)
    : elementBytes(elementBytes),
      fromOffset(fromView.offset * int64_t(elementBytes)),
      toOffset(toView.offset * int64_t(elementBytes)) {
  auto size = int64_t(elementBytes);
  View from = fromView, to = toView;
  if (elementCount(to.sizes) == uint64_t(0)) {
    dims.push_back({0, size, size});
    return;
  }
  if (from.sizes != to.sizes) {
    // Both contiguous: the common shape is flat.
    from = to = contiguousView({int64_t(*elementCount(toView.sizes))});
  }
  for (size_t dim = 0; dim < to.sizes.size(); ++dim) {
    if (to.sizes[dim] == 1)
      continue;
    Dim next{to.sizes[dim], from.strides[dim] * size, to.strides[dim] * size};
    // Two dimensions that step through memory as one are one.
    if (!dims.empty() && dims.back().from == next.size * next.from &&
        dims.back().to == next.size * next.to)
      dims.back() = {dims.back().size * next.size, next.from, next.to};
    else
      dims.push_back(next);
  }
  if (dims.empty())
    dims.push_back({1, size, size});
}

template <typename T>
void StridedCopy::copyElements(const Dim &dim, const uint8_t *from,
                               uint8_t *to) const {
  for (int64_t i = 0; i < dim.size; ++i)
    std::memcpy(to + i * dim.to, from + i * dim.from, sizeof(T));
}

void StridedCopy::copyDim(size_t index, const uint8_t *from,
                          uint8_t *to) const {
  const Dim &dim = dims[index];
  if (index + 1 < dims.size()) {
    for (int64_t i = 0; i < dim.size; ++i)
      copyDim(index + 1, from + i * dim.from, to + i * dim.to);
    return;
  }
  auto size = int64_t(elementBytes);
  if (dim.from == size && dim.to == size)
    std::memmove(to, from, dim.size * size);
  else if (size == 4)
    copyElements<uint32_t>(dim, from, to);
  else if (size == 8)
    copyElements<uint64_t>(dim, from, to);
  else if (size == 2)
    copyElements<uint16_t>(dim, from, to);
  else
    copyElements<uint8_t>(dim, from, to);
}

void StridedCopy::run(const uint8_t *from, uint8_t *to) const {
  copyDim(0, from + fromOffset, to + toOffset);
}
