//===- TrainingStep.cpp - The step that a model has -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph with gradients stays @forward, its results marked: train-step adds
// the updates. A graph with new values becomes @step, which assigns them.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/GraphImporter.h"
#include "lib/Import/TrainingForms.h"

#include "zero/Autodiff/TrainStep.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace mlir::zero;
using namespace mlir::zero::onnx_import;

namespace {
class StepMaker {
public:
  StepMaker(ModuleOp module, func::FuncOp function, const TrainingForm &form)
      : module(module), symbols(module), function(function), form(form),
        builder(function.getBody().front().getTerminator()),
        loc(function.getLoc()) {}

  LogicalResult run();

private:
  LogicalResult makeNumbers();
  LogicalResult makeNumber(unsigned argument);
  LogicalResult assign();
  void makeStates();
  void linkStates();
  void link(Value value, ParamOp param);
  LogicalResult setResults();
  Value toScalar(Value value);

  ModuleOp module;
  SymbolTable symbols;
  func::FuncOp function;
  const TrainingForm &form;
  OpBuilder builder;
  Location loc;
  Value loss;
  llvm::StringSet<> hyperparameters;
};
} // namespace

/// A tensor of one element as one without dimensions.
Value StepMaker::toScalar(Value value) {
  if (shapeOf(value).empty())
    return value;
  auto made = train::createChecked<train::ReshapeOp>(
      builder, loc, value,
      builder.getNamedAttr("shape", builder.getDenseI64ArrayAttr({})));
  return failed(made) ? Value() : Value(*made);
}

//===----------------------------------------------------------------------===//
// Numbers of the step
//===----------------------------------------------------------------------===//

/// Makes an input that is one number the learning rate or, where it is an
/// integer, the number of the step, which counts from 0 there.
LogicalResult StepMaker::makeNumber(unsigned index) {
  BlockArgument old = function.getArgument(index);
  auto name = function.getArgAttrOfType<StringAttr>(index, kInputAttr);
  Type element = typeOf(old).getElementType();
  StringRef hyper = isa<FloatType>(element) ? "lr" : "step";
  bool known = element.isF32() || element.isInteger(64);
  if (!known || !hyperparameters.insert(hyper).second)
    return emitError(loc)
           << "input '" << name.getValue() << "' of the training algorithm is "
           << (known ? "a second number" : "a number")
           << " of the step that nothing gives it; make it a constant with "
              "--value";
  auto type = RankedTensorType::get({}, element);
  unsigned last = function.getNumArguments();
  DictionaryAttr attrs = builder.getDictionaryAttr(
      builder.getNamedAttr(kHyperAttr, builder.getStringAttr(hyper)));
  if (failed(function.insertArgument(last, type, attrs, loc)))
    return failure();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&function.getBody().front());
  Value value = function.getArgument(last);
  if (hyper == "step") {
    auto one = DenseElementsAttr::get(type, builder.getI64IntegerAttr(1));
    value = train::SubOp::create(builder, loc, value,
                                 arith::ConstantOp::create(builder, loc, one));
  }
  if (ArrayRef<int64_t> shape = shapeOf(old); !shape.empty())
    value = train::ReshapeOp::create(builder, loc, typeOf(old), value,
                                     builder.getDenseI64ArrayAttr(shape));
  old.replaceAllUsesWith(value);
  return success();
}

LogicalResult StepMaker::makeNumbers() {
  llvm::BitVector replaced(function.getNumArguments());
  for (unsigned i = 0; i < replaced.size(); ++i) {
    auto name = function.getArgAttrOfType<StringAttr>(i, kInputAttr);
    if (!name || !form.numbers.contains(name.getValue()) ||
        typeOf(function.getArgument(i)).getNumElements() != 1 ||
        typeOf(function.getArgument(i)).getRank() > 1)
      continue;
    if (failed(makeNumber(i)))
      return failure();
    replaced.set(i);
  }
  replaced.resize(function.getNumArguments());
  return function.eraseArguments(replaced);
}

//===----------------------------------------------------------------------===//
// New values
//===----------------------------------------------------------------------===//

LogicalResult StepMaker::assign() {
  Operation *end = function.getBody().front().getTerminator();
  for (auto [i, name] : llvm::enumerate(form.targets)) {
    Value value = end->getOperand(i + 1);
    auto param = symbols.lookup<ParamOp>(name);
    // no test: what a step updates is declared; this guards later changes.
    if (!param)
      return emitError(loc) << "updates '" << printable(name)
                            << "', which its step does not use";
    if (value.getType() != param.getType())
      return emitError(loc)
             << "updates '" << printable(name) << "', which is "
             << param.getType() << ", with a value that is " << value.getType();
    AssignOp::create(builder, loc, name, value);
  }
  loss = toScalar(end->getOperand(0));
  return success(bool(loss));
}

/// The symbols that were imported as buffers are states.
void StepMaker::makeStates() {
  for (auto param : llvm::make_early_inc_range(module.getOps<ParamOp>())) {
    if (!form.states.contains(param.getSymName()))
      continue;
    OpBuilder b(param);
    auto state = StateOp::create(b, param.getLoc(), param.getSymName(),
                                 StringRef(), param.getLogicalType());
    state.setInitFileAttr(param.getInitFileAttr());
    state.setInitTensorAttr(param.getInitTensorAttr());
    symbols.erase(param);
    symbols.insert(state);
  }
  // A state refers to its parameter, which stands before it.
  Operation *last = nullptr;
  for (auto param : module.getOps<ParamOp>())
    last = param;
  for (auto state : llvm::to_vector(module.getOps<StateOp>())) {
    state->moveAfter(last);
    last = state;
  }
}

/// Whether an update can be made of `op`: what is before is the gradient.
static bool isPartOfUpdate(Operation *op) {
  return isa<OptimizerUpdate>(op) || op->hasTrait<OpTrait::Elementwise>() ||
         op->hasTrait<train::BroadcastElementwise>();
}

/// Gives `param` the states of its shape that its new value is computed from.
void StepMaker::link(Value value, ParamOp param) {
  llvm::SetVector<Value> values;
  values.insert(value);
  for (size_t i = 0; i < values.size(); ++i) {
    Operation *op = values[i].getDefiningOp();
    if (!op)
      continue;
    auto read = dyn_cast<ReadOp>(op);
    auto state = read ? symbols.lookup<StateOp>(read.getSymbol()) : StateOp();
    if (state && !state.getParam() && state.getLogicalType().getRank() &&
        state.getLogicalType() == param.getLogicalType())
      state.setParam(param.getSymName());
    if (!isPartOfUpdate(op))
      continue;
    for (Value operand : op->getOperands())
      if (auto type = dyn_cast<RankedTensorType>(operand.getType());
          type && type.getShape() == param.getLogicalType().getShape())
        values.insert(operand);
  }
}

void StepMaker::linkStates() {
  auto assigns = llvm::to_vector(function.getOps<AssignOp>());
  for (AssignOp assign : assigns)
    if (auto param = symbols.lookup<ParamOp>(assign.getSymbol()))
      link(assign.getValue(), param);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// The loss and, where updates say what the gradients are, their norm.
LogicalResult StepMaker::setResults() {
  SmallVector<Value> results = {loss}, grads;
  SmallVector<DictionaryAttr> attrs;
  auto add = [&](StringRef name, StringRef across) {
    attrs.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr(kOutputAttr, builder.getStringAttr(name)),
         builder.getNamedAttr(kAcrossAttr, builder.getStringAttr(across))}));
  };
  add("loss", "mean");
  for (auto update : function.getOps<OptimizerUpdate>())
    grads.push_back(update.getGradientOperand().get());
  if (!grads.empty()) {
    results.push_back(train::SumSquaresOp::create(builder, loc, grads));
    add("grad_norm_sq", "same");
  }
  Block &body = function.getBody().front();
  body.getTerminator()->setOperands(results);
  function.setFunctionType(
      builder.getFunctionType(function.getArgumentTypes(),
                              llvm::to_vector(ValueRange(results).getTypes())));
  function.setAllResultAttrs(attrs);
  function.setSymName("step");
  train::eraseDeadOps(body);
  return success();
}

LogicalResult StepMaker::run() {
  auto type = typeOf(function.getBody().front().getTerminator()->getOperand(0));
  if (!isa<FloatType>(type.getElementType()) || type.getNumElements() != 1)
    return emitError(loc) << "has a training algorithm whose loss is " << type
                          << ", expected one float number";
  if (failed(makeNumbers()) || failed(assign()))
    return failure();
  makeStates();
  linkStates();
  if (failed(setResults()))
    return failure();
  return verify(module);
}

/// Marks the loss and the gradients among the results, and the seed among the
/// arguments.
static void markGradients(func::FuncOp function, const TrainingForm &form) {
  Builder builder(function.getContext());
  auto add = [&](DictionaryAttr attrs, StringRef name, Attribute value) {
    NamedAttrList list(attrs);
    list.set(name, value);
    return list.getDictionary(function.getContext());
  };
  SmallVector<DictionaryAttr> results, arguments;
  function.getAllResultAttrs(results);
  function.getAllArgAttrs(arguments);
  results[0] = add(results[0], train::kLossAttr, builder.getUnitAttr());
  for (auto [i, name] : llvm::enumerate(form.targets))
    results[i + 1] =
        add(results[i + 1], train::kGradientAttr, builder.getStringAttr(name));
  for (DictionaryAttr &attrs : arguments)
    if (attrs && attrs.get(kInputAttr) == builder.getStringAttr(kSeedInput))
      attrs = add(attrs, train::kSeedAttr, builder.getUnitAttr());
  function.setAllResultAttrs(results);
  function.setAllArgAttrs(arguments);
}

/// `form` with the names that the module has.
static TrainingForm withSymbols(TrainingForm form, Parameters &parameters) {
  for (std::string &target : form.targets)
    if (Param *param = parameters.find(target))
      target = param->name;
  for (const std::unique_ptr<Param> &param : parameters.all())
    if (form.states.erase(param->value))
      form.states.insert(param->name);
  return form;
}

/// Declares the states that train-step goes on with.
static void declareStates(ModuleOp module, const TrainingForm &form) {
  SymbolTable symbols(module);
  OpBuilder b(module.getContext());
  Operation *last = nullptr;
  for (auto param : module.getOps<ParamOp>())
    last = param;
  auto declare = [&](StringRef name, StringRef param, Type type) {
    b.setInsertionPointAfter(last);
    auto state = StateOp::create(b, module.getLoc(), name, param, type);
    last = state;
    return state;
  };
  for (const auto &[name, moment] : form.moments)
    if (auto param = symbols.lookup<ParamOp>(name); param && param.isTrained())
      declare(moment.name, name,
              RankedTensorType::get(moment.shape, b.getF32Type()))
          .setInitFileAttr(param.getInitFileAttr());
  if (!form.doneSteps || !last)
    return;
  auto type = RankedTensorType::get({}, b.getI64Type());
  declare(train::kDoneSteps, StringRef(), type)
      .setValueAttr(
          DenseElementsAttr::get(type, b.getI64IntegerAttr(form.doneSteps)));
}

LogicalResult zero::onnx_import::finishTraining(ModuleOp module,
                                                const Model &model,
                                                Parameters &parameters,
                                                FoundTraining &found) {
  auto function = module.lookupSymbol<func::FuncOp>("forward");
  TrainingForm form = withSymbols(*model.training, parameters);
  if (form.kind == TrainingForm::Gradients) {
    markGradients(function, form);
    declareStates(module, form);
    return success();
  }
  found.step = true;
  return StepMaker(module, function, form).run();
}
