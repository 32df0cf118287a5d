//===- GpuScatter.cpp - The gradient of a table ------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block has a few rows of the table. It reads all indices, and adds the rows
// of the gradient whose index is one of its own, in their order, into sums in
// shared memory: a thread for each column. No atomics, and no pass that fills
// the table with zeros.
//
//===----------------------------------------------------------------------===//

#include "GpuPrepare.h"
#include "GpuReduction.h"
#include "TrainToLinalg.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::zero;

/// Columns and rows of a block's sums.
static constexpr int64_t kMaxColumns = 1024;
static constexpr int64_t kMaxRows = 8;

namespace mlir::zero {
/// The sum that kernel-prepare-gpu marks with `plan.scatter`.
class Scatter {
public:
  Scatter(GpuMapper &mapper, Reduction &end, linalg::GenericOp op)
      : mapper(mapper), end(end), op(op) {}
  void emit();

private:
  void readIndices(Value first);
  void addHits(Value first);
  void addRow(Value position, Value row);
  void forColumns(llvm::function_ref<void(Value)> build);
  void clear();
  void finishRows();

  GpuMapper &mapper;
  Reduction &end;
  linalg::GenericOp op;
  std::unique_ptr<LaunchCode> code;
  Location loc = op.getLoc();
  int64_t rows, columns, positions, blockRows, blockColumns;
  Value firstRow, firstColumn;
  Value masks; ///< of each warp: which of its indices are of this block
  Value hits;  ///< of each thread: the row of its index in the block
  Value sums;  ///< blockRows x blockColumns
};
} // namespace mlir::zero

/// Each thread looks at one index; what it finds is in `masks` and `hits`.
void Scatter::readIndices(Value first) {
  OpBuilder &b = code->b;
  Value position = code->add(first, code->threadX);
  Value exists = code->isLess(position, positions);
  Value last = code->index(positions - 1);
  Value safe = arith::MinUIOp::create(b, loc, position, last);
  Value indices = code->resolve(op.getInputs()[0]);
  SmallVector<Value> at = code->delinearize(
      safe, cast<MemRefType>(indices.getType()).getShape());
  Value named = memref::LoadOp::create(b, loc, indices, at);
  Value row = arith::SubIOp::create(b, loc, resolveIndex(b, loc, named, rows),
                                    firstRow);
  Value isOwn = arith::AndIOp::create(b, loc, exists,
                                      code->isLess(row, blockRows));
  Value all = arith::ConstantIntOp::create(b, loc, -1, 32);
  Value mask = NVVM::VoteSyncOp::create(b, loc, b.getI32Type(), all, isOwn,
                                        NVVM::VoteSyncKind::ballot);
  Value row32 = arith::IndexCastOp::create(b, loc, b.getI32Type(), row);
  memref::StoreOp::create(b, loc, row32, hits, code->threadX);
  Value isFirst = code->isEqual(code->modulo(code->threadX, kWarpSize), 0);
  buildIf(*code, isFirst, [&] {
    memref::StoreOp::create(b, loc, mask, masks,
                            code->divide(code->threadX, kWarpSize));
  });
}

void Scatter::forColumns(llvm::function_ref<void(Value)> build) {
  buildStrided(*code, code->threadX, blockColumns, kBlockSize, {},
               [&](Value column, ValueRange) -> SmallVector<Value> {
                 if (columns % blockColumns == 0) {
                   build(column);
                   return {};
                 }
                 Value all = code->add(firstColumn, column);
                 buildIf(*code, code->isLess(all, columns),
                         [&] { build(column); });
                 return {};
               });
}

/// Adds the gradient's row at `position` to the block's row number `row`.
void Scatter::addRow(Value position, Value row) {
  OpBuilder &b = code->b;
  auto indexType = cast<MemRefType>(op.getInputs()[0].getType());
  SmallVector<int64_t> columnExtents(
      cast<MemRefType>(op.getOutputs()[0].getType()).getShape().drop_front());
  Value grads = code->resolve(op.getInputs()[1]);
  SmallVector<Value> at = code->delinearize(position, indexType.getShape());
  forColumns([&](Value column) {
    SmallVector<Value> full = at;
    llvm::append_range(full, code->delinearize(code->add(firstColumn, column),
                                               columnExtents));
    Value grad = memref::LoadOp::create(b, loc, grads, full);
    Value old = memref::LoadOp::create(b, loc, sums, ValueRange{row, column});
    grad = convertScalar(b, loc, grad, old.getType());
    Value sum = arith::AddFOp::create(b, loc, old, grad);
    memref::StoreOp::create(b, loc, sum, sums, ValueRange{row, column});
  });
}

/// Goes over the indices that were found, in their order.
void Scatter::addHits(Value first) {
  OpBuilder &b = code->b;
  Type i32 = b.getI32Type();
  buildStrided(
      *code, code->index(0), kBlockSize / kWarpSize, 1, {},
      [&](Value warp, ValueRange) -> SmallVector<Value> {
        Value mask = memref::LoadOp::create(b, loc, masks, warp);
        Value zero = arith::ConstantIntOp::create(b, loc, 0, 32);
        scf::WhileOp::create(
            b, loc, i32, mask,
            [&](OpBuilder &n, Location at, ValueRange left) {
              Value some = arith::CmpIOp::create(
                  n, at, arith::CmpIPredicate::ne, left[0], zero);
              scf::ConditionOp::create(n, at, some, left[0]);
            },
            [&](OpBuilder &n, Location at, ValueRange left) {
              OpBuilder::InsertionGuard guard(b);
              b.setInsertionPoint(n.getInsertionBlock(),
                                  n.getInsertionPoint());
              Value bit = LLVM::CountTrailingZerosOp::create(
                  b, at, i32, left[0], /*is_zero_poison=*/true);
              Value lane =
                  arith::IndexCastUIOp::create(b, at, b.getIndexType(), bit);
              Value slot = code->add(code->mul(warp, kWarpSize), lane);
              Value row32 = memref::LoadOp::create(b, at, hits, slot);
              Value row =
                  arith::IndexCastUIOp::create(b, at, b.getIndexType(), row32);
              addRow(code->add(first, slot), row);
              Value one = arith::ConstantIntOp::create(b, at, 1, 32);
              Value less = arith::SubIOp::create(b, at, left[0], one);
              Value rest = arith::AndIOp::create(b, at, left[0], less);
              scf::YieldOp::create(b, at, rest);
            });
        return {};
      });
}

void Scatter::clear() {
  OpBuilder &b = code->b;
  Value zero = arith::ConstantOp::create(
      b, loc,
      b.getZeroAttr(cast<MemRefType>(sums.getType()).getElementType()));
  for (int64_t row = 0; row < blockRows; ++row)
    forColumns([&](Value column) {
      memref::StoreOp::create(b, loc, zero, sums,
                              ValueRange{code->index(row), column});
    });
}

void Scatter::finishRows() {
  for (int64_t at = 0; at < blockRows; ++at) {
    Value row = code->add(firstRow, code->index(at));
    buildIf(*code, code->isLess(row, rows), [&] {
      forColumns([&](Value column) {
        Value sum = memref::LoadOp::create(
            code->b, loc, sums, ValueRange{code->index(at), column});
        Value element = code->add(code->mul(row, columns),
                                  code->add(firstColumn, column));
        end.finish(*code, element, {{sum}}, 1);
      });
    });
  }
}

void Scatter::emit() {
  auto table = cast<MemRefType>(op.getOutputs()[0].getType());
  rows = table.getDimSize(0);
  columns = table.getNumElements() / rows;
  positions = countLoops(op, utils::IteratorType::reduction);
  blockColumns = std::min(columns, kMaxColumns);
  blockRows = std::min(rows, kMaxRows);
  // A small table has a block for each row.
  while (blockRows > 1 && divideUp(rows, blockRows) < kMaxBlocks)
    blockRows /= 2;
  GpuShape shape;
  shape.blockX = kBlockSize;
  shape.gridX = divideUp(rows, blockRows);
  shape.gridY = divideUp(columns, blockColumns);
  code = mapper.makeLaunch(loc, shape);
  end.bindAll(*code);
  Type i32 = code->b.getI32Type();
  masks = code->addShared(i32, {kBlockSize / kWarpSize});
  hits = code->addShared(i32, {kBlockSize});
  sums = code->addShared(table.getElementType(), {blockRows, blockColumns});
  firstRow = code->mul(code->blockX, blockRows);
  firstColumn = code->mul(code->launch.getBlockIds().y, blockColumns);
  clear();
  buildStrided(*code, code->index(0), positions, kBlockSize, {},
               [&](Value first, ValueRange) -> SmallVector<Value> {
                 readIndices(first);
                 code->barrier();
                 addHits(first);
                 code->barrier(); // What was found is read by all.
                 return {};
               });
  finishRows();
}

void GpuMapper::emitColumns(size_t step) {
  auto op = cast<linalg::GenericOp>(steps[step].op);
  Reduction reduction(*this, step);
  // The table is known to start from zeros.
  if (op->hasAttr(kScatterAttr) && reduction.startsFromFill())
    Scatter(*this, reduction, op).emit();
  else
    reduction.emitColumns();
}
