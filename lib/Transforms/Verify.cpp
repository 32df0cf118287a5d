//===- Verify.cpp - zero-verify -------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks the rules of a partitioned step that no single op can check.
//
//===----------------------------------------------------------------------===//

#include "StepInfo.h"
#include "VerifyMemory.h"
#include "VerifyMicroBatches.h"
#include "Views.h"
#include "zero/Transforms/Passes.h"
#include "zero/Transforms/VerifyPlan.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::zero {
#define GEN_PASS_DEF_ZEROVERIFYPASS
#include "zero/Transforms/Passes.h.inc"
} // namespace mlir::zero

#define DEBUG_TYPE "zero-verify"

using namespace mlir;
using namespace mlir::zero;

namespace {
/// What is known of a value across ranks; the greater one wins where an op
/// joins several.
enum class Across {
  Same,          // equal on all ranks, no data in it
  Averaged,      // data of all ranks, averaged once
  AveragedShard, // the own chunk of such a value
  Part,          // averaged over some axes of the grid, not yet over the others
  PartShard,     // the own chunk of such a value
  Summed,        // data of all ranks, added up but not averaged
  Partial,       // a sum over the own chunk: the ranks' values add up
  Differs        // depends on one rank's data
};

/// What an accumulator holds when the last micro-batch begins.
struct AcrossSum {
  Across across = Across::Same;
  uint64_t reducedAxes = 0, cutAxes = 0;
};
using AcrossSums = llvm::StringMap<AcrossSum>;

class Checker {
public:
  Checker(FunctionOpInterface func, SymbolTable &symbols, AcrossSums &sums)
      : func(func), symbols(symbols), sums(sums) {}
  LogicalResult checkFutures();
  LogicalResult checkFlights();
  LogicalResult checkReleases();
  LogicalResult checkReleased();
  LogicalResult checkReshards();
  LogicalResult checkReductions();

private:
  // A copy elsewhere is as what it is a copy of.
  Across get(Value value) const { return across.lookup(lookThrough(value)); }
  uint64_t getReducedAxes(Value value) const {
    return reducedAxes.lookup(lookThrough(value));
  }
  uint64_t getCutAxes(Value value) const {
    return cutAxes.lookup(lookThrough(value));
  }
  Across join(Operation *op) const;
  FailureOr<Across> propagate(Operation *op);
  FailureOr<Across> reduce(Operation *op, bool isAverage, bool scatters);
  FailureOr<Across> average(Operation *op, Across in, bool scatters);
  uint64_t getReducedAxes(Operation *op) const;
  uint64_t getCutAxes(Operation *op) const;
  LogicalResult checkAssign(AssignOp assign);
  LogicalResult checkSum(Operation *add);
  LogicalResult checkOp(Operation *op);
  LogicalResult checkOps(Block &block);
  LogicalResult checkOutputs();

  FunctionOpInterface func;
  SymbolTable &symbols;
  AcrossSums &sums; ///< of the function of the micro-batches before the last
  llvm::DenseMap<Value, Across> across;
  /// Of values that are averaged over some axes: which, as bits.
  llvm::DenseMap<Value, uint64_t> reducedAxes;
  /// Of chunks of gradients, and what is made of them: the axes they are cut
  /// over, as bits.
  llvm::DenseMap<Value, uint64_t> cutAxes;
};

class VerifyPass : public zero::impl::ZeroVerifyPassBase<VerifyPass> {
public:
  void runOnOperation() override;
};
} // namespace

LogicalResult Checker::checkFutures() {
  bool failed = false;
  func.walk([&](Operation *op) {
    for (Value result : op->getResults()) {
      if (!isa<FutureType>(result.getType()))
        continue;
      unsigned waits = llvm::count_if(result.getUsers(), llvm::IsaPred<WaitOp>);
      bool others = !llvm::all_of(result.getUsers(), llvm::IsaPred<WaitOp>);
      if (waits == 1 && !others)
        continue;
      failed = true;
      op->emitOpError() << "starts a future that is awaited " << waits
                        << " times" << (others ? " and used otherwise" : "")
                        << "; expects exactly one zero.wait";
    }
  });
  return failure(failed);
}

static StringRef describeStart(Operation *start) {
  if (isa<TransferStartOp>(start))
    return "a transfer";
  return isa<OnHostStartOp>(start) ? "compute of the host" : "a collective";
}

/// The state that `value` is, or is the chunk of.
static ReadOp getRead(Value value) {
  if (auto local = value.getDefiningOp<LocalOp>())
    value = local.getSource();
  return value.getDefiningOp<ReadOp>();
}

/// While something is in flight, the state it reads stays as it is.
LogicalResult Checker::checkFlights() {
  llvm::StringMap<SmallVector<AssignOp>> assigns;
  func.walk([&](AssignOp op) { assigns[op.getSymbol()].push_back(op); });
  bool failed = false;
  func.walk([&](WaitOp wait) {
    Operation *start = wait.getFuture().getDefiningOp();
    if (!start || start->getBlock() != wait->getBlock())
      return;
    for (Value operand : start->getOperands()) {
      ReadOp read = getRead(operand);
      if (!read)
        continue;
      for (AssignOp assign : assigns.lookup(read.getSymbol())) {
        if (assign->getBlock() != start->getBlock() ||
            !start->isBeforeInBlock(assign) || !assign->isBeforeInBlock(wait))
          continue;
        failed = true;
        InFlightDiagnostic diag = assign.emitOpError()
                                  << "assigns " << assign.getSymbolAttr()
                                  << " while " << describeStart(start)
                                  << " that reads it is in flight; wait first";
        diag.attachNote(start->getLoc()) << "it begins here";
        diag.attachNote(wait.getLoc()) << "and is awaited here";
      }
    }
  });
  return failure(failed);
}

/// What is gathered from the state at rest dies in the step or is its result.
LogicalResult Checker::checkReleased() {
  bool failed = false;
  func.walk([&](Operation *op) {
    Operation *gather = op;
    if (auto wait = dyn_cast<WaitOp>(op))
      gather = wait.getFuture().getDefiningOp();
    else if (!isa<AllGatherOp>(op))
      return;
    if (!gather || !gathersState(gather))
      return;
    for (Value value : op->getResults()) {
      Operation *last = getLastUse(value, op->getBlock());
      bool leaves = last && last->hasTrait<OpTrait::IsTerminator>();
      if (leaves || llvm::any_of(value.getUsers(), llvm::IsaPred<ReleaseOp>))
        continue;
      failed = true;
      op->emitOpError() << "gathers a value of type " << value.getType()
                        << " that is never released; expects a zero.release "
                           "after its last use (zero-release adds it)";
    }
  });
  return failure(failed);
}

LogicalResult Checker::checkReleases() {
  bool failed = false;
  func.walk([&](ReleaseOp release) {
    llvm::DenseSet<Value> seen;
    for (Value value : release.getValues()) {
      bool twice = !seen.insert(value).second;
      for (Operation *user : value.getUsers())
        twice |= isa<ReleaseOp>(user) && user != release &&
                 user->isBeforeInBlock(release);
      if (twice) {
        failed = true;
        release.emitOpError() << "releases a value of type " << value.getType()
                              << " a second time";
      }
      Operation *last = getLastUse(value, release->getBlock());
      if (last && release->isBeforeInBlock(last)) {
        failed = true;
        InFlightDiagnostic diag = last->emitOpError()
                                  << "uses a gathered value of type "
                                  << value.getType()
                                  << ", or a view of it, after its release";
        diag.attachNote(release.getLoc()) << "it is released here";
      }
    }
  });
  return failure(failed);
}

/// Chunks are kept of what is gathered, and made whole over the axes that they
/// were cut over.
LogicalResult Checker::checkReshards() {
  bool failed = false;
  auto isGathered = [](Value value) {
    Operation *op = value.getDefiningOp();
    if (auto wait = dyn_cast_or_null<WaitOp>(op))
      op = wait.getFuture().getDefiningOp();
    return op && gathersState(op);
  };
  func.walk([&](ReshardOp op) {
    for (Value input : op.getInputs())
      if (!isGathered(input)) {
        failed = true;
        op.emitOpError() << "keeps a chunk of a value of type "
                         << input.getType()
                         << ", which is not gathered from the state";
      }
    for (Operation *user : op->getUsers()) {
      if (!isa<AllGatherOp, AllGatherStartOp>(user) ||
          (user->getAttr("axes") == op.getAxesAttr() &&
           user->getAttr("grid") == op.getGridAttr()))
        continue;
      failed = true;
      InFlightDiagnostic diag = user->emitOpError()
                                << "gathers chunks over other axes than they "
                                   "were cut over, ["
                                << op.getAxes() << "]";
      diag.attachNote(op.getLoc()) << "they are cut here";
    }
  });
  return failure(failed);
}

Across Checker::join(Operation *op) const {
  Across result = Across::Same;
  for (Value value : getUsedValues(op))
    result = std::max(result, get(value));
  return result;
}

/// The axes of a grid that `op` is over, as bits, and all of them.
static std::pair<uint64_t, uint64_t> getAxes(Operation *op,
                                             SymbolTable &symbols) {
  auto name = op->getAttrOfType<FlatSymbolRefAttr>("grid");
  auto grid = symbols.lookup<shard::GridOp>(name.getValue());
  uint64_t axes = 0, all = 1;
  if (auto attr = op->getAttrOfType<DenseI64ArrayAttr>("axes"))
    for (int64_t axis : attr.asArrayRef())
      axes |= uint64_t(1) << axis;
  if (grid)
    all = (uint64_t(1) << grid.getRank()) - 1;
  return {axes ? axes : 1, all};
}

uint64_t Checker::getReducedAxes(Operation *op) const {
  uint64_t axes = 0;
  for (Value value : getUsedValues(op))
    axes |= getReducedAxes(value);
  return axes;
}

/// Axes that the results of `op` are cut over.
uint64_t Checker::getCutAxes(Operation *op) const {
  if (isa<AllGatherOp, AllGatherStartOp>(op))
    return 0;
  if (isa<ReduceScatterOp, ReduceScatterStartOp>(op))
    return getAxes(op, symbols).first;
  if (auto read = dyn_cast<ReadOp>(op))
    return sums.lookup(read.getSymbol()).cutAxes;
  uint64_t axes = 0;
  for (Value value : getUsedValues(op))
    axes |= getCutAxes(value);
  return axes;
}

/// Averaged once over each axis of the grid, in one collective or several.
FailureOr<Across> Checker::average(Operation *op, Across in, bool scatters) {
  auto [axes, all] = getAxes(op, symbols);
  uint64_t before = getReducedAxes(op);
  if (axes & before)
    return op->emitOpError()
           << "reduces a value of type " << op->getOperand(0).getType()
           << " over an axis of the grid that it was reduced over before";
  scatters |= in == Across::PartShard;
  if ((axes | before) == all)
    return scatters ? Across::AveragedShard : Across::Averaged;
  for (Value result : op->getResults())
    reducedAxes[result] = axes | before;
  return scatters ? Across::PartShard : Across::Part;
}

FailureOr<Across> Checker::reduce(Operation *op, bool isAverage,
                                  bool scatters) {
  Across in = join(op);
  // Only the ranks that share one copy of the state have the other parts.
  bool overShards = getAxes(op, symbols).first == getCutAxes(op);
  if (in == Across::Partial && !isAverage && overShards)
    return Across::Averaged;
  for (Value operand : op->getOperands()) {
    Across state = get(operand);
    if (state == Across::Averaged || state == Across::AveragedShard ||
        state == Across::Summed)
      return op->emitOpError()
             << "reduces a value of type " << operand.getType()
             << " that was reduced before; expects exactly one reduction";
  }
  if (in == Across::Same && isAverage)
    return in;
  if (!isAverage)
    return Across::Summed;
  return average(op, in, scatters);
}

FailureOr<Across> Checker::propagate(Operation *op) {
  if (auto read = dyn_cast<ReadOp>(op)) {
    auto param = symbols.lookup<ParamOp>(read.getSymbol());
    if ((param && param.getBuffer()) ||
        isOwnSum(symbols.lookup<StateOp>(read.getSymbol())))
      return Across::Differs;
    AcrossSum sum = sums.lookup(read.getSymbol());
    if (sum.reducedAxes)
      reducedAxes[read.getValue()] = sum.reducedAxes;
    return sum.across;
  }
  if (isa<AllReduceOp, ReduceScatterOp, AllReduceStartOp, ReduceScatterStartOp>(
          op))
    return reduce(op, op->hasAttr("average"),
                  isa<ReduceScatterOp, ReduceScatterStartOp>(op));
  Across in = join(op);
  if (in == Across::Part || in == Across::PartShard)
    for (Value result : op->getResults())
      reducedAxes[result] = getReducedAxes(op);
  if (isa<AllGatherOp, AllGatherStartOp>(op) && in == Across::AveragedShard)
    return Across::Averaged;
  if (isa<ElementSum>(op) && in == Across::AveragedShard)
    return Across::Partial;
  return in;
}

LogicalResult Checker::checkAssign(AssignOp assign) {
  auto param = symbols.lookup<ParamOp>(assign.getSymbol());
  auto state = symbols.lookup<StateOp>(assign.getSymbol());
  if ((param && param.getBuffer()) || isOwnSum(state))
    return success();
  if (state && state.getAccumulator() && func.getName() == kAccumulateName) {
    Value value = assign.getValue();
    sums[assign.getSymbol()] = {get(value), getReducedAxes(value),
                                getCutAxes(value)};
    return success();
  }
  StringRef problem;
  switch (get(assign.getValue())) {
  case Across::Same:
  case Across::Averaged:
  case Across::AveragedShard:
    return success();
  case Across::Part:
  case Across::PartShard:
    problem = "is averaged over some axes of the grid only";
    break;
  case Across::Summed:
    problem = "is made of values added up over the ranks but not averaged";
    break;
  case Across::Partial:
    problem = "is made of a sum over one rank's shard";
    break;
  case Across::Differs:
    problem = "depends on one rank's data; its gradient is not reduced";
    break;
  }
  return assign.emitOpError()
         << "gives " << assign.getSymbolAttr() << " a value that " << problem;
}

/// All gradients of an accumulator are reduced over the same axes. In the
/// function of the micro-batches before the last, those are what they are.
LogicalResult Checker::checkSum(Operation *add) {
  StateOp accumulator = getSummedAccumulator(add, symbols);
  if (!accumulator || !accumulator.getParam() ||
      func.getName() == kAccumulateName || add->getNumOperands() != 2)
    return success();
  Value a = add->getOperand(0), b = add->getOperand(1);
  if (get(a) == get(b) && getReducedAxes(a) == getReducedAxes(b))
    return success();
  return add->emitOpError()
         << "adds to @" << accumulator.getSymName()
         << " a gradient that is reduced otherwise than those of the "
            "micro-batches before";
}

/// What is said to be the same on all ranks is.
LogicalResult Checker::checkOutputs() {
  Operation *end = func.getFunctionBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(end->getOperands())) {
    auto across =
        dyn_cast_or_null<StringAttr>(func.getResultAttr(i, kAcrossAttr));
    Across state = get(value);
    bool isSame = state == Across::Same || state == Across::Averaged ||
                  state == Across::Summed;
    if (across && across.getValue() == "same" && !isSame)
      return func.emitOpError()
             << "says that result " << i << " is the same on all ranks, but it "
             << "depends on one rank's data or shard";
  }
  return success();
}

/// Whether what `op` yields is what it is given, or what is computed in its
/// body.
static bool handsOn(Operation *op) {
  if (auto wait = dyn_cast<WaitOp>(op))
    op = wait.getFuture().getDefiningOp();
  return isa_and_nonnull<TransferOp, TransferStartOp, OnHostOp, OnHostStartOp,
                         YieldOp>(op);
}

LogicalResult Checker::checkOp(Operation *op) {
  if (auto assign = dyn_cast<AssignOp>(op))
    return checkAssign(assign);
  if (isa<OnHostOp, OnHostStartOp>(op))
    return checkOps(op->getRegion(0).front());
  if (handsOn(op))
    return success();
  bool anyFailed = failed(checkSum(op));
  FailureOr<Across> state = propagate(op);
  anyFailed |= failed(state);
  uint64_t cut = getCutAxes(op);
  for (Value result : op->getResults()) {
    across[result] = state.value_or(Across::Averaged);
    if (cut)
      cutAxes[result] = cut;
  }
  return failure(anyFailed);
}

LogicalResult Checker::checkOps(Block &block) {
  bool anyFailed = false;
  for (Operation &op : block)
    anyFailed |= failed(checkOp(&op));
  return failure(anyFailed);
}

LogicalResult Checker::checkReductions() {
  Block &body = func.getFunctionBody().front();
  for (BlockArgument arg : body.getArguments())
    across[arg] = func.getArgAttr(arg.getArgNumber(), kHyperAttr)
                      ? Across::Same
                      : Across::Differs;
  bool anyFailed = failed(checkOps(body));
  anyFailed |= failed(checkOutputs());
  return failure(anyFailed);
}

void VerifyPass::runOnOperation() {
  ModuleOp module = getOperation();
  SymbolTable symbols(module);
  bool partitioned = module->hasAttr(kStageAttr);
  AcrossSums sums;
  SmallVector<FunctionOpInterface> funcs(module.getOps<FunctionOpInterface>());
  // What accumulators hold is known before they are used.
  llvm::stable_sort(funcs, [](FunctionOpInterface a, FunctionOpInterface b) {
    return a.getName() == kAccumulateName && b.getName() != kAccumulateName;
  });
  if (failed(verifyMicroBatches(module, symbols)))
    signalPassFailure();
  for (FunctionOpInterface func : funcs) {
    if (func.isExternal())
      continue;
    Checker checker(func, symbols, sums);
    // All of them run, so that one run reports all that is wrong.
    bool bad = failed(checker.checkFutures());
    bad |= failed(checker.checkFlights());
    bad |= failed(checker.checkReleases());
    bad |= failed(checker.checkReleased());
    bad |= failed(checker.checkReshards());
    bad |= failed(verifyMemory(func, symbols));
    if (partitioned && func.getFunctionBody().hasOneBlock())
      bad |= failed(checker.checkReductions());
    if (bad)
      signalPassFailure();
  }
  for (auto program : module.getOps<plan::ProgramOp>())
    if (failed(verifyPlan(program)))
      signalPassFailure();
}
