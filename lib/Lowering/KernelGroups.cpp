//===- KernelGroups.cpp - Which ops of a step form a kernel ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What can be fused with what. The rules are those that kernel-fuse can carry
// out without a temporary of the whole tensor.
//
//===----------------------------------------------------------------------===//

#include "KernelGroups.h"
#include "LibraryCalls.h"

#include "dialects/Plan/Plan.h"
#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::zero;

/// A row that is computed once and read several times is on the stack.
static constexpr int64_t kMaxRowBytes = 64 * 1024;
/// More ops or operands than this make no faster kernel, only a larger one.
static constexpr size_t kMaxOps = 48;

//===----------------------------------------------------------------------===//
// Kinds of ops
//===----------------------------------------------------------------------===//

bool zero::isRematerialized(Operation *op) {
  if (op->getNumRegions() == 0 && isPure(op) && op->getNumResults() > 0 &&
      llvm::none_of(op->getResultTypes(), llvm::IsaPred<TensorType>))
    return true;
  if (isa<tensor::EmptyOp, tensor::SplatOp>(op))
    return true;
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return fill.getOutputs()[0].getDefiningOp<tensor::EmptyOp>();
  DenseElementsAttr value;
  return matchPattern(op, m_Constant(&value)) && value.isSplat();
}

bool zero::isKernelOp(Operation *op) {
  if (isa<ZeroDialect, plan::PlanDialect>(op->getDialect()) ||
      op->hasTrait<OpTrait::IsTerminator>() ||
      op->hasTrait<OpTrait::ConstantLike>())
    return false;
  return !isLibraryCall(op) && !isLayoutView(op) && !isRematerialized(op);
}

static RankedTensorType getResultType(Operation *op) {
  return cast<RankedTensorType>(op->getResult(0).getType());
}

static int64_t countElements(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

bool zero::isElementwise(Operation *op) {
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return generic.getNumResults() == 1 && !generic.hasIndexSemantics() &&
           generic.getNumParallelLoops() == generic.getNumLoops() &&
           llvm::all_of(
               generic.getIndexingMapsArray(),
               [](AffineMap map) { return map.isProjectedPermutation(); }) &&
           generic.getIndexingMapsArray().back().isPermutation();
  return op->hasTrait<train::BroadcastElementwise>() ||
         OpTrait::hasElementwiseMappableTraits(op);
}

/// Each element of the result is one element of an operand.
static bool movesElements(Operation *op) {
  return isa<train::BroadcastOp, train::TransposeOp, train::SliceOp>(op);
}

/// A reshape that splits dimensions of a slice: a view of the slice's operand
/// inside of a kernel, while outside the slice would have to be copied first.
static bool splitsSlice(Operation *op) {
  auto reshape = dyn_cast<train::ReshapeOp>(op);
  if (!reshape)
    return false;
  auto slice = reshape.getInput().getDefiningOp<train::SliceOp>();
  auto from = cast<RankedTensorType>(reshape.getInput().getType());
  RankedTensorType to = getResultType(op);
  return slice && slice->hasOneUse() && isKernelOp(slice) &&
         from.getRank() < to.getRank() &&
         getReassociationIndicesForReshape(from, to).has_value();
}

static bool isMap(Operation *op) {
  return op->getNumResults() == 1 &&
         (isElementwise(op) || movesElements(op) || splitsSlice(op));
}

//===----------------------------------------------------------------------===//
// Consumers
//===----------------------------------------------------------------------===//

/// The bytes of a row of `type` over `axes`.
static bool isShortRow(RankedTensorType type, ArrayRef<int64_t> axes) {
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  for (int64_t axis : axes)
    bytes *= type.getDimSize(axis);
  return bytes <= kMaxRowBytes;
}

static bool isShortRow(Value value, int64_t firstAxis) {
  auto type = cast<RankedTensorType>(value.getType());
  return isShortRow(type,
                    llvm::to_vector(llvm::seq(firstAxis, type.getRank())));
}

/// Whether the lowering of `consumer` is a loop over rows of `operand`.
static bool readsRows(Operation *consumer, OpOperand &operand) {
  Value value = operand.get();
  unsigned number = operand.getOperandNumber();
  auto oneAxis = [&](int64_t axis) {
    return isShortRow(cast<RankedTensorType>(value.getType()), axis);
  };
  return TypeSwitch<Operation *, bool>(consumer)
      .Case<train::SoftmaxOp, train::SoftmaxGradOp, train::LogSoftmaxOp,
            train::LogSoftmaxGradOp>(
          [&](auto op) { return oneAxis(op.getAxis()); })
      .Case<train::LayerNormOp, train::NormalizeOp, train::RmsNormOp>(
          [&](auto op) {
            return number == 0 && isShortRow(value, op.getAxis());
          })
      .Case<train::LayerNormGradOp, train::NormalizeGradOp,
            train::RmsNormGradOp>([&](auto op) {
        return number < 2 && isShortRow(value, op.getAxis());
      })
      .Case([&](train::CrossEntropyOp op) {
        return number == 0 && oneAxis(op.getAxis());
      })
      .Case([&](train::CrossEntropyGradOp op) {
        return number == 1 && oneAxis(op.getAxis());
      })
      .Default(false);
}

static bool isReduction(Operation *op) {
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return generic.getNumReductionLoops() > 0;
  return isa<train::ReduceSumOp, train::ReduceMeanOp, train::ReduceMaxOp,
             train::ReduceMinOp, train::ReduceProdOp>(op);
}

/// Whether `producer` can be computed where `operand` reads it.
static bool canFuse(Operation *producer, OpOperand &operand) {
  Operation *consumer = operand.getOwner();
  if (!isMap(producer) || isa<OptimizerUpdate, ElementSum>(consumer))
    return false;
  int64_t count = countElements(producer->getResult(0));
  // A slice is a view: it is read in place by whatever works on tensors.
  bool isView = isa<train::SliceOp>(producer) || splitsSlice(producer);
  if (splitsSlice(consumer))
    return isView;
  if (isElementwise(consumer) || isa<train::TransposeOp>(consumer))
    return count == countElements(consumer->getResult(0));
  if (isReduction(consumer))
    return !isa<linalg::GenericOp>(consumer) || isElementwise(producer);
  if (isa<train::ConcatOp, train::PadOp>(consumer))
    return true;
  if (isa<train::SliceOp, train::BroadcastOp>(consumer))
    return isView;
  return readsRows(consumer, operand);
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

namespace {
class Grouping {
public:
  explicit Grouping(Block &block) : block(block) {}
  SmallVector<KernelGroup> run();

private:
  using Group = llvm::SmallSetVector<Operation *, 8>;

  bool mayJoin(Operation *producer, const Group &group);
  bool mayShare(Operation *producer, const Group &group);
  bool grow(Group &group);

  Block &block;
  llvm::DenseSet<Operation *> grouped;
};
} // namespace

/// Whether `producer`, which ops outside of the group use too, can be one more
/// result: it is computed in the root's own loop, and nobody needs it before.
bool Grouping::mayShare(Operation *producer, const Group &group) {
  Operation *root = group.front();
  if (!isElementwise(producer) || !isElementwise(root) ||
      getResultType(producer).getShape() != getResultType(root).getShape())
    return false;
  return llvm::all_of(producer->getUsers(), [&](Operation *user) {
    Operation *inBlock = block.findAncestorOpInBlock(*user);
    return group.contains(user) || root->isBeforeInBlock(inBlock);
  });
}

bool Grouping::mayJoin(Operation *producer, const Group &group) {
  if (!producer || producer->getBlock() != &block || group.contains(producer) ||
      grouped.contains(producer) ||
      !(isKernelOp(producer) || splitsSlice(producer)))
    return false;
  bool inside = true;
  for (OpOperand &use : producer->getUses()) {
    if (!group.contains(use.getOwner()))
      inside = false;
    else if (!canFuse(producer, use))
      return false;
  }
  return inside || mayShare(producer, group);
}

bool Grouping::grow(Group &group) {
  for (size_t i = 0; i < group.size() && group.size() < kMaxOps; ++i)
    for (Value operand : group[i]->getOperands())
      if (Operation *producer = operand.getDefiningOp();
          mayJoin(producer, group)) {
        group.insert(producer);
        return true;
      }
  return false;
}

SmallVector<KernelGroup> Grouping::run() {
  SmallVector<KernelGroup> groups;
  for (Operation &op : llvm::reverse(block)) {
    if (grouped.contains(&op) || !isKernelOp(&op))
      continue;
    Group group;
    group.insert(&op);
    while (grow(group))
      ;
    KernelGroup kernel;
    kernel.ops.assign(group.begin(), group.end());
    llvm::sort(kernel.ops, [](Operation *lhs, Operation *rhs) {
      return lhs->isBeforeInBlock(rhs);
    });
    grouped.insert(group.begin(), group.end());
    groups.push_back(std::move(kernel));
  }
  std::reverse(groups.begin(), groups.end());
  return groups;
}

SmallVector<KernelGroup> zero::findKernelGroups(Block &block) {
  return Grouping(block).run();
}
