//===- RowListsExclusive.cpp - Masks of which few elements are set --------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The experts that TopK chooses for a token differ. So of a token's choices, of
// which one may be set in the mask of an expert, at most one is.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/RowLists.h"

#include "mlir/IR/OpImplementation.h"

#include "dialects/Train/Train.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::train;
using namespace mlir::zero::onnx_import;

// How far back a mask is looked at.
static constexpr unsigned maxSteps = 16;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

static bool isZero(Value value) {
  DenseElementsAttr attr;
  if (!matchPattern(value, m_Constant(&attr)) || !attr.isSplat())
    return false;
  if (isa<FloatType>(attr.getElementType()))
    return attr.getSplatValue<APFloat>().isZero();
  return attr.getSplatValue<APInt>().isZero();
}

using Axis = std::optional<int64_t>;

/// `axis` of the operand of an operation that only moves elements, as one of
/// its result.
static Axis movedAxis(Operation *op, Axis axis) {
  if (!axis)
    return axis;
  ArrayRef<int64_t> from = shapeOf(op->getOperand(0));
  ArrayRef<int64_t> to = shapeOf(op->getResult(0));
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    return llvm::find(permutation, *axis) - permutation.begin();
  }
  if (isa<BroadcastOp>(op)) {
    int64_t moved = *axis + int64_t(to.size()) - int64_t(from.size());
    return to[moved] == from[*axis] ? Axis(moved) : Axis();
  }
  if (auto gather = dyn_cast<GatherOp>(op)) {
    int64_t along = gather.getAxis();
    int64_t added = int64_t(shapeOf(gather.getIndices()).size()) - 1;
    return along == *axis  ? Axis()
           : along > *axis ? axis
                           : Axis(*axis + added);
  }
  if (isa<SliceOp>(op))
    return axis;
  // A reshape: the dimension with as many elements before it.
  auto product = [](ArrayRef<int64_t> sizes) {
    int64_t result = 1;
    for (int64_t size : sizes)
      result *= size;
    return result;
  };
  int64_t before = product(from.take_front(*axis));
  for (int64_t i = 0, rank = to.size(); i < rank; ++i)
    if (to[i] == from[*axis] && product(to.take_front(i)) == before)
      return i;
  return std::nullopt;
}

static bool moves(Operation *op) {
  return isa_and_nonnull<TransposeOp, BroadcastOp, GatherOp, SliceOp,
                         ReshapeOp>(op);
}

/// The axis along which all elements of `value` differ.
static Axis distinctAxis(Value value, unsigned steps) {
  Operation *op = value.getDefiningOp();
  if (!op || steps > maxSteps)
    return std::nullopt;
  if (auto top = dyn_cast<TopKOp>(op))
    return value == top.getIndices() ? Axis(top.getAxis()) : Axis();
  if (moves(op))
    return movedAxis(op, distinctAxis(op->getOperand(0), steps + 1));
  if (auto cast = dyn_cast<CastOp>(op))
    return getElementTypeOrSelf(cast.getType()).isInteger(64)
               ? distinctAxis(cast.getInput(), steps + 1)
               : Axis();
  // Indices that would count from the end if they were negative: TopK's never
  // are.
  if (auto where = dyn_cast<WhereOp>(op))
    if (auto less = where.getCondition().getDefiningOp<LessOp>())
      if (less.getLhs() == where.getOnFalse() && isZero(less.getRhs()) &&
          shapeOf(where.getOnFalse()) == shapeOf(value))
        return distinctAxis(where.getOnFalse(), steps + 1);
  return std::nullopt;
}

/// The axis of an operand as one of the result of an operation that broadcasts,
/// if it has its full size there.
static Axis broadcastAxis(Operation *op, Value operand, Axis axis) {
  if (!axis)
    return axis;
  int64_t shift = int64_t(shapeOf(op->getResult(0)).size()) -
                  int64_t(shapeOf(operand).size());
  return shapeOf(op->getResult(0))[*axis + shift] == shapeOf(operand)[*axis]
             ? Axis(*axis + shift)
             : Axis();
}

/// The axis along which `a` has different elements and `b` equal ones.
static Axis differingAxis(Operation *op, Value a, Value b, unsigned steps) {
  Axis axis = broadcastAxis(op, a, distinctAxis(a, steps));
  if (!axis)
    return axis;
  int64_t own = *axis - (int64_t(shapeOf(op->getResult(0)).size()) -
                         int64_t(shapeOf(b).size()));
  return own < 0 || shapeOf(b)[own] == 1 ? axis : Axis();
}

static Axis exclusiveAxis(Value value, unsigned steps) {
  Operation *op = value.getDefiningOp();
  if (!op || steps > maxSteps)
    return std::nullopt;
  if (moves(op) && !isa<BroadcastOp>(op))
    return movedAxis(op, exclusiveAxis(op->getOperand(0), steps + 1));
  if (auto equal = dyn_cast<EqualOp>(op)) {
    Axis axis = differingAxis(op, equal.getLhs(), equal.getRhs(), steps + 1);
    return axis ? axis
                : differingAxis(op, equal.getRhs(), equal.getLhs(), steps + 1);
  }
  // 0 stays 0, and only that matters.
  if (auto cast = dyn_cast<CastOp>(op))
    return exclusiveAxis(cast.getInput(), steps + 1);
  if (auto where = dyn_cast<WhereOp>(op))
    if (isZero(where.getOnFalse()))
      return broadcastAxis(op, where.getCondition(),
                           exclusiveAxis(where.getCondition(), steps + 1));
  if (auto isNot = dyn_cast<NotOp>(op))
    if (auto equal = isNot.getInput().getDefiningOp<EqualOp>())
      if (isZero(equal.getRhs()) &&
          shapeOf(equal.getLhs()) == shapeOf(value))
        return exclusiveAxis(equal.getLhs(), steps + 1);
  return std::nullopt;
}

std::optional<int64_t> mlir::zero::onnx_import::findExclusiveAxis(Value mask) {
  return exclusiveAxis(mask, 0);
}
