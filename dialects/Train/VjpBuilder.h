//===- VjpBuilder.h - Short forms for derivatives ---------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Short forms for the composition of derivatives: operations at one location,
// scalars of the right type, and the reverse of broadcasting. C++ does not fix
// the order in which arguments are evaluated, so at most one argument of a call
// may build operations: the order of the IR must not depend on the compiler.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_VJPBUILDER_H
#define ZERO_DIALECTS_TRAIN_VJPBUILDER_H

#include "dialects/Train/Train.h"

#include "mlir/IR/TypeUtilities.h"

namespace mlir::train {

using Grads = SmallVectorImpl<Value>;

/// Builds the operations of one derivative, at the location of the operation
/// it belongs to.
struct VjpBuilder {
  VjpBuilder(OpBuilder &builder, Operation *op)
      : builder(builder), loc(op->getLoc()) {}

  template <typename OpTy, typename... Args>
  Value make(Args &&...args) const {
    return OpTy::create(builder, loc, std::forward<Args>(args)...)
        ->getResult(0);
  }

  Value neg(Value x) const { return make<NegOp>(x); }
  Value add(Value a, Value b) const { return make<AddOp>(a, b); }
  Value sub(Value a, Value b) const { return make<SubOp>(a, b); }
  Value mul(Value a, Value b) const { return make<MulOp>(a, b); }
  Value div(Value a, Value b) const { return make<DivOp>(a, b); }
  Value where(Value condition, Value a, Value b) const {
    return make<WhereOp>(condition, a, b);
  }
  /// A rank-0 constant of the element type of `like`.
  Value scalar(Value like, double value) const {
    return createScalar(builder, loc, getElementTypeOrSelf(like), value);
  }
  Value scale(Value x, double factor) const {
    return mul(x, scalar(x, factor));
  }
  Value oneMinus(Value x) const { return sub(scalar(x, 1.0), x); }
  Value minusOne(Value x) const { return sub(x, scalar(x, 1.0)); }
  Value plusOne(Value x) const { return add(x, scalar(x, 1.0)); }
  Value sum(Value x, ArrayRef<int64_t> axes, bool keepDims = false) const {
    return make<ReduceSumOp>(x, axes, keepDims);
  }
  Value broadcast(Value x, ArrayRef<int64_t> shape) const;
  Value reshape(Value x, ArrayRef<int64_t> shape) const;
  /// `x` with the element type of `like`.
  Value castLike(Value x, Value like) const;
  /// Sums the gradient down to the shape `operand` had before broadcasting.
  Value unbroadcast(Value grad, Value operand) const {
    return reduceToShape(builder, loc, grad, shapeOf(operand));
  }

  static ArrayRef<int64_t> shapeOf(Value value) {
    return cast<RankedTensorType>(value.getType()).getShape();
  }

  OpBuilder &builder;
  Location loc;
};

/// Fails with an error where a gradient arrives at a result other than the
/// first, such as saved statistics, by which the operation has no derivative.
LogicalResult requireOnlyFirstGrad(Operation *op, ValueRange resultGrads);

} // namespace mlir::train

#endif // ZERO_DIALECTS_TRAIN_VJPBUILDER_H
