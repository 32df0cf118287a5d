//===- PlanOrder.h - What a program's streams and events order --*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Happens-before of a plan.program by vector clocks (Fidge, "Timestamps in
// Message-Passing Systems That Preserve the Partial Ordering", 1988), and the
// lifetimes of buffers that follow from it.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TRANSFORMS_PLANORDER_H
#define ZERO_TRANSFORMS_PLANORDER_H

#include "dialects/Plan/Plan.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::zero {

/// A command of a program.
struct PlanCommand {
  plan::CommandOpInterface op;
  int32_t stream = 0; ///< number of its stream
  int32_t index = 0;  ///< on its stream, from 0; a release shares the index of
                      ///< the command before it, -1 if there is none
};

/// The order of a program's commands. Positions count all commands, releases
/// included, in program order from 0. Takes O(commands x streams).
class PlanOrder {
public:
  explicit PlanOrder(plan::ProgramOp program);

  ArrayRef<PlanCommand> getCommands() const { return commands; }
  /// Names by number; stream 0 is the compute stream.
  ArrayRef<StringRef> getStreams() const { return streams; }
  /// Positions before it are those of one of several micro-batches: all that
  /// these do is done when it begins. 0 where there is one micro-batch.
  int64_t getMicroBatchEnd() const { return microBatchEnd; }

  /// Whether the command at `first` is done before the one at `second` begins,
  /// on every run.
  bool isBefore(int64_t first, int64_t second) const {
    return getClock(second)[commands[first].stream] > commands[first].index;
  }

  /// By stream, how many of its commands are done when the one at `position`
  /// begins.
  ArrayRef<int32_t> getClock(int64_t position) const {
    return ArrayRef(clocks).slice(position * streams.size(), streams.size());
  }

  /// The last position whose command may run while the one at `position` does:
  /// the buffers of `position` are in use up to there.
  int64_t getEnd(int64_t position) const { return ends[position]; }

private:
  void numberCommands(plan::ProgramOp program);
  void computeClocks();
  void computeEnds();

  SmallVector<PlanCommand> commands;
  SmallVector<StringRef> streams;
  int64_t microBatchEnd = 0;
  std::vector<int32_t> clocks; ///< a row per command
  std::vector<int64_t> ends;
};

/// From the first to the last position at which a buffer is in use; last <
/// first if it never is.
struct PlanLifetime {
  plan::BufferOp buffer;
  int64_t first = 1, last = 0;
};

/// The buffers that keep their value from one step to the next, or are written
/// by the runtime outside the commands: parameters, inputs, constants.
llvm::DenseSet<Operation *> findLastingBuffers(plan::ProgramOp program);

/// The buffer that `value` is, or is a view of.
plan::BufferOp getUnderlyingBuffer(Value value);

/// Lifetimes of all buffers, in the order of their ops. Outputs live to the
/// end, one position past the last command, and so do those that last.
std::vector<PlanLifetime> computeLifetimes(plan::ProgramOp program,
                                           const PlanOrder &order);

/// A fingerprint of what each stream does, in order, and of what is done when
/// each command begins. Ranks whose programs differ in it may wait for each
/// other forever.
int64_t fingerprintOrder(plan::ProgramOp program, const PlanOrder &order);

} // namespace mlir::zero

#endif // ZERO_TRANSFORMS_PLANORDER_H
