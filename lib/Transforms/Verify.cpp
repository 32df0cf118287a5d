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
#include "Views.h"
#include "zero/Transforms/Passes.h"
#include "zero/Transforms/VerifyPlan.h"

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
  Summed,        // data of all ranks, added up but not averaged
  Partial,       // a sum over the own chunk: the ranks' values add up
  Differs        // depends on one rank's data
};

class Checker {
public:
  Checker(FunctionOpInterface func, SymbolTable &symbols)
      : func(func), symbols(symbols) {}
  LogicalResult checkFutures();
  LogicalResult checkReleases();
  LogicalResult checkReductions();
  LogicalResult checkMemory();

private:
  Across get(Value value) const { return across.lookup(value); }
  Across join(Operation *op) const;
  FailureOr<Across> transfer(Operation *op);
  FailureOr<Across> reduce(Operation *op, bool average, bool scatters);
  LogicalResult checkAssign(AssignOp assign);

  FunctionOpInterface func;
  SymbolTable &symbols;
  llvm::DenseMap<Value, Across> across;
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

Across Checker::join(Operation *op) const {
  Across result = Across::Same;
  for (Value value : getUsedValues(op))
    result = std::max(result, get(value));
  return result;
}

FailureOr<Across> Checker::reduce(Operation *op, bool average, bool scatters) {
  Across in = join(op);
  if (in == Across::Partial && !average)
    return Across::Averaged;
  for (Value operand : op->getOperands()) {
    Across state = get(operand);
    if (state == Across::Averaged || state == Across::AveragedShard ||
        state == Across::Summed)
      return op->emitOpError()
             << "reduces a value of type " << operand.getType()
             << " that was reduced before; expects exactly one reduction";
  }
  if (in == Across::Same && average)
    return in;
  if (!average)
    return Across::Summed;
  return scatters ? Across::AveragedShard : Across::Averaged;
}

FailureOr<Across> Checker::transfer(Operation *op) {
  if (auto read = dyn_cast<ReadOp>(op)) {
    auto param = symbols.lookup<ParamOp>(read.getSymbol());
    return param && param.getBuffer() ? Across::Differs : Across::Same;
  }
  if (isa<AllReduceOp, ReduceScatterOp, AllReduceStartOp, ReduceScatterStartOp>(
          op))
    return reduce(op, op->hasAttr("average"),
                  isa<ReduceScatterOp, ReduceScatterStartOp>(op));
  Across in = join(op);
  if (isa<AllGatherOp, AllGatherStartOp>(op) && in == Across::AveragedShard)
    return Across::Averaged;
  if (isa<ElementSum>(op) && in == Across::AveragedShard)
    return Across::Partial;
  return in;
}

LogicalResult Checker::checkAssign(AssignOp assign) {
  auto param = symbols.lookup<ParamOp>(assign.getSymbol());
  if (param && param.getBuffer())
    return success();
  StringRef problem;
  switch (get(assign.getValue())) {
  case Across::Same:
  case Across::Averaged:
  case Across::AveragedShard:
    return success();
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

LogicalResult Checker::checkReductions() {
  Block &body = func.getFunctionBody().front();
  for (BlockArgument arg : body.getArguments())
    across[arg] = func.getArgAttr(arg.getArgNumber(), kHyperAttr)
                      ? Across::Same
                      : Across::Differs;
  bool anyFailed = false;
  for (Operation &op : body) {
    if (auto assign = dyn_cast<AssignOp>(op)) {
      anyFailed |= failed(checkAssign(assign));
      continue;
    }
    FailureOr<Across> state = transfer(&op);
    anyFailed |= failed(state);
    for (Value result : op.getResults())
      across[result] = state.value_or(Across::Averaged);
  }
  return failure(anyFailed);
}

/// The memory a value lies in, if it is the state of a symbol or its chunk.
static Memory getMemory(Value value) {
  if (auto local = value.getDefiningOp<LocalOp>())
    value = local.getSource();
  auto sharded = dyn_cast<ShardedType>(value.getType());
  return sharded ? sharded.getMem() : Memory::Device;
}

LogicalResult Checker::checkMemory() {
  bool failed = false;
  func.walk([&](Operation *op) {
    // These move data or name it; all others compute.
    if (isa<LocalOp, TransferOp, TransferStartOp, AssignOp>(op))
      return;
    for (Value operand : op->getOperands())
      if (Memory memory = getMemory(operand); memory != Memory::Device) {
        failed = true;
        op->emitOpError() << "computes on a value in "
                          << stringifyMemory(memory)
                          << " memory; move it with zero.transfer first";
      }
  });
  return failure(failed);
}

void VerifyPass::runOnOperation() {
  ModuleOp module = getOperation();
  SymbolTable symbols(module);
  bool partitioned = module->hasAttr(kStageAttr);
  for (auto func : module.getOps<FunctionOpInterface>()) {
    if (func.isExternal())
      continue;
    Checker checker(func, symbols);
    // All of them run, so that one run reports all that is wrong.
    bool bad = failed(checker.checkFutures());
    bad |= failed(checker.checkReleases());
    bad |= failed(checker.checkMemory());
    if (partitioned && func.getFunctionBody().hasOneBlock())
      bad |= failed(checker.checkReductions());
    if (bad)
      signalPassFailure();
  }
  for (auto program : module.getOps<plan::ProgramOp>())
    if (failed(verifyPlan(program)))
      signalPassFailure();
}
