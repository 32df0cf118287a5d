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

#include "zero/Autodiff/Attention.h"
#include "zero/Autodiff/Autodiff.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mlir::train {

/// Attributes of a @forward that computes gradients itself: of the result that
/// is the loss; of the results that are gradients, the parameter's name; of the
/// argument that is the gradient by the loss.
constexpr StringLiteral kLossAttr = "train.loss";
constexpr StringLiteral kGradientAttr = "train.gradient";
constexpr StringLiteral kSeedAttr = "train.loss_seed";

/// The state of a step that has the number of steps before it. A module may
/// declare it, and states of optimizers: the step begins with what they say.
constexpr StringLiteral kDoneSteps = "optimizer_step";

/// A learning-rate schedule: its kind and numbers as `#train.schedule` has
/// them.
struct LearningRateSchedule {
  /// For instance "WarmupLR" or "cosine"; see `#train.schedule`.
  std::string kind;
  /// By name; `lr` is the base learning rate.
  std::map<std::string, double> numbers;
};

/// Parameters that are trained otherwise than the others. Of the groups whose
/// patterns match a parameter's name, the first with a weight decay says that,
/// and the first with a learning rate that.
struct ParameterGroup {
  /// Globs over names (`*.bias`, `transformer.h.?.ln_*`); "auto" stands for
  /// parameters of at most one dimension: biases and norms.
  std::vector<std::string> patterns;
  /// Absent: as the others.
  std::optional<double> weightDecay;
  /// The group's learning rate over that of the others. 1 beside a weight decay
  /// leaves it to the groups that follow.
  double learningRateFactor = 1.0;
};

/// DeepSpeed's fp16 loss scaling (deepspeed/runtime/fp16/loss_scaler.py).
struct LossScaling {
  /// A number that stays; absent: dynamic.
  std::optional<double> fixed;
  double initialScale = 65536.0;
  int64_t window = 1000;
  int64_t hysteresis = 2;
  bool consecutiveHysteresis = false;
  double minScale = 1.0;
  double factor = 2.0;
};

/// Element type of parameters and activations, or of reductions.
enum class FloatKind { F32, BF16, F16 };

/// What to train with. The defaults are PyTorch's.
struct TrainStepOptions {
  /// `cross-entropy`, `causal-lm`, `mse` or `bce`, each maybe with `:OUTPUT` to
  /// choose one of several outputs; or `output:NAME`, an output that is a loss.
  std::string loss = "cross-entropy";
  /// `sgd`, `adam`, `adamw`, `adamw-hf` (Hugging Face's form), `adagrad`, or
  /// `none` for gradients as outputs.
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
  /// adam, adamw: leave out the bias corrections.
  bool noBiasCorrection = false;

  /// Type that forward and backward compute in. Narrower than f32: parameters
  /// are stored in it and each trained one has an f32 master that the optimizer
  /// updates.
  FloatKind precision = FloatKind::F32;
  /// Type that gradients are reduced in; absent: f32.
  std::optional<FloatKind> reduceType;
  /// Attention becomes one operation where this library has it; absent: none.
  std::optional<AttentionLibrary> attention;
  /// Absent: none. Only with `precision` F16 is it needed.
  std::optional<LossScaling> lossScaling;
  /// Leave parameters and states as they are in a step whose gradients are not
  /// finite. Loss scaling implies it.
  bool skipNonFinite = false;

  /// Micro-batches of a step, whose gradients are averaged.
  int64_t microBatches = 1;
  /// Largest norm of all gradients; absent: any. Excludes `clipValue`.
  std::optional<double> clipNorm;
  /// Largest magnitude of a gradient's element; absent: any.
  std::optional<double> clipValue;
  std::vector<ParameterGroup> groups;
  /// Absent: the learning rate is an argument of the step.
  std::optional<LearningRateSchedule> schedule;
  /// Schedules sgd's momentum or Adam's beta1 (one-cycle); absent: constant.
  std::optional<LearningRateSchedule> momentumSchedule;
};

/// Adds the loss to the forward function `function` before its terminator, with
/// an argument for labels where it needs them, and returns it: a rank-0 tensor.
FailureOr<Value> buildLoss(func::FuncOp function,
                           const TrainStepOptions &options);

/// Retypes `@forward` of `module` to compute in `type`; see the pass
/// `train-precision`. Fails with an error that names an operation whose result
/// types cannot be inferred.
LogicalResult convertPrecision(ModuleOp module, FloatKind type);

/// The element type that `kind` stands for.
FloatType getFloatType(MLIRContext *context, FloatKind kind);

/// "f32", "bf16" or "f16" (or "fp16").
std::optional<FloatKind> parseFloatKind(StringRef text);

/// The attribute of a schedule; fails with an error at `loc` where its kind or
/// numbers are not those of `#train.schedule`.
FailureOr<ScheduleAttr> getSchedule(Location loc,
                                    const LearningRateSchedule &schedule);

/// A parameter and the gradient by it.
struct TrainedParameter {
  zero::ParamOp param;
  Value value, grad;
};

/// What the groups of a parameter say together.
struct GroupValues {
  std::optional<double> weightDecay, learningRateFactor;
};

/// Values of a step that its updates share; what is absent is null.
struct UpdateInputs {
  Value lr, step;
  /// What gradients are multiplied by, and whether nothing changes.
  Value gradScale, skip;
  /// In place of sgd's momentum or Adam's beta1.
  Value momentum;
};

/// Fails with an error at `loc` where options do not make sense, alone or
/// together.
LogicalResult verifyOptions(Location loc, const TrainStepOptions &options);

/// For each of `parameters` what those of `groups` say that have it. Warns at
/// `loc` of each pattern that matches no trained parameter of `module`; fails
/// with an error where a pattern is no glob.
FailureOr<SmallVector<GroupValues>>
matchGroups(Location loc, ModuleOp module,
            ArrayRef<TrainedParameter> parameters,
            ArrayRef<ParameterGroup> groups);

/// Adds the updates of `parameters`, each with its groups' values, and their
/// state symbols: f32 masters and what the optimizer keeps.
void buildUpdates(OpBuilder &builder, ArrayRef<TrainedParameter> parameters,
                  ArrayRef<GroupValues> groups, const UpdateInputs &inputs,
                  const TrainStepOptions &options);

/// The function `@forward` of `module`, which is to become its `@step`; an
/// error where it cannot.
FailureOr<func::FuncOp> findForward(ModuleOp module);

/// Turns `@forward` of `module` into `@step`; see the pass `train-step`.
LogicalResult buildTrainStep(ModuleOp module, const TrainStepOptions &options);

/// Makes `@forward` of `module` the program that is run, `@step`, as it is: its
/// outputs are each rank's own. The module gets `zero.forward`.
LogicalResult buildForwardStep(ModuleOp module);

/// Splits `@step` of `module`, whose seed is a `train.loss_seed`, into
/// `@accumulate` for all micro-batches but the last and `@step`; the module
/// gets `zero.micro_batches`. What the pass train-accumulate does. Nothing for
/// one micro-batch.
LogicalResult accumulateMicroBatches(ModuleOp module, int64_t microBatches);

} // namespace mlir::train

#endif // ZERO_AUTODIFF_TRAINSTEP_H
