//===- Checkpointing.h - Checkpoints of a training run ----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// When a run saves its state, where it continues, and what it does on SIGTERM.
// The files themselves are runtime/io/Checkpoint.h.
//
//   Checkpointing checkpoints(options, program, session, note);
//   ResumePoint at = checkpoints.resume();        // after the initial values
//   for (int64_t step = at.step; step < steps; ++step) {
//     ... one step on the samples from at.firstSample on ...
//     if (checkpoints.afterStep(step + 1))
//       break;                                    // SIGTERM: saved, to end
//   }
//   checkpoints.finish();
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_CHECKPOINTING_H
#define ZERO_TOOLS_ZERO_RUN_CHECKPOINTING_H

#include "zero-rt/Session.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace zero_tools {

/// What the flags say about checkpoints.
struct CheckpointOptions {
  /// Folder of the checkpoints of this run; empty: none are written.
  std::string folder;
  /// Steps between two; 0: only at the end and on SIGTERM.
  int64_t every = 0;
  /// How many stay; 0: all.
  int64_t keep = 0;
  /// A checkpoint, or a folder of them whose newest is taken; empty: the run
  /// starts at step 0.
  std::string resume;
  /// The next steps wait until a checkpoint is on disk.
  bool synchronous = false;
  /// Of random numbers, kept with the state.
  std::optional<int64_t> seed;
};

/// Where a run continues.
struct ResumePoint {
  /// Steps that are done; the next one is this step, counted from 0.
  int64_t step = 0;
  /// Samples of the data that are used. Micro-batch k of step s on rank r
  /// begins at firstSample + (((s - step) * A + k) * N + r) * B: for the ranks,
  /// batch and accumulation of the saved run that is the sample of a run which
  /// never stopped.
  int64_t firstSample = 0;
  /// The state is that of a checkpoint.
  bool resumed = false;
  /// Of random numbers: the one asked for, else the checkpoint's.
  std::optional<int64_t> seed = std::nullopt;
};

class RunGroup;

class Checkpointing {
public:
  /// What a run that SIGTERM ended exits with, as a shell reports the signal.
  static constexpr int terminatedExitCode = 143;

  /// `note` receives one-line texts for people. Throws std::runtime_error (as
  /// all functions here do) where the folder cannot take checkpoints of this
  /// run. Afterwards SIGTERM ends the run at the end of a step, if `folder` is
  /// set. In a group of processes each one writes the file of its rank, and
  /// SIGTERM to one of them ends all. All arguments outlive the object.
  Checkpointing(const CheckpointOptions &options, const zrt::Program &program,
                zrt::Session &session,
                std::function<void(const std::string &)> note,
                RunGroup *group = nullptr);
  ~Checkpointing();

  /// Host memory of the snapshot that is written beside the next steps, in
  /// bytes over all ranks; 0 without checkpoints or when synchronous.
  uint64_t snapshotBytes() const;

  /// Loads what --resume names, over the initial values.
  ResumePoint resume();

  /// To be called when `done` steps are done, between steps: saves where it is
  /// time to. True when the run has to end: SIGTERM came, and its state is on
  /// disk. Throws also for an error of an earlier save.
  bool afterStep(int64_t done);

  /// Saves the last step if that is not done yet, and waits until all is on
  /// disk.
  void finish();

  /// SIGTERM ended the run: exit with terminatedExitCode.
  bool terminated() const;

  /// Time that steps waited for checkpoints so far, in milliseconds.
  double blockedMs() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_CHECKPOINTING_H
