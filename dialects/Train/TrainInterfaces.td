//===- TrainInterfaces.td - interfaces of the train dialect -*- tablegen -*-==//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The Differentiable interface: how an operation tells its derivative.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_TRAININTERFACES_TD
#define ZERO_DIALECTS_TRAIN_TRAININTERFACES_TD

include "mlir/IR/OpBase.td"

def Train_Differentiable : OpInterface<"Differentiable"> {
  let cppNamespace = "::mlir::train";
  let description = [{
    An operation that knows its vector-Jacobian product (VJP): given the
    gradients of the loss by its results it builds the gradients by its
    operands. `train-autodiff` calls it once per operation, in reverse order.

    An operation without this interface has no known derivative: autodiff
    reports an error when a gradient would have to pass through it. Integer and
    boolean values never carry a gradient, so operations that only produce them
    (comparisons, `is_nan`) do not implement it. An operation that is piecewise
    constant (`floor`, `sign`) implements it and leaves all gradients null.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the gradients by the operands at the builder's insertion point.

        `resultGrads` has one value per result, null where the loss does not
        depend on that result; at least one is set, and each has the type of
        its result. The implementation appends to `operandGrads` one value per
        operand: a tensor of the operand's type, or null for an operand that
        has no gradient (an integer, or a zero derivative). It may build
        gradients that nobody uses; the caller erases them. It emits an error
        and fails when the derivative does not exist in the form asked for.
      }],
      "::llvm::LogicalResult", "buildVjp",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$resultGrads,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$operandGrads)>
  ];
}

#endif // ZERO_DIALECTS_TRAIN_TRAININTERFACES_TD
