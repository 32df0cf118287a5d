//===- GpuNormalize.cpp - Scalars of a kernel become values --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A bufferized kernel passes scalars in buffers of rank 0. Here they become
// values again: what a launch needs of them it computes itself. Those that a
// reduction or a loop leaves behind are read from scratch memory.
//
//===----------------------------------------------------------------------===//

#include "GpuMapper.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::zero;

Value GpuMapper::makeSlot(Type type) { return addScratch(type, {}); }

/// Inputs that are one number become that number.
void GpuMapper::readScalars(linalg::GenericOp op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  OpBuilder b(op);
  for (OpOperand *input : op.getDpsInputOperands()) {
    Value buffer = input->get(), scalar;
    auto global = getBase(buffer).getDefiningOp<memref::GetGlobalOp>();
    if (global) {
      auto symbol = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(
          op, global.getNameAttr());
      auto value =
          dyn_cast_or_null<SplatElementsAttr>(symbol.getConstantInitValue());
      if (value)
        scalar = arith::ConstantOp::create(b, op.getLoc(),
                                           value.getSplatValue<TypedAttr>());
    } else if (isScalarBuffer(buffer) && op->getBlock() == &body) {
      scalar = scalars.lookup(buffer);
      if (!scalar)
        scalar = memref::LoadOp::create(b, op.getLoc(), buffer);
    }
    if (!scalar)
      continue;
    input->set(scalar);
    maps[input->getOperandNumber()] =
        AffineMap::get(op.getNumLoops(), 0, op.getContext());
  }
  op.setIndexingMapsAttr(b.getAffineMapArrayAttr(maps));
}

/// An operation without loops is scalar arithmetic.
void GpuMapper::inlineScalar(linalg::GenericOp op) {
  IRMapping map;
  OpBuilder b(op);
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    if (isScalarBuffer(value)) {
      Value known = scalars.lookup(value);
      if (!known && op.payloadUsesValueFromOperand(&operand))
        known = memref::LoadOp::create(b, op.getLoc(), value);
      value = known;
    }
    if (value)
      map.map(op.getMatchingBlockArgument(&operand), value);
  }
  for (Operation &inner : op.getBody()->without_terminator())
    b.clone(inner, map);
  for (auto [buffer, result] : llvm::zip_equal(
           op.getOutputs(), op.getBody()->getTerminator()->getOperands()))
    scalars[buffer] = map.lookupOrDefault(result);
  op.erase();
}

/// The results of rank 0 of a reduction get scratch memory of their own.
void GpuMapper::splitScalarResults(linalg::GenericOp op) {
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(op);
  for (auto [index, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    Value buffer = init.get();
    if (!isScalarBuffer(buffer))
      continue;
    ScalarResult result;
    result.combiner = getCombiner(op, index);
    result.init = scalars.lookup(buffer);
    if (!result.init) {
      OpBuilder before(op);
      result.init = memref::LoadOp::create(before, op.getLoc(), buffer);
    }
    result.slot = makeSlot(cast<MemRefType>(buffer.getType()).getElementType());
    init.set(result.slot);
    scalars[buffer] = memref::LoadOp::create(b, op.getLoc(), result.slot);
    results[op].push_back(result);
  }
}

/// What combines the number `index` that a nest of loops carries in each step,
/// or null if steps depend on each other otherwise.
static Operation *getLoopCombiner(scf::ForOp loop, unsigned index) {
  while (true) {
    Value arg = loop.getRegionIterArgs()[index];
    Value yielded = loop.getBody()->getTerminator()->getOperand(index);
    Operation *def = yielded.getDefiningOp();
    if (!def || !arg.hasOneUse())
      return nullptr;
    if (auto inner = dyn_cast<scf::ForOp>(def)) {
      unsigned result = cast<OpResult>(yielded).getResultNumber();
      if (inner.getInitArgs()[result] != arg || !yielded.hasOneUse())
        return nullptr;
      loop = inner;
      index = result;
      continue;
    }
    bool combines = llvm::is_contained(def->getOperands(), arg) &&
                    def->getNumOperands() == 2 && yielded.hasOneUse() &&
                    arith::getNeutralElement(def);
    return combines ? def : nullptr;
  }
}

/// Scalars from before a loop that it does not change.
void GpuMapper::readInLoop(scf::ForOp loop) {
  auto isWritten = [&](Value buffer) {
    return llvm::any_of(buffer.getUsers(), [&](Operation *user) {
      auto generic = dyn_cast<linalg::GenericOp>(user);
      bool writes =
          isa<memref::StoreOp>(user) ||
          (generic && llvm::is_contained(generic.getOutputs(), buffer));
      return writes && loop->isAncestor(user);
    });
  };
  loop.walk([&](linalg::GenericOp op) {
    readScalars(op);
    for (OpOperand *input : op.getDpsInputOperands())
      if (Value known = scalars.lookup(input->get());
          known && !isWritten(input->get()))
        input->set(known);
  });
  loop.walk([&](memref::LoadOp load) {
    if (Value known = scalars.lookup(load.getMemRef());
        known && !isWritten(load.getMemRef())) {
      load.replaceAllUsesWith(known);
      load.erase();
    }
  });
}

void GpuMapper::splitLoopResults(scf::ForOp loop) {
  OpBuilder b(loop->getContext());
  b.setInsertionPointAfter(loop);
  for (auto [index, value] : llvm::enumerate(loop.getResults())) {
    ScalarResult result;
    result.combiner = getLoopCombiner(loop, index);
    result.init = loop.getInitArgs()[index];
    results[loop].push_back(result);
    if (!value.getType().isIntOrIndexOrFloat())
      continue;
    result.slot = makeSlot(value.getType());
    value.replaceAllUsesWith(
        memref::LoadOp::create(b, loop.getLoc(), result.slot));
    results[loop].back() = result;
  }
}

void GpuMapper::normalize() {
  for (Operation &op : llvm::make_early_inc_range(body)) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      readScalars(generic);
      if (generic.getNumLoops() == 0 &&
          llvm::all_of(generic.getOutputs(), isScalarBuffer))
        inlineScalar(generic);
      else
        splitScalarResults(generic);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      readInLoop(loop);
      splitLoopResults(loop);
    } else if (auto load = dyn_cast<memref::LoadOp>(op)) {
      if (Value known = scalars.lookup(load.getMemRef())) {
        load.replaceAllUsesWith(known);
        load.erase();
      }
    } else if (auto store = dyn_cast<memref::StoreOp>(op);
               store && isScalarBuffer(store.getMemRef())) {
      scalars[store.getMemRef()] = store.getValueToStore();
      store.erase();
    }
  }
  OpBuilder b(body.getTerminator());
  for (auto [buffer, value] : scalars)
    if (isa<BlockArgument>(getBase(buffer)))
      memref::StoreOp::create(b, value.getLoc(), value, buffer);
}
