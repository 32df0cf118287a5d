//===- TrainToLinalgScatter.cpp - The gradient of a table -----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// gather_grad adds rows to those of a table that they were taken from. Floats
// narrower than f32 add up in f32: a block of the table at a time, as large as
// a kernel's stack frame allows, with a pass over all indices for each. A row
// that many indices name is rounded once all the same.
//
//===----------------------------------------------------------------------===//

#include "TrainToLinalg.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::zero;

Value zero::resolveIndex(OpBuilder &b, Location loc, Value index,
                         int64_t size) {
  Type i64 = b.getI64Type();
  Value wide = convertScalar(b, loc, index, i64);
  Value zero = constantScalar(b, loc, i64, 0);
  Value last = constantScalar(b, loc, i64, size - 1);
  Value wrapped = arith::AddIOp::create(
      b, loc, wide,
      arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(size)));
  Value negative =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, wide, zero);
  Value position = arith::SelectOp::create(b, loc, negative, wrapped, wide);
  position = arith::MinSIOp::create(b, loc, position, last);
  position = arith::MaxSIOp::create(b, loc, position, zero);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), position);
}

//===----------------------------------------------------------------------===//
// In place
//===----------------------------------------------------------------------===//

/// Adds the slice of `grad` at `indices` (of the dimensions before `axis` and
/// of the index tensor) to the slice of `sum` that it was taken from.
static Value addSlice(OpBuilder &b, Location loc, train::GatherGradOp op,
                      ValueRange indices, Value sum) {
  int64_t axis = op.getAxis();
  RankedTensorType gradType = getTensorType(op.getGrad());
  RankedTensorType sumType = getTensorType(sum);
  Value index =
      extractElement(b, loc, op.getIndices(), indices.drop_front(axis));
  SmallVector<Value> to(indices.take_front(axis));
  to.push_back(resolveIndex(b, loc, index, sumType.getDimSize(axis)));
  Rows from(gradType.getShape(), llvm::to_vector(llvm::seq<int64_t>(
                                     indices.size(), gradType.getRank())));
  Rows target(sumType.getShape(),
              llvm::to_vector(llvm::seq<int64_t>(axis + 1, sumType.getRank())));
  Value part = from.extract(b, loc, op.getGrad(), indices);
  Value old = target.extract(b, loc, sum, to);
  Value added = mapElements(
      b, loc, old, part,
      [&](OpBuilder &n, Location at, ValueRange args) {
        return SmallVector<Value>{
            arith::AddFOp::create(n, at, args[1], args[0])};
      },
      /*readsInits=*/true)[0];
  return target.insert(b, loc, added, sum, to);
}

static SmallVector<Value> addInPlace(OpBuilder &b, train::GatherGradOp op) {
  Location loc = op.getLoc();
  int64_t loops = op.getAxis() + getTensorType(op.getIndices()).getRank();
  ArrayRef<int64_t> extents =
      getTensorType(op.getGrad()).getShape().take_front(loops);
  return buildLoops(
      b, loc, extents, filledTensor(b, loc, op.getResult().getType(), 0),
      [&](OpBuilder &n, Location at, ValueRange indices, ValueRange carried) {
        return SmallVector<Value>{addSlice(n, at, op, indices, carried[0])};
      });
}

//===----------------------------------------------------------------------===//
// Block by block
//===----------------------------------------------------------------------===//

/// Elements of a block: half of a kernel's stack frame.
static constexpr int64_t kBlock = 1 << 17;

namespace {
/// The part of a table from `row` and `column` on, at `fixed` in the dimensions
/// before the axis and in all behind it but the last, along which columns lie.
struct Block {
  ValueRange fixed;
  Value row, column;
  int64_t rows, columns;
};

/// A gather_grad in blocks. Shapes are never changed: the result would not be
/// computed where it is wanted.
class BlockedScatter {
public:
  explicit BlockedScatter(train::GatherGradOp op)
      : op(op), type(getTensorType(op.getResult())), axis(op.getAxis()),
        hasColumns(axis + 1 < type.getRank()) {}
  Value build(OpBuilder &b) const;

private:
  using Offsets = SmallVector<OpFoldResult>;
  Offsets getOffsets(Block block, ValueRange atAxis) const;
  SmallVector<int64_t> getShape(Block block) const;
  Value extractGrad(OpBuilder &b, Block block, ValueRange position) const;
  Value addIndex(OpBuilder &b, Block block, ValueRange position,
                 Value sum) const;
  Value addBlock(OpBuilder &b, Block block, Value result) const;
  Value addBlocks(OpBuilder &b, ValueRange fixed, Value result) const;

  mutable train::GatherGradOp op;
  RankedTensorType type;
  int64_t axis;
  bool hasColumns;
};
} // namespace

/// Where a block begins in the table or, with a position in the index tensor
/// instead of a row, in the gradient.
BlockedScatter::Offsets BlockedScatter::getOffsets(Block block,
                                                   ValueRange atAxis) const {
  Offsets offsets(block.fixed.take_front(axis));
  llvm::append_range(offsets, atAxis);
  llvm::append_range(offsets, block.fixed.drop_front(axis));
  if (hasColumns)
    offsets.push_back(block.column);
  return offsets;
}

SmallVector<int64_t> BlockedScatter::getShape(Block block) const {
  SmallVector<int64_t> shape = {block.rows};
  if (hasColumns)
    shape.push_back(block.columns);
  return shape;
}

/// The columns of the gradient's row for one index.
Value BlockedScatter::extractGrad(OpBuilder &b, Block block,
                                  ValueRange position) const {
  Offsets offsets = getOffsets(block, position);
  Offsets ones(offsets.size(), b.getIndexAttr(1)), sizes = ones;
  SmallVector<int64_t> shape;
  if (hasColumns) {
    sizes.back() = b.getIndexAttr(block.columns);
    shape.push_back(block.columns);
  }
  return tensor::ExtractSliceOp::create(b, op.getLoc(), type.clone(shape),
                                        op.getGrad(), offsets, sizes, ones);
}

/// Adds the row of `position` to the row of the block that its index names; of
/// another block's, zeros to any row.
Value BlockedScatter::addIndex(OpBuilder &b, Block block, ValueRange position,
                               Value sum) const {
  Location loc = op.getLoc();
  int64_t rows = type.getDimSize(axis);
  Value index = extractElement(b, loc, op.getIndices(), position);
  Value row = resolveIndex(b, loc, index, rows), isInside;
  if (block.rows != rows) {
    Value last = constantIndex(b, loc, block.rows - 1);
    row = arith::SubIOp::create(b, loc, row, block.row);
    isInside =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule, row, last);
    row = arith::MinUIOp::create(b, loc, row, last);
  }
  Type compute = getTensorType(sum).getElementType();
  SmallVector<int64_t> columnDims;
  if (hasColumns)
    columnDims.push_back(1);
  Rows lines(getShape(block), columnDims);
  Value added = mapElements(
      b, loc, lines.extract(b, loc, sum, row), extractGrad(b, block, position),
      [&](OpBuilder &n, Location at, ValueRange args) {
        FloatMath m{n, at};
        Value term = m.cast(args[0], compute);
        if (isInside)
          term = arith::SelectOp::create(n, at, isInside, term,
                                         m.constant(compute, 0));
        return SmallVector<Value>{m.add(args[1], term)};
      },
      /*readsInits=*/true)[0];
  return lines.insert(b, loc, added, sum, row);
}

Value BlockedScatter::addBlock(OpBuilder &b, Block block, Value result) const {
  Location loc = op.getLoc();
  Type element = type.getElementType();
  RankedTensorType blockType = type.clone(getShape(block));
  Value sum = filledTensor(b, loc, blockType.clone(getComputeType(element)), 0);
  sum = buildLoops(b, loc, getTensorType(op.getIndices()).getShape(), sum,
                   [&](OpBuilder &n, Location, ValueRange position,
                       ValueRange carried) -> SmallVector<Value> {
                     return {addIndex(n, block, position, carried[0])};
                   })[0];
  Value rounded = mapElements(b, loc, emptyTensor(b, loc, blockType), sum,
                              [&](OpBuilder &n, Location at, ValueRange x) {
                                return SmallVector<Value>{
                                    convertScalar(n, at, x[0], element)};
                              })[0];
  Offsets offsets = getOffsets(block, block.row);
  Offsets ones(offsets.size(), b.getIndexAttr(1)), sizes = ones;
  sizes[axis] = b.getIndexAttr(block.rows);
  if (hasColumns)
    sizes.back() = b.getIndexAttr(block.columns);
  return tensor::InsertSliceOp::create(b, loc, rounded, result, offsets, sizes,
                                       ones);
}

/// Calls `body` with the first element and the size of each piece of `size`: a
/// loop over the whole pieces, then what is left.
static Value forPieces(OpBuilder &b, Location loc, int64_t size, int64_t piece,
                       Value init,
                       llvm::function_ref<Value(OpBuilder &, Value first,
                                                int64_t extent, Value carried)>
                           body) {
  Value result = buildLoops(b, loc, size / piece, init,
                            [&](OpBuilder &n, Location at, ValueRange index,
                                ValueRange carried) -> SmallVector<Value> {
                              Value first = arith::MulIOp::create(
                                  n, at, index[0], constantIndex(n, at, piece));
                              return {body(n, first, piece, carried[0])};
                            })[0];
  if (int64_t rest = size % piece)
    result = body(b, constantIndex(b, loc, size - rest), rest, result);
  return result;
}

Value BlockedScatter::addBlocks(OpBuilder &b, ValueRange fixed,
                                Value result) const {
  int64_t rows = type.getDimSize(axis);
  int64_t columns = hasColumns ? type.getShape().back() : 1;
  int64_t blockRows = std::min(rows, kBlock);
  int64_t blockColumns = std::min(columns, kBlock / blockRows);
  Location loc = op.getLoc();
  return forPieces(
      b, loc, rows, blockRows, result,
      [&](OpBuilder &r, Value row, int64_t rowCount, Value rowResult) {
        return forPieces(r, loc, columns, blockColumns, rowResult,
                         [&](OpBuilder &c, Value column, int64_t columnCount,
                             Value carried) {
                           return addBlock(
                               c, {fixed, row, column, rowCount, columnCount},
                               carried);
                         });
      });
}

Value BlockedScatter::build(OpBuilder &b) const {
  SmallVector<int64_t> extents(type.getShape().take_front(axis));
  if (hasColumns)
    llvm::append_range(extents,
                       type.getShape().drop_front(axis + 1).drop_back());
  return buildLoops(b, op.getLoc(), extents, emptyTensor(b, op.getLoc(), type),
                    [&](OpBuilder &n, Location, ValueRange fixed,
                        ValueRange carried) -> SmallVector<Value> {
                      return {addBlocks(n, fixed, carried[0])};
                    })[0];
}

static SmallVector<Value> lowerGatherGrad(OpBuilder &b,
                                          train::GatherGradOp op) {
  Type element = getTensorType(op.getResult()).getElementType();
  bool isEmpty = getTensorType(op.getGrad()).getNumElements() == 0;
  if (element == getComputeType(element) || isEmpty)
    return addInPlace(b, op);
  return {BlockedScatter(op).build(b)};
}

void zero::populateTrainScatterToLinalg(RewritePatternSet &patterns) {
  addLowering(patterns, lowerGatherGrad);
}
