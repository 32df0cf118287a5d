//===- Optimizers.cpp - Optimizer updates ---------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// State symbols and updates of SGD, Adam and AdamW.
//
//===----------------------------------------------------------------------===//

#include "zero/Autodiff/TrainStep.h"

using namespace mlir;
using namespace mlir::train;

LogicalResult mlir::train::verifyOptimizer(Location loc,
                                           const TrainStepOptions &options) {
  StringRef name = options.optimizer;
  if (name != "sgd" && name != "adam" && name != "adamw" && name != "none")
    return emitError(loc) << "unknown optimizer " << name
                          << ", expected sgd, adam, adamw or none";
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

namespace {
/// Builds the updates of one step.
class UpdateBuilder {
public:
  UpdateBuilder(OpBuilder &builder, Value lr, Value step,
                const TrainStepOptions &options)
      : builder(builder), lr(lr), step(step), options(options) {}

  void build(TrainedParameter parameter);

  /// Where the next state symbol goes.
  void setSymbolPoint(Operation *after) { symbolPoint = after; }

private:
  Value addState(zero::ParamOp param, StringRef suffix);
  Operation *buildUpdate(TrainedParameter parameter);
  template <typename OpTy>
  Operation *buildAdam(TrainedParameter parameter);

  OpBuilder &builder;
  Value lr, step;
  const TrainStepOptions &options;
  Operation *symbolPoint = nullptr;
  /// Names of the states of the current parameter, in the order of results.
  SmallVector<std::string> states;
};
} // namespace

/// Declares a state of `param` and reads it.
Value UpdateBuilder::addState(zero::ParamOp param, StringRef suffix) {
  std::string name = (param.getSymName() + "." + suffix).str();
  OpBuilder symbols(builder.getContext());
  symbols.setInsertionPointAfter(symbolPoint);
  auto state = zero::StateOp::create(symbols, param.getLoc(), name,
                                     param.getSymName(), param.getType());
  state.setZeros(true);
  symbolPoint = state;
  states.push_back(name);
  return zero::ReadOp::create(builder, param.getLoc(), param.getType(), name);
}

template <typename OpTy>
Operation *UpdateBuilder::buildAdam(TrainedParameter parameter) {
  double defaultDecay = std::is_same_v<OpTy, AdamwOp> ? 0.01 : 0.0;
  Value expAvg = addState(parameter.param, "exp_avg");
  Value expAvgSq = addState(parameter.param, "exp_avg_sq");
  return OpTy::create(builder, parameter.param.getLoc(), parameter.value,
                      parameter.grad, expAvg, expAvgSq, lr, step,
                      APFloat(options.beta1), APFloat(options.beta2),
                      APFloat(options.epsilon),
                      APFloat(options.weightDecay.value_or(defaultDecay)),
                      options.noBiasCorrection, /*grad_scale=*/Value(),
                      /*skip=*/Value(), /*current_momentum=*/Value(),
                      /*clip_value=*/FloatAttr());
}

Operation *UpdateBuilder::buildUpdate(TrainedParameter parameter) {
  if (options.optimizer == "adam")
    return buildAdam<AdamOp>(parameter);
  if (options.optimizer == "adamw")
    return buildAdam<AdamwOp>(parameter);
  Value momentum;
  if (options.momentum != 0.0)
    momentum = addState(parameter.param, "momentum");
  return SgdOp::create(
      builder, parameter.param.getLoc(), parameter.value, parameter.grad,
      momentum, lr, options.dampening != 0.0 ? step : Value(),
      APFloat(options.momentum), APFloat(options.dampening),
      APFloat(options.weightDecay.value_or(0.0)), options.nesterov,
      /*grad_scale=*/Value(), /*skip=*/Value(), /*current_momentum=*/Value(),
      /*clip_value=*/FloatAttr());
}

void UpdateBuilder::build(TrainedParameter parameter) {
  states.clear();
  Operation *update = buildUpdate(parameter);
  zero::ParamOp param = parameter.param;
  zero::AssignOp::create(builder, param.getLoc(), param.getSymName(),
                         update->getResult(0));
  for (auto [i, state] : llvm::enumerate(states))
    zero::AssignOp::create(builder, param.getLoc(), state,
                           update->getResult(i + 1));
}

void mlir::train::buildUpdates(OpBuilder &builder,
                               ArrayRef<TrainedParameter> parameters, Value lr,
                               Value step, const TrainStepOptions &options) {
  if (parameters.empty())
    return;
  UpdateBuilder updates(builder, lr, step, options);
  // All states stand after the last parameter.
  Operation *last = nullptr;
  auto module = parameters.front().param->getParentOfType<ModuleOp>();
  for (auto param : module.getOps<zero::ParamOp>())
    last = param;
  updates.setSymbolPoint(last);
  for (const TrainedParameter &parameter : parameters)
    updates.build(parameter);
}
