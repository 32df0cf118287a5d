//===- TrainStep.cpp - From a forward pass to a training step -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The signature of the step and the order of its parts.
//
//===----------------------------------------------------------------------===//

#include "zero/Autodiff/TrainStep.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::train;

namespace {
/// Builds one step from a forward function.
class StepBuilder {
public:
  StepBuilder(func::FuncOp function, const TrainStepOptions &options)
      : function(function), module(function->getParentOfType<ModuleOp>()),
        options(options), loc(function.getLoc()),
        builder(function.getBody().front().getTerminator()) {}

  LogicalResult build();

private:
  bool mayBeSkipped() const {
    return options.lossScaling || options.skipNonFinite;
  }
  bool isScaleDynamic() const {
    return options.lossScaling && !options.lossScaling->fixed;
  }
  Type scalarType(Type element) { return RankedTensorType::get({}, element); }

  FailureOr<Value> addHyperparameter(StringRef name, Type element);
  Value addState(StringRef name, Attribute number);
  void assignState(StringRef name, Value value);
  void addResult(StringRef name, StringRef across, Value value);

  LogicalResult buildHyperparameters();
  bool countsSteps();
  void readStepNumber();
  void readLossScale();
  Value buildSeed();
  LogicalResult addLoss();
  LogicalResult differentiate();
  bool hasGradients();
  LogicalResult takeLoss();
  LogicalResult takeSeed();
  zero::ParamOp findTarget(unsigned index, StringAttr name);
  LogicalResult takeGradients();
  void castGradients();
  void buildGradientFactor(Value sumSquares);
  void buildClippedNorm(Value norm);
  Value buildUsedScale();
  void buildScalingUpdate();
  LogicalResult buildOptimizer();
  void addGradientResults();
  void finish();

  func::FuncOp function;
  ModuleOp module;
  const TrainStepOptions &options;
  Location loc;
  OpBuilder builder;

  Value loss;
  UpdateInputs inputs;
  SmallVector<TrainedParameter> trained;
  /// The scale of this step, and the steps that were not skipped before it.
  Value lossScale, doneSteps;
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> resultAttrs;
};
} // namespace

static DictionaryAttr attrs(OpBuilder &builder,
                            ArrayRef<std::pair<StringRef, StringRef>> pairs) {
  SmallVector<NamedAttribute> result;
  for (auto [name, value] : pairs)
    result.emplace_back(builder.getStringAttr(name),
                        builder.getStringAttr(value));
  return builder.getDictionaryAttr(result);
}

//===----------------------------------------------------------------------===//
// Arguments, results and state of the step itself
//===----------------------------------------------------------------------===//

/// The argument that is the hyperparameter `name`; the forward pass may have it
/// for its random numbers.
FailureOr<Value> StepBuilder::addHyperparameter(StringRef name, Type element) {
  for (BlockArgument argument : function.getArguments())
    if (function.getArgAttr(argument.getArgNumber(), zero::kHyperAttr) ==
        builder.getStringAttr(name))
      return Value(argument);
  unsigned index = function.getNumArguments();
  if (failed(function.insertArgument(index, scalarType(element),
                                     attrs(builder, {{"zero.hyper", name}}),
                                     loc)))
    return failure();
  return Value(function.getArgument(index));
}

/// Declares a state of the step, a number that starts as `number` where the
/// module does not say how, and reads it.
Value StepBuilder::addState(StringRef name, Attribute number) {
  auto type =
      cast<RankedTensorType>(scalarType(cast<TypedAttr>(number).getType()));
  OpBuilder symbols = OpBuilder::atBlockBegin(module.getBody());
  for (Operation &op : *module.getBody())
    if (isa<zero::ParamOp, zero::StateOp>(op))
      symbols.setInsertionPointAfter(&op);
  if (!module.lookupSymbol<zero::StateOp>(name)) {
    auto state = zero::StateOp::create(symbols, loc, name, StringRef(), type);
    state.setValueAttr(SplatElementsAttr::get(type, number));
  }
  return zero::ReadOp::create(builder, loc, type, name);
}

void StepBuilder::assignState(StringRef name, Value value) {
  zero::AssignOp::create(builder, loc, name, value);
}

void StepBuilder::addResult(StringRef name, StringRef across, Value value) {
  results.push_back(value);
  resultAttrs.push_back(
      attrs(builder, {{"zero.output", name}, {"zero.across", across}}));
}

LogicalResult StepBuilder::buildHyperparameters() {
  if (!options.schedule) {
    FailureOr<Value> lr = addHyperparameter("lr", builder.getF32Type());
    if (failed(lr))
      return failure();
    inputs.lr = *lr;
  }
  if (!countsSteps()) {
    FailureOr<Value> step = addHyperparameter("step", builder.getI64Type());
    if (failed(step))
      return failure();
    inputs.step = *step;
  }
  return success();
}

/// The host numbers steps from 1: not where one that is skipped does not count,
/// nor where the module says how many were done before.
bool StepBuilder::countsSteps() {
  return mayBeSkipped() || module.lookupSymbol<zero::StateOp>(kDoneSteps);
}

void StepBuilder::readStepNumber() {
  doneSteps = addState(kDoneSteps, builder.getI64IntegerAttr(0));
  auto one = SplatElementsAttr::get(cast<ShapedType>(doneSteps.getType()),
                                    builder.getI64IntegerAttr(1));
  inputs.step = AddOp::create(builder, loc, doneSteps,
                              arith::ConstantOp::create(builder, loc, one));
}

void StepBuilder::readLossScale() {
  const LossScaling &scaling = *options.lossScaling;
  lossScale =
      scaling.fixed
          ? createScalar(builder, loc, builder.getF32Type(), *scaling.fixed)
          : addState("loss_scale",
                     builder.getF32FloatAttr(scaling.initialScale));
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

Value StepBuilder::buildSeed() {
  if (options.lossScaling)
    readLossScale();
  if (!lossScale && options.microBatches == 1)
    return {};
  return LossSeedOp::create(builder, loc, loss.getType(), lossScale,
                            options.microBatches);
}

/// Builds the gradients by the trained parameters; a remark names those that
/// the loss does not depend on.
LogicalResult StepBuilder::differentiate() {
  SmallVector<ReadParameter> parameters =
      collectTrainedParameters(module, function);
  SmallVector<Variable> variables;
  for (const ReadParameter &parameter : parameters)
    variables.push_back(parameter.reads);
  FailureOr<SmallVector<Value>> grads =
      buildGradients(builder, loss, variables, buildSeed());
  if (failed(grads))
    return failure();
  for (auto [parameter, grad] : llvm::zip_equal(parameters, *grads)) {
    if (grad)
      trained.push_back({parameter.param, parameter.reads.front(), grad});
    else
      parameter.param.emitRemark()
          << "parameter @" << parameter.param.getSymName()
          << " is not updated: the loss does not depend on it";
  }
  if (trained.empty())
    return function.emitError(
        "the loss of @forward depends on no trained parameter");
  return success();
}

//===----------------------------------------------------------------------===//
// Gradients that @forward computes itself
//===----------------------------------------------------------------------===//

bool StepBuilder::hasGradients() {
  for (unsigned i = 0, e = function.getNumResults(); i < e; ++i)
    if (function.getResultAttr(i, kGradientAttr))
      return true;
  return false;
}

LogicalResult StepBuilder::takeLoss() {
  if (options.precision != FloatKind::F32)
    return function.emitError(
        "@forward has gradients of its own, in its own types; a precision "
        "other than f32 needs gradients that are made here");
  Operation *end = function.getBody().front().getTerminator();
  for (unsigned i = 0, e = function.getNumResults(); i < e; ++i)
    if (function.getResultAttr(i, kLossAttr))
      loss = end->getOperand(i);
  auto type = loss ? cast<RankedTensorType>(loss.getType()) : nullptr;
  if (!type || type.getNumElements() != 1 ||
      !isa<FloatType>(type.getElementType()))
    return function.emitError(
        "@forward has gradients of its own but no result marked train.loss "
        "that is one float number");
  if (type.getRank())
    loss = ReshapeOp::create(builder, loc, scalarType(type.getElementType()),
                             loss, builder.getDenseI64ArrayAttr({}));
  return success();
}

/// The seed, an argument, becomes what an own backward pass would begin with.
LogicalResult StepBuilder::takeSeed() {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&function.getBody().front());
  Value seed = buildSeed();
  llvm::BitVector replaced(function.getNumArguments());
  for (BlockArgument argument : function.getArguments()) {
    if (!function.getArgAttr(argument.getArgNumber(), kSeedAttr))
      continue;
    auto type = cast<RankedTensorType>(argument.getType());
    Value value =
        seed ? seed
             : createScalar(builder, loc, type.getElementType(), /*value=*/1.0);
    if (type.getRank())
      value = ReshapeOp::create(builder, loc, type, value,
                                builder.getDenseI64ArrayAttr(type.getShape()));
    argument.replaceAllUsesWith(value);
    replaced.set(argument.getArgNumber());
  }
  if (seed && replaced.none())
    return function.emitError(
        "@forward has gradients of its own but no argument marked "
        "train.loss_seed, which micro-batches and a loss scale need");
  return function.eraseArguments(replaced);
}

/// The parameter that result `index` is the gradient of; null with an error
/// where there is none of its type.
zero::ParamOp StepBuilder::findTarget(unsigned index, StringAttr name) {
  auto param = module.lookupSymbol<zero::ParamOp>(name);
  Operation *end = function.getBody().front().getTerminator();
  if (param && param.getLogicalType() == end->getOperand(index).getType())
    return param;
  function.emitError() << "result " << index << " is marked as the gradient of "
                       << "@" << name.getValue()
                       << ", which is no parameter of its type";
  return {};
}

LogicalResult StepBuilder::takeGradients() {
  if (failed(takeSeed()))
    return failure();
  Operation *end = function.getBody().front().getTerminator();
  llvm::DenseMap<Operation *, Value> reads;
  for (const ReadParameter &parameter :
       collectTrainedParameters(module, function))
    if (!parameter.reads.empty())
      reads[parameter.param] = parameter.reads.front();
  for (unsigned i = 0, e = function.getNumResults(); i < e; ++i) {
    auto name = function.getResultAttrOfType<StringAttr>(i, kGradientAttr);
    if (!name)
      continue;
    zero::ParamOp param = findTarget(i, name);
    if (!param)
      return failure();
    if (Value read = reads.lookup(param))
      trained.push_back({param, read, end->getOperand(i)});
  }
  if (trained.empty())
    return function.emitError(
        "@forward has gradients of its own, but of no parameter that is "
        "trained and used");
  return success();
}

/// Gives the gradients the type that they are reduced in.
void StepBuilder::castGradients() {
  Type type = getFloatType(builder.getContext(),
                           options.reduceType.value_or(FloatKind::F32));
  for (TrainedParameter &parameter : trained) {
    Type element = getElementTypeOrSelf(parameter.grad);
    if (element != type && !element.isF64())
      parameter.grad = CastOp::create(builder, loc, parameter.grad, type);
  }
}

/// What the updates take from the norm of all gradients.
void StepBuilder::buildGradientFactor(Value sumSquares) {
  if (!mayBeSkipped() && !options.clipNorm) {
    addResult("grad_norm_sq", "same", sumSquares);
    return;
  }
  auto factor = GradientFactorOp::create(
      builder, loc,
      TypeRange{scalarType(builder.getF32Type()),
                scalarType(builder.getF64Type()),
                scalarType(builder.getI1Type())},
      sumSquares, lossScale,
      options.clipNorm ? builder.getF64FloatAttr(*options.clipNorm)
                       : FloatAttr());
  if (options.clipNorm || lossScale)
    inputs.gradScale = factor.getFactor();
  if (mayBeSkipped())
    inputs.skip = factor.getOverflow();
  addResult("grad_norm", "same", factor.getNorm());
  if (options.clipNorm)
    buildClippedNorm(factor.getNorm());
}

void StepBuilder::buildClippedNorm(Value norm) {
  Value bound =
      createScalar(builder, loc, getElementTypeOrSelf(norm), *options.clipNorm);
  addResult("grad_norm_clipped", "same",
            MinOp::create(builder, loc, norm, bound));
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

/// The scale of this step as a value of its own, since its state is replaced
/// before the step returns.
Value StepBuilder::buildUsedScale() {
  Value one = createScalar(builder, loc, builder.getF32Type(), 1.0);
  return MulOp::create(builder, loc, lossScale, one);
}

/// The loss scale of the next step, and what this one says about it.
void StepBuilder::buildScalingUpdate() {
  assignState(kDoneSteps,
              NextStepOp::create(builder, loc, doneSteps, inputs.skip));
  if (lossScale)
    addResult("loss_scale", "same", buildUsedScale());
  addResult("overflow", "same",
            CastOp::create(builder, loc, inputs.skip, builder.getI64Type()));
  if (!isScaleDynamic())
    return;
  const LossScaling &scaling = *options.lossScaling;
  auto number = [&](int64_t value) { return builder.getI64IntegerAttr(value); };
  Value left = addState("loss_scale.hysteresis", number(scaling.hysteresis));
  Value iteration = addState("loss_scale.iteration", number(0));
  Value last = addState("loss_scale.last_overflow", number(-1));
  auto next = UpdateLossScaleOp::create(
      builder, loc, lossScale, left, iteration, last, inputs.skip,
      scaling.window, scaling.hysteresis, scaling.consecutiveHysteresis,
      APFloat(scaling.factor), APFloat(scaling.minScale));
  assignState("loss_scale", next.getNewScale());
  assignState("loss_scale.hysteresis", next.getNewHysteresis());
  assignState("loss_scale.iteration", next.getNewIteration());
  assignState("loss_scale.last_overflow", next.getNewLastOverflow());
  addResult(
      "loss_scale_exhausted", "same",
      CastOp::create(builder, loc, next.getExhausted(), builder.getI64Type()));
}

LogicalResult StepBuilder::buildOptimizer() {
  bool counts = countsSteps();
  if (counts)
    readStepNumber();
  if (options.schedule) {
    FailureOr<ScheduleAttr> schedule = getSchedule(loc, *options.schedule);
    if (failed(schedule))
      return failure();
    inputs.lr = ScheduleOp::create(
        builder, loc, scalarType(builder.getF32Type()), inputs.step, *schedule,
        /*factor=*/APFloat(1.0));
    addResult("lr", "same", inputs.lr);
  }
  if (options.momentumSchedule) {
    FailureOr<ScheduleAttr> schedule =
        getSchedule(loc, *options.momentumSchedule);
    if (failed(schedule))
      return failure();
    inputs.momentum = ScheduleOp::create(
        builder, loc, scalarType(builder.getF64Type()), inputs.step, *schedule,
        /*factor=*/APFloat(1.0));
  }
  FailureOr<SmallVector<GroupValues>> groups =
      matchGroups(loc, module, trained, options.groups);
  if (failed(groups))
    return failure();
  buildUpdates(builder, trained, *groups, inputs, options);
  if (counts && !mayBeSkipped())
    assignState(kDoneSteps, inputs.step);
  if (mayBeSkipped())
    buildScalingUpdate();
  return success();
}

void StepBuilder::addGradientResults() {
  for (const TrainedParameter &parameter : trained) {
    zero::ParamOp param = parameter.param;
    addResult(("grad." + param.getSymName()).str(), "mean", parameter.grad);
  }
}

void StepBuilder::finish() {
  Block &body = function.getBody().front();
  body.getTerminator()->setOperands(results);
  function.setFunctionType(
      FunctionType::get(function.getContext(), function.getArgumentTypes(),
                        llvm::to_vector(ValueRange(results).getTypes())));
  function.setAllResultAttrs(resultAttrs);
  eraseDeadOps(body);
  function.setSymName("step");
  module->setAttr("zero.optimizer", builder.getStringAttr(options.optimizer));
}

LogicalResult StepBuilder::addLoss() {
  FailureOr<Value> built = buildLoss(function, options);
  if (succeeded(built))
    loss = *built;
  return success(succeeded(built));
}

LogicalResult StepBuilder::build() {
  bool given = hasGradients();
  if (failed(given ? takeLoss() : addLoss()) || failed(buildHyperparameters()))
    return failure();
  addResult("loss", "mean", loss);
  if (failed(given ? takeGradients() : differentiate()))
    return failure();
  castGradients();
  SmallVector<Value> grads;
  for (const TrainedParameter &parameter : trained)
    grads.push_back(parameter.grad);
  buildGradientFactor(SumSquaresOp::create(builder, loc, grads));
  if (options.optimizer == "none")
    addGradientResults();
  else if (failed(buildOptimizer()))
    return failure();
  finish();
  return success();
}

//===----------------------------------------------------------------------===//
// Entry
//===----------------------------------------------------------------------===//

FailureOr<func::FuncOp> mlir::train::findForward(ModuleOp module) {
  if (module.lookupSymbol<func::FuncOp>("step"))
    return module.emitError("module has a function @step already");
  auto function = module.lookupSymbol<func::FuncOp>("forward");
  if (!function)
    return module.emitError("module has no function @forward to train");
  if (!llvm::hasSingleElement(function.getBody()))
    return function.emitError(
        "@forward is not straight-line code, expected one block");
  return function;
}

LogicalResult mlir::train::buildTrainStep(ModuleOp module,
                                          const TrainStepOptions &options) {
  module.getContext()->loadDialect<TrainDialect>();
  if (failed(verifyOptions(module.getLoc(), options)))
    return failure();
  FailureOr<func::FuncOp> function = findForward(module);
  if (failed(function) || failed(convertPrecision(module, options.precision)))
    return failure();
  if (options.attention)
    raiseAttention(module, options.attention);
  if (failed(StepBuilder(*function, options).build()))
    return failure();
  return accumulateMicroBatches(module, options.microBatches);
}
