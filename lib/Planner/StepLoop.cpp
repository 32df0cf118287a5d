//===- StepLoop.cpp - A step of equal layers, event by event -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See StepLoop.h.
//
//===----------------------------------------------------------------------===//

#include "StepLoop.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace llvm;
using namespace mlir::zero;

StepLoop::StepLoop(const StepTimes &times, const StepConfig &config,
                   const Software &software, const Machine &machine,
                   std::vector<StepEvent> *events)
    : times(times), config(config), software(software), events(events),
      slowdown(machine.constant("overlap_slowdown")),
      sharing(machine.constant("channel_sharing")),
      reductions(config.stage == 0
                     ? Channel{"all_reduce", TaskKind::AllReduce}
                     : Channel{"reduce_scatter", TaskKind::ReduceScatter}) {}

void StepLoop::record(StringRef channel, TaskKind kind, StringRef what,
                      int64_t unit, double begin, double end, int64_t bytes) {
  if (events && end > begin)
    events->push_back({channel, what, kind, unit, begin, end, 0, bytes});
}

/// Hands a collective to its channel; returns when it will be done.
double StepLoop::start(Channel &channel, double seconds, int64_t bytes,
                       StringRef what, int64_t unit, double after) {
  if (seconds <= 0)
    return std::max(now, after);
  Channel &other = &channel == &gathers ? reductions : gathers;
  double begin = std::max({now, channel.free, after});
  if (software.oneCommunicator)
    begin = std::max(begin, other.free);
  else if (other.free > begin)
    seconds += sharing * std::min(seconds, other.free - begin);
  channel.free = begin + seconds;
  channel.busy += seconds;
  record(channel.name, channel.kind, what, unit, begin, channel.free, bytes);
  return channel.free;
}

/// Compute stands still until `end`.
void StepLoop::wait(double end, double &exposed) {
  if (end <= now)
    return;
  exposed += end - now;
  if (events)
    for (StepEvent &event : llvm::reverse(*events))
      if (event.end == end && event.kind != TaskKind::Compute) {
        event.exposed += end - now;
        break;
      }
  now = end;
}

void StepLoop::compute(double seconds, double &total, StringRef what,
                       int64_t unit) {
  if (seconds <= 0)
    return;
  double busyUntil =
      std::max(gathers.free, std::max(reductions.free, replicas.free));
  double lost = slowdown * std::clamp(busyUntil - now, 0.0, seconds);
  total += seconds;
  parts.slowdown += lost;
  record("compute", TaskKind::Compute, what, unit, now, now + seconds + lost,
         0);
  now += seconds + lost;
}

//===----------------------------------------------------------------------===//
// Offload
//===----------------------------------------------------------------------===//

/// Hands a copy to its channel; returns when it will be done.
double StepLoop::copy(Channel &channel, const CopyTime &copy, StringRef what,
                      int64_t unit, double after) {
  if (copy.seconds <= 0)
    return after;
  double begin = std::max({now, channel.free, after});
  channel.free = begin + copy.seconds;
  channel.busy += copy.seconds;
  record(channel.name, channel.kind, what, unit, begin, channel.free,
         copy.bytes);
  return channel.free;
}

double StepLoop::fetchParameters(const UnitTimes &unit, int64_t index) {
  double read = copy(diskRead, unit.paramsRead, "parameters", index, 0);
  return copy(toDevice, unit.paramsUp, "parameters", index, read);
}

void StepLoop::dropSaved(const UnitTimes &unit, int64_t index) {
  double down = copy(toHost, unit.savedDown, "activations", index, now);
  copy(diskWrite, unit.savedWrite, "activations", index, down);
}

double StepLoop::fetchSaved(const UnitTimes &unit, int64_t index) {
  // Nothing comes back before it has gone.
  double gone = unit.savedWrite.seconds > 0 ? diskWrite.free : toHost.free;
  double after = unit.savedUp.seconds > 0 ? gone : 0;
  double read = copy(diskRead, unit.savedRead, "activations", index, after);
  return copy(toDevice, unit.savedUp, "activations", index,
              std::max(read, after));
}

/// Gradients of a unit go down when they are reduced; the host updates what it
/// has the states of.
void StepLoop::updateOnHost(const UnitTimes &unit, int64_t index, bool last) {
  bool everyBatch = config.offload.gradients.layers != 0;
  if (!last && !everyBatch)
    return;
  double reduced = std::max(reductions.free, replicas.free);
  double down = copy(toHost, unit.gradDown, "gradients", index, reduced);
  if (!last || unit.hostUpdate <= 0)
    return;
  // Of states on disk as much is in host memory as two units need.
  double room = hostEnds.size() >= 2 ? hostEnds[hostEnds.size() - 2] : 0;
  double read = copy(diskRead, unit.stateRead, "states", index, room);
  double done =
      copy(host, {unit.hostUpdate, 0}, "update", index, std::max(down, read));
  hostEnds.push_back(done);
  copy(diskWrite, unit.stateWrite, "states", index, done);
  updated.push_back({done, &unit, index});
}

/// Parameters that the host has updated go up; `all`: also those that are not
/// ready yet. (A copy that waits would keep others from the link.)
void StepLoop::bringUpdated(bool all) {
  auto next = updated.begin();
  for (; next != updated.end() && (all || next->ready <= now); ++next) {
    copy(toDevice, next->unit->newUp, "updated", next->index, next->ready);
    copy(diskWrite, next->unit->newWrite, "updated", next->index, next->ready);
  }
  updated.erase(updated.begin(), next);
}

double StepLoop::offloadEnd() const {
  return std::max(
      {toHost.free, toDevice.free, diskRead.free, diskWrite.free, host.free});
}

/// What of gradients and parameters is on its way at the update.
void StepLoop::finishOffload() {
  bringUpdated(/*all=*/true);
  auto each = [&](const UnitTimes &unit, int64_t index) {
    double up = copy(toDevice, unit.gradUp, "gradients", index, 0);
    double down = copy(toHost, unit.newDown, "updated", index, up);
    if (unit.hostUpdate <= 0)
      copy(diskWrite, unit.newWrite, "updated", index, down);
  };
  each(times.head, -1);
  for (auto [index, unit] : llvm::enumerate(times.units))
    each(unit, index);
  each(times.embedding, -1);
  wait(offloadEnd(), parts.exposedOffload);
}

//===----------------------------------------------------------------------===//
// Passes of a step
//===----------------------------------------------------------------------===//

void StepLoop::forward() {
  int64_t units = times.units.size();
  bool gathersParameters =
      config.stage == 3 || (config.stage > 0 && software.gatherInForward);
  double embedding = fetchParameters(times.embedding, -1), head = 0;
  std::vector<double> ends(units);
  std::vector<double> fetched(units + 1);
  auto fetch = [&](int64_t unit) {
    if (unit <= units)
      fetched[unit] =
          fetchParameters(unit < units ? times.units[unit] : times.head,
                          unit < units ? unit : -1);
  };
  auto gather = [&](int64_t unit) {
    if (unit < units)
      ends[unit] = fetched[unit];
    else if (unit == units)
      head = fetched[unit];
    if (!gathersParameters)
      return;
    if (unit < units)
      ends[unit] =
          start(gathers, times.units[unit].gather,
                times.units[unit].gatherBytes, "layer", unit, fetched[unit]);
    else if (unit == units)
      head = start(gathers, times.head.gather, times.head.gatherBytes, "head",
                   -1, fetched[unit]);
  };
  if (gathersParameters)
    embedding = start(gathers, times.embedding.gather,
                      times.embedding.gatherBytes, "embedding", -1, embedding);
  // What is fetched runs a unit further ahead than what is gathered.
  for (int64_t unit = 0; unit <= config.prefetch; ++unit)
    fetch(unit);
  for (int64_t unit = 0; unit <= config.prefetch - 1; ++unit)
    gather(unit);
  wait(embedding, parts.exposedGather);
  compute(times.embedding.forward, parts.head, "embedding", -1);
  if (config.prefetch == 0)
    gather(0);
  for (int64_t unit = 0; unit != units; ++unit) {
    if (config.prefetch == 0 && unit > 0)
      gather(unit);
    wait(ends[unit], parts.exposedGather);
    if (config.prefetch > 0)
      gather(unit + config.prefetch);
    fetch(unit + config.prefetch + 1);
    compute(times.units[unit].forward, parts.forward, "forward", unit);
    dropSaved(times.units[unit], unit);
  }
  if (config.prefetch == 0)
    gather(units);
  wait(head, parts.exposedGather);
}

void StepLoop::reduceUnit(const UnitTimes &unit, bool last, StringRef what,
                          int64_t index) {
  if (!software.overlap || (config.stage < 2 && !last))
    return;
  start(reductions, unit.reduce, unit.reduceBytes, what, index);
  if (last && unit.replicate > 0)
    replicate(unit, what, index);
  updateOnHost(unit, index, last);
}

void StepLoop::replicate(const UnitTimes &unit, StringRef what, int64_t index) {
  // A replica's all-reduce needs the reduced shard.
  double begin = std::max(reductions.free, replicas.free);
  replicas.free = begin + unit.replicate;
  replicas.busy += unit.replicate;
  record(replicas.name, replicas.kind, what, index, begin, replicas.free,
         unit.replicateBytes);
}

void StepLoop::backward(bool last) {
  int64_t units = times.units.size();
  int64_t kept = (config.keepLayers + config.bucketLayers - 1) /
                 std::max<int64_t>(config.bucketLayers, 1);
  std::vector<double> ends(units), fetched(units), saved(units);
  auto held = [&](int64_t unit) {
    return config.stage == 3 && unit >= units - kept;
  };
  auto fetch = [&](int64_t unit) {
    if (unit >= 0 && !held(unit))
      ends[unit] = fetched[unit] = fetchParameters(times.units[unit], unit);
  };
  auto gather = [&](int64_t unit) {
    if (config.stage == 3 && unit >= 0 && !held(unit))
      ends[unit] =
          start(gathers, times.units[unit].gather,
                times.units[unit].gatherBytes, "layer", unit, fetched[unit]);
  };
  int64_t ahead = config.prefetch;
  bool again =
      config.stage == 3 && config.keepLayers == 0 && !software.keepOuter;
  double head = 0, embedding = 0;
  if (again)
    head = start(gathers, times.head.gather, times.head.gatherBytes, "head", -1,
                 fetchParameters(times.head, -1));
  for (int64_t unit = units - 1; unit >= units - 1 - ahead; --unit)
    fetch(unit);
  saved[units - 1] = fetchSaved(times.units[units - 1], units - 1);
  for (int64_t unit = units - 1; unit >= units - ahead; --unit)
    gather(unit);
  compute(times.head.forward, parts.head, "head", -1);
  wait(head, parts.exposedGather);
  compute(times.head.backward, parts.head, "head backward", -1);
  reduceUnit(times.head, last, "head", -1);
  for (int64_t unit = units - 1; unit >= 0; --unit) {
    if (ahead == 0)
      gather(unit);
    wait(ends[unit], parts.exposedGather);
    if (ahead > 0)
      gather(unit - ahead);
    if (again && unit == 0)
      embedding =
          start(gathers, times.embedding.gather, times.embedding.gatherBytes,
                "embedding", -1, fetchParameters(times.embedding, -1));
    wait(saved[unit], parts.exposedOffload);
    if (unit > 0)
      saved[unit - 1] = fetchSaved(times.units[unit - 1], unit - 1);
    fetch(unit - ahead - 1);
    bringUpdated(/*all=*/false);
    compute(times.units[unit].recompute, parts.recompute, "recompute", unit);
    compute(times.units[unit].backward, parts.backward, "backward", unit);
    reduceUnit(times.units[unit], last, "layer", unit);
  }
  wait(embedding, parts.exposedGather);
  compute(times.embedding.backward, parts.head, "embedding", -1);
  reduceUnit(times.embedding, last, "embedding", -1);
}

void StepLoop::microBatch(bool last) {
  forward();
  backward(last);
}

/// Reductions that are left, the update, and gathers of updated parameters.
void StepLoop::finish() {
  UnitTimes whole = times.embedding;
  for (const UnitTimes &unit : times.units) {
    whole.reduce += unit.reduce;
    whole.reduceBytes += unit.reduceBytes;
    whole.gather += unit.gather;
    whole.gatherBytes += unit.gatherBytes;
  }
  whole.reduce += times.head.reduce;
  whole.reduceBytes += times.head.reduceBytes;
  whole.gather += times.head.gather;
  whole.gatherBytes += times.head.gatherBytes;
  if (!software.overlap)
    start(reductions, whole.reduce, whole.reduceBytes, "gradients", -1);
  wait(std::max(reductions.free, replicas.free), parts.exposedReduce);
  double begin = now;
  compute(times.update, parts.update, "update", -1);
  finishOffload();
  if (config.stage != 1 && config.stage != 2)
    return;
  if (config.stage > 0 && software.gatherInForward)
    return;
  // The first parameters are gathered while the others are updated.
  double end = now;
  if (software.overlap && !times.units.empty() && !config.offload.any()) {
    double first = times.update / times.units.size();
    now = begin + first;
  }
  double done = start(gathers, whole.gather, whole.gatherBytes, "updated", -1);
  now = end;
  wait(std::max(done, end + times.units.front().gather), parts.exposedGather);
}

/// Adds `batches` micro-batches that are like the one since `before`.
void StepLoop::skip(int64_t batches, double seconds, const TimeParts &before,
                    ArrayRef<double> busy) {
  double count = batches;
  auto grow = [&](double TimeParts::*part) {
    parts.*part += count * (parts.*part - before.*part);
  };
  for (auto part :
       {&TimeParts::forward, &TimeParts::backward, &TimeParts::recompute,
        &TimeParts::head, &TimeParts::slowdown, &TimeParts::exposedGather,
        &TimeParts::exposedReduce, &TimeParts::exposedOffload})
    grow(part);
  double shift = count * seconds;
  now += shift;
  for (auto [channel, was] : llvm::zip_equal(channels, busy)) {
    channel->free += shift;
    channel->busy += count * (channel->busy - was);
  }
}

TimeParts StepLoop::run() {
  // All but the first and last micro-batch are alike.
  int64_t simulated =
      events ? config.accumulate : std::min<int64_t>(config.accumulate, 3);
  for (int64_t batch = 0; batch != simulated; ++batch) {
    double begin = now;
    TimeParts before = parts;
    SmallVector<double> busy;
    for (const Channel *channel : channels)
      busy.push_back(channel->busy);
    microBatch(batch + 1 == simulated);
    if (batch == 1 && simulated == 3)
      skip(config.accumulate - 3, now - begin, before, busy);
  }
  finish();
  parts.step = now;
  parts.gather = gathers.busy;
  parts.reduce = reductions.busy + replicas.busy;
  parts.toHost = toHost.busy;
  parts.toDevice = toDevice.busy;
  parts.diskRead = diskRead.busy;
  parts.diskWrite = diskWrite.busy;
  parts.host = host.busy;
  return parts;
}
