//===- KernelPlaceBuffers.cpp - A kernel's temporaries and loops ----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// After bufferization: temporaries move to the stack frame, copies become
// linalg operations, and elementwise operations over contiguous buffers get as
// few loops as possible, so that LLVM vectorizes one long loop instead of many
// short ones.
//
//===----------------------------------------------------------------------===//

#include "zero/Lowering/Kernels.h"
#include "zero/Lowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"

namespace mlir::zero {
#define GEN_PASS_DEF_KERNELPLACEBUFFERS
#include "zero/Lowering/Passes.h.inc"
} // namespace mlir::zero

using namespace mlir;
using namespace mlir::zero;

//===----------------------------------------------------------------------===//
// Allocations and copies
//===----------------------------------------------------------------------===//

namespace {
/// Where a kernel's temporaries lie: on the stack as long as they fit, then in
/// the memory that its caller gives it, if any.
class Temporaries {
public:
  Temporaries(func::FuncOp func, int64_t maxStackBytes)
      : func(func), layout(DataLayout::closest(func)),
        maxStackBytes(maxStackBytes) {
    if (func->hasAttr(kScratchResultAttr))
      scratch = func.getArguments().back();
  }

  /// Null, with an error, where there is no room.
  Value place(OpBuilder &b, memref::AllocOp alloc);

private:
  func::FuncOp func;
  DataLayout layout;
  int64_t maxStackBytes, stackBytes = 0, scratchBytes = 0;
  Value scratch;
};
} // namespace

Value Temporaries::place(OpBuilder &b, memref::AllocOp alloc) {
  constexpr int64_t alignment = 64;
  MemRefType type = alloc.getType();
  int64_t bytes = type.getNumElements() *
                  layout.getTypeSize(type.getElementType()).getFixedValue();
  if (stackBytes + bytes <= maxStackBytes) {
    stackBytes += bytes;
    return memref::AllocaOp::create(b, alloc.getLoc(), type,
                                    b.getI64IntegerAttr(alignment));
  }
  int64_t offset = llvm::alignTo(scratchBytes, alignment);
  scratchBytes = offset + bytes;
  if (scratch &&
      scratchBytes <= cast<MemRefType>(scratch.getType()).getNumElements()) {
    Value begin = arith::ConstantIndexOp::create(b, alloc.getLoc(), offset);
    return memref::ViewOp::create(b, alloc.getLoc(), type, scratch, begin,
                                  ValueRange());
  }
  func.emitOpError("needs a temporary of type ")
      << type << ", which does not fit into the " << maxStackBytes
      << " bytes of a kernel's stack frame";
  return {};
}

/// Moves all allocations of `func` to its entry block. A buffer of a loop body
/// carries nothing from one iteration to the next, so that one buffer serves
/// all of them.
static LogicalResult placeAllocations(func::FuncOp func, int64_t maxBytes) {
  OpBuilder b = OpBuilder::atBlockBegin(&func.getBody().front());
  Temporaries temporaries(func, maxBytes);
  SmallVector<memref::AllocOp> allocs;
  func.walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
  for (memref::AllocOp alloc : allocs) {
    if (!alloc.getType().hasStaticShape())
      return func.emitOpError("needs a temporary of dynamic size ")
             << alloc.getType();
    Value local = temporaries.place(b, alloc);
    if (!local)
      return failure();
    alloc.replaceAllUsesWith(local);
  }
  // Only now: the builder stands before the first of them where a kernel
  // begins with one.
  for (memref::AllocOp alloc : allocs)
    alloc.erase();
  SmallVector<memref::DeallocOp> deallocs;
  func.walk([&](memref::DeallocOp dealloc) { deallocs.push_back(dealloc); });
  for (memref::DeallocOp dealloc : deallocs)
    dealloc.erase();
  return success();
}

/// memref.copy between strided buffers is a call of a runtime function in
/// LLVM: loops instead.
static void replaceCopies(func::FuncOp func) {
  SmallVector<memref::CopyOp> copies;
  func.walk([&](memref::CopyOp copy) { copies.push_back(copy); });
  for (memref::CopyOp copy : copies) {
    OpBuilder b(copy);
    if (copy.getSource() != copy.getTarget())
      linalg::makeMemRefCopyOp(b, copy.getLoc(), copy.getSource(),
                               copy.getTarget());
    copy.erase();
  }
}

//===----------------------------------------------------------------------===//
// Merging of loops
//===----------------------------------------------------------------------===//

/// True when loop `dim + 1` directly follows `dim` in every operand that uses
/// either, so that both are one loop.
static bool canMergeWithNext(linalg::GenericOp op, unsigned dim) {
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  if (kinds[dim] != kinds[dim + 1])
    return false;
  MLIRContext *context = op.getContext();
  AffineExpr first = getAffineDimExpr(dim, context);
  AffineExpr second = getAffineDimExpr(dim + 1, context);
  for (AffineMap map : op.getIndexingMapsArray()) {
    std::optional<unsigned> p = map.getResultPosition(first);
    std::optional<unsigned> q = map.getResultPosition(second);
    if (p.has_value() != q.has_value() || (p && *q != *p + 1))
      return false;
  }
  return true;
}

/// Groups of loops that can be one loop each.
static SmallVector<ReassociationIndices> findMergeable(linalg::GenericOp op) {
  SmallVector<ReassociationIndices> groups;
  for (unsigned dim = 0; dim < op.getNumLoops(); ++dim) {
    if (dim == 0 || !canMergeWithNext(op, dim - 1))
      groups.emplace_back();
    groups.back().push_back(dim);
  }
  return groups;
}

static bool canMergeLoops(linalg::GenericOp op) {
  return op.hasPureBufferSemantics() && !op.hasIndexSemantics() &&
         llvm::all_of(op->getOperands(),
                      [](Value operand) {
                        auto type = dyn_cast<MemRefType>(operand.getType());
                        return !type || type.hasStaticShape();
                      }) &&
         llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
           return map.isProjectedPermutation(/*allowZeroInResults=*/true);
         });
}

namespace {
/// An operand's dimensions when loops are merged, and its indexing map then.
struct MergedOperand {
  SmallVector<ReassociationIndices> dims;
  AffineMap map;
};
} // namespace

static MergedOperand mergeMap(AffineMap map,
                              ArrayRef<ReassociationIndices> groups) {
  MLIRContext *context = map.getContext();
  SmallVector<AffineExpr> exprs;
  MergedOperand merged;
  for (unsigned position = 0; position < map.getNumResults();) {
    size_t width = 1;
    AffineExpr expr = map.getResult(position);
    // Where an operand is broadcast its map is 0 and stays so.
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      const auto *group =
          llvm::find_if(groups, [&](const ReassociationIndices &g) {
            return g.front() == dim.getPosition();
          });
      expr = getAffineDimExpr(group - groups.begin(), context);
      width = group->size();
    }
    exprs.push_back(expr);
    merged.dims.emplace_back();
    for (size_t i = 0; i < width; ++i)
      merged.dims.back().push_back(position++);
  }
  merged.map = AffineMap::get(groups.size(), 0, exprs, context);
  return merged;
}

/// Scalars and what keeps its dimensions stay as they are.
static bool isUnchanged(Value operand, const MergedOperand &merged) {
  auto type = dyn_cast<MemRefType>(operand.getType());
  return !type || merged.dims.size() == static_cast<size_t>(type.getRank());
}

static bool canCollapse(Value operand, const MergedOperand &merged) {
  return isUnchanged(operand, merged) ||
         memref::CollapseShapeOp::isGuaranteedCollapsible(
             cast<MemRefType>(operand.getType()), merged.dims);
}

static void mergeLoops(linalg::GenericOp op) {
  if (!canMergeLoops(op))
    return;
  SmallVector<ReassociationIndices> groups = findMergeable(op);
  if (groups.size() == op.getNumLoops())
    return;
  SmallVector<MergedOperand> operands;
  for (OpOperand &operand : op->getOpOperands()) {
    operands.push_back(mergeMap(op.getMatchingIndexingMap(&operand), groups));
    if (!canCollapse(operand.get(), operands.back()))
      return;
  }
  IRRewriter b(op);
  SmallVector<Value> inputs, outputs;
  SmallVector<AffineMap> maps;
  for (auto [operand, merged] : llvm::zip(op->getOpOperands(), operands)) {
    Value value = operand.get();
    if (!isUnchanged(value, merged))
      value =
          memref::CollapseShapeOp::create(b, op.getLoc(), value, merged.dims);
    (op.isDpsInput(&operand) ? inputs : outputs).push_back(value);
    maps.push_back(merged.map);
  }
  SmallVector<utils::IteratorType> kinds;
  for (const ReassociationIndices &group : groups)
    kinds.push_back(op.getIteratorTypesArray()[group.front()]);
  auto merged = linalg::GenericOp::create(b, op.getLoc(), TypeRange(), inputs,
                                          outputs, maps, kinds);
  b.inlineRegionBefore(op.getRegion(), merged.getRegion(),
                       merged.getRegion().begin());
  b.eraseOp(op);
}

namespace {
struct KernelPlaceBuffers
    : zero::impl::KernelPlaceBuffersBase<KernelPlaceBuffers> {
  using KernelPlaceBuffersBase::KernelPlaceBuffersBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr(kKernelAttr))
      return;
    if (failed(placeAllocations(func, maxStackBytes)))
      return signalPassFailure();
    replaceCopies(func);
    SmallVector<linalg::GenericOp> ops;
    func.walk([&](linalg::GenericOp op) { ops.push_back(op); });
    for (linalg::GenericOp op : ops)
      mergeLoops(op);
  }
};
} // namespace
