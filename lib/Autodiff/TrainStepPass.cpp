//===- TrainStepPass.cpp - The pass train-step ----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass's options as those of the function behind it.
//
//===----------------------------------------------------------------------===//

#include "zero/Autodiff/Passes.h"
#include "zero/Autodiff/TrainStep.h"

#include "llvm/ADT/StringExtras.h"

namespace mlir::train {
#define GEN_PASS_DEF_TRAINSTEPPASS
#include "zero/Autodiff/Passes.h.inc"
} // namespace mlir::train

using namespace mlir;
using namespace mlir::train;

namespace {
struct TrainStepPass : train::impl::TrainStepPassBase<TrainStepPass> {
  using TrainStepPassBase::TrainStepPassBase;

  void runOnOperation() override {
    TrainStepOptions step;
    setOptimizer(step);
    setClipping(step);
    if (failed(setPrecision(step)) || failed(setGroups(step)) ||
        failed(setSchedules(step)) ||
        failed(buildTrainStep(getOperation(), step)))
      signalPassFailure();
  }

private:
  void setOptimizer(TrainStepOptions &step);
  void setClipping(TrainStepOptions &step);
  LogicalResult setPrecision(TrainStepOptions &step);
  LogicalResult setLossScale(TrainStepOptions &step);
  LogicalResult setGroups(TrainStepOptions &step);
  LogicalResult setGroupNumber(StringRef text, ParameterGroup &group);
  LogicalResult setSchedules(TrainStepOptions &step);

  FailureOr<FloatKind> parseKind(StringRef option, StringRef text);
  FailureOr<LearningRateSchedule> parseSchedule(StringRef text);
  FailureOr<double> parseNumber(StringRef text);
  InFlightDiagnostic error() { return getOperation().emitError(); }
};
} // namespace

void TrainStepPass::setOptimizer(TrainStepOptions &step) {
  step.loss = loss;
  step.optimizer = optimizer;
  step.momentum = momentum;
  step.dampening = dampening;
  if (weightDecay >= 0.0)
    step.weightDecay = weightDecay;
  step.beta1 = beta1;
  step.beta2 = beta2;
  step.epsilon = epsilon;
  step.nesterov = nesterov;
  step.noBiasCorrection = noBiasCorrection;
  step.labels = labels;
  step.ignoreIndex = ignoreIndex;
  if (!labelsShape.empty())
    step.labelsShape =
        SmallVector<int64_t>(labelsShape.begin(), labelsShape.end());
  step.microBatches = microBatches;
}

void TrainStepPass::setClipping(TrainStepOptions &step) {
  if (clipNorm != 0.0)
    step.clipNorm = clipNorm;
  if (clipValue != 0.0)
    step.clipValue = clipValue;
}

FailureOr<FloatKind> TrainStepPass::parseKind(StringRef option,
                                              StringRef text) {
  if (std::optional<FloatKind> kind = parseFloatKind(text))
    return *kind;
  return error() << "unknown " << option << " " << text
                 << ", expected f32, bf16 or f16";
}

FailureOr<double> TrainStepPass::parseNumber(StringRef text) {
  double number;
  if (!llvm::to_float(text, number))
    return error() << "\"" << text << "\" is not a number";
  return number;
}

LogicalResult TrainStepPass::setLossScale(TrainStepOptions &step) {
  step.skipNonFinite = skipNonFinite;
  if (lossScale.empty())
    return success();
  LossScaling scaling;
  if (lossScale != "dynamic") {
    FailureOr<double> fixed = parseNumber(lossScale);
    if (failed(fixed))
      return failure();
    scaling.fixed = *fixed;
  }
  scaling.initialScale = initialScale;
  scaling.window = lossScaleWindow;
  scaling.hysteresis = hysteresis;
  scaling.consecutiveHysteresis = consecutiveHysteresis;
  scaling.minScale = minScale;
  step.lossScaling = scaling;
  return success();
}

LogicalResult TrainStepPass::setPrecision(TrainStepOptions &step) {
  FailureOr<FloatKind> compute = parseKind("precision", precision);
  FailureOr<FloatKind> reduce = parseKind("reduce-type", reduceType);
  if (failed(compute) || failed(reduce))
    return failure();
  step.precision = *compute;
  step.reduceType = *reduce;
  return setLossScale(step);
}

/// `weight-decay=0.1` or `lr-factor=0.5`.
LogicalResult TrainStepPass::setGroupNumber(StringRef text,
                                            ParameterGroup &group) {
  auto [name, value] = text.split('=');
  if (name != "weight-decay" && name != "lr-factor")
    return error() << "groups: unknown setting " << name
                   << ", expected weight-decay or lr-factor";
  FailureOr<double> number = parseNumber(value);
  if (failed(number))
    return failure();
  if (name == "weight-decay")
    group.weightDecay = *number;
  else
    group.learningRateFactor = *number;
  return success();
}

LogicalResult TrainStepPass::setGroups(TrainStepOptions &step) {
  for (const std::string &text : groups) {
    auto [pattern, settings] = StringRef(text).split(':');
    ParameterGroup group;
    group.patterns.push_back(pattern.str());
    SmallVector<StringRef> parts;
    llvm::SplitString(settings, parts, ":");
    if (parts.empty())
      return error() << "group " << pattern
                     << " says nothing, expected a weight-decay, an lr-factor "
                        "or both";
    for (StringRef setting : parts)
      if (failed(setGroupNumber(setting, group)))
        return failure();
    step.groups.push_back(group);
  }
  if (!noDecay.empty()) {
    ParameterGroup group;
    group.patterns.assign(noDecay.begin(), noDecay.end());
    group.weightDecay = 0.0;
    step.groups.push_back(group);
  }
  return success();
}

/// `KIND:NUMBER=VALUE:...`; commas do as well.
FailureOr<LearningRateSchedule> TrainStepPass::parseSchedule(StringRef text) {
  auto [kind, numbers] = text.split(':');
  LearningRateSchedule parsed;
  parsed.kind = kind.str();
  SmallVector<StringRef> parts;
  llvm::SplitString(numbers, parts, ":,");
  for (StringRef part : parts) {
    auto [name, value] = part.split('=');
    FailureOr<double> number = parseNumber(value);
    if (failed(number))
      return failure();
    parsed.numbers[name.str()] = *number;
  }
  return parsed;
}

LogicalResult TrainStepPass::setSchedules(TrainStepOptions &step) {
  for (auto [text, target] :
       {std::pair<StringRef, std::optional<LearningRateSchedule> *>(
            schedule, &step.schedule),
        {momentumSchedule, &step.momentumSchedule}}) {
    if (text.empty())
      continue;
    FailureOr<LearningRateSchedule> parsed = parseSchedule(text);
    if (failed(parsed))
      return failure();
    *target = *parsed;
  }
  return success();
}
