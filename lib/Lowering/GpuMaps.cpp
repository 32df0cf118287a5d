//===- GpuMaps.cpp - Elementwise steps and scalar effects --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuMapper.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::zero;

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

static void computeAndStore(LaunchCode &code, linalg::GenericOp op,
                            const Piece &piece) {
  PieceValues values;
  loadPieces(code, op, piece, values);
  PieceValues results = computePiece(code, op, piece, values);
  for (auto [init, result] :
       llvm::zip_equal(op.getDpsInitsMutable(), results))
    storePiece(code, init, piece, result);
}

void GpuMapper::emitMap(LaunchCode &code, linalg::GenericOp op) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  int64_t total = countLoops(op), width = chooseWidth(op, /*tails=*/true);
  int64_t threads = code.shape.gridX * code.shape.blockX;
  Value first = code.add(code.mul(code.blockX, code.shape.blockX),
                         code.threadX);
  llvm::SetVector<Value> bases;
  addWideBases(op, width, bases);
  buildAligned(code, bases.getArrayRef(), width > 1, {}, [&](bool wide) {
    buildStrided(code, first, total / width, threads, {},
                 [&](Value at, ValueRange) -> SmallVector<Value> {
                   Piece piece;
                   piece.indices =
                       code.delinearize(code.mul(at, width), extents);
                   piece.width = width;
                   piece.wide = wide;
                   computeAndStore(code, op, piece);
                   return {};
                 });
    return SmallVector<Value>();
  });
  int64_t rest = total % width;
  if (rest == 0)
    return;
  buildIf(code, code.isLess(first, rest), [&] {
    Piece piece;
    piece.indices = {code.add(first, code.index(total - rest))};
    computeAndStore(code, op, piece);
  });
}

/// Steps that do not meet share a launch.
void GpuMapper::emitMaps(size_t first) {
  SmallVector<Operation *> ops = {steps[first].op};
  for (size_t next = first + 1; next < steps.size(); ++next) {
    Step &step = steps[next];
    if (step.done)
      continue;
    if (step.kind != Kind::Map || llvm::any_of(ops, [&](Operation *op) {
          return touchesConflict(op, step.op);
        }))
      break;
    step.done = true;
    ops.push_back(step.op);
  }
  int64_t threads = 1;
  for (Operation *op : ops) {
    auto generic = cast<linalg::GenericOp>(op);
    threads = std::max(threads, countLoops(generic) /
                                    chooseWidth(generic, /*tails=*/true));
  }
  GpuShape shape;
  shape.blockX = std::min<int64_t>(kBlockSize, llvm::alignTo(threads, kWarpSize));
  shape.gridX = std::min(kMaxBlocks, divideUp(threads, shape.blockX));
  std::unique_ptr<LaunchCode> code =
      makeLaunch(steps[first].op->getLoc(), shape);
  bindScalars(*code, ops);
  for (Operation *op : ops)
    emitMap(*code, cast<linalg::GenericOp>(op));
}

//===----------------------------------------------------------------------===//
// Scalar effects
//===----------------------------------------------------------------------===//

/// Stores of scalars before the next step join the last launch, if it is of one
/// block, or get one of a warp.
void GpuMapper::emitEffects() {
  SmallVector<Operation *> stores;
  for (Step &step : steps) {
    if (!step.done && step.kind != Kind::Effect)
      break;
    if (!step.done)
      stores.push_back(step.op);
    step.done = true;
  }
  if (stores.empty())
    return;
  if (!tail) {
    GpuShape shape;
    shape.blockX = kWarpSize;
    tail = makeLaunch(stores.front()->getLoc(), shape);
  }
  LaunchCode &code = *tail;
  buildIf(code, code.isEqual(code.threadX, 0), [&] {
    bindScalars(code, stores);
    for (Operation *store : stores)
      code.clone(store);
  });
}
