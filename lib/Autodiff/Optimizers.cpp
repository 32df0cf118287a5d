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

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::train;

/// Where a state with the values of `param` starts.
static void copyStart(zero::ParamOp param, zero::StateOp state) {
  if (StringAttr file = param.getInitFileAttr()) {
    state.setInitFileAttr(file);
    state.setInitTensor(param.getInitTensor().value_or(param.getSymName()));
  }
  state.setZeros(param.getZeros());
  if (param.getOnes())
    state.setValueAttr(SplatElementsAttr::get(
        state.getLogicalType(),
        FloatAttr::get(state.getLogicalType().getElementType(), 1.0)));
}

namespace {
/// Builds the updates of one step.
class UpdateBuilder {
public:
  UpdateBuilder(OpBuilder &builder, const UpdateInputs &inputs,
                const TrainStepOptions &options)
      : builder(builder), inputs(inputs), options(options) {}

  void build(TrainedParameter parameter, const GroupValues &group);

  /// Where the next state symbol goes.
  void setSymbolPoint(Operation *after) { symbolPoint = after; }
  /// Takes a state that the module has declared.
  void addDeclared(zero::StateOp state) {
    declared[state.getSymName()] = state;
  }
  void dropDeclared();

private:
  zero::StateOp addState(zero::ParamOp param, StringRef suffix);
  Value readState(zero::ParamOp param, StringRef suffix);
  Value readMaster(zero::ParamOp param);
  Value getRate(const GroupValues &group);
  Value buildRate(double factor);
  double getDecay(const GroupValues &group, double otherwise) const;
  FloatAttr getClipValue() const {
    return options.clipValue ? builder.getF64FloatAttr(*options.clipValue)
                             : FloatAttr();
  }

  Operation *buildUpdate(TrainedParameter parameter, const GroupValues &group);
  template <typename OpTy>
  Operation *buildAdam(TrainedParameter parameter, const GroupValues &group);
  Operation *buildAdamHat(TrainedParameter parameter, const GroupValues &group);
  Operation *buildAdagrad(TrainedParameter parameter, const GroupValues &group);

  OpBuilder &builder;
  const UpdateInputs &inputs;
  const TrainStepOptions &options;
  Operation *symbolPoint = nullptr;
  /// Names of the states of the current parameter, in the order of results.
  SmallVector<std::string> states;
  /// States that stood in the module and are not used so far, by name.
  llvm::MapVector<StringRef, zero::StateOp> declared;
  /// Learning rates of groups, by their factors.
  SmallVector<std::pair<double, Value>> rates;
};
} // namespace

/// The type that optimizers keep parameters and states in.
static RankedTensorType getUpdateType(zero::ParamOp param) {
  RankedTensorType type = param.getLogicalType();
  return type.clone(getStatisticsType(type.getElementType()));
}

zero::StateOp UpdateBuilder::addState(zero::ParamOp param, StringRef suffix) {
  std::string name = (param.getSymName() + "." + suffix).str();
  OpBuilder symbols(builder.getContext());
  symbols.setInsertionPointAfter(symbolPoint);
  auto state = zero::StateOp::create(symbols, param.getLoc(), name,
                                     param.getSymName(), getUpdateType(param));
  symbolPoint = state;
  return state;
}

/// Declares a state of `param` that the optimizer keeps, where the module does
/// not do so with a start of its own, and reads it.
Value UpdateBuilder::readState(zero::ParamOp param, StringRef suffix) {
  std::string name = (param.getSymName() + "." + suffix).str();
  zero::StateOp state = declared.lookup(name);
  if (state) {
    declared.erase(name);
  } else {
    state = addState(param, suffix);
    state.setZeros(true);
  }
  states.push_back(state.getSymName().str());
  return zero::ReadOp::create(builder, param.getLoc(), getUpdateType(param),
                              state.getSymName());
}

/// Declares the f32 form of a narrower parameter, and reads it.
Value UpdateBuilder::readMaster(zero::ParamOp param) {
  zero::StateOp state = addState(param, "master");
  copyStart(param, state);
  return zero::ReadOp::create(builder, param.getLoc(), getUpdateType(param),
                              state.getSymName());
}

/// The learning rate of a group.
Value UpdateBuilder::getRate(const GroupValues &group) {
  double factor = group.learningRateFactor.value_or(1.0);
  if (factor == 1.0)
    return inputs.lr;
  for (auto [known, rate] : rates)
    if (known == factor)
      return rate;
  rates.emplace_back(factor, buildRate(factor));
  return rates.back().second;
}

Value UpdateBuilder::buildRate(double factor) {
  Value lr = inputs.lr;
  Location loc = lr.getLoc();
  if (auto schedule = lr.getDefiningOp<ScheduleOp>())
    return ScheduleOp::create(builder, loc, lr.getType(), schedule.getStep(),
                              schedule.getSchedule(), APFloat(factor));
  Value number = createScalar(builder, loc, getElementTypeOrSelf(lr), factor);
  return MulOp::create(builder, loc, lr, number);
}

double UpdateBuilder::getDecay(const GroupValues &group,
                               double otherwise) const {
  if (group.weightDecay)
    return *group.weightDecay;
  return options.weightDecay.value_or(otherwise);
}

template <typename OpTy>
Operation *UpdateBuilder::buildAdam(TrainedParameter parameter,
                                    const GroupValues &group) {
  double decay = getDecay(group, std::is_same_v<OpTy, AdamwOp> ? 0.01 : 0.0);
  Value expAvg = readState(parameter.param, "exp_avg");
  Value expAvgSq = readState(parameter.param, "exp_avg_sq");
  return OpTy::create(
      builder, parameter.param.getLoc(), parameter.value, parameter.grad,
      expAvg, expAvgSq, getRate(group), inputs.step, APFloat(options.beta1),
      APFloat(options.beta2), APFloat(options.epsilon), APFloat(decay),
      options.noBiasCorrection, inputs.gradScale, inputs.skip, inputs.momentum,
      getClipValue());
}

Operation *UpdateBuilder::buildAdamHat(TrainedParameter parameter,
                                       const GroupValues &group) {
  Value expAvg = readState(parameter.param, "exp_avg");
  Value expAvgSq = readState(parameter.param, "exp_avg_sq");
  APFloat zero(0.0);
  return AdamHatOp::create(
      builder, parameter.param.getLoc(), parameter.value, parameter.grad,
      expAvg, expAvgSq, getRate(group), inputs.step, APFloat(options.beta1),
      APFloat(options.beta2), APFloat(options.epsilon), /*weight_decay=*/zero,
      /*decoupled_decay=*/APFloat(getDecay(group, 0.0)), /*final_decay=*/zero,
      options.noBiasCorrection, inputs.gradScale, inputs.skip, inputs.momentum,
      getClipValue());
}

Operation *UpdateBuilder::buildAdagrad(TrainedParameter parameter,
                                       const GroupValues &group) {
  Value sum = readState(parameter.param, "sum");
  return AdagradOp::create(
      builder, parameter.param.getLoc(), parameter.value, parameter.grad, sum,
      getRate(group), inputs.step, APFloat(options.epsilon),
      /*lr_decay=*/APFloat(0.0), APFloat(getDecay(group, 0.0)),
      inputs.gradScale, inputs.skip, /*current_momentum=*/Value(),
      getClipValue());
}

Operation *UpdateBuilder::buildUpdate(TrainedParameter parameter,
                                      const GroupValues &group) {
  if (options.optimizer == "adamw-hf")
    return buildAdamHat(parameter, group);
  if (options.optimizer == "adagrad")
    return buildAdagrad(parameter, group);
  if (options.optimizer == "adam")
    return buildAdam<AdamOp>(parameter, group);
  if (options.optimizer == "adamw")
    return buildAdam<AdamwOp>(parameter, group);
  Value momentum;
  if (options.momentum != 0.0)
    momentum = readState(parameter.param, "momentum");
  return SgdOp::create(builder, parameter.param.getLoc(), parameter.value,
                       parameter.grad, momentum, getRate(group),
                       options.dampening != 0.0 ? inputs.step : Value(),
                       APFloat(options.momentum), APFloat(options.dampening),
                       APFloat(getDecay(group, 0.0)), options.nesterov,
                       inputs.gradScale, inputs.skip, inputs.momentum,
                       getClipValue());
}

void UpdateBuilder::build(TrainedParameter parameter,
                          const GroupValues &group) {
  zero::ParamOp param = parameter.param;
  Location loc = param.getLoc();
  bool hasMaster = param.getLogicalType() != getUpdateType(param);
  if (hasMaster)
    parameter.value = readMaster(param);
  states.clear();
  Operation *update = buildUpdate(parameter, group);
  Value updated = update->getResult(0);
  if (hasMaster) {
    zero::AssignOp::create(builder, loc, (param.getSymName() + ".master").str(),
                           updated);
    updated = CastOp::create(builder, loc, updated,
                             param.getLogicalType().getElementType());
  }
  zero::AssignOp::create(builder, loc, param.getSymName(), updated);
  for (auto [i, state] : llvm::enumerate(states))
    zero::AssignOp::create(builder, loc, state, update->getResult(i + 1));
}

/// Drops what another optimizer would have gone on with.
void UpdateBuilder::dropDeclared() {
  if (declared.empty())
    return;
  declared.front().second.emitWarning()
      << "optimizer " << options.optimizer << " has no use for "
      << declared.size() << " states that the module declares, first @"
      << declared.front().first;
  for (auto [name, state] : declared)
    state.erase();
}

void mlir::train::buildUpdates(OpBuilder &builder,
                               ArrayRef<TrainedParameter> parameters,
                               ArrayRef<GroupValues> groups,
                               const UpdateInputs &inputs,
                               const TrainStepOptions &options) {
  if (parameters.empty())
    return;
  UpdateBuilder updates(builder, inputs, options);
  // All states stand after the last parameter.
  Operation *last = nullptr;
  auto module = parameters.front().param->getParentOfType<ModuleOp>();
  for (auto param : module.getOps<zero::ParamOp>())
    last = param;
  updates.setSymbolPoint(last);
  for (auto state : module.getOps<zero::StateOp>())
    if (state.getParam())
      updates.addDeclared(state);
  for (auto [parameter, group] : llvm::zip_equal(parameters, groups))
    updates.build(parameter, group);
  updates.dropDeclared();
}
