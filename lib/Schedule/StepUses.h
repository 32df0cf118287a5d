//===- StepUses.h - Who reads what last -----------------------*- C++ -*-==//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Positions, last reads and kernels of a step function, found in one pass.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_SCHEDULE_STEPUSES_H
#define ZERO_LIB_SCHEDULE_STEPUSES_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::zero {

/// Whether the kernel of `user` may compute `op`, where nobody else reads it.
bool mayJoinKernel(Operation *op, Operation *user);

/// What a builder of step graphs asks about the ops of a block.
class StepUses {
public:
  explicit StepUses(Block &body);

  /// Where `op` executes: a part of a kernel executes at the kernel's root.
  int64_t position(Operation *op) const { return positions.lookup(op); }

  /// Position of the last op that reads `value` or a view of it; -1 if none.
  int64_t lastRead(Value value) const;

  /// Position of the last `zero.read` of `symbol`; -1 if none.
  int64_t readOfSymbol(StringRef symbol) const;

  /// See `isView` of OpWork.h.
  bool isView(Operation *op) const { return views.contains(op); }

  /// Whether `op` is computed inside of the kernel of its only user.
  bool isPart(Operation *op) const { return roots.contains(op); }

  /// The parts of the kernel of `root`, in order.
  SmallVector<Operation *> takePartsOf(Operation *root);

private:
  void joinKernel(Operation *op);
  void recordReads(Operation *op);

  Block &body;
  llvm::DenseMap<Operation *, int64_t> positions;
  llvm::DenseMap<Value, int64_t> lastReads;
  llvm::StringMap<int64_t> symbolReads;
  llvm::DenseSet<Operation *> views;
  llvm::DenseMap<Operation *, Operation *> roots;
  llvm::DenseMap<Operation *, SmallVector<Operation *>> parts;
};

} // namespace mlir::zero

#endif // ZERO_LIB_SCHEDULE_STEPUSES_H
