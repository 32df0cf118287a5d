//===- GpuLaunch.cpp - The code of one launch as it is built --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuLaunch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::zero;

LaunchCode::LaunchCode(OpBuilder &host, Location loc, GpuShape shape,
                       Place place)
    : b(host), loc(loc), shape(shape), place(std::move(place)) {
  auto size = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(host, loc, value);
  };
  launch = gpu::LaunchOp::create(host, loc, size(shape.gridX),
                                 size(shape.gridY), size(1), size(shape.blockX),
                                 size(shape.blockY), size(1));
  b.setInsertionPointToStart(&launch.getBody().front());
  auto end = gpu::TerminatorOp::create(b, loc);
  b.setInsertionPoint(end);
  threadX = launch.getThreadIds().x;
  threadY = launch.getThreadIds().y;
  blockX = launch.getBlockIds().x;
  blockY = launch.getBlockIds().y;
}

//===----------------------------------------------------------------------===//
// Values of the kernel
//===----------------------------------------------------------------------===//

Operation *LaunchCode::clone(Operation *op) {
  IRMapping local;
  for (Value operand : op->getOperands())
    local.map(operand, resolve(operand));
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    local.map(value, resolve(value));
  return b.clone(*op, local);
}

Value LaunchCode::resolve(Value value) {
  if (Value bound = map.lookupOrNull(value))
    return bound;
  Operation *def = value.getDefiningOp();
  if (!def || launch->isAncestor(def))
    return value;
  if (isa<memref::AllocaOp>(def))
    return resolve(place(value));
  return clone(def)->getResult(cast<OpResult>(value).getResultNumber());
}

//===----------------------------------------------------------------------===//
// Arithmetic of indices
//===----------------------------------------------------------------------===//

Value LaunchCode::index(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value LaunchCode::add(Value lhs, Value rhs) {
  return b.createOrFold<arith::AddIOp>(loc, lhs, rhs);
}

Value LaunchCode::mul(Value lhs, int64_t rhs) {
  return b.createOrFold<arith::MulIOp>(loc, lhs, index(rhs));
}

Value LaunchCode::divide(Value lhs, int64_t rhs) {
  return b.createOrFold<arith::DivUIOp>(loc, lhs, index(rhs));
}

Value LaunchCode::modulo(Value lhs, int64_t rhs) {
  if (rhs == 1)
    return index(0);
  return b.createOrFold<arith::RemUIOp>(loc, lhs, index(rhs));
}

Value LaunchCode::isLess(Value lhs, int64_t rhs) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, lhs,
                               index(rhs));
}

Value LaunchCode::isEqual(Value lhs, int64_t rhs) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lhs,
                               index(rhs));
}

SmallVector<Value> LaunchCode::delinearize(Value linear,
                                           ArrayRef<int64_t> extents) {
  SmallVector<Value> indices(extents.size());
  int64_t total = 1;
  for (int64_t extent : extents)
    total *= extent;
  if (extents.size() <= 1) {
    if (!extents.empty())
      indices[0] = linear;
    return indices;
  }
  // Divisions of 32 bits take a fraction of the time of those of 64.
  bool narrow = total <= std::numeric_limits<int32_t>::max();
  Value rest = linear;
  if (narrow)
    rest = arith::IndexCastUIOp::create(b, loc, b.getI32Type(), rest);
  auto constant = [&](int64_t value) -> Value {
    return narrow ? Value(arith::ConstantIntOp::create(b, loc, value, 32))
                  : index(value);
  };
  for (size_t dim = extents.size(); dim-- > 0;) {
    Value digit = rest;
    if (extents[dim] == 1)
      digit = constant(0);
    else if (dim != 0)
      digit = arith::RemUIOp::create(b, loc, rest, constant(extents[dim]));
    if (dim != 0 && extents[dim] != 1)
      rest = arith::DivUIOp::create(b, loc, rest, constant(extents[dim]));
    if (narrow)
      digit = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), digit);
    indices[dim] = digit;
  }
  return indices;
}

//===----------------------------------------------------------------------===//
// Threads together
//===----------------------------------------------------------------------===//

Value LaunchCode::addShared(Type element, ArrayRef<int64_t> shape) {
  auto space = gpu::AddressSpaceAttr::get(
      b.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace());
  return launch.addWorkgroupAttribution(
      MemRefType::get(shape, element, MemRefLayoutAttrInterface(), space), loc);
}

void LaunchCode::barrier() { gpu::BarrierOp::create(b, loc); }

void LaunchCode::syncTeam(int64_t team) {
  if (team > kWarpSize)
    return barrier();
  Value all = arith::ConstantIntOp::create(b, loc, -1, 32);
  NVVM::SyncWarpOp::create(b, loc, all);
}

Value LaunchCode::combine(Operation *combiner, Value lhs, Value rhs) {
  Operation *copy = b.clone(*combiner);
  copy->setOperands({lhs, rhs});
  return copy->getResult(0);
}

Value LaunchCode::neutral(Operation *combiner) {
  return arith::ConstantOp::create(b, loc, *arith::getNeutralElement(combiner));
}

Value LaunchCode::shuffleBits(Value bits, int64_t distance) {
  return gpu::ShuffleOp::create(b, loc, bits, distance, kWarpSize,
                                gpu::ShuffleMode::XOR)
      .getShuffleResult();
}

/// Shuffles are of 32 bits.
Value LaunchCode::shuffle(Value value, int64_t distance) {
  Type type = value.getType(), i32 = b.getI32Type(), i64 = b.getI64Type();
  unsigned width = type.getIntOrFloatBitWidth();
  if (width == 32)
    return shuffleBits(value, distance);
  Type integer = b.getIntegerType(width);
  Value bits = isa<FloatType>(type)
                   ? arith::BitcastOp::create(b, loc, integer, value)
                   : value;
  if (width < 32) {
    Value wide = arith::ExtUIOp::create(b, loc, i32, bits);
    bits = arith::TruncIOp::create(b, loc, integer, shuffleBits(wide, distance));
  } else {
    Value half = arith::ConstantIntOp::create(b, loc, 32, 64);
    Value low = arith::TruncIOp::create(b, loc, i32, bits);
    Value high = arith::TruncIOp::create(
        b, loc, i32, arith::ShRUIOp::create(b, loc, bits, half));
    low = arith::ExtUIOp::create(b, loc, i64, shuffleBits(low, distance));
    high = arith::ExtUIOp::create(b, loc, i64, shuffleBits(high, distance));
    bits = arith::OrIOp::create(
        b, loc, low, arith::ShLIOp::create(b, loc, high, half));
  }
  return isa<FloatType>(type) ? arith::BitcastOp::create(b, loc, type, bits)
                              : bits;
}

Value LaunchCode::reduceWarp(Value value, Operation *combiner) {
  for (int64_t distance = kWarpSize / 2; distance > 0; distance /= 2)
    value = combine(combiner, value, shuffle(value, distance));
  return value;
}

/// A value of each warp.
Value LaunchCode::getShared(Type element) {
  Value &memory = shared[element];
  if (!memory)
    memory = addShared(element, kWarpSize);
  return memory;
}

SmallVector<Value> LaunchCode::reduceTeam(ValueRange values,
                                          ArrayRef<Operation *> combiners,
                                          int64_t team) {
  SmallVector<Value> results;
  for (auto [value, combiner] : llvm::zip_equal(values, combiners))
    results.push_back(reduceWarp(value, combiner));
  if (team <= kWarpSize)
    return results;
  int64_t warps = team / kWarpSize;
  Value warp = divide(threadX, kWarpSize), lane = modulo(threadX, kWarpSize);
  for (auto [result, combiner] : llvm::zip_equal(results, combiners)) {
    Value memory = getShared(result.getType());
    auto first = scf::IfOp::create(b, loc, isEqual(lane, 0));
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(first.thenBlock());
      memref::StoreOp::create(b, loc, result, memory, warp);
    }
    barrier();
    // Every warp sums up by itself, which takes no second barrier to tell.
    Value own = memref::LoadOp::create(b, loc, memory, modulo(lane, warps));
    if (warps < kWarpSize)
      own = arith::SelectOp::create(b, loc, isLess(lane, warps), own,
                                    neutral(combiner));
    result = reduceWarp(own, combiner);
    barrier(); // The memory is free again.
  }
  return results;
}
