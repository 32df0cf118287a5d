//===- StepStorage.h - Where the values of a step live ----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bookkeeping of plan-lower: which buffer holds each value of the step
// function, in which layout, and whether a buffer may be overwritten at a
// point because nobody reads the old value any more.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_STEPSTORAGE_H
#define ZERO_LIB_LOWERING_STEPSTORAGE_H

#include "LibraryCalls.h"

#include "dialects/Plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include <array>
#include <deque>

namespace mlir::zero {

/// A buffer to be, and the values that are in it now.
struct Storage {
  plan::BufferOp buffer;
  plan::Space space = plan::Space::Device;
  std::string symbol;        ///< zero.param or zero.state held, or empty
  SmallVector<Value> values; ///< values of the step that read it
};

/// A value's buffer and layout in it.
struct Place {
  Storage *storage = nullptr;
  StridedLayout layout;
  /// Elements: a rank with part p starts p times this further, where p is its
  /// place on the grid's last axis, or rank % parts if `parts` is set.
  int64_t rankStride = 0;
  int64_t parts = 0;
};

/// Positions of ops in the step, those in host bodies included, and last reads
/// of values, views included.
class StepLiveness {
public:
  explicit StepLiveness(func::FuncOp step);

  int64_t position(Operation *op) const { return positions.lookup(op); }

  /// Position up to which `value` or a view of it is read, -1 if never. A
  /// collective with a future reads its operands until it is awaited, except
  /// `in`, which is asked for the others.
  int64_t lastRead(Value value, Operation *in = nullptr) const;

  /// Position of the assignment to `symbol`, or past the end.
  int64_t assignment(StringRef symbol) const;

  /// Whether `symbol` is read again after `from` and before its assignment.
  bool isReadAgain(StringRef symbol, int64_t from) const;

private:
  int64_t endOf(Operation *op) const;

  DenseMap<Operation *, int64_t> positions;
  llvm::StringMap<int64_t> assignments;
  llvm::StringMap<SmallVector<int64_t>> reads;
};

/// All storages of a step, with the ops that declare them.
class StepMemory {
public:
  StepMemory(OpBuilder declarations, const StepLiveness &liveness)
      : builder(declarations), liveness(liveness) {}

  /// A new storage for a tensor of `type` in the arena of `space`.
  Storage *create(Location loc, ShapedType type, plan::Kind kind,
                  plan::Space space = plan::Space::Device);

  /// Forgets all values: those of another function come.
  void clearValues();

  /// Makes the size of `buffer` whole blocks of a disk, on each of `ranks`.
  static void reserveBlocks(plan::BufferOp buffer, int64_t ranks);

  /// Makes `storage` hold at least `elements` elements on each of `ranks`
  /// ranks; what exceeds its type is padding.
  void reserve(Storage *storage, int64_t elements, int64_t ranks);

  /// Declares that `value` lives in `place`.
  void bind(Value value, const Place &place);
  const Place *find(Value value) const;

  /// Whether the contents of `storage` may be replaced at `op`: no value in it
  /// is read later, and its symbol is not read before its assignment.
  bool mayOverwrite(Storage *storage, Operation *op) const;

  /// The buffer, or a view of it, that a command takes for `place`.
  Value materialize(Location loc, const Place &place);

  std::deque<Storage> &storages() { return all; }

private:
  Value arenaOf(plan::Space space, Location loc);

  OpBuilder builder;
  std::array<Value, 3> arenas; ///< by space; null as long as nothing is there
  const StepLiveness &liveness;
  std::deque<Storage> all; // stable addresses
  DenseMap<Value, Place> places;
};

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_STEPSTORAGE_H
