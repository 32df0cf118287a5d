//===- GpuMapper.h - A kernel as launches -----------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The state of kernel-map-to-gpu for one kernel: its steps in order, and the
// launches that are made of them, a file per kind of step. Private to this
// folder.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_GPUMAPPER_H
#define ZERO_LIB_LOWERING_GPUMAPPER_H

#include "GpuElements.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include <memory>

namespace mlir::zero {

/// Blocks of a grid whose threads go over their elements in steps of the grid:
/// several for each multiprocessor of the largest GPUs.
inline constexpr int64_t kMaxBlocks = 1056;
inline constexpr int64_t kBlockSize = 256;

/// Scalars that the loop `op` or the reduction `op` leaves behind.
struct ScalarResult {
  Operation *combiner = nullptr;
  Value init; ///< the kernel's value that it starts from
  Value slot; ///< scratch of rank 0 that holds it afterwards
};

/// What blocks have left of a scalar: `partials` has `count` elements.
struct Partials {
  ScalarResult result;
  Value partials;
  int64_t count;
};

/// One kernel after scalars have become values (see `normalize`).
class GpuMapper {
public:
  explicit GpuMapper(func::FuncOp func);
  LogicalResult run();

private:
  friend class Reduction;
  friend class RowLoop;
  friend class Scatter;

  enum class Kind { Map, Sum, Rows, Columns, Loop, Effect };
  struct Step {
    Kind kind;
    Operation *op;
    bool done = false;
  };

  // Scalars of the kernel become values; of what is left, steps.
  void normalize();
  void inlineScalar(linalg::GenericOp op);
  void splitScalarResults(linalg::GenericOp op);
  void splitLoopResults(scf::ForOp loop);
  void readInLoop(scf::ForOp loop);
  void readScalars(linalg::GenericOp op);
  LogicalResult collectSteps();
  Value makeSlot(Type type);

  // Launches.
  LogicalResult emit(size_t step);
  std::unique_ptr<LaunchCode> makeLaunch(Location loc, GpuShape shape);
  void emitMaps(size_t first);
  void emitMap(LaunchCode &code, linalg::GenericOp op);
  void emitSums(size_t first);
  void emitColumns(size_t step);
  void emitRows(size_t step);
  LogicalResult emitLoop(size_t step);
  void emitInOrder(scf::ForOp loop);
  void emitFinish(ArrayRef<Partials> partials);
  void emitEffects();
  void finishScalar(LaunchCode &code, const ScalarResult &result, Value value);
  void cleanUp();

  // What several of them need.
  void bindScalars(LaunchCode &code, ArrayRef<Operation *> ops);
  /// Whether one of two steps writes what the other one touches, apart from
  /// `except`.
  bool touchesConflict(Operation *first, Operation *second,
                       Value except = Value());
  /// The value that a whole buffer was filled with right before `step`, whose
  /// fill is then dropped; null if that is not known.
  Value takeFill(Value base, size_t step);
  Value findFill(Value base, size_t step, size_t &writer);
  void takeFills();
  void dropUnread();
  /// The elementwise steps after `step` that only read the temporary `base`
  /// where it has just been computed; they are done if it returns some.
  SmallVector<linalg::GenericOp> takeReaders(Value base, size_t step);

public:
  /// A buffer in scratch memory.
  Value addScratch(Type element, ArrayRef<int64_t> shape);
  /// Bytes of scratch memory; where they begin.
  int64_t addScratchBytes(int64_t bytes);
  Value getScratch();

private:
  func::FuncOp func;
  Block &body;
  OpBuilder host;
  Value scratch;
  int64_t scratchBytes = 0;
  SmallVector<Step> steps;
  /// Of buffers of rank 0, while normalizing.
  llvm::MapVector<Value, Value> scalars;
  llvm::DenseMap<Operation *, SmallVector<ScalarResult>> results;
  /// By step and buffer: the fill that is the start of its sum.
  llvm::DenseMap<std::pair<Operation *, Value>, Value> fills;
  llvm::DenseMap<Value, Value> placed; ///< temporaries, in scratch memory
  /// The last launch, if it is of one block: scalar effects may join it.
  std::unique_ptr<LaunchCode> tail;
};

/// Calls `build` for pointers that are aligned, and where they may not be
/// again for those that are not; both return values of `types`.
SmallVector<Value>
buildAligned(LaunchCode &code, ArrayRef<Value> bases, bool mayBeWide,
             TypeRange types,
             llvm::function_ref<SmallVector<Value>(bool wide)> build);

/// A loop of `count` steps that threads share: calls `build` with the numbers
/// first, first + stride, ... below `count` and what it carries.
SmallVector<Value> buildStrided(
    LaunchCode &code, Value first, int64_t count, int64_t stride,
    ValueRange inits,
    llvm::function_ref<SmallVector<Value>(Value at, ValueRange carried)> build);

/// `build` where `condition` holds.
void buildIf(LaunchCode &code, Value condition,
             llvm::function_ref<void()> build);

/// Whether the elements of `operand`, a whole buffer, follow each other as the
/// parallel loops of its operation do (all loops, where it sums up to scalars).
bool isLinear(OpOperand &operand);

inline int64_t divideUp(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_GPUMAPPER_H
