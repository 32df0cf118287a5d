//===- GpuElements.cpp - Elements of linalg operations in a thread --------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuElements.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::zero;

/// Bytes of the widest loads and stores.
static constexpr int64_t kWideBytes = 16;
/// More elements than this take too many registers.
static constexpr int64_t kMaxWidth = 8;

//===----------------------------------------------------------------------===//
// Shapes and layouts
//===----------------------------------------------------------------------===//

Value zero::getBase(Value buffer) {
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>()) {
    if (isa<memref::ViewOp>(view))
      break;
    buffer = view.getViewSource();
  }
  return buffer;
}

bool zero::isScalarBuffer(Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  return type && type.getRank() == 0;
}

int64_t zero::countLoops(linalg::GenericOp op,
                         std::optional<utils::IteratorType> kind) {
  int64_t count = 1;
  for (auto [extent, loop] :
       llvm::zip_equal(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
    if (!kind || loop == *kind)
      count *= extent;
  return count;
}

static int64_t getBytes(Type element) {
  return std::max<int64_t>(1, element.getIntOrFloatBitWidth() / 8);
}

/// Whether `buffer` begins at a multiple of `width` elements of its base.
static bool beginsAtMultiple(Value buffer, int64_t width) {
  auto view = buffer.getDefiningOp<ViewLikeOpInterface>();
  if (!view || isa<memref::ViewOp>(view))
    return true;
  if (!beginsAtMultiple(view.getViewSource(), width))
    return false;
  auto subview = buffer.getDefiningOp<memref::SubViewOp>();
  if (!subview)
    return isa<memref::CollapseShapeOp, memref::ExpandShapeOp>(view);
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(subview.getSourceType().getStridesAndOffset(strides, offset)))
    return false;
  for (auto [position, stride] :
       llvm::zip_equal(subview.getStaticOffsets(), strides)) {
    if (stride % width == 0)
      continue;
    if (ShapedType::isDynamic(position) || ShapedType::isDynamic(stride) ||
        position * stride % width != 0)
      return false;
  }
  return true;
}

/// Loops of `op` that the indices of `operand` depend on.
static bool dependsOn(AffineMap map, unsigned loop) {
  return llvm::any_of(map.getResults(), [&](AffineExpr expr) {
    return expr.isFunctionOfDim(loop);
  });
}

/// The distance of elements of `operand` that follow each other in the
/// innermost loop: 0 if they are the same, none if it is not known.
static std::optional<int64_t> getInnerStride(OpOperand &operand) {
  auto op = cast<linalg::GenericOp>(operand.getOwner());
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  AffineMap map = op.getMatchingIndexingMap(&operand);
  unsigned inner = op.getNumLoops() - 1;
  if (!type || !dependsOn(map, inner))
    return 0;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return std::nullopt;
  int64_t sum = 0;
  for (auto [expr, stride] : llvm::zip_equal(map.getResults(), strides)) {
    if (!expr.isFunctionOfDim(inner))
      continue;
    if (!isa<AffineDimExpr>(expr) || ShapedType::isDynamic(stride))
      return std::nullopt;
    sum += stride;
  }
  return sum;
}

bool zero::isWide(OpOperand &operand, int64_t width) {
  auto op = cast<linalg::GenericOp>(operand.getOwner());
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  if (!type || width == 1 || type.getElementType().isInteger(1) ||
      getInnerStride(operand) != 1)
    return false;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return false;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  AffineExpr last = map.getResults().back();
  if (last != getAffineDimExpr(op.getNumLoops() - 1, op.getContext()))
    return false;
  for (auto [expr, stride] :
       llvm::zip_equal(map.getResults().drop_back(),
                       ArrayRef(strides).drop_back()))
    if (!isa<AffineConstantExpr>(expr) && stride % width != 0)
      return false;
  return beginsAtMultiple(operand.get(), width);
}

void zero::addWideBases(linalg::GenericOp op, int64_t width,
                        llvm::SetVector<Value> &bases) {
  for (OpOperand &operand : op->getOpOperands())
    if (isWide(operand, width))
      if (Value base = getBase(operand.get()); isa<BlockArgument>(base))
        bases.insert(base);
}

/// The most elements of `op` that follow each other in memory.
static int64_t getMaxWidth(linalg::GenericOp op) {
  int64_t width = 1;
  for (OpOperand &operand : op->getOpOperands()) {
    std::optional<int64_t> stride = getInnerStride(operand);
    if (stride && *stride == 0)
      continue;
    if (stride != 1)
      return 1;
    Type element = cast<MemRefType>(operand.get().getType()).getElementType();
    if (element.isInteger(1))
      return 1;
    width = std::max(width, kWideBytes / getBytes(element));
  }
  return std::min(width, kMaxWidth);
}

int64_t zero::chooseWidth(ArrayRef<linalg::GenericOp> ops, bool tails) {
  int64_t width = 1;
  for (linalg::GenericOp op : ops)
    width = std::max(width, op.getNumLoops() ? getMaxWidth(op) : 1);
  for (linalg::GenericOp op : ops) {
    if (op.getNumLoops() == 0)
      continue;
    if (getMaxWidth(op) == 1)
      return 1;
    int64_t inner = op.getStaticLoopRanges().back();
    if (tails && op.getNumLoops() == 1 && inner >= width * kWarpSize)
      continue;
    while (inner % width != 0)
      width /= 2;
  }
  return width;
}

Value zero::areAligned(LaunchCode &code, ArrayRef<Value> bases) {
  OpBuilder &b = code.b;
  Value bits;
  for (Value base : bases) {
    Value address =
        memref::ExtractAlignedPointerAsIndexOp::create(b, code.loc, base);
    bits = bits ? arith::OrIOp::create(b, code.loc, bits, address).getResult()
                : address;
  }
  if (!bits)
    return arith::ConstantIntOp::create(b, code.loc, 1, 1);
  Value low = arith::AndIOp::create(b, code.loc, bits,
                                    code.index(kWideBytes - 1));
  return code.isEqual(low, 0);
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

/// The indices into `operand` of the element number `at` of `piece`.
static SmallVector<Value> getIndices(LaunchCode &code, OpOperand &operand,
                                     const Piece &piece, int64_t at) {
  auto op = cast<linalg::GenericOp>(operand.getOwner());
  SmallVector<Value> loops(piece.indices);
  if (at != 0)
    loops.back() = code.add(loops.back(), code.index(at));
  SmallVector<Value> indices;
  for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      indices.push_back(loops[dim.getPosition()]);
    else
      indices.push_back(
          affine::expandAffineExpr(code.b, code.loc, expr, loops, {}));
  }
  return indices;
}

/// The parts of a piece that are loaded or stored at once.
static int64_t getPartSize(Type element, int64_t width) {
  return std::min(width, kWideBytes / getBytes(element));
}

static llvm::MaybeAlign getAlignment(Type element, int64_t elements) {
  return llvm::MaybeAlign(getBytes(element) * elements);
}

SmallVector<Value> zero::loadPiece(LaunchCode &code, OpOperand &operand,
                                   const Piece &piece) {
  OpBuilder &b = code.b;
  Value buffer = code.resolve(operand.get());
  auto type = dyn_cast<MemRefType>(buffer.getType());
  if (!type)
    return SmallVector<Value>(piece.width, buffer);
  Type element = type.getElementType();
  SmallVector<Value> values;
  if (piece.wide && isWide(operand, piece.width)) {
    int64_t part = getPartSize(element, piece.width);
    for (int64_t at = 0; at < piece.width; at += part) {
      Value loaded = vector::LoadOp::create(
          b, code.loc, VectorType::get(part, element), buffer,
          getIndices(code, operand, piece, at), /*nontemporal=*/false,
          getAlignment(element, part));
      for (int64_t i = 0; i < part; ++i)
        values.push_back(vector::ExtractOp::create(b, code.loc, loaded, i));
    }
    return values;
  }
  bool same = getInnerStride(operand) == 0;
  for (int64_t at = 0; at < piece.width; ++at) {
    if (same && at > 0) {
      values.push_back(values.front());
      continue;
    }
    values.push_back(memref::LoadOp::create(
        b, code.loc, buffer, getIndices(code, operand, piece, at)));
  }
  return values;
}

void zero::storePiece(LaunchCode &code, OpOperand &operand, const Piece &piece,
                      ValueRange values) {
  OpBuilder &b = code.b;
  Value buffer = code.resolve(operand.get());
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  if (piece.wide && isWide(operand, piece.width)) {
    int64_t part = getPartSize(element, piece.width);
    for (int64_t at = 0; at < piece.width; at += part) {
      Value vector = vector::FromElementsOp::create(
          b, code.loc, VectorType::get(part, element),
          values.slice(at, part));
      vector::StoreOp::create(b, code.loc, vector, buffer,
                              getIndices(code, operand, piece, at),
                              /*nontemporal=*/false,
                              getAlignment(element, part));
    }
    return;
  }
  for (int64_t at = 0; at < piece.width; ++at)
    memref::StoreOp::create(b, code.loc, values[at], buffer,
                            getIndices(code, operand, piece, at));
}

void zero::loadPieces(LaunchCode &code, linalg::GenericOp op,
                      const Piece &piece, PieceValues &values) {
  values.resize(op->getNumOperands());
  for (OpOperand &operand : op->getOpOperands()) {
    SmallVector<Value> &own = values[operand.getOperandNumber()];
    if (own.empty() && op.payloadUsesValueFromOperand(&operand))
      own = loadPiece(code, operand, piece);
  }
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

SmallVector<Value> zero::computeElement(LaunchCode &code, linalg::GenericOp op,
                                        const Piece &piece, int64_t at,
                                        ArrayRef<Value> args) {
  IRMapping local;
  for (auto [arg, value] : llvm::zip_equal(op.getBody()->getArguments(), args))
    if (value)
      local.map(arg, value);
  auto find = [&](Value value) {
    Value found = local.lookupOrNull(value);
    return found ? found : code.resolve(value);
  };
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      Value value = piece.indices[index.getDim()];
      if (at != 0 && index.getDim() + 1 == piece.indices.size())
        value = code.add(value, code.index(at));
      local.map(index.getResult(), value);
      continue;
    }
    for (Value operand : inner.getOperands())
      local.map(operand, find(operand));
    code.b.clone(inner, local);
  }
  SmallVector<Value> results;
  for (Value value : op.getBody()->getTerminator()->getOperands())
    results.push_back(find(value));
  return results;
}

PieceValues zero::computePiece(LaunchCode &code, linalg::GenericOp op,
                               const Piece &piece, const PieceValues &values) {
  PieceValues results(op.getNumDpsInits());
  for (int64_t at = 0; at < piece.width; ++at) {
    SmallVector<Value> args;
    for (const SmallVector<Value> &own : values)
      args.push_back(own.empty() ? Value() : own[at]);
    SmallVector<Value> computed = computeElement(code, op, piece, at, args);
    for (auto [result, value] : llvm::zip_equal(results, computed))
      result.push_back(value);
  }
  return results;
}

Operation *zero::getCombiner(linalg::GenericOp op, unsigned index) {
  SmallVector<Operation *> combiners;
  if (!matchReduction(op.getRegionOutputArgs(), index, combiners) ||
      combiners.size() != 1 || !arith::getNeutralElement(combiners.front()))
    return nullptr;
  return combiners.front();
}
