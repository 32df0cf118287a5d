//===- Partition.h - stages of the partition --------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parts of zero-partition: reductions and updates, and the gathers of
// stage 3.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_TRANSFORMS_PARTITION_H
#define ZERO_LIB_TRANSFORMS_PARTITION_H

#include "StepInfo.h"

namespace mlir::zero {

/// What a partition is asked to do, and how much it did.
struct Partition {
  int64_t stage = 0;
  bool keepAdjacent = false;
  FlatSymbolRefAttr grid;
  /// Ranks that share one copy of the state, and copies of it: all ranks and
  /// one copy, with no `replicaAxes`; or, in hybrid sharding, the last axis of
  /// the grid and the one before it.
  int64_t ranks = 1;
  int64_t replicas = 1;
  DenseI64ArrayAttr shardAxes, replicaAxes, allAxes;
  int64_t numGathers = 0;
  int64_t numReductions = 0;
  int64_t numKept = 0;

  /// Whether tensors of this type are cut at all: those with a dimension are.
  bool cuts(RankedTensorType type) const {
    return stage > 0 && type.getRank() > 0;
  }

  /// Whether gradients are reduced in each micro-batch, to be added to a shard.
  bool addsShards(StateOp accumulator) const {
    return stage > 1 && cuts(accumulator.getLogicalType());
  }
};

/// Reduces the gradients of a step, moves its updates onto shards and lets
/// sums over gradients see the reduced ones.
LogicalResult partitionUpdates(Partition &partition, StepInfo &info);

/// Gathers sharded parameters before their uses in forward and backward.
/// `forward` holds the ops of the forward pass.
void insertGathers(Partition &partition, StepInfo &info,
                   const llvm::DenseSet<Operation *> &forward,
                   SymbolTable &symbols);

/// The ops of the forward pass: those that lead to results of the step, or to
/// new values of buffers and sums of losses, that are not made of gradients.
/// Where there is none of these, all ops before the first gradient.
llvm::DenseSet<Operation *> findForward(StepInfo &info);

/// Makes one read of the several that a tied parameter may have.
void mergeReads(StepInfo &info);

} // namespace mlir::zero

#endif // ZERO_LIB_TRANSFORMS_PARTITION_H
