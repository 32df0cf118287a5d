//===- TrainAccumulatePass.cpp - Steps of several micro-batches -----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass train-accumulate and the function behind it: @step becomes
// @accumulate, for the micro-batches before the last, and @step.
//
//===----------------------------------------------------------------------===//

#include "zero/Autodiff/Passes.h"
#include "zero/Autodiff/TrainStep.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::train {
#define GEN_PASS_DEF_TRAINACCUMULATEPASS
#include "zero/Autodiff/Passes.h.inc"
} // namespace mlir::train

using namespace mlir;
using namespace mlir::train;

static constexpr StringLiteral kLossSum = "loss_sum";

namespace {
/// A gradient that is summed, and the accumulator.
struct SummedGradient {
  zero::ParamOp param;
  zero::OptimizerUpdate update;
  Value value;
  std::string name;
  RankedTensorType type;
};

class MicroBatchBuilder {
public:
  MicroBatchBuilder(ModuleOp module, func::FuncOp step, int64_t microBatches)
      : module(module), step(step), microBatches(microBatches) {}

  LogicalResult run();

private:
  LogicalResult divideSeeds();
  LogicalResult collectGradients();
  LogicalResult addSymbol(StringRef name, StringRef param, Type type,
                          Location loc);
  LogicalResult declareSums();
  Value addTo(OpBuilder &builder, StringRef name, Value value);
  LogicalResult buildFront();
  void sumGradients();
  void averageLoss();

  ModuleOp module;
  func::FuncOp step;
  int64_t microBatches;
  SmallVector<SummedGradient> gradients;
  std::optional<unsigned> loss; ///< its number among the results
};
} // namespace

/// The parameter that `update` is of: the one that it replaces, or the one
/// that the state it replaces belongs to.
static zero::ParamOp getUpdatedParam(zero::OptimizerUpdate update,
                                     ModuleOp module) {
  auto read = update.getParameterOperand().get().getDefiningOp<zero::ReadOp>();
  if (!read)
    return {};
  Operation *symbol = module.lookupSymbol(read.getSymbol());
  if (auto state = dyn_cast_or_null<zero::StateOp>(symbol);
      state && state.getParam())
    symbol = module.lookupSymbol(*state.getParam());
  return dyn_cast_or_null<zero::ParamOp>(symbol);
}

/// The gradients come out divided by the number of micro-batches.
LogicalResult MicroBatchBuilder::divideSeeds() {
  bool any = false;
  for (auto seed : step.getOps<LossSeedOp>()) {
    seed.setMicroBatches(microBatches);
    any = true;
  }
  if (any)
    return success();
  return step.emitError("@step has no train.loss_seed, by which gradients are "
                        "divided by the number of micro-batches; build it "
                        "with train-step and micro-batches, or "
                        "zero-import and --accumulate");
}

LogicalResult MicroBatchBuilder::collectGradients() {
  for (auto update : step.getOps<zero::OptimizerUpdate>()) {
    zero::ParamOp param = getUpdatedParam(update, module);
    if (!param)
      return update.emitOpError(
          "updates what is no parameter; cannot accumulate its gradient");
    Value value = update.getGradientOperand().get();
    auto type = cast<RankedTensorType>(value.getType());
    Builder builder(module.getContext());
    // Many narrow gradients would not add up.
    Type element = type.getElementType();
    if (element.getIntOrFloatBitWidth() < 32)
      element = builder.getF32Type();
    gradients.push_back({param, update, value,
                         (param.getSymName() + ".grad").str(),
                         RankedTensorType::get(type.getShape(), element)});
  }
  if (gradients.empty())
    return step.emitError("@step has no optimizer's update whose gradients "
                          "could be accumulated");
  return success();
}

LogicalResult MicroBatchBuilder::addSymbol(StringRef name, StringRef param,
                                           Type type, Location loc) {
  if (module.lookupSymbol(name))
    return module.emitError()
           << "has a symbol @" << name << " already, which would be the sum "
           << "over micro-batches; rename it";
  OpBuilder builder(step);
  auto state = zero::StateOp::create(builder, loc, name, param, type);
  state.setZeros(true);
  state.setAccumulator(true);
  return success();
}

LogicalResult MicroBatchBuilder::declareSums() {
  for (const SummedGradient &gradient : gradients) {
    zero::ParamOp param = gradient.param;
    if (failed(addSymbol(gradient.name, param.getSymName(), gradient.type,
                         param.getLoc())))
      return failure();
  }
  loss = findOutput(step, "loss");
  if (!loss)
    return success();
  Type type = step.getResultTypes()[*loss];
  return addSymbol(kLossSum, /*param=*/"", type, step.getLoc());
}

/// The sum so far of `name` with `value`.
Value MicroBatchBuilder::addTo(OpBuilder &builder, StringRef name,
                               Value value) {
  auto state = module.lookupSymbol<zero::StateOp>(name);
  Location loc = value.getLoc();
  Value sum = zero::ReadOp::create(builder, loc, state.getType(), name);
  return AccumulateOp::create(builder, loc, sum, value);
}

static void setAfter(OpBuilder &builder, Value value) {
  if (Operation *op = value.getDefiningOp())
    builder.setInsertionPointAfter(op);
  else
    builder.setInsertionPointToStart(cast<BlockArgument>(value).getOwner());
}

/// Erases arguments of `function` that are hyperparameters nobody uses.
static LogicalResult eraseHyperparameters(func::FuncOp function) {
  llvm::BitVector dead(function.getNumArguments());
  for (BlockArgument argument : function.getArguments()) {
    unsigned i = argument.getArgNumber();
    if (argument.use_empty() && function.getArgAttr(i, zero::kHyperAttr))
      dead.set(i);
  }
  return function.eraseArguments(dead);
}

/// A copy of the step without updates and results, which adds up gradients and
/// loss. Buffers are updated in every micro-batch.
LogicalResult MicroBatchBuilder::buildFront() {
  IRMapping mapping;
  OpBuilder builder(step);
  auto front = cast<func::FuncOp>(builder.clone(*step, mapping));
  front.setSymName(zero::kAccumulateName);
  Block &body = front.getBody().front();
  for (auto assign :
       llvm::make_early_inc_range(body.getOps<zero::AssignOp>())) {
    auto param = module.lookupSymbol<zero::ParamOp>(assign.getSymbol());
    if (!param || !param.getBuffer())
      assign.erase();
  }
  auto addAndAssign = [&](StringRef name, Value value) {
    setAfter(builder, value);
    Value sum = addTo(builder, name, value);
    zero::AssignOp::create(builder, value.getLoc(), name, sum);
  };
  for (const SummedGradient &gradient : gradients)
    addAndAssign(gradient.name, mapping.lookup(gradient.value));
  if (loss)
    addAndAssign(kLossSum, body.getTerminator()->getOperand(*loss));
  body.getTerminator()->setOperands({});
  llvm::BitVector all(front.getNumResults(), true);
  if (failed(front.eraseResults(all)))
    return failure();
  eraseDeadOps(body);
  return eraseHyperparameters(front);
}

static Value createZeros(OpBuilder &builder, Location loc,
                         RankedTensorType type) {
  return arith::ConstantOp::create(builder, loc,
                                   cast<TypedAttr>(builder.getZeroAttr(type)));
}

/// Lets updates and norms see the sums, which are zero again after the step.
void MicroBatchBuilder::sumGradients() {
  OpBuilder builder(module.getContext());
  Operation *end = step.getBody().front().getTerminator();
  /// One value may be the gradient of several parameters.
  llvm::MapVector<Value, SmallVector<Value>> sumsOf;
  for (SummedGradient &gradient : gradients) {
    setAfter(builder, gradient.value);
    Value sum = addTo(builder, gradient.name, gradient.value);
    sumsOf[gradient.value].push_back(sum);
    gradient.update.getGradientOperand().set(sum);
    builder.setInsertionPoint(end);
    Value zeros = createZeros(builder, gradient.value.getLoc(), gradient.type);
    zero::AssignOp::create(builder, gradient.value.getLoc(), gradient.name,
                           zeros);
  }
  for (auto norm : step.getOps<zero::ElementSum>()) {
    llvm::DenseMap<Value, unsigned> taken;
    for (OpOperand &operand : norm->getOpOperands()) {
      auto sums = sumsOf.find(operand.get());
      if (sums == sumsOf.end())
        continue;
      unsigned last = sums->second.size() - 1;
      unsigned index = std::min(taken[operand.get()]++, last);
      operand.set(sums->second[index]);
    }
  }
}

/// The step's loss is the mean over micro-batches.
void MicroBatchBuilder::averageLoss() {
  Operation *end = step.getBody().front().getTerminator();
  Value value = end->getOperand(*loss);
  Location loc = value.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  OpBuilder builder(module.getContext());
  setAfter(builder, value);
  Value sum = addTo(builder, kLossSum, value);
  Value count = createScalar(builder, loc, type.getElementType(),
                             static_cast<double>(microBatches));
  end->setOperand(*loss, DivOp::create(builder, loc, sum, count));
  builder.setInsertionPoint(end);
  zero::AssignOp::create(builder, loc, kLossSum,
                         createZeros(builder, loc, type));
}

LogicalResult MicroBatchBuilder::run() {
  if (failed(divideSeeds()) || failed(collectGradients()) ||
      failed(declareSums()) || failed(buildFront()))
    return failure();
  sumGradients();
  if (loss)
    averageLoss();
  eraseDeadOps(step.getBody().front());
  module->setAttr(zero::kMicroBatchesAttr,
                  Builder(module.getContext()).getI64IntegerAttr(microBatches));
  return success();
}

/// As many as the tools take.
static constexpr int64_t kMostMicroBatches = 1 << 20;

LogicalResult mlir::train::accumulateMicroBatches(ModuleOp module,
                                                  int64_t microBatches) {
  if (microBatches < 1)
    return module.emitError()
           << "expects at least one micro-batch, got " << microBatches;
  if (microBatches > kMostMicroBatches)
    return module.emitError() << "expects at most " << kMostMicroBatches
                              << " micro-batches, got " << microBatches;
  if (Attribute before = module->getAttr(zero::kMicroBatchesAttr))
    return module.emitError()
           << "accumulates over " << before << " micro-batches already";
  if (module->hasAttr(zero::kStageAttr))
    return module.emitError(
        "is partitioned; accumulate before that, as zero-partition decides "
        "what is reduced in which micro-batch");
  if (microBatches == 1)
    return success();
  auto step = module.lookupSymbol<func::FuncOp>("step");
  if (!step || !llvm::hasSingleElement(step.getBody()) ||
      module.lookupSymbol(zero::kAccumulateName))
    return module.emitError("expects a function @step of one block and no "
                            "@accumulate, to make @accumulate of");
  return MicroBatchBuilder(module, step, microBatches).run();
}

namespace {
struct TrainAccumulatePass
    : train::impl::TrainAccumulatePassBase<TrainAccumulatePass> {
  using TrainAccumulatePassBase::TrainAccumulatePassBase;

  void runOnOperation() override {
    if (failed(accumulateMicroBatches(getOperation(), steps)))
      signalPassFailure();
  }
};
} // namespace
