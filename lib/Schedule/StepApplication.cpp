//===- StepApplication.cpp - From a schedule to a step function -----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lists the ops of the step in the order of the schedule, then moves each once.
//
//===----------------------------------------------------------------------===//

#include "dialects/Zero/Zero.h"
#include "zero/Schedule/StepFunction.h"
#include "zero/Transforms/StepUtils.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::zero;

namespace {
class ScheduleApplier {
public:
  ScheduleApplier(StepFunction &step, const Schedule &schedule)
      : step(step), schedule(schedule),
        body(step.func.getFunctionBody().front()),
        builder(body.getTerminator()) {}

  void apply();

private:
  void prepare();
  void replaceDropped();
  ArrayRef<int32_t> membersOf(int32_t task) const;
  void placeOperands(Operation *op);
  void place(Operation *op);
  void placeAssigns(Operation *op);
  Operation *build(ArrayRef<int32_t> members, bool start);
  void issue(int32_t task);
  void begin(int32_t task);
  void await(int32_t task);
  void finish(ArrayRef<int32_t> members, ValueRange values);

  StepFunction &step;
  const Schedule &schedule;
  Block &body;
  OpBuilder builder;
  std::vector<Operation *> order;
  llvm::DenseSet<Operation *> placed;
  /// Ops that are tasks or parts of one: placed by the schedule alone.
  llvm::DenseSet<Operation *> scheduled;
  /// Collectives that others take the place of.
  std::vector<Operation *> replaced;
  llvm::StringMap<SmallVector<Operation *, 1>> reads;
  std::vector<int32_t> bucketOf;
  llvm::DenseMap<int32_t, Value> futures;
};
} // namespace

void ScheduleApplier::prepare() {
  for (auto release : llvm::make_early_inc_range(body.getOps<ReleaseOp>()))
    release.erase();
  for (auto read : body.getOps<ReadOp>())
    reads[read.getSymbol()].push_back(read);
  for (auto &ops : step.ops)
    scheduled.insert(ops.begin(), ops.end());
  bucketOf.assign(step.ops.size(), -1);
  for (auto [number, bucket] : llvm::enumerate(schedule.buckets))
    bucketOf[bucket.front()] = number;
}

/// In the order of the step, so that a chain ends at the first gather.
void ScheduleApplier::replaceDropped() {
  std::vector<int32_t> dropped = schedule.dropped;
  llvm::sort(dropped);
  for (int32_t task : dropped) {
    int32_t earlier = step.graph.tasks[task].repeats;
    for (auto [i, value] : llvm::enumerate(step.results[task])) {
      if (!value)
        continue;
      Value kept = step.results[earlier][i];
      value.replaceAllUsesWith(kept);
      step.results[task][i] = kept;
    }
    replaced.push_back(step.ops[task].front());
    placed.insert(step.ops[task].front());
  }
  // What only they used.
  for (auto [task, omitted] :
       llvm::enumerate(omittedTasks(step.graph, dropped)))
    if (omitted && step.graph.tasks[task].serves >= 0)
      replaced.push_back(step.ops[task].front());
}

ArrayRef<int32_t> ScheduleApplier::membersOf(int32_t task) const {
  if (bucketOf[task] >= 0)
    return schedule.buckets[bucketOf[task]];
  return {};
}

//===----------------------------------------------------------------------===//
// The order
//===----------------------------------------------------------------------===//

/// Reads, views and constants stand before their first use.
void ScheduleApplier::placeOperands(Operation *op) {
  for (Value value : getUsedValues(op)) {
    Operation *def = value.getDefiningOp();
    if (def && def->getBlock() == &body && !scheduled.contains(def))
      place(def);
  }
}

void ScheduleApplier::place(Operation *op) {
  if (!placed.insert(op).second)
    return;
  placeOperands(op);
  // A read sees the value from before the assignment.
  if (auto assign = dyn_cast<AssignOp>(op))
    for (Operation *read : reads[assign.getSymbol()])
      place(read);
  order.push_back(op);
  placeAssigns(op);
}

/// What is assigned without a copy is assigned at once.
void ScheduleApplier::placeAssigns(Operation *op) {
  SmallVector<AssignOp> assigns;
  for (Value result : op->getResults())
    for (Operation *user : result.getUsers())
      if (auto assign = dyn_cast<AssignOp>(user);
          assign && !scheduled.contains(assign) && assign->getBlock() == &body)
        assigns.push_back(assign);
  for (AssignOp assign : assigns)
    place(assign);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// One collective, transfer or host's compute for all members, as it is or
/// begun. Only one that stands alone has a body, which moves.
Operation *ScheduleApplier::build(ArrayRef<int32_t> members, bool start) {
  SmallVector<Value> operands;
  SmallVector<Type> types;
  SmallVector<Location> locs;
  for (int32_t member : members) {
    Operation *op = step.ops[member].front();
    llvm::append_range(operands, op->getOperands());
    llvm::append_range(types, op->getResultTypes());
    locs.push_back(op->getLoc());
  }
  Operation *first = step.ops[members.front()].front();
  std::string name = first->getName().getStringRef().str();
  OperationState state(builder.getFusedLoc(locs),
                       start ? name + "_start" : name);
  state.addOperands(operands);
  state.addTypes(start ? FutureType::get(builder.getContext(), types)
                       : TypeRange(types));
  state.addAttributes(first->getAttrs());
  for (Region &region : first->getRegions())
    state.addRegion()->takeBody(region);
  return builder.create(state);
}

/// Lets `values` take the place of the members' results.
void ScheduleApplier::finish(ArrayRef<int32_t> members, ValueRange values) {
  for (int32_t member : members) {
    Operation *op = step.ops[member].front();
    op->replaceAllUsesWith(values.take_front(op->getNumResults()));
    values = values.drop_front(op->getNumResults());
    replaced.push_back(op);
  }
}

/// A collective that is awaited at once.
void ScheduleApplier::issue(int32_t task) {
  ArrayRef<int32_t> members = membersOf(task);
  if (members.size() < 2)
    return place(step.ops[task].front());
  for (int32_t member : members)
    placeOperands(step.ops[member].front());
  Operation *op = build(members, /*start=*/false);
  finish(members, op->getResults());
  place(op);
}

void ScheduleApplier::begin(int32_t task) {
  ArrayRef<int32_t> members = membersOf(task);
  if (members.empty())
    members = task;
  Operation *op = build(members, /*start=*/true);
  futures[task] = op->getResult(0);
  place(op);
}

void ScheduleApplier::await(int32_t task) {
  ArrayRef<int32_t> members = membersOf(task);
  if (members.empty())
    members = task;
  Operation *op = step.ops[members.front()].front();
  auto wait = WaitOp::create(builder, op->getLoc(), futures[task]);
  scheduled.insert(wait);
  finish(members, wait.getResults());
  place(wait);
}

void ScheduleApplier::apply() {
  prepare();
  replaceDropped();
  ArrayRef<ScheduleStep> steps = schedule.steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    int32_t task = steps[i].task;
    if (steps[i].action == ScheduleStep::Run) {
      for (Operation *op : step.ops[task])
        place(op);
    } else if (steps[i].action == ScheduleStep::Wait) {
      await(task);
    } else if (i + 1 < steps.size() &&
               steps[i + 1] == ScheduleStep{ScheduleStep::Wait, task}) {
      issue(task);
      ++i;
    } else {
      begin(task);
    }
  }
  Operation *terminator = body.getTerminator();
  // What nobody uses.
  for (Operation &op : body)
    if (!placed.contains(&op) && !scheduled.contains(&op))
      place(&op);
  for (Operation *op : order)
    if (op != terminator)
      op->moveBefore(terminator);
  for (Operation *op : replaced)
    op->erase();
  releaseGathered(body);
}

void zero::applySchedule(StepFunction &step, const Schedule &schedule) {
  ScheduleApplier(step, schedule).apply();
}
