//===- Autodiff.h - Reverse-mode differentiation ----------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients of a scalar by values of a straight-line program, built from the
// operations' own derivatives (the Differentiable interface).
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_AUTODIFF_AUTODIFF_H
#define ZERO_AUTODIFF_AUTODIFF_H

#include "dialects/Train/ReverseMode.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::train {

/// Builds the gradients of `loss`, a rank-0 float tensor, by `variables`, at
/// the builder's insertion point, which all values of the block dominate.
///
/// Walks the operations from the loss to the first one in reverse and calls the
/// VJP of each that a gradient reaches and that depends on a variable; so every
/// gradient is there as early as the order of the forward pass allows. Several
/// gradients by one value are added in the order in which they arise. What the
/// VJPs built and nobody needs is erased.
///
/// Returns one gradient per variable, of its type, null where the loss does not
/// depend on it. Fails with an error that names the operation where a gradient
/// would have to pass through one without a derivative.
///
/// `seed`, of the type of the loss, is the gradient by the loss itself;
/// null: 1.
FailureOr<SmallVector<Value>> buildGradients(OpBuilder &builder, Value loss,
                                             ArrayRef<Variable> variables,
                                             Value seed = {});

/// Replaces `op` by the operations of its body, once for each step.
void unrollScan(RewriterBase &rewriter, ScanOp op);

/// A parameter that a function reads, with the reads.
struct ReadParameter {
  zero::ParamOp param;
  Variable reads;
};

/// The trained float parameters of `module` in its order, each with its reads
/// in `function`, maybe none. Frozen parameters and buffers are not among them.
SmallVector<ReadParameter> collectTrainedParameters(ModuleOp module,
                                                    func::FuncOp function);

/// The number of the result of `function` called `name` (`zero.output`), or
/// nothing.
std::optional<unsigned> findOutput(func::FuncOp function, StringRef name);

/// The name (`zero.output`) of a result, or "#3" where it has none.
std::string getOutputName(func::FuncOp function, unsigned index);

/// Erases operations of `block` without effects and users, in reverse order,
/// and lets equal constants of the block be one.
void eraseDeadOps(Block &block);

} // namespace mlir::train

#endif // ZERO_AUTODIFF_AUTODIFF_H
