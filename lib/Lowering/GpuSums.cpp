//===- GpuSums.cpp - Sums to a scalar ----------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Small sums are one block's. Of a large one every block leaves its part in
// scratch memory, and one block adds them up in order.
//
//===----------------------------------------------------------------------===//

#include "GpuMapper.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::zero;

/// Elements that one block still adds up faster than a second launch starts.
static constexpr int64_t kMaxOneBlock = 32768;
static constexpr int64_t kMaxThreads = 1024;
/// Operands of one launch; more would not fit into a launch's arguments.
static constexpr size_t kMaxChain = 256;

static SmallVector<Operation *>
getCombiners(ArrayRef<ScalarResult> results) {
  SmallVector<Operation *> combiners;
  for (const ScalarResult &result : results)
    combiners.push_back(result.combiner);
  return combiners;
}

/// Adds a thread's elements of `op` to `sums`.
static SmallVector<Value> addElements(LaunchCode &code, linalg::GenericOp op,
                                      ValueRange sums) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  int64_t total = countLoops(op), width = chooseWidth(op, /*tails=*/true);
  Value first =
      code.add(code.mul(code.blockX, code.shape.blockX), code.threadX);
  auto addPiece = [&](const Piece &piece, ValueRange carried) {
    PieceValues values(op->getNumOperands());
    for (OpOperand *input : op.getDpsInputOperands())
      if (op.payloadUsesValueFromOperand(input))
        values[input->getOperandNumber()] = loadPiece(code, *input, piece);
    SmallVector<Value> results(carried);
    for (int64_t at = 0; at < piece.width; ++at) {
      SmallVector<Value> args;
      for (OpOperand *input : op.getDpsInputOperands()) {
        const SmallVector<Value> &own = values[input->getOperandNumber()];
        args.push_back(own.empty() ? Value() : own[at]);
      }
      llvm::append_range(args, results);
      results = computeElement(code, op, piece, at, args);
    }
    return results;
  };
  llvm::SetVector<Value> bases;
  addWideBases(op, width, bases);
  SmallVector<Value> results = buildAligned(
      code, bases.getArrayRef(), width > 1, sums.getTypes(), [&](bool wide) {
        return buildStrided(
            code, first, total / width, code.shape.gridX * code.shape.blockX,
            sums, [&](Value at, ValueRange carried) {
              Piece piece;
              piece.indices = code.delinearize(code.mul(at, width), extents);
              piece.width = width;
              piece.wide = wide;
              return addPiece(piece, carried);
            });
      });
  int64_t rest = total % width;
  if (rest == 0)
    return results;
  // A loop of one step at most.
  return buildStrided(code, first, rest, rest, results,
                      [&](Value at, ValueRange carried) {
                        Piece piece;
                        piece.indices = {
                            code.add(at, code.index(total - rest))};
                        return addPiece(piece, carried);
                      });
}

/// Sums of one number over several tensors are one sum.
void GpuMapper::emitSums(size_t first) {
  SmallVector<Operation *> chain = {steps[first].op};
  for (size_t next = first + 1;
       next < steps.size() && chain.size() < kMaxChain; ++next) {
    Step &step = steps[next];
    if (step.done)
      continue;
    ArrayRef<ScalarResult> last = results[chain.back()];
    if (step.kind != Kind::Sum || last.size() != 1)
      break;
    ArrayRef<ScalarResult> own = results[step.op];
    auto load = own.front().init.getDefiningOp<memref::LoadOp>();
    if (own.size() != 1 || !load || load.getMemRef() != last.front().slot ||
        !load->use_empty() ||
        own.front().combiner->getName() != last.front().combiner->getName())
      break;
    step.done = true;
    chain.push_back(step.op);
  }
  SmallVector<ScalarResult> sums(results[chain.back()]);
  if (chain.size() > 1)
    sums.front().init = results[chain.front()].front().init;

  int64_t threads = 0;
  for (Operation *op : chain)
    threads += countLoops(cast<linalg::GenericOp>(op)) /
               chooseWidth(cast<linalg::GenericOp>(op), /*tails=*/true);
  int64_t elements = 0;
  for (Operation *op : chain)
    elements += countLoops(cast<linalg::GenericOp>(op));
  GpuShape shape;
  bool oneBlock = elements <= kMaxOneBlock;
  shape.blockX =
      std::min(oneBlock ? kMaxThreads : kBlockSize,
               int64_t(llvm::PowerOf2Ceil(llvm::alignTo(threads, kWarpSize))));
  if (!oneBlock)
    shape.gridX = std::min(kMaxBlocks / 2, divideUp(threads, shape.blockX));

  Location loc = steps[first].op->getLoc();
  std::unique_ptr<LaunchCode> code = makeLaunch(loc, shape);
  bindScalars(*code, chain);
  SmallVector<Operation *> combiners = getCombiners(sums);
  SmallVector<Value> values;
  for (Operation *combiner : combiners)
    values.push_back(code->neutral(combiner));
  for (Operation *op : chain)
    values = addElements(*code, cast<linalg::GenericOp>(op), values);
  values = code->reduceTeam(values, combiners, shape.blockX);
  if (oneBlock) {
    for (auto [sum, value] : llvm::zip_equal(sums, values)) {
      bindScalars(*code, chain);
      finishScalar(*code, sum, value);
    }
    tail = std::move(code);
    return;
  }
  SmallVector<Partials> partials;
  for (auto [sum, value] : llvm::zip_equal(sums, values)) {
    Value buffer = addScratch(value.getType(), shape.gridX);
    partials.push_back({sum, buffer, shape.gridX});
    buildIf(*code, code->isEqual(code->threadX, 0), [&, &own = value] {
      memref::StoreOp::create(code->b, loc, own, code->resolve(buffer),
                              code->blockX);
    });
  }
  emitFinish(partials);
}

/// Leaves the value of a scalar in its place, and tells it to what follows in
/// the launch.
void GpuMapper::finishScalar(LaunchCode &code, const ScalarResult &result,
                             Value value) {
  value = code.combine(result.combiner, code.resolve(result.init), value);
  for (Operation *user : result.slot.getUsers())
    if (auto load = dyn_cast<memref::LoadOp>(user))
      code.bind(load.getResult(), value);
  buildIf(code, code.isEqual(code.threadX, 0), [&] {
    memref::StoreOp::create(code.b, code.loc, value, code.resolve(result.slot));
  });
}

void GpuMapper::emitFinish(ArrayRef<Partials> partials) {
  GpuShape shape;
  shape.blockX = kBlockSize;
  std::unique_ptr<LaunchCode> code =
      makeLaunch(partials.front().partials.getLoc(), shape);
  for (const Partials &part : partials) {
    Operation *combiner = part.result.combiner;
    Value buffer = code->resolve(part.partials);
    SmallVector<Value> sums = buildStrided(
        *code, code->threadX, part.count, shape.blockX,
        code->neutral(combiner),
        [&](Value at, ValueRange carried) -> SmallVector<Value> {
          Value next = memref::LoadOp::create(code->b, code->loc, buffer, at);
          return {code->combine(combiner, carried[0], next)};
        });
    sums = code->reduceTeam(sums, combiner, shape.blockX);
    finishScalar(*code, part.result, sums[0]);
  }
  tail = std::move(code);
}
