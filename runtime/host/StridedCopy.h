//===- StridedCopy.h - Copies between strided views -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The copy command, and the packing of views that a library function cannot
// take as they are.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_HOST_STRIDEDCOPY_H
#define ZERO_RT_HOST_STRIDEDCOPY_H

#include "runtime/core/Layout.h"

namespace zrt {

/// Copies one view to another of the same sizes, or of the same number of
/// elements if both are contiguous. A stride of 0 in the source broadcasts.
class StridedCopy {
public:
  StridedCopy(const View &from, const View &to, uint64_t elementBytes);
  /// Converts on the way between f32 and itself, bf16 or f16; rounds to the
  /// nearest, ties to even.
  StridedCopy(const View &from, fb::DType fromType, const View &to,
              fb::DType toType);

  /// The addresses are of the storages, before the views' offsets.
  void run(const uint8_t *from, uint8_t *to) const;

  struct Dim {
    int64_t size;
    int64_t from, to; // strides in bytes
  };
  using CopyRow = void (*)(const Dim &dim, const uint8_t *from, uint8_t *to);

private:
  StridedCopy(const View &from, int64_t fromBytes, const View &to,
              int64_t toBytes, CopyRow copyRow);
  void copyDim(size_t index, const uint8_t *from, uint8_t *to) const;

  std::vector<Dim> dims;        // outer first
  CopyRow copyRow;              // along the last
  int64_t fromOffset, toOffset; // in bytes
};

} // namespace zrt

#endif // ZERO_RT_HOST_STRIDEDCOPY_H
