//===- GpuReductions.cpp - Sums along some dimensions --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reduction along the last dimensions has a warp or a block for each element
// of its result. One along the first has a thread for a few columns, and
// threads of a block for different rows of them. Where the result is too small
// to fill a GPU, blocks sum up parts, and a second launch the parts.
//
//===----------------------------------------------------------------------===//

#include "GpuReduction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::zero;

/// Elements of a row from which on a block sums it up, not a warp.
static constexpr int64_t kBlockRow = 4096;
/// Rows that one block adds up faster than another launch starts.
static constexpr int64_t kMaxUnsplit = 528;
/// Elements that a thread should have before work is split further.
static constexpr int64_t kMinPerThread = 8;

Reduction::Reduction(GpuMapper &mapper, size_t step)
    : mapper(mapper), op(cast<linalg::GenericOp>(mapper.steps[step].op)),
      columns(countLoops(op, utils::IteratorType::parallel)),
      rows(countLoops(op, utils::IteratorType::reduction)) {
  for (auto [index, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    combiners.push_back(getCombiner(op, index));
    Value base = getBase(init.get());
    bool whole = isLinear(init);
    fills.push_back(mapper.fills.lookup({op.getOperation(), base}));
    readers.push_back(whole ? mapper.takeReaders(base, step)
                            : SmallVector<linalg::GenericOp>());
  }
}

SmallVector<int64_t> Reduction::getExtents(utils::IteratorType kind) const {
  SmallVector<int64_t> extents;
  auto generic = op;
  for (auto [extent, own] : llvm::zip_equal(generic.getStaticLoopRanges(),
                                            generic.getIteratorTypesArray()))
    if (own == kind)
      extents.push_back(extent);
  return extents;
}

Piece Reduction::makePiece(LaunchCode &code, Value column, Value row,
                           int64_t width, bool wide) const {
  SmallVector<Value> parallel =
      code.delinearize(column, getExtents(utils::IteratorType::parallel));
  SmallVector<Value> reduced =
      code.delinearize(row, getExtents(utils::IteratorType::reduction));
  Piece piece;
  piece.width = width;
  piece.wide = wide;
  size_t nextParallel = 0, nextReduced = 0;
  auto generic = op;
  for (utils::IteratorType kind : generic.getIteratorTypesArray())
    piece.indices.push_back(kind == utils::IteratorType::parallel
                                ? parallel[nextParallel++]
                                : reduced[nextReduced++]);
  return piece;
}

Reduction::Sums Reduction::getNeutral(LaunchCode &code, int64_t width) const {
  Sums sums;
  for (Operation *combiner : combiners)
    sums.emplace_back(width, code.neutral(combiner));
  return sums;
}

static SmallVector<Value> flatten(const PieceValues &values) {
  SmallVector<Value> flat;
  for (const SmallVector<Value> &own : values)
    llvm::append_range(flat, own);
  return flat;
}

Reduction::Sums Reduction::split(ValueRange flat, int64_t width) const {
  Sums sums;
  for (size_t i = 0; i < combiners.size(); ++i)
    sums.emplace_back(flat.slice(i * width, width));
  return sums;
}

/// Adds the elements of `piece`: one to each column's sum or, `alongRow`, all
/// to the one sum.
SmallVector<Value> Reduction::addRow(LaunchCode &code, const Piece &piece,
                                     ValueRange carried, bool alongRow) const {
  auto generic = op;
  PieceValues values(generic->getNumOperands());
  for (OpOperand *input : generic.getDpsInputOperands())
    if (generic.payloadUsesValueFromOperand(input))
      values[input->getOperandNumber()] = loadPiece(code, *input, piece);
  int64_t width = alongRow ? 1 : piece.width;
  Sums sums = split(carried, width);
  for (int64_t at = 0; at < piece.width; ++at) {
    SmallVector<Value> args;
    for (OpOperand *input : generic.getDpsInputOperands()) {
      const SmallVector<Value> &own = values[input->getOperandNumber()];
      args.push_back(own.empty() ? Value() : own[at]);
    }
    for (SmallVector<Value> &sum : sums)
      args.push_back(sum[at % width]);
    SmallVector<Value> results = computeElement(code, generic, piece, at, args);
    for (auto [sum, result] : llvm::zip_equal(sums, results))
      sum[at % width] = result;
  }
  return flatten(sums);
}

//===----------------------------------------------------------------------===//
// The end of a sum
//===----------------------------------------------------------------------===//

/// Stores what `reader` makes of the sums that begin at `column`.
void Reduction::finishReader(LaunchCode &code, linalg::GenericOp reader,
                             Value base, Value column, ArrayRef<Value> sums) {
  SmallVector<int64_t> extents = reader.getStaticLoopRanges();
  int64_t width = sums.size();
  bool whole = extents.empty() || extents.back() % width == 0;
  llvm::SetVector<Value> bases;
  if (whole)
    addWideBases(reader, width, bases);
  int64_t step = whole ? width : 1;
  buildAligned(code, bases.getArrayRef(), step > 1, {}, [&](bool wide) {
    for (int64_t at = 0; at < width; at += step) {
      Piece piece;
      piece.indices =
          code.delinearize(code.add(column, code.index(at)), extents);
      piece.width = step;
      piece.wide = wide;
      PieceValues values(reader->getNumOperands());
      for (OpOperand &operand : reader->getOpOperands())
        if (isa<MemRefType>(operand.get().getType()) &&
            getBase(operand.get()) == base)
          values[operand.getOperandNumber()].assign(sums.begin() + at,
                                                    sums.begin() + at + step);
      loadPieces(code, reader, piece, values);
      PieceValues results = computePiece(code, reader, piece, values);
      for (auto [init, result] :
           llvm::zip_equal(reader.getDpsInitsMutable(), results))
        storePiece(code, init, piece, result);
    }
    return SmallVector<Value>();
  });
}

void Reduction::finish(LaunchCode &code, Value column, Sums sums,
                       int64_t width) {
  Piece piece = makePiece(code, column, code.index(0), width, false);
  for (auto [index, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    SmallVector<Value> starts;
    if (Value fill = fills[index])
      starts.assign(width, code.resolve(fill));
    else if (combiners[index])
      starts = loadPiece(code, init, piece);
    SmallVector<Value> &own = sums[index];
    for (auto [start, sum] : llvm::zip(starts, own))
      if (combiners[index])
        sum = code.combine(combiners[index], start, sum);
    if (readers[index].empty())
      storePiece(code, init, piece, own);
    for (linalg::GenericOp reader : readers[index])
      finishReader(code, reader, getBase(init.get()), column, own);
  }
}

void Reduction::bindAll(LaunchCode &code) {
  SmallVector<Operation *> ops = {op};
  for (ArrayRef<linalg::GenericOp> own : readers)
    llvm::append_range(ops, own);
  mapper.bindScalars(code, ops);
}

void Reduction::makePartials(int64_t count) {
  splits = count;
  for (Value out : op.getOutputs())
    if (splits > 1)
      partials.push_back(mapper.addScratch(
          cast<MemRefType>(out.getType()).getElementType(), {splits, columns}));
}

void Reduction::storePartials(LaunchCode &code, Value split, Value column,
                              const Sums &sums) {
  for (auto [buffer, own] : llvm::zip_equal(partials, sums))
    for (auto [at, value] : llvm::enumerate(own))
      memref::StoreOp::create(
          code.b, code.loc, value, code.resolve(buffer),
          ValueRange{split, code.add(column, code.index(at))});
}

/// The second launch: a thread for each column.
void Reduction::addPartials(int64_t width) {
  GpuShape shape;
  shape.blockX = std::min<int64_t>(kBlockSize / 2,
                                   llvm::alignTo(columns / width, kWarpSize));
  shape.gridX = divideUp(columns / width, shape.blockX);
  auto code = mapper.makeLaunch(op.getLoc(), shape);
  bindAll(*code);
  Value thread =
      code->add(code->mul(code->blockX, shape.blockX), code->threadX);
  buildIf(*code, code->isLess(thread, columns / width), [&] {
    Value column = code->mul(thread, width);
    SmallVector<Value> sums = buildStrided(
        *code, code->index(0), splits, 1, flatten(getNeutral(*code, width)),
        [&](Value part, ValueRange carried) {
          SmallVector<Value> next;
          for (auto [index, buffer] : llvm::enumerate(partials))
            for (int64_t at = 0; at < width; ++at) {
              Value value = memref::LoadOp::create(
                  code->b, code->loc, code->resolve(buffer),
                  ValueRange{part, code->add(column, code->index(at))});
              next.push_back(code->combine(combiners[index],
                                           carried[index * width + at], value));
            }
          return next;
        });
    finish(*code, column, split(sums, width), width);
  });
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

Reduction::Sums Reduction::getStart(LaunchCode &code, Value column,
                                    int64_t width) const {
  if (!isSerial())
    return getNeutral(code, width);
  Piece piece = makePiece(code, column, code.index(0), width, false);
  Sums sums;
  auto generic = op;
  for (auto [init, fill] :
       llvm::zip_equal(generic.getDpsInitsMutable(), fills)) {
    if (fill)
      sums.emplace_back(width, code.resolve(fill));
    else
      sums.push_back(loadPiece(code, init, piece));
  }
  return sums;
}

/// Adds up what the threads of a block with the same columns have; right for
/// those with y = 0.
Reduction::Sums Reduction::joinThreads(LaunchCode &code, const Sums &sums,
                                       int64_t width) const {
  if (code.shape.blockY == 1)
    return sums;
  SmallVector<Value> memories;
  for (const SmallVector<Value> &own : sums)
    memories.push_back(code.addShared(
        own.front().getType(), {code.shape.blockY, width, code.shape.blockX}));
  auto at = [&](Value y, int64_t column) {
    return SmallVector<Value>{y, code.index(column), code.threadX};
  };
  for (auto [memory, own] : llvm::zip_equal(memories, sums))
    for (auto [column, value] : llvm::enumerate(own))
      memref::StoreOp::create(code.b, code.loc, value, memory,
                              at(code.threadY, column));
  code.barrier();
  auto add = [&](Value y, ValueRange carried) {
    SmallVector<Value> next;
    for (auto [index, memory] : llvm::enumerate(memories))
      for (int64_t column = 0; column < width; ++column) {
        Value other =
            memref::LoadOp::create(code.b, code.loc, memory, at(y, column));
        next.push_back(code.combine(combiners[index],
                                    carried[index * width + column], other));
      }
    return next;
  };
  // The others have nothing left to do: their loop has no step.
  Value isFirst = code.isEqual(code.threadY, 0);
  Value first = arith::SelectOp::create(
      code.b, code.loc, isFirst, code.index(1), code.index(code.shape.blockY));
  return split(
      buildStrided(code, first, code.shape.blockY, 1, flatten(sums), add),
      width);
}

/// What a thread adds up of its columns: rows from `first` on.
Reduction::Sums Reduction::sumRows(LaunchCode &code, Value column, Value first,
                                   int64_t step, int64_t width) {
  SmallVector<Value> start = flatten(getStart(code, column, width));
  llvm::SetVector<Value> bases;
  addWideBases(op, width, bases);
  SmallVector<Value> flat = buildAligned(
      code, bases.getArrayRef(), width > 1, TypeRange(ValueRange(start)),
      [&](bool wide) {
        return buildStrided(
            code, first, rows, step, start, [&](Value row, ValueRange carried) {
              return addRow(code, makePiece(code, column, row, width, wide),
                            carried, /*alongRow=*/false);
            });
      });
  return split(flat, width);
}

void Reduction::emitColumns() {
  int64_t width = chooseWidth(op), threads = columns / width;
  GpuShape shape;
  if (!isSerial())
    while (shape.blockY < 8 && rows / (shape.blockY * 2) >= 2)
      shape.blockY *= 2;
  shape.blockX =
      std::min<int64_t>(llvm::PowerOf2Ceil(threads), kBlockSize / shape.blockY);
  shape.gridX = divideUp(threads, shape.blockX);
  int64_t parts = std::min(rows / (shape.blockY * kMinPerThread),
                           kMaxBlocks / 2 / shape.gridX);
  if (rows <= kMaxUnsplit)
    parts = 1;
  makePartials(isSerial() ? 1 : std::max<int64_t>(1, parts));
  shape.gridY = splits;

  auto code = mapper.makeLaunch(op.getLoc(), shape);
  bindAll(*code);
  Value thread =
      code->add(code->mul(code->blockX, shape.blockX), code->threadX);
  Value isInside = code->isLess(thread, threads);
  if (isSerial()) {
    buildIf(*code, isInside, [&] {
      Value column = code->mul(thread, width);
      finish(*code, column, sumRows(*code, column, code->index(0), 1, width),
             width);
    });
    return;
  }
  // Threads past the end do what the last one does, and store nothing.
  thread = arith::MinUIOp::create(code->b, code->loc, thread,
                                  code->index(threads - 1));
  Value column = code->mul(thread, width);
  Value split0 = code->launch.getBlockIds().y;
  Value first = code->add(code->mul(split0, shape.blockY), code->threadY);
  Sums sums = joinThreads(
      *code, sumRows(*code, column, first, shape.blockY * splits, width),
      width);
  Value isOwner = arith::AndIOp::create(code->b, code->loc, isInside,
                                        code->isEqual(code->threadY, 0));
  buildIf(*code, isOwner, [&] {
    if (splits > 1)
      storePartials(*code, split0, column, sums);
    else
      finish(*code, column, sums, width);
  });
  if (splits > 1)
    addPartials(width);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

void Reduction::emitRows() {
  if (isSerial())
    return emitColumns();
  int64_t width = chooseWidth(op), pieces = rows / width;
  int64_t team = rows >= kBlockRow ? kBlockSize : kWarpSize;
  int64_t parts =
      std::min(pieces / (team * kMinPerThread), kMaxBlocks / 2 / columns);
  makePartials(std::max<int64_t>(1, parts));
  GpuShape shape;
  shape.blockX = team == kWarpSize ? 4 * kWarpSize : team;
  int64_t teams = shape.blockX / team;
  shape.gridX = std::min(divideUp(columns, teams), kMaxBlocks * 8);
  shape.gridY = splits;

  auto code = mapper.makeLaunch(op.getLoc(), shape);
  bindAll(*code);
  Value lane = code->modulo(code->threadX, team);
  Value ownTeam = code->add(code->mul(code->blockX, teams),
                            code->divide(code->threadX, team));
  Value part = code->launch.getBlockIds().y;
  Value first = code->add(code->mul(part, team), lane);
  llvm::SetVector<Value> bases;
  addWideBases(op, width, bases);
  buildStrided(*code, ownTeam, columns, shape.gridX * teams, {},
               [&](Value column, ValueRange) -> SmallVector<Value> {
                 SmallVector<Value> start = flatten(getNeutral(*code, 1));
                 SmallVector<Value> sums = buildAligned(
                     *code, bases.getArrayRef(), width > 1,
                     TypeRange(ValueRange(start)), [&](bool wide) {
                       return buildStrided(
                           *code, first, pieces, team * splits, start,
                           [&](Value at, ValueRange carried) {
                             return addRow(*code,
                                           makePiece(*code, column,
                                                     code->mul(at, width),
                                                     width, wide),
                                           carried, /*alongRow=*/true);
                           });
                     });
                 sums = code->reduceTeam(sums, combiners, team);
                 buildIf(*code, code->isEqual(lane, 0), [&] {
                   if (splits > 1)
                     storePartials(*code, part, column, split(sums, 1));
                   else
                     finish(*code, column, split(sums, 1), 1);
                 });
                 return {};
               });
  if (splits > 1)
    addPartials(1);
}

void GpuMapper::emitRows(size_t step) { Reduction(*this, step).emitRows(); }
