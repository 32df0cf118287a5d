//===- TrainStep.h - From a forward pass to a training step -----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns the forward function of a module into a training step: loss, backward
// pass, gradient norm and optimizer updates.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_AUTODIFF_TRAINSTEP_H
#define ZERO_AUTODIFF_TRAINSTEP_H

#include "zero/Autodiff/Autodiff.h"

namespace mlir::train {

/// What to train with. The defaults are PyTorch's.
struct TrainStepOptions {
  /// `cross-entropy`, `causal-lm`, `mse` or `bce`, each maybe with `:OUTPUT` to
  /// choose one of several outputs; or `output:NAME`, an output that is a loss.
  std::string loss = "cross-entropy";
  /// `sgd`, `adam`, `adamw`, or `none` for gradients as outputs.
  std::string optimizer = "adamw";
  double momentum = 0.0;
  double dampening = 0.0;
  /// Absent: 0.01 for adamw, otherwise 0.
  std::optional<double> weightDecay;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool nesterov = false;
  /// For causal-lm: `separate`, an argument, or `input`, the tokens themselves.
  std::string labels = "separate";
  /// For cross-entropy: the labels' shape where it is known. The class axis is
  /// the one whose removal from the logits' shape gives it (the last, where two
  /// fit); without it, the last one.
  std::optional<SmallVector<int64_t>> labelsShape;
  /// Labels that do not count.
  int64_t ignoreIndex = -100;
};

/// Adds the loss to the forward function `function` before its terminator, with
/// an argument for labels where it needs them, and returns it: a rank-0 tensor.
FailureOr<Value> buildLoss(func::FuncOp function,
                           const TrainStepOptions &options);

/// A parameter and the gradient by it.
struct TrainedParameter {
  zero::ParamOp param;
  Value value, grad;
};

/// Fails with an error at `loc` where options of the optimizer do not make
/// sense.
LogicalResult verifyOptimizer(Location loc, const TrainStepOptions &options);

/// Adds the updates of `parameters` and their state symbols.
void buildUpdates(OpBuilder &builder, ArrayRef<TrainedParameter> parameters,
                  Value lr, Value step, const TrainStepOptions &options);

/// Turns `@forward` of `module` into `@step`; see the pass `train-step`.
LogicalResult buildTrainStep(ModuleOp module, const TrainStepOptions &options);

} // namespace mlir::train

#endif // ZERO_AUTODIFF_TRAINSTEP_H
