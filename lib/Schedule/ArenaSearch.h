//===- ArenaSearch.h - Branch and bound for one arena -----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Looks for a placement below a given height, or proves that there is none.
// Like MiniMalloc (Moffitt, ASPLOS 2024) it builds only placements in which
// each buffer rests on another or on the ground, and splits what is left into
// parts that share no time. Its own: it branches over what rests on ONE section
// of the skyline, the one with the fewest ways out (weighted by past failures),
// jumps back over decisions that had no part in a failure, remembers skylines
// that failed, and restarts with other rules.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_SCHEDULE_ARENASEARCH_H
#define ZERO_LIB_SCHEDULE_ARENASEARCH_H

#include "ArenaState.h"

namespace mlir::zero::arena {

enum class Verdict { Found, Impossible, GaveUp };

/// How one run branches.
struct Strategy {
  /// Fewest ways out; the same over the section's failures; the same again,
  /// low sections first.
  enum Section { Fewest, Failures, LowFailures } section;
  /// Items whose top or side meets the skyline beside it go first: so that its
  /// outline gets shortest; or only where both heights agree.
  enum Fit { Shortest, Flush } fit;
  /// Then the most sections, or the fullest section with the largest area.
  enum Rank { Widest, Fullest } rank;
};

class Search {
public:
  explicit Search(const Problem &problem);

  /// A placement that ends at most at `limit`, in at most `effort` nodes;
  /// takes what it used off `effort`.
  Verdict run(int64_t limit, int64_t &effort);
  const std::vector<int64_t> &offsets() const { return state.offset; }

private:
  /// What one node looks at: sections that hang together.
  struct Part {
    int32_t first, end;
  };
  Verdict attempt(int64_t limit);
  int64_t cost() const;
  Verdict visit(Part part);
  Verdict visitParts(std::vector<Part> parts);
  Verdict branch(Part part);
  std::vector<Part> split(Part part) const;
  int32_t chooseSection(Part part);
  double urgency(int32_t s);
  llvm::SmallVector<int32_t> candidatesInOrder(Part part, int32_t s);
  int64_t fitOf(const Item &item, Part part, int32_t s) const;
  void rankItems(const Strategy &strategy, uint64_t round);
  uint64_t hash(Part part) const;
  bool isKnownFailure(uint64_t key) const;
  void remember(uint64_t key);

  State state;
  Strategy strategy{};
  std::vector<uint32_t> rank;       // per item, of the present run
  std::vector<Decisions> conflicts; // per level: why its last node failed
  std::vector<uint64_t> table;      // hashes of failed nodes
  int64_t nodes = 0, maxNodes = 0;  // of the present run
  int64_t maxCost = 0;
  uint64_t round = 0; // over all runs
};

} // namespace mlir::zero::arena

#endif // ZERO_LIB_SCHEDULE_ARENASEARCH_H
