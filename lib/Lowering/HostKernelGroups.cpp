//===- HostKernelGroups.cpp - Kernels of a zero.on_host -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See HostKernelGroups.h.
//
//===----------------------------------------------------------------------===//

#include "HostKernelGroups.h"

#include "dialects/Zero/Zero.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;
using namespace mlir::zero;

static RankedTensorType getType(Operation *op) {
  return op->getNumResults()
             ? dyn_cast<RankedTensorType>(op->getResult(0).getType())
             : RankedTensorType();
}

/// Whether `op` works element by element on tensors that are no scalars.
static bool isPointwise(Operation *op) {
  RankedTensorType type = getType(op);
  return type && type.getRank() > 0 && isKernelOp(op) &&
         (isa<OptimizerUpdate>(op) || isElementwise(op));
}

/// Whether the group's place, that of its last op, is before all who read what
/// it computes.
static bool mayMoveToRoot(const KernelGroup &group) {
  return llvm::all_of(group.ops, [&](Operation *op) {
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      return llvm::is_contained(group.ops, user) ||
             group.root()->isBeforeInBlock(user);
    });
  });
}

SmallVector<KernelGroup> zero::findHostKernelGroups(Block &block) {
  llvm::EquivalenceClasses<Operation *> connected;
  SmallVector<Operation *> ops;
  for (Operation &op : block)
    if (isPointwise(&op)) {
      ops.push_back(&op);
      connected.insert(&op);
      for (Value operand : op.getOperands())
        if (Operation *producer = operand.getDefiningOp();
            producer && connected.contains(producer) &&
            getType(producer).getShape() == getType(&op).getShape())
          connected.unionSets(producer, &op);
    }
  // In the order of the block: the classes are ordered by address.
  SmallVector<KernelGroup> groups;
  llvm::DenseMap<Operation *, size_t> numbers;
  for (Operation *op : ops) {
    auto [entry, isNew] =
        numbers.try_emplace(connected.getLeaderValue(op), groups.size());
    if (isNew)
      groups.emplace_back();
    groups[entry->second].ops.push_back(op);
  }
  llvm::erase_if(
      groups, [](const KernelGroup &group) { return !mayMoveToRoot(group); });
  llvm::sort(groups, [](const KernelGroup &lhs, const KernelGroup &rhs) {
    return lhs.root()->isBeforeInBlock(rhs.root());
  });
  return groups;
}
