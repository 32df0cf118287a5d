//===- GpuRows.cpp - Launches of loops over rows -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuRowLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::zero;

/// Temporaries that are in memory: a part of scratch memory for each team.
void RowLoop::bindTemporaries() {
  for (Value base : temporaries) {
    if (holders[base] == Holder::Registers)
      continue;
    auto type = cast<MemRefType>(base.getType());
    int64_t bytes = std::max<int64_t>(1, type.getElementTypeBitWidth() / 8) *
                    type.getNumElements();
    Value offset = code->add(code->mul(ownTeam, llvm::alignTo(bytes, 16)),
                             code->index(offsets[base]));
    code->bind(base,
               memref::ViewOp::create(
                   code->b, loc,
                   MemRefType::get(type.getShape(), type.getElementType()),
                   mapper.getScratch(), offset, ValueRange()));
  }
}

/// What a team has added up over its rows goes to scratch memory.
void RowLoop::storePartials(ValueRange carried) {
  size_t next = partials.size();
  buildIf(*code, code->isEqual(lane, 0), [&] {
    for (auto [part, value] : llvm::zip(partials, carried))
      memref::StoreOp::create(code->b, loc, value, code->resolve(part.partials),
                              ownTeam);
  });
  for (Value buffer : sumBuffers) {
    Value memory = code->resolve(buffer);
    int64_t pieces = elements / width;
    for (int64_t turn = 0; turn < turns; ++turn, next += width) {
      Value number = code->add(lane, code->index(turn * team));
      buildIf(*code, code->isLess(number, pieces), [&] {
        Value first = code->mul(number, width);
        for (int64_t at = 0; at < width; ++at)
          memref::StoreOp::create(
              code->b, loc, carried[next + at], memory,
              ValueRange{ownTeam, code->add(first, code->index(at))});
      });
    }
  }
}

/// The buffer that `base` is, with one dimension.
static Value flattenBuffer(OpBuilder &b, Value base) {
  auto type = cast<MemRefType>(base.getType());
  ReassociationIndices all;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    all.push_back(dim);
  if (type.getRank() == 1)
    return base;
  return memref::CollapseShapeOp::create(b, base.getLoc(), base, ArrayRef{all});
}

/// The sums of the teams are added up by a step of their own.
void RowLoop::addSumSteps() {
  if (accumulators.empty())
    return;
  Operation *loop = nest.outer;
  OpBuilder b(loop->getContext());
  b.setInsertionPointAfter(loop);
  SmallVector<Value> outs;
  SmallVector<AffineMap> maps(sumBuffers.size(), b.getMultiDimIdentityMap(2));
  for (auto &[base, combiner] : accumulators) {
    outs.push_back(flattenBuffer(b, base));
    maps.push_back(AffineMap::get(2, 0, b.getAffineDimExpr(1)));
  }
  SmallVector<utils::IteratorType> kinds = {utils::IteratorType::reduction,
                                            utils::IteratorType::parallel};
  auto sum = linalg::GenericOp::create(
      b, loc, TypeRange(), sumBuffers, outs, maps, kinds,
      [&](OpBuilder &n, Location at, ValueRange args) {
        SmallVector<Value> results;
        for (auto [index, entry] : llvm::enumerate(accumulators)) {
          Operation *copy = n.clone(*entry.second);
          copy->setOperands({args[outs.size() + index], args[index]});
          results.push_back(copy->getResult(0));
        }
        linalg::YieldOp::create(n, at, results);
      });
  for (auto &[base, combiner] : accumulators)
    if (Value fill = mapper.fills.lookup({loop, base}))
      mapper.fills[{sum, base}] = fill;
  mapper.steps.insert(mapper.steps.begin() + step + 1,
                      {GpuMapper::Kind::Columns, sum});
}

void RowLoop::emitWholeRows() {
  SmallVector<Value> start;
  for (const Partials &part : partials)
    start.push_back(code->neutral(part.result.combiner));
  for (auto &[base, combiner] : accumulators)
    start.append(turns * width, code->neutral(combiner));
  llvm::SetVector<Value> bases;
  nest.outer.walk([&](linalg::GenericOp op) {
    if (op.getNumLoops() > 0)
      addWideBases(op, width, bases);
  });
  SmallVector<Value> carried = buildAligned(
      *code, bases.getArrayRef(), width > 1, TypeRange(ValueRange(start)),
      [&](bool isWide) {
        wide = isWide;
        registers.clear();
        scalars.clear();
        return buildStrided(
            *code, ownTeam, nest.countSteps(), teams, start,
            [&](Value row, ValueRange inner) { return emitRow(row, inner); });
      });
  storePartials(carried);
}

void RowLoop::emit() {
  GpuShape shape;
  int64_t perBlock = team == kWarpSize ? 4 : 1;
  shape.blockX = team * perBlock;
  shape.gridX = teams / perBlock;
  for (const ScalarResult &result : mapper.results[nest.outer])
    partials.push_back(
        {result,
         mapper.addScratch(
             cast<MemRefType>(result.slot.getType()).getElementType(), teams),
         teams});
  for (auto &[base, combiner] : accumulators)
    sumBuffers.push_back(
        mapper.addScratch(combiner->getResult(0).getType(), {teams, elements}));
  addSumSteps();
  code = mapper.makeLaunch(loc, shape);
  mapper.bindScalars(*code, nest.outer.getOperation());
  lane = code->modulo(code->threadX, team);
  ownTeam = code->add(code->mul(code->blockX, perBlock),
                      code->divide(code->threadX, team));
  bindTemporaries();
  emitWholeRows();
  if (!partials.empty())
    mapper.emitFinish(partials);
}

//===----------------------------------------------------------------------===//
// Loops without linalg operations
//===----------------------------------------------------------------------===//

/// A thread for each step, which it runs as it is.
static void emitThreads(LaunchCode &code, const LoopNest &nest) {
  Value first =
      code.add(code.mul(code.blockX, code.shape.blockX), code.threadX);
  buildStrided(code, first, nest.countSteps(),
               code.shape.gridX * code.shape.blockX, {},
               [&](Value at, ValueRange) -> SmallVector<Value> {
                 for (auto [variable, index] : llvm::zip_equal(
                          nest.variables, code.delinearize(at, nest.extents)))
                   code.bind(variable, index);
                 for (Operation &op : nest.getBody().without_terminator()) {
                   Operation *copy = code.clone(&op);
                   for (auto [from, to] :
                        llvm::zip_equal(op.getResults(), copy->getResults()))
                     code.bind(from, to);
                 }
                 return {};
               });
}

/// Whether one thread can run `loop` as it is: it has elements only, and no
/// memory of its own.
static bool isOfElements(scf::ForOp loop) {
  auto isNumber = [](Type type) { return type.isIntOrIndexOrFloat(); };
  WalkResult result = loop.walk([](Operation *op) {
    bool fine = isPure(op) || isa<scf::ForOp, scf::IfOp, scf::YieldOp,
                                  memref::LoadOp, memref::StoreOp>(op);
    return fine ? WalkResult::advance() : WalkResult::interrupt();
  });
  return llvm::all_of(loop.getResultTypes(), isNumber) &&
         !result.wasInterrupted();
}

/// Steps that depend on each other: one thread runs them in their order.
void GpuMapper::emitInOrder(scf::ForOp loop) {
  GpuShape shape;
  shape.blockX = kWarpSize;
  std::unique_ptr<LaunchCode> code = makeLaunch(loop.getLoc(), shape);
  bindScalars(*code, loop.getOperation());
  buildIf(*code, code->isEqual(code->threadX, 0), [&] {
    Operation *copy = code->clone(loop);
    for (auto [result, value] :
         llvm::zip_equal(results[loop], copy->getResults()))
      memref::StoreOp::create(code->b, loop.getLoc(), value,
                              code->resolve(result.slot));
  });
}

LogicalResult GpuMapper::emitLoop(size_t step) {
  auto loop = cast<scf::ForOp>(steps[step].op);
  RowLoop rows(*this, step);
  if (!rows.analyze()) {
    if (!isOfElements(loop))
      return loop.emitOpError("cannot be mapped to a GPU: its steps depend on "
                              "each other");
    emitInOrder(loop);
    return success();
  }
  bool hasLinalg = false;
  loop.walk([&](linalg::GenericOp) { hasLinalg = true; });
  if (hasLinalg) {
    rows.emit();
    return success();
  }
  LoopNest nest(loop);
  GpuShape shape;
  int64_t count = nest.countSteps();
  shape.blockX = std::min<int64_t>(kBlockSize, llvm::alignTo(count, kWarpSize));
  shape.gridX = std::min(kMaxBlocks * 4, divideUp(count, shape.blockX));
  std::unique_ptr<LaunchCode> code = makeLaunch(loop.getLoc(), shape);
  bindScalars(*code, loop.getOperation());
  emitThreads(*code, nest);
  return success();
}
