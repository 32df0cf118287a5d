//===- RematMemory.h - Memory and time of one choice ------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates choices of what is kept, many times on one graph.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_SCHEDULE_REMATMEMORY_H
#define ZERO_LIB_SCHEDULE_REMATMEMORY_H

#include "zero/Schedule/Remat.h"

namespace mlir::zero {

/// The program of one choice at a time.
class RematMemory {
public:
  explicit RematMemory(const RematGraph &graph);

  /// Evaluates `kept`. With `keepProducts`, products with parameters that are
  /// needed are kept whatever `kept` says.
  void evaluate(const std::vector<bool> &kept, bool keepProducts);

  // Of the choice evaluated last:
  int64_t peak() const { return peakBytes; }
  double seconds() const { return totalSeconds; }
  /// By how much steps are above `limit`, added up.
  double excess(int64_t limit) const;
  bool isRecomputed(int32_t node) const { return state[node] == Recomputed; }
  /// Whether `node` is held for the backward pass.
  bool isHeld(int32_t node) const { return state[node] == Held; }
  RematPoint take(const std::vector<bool> &kept) const;

private:
  enum State : uint8_t { Unneeded, Held, Recomputed };

  void decide(const std::vector<bool> &kept, bool keepProducts);
  void placeAgain();
  void addRanges();
  void addUp();
  int32_t positionOf(int32_t step) const { return stepPosition[step]; }

  const RematGraph &graph;
  int32_t numNodes;
  /// Bytes of `others` at each step, and just before it.
  std::vector<int64_t> otherAt, otherBefore;
  std::vector<State> state;
  /// By node: the step of its first use in the backward pass, and the last one
  /// as a step (`lastStep`) and a node computed again before it, or the number
  /// of nodes for the step itself.
  std::vector<int32_t> first, lastStep, lastNode, readers;
  std::vector<bool> joins; ///< by node: its only reader computes it
  /// By step, and by node computed again, the place in the program.
  std::vector<int32_t> stepPosition, nodePosition;
  std::vector<int64_t> change; ///< by place in the program
  std::vector<int64_t> level;  ///< by step, with what is computed just before
  int64_t peakBytes = 0;
  double totalSeconds = 0;
};

} // namespace mlir::zero

#endif // ZERO_LIB_SCHEDULE_REMATMEMORY_H
