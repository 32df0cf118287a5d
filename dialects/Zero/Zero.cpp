//===- Zero.cpp - the zero dialect ----------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registration, and the arithmetic of shards.
//
//===----------------------------------------------------------------------===//

#include "dialects/Zero/Zero.h"

using namespace mlir;
using namespace mlir::zero;

#include "dialects/Zero/ZeroDialect.cpp.inc"
#include "dialects/Zero/ZeroInterfaces.cpp.inc"

void ZeroDialect::initialize() {
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialects/Zero/ZeroOps.cpp.inc"
      >();
}

int64_t zero::getChunkRows(int64_t rows, int64_t ranks) {
  return llvm::divideCeil(rows, ranks);
}

int64_t zero::getRowsOfRank(int64_t rows, int64_t ranks, int64_t rank) {
  int64_t chunk = getChunkRows(rows, ranks);
  return std::clamp<int64_t>(rows - rank * chunk, 0, chunk);
}

int64_t zero::getPaddedRows(int64_t rows, int64_t ranks) {
  return getChunkRows(rows, ranks) * ranks;
}

RankedTensorType zero::getLocalType(RankedTensorType full, int64_t ranks,
                                    int64_t dim) {
  SmallVector<int64_t> shape(full.getShape());
  shape[dim] = getChunkRows(shape[dim], ranks);
  return RankedTensorType::get(shape, full.getElementType());
}

FailureOr<int64_t> zero::getRanks(shard::GridOp grid, ArrayRef<int64_t> axes) {
  int64_t ranks = 1;
  for (int64_t axis : axes) {
    if (axis < 0 || axis >= grid.getRank() ||
        ShapedType::isDynamic(grid.getShape()[axis]))
      return failure();
    ranks *= grid.getShape()[axis];
  }
  return ranks;
}

RankedTensorType zero::getLogicalType(Type type) {
  if (auto sharded = dyn_cast<ShardedType>(type))
    return sharded.getLogicalType();
  return dyn_cast<RankedTensorType>(type);
}

int64_t zero::getTensorBytes(Type type) {
  RankedTensorType tensor = getLogicalType(type);
  if (!tensor || !tensor.hasStaticShape() ||
      !tensor.getElementType().isIntOrFloat())
    return 0;
  return tensor.getNumElements() *
         llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
}

int64_t zero::getOperandAndResultBytes(Operation *op) {
  int64_t bytes = 0;
  auto count = [&](Type type) {
    if (isa<RankedTensorType>(type))
      bytes += getTensorBytes(type);
  };
  llvm::for_each(op->getOperandTypes(), count);
  llvm::for_each(op->getResultTypes(), count);
  return bytes;
}

Work zero::getWorkPerElement(Operation *op, double flops,
                             double transcendentals) {
  int64_t elements = 0;
  auto count = [&](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (tensor && tensor.hasStaticShape())
      elements = std::max(elements, tensor.getNumElements());
  };
  llvm::for_each(op->getOperandTypes(), count);
  llvm::for_each(op->getResultTypes(), count);
  Work work;
  work.flops = flops * elements;
  work.transcendentals = transcendentals * elements;
  work.bytes = getOperandAndResultBytes(op);
  return work;
}

Work zero::getProductWork(Operation *op, int64_t batch, int64_t m, int64_t n,
                          int64_t k) {
  Work work;
  work.flops = 2.0 * batch * m * n * k;
  work.bytes = getOperandAndResultBytes(op);
  work.batch = batch;
  work.m = m;
  work.n = n;
  work.k = k;
  return work;
}
