//===- OffloadUpdates.cpp - updates on the host ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Remakes the updates of a bucket in one zero.on_host, between a transfer of
// what enters them and one of the new parameters.
//
//===----------------------------------------------------------------------===//

#include "OffloadStep.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::zero;

namespace {
/// The updates whose gradients one bucket reduces.
using UpdateGroup = SmallVector<LocalUpdate *>;

class HostUpdates {
public:
  HostUpdates(OffloadModule &info, OffloadStep &step)
      : info(info), step(step), builder(info.module.getContext()) {}

  void run();

private:
  void moveGroup(UpdateGroup &group);
  void collectInputs(UpdateGroup &group);
  void bringScalars(ArrayRef<Value> scalars);
  void bringDown(Operation *reduction, ArrayRef<Value> gradients,
                 ArrayRef<Value> others);
  void bringFromDisk(ArrayRef<Value> values);
  void placeView(Operation *view);
  OnHostOp buildBody(UpdateGroup &group);
  void assignResults(OnHostOp host, UpdateGroup &group);
  void placeAfter(ArrayRef<Value> values);

  OffloadModule &info;
  OffloadStep &step;
  OpBuilder builder;
  /// Values in host memory of those that updates take, scalars in common.
  llvm::MapVector<Value, Value> inputs;
  llvm::DenseMap<Value, Value> scalarsOnHost;
  /// What updates compute to the results of a zero.on_host.
  llvm::MapVector<Value, unsigned> results;
  /// Where the group before ends: the host takes them in this order.
  Operation *end = nullptr;
};
} // namespace

/// Sets the insertion point behind the last op that makes one of `values`.
void HostUpdates::placeAfter(ArrayRef<Value> values) {
  Operation *last = nullptr;
  for (Value value : values) {
    Operation *op = value.getDefiningOp();
    if (op && (!last || last->isBeforeInBlock(op)))
      last = op;
  }
  last ? builder.setInsertionPointAfter(last)
       : builder.setInsertionPointToStart(step.body);
}

/// Copies what all updates have in common, such as the learning rate, once.
void HostUpdates::bringScalars(ArrayRef<Value> scalars) {
  for (bool isArgument : {true, false}) {
    SmallVector<Value> missing;
    for (Value scalar : scalars)
      if (!scalarsOnHost.contains(scalar) &&
          isa<BlockArgument>(scalar) == isArgument)
        missing.push_back(scalar);
    if (missing.empty())
      continue;
    placeAfter(missing);
    SmallVector<Value> moved = moveValues(builder, missing.front().getLoc(),
                                          missing, Memory::Device, Memory::Host);
    for (auto [from, to] : llvm::zip_equal(missing, moved))
      scalarsOnHost[from] = to;
  }
  for (Value scalar : scalars)
    inputs[scalar] = scalarsOnHost.lookup(scalar);
}

/// Copies gradients, as soon as they are reduced, and whatever else of their
/// size lies on the device: parameters without a master copy.
void HostUpdates::bringDown(Operation *reduction, ArrayRef<Value> gradients,
                            ArrayRef<Value> others) {
  for (ArrayRef<Value> values : {others, gradients}) {
    if (values.empty())
      continue;
    placeAfter(values);
    // Parameters are there from the beginning: not before they are needed.
    if (reduction && values == others) {
      builder.setInsertionPoint(reduction);
      for (Value value : values)
        placeView(value.getDefiningOp());
    }
    SmallVector<Value> moved = moveValues(builder, values.front().getLoc(),
                                          values, Memory::Device, Memory::Host);
    for (auto [from, to] : llvm::zip_equal(values, moved))
      inputs[from] = to;
  }
}

/// Reads what lies on disk into host memory, shard by shard.
void HostUpdates::bringFromDisk(ArrayRef<Value> values) {
  if (values.empty())
    return;
  llvm::SetVector<Value> reads;
  for (Value value : values)
    reads.insert(getReadBehind(value).getValue());
  placeAfter(reads.getArrayRef());
  SmallVector<Value> moved =
      moveValues(builder, values.front().getLoc(), reads.getArrayRef(),
                 Memory::Disk, Memory::Host);
  IRMapping mapping;
  for (auto [from, to] : llvm::zip_equal(reads, moved))
    mapping.map(from, to);
  for (Value value : values) {
    SmallVector<Operation *> views;
    for (Value view = value; auto local = view.getDefiningOp<LocalOp>();
         view = local.getSource())
      views.push_back(local);
    for (Operation *view : llvm::reverse(views))
      if (!mapping.contains(view->getResult(0)))
        builder.clone(*view, mapping);
    inputs[value] = mapping.lookup(value);
  }
}

/// Copies all that enters the updates of a group to host memory.
void HostUpdates::collectInputs(UpdateGroup &group) {
  SmallVector<Value> scalars, gradients, others, onDisk;
  llvm::DenseSet<Value> seen;
  for (LocalUpdate *update : group)
    for (Value value : update->inputs) {
      if (!seen.insert(value).second)
        continue;
      Memory place = getMemory(value);
      if (place == Memory::Host)
        inputs[value] = value;
      else if (place == Memory::Disk)
        onDisk.push_back(value);
      else if (value.getType() != update->values.front().getType() &&
               cast<RankedTensorType>(value.getType()).getRank() == 0)
        scalars.push_back(value);
      else
        (getReadBehind(value) ? others : gradients).push_back(value);
    }
  bringDown(group.front()->reduction, gradients, others);
  bringScalars(scalars);
  bringFromDisk(onDisk);
}

/// Lets a view of state, and its read, stand before the insertion point: it is
/// the same from the beginning on.
void HostUpdates::placeView(Operation *view) {
  Operation *point = &*builder.getInsertionPoint();
  if (view->getBlock() != step.body || view->isBeforeInBlock(point))
    return;
  if (Operation *source = view->getNumOperands() == 0
                              ? nullptr
                              : view->getOperand(0).getDefiningOp())
    placeView(source);
  view->moveBefore(point);
}

/// Copies the ops of all updates of a group into one body.
OnHostOp HostUpdates::buildBody(UpdateGroup &group) {
  SmallVector<Value> operands, made;
  SmallVector<Operation *> views;
  for (auto &[from, to] : inputs) {
    operands.push_back(to);
    bool isView = to.getDefiningOp<LocalOp>() && getReadBehind(to);
    isView ? views.push_back(to.getDefiningOp()) : made.push_back(to);
  }
  placeAfter(made);
  if (end && builder.getInsertionPoint() != step.body->end() &&
      builder.getInsertionPoint()->isBeforeInBlock(end))
    builder.setInsertionPointAfter(end);
  for (Operation *view : views)
    placeView(view);
  results.clear();
  SmallVector<Value> values;
  SmallVector<Location> locs;
  for (LocalUpdate *update : group) {
    for (Value value : update->values)
      if (results.insert({value, values.size()}).second)
        values.push_back(value);
    locs.push_back(update->values.front().getLoc());
  }
  auto host = OnHostOp::create(builder, builder.getFusedLoc(locs),
                               ValueRange(values).getTypes(), operands);
  Block &body = host.getBody().emplaceBlock();
  IRMapping mapping;
  for (auto &[from, to] : inputs)
    mapping.map(from, body.addArgument(to.getType(), to.getLoc()));
  OpBuilder inside = OpBuilder::atBlockBegin(&body);
  for (LocalUpdate *update : group) {
    SmallVector<Operation *> ops(update->ops.begin(), update->ops.end());
    llvm::sort(ops, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    for (Operation *op : ops)
      if (op->getNumResults() == 0 || !mapping.contains(op->getResult(0)))
        inside.clone(*op, mapping);
  }
  SmallVector<Value> yielded;
  for (Value value : values)
    yielded.push_back(mapping.lookup(value));
  YieldOp::create(inside, host.getLoc(), yielded);
  return host;
}

/// Lets assignments, and the gathers of new parameters, take the results from
/// where they belong.
void HostUpdates::assignResults(OnHostOp host, UpdateGroup &group) {
  SmallVector<OpOperand *> uses[3];
  for (LocalUpdate *update : group)
    for (auto [assign, value] : llvm::zip_equal(update->assigns,
                                                update->values)) {
      if (assign.getValue() == value) {
        Operation *symbol = info.symbols.lookup(assign.getSymbol());
        auto type = symbol->getAttrOfType<TypeAttr>("type").getValue();
        auto sharded = dyn_cast<ShardedType>(type);
        Memory memory = sharded ? sharded.getMem() : Memory::Device;
        uses[static_cast<int>(memory)].push_back(&assign.getValueMutable());
        continue;
      }
      auto gathered = cast<OpResult>(assign.getValue());
      uses[static_cast<int>(Memory::Device)].push_back(
          &gathered.getOwner()->getOpOperand(gathered.getResultNumber()));
    }
  Operation *last = host;
  for (Memory memory : {Memory::Host, Memory::Device, Memory::Disk}) {
    llvm::SetVector<Value> values;
    for (OpOperand *use : uses[static_cast<int>(memory)])
      values.insert(host.getResult(results.lookup(use->get())));
    builder.setInsertionPointAfter(last);
    SmallVector<Value> moved =
        moveValues(builder, host.getLoc(), values.getArrayRef(), Memory::Host,
                   memory);
    IRMapping mapping;
    for (auto [from, to] : llvm::zip_equal(values, moved))
      mapping.map(from, to);
    for (OpOperand *use : uses[static_cast<int>(memory)])
      use->set(mapping.lookup<Value>(host.getResult(results.lookup(use->get()))));
    if (!moved.empty() && memory != Memory::Host)
      last = moved.front().getDefiningOp();
    moveUsersBehind(last);
  }
  moveUsersBehind(host);
  end = last;
}

void HostUpdates::moveGroup(UpdateGroup &group) {
  inputs.clear();
  collectInputs(group);
  OnHostOp host = buildBody(group);
  assignResults(host, group);
}

/// Erases, from its end on, what of `ops` nothing uses any more, and the views
/// and reads that only it used.
static void eraseDead(Block &body, llvm::DenseSet<Operation *> ops) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body))) {
    if (!ops.contains(&op) || !op.use_empty())
      continue;
    for (Value operand : getUsedValues(&op))
      if (Operation *def = operand.getDefiningOp();
          isa_and_nonnull<LocalOp, ReadOp>(def) ||
          (def && def->getNumOperands() == 0 && isMemoryEffectFree(def)))
        ops.insert(def);
    op.erase();
  }
}

void HostUpdates::run() {
  llvm::MapVector<Operation *, UpdateGroup> groups;
  for (LocalUpdate &update : step.updates)
    if (info.hosted.contains(update.param))
      groups[update.reduction].push_back(&update);
  // In the order in which gradients are complete.
  auto ordered = groups.takeVector();
  llvm::stable_sort(ordered, [](auto &a, auto &b) {
    return b.first && (!a.first || a.first->isBeforeInBlock(b.first));
  });
  llvm::DenseSet<Operation *> replaced;
  for (auto &[reduction, group] : ordered) {
    moveGroup(group);
    for (LocalUpdate *update : group) {
      replaced.insert(update->ops.begin(), update->ops.end());
      for (Value input : update->inputs)
        if (ReadOp read = getReadBehind(input))
          replaced.insert(input.getDefiningOp());
    }
  }
  eraseDead(*step.body, std::move(replaced));
}

void zero::moveUpdatesToHost(OffloadModule &info, OffloadStep &step) {
  HostUpdates(info, step).run();
}
