//===- GpuRowLoop.cpp - What is known of a loop over rows ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows must not depend on each other: a step writes only elements that no other
// step touches, temporaries of its own, or sums over all rows. What a row keeps
// is held in registers where every thread uses only elements of its own.
//
//===----------------------------------------------------------------------===//

#include "GpuRowLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::zero;

/// Elements of a row that a thread should have, and those that fit into its
/// registers.
static constexpr int64_t kFewElements = 16, kMaxElements = 32;
static constexpr int64_t kMaxTeam = 1024;
/// Teams whose sums over rows are added up afterwards.
static constexpr int64_t kMaxSumTeams = 264;

//===----------------------------------------------------------------------===//
// Nests
//===----------------------------------------------------------------------===//

LoopNest::LoopNest(scf::ForOp outer) : outer(outer), inner(outer) {
  while (true) {
    body = inner.getBody();
    std::optional<int64_t> low = getConstantIntValue(inner.getLowerBound());
    std::optional<int64_t> high = getConstantIntValue(inner.getUpperBound());
    std::optional<int64_t> step = getConstantIntValue(inner.getStep());
    isPlain &= low == 0 && step == 1 && high && *high >= 0;
    variables.push_back(inner.getInductionVar());
    extents.push_back(high.value_or(0));
    auto next = dyn_cast<scf::ForOp>(body->front());
    if (!next || body->getOperations().size() != 2 ||
        !llvm::equal(next.getInitArgs(), inner.getRegionIterArgs()) ||
        !llvm::equal(body->getTerminator()->getOperands(), next.getResults()))
      return;
    inner = next;
  }
}

int64_t LoopNest::countSteps() const {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  return count;
}

bool LoopNest::isOwn(ArrayRef<OpFoldResult> indices) const {
  for (auto [variable, extent] : llvm::zip_equal(variables, extents)) {
    OpFoldResult own = Value(variable);
    if (extent != 1 && !llvm::is_contained(indices, own))
      return false;
  }
  return true;
}

bool LoopNest::isOwn(Value buffer) const {
  while (Operation *def = buffer.getDefiningOp()) {
    if (auto subview = dyn_cast<memref::SubViewOp>(def)) {
      SmallVector<OpFoldResult> single;
      for (auto [offset, size] :
           llvm::zip_equal(subview.getMixedOffsets(), subview.getMixedSizes()))
        if (getConstantIntValue(size) == 1)
          single.push_back(offset);
      if (isOwn(single))
        return true;
    }
    if (!isa<ViewLikeOpInterface>(def))
      return false;
    buffer = cast<ViewLikeOpInterface>(def).getViewSource();
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

RowLoop::RowLoop(GpuMapper &mapper, size_t step)
    : mapper(mapper), step(step), loc(mapper.steps[step].op->getLoc()),
      nest(cast<scf::ForOp>(mapper.steps[step].op)) {}

/// Whether `value` is used in the loop only, also by way of views.
static bool isUsedInside(Value value, Operation *loop) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (loop->isAncestor(user))
      return true;
    return isa<ViewLikeOpInterface>(user) &&
           llvm::all_of(user->getResults(),
                        [&](Value view) { return isUsedInside(view, loop); });
  });
}

bool RowLoop::isPrivate(Value base) const {
  return base.getDefiningOp<memref::AllocaOp>() &&
         isUsedInside(base, mapper.steps[step].op);
}

int64_t RowLoop::countElements(linalg::GenericOp op) const {
  if (op.getNumReductionLoops() == op.getNumLoops())
    return countLoops(op);
  return countLoops(op, utils::IteratorType::parallel);
}

/// Writes go to temporaries of the row or to elements of its own.
bool RowLoop::analyzeWrite(Value buffer, ArrayRef<OpFoldResult> indices) {
  Value base = getBase(buffer);
  if (isPrivate(base))
    return true;
  if (!nest.isOwn(buffer) && !nest.isOwn(indices))
    return false;
  // Two writers of an element may be different threads.
  if (!written.insert(base))
    mixed.insert(base);
  return true;
}

bool RowLoop::analyzeGeneric(linalg::GenericOp op) {
  for (OpOperand *input : op.getDpsInputOperands())
    if (isa<MemRefType>(input->get().getType()))
      read.insert(getBase(input->get()));
  for (auto [index, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    Value base = getBase(init.get());
    bool reads = op.payloadUsesValueFromOperand(&init);
    bool isSum = op.getNumLoops() > 0 && isScalarBuffer(init.get());
    if (isSum && (!isPrivate(base) || !getCombiner(op, index)))
      return false;
    if (analyzeWrite(init.get(), {})) {
      if (reads)
        read.insert(base);
      continue;
    }
    Operation *combiner = getCombiner(op, index);
    bool accumulates = combiner && reads && isLinear(init) &&
                       op.getNumParallelLoops() == op.getNumLoops() &&
                       !accumulators.contains(base);
    if (!accumulates)
      return false;
    accumulators[base] = combiner;
  }
  if (op.getNumLoops() > 0)
    elements = std::max(elements, countElements(op));
  // What is reduced to scalars is all of the operation.
  return op.getNumLoops() == 0 ||
         op.getNumReductionLoops() == op.getNumLoops() ||
         llvm::none_of(op.getOutputs(), isScalarBuffer);
}

bool RowLoop::analyzeOp(Operation &op) {
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return analyzeGeneric(generic);
  if (auto store = dyn_cast<memref::StoreOp>(op)) {
    SmallVector<OpFoldResult> indices(store.getIndices());
    return analyzeWrite(store.getMemRef(), indices);
  }
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    read.insert(getBase(load.getMemRef()));
    return true;
  }
  if (isa<scf::ForOp, scf::IfOp>(op)) {
    WalkResult result = op.walk([&](Operation *inner) {
      if (inner == &op || isa<scf::ForOp, scf::IfOp>(inner))
        return WalkResult::advance();
      storesInside |= isa<memref::StoreOp>(inner);
      bool fine = !isa<linalg::GenericOp>(inner) && analyzeOp(*inner);
      return fine ? WalkResult::advance() : WalkResult::interrupt();
    });
    return !result.wasInterrupted();
  }
  return isPure(&op) || isa<scf::YieldOp>(op);
}

/// Whether each read of `base` in the loop is of the step's own elements.
static bool readsOwn(const LoopNest &nest, Value base) {
  bool own = true;
  auto outer = nest.outer;
  outer.walk([&](Operation *op) {
    if (auto load = dyn_cast<memref::LoadOp>(op))
      if (getBase(load.getMemRef()) == base) {
        SmallVector<OpFoldResult> indices(load.getIndices());
        own &= nest.isOwn(load.getMemRef()) || nest.isOwn(indices);
      }
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      for (OpOperand &operand : generic->getOpOperands())
        if (isa<MemRefType>(operand.get().getType()) &&
            getBase(operand.get()) == base &&
            generic.payloadUsesValueFromOperand(&operand))
          own &= nest.isOwn(operand.get());
      generic.getBody()->walk([&](memref::LoadOp load) {
        own &= getBase(load.getMemRef()) != base;
      });
    }
  });
  return own;
}

/// Whether a step uses memory of its own.
bool RowLoop::usesTemporaries() {
  bool uses = false;
  nest.outer.walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      uses |= isa<MemRefType>(operand.getType()) && isPrivate(getBase(operand));
  });
  return uses;
}

bool RowLoop::analyze() {
  ArrayRef<ScalarResult> carried = mapper.results[nest.outer];
  if (!nest.isPlain ||
      llvm::any_of(carried, [](const ScalarResult &r) { return !r.combiner; }))
    return false;
  for (Operation &op : nest.getBody())
    if (!analyzeOp(op))
      return false;
  for (auto &[base, combiner] : accumulators)
    if (read.contains(base) || written.contains(base))
      return false;
  for (Value base : written) {
    if (!read.contains(base))
      continue;
    if (!readsOwn(nest, base))
      return false;
    mixed.insert(base);
  }
  if (elements == 0)
    return accumulators.empty() && carried.empty() && !usesTemporaries();
  // All threads of a team run such a loop.
  if (storesInside)
    return false;
  for (auto op : nest.getBody().getOps<linalg::GenericOp>())
    for (Value out : op.getOutputs())
      if (accumulators.contains(getBase(out)) && countElements(op) != elements)
        return false;
  chooseTeam();
  holdTemporaries();
  return accumulators.empty() || unrolled;
}

//===----------------------------------------------------------------------===//
// Teams and temporaries
//===----------------------------------------------------------------------===//

static SmallVector<linalg::GenericOp> getLoops(Block &body) {
  SmallVector<linalg::GenericOp> ops;
  for (auto op : body.getOps<linalg::GenericOp>())
    if (op.getNumLoops() > 0)
      ops.push_back(op);
  return ops;
}

void RowLoop::chooseTeam() {
  SmallVector<linalg::GenericOp> ops = getLoops(nest.getBody());
  width = chooseWidth(ops);
  for (linalg::GenericOp op : ops)
    if (countElements(op) != elements ||
        (op.getNumReductionLoops() != op.getNumLoops() &&
         op.getIteratorTypesArray().back() == utils::IteratorType::reduction))
      width = 1;
  int64_t pieces = divideUp(elements, width);
  if (elements > kWarpSize * kFewElements)
    team = std::clamp<int64_t>(
        llvm::PowerOf2Ceil(divideUp(elements, kFewElements)), 4 * kWarpSize,
        kMaxTeam);
  turns = divideUp(pieces, team);
  unrolled = turns * width <= kMaxElements;
}

/// All uses of a temporary, by way of views too, in `uses`.
static void getUses(Value value, SmallVectorImpl<OpOperand *> &uses) {
  for (OpOperand &use : value.getUses()) {
    if (auto view = dyn_cast<ViewLikeOpInterface>(use.getOwner()))
      for (Value result : view->getResults())
        getUses(result, uses);
    else
      uses.push_back(&use);
  }
}

Holder RowLoop::chooseHolder(Value base) const {
  SmallVector<OpOperand *> uses;
  getUses(base, uses);
  bool own = llvm::all_of(uses, [&](OpOperand *use) {
    auto op = dyn_cast<linalg::GenericOp>(use->getOwner());
    return op && op->getBlock() == &nest.getBody() && isLinear(*use) &&
           countElements(op) == elements;
  });
  if (!own)
    return Holder::Memory;
  return unrolled ? Holder::Registers : Holder::Own;
}

void RowLoop::holdTemporaries() {
  nest.outer.walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (isa<MemRefType>(operand.getType()) && !isScalarBuffer(operand))
        if (Value base = getBase(operand); isPrivate(base))
          temporaries.insert(base);
  });
  for (Value base : temporaries) {
    holders[base] = chooseHolder(base);
    if (holders[base] == Holder::Memory)
      mixed.insert(base);
  }
  int64_t rows = nest.countSteps();
  int64_t perBlock = team == kWarpSize ? 4 : 1;
  bool sums = !accumulators.empty() || !mapper.results[nest.outer].empty();
  int64_t most = sums ? kMaxSumTeams : 4 * kMaxBlocks;
  teams =
      std::min(divideUp(rows, perBlock), divideUp(most, perBlock)) * perBlock;
  for (Value base : temporaries) {
    if (holders[base] == Holder::Registers)
      continue;
    auto type = cast<MemRefType>(base.getType());
    int64_t bytes = std::max<int64_t>(1, type.getElementTypeBitWidth() / 8) *
                    type.getNumElements();
    offsets[base] = mapper.addScratchBytes(teams * llvm::alignTo(bytes, 16));
  }
}
