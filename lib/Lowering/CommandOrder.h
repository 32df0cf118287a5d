//===- CommandOrder.h - Streams and events of commands ----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Puts the commands of a program on streams, as they are emitted, and adds the
// events that make the streams keep the order of the schedule: a collective
// begins when compute has reached it, and compute stands still where the step
// awaits it. A wait that others imply is not emitted (vector clocks: Fidge,
// "Timestamps in Message-Passing Systems That Preserve the Partial Ordering",
// 1988).
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_COMMANDORDER_H
#define ZERO_LIB_LOWERING_COMMANDORDER_H

#include "dialects/Plan/Plan.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace mlir::zero {

class CommandOrder {
public:
  /// Declares events with `declarations`.
  explicit CommandOrder(OpBuilder declarations);

  /// `command` was emitted for the compute stream.
  void compute(plan::CommandOpInterface command);

  /// `command` was emitted for `stream`, to begin when compute is here.
  void start(plan::CommandOpInterface command, StringRef stream);

  /// Compute goes on when `command`, which was started, is done.
  void wait(plan::CommandOpInterface command);

  /// All that was issued is done before what is issued from now on.
  void barrier();

private:
  /// By stream: how many of its commands are done.
  using Clock = SmallVector<int32_t>;
  /// A command, and what is done when it is.
  struct Issued {
    plan::CommandOpInterface command;
    int32_t stream = 0;
    Clock after;
  };

  Issued issue(plan::CommandOpInterface command, int32_t stream,
               SmallVector<Issued> needed);
  Value getEvent(plan::CommandOpInterface command);

  OpBuilder declarations;
  llvm::StringMap<int32_t> streams;
  SmallVector<Clock> clocks; ///< by stream: done before its next command
  std::optional<Issued> lastCompute;
  std::map<int32_t, Issued> awaited; ///< by stream: the next compute waits
  llvm::DenseMap<Operation *, Issued> started;
};

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_COMMANDORDER_H
