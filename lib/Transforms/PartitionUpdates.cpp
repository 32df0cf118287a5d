//===- PartitionUpdates.cpp - gradients and updates -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reduces each gradient once, moves the updates onto shards, and repairs sums
// over gradients.
//
//===----------------------------------------------------------------------===//

#include "Partition.h"
#include "UpdateSlice.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::zero;

namespace {
class UpdatePartitioner {
public:
  UpdatePartitioner(Partition &partition, StepInfo &info)
      : partition(partition), info(info) {}

  LogicalResult run();

private:
  void reduceGradients();
  Value reduce(OpBuilder &builder, ParamUpdate &update);
  LogicalResult checkUsers(ParamUpdate &update);
  RankedTensorType getLocalTypeOf(Value value);
  void mapReads(OpBuilder &builder, ParamUpdate &update, IRMapping &mapping);
  void moveUpdate(ParamUpdate &update);
  Value toAssigned(OpBuilder &builder, ParamUpdate &update, Value value,
                   StringRef symbol);
  LogicalResult rewireSums();
  LogicalResult rewireSum(ElementSum sum);
  Value sumReplicated(OpBuilder &builder, Operation *sum, ValueRange inputs);
  void publishSum(Operation *sum, Value partial);
  void eraseDead(llvm::DenseSet<Operation *> &ops);

  Partition &partition;
  StepInfo &info;
  /// The op after which all gradients are reduced; null where there are none.
  Operation *lastReduction = nullptr;
  /// Per parameter, its gradient once reduced.
  llvm::DenseMap<Operation *, Value> reducedOf;
  /// Raw gradients to a reduced form, for sums over gradients.
  llvm::DenseMap<Value, SmallVector<Value>> reducedFrom;
};
} // namespace

Value UpdatePartitioner::reduce(OpBuilder &builder, ParamUpdate &update) {
  Value gradient = update.gradient;
  auto type = cast<RankedTensorType>(gradient.getType());
  ++partition.numReductions;
  if (!partition.cuts(type))
    return AllReduceOp::create(builder, gradient.getLoc(), type, gradient,
                               builder.getUnitAttr(), partition.grid,
                               partition.allAxes)
        .getResult(0);
  Value shard = ReduceScatterOp::create(builder, gradient.getLoc(),
                                        getLocalType(type, partition.ranks),
                                        gradient, builder.getUnitAttr(),
                                        partition.grid, partition.shardAxes)
                    .getResult(0);
  if (!partition.replicaAxes)
    return shard;
  return AllReduceOp::create(builder, gradient.getLoc(), shard.getType(), shard,
                             builder.getUnitAttr(), partition.grid,
                             partition.replicaAxes)
      .getResult(0);
}

/// Stages 0 and 1 reduce when the last gradient is complete, the others each
/// gradient as soon as it is. The order of reductions is that of completion.
void UpdatePartitioner::reduceGradients() {
  SmallVector<ParamUpdate *> order;
  for (ParamUpdate &update : info.updates)
    if (update.gradient)
      order.push_back(&update);
  llvm::stable_sort(order, [](ParamUpdate *a, ParamUpdate *b) {
    Operation *left = a->gradient.getDefiningOp();
    Operation *right = b->gradient.getDefiningOp();
    return right && (!left || (left != right && left->isBeforeInBlock(right)));
  });
  if (order.empty())
    return;
  Operation *last = order.back()->gradient.getDefiningOp();
  OpBuilder builder(info.func.getContext());
  auto setAfter = [&](Operation *op) {
    op ? builder.setInsertionPointAfter(op)
       : builder.setInsertionPointToStart(info.body);
  };
  setAfter(last);
  OpBuilder::InsertPoint end = builder.saveInsertionPoint();
  for (ParamUpdate *update : order) {
    Operation *def = update->gradient.getDefiningOp();
    if (partition.stage >= 2 && def != last)
      setAfter(def);
    else
      builder.restoreInsertionPoint(end);
    Value reduced = reduce(builder, *update);
    reducedOf[update->param] = reduced;
    reducedFrom[update->gradient].push_back(reduced);
    lastReduction = reduced.getDefiningOp();
  }
}

/// On shards, new values go nowhere but to the state.
LogicalResult UpdatePartitioner::checkUsers(ParamUpdate &update) {
  if (!partition.cuts(update.param.getLogicalType()))
    return success();
  for (Operation *op : update.ops)
    for (Operation *user : op->getUsers()) {
      Operation *inBody = getAncestorIn(info.body, user);
      if (inBody && !update.ops.contains(inBody) && !isa<AssignOp>(inBody)) {
        InFlightDiagnostic diag =
            user->emitOpError()
            << "uses a value of the update of @" << update.param.getSymName()
            << ", which exists in shards only from stage 1 on";
        diag.attachNote(op->getLoc()) << "the value is computed here";
        return diag;
      }
    }
  return success();
}

/// What a symbol is assigned: stages 1 and 2 keep whole parameters.
Value UpdatePartitioner::toAssigned(OpBuilder &builder, ParamUpdate &update,
                                    Value value, StringRef symbol) {
  RankedTensorType whole = update.param.getLogicalType();
  if (!partition.cuts(whole) || partition.stage == 3 ||
      symbol != update.param.getSymName())
    return value;
  ++partition.numGathers;
  return AllGatherOp::create(builder, value.getLoc(), whole, value,
                             partition.grid, partition.shardAxes)
      .getResult(0);
}

/// The type of `value`'s chunk; states may have another element type than
/// their parameter.
RankedTensorType UpdatePartitioner::getLocalTypeOf(Value value) {
  return getLocalType(getLogicalType(value.getType()), partition.ranks);
}

/// Maps what the update reads to this rank's chunk of it.
void UpdatePartitioner::mapReads(OpBuilder &builder, ParamUpdate &update,
                                 IRMapping &mapping) {
  ArrayRef<int64_t> shape = update.param.getLogicalType().getShape();
  for (Operation *op : update.ops)
    for (Value operand : getUsedValues(op)) {
      if (!operand.getDefiningOp<ReadOp>() || mapping.contains(operand) ||
          getLogicalType(operand.getType()).getShape() != shape)
        continue;
      mapping.map(operand,
                  LocalOp::create(builder, operand.getLoc(),
                                  getLocalTypeOf(operand), operand,
                                  partition.grid, partition.shardAxes));
    }
}

/// Copies the update to where its gradient is reduced, on local shapes where
/// the state is cut, and assigns what it computes.
void UpdatePartitioner::moveUpdate(ParamUpdate &update) {
  AssignOp last = update.assigns.back();
  for (AssignOp assign : update.assigns)
    if (last->isBeforeInBlock(assign))
      last = assign;
  Value reduced = reducedOf.lookup(update.param);
  bool early = reduced && last->isBeforeInBlock(reduced.getDefiningOp());
  OpBuilder builder(early ? info.body->getTerminator() : last.getOperation());
  RankedTensorType whole = update.param.getLogicalType();
  bool cut = partition.cuts(whole);
  IRMapping mapping;
  if (update.gradient)
    mapping.map(update.gradient, reduced);
  if (cut)
    mapReads(builder, update, mapping);
  cloneUpdate(builder, update, mapping, cut ? &partition : nullptr);
  for (AssignOp assign : update.assigns) {
    Value value = mapping.lookupOrDefault(assign.getValue());
    // What the update does not compute is still whole: a constant, a read.
    if (cut && value == assign.getValue())
      value = LocalOp::create(builder, assign.getLoc(), getLocalTypeOf(value),
                              value, partition.grid, partition.shardAxes);
    value = toAssigned(builder, update, value, assign.getSymbol());
    AssignOp::create(builder, assign.getLoc(), assign.getSymbolAttr(), value);
    assign.erase();
  }
}

//===----------------------------------------------------------------------===//
// Sums over gradients
//===----------------------------------------------------------------------===//

static Value divide(OpBuilder &builder, Value value, int64_t by) {
  auto type = cast<RankedTensorType>(value.getType());
  auto splat = SplatElementsAttr::get(
      type, builder.getFloatAttr(type.getElementType(), by));
  Value divisor = arith::ConstantOp::create(builder, value.getLoc(), splat);
  return arith::DivFOp::create(builder, value.getLoc(), value, divisor);
}

/// The sum over values that all ranks hold whole, divided by the number of
/// ranks so that adding up the ranks' results counts it once.
Value UpdatePartitioner::sumReplicated(OpBuilder &builder, Operation *sum,
                                       ValueRange inputs) {
  Operation *copy = builder.clone(*sum);
  copy->setOperands(inputs);
  return divide(builder, copy->getResult(0), partition.ranks);
}

/// Lets `partial`, this rank's part of a sum, take the place of the sum: as it
/// is where it leaves the step, added up over the ranks for other users.
void UpdatePartitioner::publishSum(Operation *sum, Value partial) {
  OpBuilder builder(sum);
  Value total, left;
  for (OpOperand &use :
       llvm::make_early_inc_range(sum->getResult(0).getUses())) {
    if (use.getOwner() == info.body->getTerminator()) {
      // Every copy of the state has the whole sum.
      if (!left)
        left = partition.replicas == 1
                   ? partial
                   : divide(builder, partial, partition.replicas);
      use.set(left);
      info.func.setResultAttr(use.getOperandNumber(), kAcrossAttr,
                              builder.getStringAttr("sum"));
      continue;
    }
    if (!total)
      total = AllReduceOp::create(builder, sum->getLoc(), partial.getType(),
                                  partial, /*average=*/UnitAttr(),
                                  partition.grid, partition.shardAxes)
                  .getResult(0);
    use.set(total);
  }
}

LogicalResult UpdatePartitioner::rewireSum(ElementSum sum) {
  SmallVector<Value> shards, replicated;
  llvm::DenseMap<Value, unsigned> taken;
  for (Value operand : sum->getOperands()) {
    auto it = reducedFrom.find(operand);
    if (it == reducedFrom.end())
      return sum->emitOpError()
             << "adds up gradients and another value of type "
             << operand.getType() << "; expects gradients of parameters only";
    // One value may be the gradient of several parameters.
    unsigned index = taken[operand]++;
    Value reduced = it->second[std::min<size_t>(index, it->second.size() - 1)];
    bool cut = partition.cuts(cast<RankedTensorType>(operand.getType()));
    (cut ? shards : replicated).push_back(reduced);
  }
  if (sum->isBeforeInBlock(lastReduction))
    sum->moveAfter(lastReduction);
  if (shards.empty()) {
    sum->setOperands(replicated);
    return success();
  }
  OpBuilder builder(sum);
  Value rest =
      replicated.empty() ? Value() : sumReplicated(builder, sum, replicated);
  Operation *copy = builder.clone(*sum);
  copy->setOperands(shards);
  Value partial = copy->getResult(0);
  if (rest)
    partial = arith::AddFOp::create(builder, sum->getLoc(), partial, rest);
  publishSum(sum, partial);
  sum->erase();
  return success();
}

LogicalResult UpdatePartitioner::rewireSums() {
  SmallVector<ElementSum> sums;
  for (auto sum : info.body->getOps<ElementSum>())
    if (llvm::any_of(sum->getOperands(),
                     [&](Value v) { return reducedFrom.contains(v); }))
      sums.push_back(sum);
  for (ElementSum sum : sums) {
    for (Operation *user : sum->getUsers())
      if (getAncestorIn(info.body, user)->isBeforeInBlock(lastReduction))
        return user->emitOpError("uses a sum over gradients before all "
                                 "gradients are complete");
    if (failed(rewireSum(sum)))
      return failure();
  }
  return success();
}

/// Erases the ops of the original updates and what only they used.
void UpdatePartitioner::eraseDead(llvm::DenseSet<Operation *> &ops) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*info.body))) {
    if (!ops.contains(&op) || !isOpTriviallyDead(&op))
      continue;
    for (Value operand : getUsedValues(&op))
      if (Operation *def = operand.getDefiningOp(); def && !isa<ReadOp>(def))
        ops.insert(def);
    op.erase();
  }
}

LogicalResult UpdatePartitioner::run() {
  for (ParamUpdate &update : info.updates)
    if (failed(checkUsers(update)))
      return failure();
  reduceGradients();
  llvm::DenseSet<Operation *> replaced;
  for (ParamUpdate &update : info.updates) {
    replaced.insert(update.ops.begin(), update.ops.end());
    moveUpdate(update);
    update.ops.clear();
  }
  eraseDead(replaced);
  return rewireSums();
}

LogicalResult zero::partitionUpdates(Partition &partition, StepInfo &info) {
  return UpdatePartitioner(partition, info).run();
}
