//===- GpuRowCode.cpp - The code of threads that share a row -----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Element e of a row belongs to the same thread in all operations on the row:
// the pieces number lane, lane + team, lane + 2 * team, ... of a few elements.
// In short rows these turns are unrolled, and threads past the end of the row
// compute its last piece again and store nothing.
//
//===----------------------------------------------------------------------===//

#include "GpuRowLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::zero;

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value RowLoop::readScalar(Value buffer) {
  if (Value known = scalars.lookup(getBase(buffer)))
    return known;
  return memref::LoadOp::create(code->b, loc, code->resolve(buffer));
}

/// An operation without loops: all threads compute it.
void RowLoop::emitScalar(linalg::GenericOp op) {
  SmallVector<Value> args;
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    if (!op.payloadUsesValueFromOperand(&operand))
      args.push_back(Value());
    else if (isScalarBuffer(value))
      args.push_back(readScalar(value));
    else
      args.push_back(loadPiece(*code, operand, Piece()).front());
  }
  SmallVector<Value> results = computeElement(*code, op, Piece(), 0, args);
  for (auto [init, result] : llvm::zip_equal(op.getDpsInitsMutable(), results)) {
    Value base = getBase(init.get());
    if (isScalarBuffer(init.get()) && isPrivate(base)) {
      scalars[base] = result;
      continue;
    }
    buildIf(*code, code->isEqual(lane, 0), [&, &out = init, &own = result] {
      storePiece(*code, out, Piece(), own);
    });
  }
}

void RowLoop::store(memref::StoreOp store) {
  Value base = getBase(store.getMemRef());
  if (isScalarBuffer(store.getMemRef()) && isPrivate(base)) {
    scalars[base] = code->resolve(store.getValueToStore());
    return;
  }
  buildIf(*code, code->isEqual(lane, 0), [&] { code->clone(store); });
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// The piece with `number` of the row, or of what is summed up of it.
Piece RowLoop::makePiece(linalg::GenericOp op, Value number) {
  bool isSum = op.getNumReductionLoops() == op.getNumLoops();
  SmallVector<int64_t> own;
  for (auto [extent, kind] : llvm::zip_equal(op.getStaticLoopRanges(),
                                             op.getIteratorTypesArray()))
    if (isSum || kind == utils::IteratorType::parallel)
      own.push_back(extent);
  SmallVector<Value> indices = code->delinearize(code->mul(number, width), own);
  Piece piece;
  piece.width = width;
  piece.wide = wide;
  size_t next = 0;
  for (utils::IteratorType kind : op.getIteratorTypesArray())
    piece.indices.push_back(isSum || kind == utils::IteratorType::parallel
                                ? indices[next++]
                                : code->index(0));
  return piece;
}

/// Calls `build` for the pieces of this thread. What it carries goes from one
/// to the next.
void RowLoop::forPieces(
    linalg::GenericOp op, ValueRange carried,
    llvm::function_ref<SmallVector<Value>(const Piece &, int64_t turn,
                                          Value inside, ValueRange)>
        build,
    SmallVector<Value> *results) {
  int64_t pieces = countElements(op) / width;
  SmallVector<Value> values(carried);
  if (!unrolled) {
    values = buildStrided(*code, lane, pieces, team, values,
                          [&](Value number, ValueRange inner) {
                            return build(makePiece(op, number), 0, Value(),
                                         inner);
                          });
  } else {
    for (int64_t turn = 0; turn < divideUp(pieces, team); ++turn) {
      Value number = code->add(lane, code->index(turn * team)), inside;
      if ((turn + 1) * team > pieces) {
        inside = code->isLess(number, pieces);
        number = arith::MinUIOp::create(code->b, loc, number,
                                        code->index(pieces - 1));
      }
      values = build(makePiece(op, number), turn, inside, values);
    }
  }
  if (results)
    *results = values;
}

/// The elements that the body reads.
PieceValues RowLoop::readOperands(linalg::GenericOp op, const Piece &piece,
                                  int64_t turn) {
  PieceValues values(op->getNumOperands());
  for (OpOperand &operand : op->getOpOperands()) {
    Value buffer = operand.get();
    SmallVector<Value> &own = values[operand.getOperandNumber()];
    if (!isa<MemRefType>(buffer.getType()) ||
        !op.payloadUsesValueFromOperand(&operand))
      continue;
    Value base = getBase(buffer);
    if (auto it = registers.find(base); it != registers.end())
      own = it->second[turn];
    else if (isScalarBuffer(buffer) && scalars.count(base))
      own.assign(piece.width, readScalar(buffer));
  }
  loadPieces(*code, op, piece, values);
  return values;
}

/// A reduction to scalars: a thread's elements first, then all threads'.
void RowLoop::emitSum(linalg::GenericOp op) {
  SmallVector<Operation *> combiners;
  SmallVector<Value> sums;
  for (unsigned i = 0; i < op.getNumDpsInits(); ++i) {
    combiners.push_back(getCombiner(op, i));
    sums.push_back(code->neutral(combiners.back()));
  }
  unsigned inputs = op.getNumDpsInputs();
  forPieces(
      op, sums,
      [&](const Piece &piece, int64_t turn, Value inside, ValueRange carried) {
        SmallVector<Value> next(carried);
        PieceValues read = readOperands(op, piece, turn);
        for (int64_t at = 0; at < piece.width; ++at) {
          SmallVector<Value> args;
          for (unsigned i = 0; i < inputs; ++i)
            args.push_back(read[i].empty() ? Value() : read[i][at]);
          llvm::append_range(args, next);
          next = computeElement(*code, op, piece, at, args);
        }
        if (inside)
          for (auto [value, old] : llvm::zip_equal(next, carried))
            value = arith::SelectOp::create(code->b, loc, inside, value, old);
        return next;
      },
      &sums);
  sums = code->reduceTeam(sums, combiners, team);
  for (auto [out, combiner, sum] :
       llvm::zip_equal(op.getOutputs(), combiners, sums))
    scalars[getBase(out)] = code->combine(combiner, readScalar(out), sum);
}

/// The results of an operation that sums up something for each element.
PieceValues RowLoop::reduceInside(linalg::GenericOp op, const Piece &piece,
                                  PieceValues values) {
  SmallVector<int64_t> extents;
  for (auto [extent, kind] : llvm::zip_equal(op.getStaticLoopRanges(),
                                             op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      extents.push_back(extent);
  int64_t count = countLoops(op, utils::IteratorType::reduction);
  unsigned inputs = op.getNumDpsInputs(), outs = op.getNumDpsInits();
  SmallVector<Value> start;
  for (unsigned i = 0; i < outs; ++i)
    llvm::append_range(start, values[inputs + i]);
  SmallVector<Value> flat = buildStrided(
      *code, code->index(0), count, 1, start,
      [&](Value number, ValueRange carried) {
        SmallVector<Value> reduced = code->delinearize(number, extents);
        Piece inner = piece;
        size_t next = 0;
        for (auto [dim, kind] : llvm::enumerate(op.getIteratorTypesArray()))
          if (kind == utils::IteratorType::reduction)
            inner.indices[dim] = reduced[next++];
        PieceValues all(op->getNumOperands());
        for (unsigned i = 0; i < outs; ++i)
          all[inputs + i].assign(carried.begin() + i * piece.width,
                                 carried.begin() + (i + 1) * piece.width);
        loadPieces(*code, op, inner, all);
        SmallVector<Value> results;
        for (const SmallVector<Value> &own :
             computePiece(*code, op, inner, all))
          llvm::append_range(results, own);
        return results;
      });
  PieceValues results;
  for (unsigned i = 0; i < outs; ++i)
    results.emplace_back(ArrayRef(flat).slice(i * piece.width, piece.width));
  return results;
}

void RowLoop::emitPiece(linalg::GenericOp op, Piece piece, int64_t turn,
                        Value inside) {
  PieceValues values = readOperands(op, piece, turn);
  PieceValues results = op.getNumReductionLoops() > 0
                            ? reduceInside(op, piece, values)
                            : computePiece(*code, op, piece, values);
  for (auto [init, result] : llvm::zip_equal(op.getDpsInitsMutable(), results)) {
    Value base = getBase(init.get());
    bool held = holders.count(base) && holders[base] == Holder::Registers;
    if (held || accumulators.contains(base)) {
      Rows &rows = registers[base];
      rows.resize(turns);
      rows[turn] = result;
    } else if (inside) {
      buildIf(*code, inside, [&, &out = init, &own = result] {
        storePiece(*code, out, piece, own);
      });
    } else {
      storePiece(*code, init, piece, result);
    }
  }
}

void RowLoop::emitElements(linalg::GenericOp op) {
  forPieces(
      op, {},
      [&](const Piece &piece, int64_t turn, Value inside, ValueRange) {
        emitPiece(op, piece, turn, inside);
        return SmallVector<Value>();
      },
      nullptr);
}

//===----------------------------------------------------------------------===//
// A row
//===----------------------------------------------------------------------===//

/// Waits for other threads where `op` touches what they may have touched.
void RowLoop::syncFor(Operation &op) {
  llvm::SmallPtrSet<Value, 4> now;
  op.walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (isa<MemRefType>(operand.getType()) &&
          !isa<ViewLikeOpInterface>(inner))
        if (Value base = getBase(operand); mixed.contains(base))
          now.insert(base);
  });
  bool waits = llvm::any_of(now, [&](Value base) {
    return touched.contains(base);
  });
  if (waits) {
    code->syncTeam(team);
    touched.clear();
  }
  touched.insert(now.begin(), now.end());
}

void RowLoop::emitOp(Operation &op) {
  syncFor(op);
  if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    if (generic.getNumLoops() == 0)
      return emitScalar(generic);
    if (generic.getNumReductionLoops() == generic.getNumLoops() &&
        llvm::all_of(generic.getOutputs(), isScalarBuffer))
      return emitSum(generic);
    return emitElements(generic);
  }
  if (auto own = dyn_cast<memref::StoreOp>(op))
    return store(own);
  if (isa<memref::AllocaOp>(op))
    return;
  if (auto load = dyn_cast<memref::LoadOp>(op);
      load && scalars.count(getBase(load.getMemRef())))
    return code->bind(load.getResult(), readScalar(load.getMemRef()));
  Operation *copy = code->clone(&op);
  for (auto [from, to] : llvm::zip_equal(op.getResults(), copy->getResults()))
    code->bind(from, to);
}

/// The accumulators come after what the loop itself carries.
SmallVector<Value> RowLoop::emitRow(Value row, ValueRange carried) {
  for (auto [variable, index] :
       llvm::zip_equal(nest.variables, code->delinearize(row, nest.extents)))
    code->bind(variable, index);
  auto inner = nest.inner;
  unsigned count = inner.getRegionIterArgs().size();
  for (auto [arg, value] : llvm::zip(inner.getRegionIterArgs(), carried))
    code->bind(arg, value);
  size_t next = count;
  for (auto &[base, combiner] : accumulators) {
    Rows &rows = registers[base];
    rows.assign(turns, {});
    for (SmallVector<Value> &own : rows)
      for (int64_t at = 0; at < width; ++at)
        own.push_back(carried[next++]);
  }
  touched.clear();
  for (Operation &op : nest.getBody().without_terminator())
    emitOp(op);
  // The next row of the team comes into the same memory.
  if (llvm::any_of(touched, [&](Value base) { return isPrivate(base); }))
    code->syncTeam(team);
  SmallVector<Value> results;
  for (Value value : nest.getBody().getTerminator()->getOperands())
    results.push_back(code->resolve(value));
  for (auto &[base, combiner] : accumulators)
    for (const SmallVector<Value> &own : registers[base])
      llvm::append_range(results, own);
  return results;
}
