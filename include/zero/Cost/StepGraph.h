//===- StepGraph.h - A step as tasks, buffers and channels ------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the scheduler sees of a training step, whatever it was made from: a step
// function, a plan, or the standard shape of a model. Needs no MLIR.
//
// A schedule is a program, and what it says is what happens:
//
//  - `Run` executes a task on the compute channel, in program order.
//  - `Start` hands a task to its own channel. The task begins when the compute
//    channel has reached the `Start` (all `Run`s before it are done), all tasks
//    started on the same channel before it are done, and no sooner.
//  - `Wait` makes the compute channel stand still until the task is done.
//
// Copies between memory spaces and compute on the host are tasks with channels
// of their own, as collectives are.
//
// A buffer is alive from the first step of the program that writes it to the
// last that uses it, where a task holds its buffers from `Start` to `Wait`; a
// buffer that is read before it is written comes from outside the step and is
// alive from its beginning.
// Since a `Start` never runs ahead of the compute channel, memory by program
// order is the true memory: reuse of an address needs no further ordering and
// never delays what the schedule placed.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_COST_STEPGRAPH_H
#define ZERO_COST_STEPGRAPH_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mlir::zero {

/// What a buffer holds. Same order as plan::Kind and the .zplan format.
enum class MemoryKind : uint8_t {
  Parameter,
  OptimizerState,
  Gradient,
  Gathered,
  Activation,
  Input,
  Constant,
  Persistent
};

/// What a task does.
enum class TaskKind : uint8_t {
  Compute,
  AllGather,
  ReduceScatter,
  AllReduce,
  CopyIn,     ///< host to device memory
  CopyOut,    ///< device to host memory
  DiskRead,   ///< disk to host memory
  DiskWrite,  ///< host memory to disk
  HostCompute ///< on the host's processor
};

/// Where a buffer lies. Same order as zero::Memory and plan::Space.
enum class MemorySpace : uint8_t { Device, Host, Disk };
constexpr unsigned kNumSpaces = 3;

/// Storage of one rank.
struct StepBuffer {
  int64_t bytes = 0;
  MemoryKind kind = MemoryKind::Activation;
  bool resident = false; ///< alive for the whole step, whoever uses it
  MemorySpace space = MemorySpace::Device;
};

/// Something that takes time on one channel.
struct StepTask {
  TaskKind kind = TaskKind::Compute;
  int32_t channel = 0;   ///< 0 is the compute channel
  double seconds = 0;    ///< alone on its channel
  double latency = 0;    ///< part of `seconds` that does not depend on size: a
                         ///< bucket of tasks pays it once
  int64_t sentBytes = 0; ///< what one rank sends, ring model
  /// Buffers. A buffer in both lists is updated in place.
  llvm::SmallVector<int32_t, 4> reads, writes;
  /// A gather of what the earlier task `repeats` gathered: it may be dropped if
  /// the earlier one's buffers are kept until this one's last use. The i-th
  /// written buffer here stands for the i-th there. -1 if none.
  int32_t repeats = -1;
  /// A compute task that only `serves`, a repeated gather, needs: where that is
  /// dropped, this is not run either. -1 if none.
  int32_t serves = -1;
  int32_t unit = -1; ///< layer; buckets of one unit are preferred
  /// Only tasks of one class, kind and channel may share a bucket: element
  /// type, grid axes, reduction.
  int32_t bucketClass = 0;
  std::string label; ///< for people: op or parameter name
};

/// A step: tasks in an order that respects their uses of buffers.
struct StepGraph {
  std::vector<StepBuffer> buffers;
  std::vector<StepTask> tasks;
  std::vector<std::string> channels = {"compute"}; ///< names, by number
};

/// One step of a schedule's program.
struct ScheduleStep {
  enum Action : uint8_t { Run, Start, Wait };
  Action action;
  int32_t task; ///< of a bucket: its first member

  bool operator==(const ScheduleStep &o) const {
    return action == o.action && task == o.task;
  }
};

/// A program for a graph.
struct Schedule {
  std::vector<ScheduleStep> steps;
  /// Tasks that are issued as one with the first of each list. Members share
  /// kind and channel. Tasks in no list stand alone.
  std::vector<std::vector<int32_t>> buckets;
  /// Repeated gathers that are dropped; see StepTask::repeats. Tasks that only
  /// serve them are not in `steps`.
  std::vector<int32_t> dropped;
};

/// When a task ran. Seconds from the start of the step.
struct TaskTiming {
  double start = 0, end = 0;
  double exposed = 0; ///< how long the compute channel stood still for it
};

/// What a schedule does.
struct SimulatedStep {
  double seconds = 0;        ///< until every channel is done
  double computeSeconds = 0; ///< sum over the compute channel's tasks
  double exposedSeconds = 0; ///< the compute channel standing still
  int64_t peakBytes = 0;     ///< most bytes alive at one time on the device
  int32_t peakStep = 0;      ///< step of the program at which
  int64_t hostPeakBytes = 0; ///< the same of host memory
  int32_t hostPeakStep = 0;
  int64_t diskBytes = 0; ///< on disk, where nothing dies
  std::vector<TaskTiming> tasks;
  std::vector<int64_t> liveBytes; ///< on the device, by step of the program
  std::vector<int64_t> liveHostBytes;
};

/// By task, whether it is not run once the gathers `dropped` are gone: those,
/// and the tasks that only serve them.
std::vector<bool> omittedTasks(const StepGraph &graph,
                               llvm::ArrayRef<int32_t> dropped);

/// By buffer, the one that stands for it once the gathers `dropped` are gone.
std::vector<int32_t> keptBuffers(const StepGraph &graph,
                                 llvm::ArrayRef<int32_t> dropped);

/// Seconds of tasks that are issued as one: the latency is paid once.
double bucketSeconds(const StepGraph &graph, llvm::ArrayRef<int32_t> members);

/// Executes `schedule`. It must be valid (see `checkSchedule`).
SimulatedStep simulate(const StepGraph &graph, const Schedule &schedule);

/// Empty if `schedule` runs every task that is not dropped exactly once, waits
/// for each started one exactly once, and lets no task read what is not yet
/// complete or other than in the order of `graph.tasks`; otherwise one line
/// that says what is wrong.
std::string checkSchedule(const StepGraph &graph, const Schedule &schedule);

/// The schedule that overlaps nothing: each task in its order, each collective
/// awaited at once.
Schedule serialSchedule(const StepGraph &graph);

} // namespace mlir::zero

#endif // ZERO_COST_STEPGRAPH_H
