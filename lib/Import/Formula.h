//===- Formula.h - Operators composed of others -----------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Short names for the operations that decompositions are made of. Every
// function gives null after an error and where an operand is null, so that a
// handler need only look at its last value.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_FORMULA_H
#define ZERO_LIB_IMPORT_FORMULA_H

#include "lib/Import/GraphImporter.h"

namespace mlir::zero::onnx_import {

struct Formula {
  NodeContext &c;

  Value add(Value x, Value y) { return c.emit<train::AddOp>({x, y}); }
  Value sub(Value x, Value y) { return c.emit<train::SubOp>({x, y}); }
  Value mul(Value x, Value y) { return c.emit<train::MulOp>({x, y}); }
  Value div(Value x, Value y) { return c.emit<train::DivOp>({x, y}); }
  Value add(Value x, double y) { return add(x, c.scalar(x, y)); }
  Value mul(Value x, double y) { return y == 1 ? x : mul(x, c.scalar(x, y)); }
  Value div(Value x, double y) { return div(x, c.scalar(x, y)); }
  Value pow(Value x, double y) {
    return c.emit<train::PowOp>({x, c.scalar(x, y)});
  }
  Value abs(Value x) { return c.emit<train::AbsOp>(x); }
  Value sqrt(Value x) { return c.emit<train::SqrtOp>(x); }
  Value log(Value x) { return c.emit<train::LogOp>(x); }
  Value neg(Value x) { return c.emit<train::NegOp>(x); }
  Value equal(Value x, double y) {
    return c.emit<train::EqualOp>({x, c.scalar(x, y)});
  }
  Value where(Value condition, Value x, Value y) {
    return c.emit<train::WhereOp>({condition, x, y});
  }
  /// `x` with elements of type `to`.
  Value cast(Value x, Type to);
  /// A tensor of this shape whose elements are all `value`.
  Value filled(Value like, ArrayRef<int64_t> shape, double value) {
    return c.broadcast(c.scalar(like, value), shape);
  }

  Value sum(Value x, ArrayRef<int64_t> axes, bool keepDims) {
    return reduce<train::ReduceSumOp>(x, axes, keepDims);
  }
  template <typename OpTy>
  Value reduce(Value x, ArrayRef<int64_t> axes, bool keepDims) {
    SmallVector<NamedAttribute> attributes{c.list("axes", axes)};
    if (keepDims)
      attributes.push_back(c.flag("keepdims"));
    return c.emit<OpTy>(x, attributes);
  }

  /// |x|^p; x * x for 2.
  Value power(Value x, double p);
  /// s^(1/p) of what is not negative. The derivative at 0, which is infinite,
  /// is taken as 0, as PyTorch does for norms.
  Value root(Value s, double p);
  /// `vector` [C], shaped to broadcast along dimension 1 of a tensor of `rank`.
  Value perChannel(Value vector, int64_t rank);
};

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_FORMULA_H
