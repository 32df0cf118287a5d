//===- StepStorage.cpp - Where the values of a step live ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Liveness of values and symbols, and the map from values to buffers.
//
//===----------------------------------------------------------------------===//

#include "StepStorage.h"

#include "dialects/Zero/Zero.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::zero;

//===----------------------------------------------------------------------===//
// Liveness
//===----------------------------------------------------------------------===//

StepLiveness::StepLiveness(func::FuncOp step) {
  int64_t next = 0;
  step.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    positions[op] = next;
    if (auto read = dyn_cast<ReadOp>(op))
      reads[read.getSymbol()].push_back(next);
    if (auto assign = dyn_cast<AssignOp>(op))
      assignments[assign.getSymbol()] = next;
    ++next;
  });
}

/// Where `op` is done: a start, where its future is awaited.
int64_t StepLiveness::endOf(Operation *op) const {
  int64_t end = positions.lookup(op);
  for (Value result : op->getResults())
    if (isa<FutureType>(result.getType()))
      for (Operation *wait : result.getUsers())
        end = std::max(end, positions.lookup(wait));
  return end;
}

int64_t StepLiveness::lastRead(Value value, Operation *in) const {
  int64_t last = -1;
  for (Operation *user : value.getUsers()) {
    if (isa<ReleaseOp>(user))
      continue;
    bool isView = isa<LocalOp>(user) || isLayoutView(user);
    last = std::max(last, isView       ? lastRead(user->getResult(0), in)
                          : user == in ? positions.lookup(user)
                                       : endOf(user));
  }
  return last;
}

int64_t StepLiveness::assignment(StringRef symbol) const {
  auto it = assignments.find(symbol);
  return it == assignments.end() ? static_cast<int64_t>(positions.size())
                                 : it->second;
}

bool StepLiveness::isReadAgain(StringRef symbol, int64_t from) const {
  auto it = reads.find(symbol);
  if (it == reads.end())
    return false;
  int64_t end = assignment(symbol);
  return llvm::any_of(it->second,
                      [&](int64_t at) { return at > from && at < end; });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// The arenas stand in the order of their spaces.
Value StepMemory::arenaOf(plan::Space space, Location loc) {
  Value &arena = arenas[static_cast<size_t>(space)];
  if (arena)
    return arena;
  if (space != plan::Space::Device)
    arenaOf(static_cast<plan::Space>(static_cast<int32_t>(space) - 1), loc);
  return arena = plan::ArenaOp::create(
             builder, loc, plan::ArenaType::get(builder.getContext()), space,
             IntegerAttr(), IntegerAttr(), IntegerAttr());
}

Storage *StepMemory::create(Location loc, ShapedType type, plan::Kind kind,
                            plan::Space space) {
  auto memref = MemRefType::get(type.getShape(), type.getElementType());
  Storage &storage = all.emplace_back();
  storage.space = space;
  storage.buffer =
      plan::BufferOp::create(builder, loc, memref, arenaOf(space, loc),
                             /*offset=*/nullptr, kind,
                             /*capacity=*/nullptr,
                             /*padding=*/nullptr);
  return &storage;
}

void StepMemory::clearValues() {
  for (Storage &storage : all)
    storage.values.clear();
  places.clear();
}

static void grow(plan::BufferOp buffer, int64_t bytes, int64_t ranks) {
  int64_t more = bytes - buffer.getBytes();
  if (more <= 0)
    return;
  buffer.setPadding(buffer.getPadding().value_or(0) + more * ranks);
  buffer.setCapacity(bytes);
}

void StepMemory::reserve(Storage *storage, int64_t elements, int64_t ranks) {
  MemRefType type = storage->buffer.getBuffer().getType();
  grow(storage->buffer, elements * plan::elementBytes(type.getElementType()),
       ranks);
}

void StepMemory::reserveBlocks(plan::BufferOp buffer, int64_t ranks) {
  grow(buffer, llvm::alignTo(buffer.getBytes(), plan::kDiskBlockBytes), ranks);
}

void StepMemory::bind(Value value, const Place &place) {
  places[value] = place;
  place.storage->values.push_back(value);
}

const Place *StepMemory::find(Value value) const {
  auto it = places.find(value);
  return it == places.end() ? nullptr : &it->second;
}

bool StepMemory::mayOverwrite(Storage *storage, Operation *op) const {
  int64_t at = liveness.position(op);
  // What the body of a host's op computes, the op does.
  Operation *parent = op->getParentOp();
  Operation *in = isa<OnHostOp, OnHostStartOp>(parent) ? parent : op;
  for (Value value : storage->values)
    if (liveness.lastRead(value, in) > at)
      return false;
  return storage->symbol.empty() || !liveness.isReadAgain(storage->symbol, at);
}

Value StepMemory::materialize(Location loc, const Place &place) {
  Value buffer = place.storage->buffer.getBuffer();
  auto type = cast<MemRefType>(buffer.getType());
  const StridedLayout &layout = place.layout;
  if (layout.offset == 0 && place.rankStride == 0 && layout.isContiguous() &&
      ArrayRef<int64_t>(layout.sizes) == type.getShape())
    return buffer;
  auto strided = layout.isContiguous()
                     ? MemRefLayoutAttrInterface()
                     : StridedLayoutAttr::get(builder.getContext(),
                                              /*offset=*/0, layout.strides);
  auto result = MemRefType::get(layout.sizes, type.getElementType(), strided);
  return plan::ViewOp::create(
      builder, loc, result, buffer, layout.offset, place.rankStride,
      place.parts ? builder.getI64IntegerAttr(place.parts) : IntegerAttr());
}
