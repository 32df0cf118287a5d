//===- OffloadGradients.cpp - gradients outside the device ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Adds to accumulators on the host, and keeps reduced gradients elsewhere until
// the norm and the updates read them.
//
//===----------------------------------------------------------------------===//

#include "OffloadStep.h"

using namespace mlir;
using namespace mlir::zero;

namespace {
class GradientMover {
public:
  GradientMover(OffloadModule &info, OffloadStep &step)
      : info(info), step(step), builder(info.module.getContext()) {}

  void run();

private:
  using SumGroup = SmallVector<LocalSum *>;
  void addOnHost(SumGroup &group);
  void resetOnHost(SumGroup &group);
  void moveReduced();
  void replace(Value from, Value to, ArrayRef<Operation *> except);
  void sumOnHost(Operation *sum);

  OffloadModule &info;
  OffloadStep &step;
  OpBuilder builder;
};
} // namespace

/// Lets the users of a gradient, and what is known of updates, take its copy.
void GradientMover::replace(Value from, Value to,
                            ArrayRef<Operation *> except) {
  for (OpOperand &use : llvm::make_early_inc_range(from.getUses()))
    if (!llvm::is_contained(except, use.getOwner()))
      use.set(to);
  for (LocalUpdate &update : step.updates) {
    SmallVector<Value> inputs = update.inputs.takeVector();
    llvm::replace(inputs, from, to);
    update.inputs.insert(inputs.begin(), inputs.end());
  }
}

/// What is added to the sum so far, before it was made as wide as that: fewer
/// bytes cross.
static Value getAddend(const LocalSum &sum, SymbolTable &symbols) {
  for (Value operand : sum.add->getOperands())
    if (!getReadAccumulator(operand, symbols))
      return operand;
  return {};
}

/// The cast that makes `gradient` wider and is of no other use; null where
/// there is none.
static Operation *getWidening(Value gradient) {
  Operation *op = gradient.getDefiningOp();
  if (!op || op->getNumOperands() != 1 || op->getNumResults() != 1 ||
      !op->hasTrait<OpTrait::Elementwise>() || !isMemoryEffectFree(op) ||
      !gradient.hasOneUse())
    return nullptr;
  return getTensorBytes(op->getOperand(0).getType()) <
                 getTensorBytes(gradient.getType())
             ? op
             : nullptr;
}

/// Adds the gradients of a layer to their accumulators in one zero.on_host.
void GradientMover::addOnHost(SumGroup &group) {
  SmallVector<Value> gradients, accumulators, originals;
  SmallVector<Operation *> ops;
  SmallVector<Type> types;
  for (LocalSum *sum : group) {
    Value gradient = getAddend(*sum, info.symbols);
    if (Operation *cast = getWidening(gradient)) {
      ops.push_back(cast);
      gradient = cast->getOperand(0);
    }
    gradients.push_back(gradient);
    ops.push_back(sum->add);
    types.push_back(sum->add->getResult(0).getType());
    for (Value operand : sum->add->getOperands())
      if (getReadAccumulator(operand, info.symbols))
        accumulators.push_back(operand);
  }
  Location loc = group.front()->add->getLoc();
  setBehind(builder, step.body, gradients);
  llvm::append_range(originals, gradients);
  llvm::append_range(originals, accumulators);
  for (Value accumulator : accumulators)
    placeViews(builder, accumulator);
  SmallVector<Value> operands = moveAll(builder, loc, originals, Memory::Host);
  IRMapping mapping;
  OnHostOp host =
      createOnHost(builder, loc, originals, operands, types, mapping);
  OpBuilder inside = OpBuilder::atBlockEnd(&host.getBody().front());
  SmallVector<Value> yielded;
  for (Operation *op : ops)
    inside.clone(*op, mapping);
  for (LocalSum *sum : group)
    yielded.push_back(mapping.lookup(sum->add->getResult(0)));
  YieldOp::create(inside, loc, yielded);
  for (auto [sum, result] : llvm::zip_equal(group, host.getResults()))
    replace(sum->add->getResult(0), result, {});
  moveUsersBehind(host);
  llvm::DenseSet<Operation *> dead(ops.begin(), ops.end());
  eraseDead(*step.body, std::move(dead));
}

/// Makes the zeros that accumulators on disk are assigned after the step; those
/// in host memory are filled in where they are.
void GradientMover::resetOnHost(SumGroup &group) {
  SmallVector<AssignOp> assigns;
  SmallVector<Type> types;
  for (LocalSum *sum : group)
    if (getSymbolMemory(sum->accumulator) == Memory::Disk &&
        isZeroSplat(sum->assign.getValue())) {
      assigns.push_back(sum->assign);
      types.push_back(sum->assign.getValue().getType());
    }
  if (assigns.empty())
    return;
  builder.setInsertionPoint(assigns.front());
  IRMapping mapping;
  OnHostOp host =
      createOnHost(builder, assigns.front().getLoc(), {}, {}, types, mapping);
  OpBuilder inside = OpBuilder::atBlockEnd(&host.getBody().front());
  SmallVector<Value> zeros;
  llvm::DenseSet<Operation *> dead;
  for (auto [assign, result] : llvm::zip_equal(assigns, host.getResults())) {
    Operation *constant = assign.getValue().getDefiningOp();
    zeros.push_back(inside.clone(*constant)->getResult(0));
    assign.getValueMutable().assign(result);
    dead.insert(constant);
  }
  YieldOp::create(inside, host.getLoc(), zeros);
  moveUsersBehind(host);
  eraseDead(*step.body, std::move(dead));
}

/// Keeps each bucket of reduced gradients where the rules say.
void GradientMover::moveReduced() {
  llvm::MapVector<std::pair<Operation *, Memory>, llvm::SetVector<Value>> moved;
  for (LocalUpdate &update : step.updates) {
    auto it = info.gradients.find(update.param);
    if (it == info.gradients.end() || !update.reduction)
      continue;
    for (Value value : update.inputs)
      if (isa_and_nonnull<AllReduceOp, ReduceScatterOp>(
              value.getDefiningOp()) &&
          cast<RankedTensorType>(value.getType()).getRank() > 0)
        moved[{value.getDefiningOp(), it->second}].insert(value);
  }
  for (auto &[key, values] : moved) {
    builder.setInsertionPointAfter(key.first);
    SmallVector<Value> copies =
        moveValues(builder, key.first->getLoc(), values.getArrayRef(),
                   Memory::Device, key.second);
    Operation *first = key.first->getNextNode();
    for (auto [value, copy] : llvm::zip_equal(values, copies))
      replace(value, copy, {first});
  }
}

/// A norm of gradients that all lie outside of the device is taken there; else
/// they come up for it.
void GradientMover::sumOnHost(Operation *sum) {
  SmallVector<Value> operands(sum->getOperands());
  auto isElsewhere = [](Value value) {
    return getMemory(value) != Memory::Device;
  };
  if (!llvm::all_of(operands, isElsewhere))
    return;
  builder.setInsertionPoint(sum);
  Location loc = sum->getLoc();
  llvm::SetVector<Value> unique(operands.begin(), operands.end());
  SmallVector<Value> onHost =
      moveAll(builder, loc, unique.getArrayRef(), Memory::Host);
  IRMapping mapping;
  OnHostOp host = createOnHost(builder, loc, unique.getArrayRef(), onHost,
                               sum->getResultTypes(), mapping);
  OpBuilder inside = OpBuilder::atBlockEnd(&host.getBody().front());
  Operation *copy = inside.clone(*sum, mapping);
  YieldOp::create(inside, loc, copy->getResults());
  SmallVector<Value> moved =
      moveValues(builder, loc, llvm::to_vector_of<Value>(host.getResults()),
                 Memory::Host, Memory::Device);
  sum->replaceAllUsesWith(moved);
  sum->erase();
}

void GradientMover::run() {
  // By layer where the gradients of one are complete together.
  llvm::MapVector<StringRef, SumGroup> groups;
  for (LocalSum &sum : step.sums) {
    if (getSymbolMemory(sum.accumulator) == Memory::Device)
      continue;
    auto param = info.symbols.lookup<ParamOp>(*sum.accumulator.getParam());
    groups[param.getUnit().value_or(param.getSymName())].push_back(&sum);
  }
  for (auto &[unit, group] : groups) {
    resetOnHost(group);
    addOnHost(group);
  }
  moveReduced();
  SmallVector<Operation *> norms;
  for (Operation &op : *step.body)
    if (isa<ElementSum>(op))
      norms.push_back(&op);
  for (Operation *norm : norms)
    sumOnHost(norm);
}

void zero::moveGradients(OffloadModule &info, OffloadStep &step) {
  if (!info.gradients.empty())
    GradientMover(info, step).run();
}
