//===- StepOptions.cpp - What can be asked of a step ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks of the options of a training step, before anything is built.
//
//===----------------------------------------------------------------------===//

#include "zero/Autodiff/TrainStep.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::train;

/// A step computes in f32: what is infinite there makes every update NaN.
static LogicalResult verifyRange(Location loc, const Twine &what,
                                 double value) {
  if (std::isfinite(static_cast<float>(value)))
    return success();
  return emitError(loc) << what << ' ' << value
                        << " is outside the range of f32, which ends at "
                        << std::numeric_limits<float>::max();
}

static LogicalResult verifyRanges(Location loc,
                                  const TrainStepOptions &options) {
  for (auto [what, value] :
       {std::pair("momentum", std::optional<double>(options.momentum)),
        std::pair("dampening", std::optional<double>(options.dampening)),
        std::pair("epsilon", std::optional<double>(options.epsilon)),
        std::pair("weight decay", options.weightDecay),
        std::pair("gradient clipping by norm", options.clipNorm),
        std::pair("gradient clipping by value", options.clipValue)})
    if (value && failed(verifyRange(loc, what, *value)))
      return failure();
  for (const ParameterGroup &group : options.groups)
    if (failed(verifyRange(loc, "learning-rate factor of a group",
                           group.learningRateFactor)) ||
        failed(verifyRange(loc, "weight decay of a group",
                           group.weightDecay.value_or(0.0))))
      return failure();
  return success();
}

static LogicalResult verifyOptimizer(Location loc,
                                     const TrainStepOptions &options) {
  StringRef name = options.optimizer;
  static constexpr StringLiteral names[] = {"sgd",      "adam",    "adamw",
                                            "adamw-hf", "adagrad", "none"};
  if (!llvm::is_contained(names, name))
    return emitError(loc) << "unknown optimizer " << name
                          << ", expected sgd, adam, adamw, adamw-hf, adagrad "
                             "or none";
  auto inUnit = [](double beta) { return beta >= 0.0 && beta < 1.0; };
  if (!inUnit(options.beta1) || !inUnit(options.beta2))
    return emitError(loc) << "betas " << options.beta1 << " and "
                          << options.beta2 << " are not in [0, 1)";
  if (!(options.momentum >= 0.0))
    return emitError(loc) << "momentum " << options.momentum << " is negative";
  if (!(options.epsilon >= 0.0))
    return emitError(loc) << "epsilon " << options.epsilon << " is negative";
  if (options.nesterov && (options.momentum == 0.0 || options.dampening != 0.0))
    return emitError(loc)
           << "nesterov needs a momentum and no dampening, they are "
           << options.momentum << " and " << options.dampening;
  if (options.dampening != 0.0 && options.momentum == 0.0)
    return emitError(loc) << "dampening " << options.dampening
                          << " needs a momentum";
  return success();
}

static LogicalResult verifyClipping(Location loc,
                                    const TrainStepOptions &options) {
  for (auto [what, bound] : {std::pair("norm", options.clipNorm),
                             std::pair("value", options.clipValue)})
    if (bound && !(*bound > 0.0 && std::isfinite(*bound)))
      return emitError(loc) << "gradients cannot be clipped to " << what << " "
                            << *bound << ", expected a positive number";
  if (options.clipNorm && options.clipValue)
    return emitError(loc) << "gradients are clipped either to norm "
                          << *options.clipNorm << " or to value "
                          << *options.clipValue << ", not both";
  return success();
}

static LogicalResult verifyScaling(Location loc, const LossScaling &scaling) {
  // Gradients are divided by it: 1 / scale is to be a number too.
  using Limits = std::numeric_limits<float>;
  auto isScale = [](double x) {
    return x >= Limits::min() && x <= Limits::max();
  };
  if (scaling.fixed && !isScale(*scaling.fixed))
    return emitError(loc) << "loss scale " << *scaling.fixed
                          << " is no positive number of f32, from "
                          << Limits::min() << " to " << Limits::max();
  if (scaling.fixed)
    return success();
  if (!isScale(scaling.initialScale) || !isScale(scaling.minScale))
    return emitError(loc) << "initial and least loss scale are "
                          << scaling.initialScale << " and " << scaling.minScale
                          << ", expected positive numbers of f32, from "
                          << Limits::min() << " to " << Limits::max();
  if (scaling.minScale > scaling.initialScale)
    return emitError(loc) << "least loss scale " << scaling.minScale
                          << " is greater than the initial one, "
                          << scaling.initialScale;
  if (scaling.window < 1 || scaling.hysteresis < 1)
    return emitError(loc) << "window and hysteresis of the loss scale are "
                          << scaling.window << " and " << scaling.hysteresis
                          << ", expected at least 1";
  return success();
}

static LogicalResult verifyGroups(Location loc,
                                  ArrayRef<ParameterGroup> groups) {
  for (const ParameterGroup &group : groups) {
    if (group.patterns.empty() || group.patterns.front().empty())
      return emitError(loc) << "a group of parameters has no pattern";
    StringRef name = group.patterns.front();
    if (!(group.learningRateFactor >= 0.0))
      return emitError(loc) << "group " << name << " has learning-rate factor "
                            << group.learningRateFactor
                            << ", expected a number that is not negative";
    if (group.weightDecay && !(*group.weightDecay >= 0.0))
      return emitError(loc)
             << "group " << name << " has weight decay " << *group.weightDecay
             << ", expected a number that is not negative";
  }
  return success();
}

/// Without an optimizer the gradients are outputs, as they are.
static LogicalResult verifyNoOptimizer(Location loc,
                                       const TrainStepOptions &options) {
  if (options.clipNorm || options.clipValue || options.lossScaling ||
      options.skipNonFinite || options.schedule || options.momentumSchedule ||
      !options.groups.empty())
    return emitError(loc)
           << "optimizer none gives gradients as they are; it "
              "takes no clipping, loss scale, schedule or groups";
  return success();
}

LogicalResult mlir::train::verifyOptions(Location loc,
                                         const TrainStepOptions &options) {
  if (failed(verifyOptimizer(loc, options)) ||
      failed(verifyClipping(loc, options)) ||
      failed(verifyGroups(loc, options.groups)) ||
      failed(verifyRanges(loc, options)))
    return failure();
  if (options.lossScaling && failed(verifyScaling(loc, *options.lossScaling)))
    return failure();
  if (options.optimizer == "none" && failed(verifyNoOptimizer(loc, options)))
    return failure();
  if (options.labels != "separate" && options.labels != "input")
    return emitError(loc) << "unknown labels " << options.labels
                          << ", expected separate or input";
  if (options.microBatches < 1)
    return emitError(loc) << "a step has " << options.microBatches
                          << " micro-batches, expected at least 1";
  if (options.momentumSchedule && options.optimizer == "sgd" &&
      options.momentum == 0.0)
    return emitError(loc)
           << "a momentum schedule needs a momentum other than 0";
  return success();
}

FailureOr<ScheduleAttr>
mlir::train::getSchedule(Location loc, const LearningRateSchedule &schedule) {
  Builder builder(loc.getContext());
  SmallVector<NamedAttribute> numbers;
  for (const auto &[name, value] : schedule.numbers) {
    if (failed(
            verifyRange(loc, "schedule " + schedule.kind + ": " + name, value)))
      return failure();
    numbers.push_back(
        builder.getNamedAttr(name, builder.getF64FloatAttr(value)));
  }
  auto attr = ScheduleAttr::getChecked(
      [&] { return emitError(loc); }, loc.getContext(),
      StringRef(schedule.kind), builder.getDictionaryAttr(numbers));
  if (!attr)
    return failure();
  return attr;
}
