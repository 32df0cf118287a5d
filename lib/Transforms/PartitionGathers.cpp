//===- PartitionGathers.cpp - gathers of stage 3 --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Places one gather per parameter and phase before the first use of its unit.
//
//===----------------------------------------------------------------------===//

#include "Partition.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace mlir::zero;

void zero::mergeReads(StepInfo &info) {
  for (auto &[name, reads] : info.reads) {
    for (ReadOp read : llvm::drop_begin(reads)) {
      read.getValue().replaceAllUsesWith(reads.front().getValue());
      read.erase();
    }
    reads.truncate(1);
  }
}

/// Adds to `ops` all ops of `body` that `value` depends on.
static void addProducers(Block *body, Value value,
                         llvm::DenseSet<Operation *> &ops) {
  SmallVector<Value> worklist = {value};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val().getDefiningOp();
    if (!op || op->getBlock() != body || !ops.insert(op).second)
      continue;
    llvm::append_range(worklist, getUsedValues(op));
  }
}

llvm::DenseSet<Operation *> zero::findForward(StepInfo &info) {
  llvm::DenseSet<Operation *> updateOps;
  llvm::DenseSet<Value> gradients;
  for (ParamUpdate &update : info.updates) {
    updateOps.insert(update.ops.begin(), update.ops.end());
    if (update.gradient)
      gradients.insert(update.gradient);
  }
  for (GradientSum &sum : info.sums) {
    updateOps.insert(sum.add);
    gradients.insert(sum.gradient);
  }
  llvm::DenseSet<Operation *> forward;
  SmallVector<Value> roots(info.body->getTerminator()->getOperands());
  llvm::append_range(roots, info.ownValues);
  for (Value result : roots) {
    llvm::DenseSet<Operation *> producers;
    addProducers(info.body, result, producers);
    bool afterGradients = llvm::any_of(producers, [&](Operation *op) {
      return isa<ElementSum>(op) || updateOps.contains(op);
    });
    if (!afterGradients && !gradients.contains(result))
      forward.insert(producers.begin(), producers.end());
  }
  bool found =
      llvm::any_of(forward, [](Operation *op) { return !isa<ReadOp>(op); });
  for (Operation &op : *info.body) {
    if (found || llvm::any_of(op.getResults(),
                              [&](Value v) { return gradients.contains(v); }))
      break;
    forward.insert(&op);
  }
  return forward;
}

namespace {
enum Phase { Forward, Backward, NumPhases };

/// A sharded parameter and its uses by compute, per phase.
struct GatheredParam {
  ReadOp read;
  SmallVector<OpOperand *> uses[NumPhases];
};

/// The parameters gathered as one, and where they are used.
struct Unit {
  SmallVector<GatheredParam> params;
  Operation *first[NumPhases] = {nullptr, nullptr};
  Operation *last[NumPhases] = {nullptr, nullptr};
};

class GatherInserter {
public:
  GatherInserter(Partition &partition, StepInfo &info,
                 const llvm::DenseSet<Operation *> &forward)
      : partition(partition), info(info), forward(forward) {}

  void collect(SymbolTable &symbols);
  void run();

private:
  void addUse(Unit &unit, GatheredParam &param, OpOperand &use);
  bool isBefore(Operation *a, Operation *b) const {
    return positions.lookup(a) < positions.lookup(b);
  }
  bool isAdjacent(const Unit &unit) const;
  void keep(StringRef name, Unit &unit);
  void gather(Unit &unit, Phase phase);

  Partition &partition;
  StepInfo &info;
  const llvm::DenseSet<Operation *> &forward;
  llvm::MapVector<StringRef, Unit> units;
  /// In the block as it was: ops that are moved take the place of their new
  /// neighbour.
  llvm::DenseMap<Operation *, int64_t> positions;
  /// Of all uses of sharded parameters by compute, in order.
  std::vector<int64_t> usePositions;
};
} // namespace

void GatherInserter::addUse(Unit &unit, GatheredParam &param, OpOperand &use) {
  Operation *user = getAncestorIn(info.body, use.getOwner());
  Phase phase = forward.contains(user) ? Forward : Backward;
  param.uses[phase].push_back(&use);
  usePositions.push_back(positions.lookup(user));
  if (!unit.first[phase] || isBefore(user, unit.first[phase]))
    unit.first[phase] = user;
  if (!unit.last[phase] || isBefore(unit.last[phase], user))
    unit.last[phase] = user;
}

void GatherInserter::collect(SymbolTable &symbols) {
  int64_t next = 0;
  for (Operation &op : *info.body)
    positions[&op] = next++;
  for (auto &[name, reads] : info.reads) {
    auto param = symbols.lookup<ParamOp>(name);
    ReadOp read = reads.front();
    if (!param || !isa<ShardedType>(read.getType()))
      continue;
    Unit &unit = units[param.getUnit().value_or(param.getSymName())];
    GatheredParam gathered{read, {}};
    for (OpOperand &use : read->getUses())
      if (!isa<LocalOp>(use.getOwner()))
        addUse(unit, gathered, use);
    unit.params.push_back(std::move(gathered));
  }
  llvm::sort(usePositions);
}

/// Whether no other unit is used between the unit's last use in forward and
/// its first in backward, so that releasing it would free nothing in time.
bool GatherInserter::isAdjacent(const Unit &unit) const {
  Operation *end = unit.last[Forward], *begin = unit.first[Backward];
  if (!end || !begin || isBefore(begin, end))
    return false;
  // The next use of anything is the unit's own.
  auto next = llvm::upper_bound(usePositions, positions.lookup(end));
  return next == usePositions.end() || *next >= positions.lookup(begin);
}

/// Lets uses in the backward pass see what the forward pass gathered.
void GatherInserter::keep(StringRef name, Unit &unit) {
  ++partition.numKept;
  remark::passed(unit.last[Forward]->getLoc(),
                 remark::RemarkOpts::name("kept").category("zero-partition"))
      << ("unit '" + name +
          "' stays gathered: the backward needs it before any other unit")
             .str();
  for (GatheredParam &param : unit.params) {
    if (param.uses[Forward].empty())
      continue;
    llvm::append_range(param.uses[Forward], param.uses[Backward]);
    param.uses[Backward].clear();
  }
}

void GatherInserter::gather(Unit &unit, Phase phase) {
  Operation *position = unit.first[phase];
  for (GatheredParam &param : unit.params)
    if (!param.uses[phase].empty() && isBefore(position, param.read)) {
      param.read->moveBefore(position);
      positions[param.read] = positions.lookup(position);
    }
  OpBuilder builder(info.func.getContext());
  for (GatheredParam &param : unit.params) {
    if (param.uses[phase].empty())
      continue;
    builder.setInsertionPoint(position);
    auto type = cast<ShardedType>(param.read.getType());
    auto gathered = AllGatherOp::create(
        builder, param.read.getLoc(), type.getLogicalType(),
        param.read.getValue(), partition.grid, partition.shardAxes);
    ++partition.numGathers;
    for (OpOperand *use : param.uses[phase])
      use->set(gathered.getResult(0));
  }
}

void GatherInserter::run() {
  if (partition.keepAdjacent)
    for (auto &[name, unit] : units)
      if (isAdjacent(unit))
        keep(name, unit);
  for (auto &[name, unit] : units)
    for (Phase phase : {Forward, Backward})
      gather(unit, phase);
}

void zero::insertGathers(Partition &partition, StepInfo &info,
                         const llvm::DenseSet<Operation *> &forward,
                         SymbolTable &symbols) {
  GatherInserter inserter(partition, info, forward);
  inserter.collect(symbols);
  inserter.run();
}
