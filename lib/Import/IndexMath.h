//===- IndexMath.h - Positions computed by handlers -------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Handlers of operators that read or write by index reshape their data to rows
// and compute the number of the row that each index means. Indices known at
// import are computed with at import.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_INDEXMATH_H
#define ZERO_LIB_IMPORT_INDEXMATH_H

#include "lib/Import/GraphImporter.h"

namespace mlir::zero::onnx_import {

/// Integers (i64) that are known at import, or a value of the IR. Neither is
/// there after an error.
struct Indices {
  std::shared_ptr<HostTensor> host;
  Value value;

  explicit operator bool() const { return host || value; }
  ArrayRef<int64_t> shape() const {
    return host ? ArrayRef<int64_t>(host->shape) : shapeOf(value);
  }
};

/// Arithmetic on indices by numpy's rules; each function passes on errors.
struct IndexMath {
  NodeContext &c;

  /// Input `i`, as i64.
  Indices input(unsigned i) const;
  Indices constant(HostTensor tensor) const;
  /// 0, step, 2 step, ... along dimension `axis` of a shape of `rank`
  /// dimensions, the others of which are 1.
  Indices counter(int64_t rank, int64_t axis, int64_t size,
                  int64_t step = 1) const;
  Indices add(Indices a, Indices b) const;
  Indices mul(Indices a, int64_t factor) const;
  Indices mul(Indices a, Indices b) const;
  /// Index -1 means size - 1; `sizes` broadcasts to the indices.
  Indices wrap(Indices a, Indices sizes) const;
  Indices wrap(Indices a, int64_t size) const;
  Indices sumLast(Indices a) const;
  Indices reshape(Indices a, ArrayRef<int64_t> shape) const;
  /// As a value; null after an error.
  Value value(Indices a) const;
};

/// The product of `sizes`, of which it is known that it does not overflow.
int64_t product(ArrayRef<int64_t> sizes);

/// A constant of i64.
Value int64Constant(NodeContext &c, ArrayRef<int64_t> values,
                    ArrayRef<int64_t> shape);
/// `value` as elements of `type`.
Value castTo(NodeContext &c, Value value, Type type);
/// The elements [start, start + size) along `axis`, every `stride`-th.
Value slicePiece(NodeContext &c, Value value, int64_t axis, int64_t start,
                 int64_t size, int64_t stride = 1);
/// The elements of `value` along `axis` at `positions`, which are in range: a
/// slice where they are evenly spaced, else a gather.
Value takeAlong(NodeContext &c, Value value, int64_t axis,
                ArrayRef<int64_t> positions);
/// The rows of `data`, seen as [rows, rest...] with `depth` dimensions in a
/// row number, that `rows` names.
Value gatherRows(NodeContext &c, Value data, int64_t depth, Indices rows);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_INDEXMATH_H
