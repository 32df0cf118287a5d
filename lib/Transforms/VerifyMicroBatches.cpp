//===- VerifyMicroBatches.cpp - rules of steps of several micro-batches ---===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// That gradients are divided by the number of micro-batches exactly once, that
// updates take the sums, and that nothing but sums goes from one micro-batch to
// the next. Verify.cpp checks how the sums are reduced over the ranks.
//
//===----------------------------------------------------------------------===//

#include "VerifyMicroBatches.h"

#include "dialects/Train/Train.h"

using namespace mlir;
using namespace mlir::zero;

namespace {
class MicroBatchChecker {
public:
  MicroBatchChecker(FunctionOpInterface func, SymbolTable &symbols,
                    int64_t microBatches)
      : func(func), symbols(symbols), microBatches(microBatches),
        isFront(func.getName() == kAccumulateName) {}

  LogicalResult check();

private:
  LogicalResult checkSeed(train::LossSeedOp seed);
  LogicalResult checkAssign(AssignOp assign);
  LogicalResult checkSum(Operation *add, StateOp accumulator);
  LogicalResult checkUpdate(OptimizerUpdate update);
  LogicalResult checkOps(Block &block);
  LogicalResult checkSums();

  FunctionOpInterface func;
  SymbolTable &symbols;
  int64_t microBatches;
  bool isFront;
  /// Accumulators that are added to and assigned.
  llvm::DenseSet<Operation *> added, assigned;
};
} // namespace

LogicalResult MicroBatchChecker::checkSeed(train::LossSeedOp seed) {
  auto divisor = static_cast<int64_t>(seed.getMicroBatches());
  if (divisor == microBatches)
    return success();
  return seed.emitOpError() << "divides gradients by " << divisor
                            << " micro-batches; the step has " << microBatches;
}

/// The seeds of the backward pass that `value` depends on.
static llvm::SetVector<Operation *> findSeeds(Value value) {
  llvm::SetVector<Operation *> seeds;
  llvm::DenseSet<Operation *> seen;
  SmallVector<Value> worklist = {value};
  while (!worklist.empty()) {
    Operation *op = lookThrough(worklist.pop_back_val()).getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    if (isa<train::LossSeedOp>(op))
      seeds.insert(op);
    else
      llvm::append_range(worklist, getUsedValues(op));
  }
  return seeds;
}

LogicalResult MicroBatchChecker::checkSum(Operation *add, StateOp accumulator) {
  added.insert(accumulator);
  if (!accumulator.getParam())
    return success();
  bool first = getReadAccumulator(add->getOperand(0), symbols) == accumulator;
  Value gradient = add->getOperand(first ? 1 : 0);
  llvm::SetVector<Operation *> seeds = findSeeds(gradient);
  if (seeds.size() == 1)
    return success();
  InFlightDiagnostic diag = add->emitOpError()
                            << "adds to @" << accumulator.getSymName()
                            << " a gradient that is divided by the number of "
                               "micro-batches "
                            << seeds.size()
                            << " times; expects one train.loss_seed before it";
  for (Operation *seed : seeds)
    diag.attachNote(seed->getLoc()) << "it is divided here";
  return diag;
}

LogicalResult MicroBatchChecker::checkAssign(AssignOp assign) {
  auto param = symbols.lookup<ParamOp>(assign.getSymbol());
  auto state = symbols.lookup<StateOp>(assign.getSymbol());
  bool accumulates = state && state.getAccumulator();
  if (accumulates)
    assigned.insert(state);
  if (isFront && !accumulates && !(param && param.getBuffer()))
    return assign.emitOpError()
           << "assigns " << assign.getSymbolAttr() << " in @" << kAccumulateName
           << ", which runs for each micro-batch; only accumulators and "
              "buffers change there";
  Value value = lookThrough(assign.getValue());
  if (!isFront && accumulates && !isZeroSplat(value))
    return assign.emitOpError()
           << "leaves in " << assign.getSymbolAttr()
           << " what the next step would add to; expects a constant of zeros";
  Operation *def = value.getDefiningOp();
  if (isFront && accumulates &&
      (!def || getSummedAccumulator(def, symbols) != state))
    return assign.emitOpError() << "gives " << assign.getSymbolAttr()
                                << " a value that is not added to it";
  return success();
}

/// The value that collectives have reduced to `value`, or to what it is a copy
/// of.
static Value skipReductions(Value value) {
  value = lookThrough(value);
  while (Operation *op = value.getDefiningOp()) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    if (auto wait = dyn_cast<WaitOp>(op))
      op = wait.getFuture().getDefiningOp();
    if (!isa_and_nonnull<AllReduceOp, AllReduceStartOp, ReduceScatterOp,
                         ReduceScatterStartOp>(op))
      break;
    value = lookThrough(op->getOperand(number));
  }
  return value;
}

LogicalResult MicroBatchChecker::checkUpdate(OptimizerUpdate update) {
  Value gradient = update.getGradientOperand().get();
  Operation *add = skipReductions(gradient).getDefiningOp();
  if (add && getSummedAccumulator(add, symbols))
    return success();
  InFlightDiagnostic diag = update.emitOpError()
                            << "updates with a gradient of type "
                            << gradient.getType()
                            << " that is not the sum over micro-batches; "
                               "nothing may stand between but reductions";
  if (add)
    diag.attachNote(add->getLoc()) << "the gradient is computed here";
  return diag;
}

LogicalResult MicroBatchChecker::checkSums() {
  bool anyFailed = false;
  for (auto state : cast<ModuleOp>(symbols.getOp()).getOps<StateOp>()) {
    if (!state.getAccumulator() ||
        (added.contains(state) && assigned.contains(state)))
      continue;
    anyFailed = true;
    InFlightDiagnostic diag = func.emitOpError()
                              << "does not "
                              << (added.contains(state) ? "assign" : "add to")
                              << " @" << state.getSymName()
                              << ", which sums over micro-batches";
    diag.attachNote(state.getLoc()) << "the accumulator is declared here";
  }
  return failure(anyFailed);
}

LogicalResult MicroBatchChecker::checkOps(Block &block) {
  bool anyFailed = false;
  for (Operation &op : block) {
    if (isa<OnHostOp, OnHostStartOp>(op))
      anyFailed |= failed(checkOps(op.getRegion(0).front()));
    else if (auto seed = dyn_cast<train::LossSeedOp>(op))
      anyFailed |= failed(checkSeed(seed));
    else if (auto assign = dyn_cast<AssignOp>(op))
      anyFailed |= failed(checkAssign(assign));
    else if (StateOp state = getSummedAccumulator(&op, symbols))
      anyFailed |= failed(checkSum(&op, state));
    if (auto update = dyn_cast<OptimizerUpdate>(op); update && microBatches > 1)
      anyFailed |= failed(checkUpdate(update));
  }
  return failure(anyFailed);
}

LogicalResult MicroBatchChecker::check() {
  bool anyFailed = failed(checkOps(func.getFunctionBody().front()));
  if (microBatches > 1)
    anyFailed |= failed(checkSums());
  return failure(anyFailed);
}

LogicalResult zero::verifyMicroBatches(ModuleOp module, SymbolTable &symbols) {
  auto attr = module->getAttrOfType<IntegerAttr>(kMicroBatchesAttr);
  int64_t microBatches = attr ? attr.getInt() : 1;
  auto front = symbols.lookup<FunctionOpInterface>(kAccumulateName);
  if (microBatches < 1 || (attr && microBatches > 1) != bool(front))
    return module.emitError()
           << "has " << microBatches << " micro-batches and "
           << (front ? "a" : "no") << " function @" << kAccumulateName
           << "; expects it exactly where there are several";
  bool anyFailed = false;
  for (auto func : module.getOps<FunctionOpInterface>()) {
    bool isStep = !func.isExternal() && func.getFunctionBody().hasOneBlock() &&
                  !func.getFunctionBody().front().getOps<ReadOp>().empty();
    if (isStep)
      anyFailed |=
          failed(MicroBatchChecker(func, symbols, microBatches).check());
  }
  return failure(anyFailed);
}
