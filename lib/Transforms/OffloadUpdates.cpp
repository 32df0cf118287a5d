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
  SmallVector<UpdateGroup> getGroups();
  void moveGroup(UpdateGroup &group);
  void collectInputs(UpdateGroup &group);
  void bringScalars(ArrayRef<Value> scalars);
  void bring(Operation *before, ArrayRef<Value> values);
  void placeHost(UpdateGroup &group);
  OnHostOp buildBody(UpdateGroup &group);
  void assignResults(OnHostOp host, UpdateGroup &group);
  Memory getTarget(AssignOp assign, Value value);

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
    setBehind(builder, step.body, missing);
    SmallVector<Value> moved =
        moveAll(builder, missing.front().getLoc(), missing, Memory::Host);
    for (auto [from, to] : llvm::zip_equal(missing, moved))
      scalarsOnHost[from] = to;
  }
  for (Value scalar : scalars)
    inputs[scalar] = scalarsOnHost.lookup(scalar);
}

/// Copies values to host memory as soon as they are there, but not before
/// `before`, where that is set: parameters are there from the beginning.
void HostUpdates::bring(Operation *before, ArrayRef<Value> values) {
  if (values.empty())
    return;
  setBehind(builder, step.body, values);
  if (before) {
    builder.setInsertionPoint(before);
    for (Value value : values)
      placeViews(builder, value);
  }
  SmallVector<Value> moved =
      moveAll(builder, values.front().getLoc(), values, Memory::Host);
  for (auto [from, to] : llvm::zip_equal(values, moved))
    inputs[from] = to;
}

/// Copies all that enters the updates of a group to host memory.
void HostUpdates::collectInputs(UpdateGroup &group) {
  llvm::SetVector<Value> scalars, gradients, parameters, onDisk;
  for (LocalUpdate *update : group)
    for (Value value : update->inputs) {
      Memory place = getMemory(value);
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (place == Memory::Host)
        inputs[value] = value;
      else if (place == Memory::Disk)
        onDisk.insert(value);
      else if (type && type.getRank() == 0)
        scalars.insert(value);
      else
        (getReadBehind(value) ? parameters : gradients).insert(value);
    }
  bring(group.front()->reduction, parameters.getArrayRef());
  bring(nullptr, gradients.getArrayRef());
  bringScalars(scalars.getArrayRef());
  // A gradient on disk is read when the rest is there, state when it is due.
  SmallVector<Value> atRest, made;
  for (Value value : onDisk)
    (getReadBehind(value) ? atRest : made).push_back(value);
  bring(nullptr, made);
  bring(group.front()->reduction, atRest);
}

/// Sets the insertion point to where all inputs are there and the group before
/// is done.
void HostUpdates::placeHost(UpdateGroup &group) {
  SmallVector<Value> made;
  for (auto &[from, to] : inputs)
    if (!getReadBehind(to))
      made.push_back(to);
  setBehind(builder, step.body, made);
  if (end && builder.getInsertionPoint() != step.body->end() &&
      builder.getInsertionPoint()->isBeforeInBlock(end))
    builder.setInsertionPointAfter(end);
  for (auto &[from, to] : inputs)
    placeViews(builder, to);
}

/// Copies the ops of all updates of a group into one body.
OnHostOp HostUpdates::buildBody(UpdateGroup &group) {
  results.clear();
  SmallVector<Value> values, originals, operands;
  SmallVector<Location> locs;
  for (LocalUpdate *update : group) {
    for (Value value : update->values)
      if (results.insert({value, values.size()}).second)
        values.push_back(value);
    locs.push_back(update->values.front().getLoc());
  }
  for (auto &[from, to] : inputs) {
    originals.push_back(from);
    operands.push_back(to);
  }
  IRMapping mapping;
  OnHostOp host =
      createOnHost(builder, builder.getFusedLoc(locs), originals, operands,
                   ValueRange(values).getTypes(), mapping);
  OpBuilder inside = OpBuilder::atBlockEnd(&host.getBody().front());
  llvm::SetVector<Operation *> ops;
  for (LocalUpdate *update : group)
    ops.insert(update->ops.begin(), update->ops.end());
  SmallVector<Operation *> ordered = ops.takeVector();
  llvm::sort(ordered,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *op : ordered)
    inside.clone(*op, mapping);
  SmallVector<Value> yielded;
  for (Value value : values)
    yielded.push_back(mapping.lookup(value));
  YieldOp::create(inside, host.getLoc(), yielded);
  return host;
}

/// Where what the host computes for an assignment goes: gathers take it on the
/// device.
Memory HostUpdates::getTarget(AssignOp assign, Value value) {
  if (assign.getValue() != value)
    return Memory::Device;
  return getSymbolMemory(info.symbols.lookup(assign.getSymbol()));
}

/// The operand that takes what a rank computes: of the assignment, or of the
/// gather that it is assigned the result of.
static OpOperand *getUse(AssignOp assign, Value value) {
  if (assign.getValue() == value)
    return &assign.getValueMutable();
  auto gathered = cast<OpResult>(assign.getValue());
  return &gathered.getOwner()->getOpOperand(gathered.getResultNumber());
}

/// Lets assignments, and the gathers of new parameters, take the results from
/// where they belong.
void HostUpdates::assignResults(OnHostOp host, UpdateGroup &group) {
  llvm::MapVector<Memory, SmallVector<std::pair<OpOperand *, Value>>> uses;
  // New parameters first: the device waits for them.
  for (Memory memory : {Memory::Host, Memory::Device, Memory::Disk})
    uses[memory] = {};
  for (LocalUpdate *update : group)
    for (auto [assign, value] :
         llvm::zip_equal(update->assigns, update->values))
      uses[getTarget(assign, value)].push_back(
          {getUse(assign, value), host.getResult(results.lookup(value))});
  end = host;
  for (auto &[memory, list] : uses) {
    llvm::SetVector<Value> values;
    for (auto &[use, value] : list)
      values.insert(value);
    if (values.empty())
      continue;
    builder.setInsertionPointAfter(end);
    SmallVector<Value> moved = moveValues(
        builder, host.getLoc(), values.getArrayRef(), Memory::Host, memory);
    IRMapping mapping;
    for (auto [from, to] : llvm::zip_equal(values, moved))
      mapping.map(from, to);
    for (auto &[use, value] : list)
      use->set(mapping.lookup(value));
    end = moved.front().getDefiningOp();
  }
  moveUsersBehind(host);
  for (Operation *op = host->getNextNode(); op != end->getNextNode();
       op = op->getNextNode())
    moveUsersBehind(op);
}

void HostUpdates::moveGroup(UpdateGroup &group) {
  inputs.clear();
  collectInputs(group);
  placeHost(group);
  OnHostOp host = buildBody(group);
  assignResults(host, group);
}

/// The updates of each bucket, or of a layer where sums over micro-batches are
/// reduced one by one, in the order in which gradients are complete.
SmallVector<UpdateGroup> HostUpdates::getGroups() {
  llvm::MapVector<const void *, UpdateGroup> groups;
  for (LocalUpdate &update : step.updates) {
    if (!info.hosted.contains(update.param))
      continue;
    const void *key = update.reduction;
    if (Attribute unit = update.param.getUnitAttr(); unit && update.ofSum)
      key = unit.getAsOpaquePointer();
    groups[key].push_back(&update);
  }
  SmallVector<UpdateGroup> ordered;
  for (auto &[key, group] : groups)
    ordered.push_back(group);
  llvm::stable_sort(ordered, [](const UpdateGroup &a, const UpdateGroup &b) {
    Operation *left = a.front()->reduction, *right = b.front()->reduction;
    return right && (!left || left->isBeforeInBlock(right));
  });
  return ordered;
}

void HostUpdates::run() {
  llvm::DenseSet<Operation *> replaced;
  for (UpdateGroup &group : getGroups()) {
    moveGroup(group);
    for (LocalUpdate *update : group) {
      replaced.insert(update->ops.begin(), update->ops.end());
      for (Value input : update->inputs)
        if (getReadBehind(input))
          replaced.insert(input.getDefiningOp());
    }
  }
  eraseDead(*step.body, std::move(replaced));
}

void zero::moveUpdatesToHost(OffloadModule &info, OffloadStep &step) {
  HostUpdates(info, step).run();
}
