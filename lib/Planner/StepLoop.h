//===- StepLoop.h - A step of equal layers, event by event ------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The channels of one rank while a step of a standard model runs.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_PLANNER_STEPLOOP_H
#define ZERO_LIB_PLANNER_STEPLOOP_H

#include "zero/Planner/StepPlan.h"

#include <array>

namespace mlir::zero {

/// A copy of one rank between memory spaces.
struct CopyTime {
  double seconds = 0;
  int64_t bytes = 0;
};

/// Durations of what a step is made of. A unit is `bucketLayers` layers.
struct UnitTimes {
  double forward = 0, recompute = 0, backward = 0;
  double gather = 0, reduce = 0, replicate = 0;
  int64_t gatherBytes = 0, reduceBytes = 0, replicateBytes = 0; ///< sent
  /// What is offloaded: parameters before they are used, activations, gradients
  /// and parameters around an update, states on disk.
  CopyTime paramsRead, paramsUp, newUp, newDown, newWrite;
  CopyTime savedDown, savedWrite, savedRead, savedUp;
  CopyTime gradDown, gradUp, stateRead, stateWrite;
  double hostUpdate = 0;
};

struct StepTimes {
  std::vector<UnitTimes> units;
  UnitTimes embedding, head; ///< what is outside the layers
  double update = 0;         ///< of all shards
};

/// Executes a step.
class StepLoop {
public:
  StepLoop(const StepTimes &times, const StepConfig &config,
           const Software &software, const Machine &machine,
           std::vector<StepEvent> *events);

  TimeParts run();

private:
  struct Channel {
    llvm::StringRef name;
    TaskKind kind;
    double free = 0; ///< when its last task ends
    double busy = 0; ///< seconds of all tasks
  };

  double start(Channel &channel, double seconds, int64_t bytes,
               llvm::StringRef what, int64_t unit, double after = 0);
  double copy(Channel &channel, const CopyTime &copy, llvm::StringRef what,
              int64_t unit, double after);
  void wait(double end, double &exposed);
  void compute(double seconds, double &total, llvm::StringRef what,
               int64_t unit);
  void microBatch(bool last);
  void forward();
  void backward(bool last);
  void reduceUnit(const UnitTimes &unit, bool last, llvm::StringRef what,
                  int64_t index);
  void replicate(const UnitTimes &unit, llvm::StringRef what, int64_t index);
  double fetchParameters(const UnitTimes &unit, int64_t index);
  double fetchSaved(const UnitTimes &unit, int64_t index);
  void dropSaved(const UnitTimes &unit, int64_t index);
  void updateOnHost(const UnitTimes &unit, int64_t index, bool last);
  void bringUpdated(bool all);
  double offloadEnd() const;
  void finishOffload();
  void finish();
  void skip(int64_t batches, double seconds, const TimeParts &before,
            llvm::ArrayRef<double> busy);
  void record(llvm::StringRef channel, TaskKind kind, llvm::StringRef what,
              int64_t unit, double begin, double end, int64_t bytes);

  const StepTimes &times;
  const StepConfig &config;
  const Software &software;
  std::vector<StepEvent> *events;
  double slowdown, sharing;
  double now = 0;
  TimeParts parts;
  Channel gathers{"all_gather", TaskKind::AllGather};
  Channel reductions;
  Channel replicas{"all_reduce.0", TaskKind::AllReduce};
  Channel toHost{"to_host", TaskKind::CopyOut};
  Channel toDevice{"to_device", TaskKind::CopyIn};
  Channel diskRead{"disk_read", TaskKind::DiskRead};
  Channel diskWrite{"disk_write", TaskKind::DiskWrite};
  Channel host{"host", TaskKind::HostCompute};
  std::array<Channel *, 8> channels = {&gathers,   &reductions, &replicas,
                                       &toHost,    &toDevice,   &diskRead,
                                       &diskWrite, &host};
  /// Updates of the host whose parameters are not on their way yet: when they
  /// are ready.
  struct Updated {
    double ready;
    const UnitTimes *unit;
    int64_t index;
  };
  std::vector<Updated> updated;
  std::vector<double> hostEnds; ///< of the updates so far
};

} // namespace mlir::zero

#endif // ZERO_LIB_PLANNER_STEPLOOP_H
