//===- FiniteScan.cpp - Elements that are not finite --------------------- ===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See FiniteScan.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/host/FiniteScan.h"

#include "runtime/core/NarrowFloat.h"

#include <cmath>

using namespace zrt;
using namespace zrt::host;

namespace {
/// How a floating type says that it is not finite: all bits of the exponent.
template <typename Bits, Bits exponent>
struct Type {
  /// Whether one of `count` elements is not finite. Without branches, so that
  /// it is vectorized: nearly all runs of it end here.
  static bool any(const uint8_t *data, uint64_t count) {
    const Bits *bits = reinterpret_cast<const Bits *>(data);
    Bits found = 0;
    for (uint64_t i = 0; i < count; ++i)
      found |= Bits((bits[i] & exponent) == exponent);
    return found;
  }
};
} // namespace

bool host::anyNotFinite(const uint8_t *data, fb::DType type, uint64_t count) {
  switch (type) {
  case fb::DType_F64:
    return Type<uint64_t, 0x7FF0000000000000>::any(data, count);
  case fb::DType_F16:
    return Type<uint16_t, 0x7C00>::any(data, count);
  case fb::DType_BF16:
    return Type<uint16_t, 0x7F80>::any(data, count);
  default:
    return Type<uint32_t, 0x7F800000>::any(data, count);
  }
}

static double valueAt(const uint8_t *data, fb::DType type, uint64_t index) {
  switch (type) {
  case fb::DType_F64:
    return reinterpret_cast<const double *>(data)[index];
  case fb::DType_F16:
    return reinterpret_cast<const Half *>(data)[index].widen();
  case fb::DType_BF16:
    return reinterpret_cast<const BFloat16 *>(data)[index].widen();
  default:
    return reinterpret_cast<const float *>(data)[index];
  }
}

/// Element of the storage that is element `element` of the view.
static uint64_t elementOf(const View &view, uint64_t element) {
  int64_t at = view.offset;
  for (size_t dim = view.sizes.size(); dim-- > 0;) {
    at += int64_t(element % uint64_t(view.sizes[dim])) * view.strides[dim];
    element /= uint64_t(view.sizes[dim]);
  }
  return uint64_t(at);
}

std::optional<NotFinite> host::findNotFinite(const uint8_t *storage,
                                             fb::DType type, const View &view,
                                             bool negative) {
  uint64_t total = elementCount(view.sizes).value_or(0);
  // What a view leaves out of its extent is rarely there, and looked at again
  // below where it is not finite.
  if (!total ||
      !anyNotFinite(storage + uint64_t(view.offset) * elementBytes(type), type,
                    *viewExtent(view) - uint64_t(view.offset)))
    return std::nullopt;
  std::optional<NotFinite> found;
  for (uint64_t i = 0; i < total; ++i) {
    double value = valueAt(storage, type, elementOf(view, i));
    if (std::isfinite(value) || (!negative && value < 0))
      continue;
    if (!found)
      found = {i, value, 0, total};
    ++found->count;
  }
  return found;
}
