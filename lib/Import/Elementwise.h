//===- Elementwise.h - Operands of elementwise operators --------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the handlers of elementwise operators share: operands as the broadcast
// rules of the operator's version want them, and short forms for operators that
// are composed. A null value, after an error, makes all that is built of it
// null.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_ELEMENTWISE_H
#define ZERO_LIB_IMPORT_ELEMENTWISE_H

#include "lib/Import/GraphImporter.h"

namespace mlir::zero::onnx_import {

/// All inputs of the node as values, constants in their compact form; empty
/// after an error.
SmallVector<Value> operands(NodeContext &c);

/// Builds operations at one node. As in C++ no order is fixed in which
/// arguments are evaluated, at most one argument of a call may build
/// operations.
struct Elements {
  NodeContext &c;

  template <typename OpTy>
  Value make(ValueRange operands) {
    return c.emit<OpTy>(operands);
  }
  Value scalar(Value like, double value) { return c.scalar(like, value); }
  Value add(Value a, Value b) { return make<train::AddOp>({a, b}); }
  Value sub(Value a, Value b) { return make<train::SubOp>({a, b}); }
  Value mul(Value a, Value b) { return make<train::MulOp>({a, b}); }
  Value div(Value a, Value b) { return make<train::DivOp>({a, b}); }
  Value add(Value a, double b) { return add(a, scalar(a, b)); }
  Value mul(Value a, double b) { return mul(a, scalar(a, b)); }
  Value div(Value a, double b) { return div(a, scalar(a, b)); }
  Value isBelow(Value a, Value b) { return make<train::LessOp>({a, b}); }
  Value isAbove(Value a, Value b) { return make<train::GreaterOp>({a, b}); }
  Value isAbove(Value a, double b) { return isAbove(a, scalar(a, b)); }
  Value isBelow(Value a, double b) { return isBelow(a, scalar(a, b)); }
  Value where(Value condition, Value a, Value b) {
    return make<train::WhereOp>({condition, a, b});
  }
  Value cast(Value x, Type element);
  /// `x` between the bounds, which may be null; at a bound the gradient passes,
  /// as through PyTorch's clamp.
  Value clamp(Value x, Value low, Value high);
  Value clamp(Value x, double low, double high);
};

void addActivationHandlers(HandlerTable &table);
void addCastHandlers(HandlerTable &table);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_ELEMENTWISE_H
