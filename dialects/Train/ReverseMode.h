//===- ReverseMode.h - The walk that builds gradients -----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reverse mode over straight-line code: the body of a function, or that of a
// loop, whose derivative is a loop over the derivative of its body.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_REVERSEMODE_H
#define ZERO_DIALECTS_TRAIN_REVERSEMODE_H

#include "dialects/Train/Train.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::train {

/// Values that hold the same variable, such as all reads of one parameter. Its
/// gradient is the sum of the gradients by all of them.
using Variable = SmallVector<Value>;

/// One run of reverse mode: the values that depend on variables, and the
/// gradients so far. Builds at the builder's insertion point, which is in the
/// block of the operations it walks.
class ReverseMode {
public:
  ReverseMode(OpBuilder &builder, ArrayRef<Variable> variables);

  /// Whether `value` is a float that depends on a variable.
  bool isActive(Value value) const { return active.contains(value); }

  /// Adds `grad` to the gradient by `value`, or by the variable that it holds.
  void accumulate(Location loc, Value value, Value grad);

  /// Calls the VJPs of `last` and of all operations before it that a gradient
  /// reaches, in reverse order.
  LogicalResult run(Operation *last);

  /// The gradient by a variable, null if none has reached it.
  Value getGrad(unsigned variable) const { return variableGrads[variable]; }
  /// Whether `value` holds a variable.
  bool isVariable(Value value) const { return variableOf.contains(value); }

private:
  LogicalResult differentiate(Operation *op);

  OpBuilder &builder;
  DenseSet<Value> active;
  DenseMap<Value, unsigned> variableOf;
  DenseMap<Value, Value> grads;
  SmallVector<Value> variableGrads;
};

} // namespace mlir::train

#endif // ZERO_DIALECTS_TRAIN_REVERSEMODE_H
