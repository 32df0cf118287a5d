//===- ScheduleRemarks.cpp - Why a schedule is as it is -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See ScheduleRemarks.h.
//
//===----------------------------------------------------------------------===//

#include "ScheduleRemarks.h"

#include "zero/Transforms/StepUtils.h"

#include "mlir/IR/Remarks.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::zero;

std::string zero::describeBytes(int64_t bytes) {
  static constexpr const char *units[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024)
    return std::to_string(bytes) + " bytes";
  double value = bytes / 1024.0;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.1f ", value) << units[unit];
  return text;
}

std::string zero::describeSeconds(double seconds) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (seconds >= 1)
    os << llvm::format("%.3f s", seconds);
  else if (seconds >= 1e-3)
    os << llvm::format("%.3f ms", seconds * 1e3);
  else
    os << llvm::format("%.3f us", seconds * 1e6);
  return text;
}

namespace {
/// Walks the program of a schedule and finds out what holds each collective.
class Explainer {
public:
  Explainer(const StepFunction &step, const ScheduleResult &result,
            const SchedulerOptions &allowed, StringRef pass)
      : graph(step.graph), step(step), result(result), allowed(allowed),
        budget(allowed.memoryBytes), pass(pass) {}

  void explain();

private:
  remark::RemarkOpts options(StringRef name) const {
    return remark::RemarkOpts::name(name).category(pass);
  }
  void summarize();
  void explainDropped();
  void explainResharded();
  void visit(size_t index);
  std::string getReason(int32_t task, size_t start) const;
  SmallVector<int32_t> membersOf(int32_t task) const;
  int64_t bytesOf(int32_t task) const;
  struct Growth {
    int64_t device = 0, host = 0;
  };
  Growth growthOf(int32_t task) const;

  const StepGraph &graph;
  const StepFunction &step;
  const ScheduleResult &result;
  const SchedulerOptions &allowed;
  int64_t budget;
  StringRef pass;
  /// By buffer: the step of the program after which it is complete.
  std::vector<int64_t> complete;
  /// By first member of a bucket: all of them.
  llvm::DenseMap<int32_t, ArrayRef<int32_t>> bucketOf;
  /// By task: the step that starts it.
  std::vector<size_t> startOf;
  /// By channel: the task that was started last, and before a task.
  std::vector<int32_t> lastOn, before;
  /// By step of the program: how many `Run`s stand before it.
  std::vector<int64_t> runsBefore;
  /// When compute has come to each step of the program.
  std::vector<double> reached;
};
} // namespace

SmallVector<int32_t> Explainer::membersOf(int32_t task) const {
  auto it = bucketOf.find(task);
  if (it == bucketOf.end())
    return {task};
  return SmallVector<int32_t>(it->second.begin(), it->second.end());
}

int64_t Explainer::bytesOf(int32_t task) const {
  int64_t bytes = 0;
  for (int32_t member : membersOf(task)) {
    const StepTask &data = graph.tasks[member];
    for (int32_t buffer :
         data.kind == TaskKind::AllGather ? data.writes : data.reads)
      bytes += graph.buffers[buffer].bytes;
  }
  return bytes;
}

/// What a collective brings to life; a reduction or a copy away counts what it
/// holds.
Explainer::Growth Explainer::growthOf(int32_t task) const {
  TaskKind kind = graph.tasks[task].kind;
  if (kind != TaskKind::CopyIn && kind != TaskKind::DiskRead)
    return {bytesOf(task), 0};
  Growth growth;
  for (int32_t member : membersOf(task))
    for (int32_t number : graph.tasks[member].writes) {
      const StepBuffer &buffer = graph.buffers[number];
      if (!buffer.resident)
        (buffer.space == MemorySpace::Device ? growth.device : growth.host) +=
            buffer.bytes;
    }
  return growth;
}

/// What would shorten the time that compute stands still for a copy or for the
/// host; empty for collectives.
static StringRef getRemedy(TaskKind kind) {
  switch (kind) {
  case TaskKind::CopyIn:
  case TaskKind::CopyOut:
    return "; what would help: a larger batch, or less of it offloaded";
  case TaskKind::DiskRead:
  case TaskKind::DiskWrite:
    return "; what would help: more host memory, or less of it on disk";
  case TaskKind::HostCompute:
    return "; what would help: a larger batch, or a part of the optimizer on "
           "the device";
  case TaskKind::Compute:
  case TaskKind::AllGather:
  case TaskKind::ReduceScatter:
  case TaskKind::AllReduce:
    break;
  }
  return "";
}

void Explainer::summarize() {
  const SimulatedStep &time = result.simulated;
  double gap = result.lowerBoundSeconds > 0
                   ? (time.seconds / result.lowerBoundSeconds - 1) * 100
                   : 0;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "step " << describeSeconds(time.seconds) << ", compute "
     << describeSeconds(time.computeSeconds) << ", exposed communication "
     << describeSeconds(time.exposedSeconds) << "; no schedule is faster than "
     << describeSeconds(result.lowerBoundSeconds)
     << llvm::format(" (gap %.1f %%)", gap) << "; peak "
     << describeBytes(time.peakBytes);
  if (budget >= 0)
    os << " of a budget of " << describeBytes(budget);
  if (time.hostPeakBytes > 0)
    os << ", in host memory " << describeBytes(time.hostPeakBytes);
  if (time.hostPeakBytes > 0 && allowed.hostMemoryBytes >= 0)
    os << " of a budget of " << describeBytes(allowed.hostMemoryBytes);
  if (time.diskBytes > 0)
    os << ", on disk " << describeBytes(time.diskBytes);
  remark::analysis(step.func->getLoc(), options("plan")) << text;
}

void Explainer::explainDropped() {
  for (int32_t task : result.schedule.dropped) {
    const StepTask &data = graph.tasks[task];
    remark::passed(step.ops[task].front()->getLoc(), options("kept"))
        << ("the second " + data.label +
            " is dropped: " + describeBytes(bytesOf(task)) +
            " stay from forward to backward and save " +
            describeSeconds(data.seconds) + " of gathering");
  }
}

void Explainer::explainResharded() {
  std::vector<bool> omitted = omittedTasks(graph, result.schedule.dropped);
  for (auto [task, data] : llvm::enumerate(graph.tasks)) {
    if (data.serves < 0 || omitted[task])
      continue;
    int64_t bytes = 0;
    for (int32_t buffer : data.writes)
      bytes += graph.buffers[buffer].bytes;
    remark::passed(step.ops[task].front()->getLoc(), options("resharded"))
        << ("the second " + graph.tasks[data.serves].label +
            " spans the last axis of the grid only: a chunk of " +
            describeBytes(bytes) + " stays from forward to backward");
  }
}

/// Why `task`, begun at step `start` of the program, was not begun earlier.
std::string Explainer::getReason(int32_t task, size_t start) const {
  const TaskTiming &timing = result.simulated.tasks[task];
  if (timing.start > reached[start] && before[task] >= 0)
    return "its channel is busy with " + graph.tasks[before[task]].label;
  int64_t ready = -1;
  for (int32_t member : membersOf(task))
    for (int32_t buffer : graph.tasks[member].reads)
      ready = std::max(ready, complete[buffer]);
  int64_t earlier = runsBefore[start] - (ready < 0 ? 0 : runsBefore[ready + 1]);
  if (earlier == 0 && ready < 0)
    return "the step needs it before it computes anything";
  if (earlier == 0)
    return "it begins as soon as its operands are complete";
  if (!allowed.prefetch)
    return "this pass begins nothing earlier";
  Growth growth = growthOf(task);
  int64_t live = result.simulated.liveBytes[start - 1];
  if (budget >= 0 && live + growth.device > budget)
    return "an earlier start would exceed the memory budget";
  live = result.simulated.liveHostBytes[start - 1];
  if (allowed.hostMemoryBytes >= 0 && growth.host > 0 &&
      live + growth.host > allowed.hostMemoryBytes)
    return "an earlier start would exceed the budget of host memory";
  return "an earlier start would need more memory or delay another collective";
}

void Explainer::visit(size_t index) {
  ScheduleStep at = result.schedule.steps[index];
  const StepTask &task = graph.tasks[at.task];
  const TaskTiming &timing = result.simulated.tasks[at.task];
  if (at.action == ScheduleStep::Start) {
    startOf[at.task] = index;
    before[at.task] = lastOn[task.channel];
    lastOn[task.channel] = at.task;
    return;
  }
  if (at.action == ScheduleStep::Wait && timing.exposed > 0)
    remark::missed(step.ops[at.task].front()->getLoc(), options("exposed"))
        << (task.label + " (" + describeBytes(bytesOf(at.task)) +
            ") holds up compute for " + describeSeconds(timing.exposed) +
            " of " + describeSeconds(timing.end - timing.start) + ": " +
            getReason(at.task, startOf[at.task]) + getRemedy(task.kind).str());
  for (int32_t member : membersOf(at.task))
    for (int32_t buffer : graph.tasks[member].writes)
      complete[buffer] = index;
}

void Explainer::explain() {
  for (const std::vector<int32_t> &bucket : result.schedule.buckets)
    bucketOf[bucket.front()] = bucket;
  summarize();
  explainDropped();
  explainResharded();
  complete.assign(graph.buffers.size(), -1);
  startOf.assign(graph.tasks.size(), 0);
  lastOn.assign(graph.channels.size(), -1);
  before.assign(graph.tasks.size(), -1);
  ArrayRef<ScheduleStep> steps = result.schedule.steps;
  double now = 0;
  for (ScheduleStep at : steps) {
    runsBefore.push_back(runsBefore.empty() ? 0 : runsBefore.back());
    reached.push_back(now);
    if (at.action != ScheduleStep::Start)
      now = std::max(now, result.simulated.tasks[at.task].end);
  }
  for (size_t i = 1; i < steps.size(); ++i)
    runsBefore[i] =
        runsBefore[i - 1] + (steps[i - 1].action == ScheduleStep::Run);
  for (size_t i = 0; i < steps.size(); ++i)
    visit(i);
}

void zero::emitRemarks(const StepFunction &step, const ScheduleResult &result,
                       const SchedulerOptions &options, StringRef pass) {
  if (step.func->getContext()->getRemarkEngine())
    Explainer(step, result, options, pass).explain();
}

//===----------------------------------------------------------------------===//
// Nothing fits
//===----------------------------------------------------------------------===//

/// What takes the most at the peak decides what is named first.
static std::string getHelp(const StepFunction &step,
                           const ScheduleResult &result, int64_t stage) {
  int64_t state = 0, gathered = 0, other = 0;
  bool activations = false;
  for (int32_t number : result.peakBuffers) {
    const StepBuffer &buffer = step.graph.buffers[number];
    bool isState = buffer.kind == MemoryKind::Parameter ||
                   buffer.kind == MemoryKind::OptimizerState ||
                   buffer.kind == MemoryKind::Gradient;
    (isState                               ? state
     : buffer.kind == MemoryKind::Gathered ? gathered
                                           : other) += buffer.bytes;
    activations |= buffer.kind == MemoryKind::Activation && buffer.bytes > 0;
  }
  bool recomputes =
      llvm::any_of(FunctionOpInterface(step.func).getFunctionBody().front(),
                   [](Operation &op) { return op.hasAttr(kRecomputedAttr); });
  SmallVector<StringRef> help;
  if (stage < 3)
    help.push_back("ZeRO stage 3");
  if (stage > 0)
    help.push_back("more ranks");
  help.insert(other > state + gathered ? help.begin() : help.end(),
              "a smaller batch");
  if (activations && !recomputes)
    help.push_back("recomputation (remat)");
  if (llvm::all_of(step.graph.buffers, [](const StepBuffer &buffer) {
        return buffer.space == MemorySpace::Device;
      }))
    help.push_back("offload (zero-offload)");
  return llvm::join(help, ", ");
}

/// The largest of `buffers`, in words.
static std::string listLargest(const StepFunction &step,
                               ArrayRef<int32_t> buffers) {
  std::string largest;
  llvm::raw_string_ostream os(largest);
  size_t count = 0;
  for (int32_t buffer : buffers) {
    int64_t bytes = step.graph.buffers[buffer].bytes;
    if (bytes == 0 || count == 5)
      break;
    os << (count++ ? ", " : "") << step.bufferNames[buffer] << " ("
       << describeBytes(bytes) << ")";
  }
  return largest;
}

LogicalResult zero::emitDoesNotFit(const StepFunction &step,
                                   const ScheduleResult &result,
                                   const SchedulerOptions &options,
                                   int64_t stage) {
  if (result.missingBytes == 0)
    return emitError(step.func->getLoc())
           << "the step needs at least "
           << options.hostMemoryBytes + result.missingHostBytes
           << " bytes of host memory of one rank, " << result.missingHostBytes
           << " more than the budget of " << options.hostMemoryBytes
           << "; largest at the peak: "
           << listLargest(step, result.hostPeakBuffers)
           << "; what would help: more of it on disk, less of it offloaded"
           << (stage > 0 ? ", more ranks" : "");
  return emitError(step.func->getLoc())
         << "the step needs at least "
         << options.memoryBytes + result.missingBytes << " bytes of one rank, "
         << result.missingBytes << " more than the budget of "
         << options.memoryBytes
         << "; largest at the peak: " << listLargest(step, result.peakBuffers)
         << "; what would help: " << getHelp(step, result, stage);
}
