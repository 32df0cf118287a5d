//===- LibraryCalls.cpp - Ops that are library calls ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Strides of reshapes, transposes, slices and broadcasts.
//
//===----------------------------------------------------------------------===//

#include "LibraryCalls.h"

#include "dialects/Train/Train.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::zero;

StridedLayout StridedLayout::contiguous(ArrayRef<int64_t> shape) {
  StridedLayout layout;
  layout.sizes.assign(shape.begin(), shape.end());
  layout.strides.assign(shape.size(), 1);
  for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; --i)
    layout.strides[i] =
        layout.strides[i + 1] * std::max<int64_t>(shape[i + 1], 1);
  return layout;
}

bool StridedLayout::isContiguous() const {
  int64_t expected = 1;
  for (auto [size, stride] :
       llvm::zip_equal(llvm::reverse(sizes), llvm::reverse(strides))) {
    if (size != 1 && stride != expected)
      return false;
    expected *= std::max<int64_t>(size, 1);
  }
  return true;
}

/// Whether the libraries take the operands and results of a product or a
/// convolution: no f64, no integers, nothing empty, at most three spatial
/// dimensions.
static bool hasLibraryTypes(Operation *op) {
  constexpr int64_t maxConvRank = 5;
  bool isProduct = isa<train::MatmulOp, train::GemmOp>(op);
  auto fits = [&](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    Type element = tensor.getElementType();
    return (element.isF32() || element.isF16() || element.isBF16()) &&
           tensor.getNumElements() != 0 &&
           (isProduct || tensor.getRank() <= maxConvRank);
  };
  return llvm::all_of(op->getOperandTypes(), fits) &&
         llvm::all_of(op->getResultTypes(), fits);
}

bool mlir::zero::isLibraryCall(Operation *op) {
  if (isa<train::MatmulOp, train::GemmOp, train::ConvOp, train::ConvGradInputOp,
          train::ConvGradWeightOp>(op))
    return hasLibraryTypes(op);
  return isa<train::AttentionOp, train::AttentionGradOp>(op);
}

/// Dimensions of `source` merged where their strides allow it: each group is
/// one run of memory with a constant step. Sizes of 1 are dropped.
static StridedLayout coalesce(const StridedLayout &source) {
  StridedLayout merged;
  merged.offset = source.offset;
  for (auto [size, stride] : llvm::zip_equal(source.sizes, source.strides)) {
    if (size == 1)
      continue;
    if (!merged.sizes.empty() && merged.strides.back() == size * stride) {
      merged.sizes.back() *= size;
      merged.strides.back() = stride;
      continue;
    }
    merged.sizes.push_back(size);
    merged.strides.push_back(stride);
  }
  return merged;
}

/// A reshape keeps strides if every group of the new dimensions is one run.
static std::optional<StridedLayout> reshapeThrough(const StridedLayout &source,
                                                   ArrayRef<int64_t> shape) {
  if (source.isContiguous()) {
    StridedLayout result = StridedLayout::contiguous(shape);
    result.offset = source.offset;
    return result;
  }
  StridedLayout runs = coalesce(source), result;
  result.offset = source.offset;
  result.sizes.assign(shape.begin(), shape.end());
  result.strides.assign(shape.size(), 0);
  int64_t dim = static_cast<int64_t>(shape.size()) - 1;
  for (auto [size, stride] : llvm::zip_equal(llvm::reverse(runs.sizes),
                                             llvm::reverse(runs.strides))) {
    int64_t covered = 1;
    while (dim >= 0 && (covered < size || shape[dim] == 1)) {
      result.strides[dim] = covered * stride;
      covered *= shape[dim--];
    }
    if (covered != size)
      return std::nullopt;
  }
  return result;
}

static StridedLayout transposeThrough(const StridedLayout &source,
                                      ArrayRef<int64_t> permutation) {
  StridedLayout result;
  result.offset = source.offset;
  for (int64_t dim : permutation) {
    result.sizes.push_back(source.sizes[dim]);
    result.strides.push_back(source.strides[dim]);
  }
  return result;
}

static StridedLayout sliceThrough(const StridedLayout &source,
                                  train::SliceOp op) {
  StridedLayout result = source;
  auto shape = cast<ShapedType>(op->getResult(0).getType()).getShape();
  for (auto [dim, start] : llvm::enumerate(op.getStarts())) {
    result.offset += start * source.strides[dim];
    result.strides[dim] *= op.getStrides()[dim];
    result.sizes[dim] = shape[dim];
  }
  return result;
}

StridedLayout mlir::zero::broadcastLayout(const StridedLayout &source,
                                          ArrayRef<int64_t> shape) {
  StridedLayout result;
  result.offset = source.offset;
  result.sizes.assign(shape.begin(), shape.end());
  result.strides.assign(shape.size(), 0);
  size_t lead = shape.size() - source.sizes.size();
  for (size_t dim = 0; dim < source.sizes.size(); ++dim)
    if (source.sizes[dim] == shape[lead + dim])
      result.strides[lead + dim] = source.strides[dim];
  return result;
}

std::optional<StridedLayout>
mlir::zero::viewThrough(Operation *op, const StridedLayout &source) {
  if (op->getNumResults() != 1)
    return std::nullopt;
  auto type = dyn_cast<ShapedType>(op->getResult(0).getType());
  if (!type)
    return std::nullopt;
  return TypeSwitch<Operation *, std::optional<StridedLayout>>(op)
      .Case([&](train::ReshapeOp) {
        return reshapeThrough(source, type.getShape());
      })
      .Case([&](train::TransposeOp transpose) {
        return transposeThrough(source, transpose.getPermutation());
      })
      .Case([&](train::SliceOp slice) { return sliceThrough(source, slice); })
      .Case([&](train::BroadcastOp) {
        return broadcastLayout(source, type.getShape());
      })
      .Default(std::nullopt);
}

static bool changesLayout(Operation *op) {
  return isa<train::ReshapeOp, train::TransposeOp, train::SliceOp,
             train::BroadcastOp>(op);
}

/// Whether attention can read an operand with this layout: cuDNN loads 16 bytes
/// of bf16 or f16 at a time.
static bool isAttentionLayout(const StridedLayout &layout) {
  constexpr int64_t kElements = 8;
  if (layout.sizes.empty() || layout.strides.back() != 1 ||
      layout.offset % kElements != 0)
    return false;
  return llvm::all_of(ArrayRef(layout.strides).drop_back(),
                      [](int64_t stride) { return stride % kElements == 0; });
}

static bool canBeView(Operation *op, const StridedLayout &source);

/// Whether the user of `use` reads it with any strides, or with these.
static bool takesLayout(OpOperand &use, const StridedLayout &layout) {
  Operation *user = use.getOwner();
  if (isa<train::MatmulOp, train::GemmOp>(user))
    return isLibraryCall(user);
  if (auto attention = dyn_cast<train::AttentionOp>(user))
    return use.get() != attention.getMask() && isAttentionLayout(layout);
  if (auto grad = dyn_cast<train::AttentionGradOp>(user))
    return use.get() != grad.getMask() && use.get() != grad.getLogsumexp() &&
           isAttentionLayout(layout);
  return changesLayout(user) && canBeView(user, layout);
}

/// Whether `op` can be a view where its operand has layout `source`: its
/// result is contiguous all the same, or all that use it take strides.
static bool canBeView(Operation *op, const StridedLayout &source) {
  std::optional<StridedLayout> layout = viewThrough(op, source);
  if (!layout)
    return false;
  return layout->isContiguous() ||
         llvm::all_of(op->getResult(0).getUses(), [&](OpOperand &use) {
           return takesLayout(use, *layout);
         });
}

bool mlir::zero::isLayoutView(Operation *op) {
  SmallVector<Operation *> chain;
  for (Operation *at = op; at && changesLayout(at);
       at = at->getOperand(0).getDefiningOp())
    chain.push_back(at);
  if (chain.empty())
    return false;
  StridedLayout layout = StridedLayout::contiguous(
      cast<ShapedType>(chain.back()->getOperand(0).getType()).getShape());
  bool isView = false;
  for (Operation *at : llvm::reverse(chain)) {
    isView = canBeView(at, layout);
    // An op that is no view becomes a kernel, with a contiguous result.
    layout = isView
                 ? *viewThrough(at, layout)
                 : StridedLayout::contiguous(
                       cast<ShapedType>(at->getResult(0).getType()).getShape());
  }
  return isView;
}
