//===- PlanTimeline.cpp - What a program will do, over time ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See PlanTimeline.h.
//
//===----------------------------------------------------------------------===//

#include "zero/Lowering/PlanTimeline.h"

#include "dialects/Zero/Zero.h"
#include "zero/Cost/Processor.h"
#include "zero/Schedule/OffloadChoice.h"
#include "zero/Transforms/PlanOrder.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::zero;

namespace {
/// Simulates a program command by command. Times are seconds.
class PlanSimulation {
public:
  PlanSimulation(plan::ProgramOp program, const CostModel &cost)
      : program(program), cost(cost), order(program),
        lifetimes(computeLifetimes(program, order)),
        budget(program.getBudget().value_or(-1)) {}

  Timeline run();

private:
  /// What happened to a command.
  struct Run {
    double reached = 0; ///< when compute came to it, or its events happened
    double start = 0, end = 0;
    double exposed = 0;
    int64_t awaitedBy = -1; ///< the position that stood still for it
  };

  void simulate();
  void simulate(int64_t position, std::vector<double> &free,
                llvm::DenseMap<Value, int64_t> &signalled);
  double endOf(int64_t first, int64_t last, double compute);
  int64_t timesPerStep(int64_t position) const;
  double slowedBy(const Run &compute, double seconds);
  void expose(int64_t position, double seconds, int64_t by);
  void addSpans(Timeline &timeline);
  std::vector<TimelineMemory> findMemory(plan::Space space);
  void addSpaces(Timeline &timeline);
  void addParameters(Timeline &timeline);
  std::string explain(int64_t position) const;
  std::string explainStart(int64_t position) const;
  int64_t previousCompute(int64_t position) const;
  bool produces(int64_t producer, int64_t consumer) const;

  int64_t size() const { return order.getCommands().size(); }
  plan::CommandOpInterface at(int64_t position) const {
    return order.getCommands()[position].op;
  }

  plan::ProgramOp program;
  const CostModel &cost;
  PlanOrder order;
  std::vector<PlanLifetime> lifetimes;
  int64_t budget; ///< -1: none
  std::vector<Run> runs;
  std::vector<int64_t> beside; ///< positions on other streams, not yet ended
  std::vector<int64_t> alive, born; ///< bytes of the device by position
  std::vector<double> computed;     ///< seconds of compute before a position
  double seconds = 0, computeSeconds = 0;
  double busySeconds = 0;         ///< of all that takes a core, alone
  double frontSeconds = 0;        ///< of compute in one micro-batch
  double microBatchesSeconds = 0; ///< of those before the last
};
} // namespace

static std::string milliseconds(double seconds) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g ms", seconds * 1e3);
  return text;
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

void PlanSimulation::expose(int64_t position, double seconds, int64_t by) {
  runs[position].exposed += seconds;
  runs[position].awaitedBy = by;
}

/// What a compute command that would take `seconds` loses to those beside it.
double PlanSimulation::slowedBy(const Run &compute, double seconds) {
  llvm::erase_if(beside, [&](int64_t position) {
    return runs[position].end <= compute.start;
  });
  double collective = cost.getMachine().constant("overlap_slowdown");
  double other = cost.getMachine().constant("host_overlap_slowdown");
  double lost = 0;
  for (int64_t position : beside)
    lost +=
        std::max(0.0, std::min(runs[position].end, compute.start + seconds) -
                          std::max(runs[position].start, compute.start)) *
        (isa<plan::CollectiveOpInterface>(at(position).getOperation())
             ? collective
             : other);
  return lost;
}

/// How often a step runs the command at `position`.
int64_t PlanSimulation::timesPerStep(int64_t position) const {
  int64_t microBatches = plan::ProgramOp(program).getMicroBatches();
  return position < order.getMicroBatchEnd() ? microBatches - 1 : 1;
}

void PlanSimulation::simulate(int64_t position, std::vector<double> &free,
                              llvm::DenseMap<Value, int64_t> &signalled) {
  const PlanCommand &command = order.getCommands()[position];
  plan::CommandOpInterface op = command.op;
  computed.push_back(computeSeconds);
  Run &run = runs[position];
  double &streamFree = free[command.stream];
  int64_t last = -1; // of those waited for, the one that ends last
  for (Value event : op.getWaitEvents())
    if (int64_t by = signalled.lookup(event);
        last < 0 || runs[by].end > runs[last].end)
      last = by;
  run.reached = last < 0 ? microBatchesSeconds : runs[last].end;
  run.start = std::max(streamFree, run.reached);
  double alone = predictSeconds(op, cost);
  if (usesProcessor(getCommandKind(op)))
    busySeconds += alone * timesPerStep(position);
  run.end = run.start + alone;
  if (command.stream != 0) {
    beside.push_back(position);
  } else {
    run.end += slowedBy(run, alone);
    run.reached = run.start;
    if (run.start > streamFree)
      expose(last, run.start - streamFree, position);
    if (isa<plan::CollectiveOpInterface>(op.getOperation()))
      expose(position, run.end - run.start, position);
    else
      computeSeconds += run.end - run.start;
  }
  streamFree = run.end;
  if (Value event = op.getSignalEvent())
    signalled[event] = position;
}

/// When the commands from `first` to before `last` are done; what compute has
/// to stand still for behind its own end is exposed.
double PlanSimulation::endOf(int64_t first, int64_t last, double compute) {
  int64_t latest = -1;
  for (int64_t position = first; position < last; ++position)
    if (latest < 0 || runs[position].end > runs[latest].end)
      latest = position;
  if (latest < 0)
    return compute;
  if (runs[latest].end > compute)
    expose(latest, runs[latest].end - compute, last);
  return runs[latest].end;
}

/// Of the micro-batches before the last, all alike, the first is simulated; the
/// last begins when all of them are done.
void PlanSimulation::simulate() {
  runs.resize(size());
  std::vector<double> free(order.getStreams().size(), 0.0);
  llvm::DenseMap<Value, int64_t> signalled;
  int64_t end = order.getMicroBatchEnd();
  for (int64_t position = 0; position < end; ++position)
    simulate(position, free, signalled);
  if (end > 0) {
    double repeats = program.getMicroBatches() - 1;
    microBatchesSeconds = repeats * endOf(0, end, free[0]);
    frontSeconds = computeSeconds;
    llvm::fill(free, microBatchesSeconds);
    beside.clear();
  }
  for (int64_t position = end; position < size(); ++position)
    simulate(position, free, signalled);
  computed.push_back(computeSeconds);
  computeSeconds += frontSeconds * (timesPerStep(0) - 1);
  seconds = endOf(end, size(), free[0]);
}

//===----------------------------------------------------------------------===//
// Reasons
//===----------------------------------------------------------------------===//

int64_t PlanSimulation::previousCompute(int64_t position) const {
  while (--position >= 0)
    if (order.getCommands()[position].stream == 0 &&
        !isa<plan::ReleaseOp>(at(position).getOperation()))
      break;
  return position;
}

/// Whether the command at `consumer` reads what the one at `producer` writes.
bool PlanSimulation::produces(int64_t producer, int64_t consumer) const {
  llvm::SmallPtrSet<Operation *, 8> written;
  for (Value value : at(producer).getWrittenBuffers())
    written.insert(getUnderlyingBuffer(value));
  return llvm::any_of(at(consumer).getReadBuffers(), [&](Value value) {
    return written.contains(getUnderlyingBuffer(value));
  });
}

/// Why the collective at `position` did not start before it did.
std::string PlanSimulation::explainStart(int64_t position) const {
  const Run &run = runs[position];
  if (run.start > run.reached) {
    int64_t before = position;
    while (--before >= 0 && order.getCommands()[before].stream !=
                                order.getCommands()[position].stream)
      ;
    if (before >= 0)
      return "its channel is busy with " + getCommandLabel(at(before)) +
             " until " + milliseconds(run.start);
  }
  int64_t before = previousCompute(position);
  if (before < 0)
    return "it starts with the step";
  std::string label = getCommandLabel(at(before));
  if (produces(before, position))
    return "it needs the result of " + label;
  int64_t missing = born[position] + alive[before] - budget;
  if (budget >= 0 && missing > 0)
    return "budget: starting before " + label + " would need " +
           std::to_string(missing) + " bytes more";
  return "the schedule starts it after " + label;
}

std::string PlanSimulation::explain(int64_t position) const {
  const Run &run = runs[position];
  if (order.getCommands()[position].stream == 0)
    return "runs on the compute stream: nothing overlaps it";
  double overlapped = computed[run.awaitedBy] - computed[position];
  std::string text =
      run.awaitedBy == size() ? "the step ends with it: "
      : overlapped == 0 ? "needed at once, no compute between its start and "
                          "its use: "
                        : "takes " + milliseconds(run.end - run.start) +
                              " and only " + milliseconds(overlapped) +
                              " of compute lie between its start and its use: ";
  return text + explainStart(position);
}

//===----------------------------------------------------------------------===//
// Timeline
//===----------------------------------------------------------------------===//

void PlanSimulation::addSpans(Timeline &timeline) {
  int32_t number = 0;
  for (auto [position, command] : llvm::enumerate(order.getCommands())) {
    plan::CommandOpInterface op = command.op;
    if (isa<plan::ReleaseOp>(op.getOperation()))
      continue;
    const Run &run = runs[position];
    TimelineSpan span;
    span.channel = order.getStreams()[command.stream].str();
    span.name = getCommandLabel(op);
    span.kind = getCommandKind(op);
    span.start = run.start;
    span.end = run.end;
    span.exposed = run.exposed;
    span.sentBytes = getSentBytes(op);
    if (run.exposed > 0)
      span.reason = explain(position);
    span.command = number++;
    timeline.exposedSeconds += run.exposed * timesPerStep(position);
    timeline.spans.push_back(std::move(span));
  }
}

/// Bytes in `space`, by position of the program, when compute comes there; the
/// last entry is the end of the step.
std::vector<TimelineMemory> PlanSimulation::findMemory(plan::Space space) {
  std::vector<std::array<int64_t, kNumMemoryKinds>> change(size() + 2);
  born.assign(size() + 1, 0);
  for (const PlanLifetime &life : lifetimes) {
    if (life.last < life.first)
      continue;
    plan::BufferOp buffer = life.buffer;
    if (buffer.getSpace() != space)
      continue;
    auto kind = static_cast<size_t>(buffer.getKind());
    change[life.first][kind] += buffer.getBytes();
    born[life.first] += buffer.getBytes();
    change[life.last + 1][kind] -= buffer.getBytes();
  }
  std::vector<TimelineMemory> memory;
  TimelineMemory now;
  alive.assign(size() + 1, 0);
  for (int64_t position = 0; position <= size(); ++position) {
    now.time = position == size() ? seconds
                                  : std::max(now.time, runs[position].reached);
    for (auto [bytes, delta] : llvm::zip(now.bytes, change[position])) {
      bytes += delta;
      alive[position] += bytes;
    }
    if (memory.empty() || memory.back().bytes != now.bytes ||
        position == size())
      memory.push_back(now);
  }
  return memory;
}

/// The arenas of host memory and disk, and what is in them.
void PlanSimulation::addSpaces(Timeline &timeline) {
  for (auto arena : program.getBody().getOps<plan::ArenaOp>()) {
    if (arena.getSpace() == plan::Space::Device) {
      timeline.plannedPeak += arena.getBytes().value_or(0);
      timeline.lowerBound += arena.getLowerBound().value_or(0);
      continue;
    }
    TimelineSpace &space =
        arena.getSpace() == plan::Space::Host ? timeline.host : timeline.disk;
    space.budgetBytes = arena.getBudget().value_or(-1);
    space.plannedPeak = arena.getBytes().value_or(0);
    space.lowerBound = arena.getLowerBound().value_or(0);
    space.memory = findMemory(arena.getSpace());
  }
  // Last: reasons are about the memory of the device.
  timeline.memory = findMemory(plan::Space::Device);
}

void PlanSimulation::addParameters(Timeline &timeline) {
  llvm::DenseMap<Operation *, int64_t> gathers;
  for (auto [position, command] : llvm::enumerate(order.getCommands())) {
    plan::CommandOpInterface op = command.op;
    auto gather = dyn_cast<plan::AllGatherOp>(op.getOperation());
    if (!gather)
      continue;
    for (auto [source, target] :
         llvm::zip_equal(gather.getSources(), gather.getTargets()))
      if (getUnderlyingBuffer(target).getKind() == plan::Kind::Gathered)
        gathers[getUnderlyingBuffer(source)] += timesPerStep(position);
  }
  llvm::StringMap<size_t> rows;
  for (auto op : program.getBody().getOps<plan::ParameterOp>()) {
    plan::BufferOp buffer = getUnderlyingBuffer(op.getBuffer());
    if (op.getRole() == plan::ParamRole::State ||
        op.getRole() == plan::ParamRole::Accumulator) {
      if (auto row = rows.find(op.getOf().value_or("")); row != rows.end())
        timeline.parameters[row->second].bytes += buffer.getBytes();
      continue;
    }
    MemRefType type = buffer.getBuffer().getType();
    TimelineParameter row;
    row.name = op.getName().str();
    row.shape.assign(type.getShape().begin(), type.getShape().end());
    row.shard = row.shape;
    if (std::optional<ArrayRef<int64_t>> whole = op.getShape())
      row.shape.assign(whole->begin(), whole->end());
    llvm::raw_string_ostream(row.type) << type.getElementType();
    row.residence =
        stringifySpace(
            buffer.getArena().getDefiningOp<plan::ArenaOp>().getSpace())
            .str();
    int64_t times = gathers.lookup(buffer);
    row.gathered = times == 0   ? "never"
                   : times == 1 ? "once"
                   : times == 2 ? "twice"
                                : std::to_string(times) + " times";
    row.bytes = buffer.getBytes();
    rows[row.name] = timeline.parameters.size();
    timeline.parameters.push_back(std::move(row));
  }
}

Timeline PlanSimulation::run() {
  Timeline timeline;
  timeline.source = "predicted";
  timeline.model = program.getSymName().str();
  timeline.machine = cost.getMachine().name;
  timeline.ranks = program.getRanks();
  SmallVector<int64_t> grid = program.getGridShape();
  timeline.grid.assign(grid.begin(), grid.end());
  if (auto stage = program->getAttrOfType<IntegerAttr>(kStageAttr))
    timeline.stage = stage.getInt();
  timeline.budgetBytes = budget;
  simulate();
  double least =
      processorSeconds(cost.getMachine(), timeline.ranks, busySeconds);
  if (least > seconds)
    timeline.notes.push_back(
        "streams alone would take " + milliseconds(seconds) +
        "; the cores that they and the node's ranks share take " +
        milliseconds(least));
  seconds = std::max(seconds, least);
  timeline.stepSeconds = seconds;
  addSpaces(timeline);
  addSpans(timeline);
  addParameters(timeline);
  if (seconds > 0)
    timeline.notes.push_back("compute takes " + milliseconds(computeSeconds) +
                             " of the step's " + milliseconds(seconds) +
                             "; it stands still for communication for " +
                             milliseconds(timeline.exposedSeconds));
  if (int64_t count = program.getMicroBatches(); count > 1)
    timeline.notes.push_back(
        "of the " + std::to_string(count) +
        " micro-batches the first and the "
        "last are shown; those between are like the first, and all before the "
        "last take " +
        milliseconds(microBatchesSeconds));
  return timeline;
}

/// What zero-choose-offload has left in the module.
static void addOffload(ModuleOp module, Timeline &timeline) {
  if (!module)
    return;
  if (auto choice = module->getAttrOfType<StringAttr>(kOffloadChoiceAttr))
    timeline.offload = choice.str();
  if (auto rules = module->getAttrOfType<ArrayAttr>(kOffloadRulesAttr))
    for (auto rule : rules.getAsRange<StringAttr>())
      timeline.offloadRules.push_back(rule.str());
}

Timeline mlir::zero::predictTimeline(plan::ProgramOp program,
                                     const CostModel &cost) {
  Timeline timeline = PlanSimulation(program, cost).run();
  addOffload(program->getParentOfType<ModuleOp>(), timeline);
  return timeline;
}
