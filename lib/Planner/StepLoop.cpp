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
                       StringRef what, int64_t unit) {
  if (seconds <= 0)
    return now;
  Channel &other = &channel == &gathers ? reductions : gathers;
  double begin = std::max(now, channel.free);
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

void StepLoop::forward() {
  int64_t units = times.units.size();
  bool gathersParameters =
      config.stage == 3 || (config.stage > 0 && software.gatherInForward);
  double embedding = 0, head = 0;
  std::vector<double> ends(units);
  auto gather = [&](int64_t unit) {
    if (!gathersParameters)
      return;
    if (unit < units)
      ends[unit] = start(gathers, times.units[unit].gather,
                         times.units[unit].gatherBytes, "layer", unit);
    else if (unit == units)
      head =
          start(gathers, times.head.gather, times.head.gatherBytes, "head", -1);
  };
  if (gathersParameters)
    embedding = start(gathers, times.embedding.gather,
                      times.embedding.gatherBytes, "embedding", -1);
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
    compute(times.units[unit].forward, parts.forward, "forward", unit);
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
  if (!last || unit.replicate <= 0)
    return;
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
  std::vector<double> ends(units);
  auto gather = [&](int64_t unit) {
    if (config.stage == 3 && unit >= 0 && unit < units - kept)
      ends[unit] = start(gathers, times.units[unit].gather,
                         times.units[unit].gatherBytes, "layer", unit);
  };
  int64_t ahead = config.prefetch;
  bool again =
      config.stage == 3 && config.keepLayers == 0 && !software.keepOuter;
  double head = 0, embedding = 0;
  if (again)
    head =
        start(gathers, times.head.gather, times.head.gatherBytes, "head", -1);
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
      embedding = start(gathers, times.embedding.gather,
                        times.embedding.gatherBytes, "embedding", -1);
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
  if (config.stage != 1 && config.stage != 2)
    return;
  if (config.stage > 0 && software.gatherInForward)
    return;
  // The first parameters are gathered while the others are updated.
  double end = now;
  if (software.overlap && !times.units.empty()) {
    double first = times.update / times.units.size();
    now = begin + first;
  }
  double done = start(gathers, whole.gather, whole.gatherBytes, "updated", -1);
  now = end;
  wait(std::max(done, end + times.units.front().gather), parts.exposedGather);
}

/// Adds `batches` micro-batches that are like the one since `before`.
void StepLoop::skip(int64_t batches, double seconds, const TimeParts &before,
                    double gatherBusy, double reduceBusy) {
  double count = batches;
  auto grow = [&](double TimeParts::*part) {
    parts.*part += count * (parts.*part - before.*part);
  };
  for (auto part :
       {&TimeParts::forward, &TimeParts::backward, &TimeParts::recompute,
        &TimeParts::head, &TimeParts::slowdown, &TimeParts::exposedGather,
        &TimeParts::exposedReduce})
    grow(part);
  double shift = count * seconds;
  now += shift;
  gathers.free += shift;
  reductions.free += shift;
  gathers.busy += count * (gathers.busy - gatherBusy);
  reductions.busy += count * (reductions.busy - reduceBusy);
}

TimeParts StepLoop::run() {
  // All but the first and last micro-batch are alike.
  int64_t simulated =
      events ? config.accumulate : std::min<int64_t>(config.accumulate, 3);
  for (int64_t batch = 0; batch != simulated; ++batch) {
    double begin = now, gatherBusy = gathers.busy, reduceBusy = reductions.busy;
    TimeParts before = parts;
    microBatch(batch + 1 == simulated);
    if (batch == 1 && simulated == 3)
      skip(config.accumulate - 3, now - begin, before, gatherBusy, reduceBusy);
  }
  finish();
  parts.step = now;
  parts.gather = gathers.busy;
  parts.reduce = reductions.busy + replicas.busy;
  return parts;
}
