//===- ScheduleSearch.h - The best trades of time and memory ----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tries decisions and placements of a step and keeps those that no other beats
// in both time and memory. The number of trials depends on the size of the step
// alone. See docs/scheduling.md.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_SCHEDULE_SCHEDULESEARCH_H
#define ZERO_LIB_SCHEDULE_SCHEDULESEARCH_H

#include "SchedulePlace.h"
#include "zero/Schedule/Scheduler.h"

#include <memory>

namespace mlir::zero {

/// No schedule of the step that `options` allow takes less.
double lowerBound(const StepGraph &graph, const SchedulerOptions &options);

/// How to make a schedule again.
struct Recipe {
  std::shared_ptr<const Decisions> decisions;
  PlacePolicy policy;
  std::shared_ptr<const Schedule> schedule = nullptr; ///< if found exactly
};

/// A point of the front.
struct Trade {
  double seconds = 0;
  Bytes peak;
  Recipe recipe;
};

/// The front of a step, fastest first.
class Search {
public:
  Search(const StepGraph &graph, const SchedulerOptions &options);

  /// Adds what the passes allowed by `options` can do together, with one of
  /// `part` parts of the work.
  void explore(const SchedulerOptions &options, int64_t part);

  double getLowerBound() const { return bound; }
  const std::vector<Trade> &getFront() const { return front; }

  Schedule make(const Recipe &recipe) const;

private:
  struct Variant;

  void add(double seconds, Bytes peak, const Recipe &recipe);
  Trade tryOne(const Problem &problem, llvm::ArrayRef<int64_t> least,
               const Recipe &recipe);
  Variant makeVariant(llvm::ArrayRef<int32_t> order, const BucketRule &rule,
                      std::vector<int32_t> dropped) const;
  Trade tryPolicies(const Variant &variant, int64_t limit, Trade best,
                    llvm::ArrayRef<size_t> policies);
  Trade tryFew(const Variant &variant, int64_t limit, bool overlap);
  Trade tryOthers(const Variant &variant, int64_t limit, Trade best);
  std::vector<Variant> findVariants(const SchedulerOptions &options);
  Trade tryKeeping(const Variant &variant, int64_t limit, Trade best,
                   const SchedulerOptions &options);
  Trade tryLimit(const std::vector<Variant> &variants, int64_t limit,
                 size_t &winner, const SchedulerOptions &options);
  void descend(const std::vector<Variant> &variants,
               const SchedulerOptions &options);
  void descendHost(const std::vector<Variant> &variants,
                   const SchedulerOptions &options, int64_t trials);
  void improve(const Variant &variant, const SchedulerOptions &options);
  Trade improveOne(const Problem &problem, const Trade &best, int64_t limit,
                   int64_t &states);

  const StepGraph &graph;
  std::vector<std::vector<int32_t>> orders; ///< the first is the graph's
  double bound = 0;                         ///< no schedule takes less
  int64_t costOfTrial = 0;
  int64_t trialsLeft = 0;
  int64_t statesLeft = 0; ///< of branch and bound
  size_t favorite = 0;    ///< the policy that was best last
  bool usesHost = false;  ///< the step has tasks on the host or copies
  int64_t hostLimit;      ///< of host memory, where the search is
  std::vector<Trade> front;
};

} // namespace mlir::zero

#endif // ZERO_LIB_SCHEDULE_SCHEDULESEARCH_H
