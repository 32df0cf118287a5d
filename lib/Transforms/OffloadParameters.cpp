//===- OffloadParameters.cpp - what the device takes from elsewhere -------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Brings parameters, and gradients kept elsewhere, to the device before they
// are gathered or used, and takes what the device computes to where it lives.
//
//===----------------------------------------------------------------------===//

#include "OffloadStep.h"

using namespace mlir;
using namespace mlir::zero;

namespace {
/// Values that come to the device by one transfer, before `first`.
struct Need {
  Operation *first = nullptr;
  llvm::SetVector<Value> values;
  SmallVector<OpOperand *> uses;
};

class DeviceFeeder {
public:
  DeviceFeeder(OffloadModule &info, OffloadStep &step);
  void run();

private:
  using Key = std::pair<const void *, int>;
  Key getKey(OpOperand &use);
  void feed(Need &need);

  OffloadModule &info;
  OffloadStep &step;
  llvm::DenseSet<Operation *> forward;
  llvm::DenseMap<Operation *, LocalUpdate *> updateOf;
};
} // namespace

DeviceFeeder::DeviceFeeder(OffloadModule &info, OffloadStep &step)
    : info(info), step(step), forward(findForwardOps(step, info.symbols)) {
  for (LocalUpdate &update : step.updates)
    if (!info.hosted.contains(update.param))
      for (Operation *op : update.ops)
        updateOf[op] = &update;
}

/// What comes up together: what a bucket of updates takes, the operands of a
/// collective or of a norm, and the parameters of a layer once in the forward
/// and once in the backward pass.
DeviceFeeder::Key DeviceFeeder::getKey(OpOperand &use) {
  Operation *op = use.getOwner();
  enum { Collective, Update, Forward, Backward };
  if (LocalUpdate *update = updateOf.lookup(op))
    return {update->reduction ? static_cast<const void *>(update->reduction)
                              : update->param.getOperation(),
            Update};
  ReadOp read = getReadBehind(use.get());
  if (!read || isa<ShardedType>(use.get().getType()))
    return {op, Collective};
  auto param = info.symbols.lookup<ParamOp>(read.getSymbol());
  Attribute unit = read.getSymbolAttr();
  if (param && param.getUnitAttr())
    unit = param.getUnitAttr();
  return {unit.getAsOpaquePointer(), forward.contains(op) ? Forward : Backward};
}

void DeviceFeeder::feed(Need &need) {
  OpBuilder builder(need.first);
  for (Value value : need.values)
    placeViews(builder, value);
  SmallVector<Value> values = llvm::to_vector(need.values);
  SmallVector<Value> moved =
      moveAll(builder, need.first->getLoc(), values, Memory::Device);
  IRMapping mapping;
  for (auto [from, to] : llvm::zip_equal(values, moved))
    mapping.map(from, to);
  for (OpOperand *use : need.uses)
    use->set(mapping.lookup(use->get()));
}

void DeviceFeeder::run() {
  llvm::MapVector<Key, Need> needs;
  for (Operation &op : *step.body) {
    if (isa<ReadOp, LocalOp, TransferOp, OnHostOp, AssignOp, ReleaseOp>(op))
      continue;
    for (OpOperand &use : op.getOpOperands()) {
      if (getMemory(use.get()) == Memory::Device)
        continue;
      Need &need = needs[getKey(use)];
      if (!need.first)
        need.first = &op;
      need.values.insert(use.get());
      need.uses.push_back(&use);
    }
  }
  for (auto &[key, need] : needs)
    feed(need);
}

void zero::bringToDevice(OffloadModule &info, OffloadStep &step) {
  DeviceFeeder(info, step).run();
}

void zero::moveAssigned(OffloadModule &info, OffloadStep &step) {
  llvm::DenseMap<Value, Operation *> bucketOf;
  for (LocalUpdate &update : step.updates)
    for (AssignOp assign : update.assigns)
      bucketOf[assign.getValue()] = update.reduction;
  using Key = std::tuple<Operation *, Memory, Memory>;
  llvm::MapVector<Key, SmallVector<AssignOp>> groups;
  for (auto assign : step.body->getOps<AssignOp>()) {
    Memory from = getMemory(assign.getValue());
    Memory to = getSymbolMemory(info.symbols.lookup(assign.getSymbol()));
    bool isFill = to == Memory::Host && isZeroSplat(assign.getValue());
    if (from == to || isFill)
      continue;
    Operation *bucket = assign.getValue().getDefiningOp();
    if (!isa_and_nonnull<AllGatherOp>(bucket))
      bucket = bucketOf.lookup(assign.getValue());
    groups[{bucket ? bucket : assign.getOperation(), from, to}].push_back(
        assign);
  }
  OpBuilder builder(info.module.getContext());
  for (auto &[key, assigns] : groups) {
    llvm::SetVector<Value> values;
    for (AssignOp assign : assigns)
      values.insert(assign.getValue());
    setBehind(builder, step.body, values.getArrayRef());
    SmallVector<Value> moved =
        moveValues(builder, assigns.front().getLoc(), values.getArrayRef(),
                   std::get<1>(key), std::get<2>(key));
    IRMapping mapping;
    for (auto [from, to] : llvm::zip_equal(values, moved))
      mapping.map(from, to);
    for (AssignOp assign : assigns)
      assign.getValueMutable().assign(mapping.lookup(assign.getValue()));
    moveUsersBehind(moved.front().getDefiningOp());
  }
}
