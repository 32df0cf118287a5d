//===- GpuLaunch.h - The code of one launch as it is built ------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A gpu.launch with what its code needs of the kernel around it, and with the
// steps that threads take together: sums over a warp or a block, barriers.
// Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_GPULAUNCH_H
#define ZERO_LIB_LOWERING_GPULAUNCH_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"
#include <functional>

namespace mlir::zero {

inline constexpr int64_t kWarpSize = 32;

/// Threads of a block, in x and y, and blocks of the grid.
struct GpuShape {
  int64_t gridX = 1, gridY = 1, blockX = 1, blockY = 1;
  int64_t getThreads() const { return blockX * blockY; }
};

/// The code of one launch. Values of the kernel are used by way of `resolve`:
/// a launch captures only arguments of the function and constants.
class LaunchCode {
public:
  /// Tells where in scratch memory a temporary of the kernel is.
  using Place = std::function<Value(Value)>;

  /// Builds an empty launch at the place of `host`.
  LaunchCode(OpBuilder &host, Location loc, GpuShape shape, Place place);

  /// What stands for the kernel's value in the launch: what was bound to it,
  /// or the operations that compute it, cloned here.
  Value resolve(Value value);
  void bind(Value kernel, Value here) { map.map(kernel, here); }
  bool isBound(Value kernel) const { return map.contains(kernel); }

  /// Clones `op` with resolved operands, also those of its regions.
  Operation *clone(Operation *op);

  Value index(int64_t value);
  Value add(Value lhs, Value rhs);
  Value mul(Value lhs, int64_t rhs);
  Value divide(Value lhs, int64_t rhs);
  Value modulo(Value lhs, int64_t rhs);
  Value isLess(Value lhs, int64_t rhs);
  Value isEqual(Value lhs, int64_t rhs);

  /// Indices over `extents` of the element number `linear`, of fewer than
  /// `total` ones.
  SmallVector<Value> delinearize(Value linear, ArrayRef<int64_t> extents);

  /// Shared memory of a block.
  Value addShared(Type element, ArrayRef<int64_t> shape);

  void barrier();
  /// Waits for the other threads of the warp or, if `team` is larger, of the
  /// block.
  void syncTeam(int64_t team);

  /// Combines the values of `team` threads (a warp or the whole block of one
  /// dimension) by operations like `combiners`; every thread gets the results.
  SmallVector<Value> reduceTeam(ValueRange values,
                                ArrayRef<Operation *> combiners, int64_t team);

  /// `lhs` and `rhs` combined by an operation like `combiner`.
  Value combine(Operation *combiner, Value lhs, Value rhs);
  /// What changes nothing when `combiner` combines it.
  Value neutral(Operation *combiner);

  OpBuilder b;
  Location loc;
  gpu::LaunchOp launch;
  GpuShape shape;
  Value threadX, threadY, blockX, blockY;

private:
  Value shuffle(Value value, int64_t distance);
  Value shuffleBits(Value bits, int64_t distance);
  Value reduceWarp(Value value, Operation *combiner);
  Value getShared(Type element);

  Place place;
  IRMapping map;
  llvm::DenseMap<Type, Value> shared;
};

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_GPULAUNCH_H
