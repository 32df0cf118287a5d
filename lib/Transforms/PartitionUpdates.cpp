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
/// A gradient that is reduced, and where it goes.
struct Reduction {
  Value gradient;                ///< what a rank computes from its own data
  ParamUpdate *update = nullptr; ///< that takes it; null: none in this function
  GradientSum *sum = nullptr;    ///< that it is added to, in shards
};

class UpdatePartitioner {
public:
  UpdatePartitioner(Partition &partition, StepInfo &info)
      : partition(partition), info(info) {}

  LogicalResult run();

private:
  SmallVector<Reduction> collectReductions();
  void reduceGradients();
  Value reduce(OpBuilder &builder, Value gradient);
  Value scatter(OpBuilder &builder, Value gradient);
  Value reduceReplicas(OpBuilder &builder, Value shard);
  Value addToShard(OpBuilder &builder, const Reduction &reduction);
  LogicalResult checkUsers(ParamUpdate &update);
  LogicalResult checkUsers(GradientSum &sum);
  RankedTensorType getLocalTypeOf(Value value);
  void mapReads(OpBuilder &builder, ParamUpdate &update, IRMapping &mapping);
  void moveUpdate(ParamUpdate &update);
  Value toAssigned(OpBuilder &builder, ParamUpdate &update, Value value,
                   StringRef symbol);
  bool mayStandAt(ParamUpdate &update, Operation *position);
  LogicalResult rewireSums();
  LogicalResult rewireSum(ElementSum sum);
  LogicalResult moveBehindReductions(Operation *sum);
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

Value UpdatePartitioner::scatter(OpBuilder &builder, Value gradient) {
  auto type = cast<RankedTensorType>(gradient.getType());
  return ReduceScatterOp::create(builder, gradient.getLoc(),
                                 getLocalType(type, partition.ranks), gradient,
                                 builder.getUnitAttr(), partition.grid,
                                 partition.shardAxes)
      .getResult(0);
}

Value UpdatePartitioner::reduceReplicas(OpBuilder &builder, Value shard) {
  if (!partition.replicaAxes)
    return shard;
  return AllReduceOp::create(builder, shard.getLoc(), shard.getType(), shard,
                             builder.getUnitAttr(), partition.grid,
                             partition.replicaAxes)
      .getResult(0);
}

Value UpdatePartitioner::reduce(OpBuilder &builder, Value gradient) {
  ++partition.numReductions;
  if (partition.cuts(cast<RankedTensorType>(gradient.getType())))
    return reduceReplicas(builder, scatter(builder, gradient));
  return AllReduceOp::create(builder, gradient.getLoc(), gradient.getType(),
                             gradient, builder.getUnitAttr(), partition.grid,
                             partition.allAxes)
      .getResult(0);
}

/// Adds the reduced shard of a gradient to that of its accumulator. Replicas of
/// the state are reduced once, in the function that updates.
Value UpdatePartitioner::addToShard(OpBuilder &builder,
                                    const Reduction &reduction) {
  ++partition.numReductions;
  GradientSum &sum = *reduction.sum;
  Location loc = reduction.gradient.getLoc();
  Value shard = scatter(builder, reduction.gradient);
  RankedTensorType type = getLocalTypeOf(sum.read.getValue());
  IRMapping mapping;
  mapping.map(reduction.gradient, shard);
  mapping.map(sum.read.getValue(),
              LocalOp::create(builder, loc, type, sum.read.getValue(),
                              partition.grid, partition.shardAxes));
  Operation *add = builder.clone(*sum.add, mapping);
  add->getResult(0).setType(type);
  Value value = add->getResult(0);
  if (sum.goesOn()) {
    sum.assign.getValueMutable().assign(value);
    return value;
  }
  OpBuilder end(sum.assign);
  Operation *whole = sum.assign.getValue().getDefiningOp();
  sum.assign.getValueMutable().assign(
      makeLocal(end, sum.assign.getValue(), type, partition));
  if (whole && isOpTriviallyDead(whole))
    whole->erase();
  return reduceReplicas(builder, value);
}

/// A gradient that only changes its type is complete with what it is made of,
/// wherever its cast stands.
static void castEarly(Value gradient) {
  Operation *cast = gradient.getDefiningOp();
  if (!cast || !cast->hasTrait<OpTrait::Elementwise>() ||
      cast->getNumOperands() != 1 || !isPure(cast))
    return;
  if (Operation *source = cast->getOperand(0).getDefiningOp())
    cast->moveAfter(source);
}

/// What is reduced in this function, in the order of completion.
SmallVector<Reduction> UpdatePartitioner::collectReductions() {
  SmallVector<Reduction> order;
  llvm::DenseMap<Value, GradientSum *> sums; // in shards, by their result
  for (GradientSum &sum : info.sums)
    if (partition.addsShards(sum.accumulator))
      sums[sum.add->getResult(0)] = &sum;
  for (ParamUpdate &update : info.updates) {
    GradientSum *sum = sums.lookup(update.gradient);
    if (update.gradient)
      order.push_back({sum ? sum->gradient : update.gradient, &update, sum});
    sums.erase(update.gradient);
  }
  for (GradientSum &sum : info.sums)
    if (sums.contains(sum.add->getResult(0)))
      order.push_back({sum.gradient, nullptr, &sum});
  if (partition.stage >= 2)
    for (const Reduction &reduction : order)
      castEarly(reduction.gradient);
  llvm::stable_sort(order, [](const Reduction &a, const Reduction &b) {
    Operation *left = a.gradient.getDefiningOp();
    Operation *right = b.gradient.getDefiningOp();
    return right && (!left || (left != right && left->isBeforeInBlock(right)));
  });
  return order;
}

/// Stages 0 and 1 reduce when the last gradient is complete, the others each
/// gradient as soon as it is.
void UpdatePartitioner::reduceGradients() {
  SmallVector<Reduction> order = collectReductions();
  if (order.empty())
    return;
  for (const Reduction &reduction : order)
    if (reduction.sum)
      reduction.sum->read->moveBefore(&info.body->front());
  Operation *last = order.back().gradient.getDefiningOp();
  OpBuilder builder(info.func.getContext());
  auto setAfter = [&](Operation *op) {
    op ? builder.setInsertionPointAfter(op)
       : builder.setInsertionPointToStart(info.body);
  };
  setAfter(last);
  OpBuilder::InsertPoint end = builder.saveInsertionPoint();
  for (const Reduction &reduction : order) {
    Operation *def = reduction.gradient.getDefiningOp();
    if (partition.stage >= 2 && def != last)
      setAfter(def);
    else
      builder.restoreInsertionPoint(end);
    Value reduced = reduction.sum ? addToShard(builder, reduction)
                                  : reduce(builder, reduction.gradient);
    Operation *op = reduced.getDefiningOp();
    if (!lastReduction || lastReduction->isBeforeInBlock(op))
      lastReduction = op;
    if (!reduction.update)
      continue;
    reducedOf[reduction.update->param] = reduced;
    reducedFrom[reduction.update->gradient].push_back(reduced);
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

/// A sum of shards is for updates, norms and its accumulator.
LogicalResult UpdatePartitioner::checkUsers(GradientSum &sum) {
  if (!partition.addsShards(sum.accumulator))
    return success();
  for (Operation *user : sum.add->getUsers()) {
    bool updates = llvm::any_of(info.updates, [&](ParamUpdate &update) {
      return update.ops.contains(user);
    });
    if (!updates && !isa<ElementSum, AssignOp>(user))
      return user->emitOpError()
             << "uses the sum over micro-batches " << sum.assign.getSymbolAttr()
             << ", which exists in shards only from stage 2 on";
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

/// Whether all that the update reads is there before `position`.
bool UpdatePartitioner::mayStandAt(ParamUpdate &update, Operation *position) {
  for (Operation *op : update.ops)
    for (Value operand : getUsedValues(op)) {
      if (operand == update.gradient)
        operand = reducedOf.lookup(update.param);
      Operation *def = operand.getDefiningOp();
      if (def && def->getBlock() == info.body && !update.ops.contains(def) &&
          !def->isBeforeInBlock(position))
        return false;
    }
  return true;
}

/// Copies the update to where its gradient is reduced, on local shapes where
/// the state is cut, and assigns what it computes.
void UpdatePartitioner::moveUpdate(ParamUpdate &update) {
  AssignOp last = update.assigns.back();
  for (AssignOp assign : update.assigns)
    if (last->isBeforeInBlock(assign))
      last = assign;
  Value reduced = reducedOf.lookup(update.param);
  OpBuilder builder(mayStandAt(update, last) ? last.getOperation()
                                             : info.body->getTerminator());
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

/// Lets `partial`, this rank's part of a sum, take the place of the sum: added
/// up over the ranks, or as it is where it does nothing but leave the step.
void UpdatePartitioner::publishSum(Operation *sum, Value partial) {
  OpBuilder builder(sum);
  Value total, left;
  Operation *end = info.body->getTerminator();
  bool onlyLeaves = llvm::all_of(sum->getUsers(),
                                 [&](Operation *user) { return user == end; });
  for (OpOperand &use :
       llvm::make_early_inc_range(sum->getResult(0).getUses())) {
    if (onlyLeaves) {
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

/// Moves a sum over gradients, and what is computed from it except updates,
/// behind the last reduction.
LogicalResult UpdatePartitioner::moveBehindReductions(Operation *sum) {
  if (!sum->isBeforeInBlock(lastReduction))
    return success();
  llvm::DenseSet<Operation *> updateOps;
  for (ParamUpdate &update : info.updates)
    updateOps.insert(update.ops.begin(), update.ops.end());
  llvm::SetVector<Operation *> moved;
  moved.insert(sum);
  for (Operation *op = sum; op != lastReduction->getNextNode();
       op = op->getNextNode()) {
    auto isMoved = [&](Value value) {
      return value.getDefiningOp() && moved.contains(value.getDefiningOp());
    };
    if (updateOps.contains(op) || llvm::none_of(getUsedValues(op), isMoved))
      continue;
    if (isa<AllReduceOp, ReduceScatterOp>(op))
      return sum->emitOpError("is a sum over gradients that another gradient "
                              "depends on; it is known only when all gradients "
                              "are complete");
    moved.insert(op);
  }
  Operation *after = lastReduction;
  for (Operation *op : moved) {
    op->moveAfter(after);
    after = op;
  }
  return success();
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
  if (failed(moveBehindReductions(sum)))
    return failure();
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
  for (ElementSum sum : sums)
    if (failed(rewireSum(sum)))
      return failure();
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
  llvm::DenseSet<Operation *> replaced;
  for (ParamUpdate &update : info.updates)
    if (failed(checkUsers(update)))
      return failure();
  for (GradientSum &sum : info.sums) {
    if (failed(checkUsers(sum)))
      return failure();
    if (partition.addsShards(sum.accumulator))
      replaced.insert(sum.add);
  }
  reduceGradients();
  if (failed(rewireSums()))
    return failure();
  for (ParamUpdate &update : info.updates) {
    replaced.insert(update.ops.begin(), update.ops.end());
    moveUpdate(update);
    update.ops.clear();
  }
  eraseDead(replaced);
  return success();
}

LogicalResult zero::partitionUpdates(Partition &partition, StepInfo &info) {
  return UpdatePartitioner(partition, info).run();
}
