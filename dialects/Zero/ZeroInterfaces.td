//===- ZeroInterfaces.td - what compute ops tell the passes -*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The only knowledge about compute that the ZeRO passes use. Any dialect may
// implement these, directly or as external models.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_INTERFACES_TD
#define ZERO_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Zero_OptimizerUpdate : OpInterface<"OptimizerUpdate"> {
  let cppNamespace = "::mlir::zero";
  let description = [{
    An optimizer's update of one parameter, elementwise in parameter, gradient
    and states: element i of every result depends on element i of those and on
    scalars, so the op may run on a shard. Its results are the new parameter
    and the new states and may overwrite the operands they replace.

    An update written in ops that do not implement this interface is found
    through upstream traits (`Elementwise`, `ResultsBroadcastableShape`) and
    all-parallel `linalg` ops instead.
  }];
  let methods = [
    InterfaceMethod<"The operand that is the parameter.",
      "::mlir::OpOperand &", "getParameterOperand">,
    InterfaceMethod<"The operand that is the gradient.",
      "::mlir::OpOperand &", "getGradientOperand">,
    InterfaceMethod<[{
      The operands that are optimizer states, in the order of the results that
      replace them (from result 1 on).}],
      "::llvm::SmallVector<::mlir::OpOperand *>", "getStateOperands">,
    InterfaceMethod<[{
      The operand that result `index` replaces. By default result 0 replaces
      the parameter and the others the states in order.}],
      "::mlir::OpOperand &", "getReplacedOperand", (ins "unsigned":$index), "", [{
        return index == 0 ? $_op.getParameterOperand()
                          : *$_op.getStateOperands()[index - 1];
      }]>
  ];
}

def Zero_ElementSum : OpInterface<"ElementSum"> {
  let cppNamespace = "::mlir::zero";
  let description = [{
    A sum over all elements of all tensor operands of a function that is zero
    at zero, giving one scalar tensor (sum of squares, sum of magnitudes). It
    may therefore run on zero-padded shards, the ranks' results adding up to
    the whole: this is how a gradient norm survives partitioning. Operands that
    are gradients of parameters mean the gradients of the whole step.
  }];
  let methods = [];
}

def Zero_Cost : OpInterface<"Cost"> {
  let cppNamespace = "::mlir::zero";
  let description = [{
    What an op has to do on one rank: floating-point operations, bytes,
    transcendental functions and, for a product, its sizes. Ops without the
    interface count as moving their operands and results once and computing
    nothing.

    An op that moves no byte is a change of layout: its results are the storage
    of its first operand.

    ```mlir
    // flops 2 * 8 * 10 * 64, batch 1, m 8, n 10, k 64
    %y = train.matmul %x, %w : (tensor<8x64xf32>, tensor<64x10xf32>) -> tensor<8x10xf32>
    // 80 elements, each with a transcendental function
    %z = train.exp %y : tensor<8x10xf32>
    // nothing: %r is %z
    %r = train.reshape %z : tensor<8x10xf32> to tensor<80xf32>
    ```
  }];
  let methods = [
    InterfaceMethod<"What the op has to do.", "::mlir::zero::Work", "getWork">
  ];
}

#endif // ZERO_INTERFACES_TD
