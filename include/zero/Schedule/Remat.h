//===- Remat.h - What the backward pass computes again ----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Recomputation (activation checkpointing) as a problem on a graph: which
// values of the forward pass are held until the backward pass reads them, and
// which are computed again just before. Memory is that of the program that
// results, position by position. Needs no MLIR.
//
// Sources: Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016
// (whole layers); Korthikanti et al., "Reducing Activation Recomputation in
// Large Transformer Models", 2022 (cheap and large values first); Jain et al.,
// "Checkmate", 2020 (the memory of a program with repeated ops).
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_SCHEDULE_REMAT_H
#define ZERO_SCHEDULE_REMAT_H

#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <vector>

namespace mlir::zero {

/// A reader of a node.
struct RematUse {
  int32_t by = 0; ///< a node, or a step of the backward pass
  /// The reader's kernel computes the value itself where nobody else reads it:
  /// it then takes no memory.
  bool joins = false;
};

/// What one op of the forward pass computes.
struct RematNode {
  int64_t bytes = 0;
  double seconds = 0; ///< to compute it again
  int32_t step = 0;   ///< of the program, at which it is computed
  /// Last step of the forward pass that reads it; at least `step`.
  int32_t lastForward = 0;
  /// The only reader in the forward pass computes it itself, unless the
  /// backward pass reads it.
  bool joinsForward = false;
  llvm::SmallVector<RematUse, 4> operands; ///< nodes that it reads, ascending
  llvm::SmallVector<RematUse, 4>
      uses;            ///< steps of the backward pass, ascending
  bool pinned = false; ///< is never computed again: it has effects
  /// A product with a parameter, or a convolution: dear to compute again.
  bool product = false;
  int32_t layer = 0; ///< ascending
};

/// Something else that is held from one step to another, inclusive.
struct RematRange {
  int32_t first = 0, last = 0;
  int64_t bytes = 0;
};

/// A step of training.
struct RematGraph {
  std::vector<RematNode> nodes; ///< in the order of the program
  std::vector<RematRange> others;
  int32_t numSteps = 0;
};

/// Which values are kept, and what follows. A value that is needed and not kept
/// is computed again before its first use in the backward pass.
struct RematPoint {
  std::vector<bool> kept;       ///< by node
  std::vector<bool> recomputed; ///< by node
  /// By node that is computed again: the step before which that is done.
  std::vector<int32_t> place;
  int64_t peakBytes = 0; ///< of nodes and others, at one time
  double seconds = 0;    ///< of computing again
};

/// Nothing is computed again.
RematPoint rematNone(const RematGraph &graph);

/// Only what later layers read is kept, as checkpointing of each layer does;
/// the last layer's backward pass follows at once, so it keeps all.
RematPoint rematPerLayer(const RematGraph &graph);

/// What follows from keeping `kept`.
RematPoint evaluateRemat(const RematGraph &graph, std::vector<bool> kept);

/// Choices that no other one found beats in both time and memory, the fastest
/// first. Deterministic.
struct RematFront {
  std::vector<RematPoint> points;
  /// Of `points`: the one of least memory that repeats no product with a
  /// parameter.
  size_t selective = 0;

  /// The fastest within `bytes`; the one of least memory where none is.
  size_t within(int64_t bytes) const;
};

/// Walks down from keeping everything, always by the choice that takes the most
/// bytes off the peaks for the seconds it costs, and gives back what the memory
/// reached does not need; first without products of parameters. At the memory
/// of `rematPerLayer` it is never slower than that.
RematFront rematFront(const RematGraph &graph);

} // namespace mlir::zero

#endif // ZERO_SCHEDULE_REMAT_H
