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
#include "mlir/Dialect/SCF/IR/SCF.h"
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
/// A gather_grad whose dimensions before the axis, of the indices and behind
/// the axis are one each.
struct BlockedScatter {
  Value grad;    ///< [outer, number of indices, width]
  Value indices; ///< [number of indices]
  int64_t outer, rows, count, width;
  Type element, compute;

  Value build(OpBuilder &b, Location loc) const;

private:
  /// The part of the table from `row` and `column` on; their types are static.
  struct Block {
    Value table, row, column;
    int64_t rows, columns;
  };
  Value addBlocks(OpBuilder &b, Location loc, Value outerIndex,
                  Value result) const;
  Value addBlock(OpBuilder &b, Location loc, Block block, Value result) const;
  Value addIndex(OpBuilder &b, Location loc, Block block, Value position,
                 Value sum) const;
};
} // namespace

/// `from`[outer, row, column of `columns`] as a row.
static Value extractRow(OpBuilder &b, Location loc, Value from, Value outer,
                        Value row, Value column, int64_t columns) {
  Type element = getTensorType(from).getElementType();
  Attribute one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> offsets = {outer, row, column}, ones(3, one);
  SmallVector<OpFoldResult> sizes = {one, one, b.getIndexAttr(columns)};
  return tensor::ExtractSliceOp::create(
      b, loc, RankedTensorType::get({columns}, element), from, offsets, sizes,
      ones);
}

/// Adds the row of `position` to the block where its index lies in it.
Value BlockedScatter::addIndex(OpBuilder &b, Location loc, Block block,
                               Value position, Value sum) const {
  Value index = extractElement(b, loc, indices, position);
  Value row = arith::SubIOp::create(b, loc, resolveIndex(b, loc, index, rows),
                                    block.row);
  Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, row,
                                         constantIndex(b, loc, block.rows));
  auto add = [&](OpBuilder &n, Location at) {
    Rows lines({block.rows, block.columns}, 1);
    Value part = extractRow(n, at, grad, block.table, position, block.column,
                            block.columns);
    Value added = mapElements(
        n, at, lines.extract(n, at, sum, row), part,
        [&](OpBuilder &e, Location here, ValueRange args) {
          FloatMath m{e, here};
          return SmallVector<Value>{m.add(args[1], m.cast(args[0], compute))};
        },
        /*readsInits=*/true)[0];
    scf::YieldOp::create(n, at, lines.insert(n, at, added, sum, row));
  };
  auto keep = [&](OpBuilder &n, Location at) {
    scf::YieldOp::create(n, at, sum);
  };
  return scf::IfOp::create(b, loc, isInside, add, keep).getResult(0);
}

Value BlockedScatter::addBlock(OpBuilder &b, Location loc, Block block,
                               Value result) const {
  SmallVector<int64_t> shape = {block.rows, block.columns};
  Value sum = filledTensor(b, loc, RankedTensorType::get(shape, compute), 0);
  sum = buildLoops(b, loc, count, sum,
                   [&](OpBuilder &n, Location at, ValueRange position,
                       ValueRange carried) -> SmallVector<Value> {
                     return {addIndex(n, at, block, position[0], carried[0])};
                   })[0];
  Value rounded = mapElements(b, loc, emptyTensor(b, loc, shape, element), sum,
                              [&](OpBuilder &n, Location at, ValueRange x) {
                                return SmallVector<Value>{
                                    convertScalar(n, at, x[0], element)};
                              })[0];
  SmallVector<OpFoldResult> offsets = {block.table, block.row, block.column};
  SmallVector<OpFoldResult> sizes = {b.getIndexAttr(1),
                                     b.getIndexAttr(block.rows),
                                     b.getIndexAttr(block.columns)};
  SmallVector<OpFoldResult> ones(3, b.getIndexAttr(1));
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

Value BlockedScatter::addBlocks(OpBuilder &b, Location loc, Value table,
                                Value result) const {
  int64_t blockRows = std::min(rows, kBlock);
  int64_t blockColumns = std::min(width, kBlock / blockRows);
  return forPieces(
      b, loc, rows, blockRows, result,
      [&](OpBuilder &r, Value row, int64_t rowCount, Value rowResult) {
        return forPieces(
            r, loc, width, blockColumns, rowResult,
            [&](OpBuilder &c, Value column, int64_t columns, Value carried) {
              Block block{table, row, column, rowCount, columns};
              return addBlock(c, loc, block, carried);
            });
      });
}

Value BlockedScatter::build(OpBuilder &b, Location loc) const {
  Value result = emptyTensor(b, loc, {outer, rows, width}, element);
  return buildLoops(b, loc, outer, result,
                    [&](OpBuilder &n, Location at, ValueRange table,
                        ValueRange carried) -> SmallVector<Value> {
                      return {addBlocks(n, at, table[0], carried[0])};
                    })[0];
}

static int64_t product(ArrayRef<int64_t> sizes) {
  return ShapedType::getNumElements(sizes);
}

static SmallVector<Value> addByBlocks(OpBuilder &b, train::GatherGradOp op) {
  Location loc = op.getLoc();
  RankedTensorType type = getTensorType(op.getResult());
  RankedTensorType indexType = getTensorType(op.getIndices());
  int64_t axis = op.getAxis();
  BlockedScatter scatter;
  scatter.outer = product(type.getShape().take_front(axis));
  scatter.rows = type.getDimSize(axis);
  scatter.width = product(type.getShape().drop_front(axis + 1));
  scatter.count = indexType.getNumElements();
  scatter.element = type.getElementType();
  scatter.compute = getComputeType(scatter.element);
  scatter.grad = reshapeTensor(b, loc, op.getGrad(),
                               {scatter.outer, scatter.count, scatter.width});
  scatter.indices = reshapeTensor(b, loc, op.getIndices(), scatter.count);
  return {reshapeTensor(b, loc, scatter.build(b, loc), type.getShape())};
}

static SmallVector<Value> lowerGatherGrad(OpBuilder &b,
                                          train::GatherGradOp op) {
  Type element = getTensorType(op.getResult()).getElementType();
  bool isEmpty = getTensorType(op.getGrad()).getNumElements() == 0;
  if (element == getComputeType(element) || isEmpty)
    return addInPlace(b, op);
  return addByBlocks(b, op);
}

void zero::populateTrainScatterToLinalg(RewritePatternSet &patterns) {
  addLowering(patterns, lowerGatherGrad);
}
