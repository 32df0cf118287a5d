//===- CheckpointingState.h - State between ranks and files -----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What of a program is state, how it lies on the ranks, and how state that
// another layout or precision has saved gets there. Everything goes in pieces:
// no function here has a whole tensor in memory.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_CHECKPOINTINGSTATE_H
#define ZERO_TOOLS_ZERO_RUN_CHECKPOINTINGSTATE_H

#include "runtime/io/Checkpoint.h"
#include "zero-rt/Session.h"

#include <functional>
#include <map>

namespace zero_tools {

/// All that outlives a step, in the program's order: parameters, buffers and
/// state, but no accumulators, which are zero between steps.
class ProgramState {
public:
  explicit ProgramState(const zrt::Program &program);

  const std::vector<zrt::StateTensor> &tensors() const { return stateTensors; }
  /// What the plan says; step, samples and seed are the caller's.
  const zrt::RunFacts &facts() const { return planFacts; }
  /// Of all parts that are saved.
  uint64_t bytes() const;

  /// Reads from the rank that holds a part. Throws std::runtime_error.
  void read(const zrt::Session &session, size_t tensor, uint32_t part,
            uint64_t offset, void *data, size_t bytes) const;

private:
  std::vector<zrt::StateTensor> stateTensors;
  std::vector<uint32_t> parameters; // by tensor, in the program
  zrt::RunFacts planFacts;
};

/// How a parameter of a program lies on its ranks.
zrt::StateTensor stateTensor(const zrt::Program &program, uint32_t parameter);

/// The name of a trained parameter's copy in single precision, which is a state
/// of it.
std::string masterName(const std::string &parameter);

/// Writes bytes [offset, ...) of the logical tensor to all ranks that hold
/// them. Throws std::runtime_error.
void writeLogical(const zrt::Program &program, zrt::Session &session,
                  uint32_t parameter, uint64_t offset, const void *data,
                  size_t bytes);

/// Gives out the values of the logical tensor in order, piece by piece. Buffers
/// of a floating type are the mean over ranks.
void readLogical(const zrt::Program &program, const zrt::Session &session,
                 uint32_t parameter,
                 const std::function<void(const void *, size_t)> &take);

/// Sets a program's state from a checkpoint, whatever ranks, stage, grid and
/// precision that was saved with. Throws std::runtime_error: for a tensor that
/// is missing, unknown or of another shape before anything is changed, for
/// damaged bytes in the course of it. `note` receives what is not exactly as it
/// was.
void restore(const zrt::Checkpoint &checkpoint, const zrt::Program &program,
             zrt::Session &session,
             const std::function<void(const std::string &)> &note);

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_CHECKPOINTINGSTATE_H
