//===- StepInfo.cpp - what a step function does with the state ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Collects reads and updates and finds what differs between ranks.
//
//===----------------------------------------------------------------------===//

#include "StepInfo.h"
#include "UpdateSlice.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::zero;

SetVector<Value> zero::getUsedValues(Operation *op) {
  SetVector<Value> used(op->operand_begin(), op->operand_end());
  for (Region &region : op->getRegions())
    getUsedValuesDefinedAbove(region, region, used);
  return used;
}

Operation *zero::getAncestorIn(Block *block, Operation *op) {
  return block->findAncestorOpInBlock(*op);
}

bool zero::gathersState(Operation *op) {
  return isa<AllGatherOp, AllGatherStartOp>(op) &&
         llvm::any_of(op->getOperands(), [](Value value) {
           return isa<ShardedType>(value.getType()) ||
                  isa_and_nonnull<ReshardOp, LocalOp>(
                      lookThrough(value).getDefiningOp());
         });
}

Value zero::getStateBehind(Value value) {
  value = lookThrough(value);
  Operation *op = value.getDefiningOp();
  if (auto local = dyn_cast_or_null<LocalOp>(op))
    return getStateBehind(local.getSource());
  if (auto reshard = dyn_cast_or_null<ReshardOp>(op))
    return getStateBehind(
        reshard.getInputs()[cast<OpResult>(value).getResultNumber()]);
  unsigned number = op ? cast<OpResult>(value).getResultNumber() : 0;
  if (auto wait = dyn_cast_or_null<WaitOp>(op))
    op = wait.getFuture().getDefiningOp();
  if (isa_and_nonnull<AllGatherOp, AllGatherStartOp>(op))
    return getStateBehind(op->getOperand(number));
  return value;
}

int64_t zero::getWholeBytes(Operation *collective) {
  SmallVector<Type> types(collective->getOperandTypes());
  if (auto gather = dyn_cast<AllGatherOp>(collective))
    types = gather.getYieldedTypes();
  else if (auto start = dyn_cast<AllGatherStartOp>(collective))
    types = start.getYieldedTypes();
  int64_t bytes = 0;
  for (Type type : types)
    bytes += getTensorBytes(type);
  return bytes;
}

static StringRef getUnitOfSymbol(StringRef name, SymbolTable &symbols) {
  auto param = symbols.lookup<ParamOp>(name);
  if (auto state = symbols.lookup<StateOp>(name); state && state.getParam())
    param = symbols.lookup<ParamOp>(*state.getParam());
  return param ? param.getUnit().value_or(param.getSymName()) : "";
}

/// The value elsewhere that `use` becomes, if its owner copies it; see
/// lookThrough.
static Value getCopyFor(OpOperand &use) {
  Operation *user = use.getOwner();
  unsigned number = use.getOperandNumber();
  if (isa<TransferOp>(user))
    return user->getResult(number);
  if (isa<OnHostOp>(user))
    return user->getRegion(0).getArgument(number);
  if (isa<YieldOp>(user) && isa<OnHostOp>(user->getParentOp()))
    return user->getParentOp()->getResult(number);
  return {};
}

StringRef zero::getUnitOf(Operation *collective, SymbolTable &symbols) {
  Value state = collective->getOperand(0);
  if (gathersState(collective))
    state = getStateBehind(state);
  if (auto read = state.getDefiningOp<ReadOp>())
    return getUnitOfSymbol(read.getSymbol(), symbols);
  // Followed through values of its shape, and through further collectives.
  llvm::SetVector<Value> values;
  values.insert(collective->getResult(0));
  for (size_t i = 0; i < values.size(); ++i)
    for (OpOperand &use : values[i].getUses()) {
      Operation *user = use.getOwner();
      if (auto assign = dyn_cast<AssignOp>(user))
        return getUnitOfSymbol(assign.getSymbol(), symbols);
      if (Value copy = getCopyFor(use)) {
        values.insert(copy);
        continue;
      }
      for (Value result : user->getResults()) {
        auto from = dyn_cast<RankedTensorType>(values[i].getType());
        auto to = dyn_cast<RankedTensorType>(result.getType());
        if (isa<AllGatherOp>(user) ||
            (from && to && from.getShape() == to.getShape()))
          values.insert(result);
      }
    }
  return "";
}

bool zero::isZeroSplat(Value value) {
  SplatElementsAttr splat;
  if (!matchPattern(value, m_Constant(&splat)))
    return false;
  if (isa<FloatType>(splat.getElementType()))
    return splat.getSplatValue<APFloat>().isPosZero();
  return isa<IntegerType>(splat.getElementType()) &&
         splat.getSplatValue<APInt>().isZero();
}

StateOp zero::getReadAccumulator(Value value, SymbolTable &symbols) {
  value = lookThrough(value);
  if (auto local = value.getDefiningOp<LocalOp>())
    value = lookThrough(local.getSource());
  auto read = value.getDefiningOp<ReadOp>();
  auto state = read ? symbols.lookup<StateOp>(read.getSymbol()) : StateOp();
  return state && state.getAccumulator() ? state : StateOp();
}

StateOp zero::getSummedAccumulator(Operation *op, SymbolTable &symbols) {
  // These hand it on.
  if (isa<LocalOp, TransferOp, TransferStartOp, WaitOp, OnHostOp, OnHostStartOp,
          YieldOp>(op))
    return {};
  for (Value operand : op->getOperands())
    if (StateOp state = getReadAccumulator(operand, symbols))
      return state;
  return {};
}

RankVariance::RankVariance(Block &body, SymbolTable &symbols) {
  auto func = cast<FunctionOpInterface>(body.getParentOp());
  for (BlockArgument arg : body.getArguments())
    if (!func.getArgAttr(arg.getArgNumber(), kHyperAttr))
      differing.insert(arg);
  for (Operation &op : body) {
    bool differs = llvm::any_of(getUsedValues(&op), [&](Value value) {
      return differing.contains(value);
    });
    // A buffer is each rank's own, and a sum over micro-batches is, as long as
    // it is not reduced; collectives leave the same everywhere.
    if (auto read = dyn_cast<ReadOp>(op)) {
      auto param = symbols.lookup<ParamOp>(read.getSymbol());
      auto state = symbols.lookup<StateOp>(read.getSymbol());
      differs =
          (param && param.getBuffer()) || (state && state.getAccumulator());
    } else if (isa<AllGatherOp, AllReduceOp, ReduceScatterOp, WaitOp,
                   ElementSum>(op)) {
      differs = false;
    }
    if (differs)
      differing.insert(op.result_begin(), op.result_end());
  }
}

/// Collects reads and assignments of `info.func`, by symbol.
static LogicalResult
collectAccesses(StepInfo &info, SymbolTable &symbols,
                llvm::MapVector<StringAttr, AssignOp> &assigns) {
  WalkResult result = info.func.walk([&](Operation *op) -> WalkResult {
    if (!isa<ReadOp, AssignOp>(op))
      return WalkResult::advance();
    if (op->getBlock() != info.body)
      return op->emitOpError("stands in a nested region; the state is read and "
                             "assigned in the body of the step function");
    if (auto read = dyn_cast<ReadOp>(op)) {
      if (assigns.contains(read.getSymbolAttr().getAttr()))
        return op->emitOpError()
               << "reads " << read.getSymbolAttr() << " after it was assigned";
      info.reads[read.getSymbolAttr().getAttr()].push_back(read);
      return WalkResult::advance();
    }
    auto assign = cast<AssignOp>(op);
    if (!assigns.insert({assign.getSymbolAttr().getAttr(), assign}).second)
      return op->emitOpError()
             << "assigns " << assign.getSymbolAttr() << " a second time";
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Groups the assignments to parameters and their states.
static void groupUpdates(StepInfo &info, SymbolTable &symbols,
                         llvm::MapVector<StringAttr, AssignOp> &assigns) {
  llvm::MapVector<Operation *, SmallVector<AssignOp>> byParam;
  for (auto [name, assign] : assigns) {
    auto param = symbols.lookup<ParamOp>(name);
    auto state = symbols.lookup<StateOp>(name);
    if (state && state.getAccumulator())
      continue;
    if (state && state.getParam())
      param = symbols.lookup<ParamOp>(*state.getParam());
    if (param && param.isTrained())
      byParam[param].push_back(assign);
  }
  for (auto &[param, list] : byParam)
    info.updates.push_back({cast<ParamOp>(param), list, Value(), {}});
}

/// Describes how `assign`'s accumulator gets its new value.
static FailureOr<GradientSum> findSum(StateOp accumulator, AssignOp assign,
                                      const StepInfo &info) {
  GradientSum sum;
  sum.accumulator = accumulator;
  sum.assign = assign;
  auto reads = info.reads.find(accumulator.getSymNameAttr());
  ArrayRef<int64_t> shape = accumulator.getLogicalType().getShape();
  if (reads != info.reads.end() && reads->second.front()->hasOneUse()) {
    sum.read = reads->second.front();
    sum.add = *sum.read->getUsers().begin();
  }
  if (!sum.add || sum.add->getBlock() != info.body ||
      sum.add->getNumResults() != 1 || sum.add->getNumOperands() != 2 ||
      !isElementwiseOn(sum.add, shape))
    return assign.emitOpError()
           << "assigns the accumulator " << assign.getSymbolAttr()
           << ", which one elementwise op has to read and add a gradient to";
  bool first = sum.add->getOperand(0) == sum.read.getValue();
  sum.gradient = sum.add->getOperand(first ? 1 : 0);
  return sum;
}

static LogicalResult
collectSums(StepInfo &info, SymbolTable &symbols,
            llvm::MapVector<StringAttr, AssignOp> &assigns) {
  for (auto [name, assign] : assigns) {
    auto state = symbols.lookup<StateOp>(name);
    auto param = symbols.lookup<ParamOp>(name);
    if (isOwnSum(state) || (param && param.getBuffer()))
      info.ownValues.push_back(assign.getValue());
    if (!state || !state.getAccumulator() || !state.getParam())
      continue;
    FailureOr<GradientSum> sum = findSum(state, assign, info);
    if (failed(sum))
      return failure();
    info.sums.push_back(*sum);
  }
  return success();
}

FailureOr<SmallVector<StepInfo>> zero::analyzeSteps(ModuleOp module,
                                                    SymbolTable &symbols) {
  SmallVector<StepInfo> steps;
  for (auto func : module.getOps<FunctionOpInterface>()) {
    bool touches = func.walk([](Operation *op) {
                         return isa<ReadOp, AssignOp>(op)
                                    ? WalkResult::interrupt()
                                    : WalkResult::advance();
                       })
                       .wasInterrupted();
    if (!touches)
      continue;
    if (!func.getFunctionBody().hasOneBlock())
      return func.emitOpError("reads or assigns state and has several blocks; "
                              "a step function is one block");
    StepInfo info;
    info.func = func;
    info.body = &func.getFunctionBody().front();
    llvm::MapVector<StringAttr, AssignOp> assigns;
    if (failed(collectAccesses(info, symbols, assigns)))
      return failure();
    groupUpdates(info, symbols, assigns);
    if (failed(collectSums(info, symbols, assigns)))
      return failure();
    RankVariance variance(*info.body, symbols);
    for (ParamUpdate &update : info.updates)
      if (failed(findUpdateSlice(update, info, variance)))
        return failure();
    steps.push_back(std::move(info));
  }
  return steps;
}
