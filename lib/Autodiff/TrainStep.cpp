//===- TrainStep.cpp - From a forward pass to a training step -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass train-step and the function behind it: the signature of the step and
// the order of its parts.
//
//===----------------------------------------------------------------------===//

#include "zero/Autodiff/TrainStep.h"

#include "zero/Autodiff/Passes.h"

namespace mlir::train {
#define GEN_PASS_DEF_TRAINSTEPPASS
#include "zero/Autodiff/Passes.h.inc"
} // namespace mlir::train

using namespace mlir;
using namespace mlir::train;

static DictionaryAttr attrs(OpBuilder &builder,
                            ArrayRef<std::pair<StringRef, StringRef>> pairs) {
  SmallVector<NamedAttribute> result;
  for (auto [name, value] : pairs)
    result.emplace_back(builder.getStringAttr(name),
                        builder.getStringAttr(value));
  return builder.getDictionaryAttr(result);
}

/// The forward function of `module`, after the checks that the step needs.
static FailureOr<func::FuncOp> findForward(ModuleOp module) {
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

/// Appends the hyperparameters to the arguments.
static LogicalResult addHyperparameters(func::FuncOp function, Value &lr,
                                        Value &step) {
  OpBuilder builder(function.getContext());
  unsigned index = function.getNumArguments();
  Type lrType = RankedTensorType::get({}, builder.getF32Type());
  Type stepType = RankedTensorType::get({}, builder.getI64Type());
  if (failed(function.insertArgument(index, lrType,
                                     attrs(builder, {{"zero.hyper", "lr"}}),
                                     function.getLoc())) ||
      failed(function.insertArgument(index + 1, stepType,
                                     attrs(builder, {{"zero.hyper", "step"}}),
                                     function.getLoc())))
    return failure();
  lr = function.getArgument(index);
  step = function.getArgument(index + 1);
  return success();
}

/// Builds the gradients by the trained parameters of `function`; a remark names
/// the parameters that the loss does not depend on.
static FailureOr<SmallVector<TrainedParameter>>
differentiate(OpBuilder &builder, func::FuncOp function, Value loss) {
  auto module = function->getParentOfType<ModuleOp>();
  SmallVector<ReadParameter> parameters =
      collectTrainedParameters(module, function);
  SmallVector<Variable> variables;
  for (const ReadParameter &parameter : parameters)
    variables.push_back(parameter.reads);
  FailureOr<SmallVector<Value>> grads =
      buildGradients(builder, loss, variables);
  if (failed(grads))
    return failure();
  SmallVector<TrainedParameter> trained;
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
  return trained;
}

/// Replaces the results of `function`.
static void setResults(func::FuncOp function, ArrayRef<Value> values,
                       ArrayRef<DictionaryAttr> attributes) {
  function.getBody().front().getTerminator()->setOperands(values);
  SmallVector<Type> types;
  for (Value value : values)
    types.push_back(value.getType());
  function.setFunctionType(FunctionType::get(
      function.getContext(), function.getArgumentTypes(), types));
  function.setAllResultAttrs(attributes);
}

LogicalResult mlir::train::buildTrainStep(ModuleOp module,
                                          const TrainStepOptions &options) {
  module.getContext()->loadDialect<TrainDialect>();
  if (failed(verifyOptimizer(module.getLoc(), options)))
    return failure();
  if (options.labels != "separate" && options.labels != "input")
    return module.emitError() << "unknown labels " << options.labels
                              << ", expected separate or input";
  FailureOr<func::FuncOp> function = findForward(module);
  if (failed(function))
    return failure();
  FailureOr<Value> loss = buildLoss(*function, options);
  Value lr, step;
  if (failed(loss) || failed(addHyperparameters(*function, lr, step)))
    return failure();

  OpBuilder builder(function->getBody().front().getTerminator());
  FailureOr<SmallVector<TrainedParameter>> trained =
      differentiate(builder, *function, *loss);
  if (failed(trained))
    return failure();
  SmallVector<Value> grads;
  for (const TrainedParameter &parameter : *trained)
    grads.push_back(parameter.grad);
  Value norm = SumSquaresOp::create(builder, function->getLoc(), grads);

  SmallVector<Value> results{*loss, norm};
  SmallVector<DictionaryAttr> resultAttrs{
      attrs(builder, {{"zero.output", "loss"}, {"zero.across", "mean"}}),
      attrs(builder,
            {{"zero.output", "grad_norm_sq"}, {"zero.across", "same"}})};
  if (options.optimizer == "none") {
    for (const TrainedParameter &parameter : *trained) {
      zero::ParamOp param = parameter.param;
      std::string name = ("grad." + param.getSymName()).str();
      results.push_back(parameter.grad);
      resultAttrs.push_back(
          attrs(builder, {{"zero.output", name}, {"zero.across", "mean"}}));
    }
  } else {
    buildUpdates(builder, *trained, lr, step, options);
  }
  setResults(*function, results, resultAttrs);
  eraseDeadOps(function->getBody().front());
  function->setSymName("step");
  module->setAttr("zero.optimizer", builder.getStringAttr(options.optimizer));
  return success();
}

namespace {
struct TrainStepPass : train::impl::TrainStepPassBase<TrainStepPass> {
  using TrainStepPassBase::TrainStepPassBase;

  void runOnOperation() override {
    TrainStepOptions step;
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
    step.labels = labels;
    step.ignoreIndex = ignoreIndex;
    if (!labelsShape.empty())
      step.labelsShape =
          SmallVector<int64_t>(labelsShape.begin(), labelsShape.end());
    if (failed(buildTrainStep(getOperation(), step)))
      signalPassFailure();
  }
};
} // namespace
