//===- ArenaState.h - A partial placement and what follows ------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The state of the search for a placement below a limit. Items rest on the
// floor of their sections; each section's floor only rises. A failure names
// the decisions that caused it, so that the search can skip all others.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_SCHEDULE_ARENASTATE_H
#define ZERO_LIB_SCHEDULE_ARENASTATE_H

#include "ArenaFit.h"

namespace mlir::zero::arena {

/// A set of decisions by level.
using Decisions = std::vector<uint64_t>;

class State {
public:
  explicit State(const Problem &problem);

  /// Forgets all placements. `limit`: no item may end above it.
  void reset(int64_t limit);

  //===--------------------------------------------------------------------===//
  // Decisions, and what follows from them
  //===--------------------------------------------------------------------===//

  /// Item `i` rests on the floor of its sections, at `offset`; a decision of
  /// the current level.
  void place(int32_t i, int64_t offset);
  /// No open item that covers section `s` rests on its floor.
  void close(int32_t s);

  /// Raises floors and places items that nothing can disturb, within the
  /// sections [first, end). False if no placement follows; `conflict` then
  /// holds the decisions that are to blame.
  bool propagate(int32_t first, int32_t end, Decisions &conflict);

  size_t mark() const { return trail.size(); }
  void undo(size_t mark);

  /// Adds to `set` why section `s` is as it is.
  void explain(int32_t s, Decisions &set) const;
  /// Adds why item `i` cannot start lower.
  void explainStart(int32_t i, Decisions &set) const {
    explain(startSection[i], set);
  }

  /// Decisions so far; those of a level are added at it.
  int32_t level = 0;
  int32_t maxLevels() const { return 64 * numWords; }
  size_t words() const { return numWords; }

  //===--------------------------------------------------------------------===//
  // The state
  //===--------------------------------------------------------------------===//

  const Problem &problem;
  int64_t limit = 0;
  std::vector<llvm::SmallVector<int32_t, 8>> covering; ///< items per section
  // Per section.
  std::vector<int64_t> floor;     ///< no open item starts lower
  std::vector<int64_t> pending;   ///< sum of the sizes of open items
  std::vector<char> closed;       ///< no open item starts at the floor
  std::vector<int32_t> numOpen;   ///< open items
  std::vector<int32_t> crossing;  ///< open items in it and the section before
  std::vector<double> weight;     ///< failures seen here, over all runs
  std::vector<uint64_t> openHash; ///< of the open items that begin here
  // Per item.
  std::vector<char> open;     ///< not placed
  std::vector<int64_t> start; ///< no lower offset is possible
  std::vector<int64_t> offset;

  /// Spare room of a section: what its open items may waste.
  int64_t slack(int32_t s) const { return limit - floor[s] - pending[s]; }
  /// Open items that cover section `s` and can rest on its floor.
  int32_t numCandidates(int32_t s);
  bool isCandidate(int32_t i, int32_t s) const {
    return open[i] && start[i] == floor[s];
  }

  int64_t looks = 0; ///< at items: the measure of work

private:
  struct Change {
    enum Kind : uint8_t { Section, Start, Place, Reason } kind;
    int32_t index;
    int64_t value;
    int32_t extra;
  };
  uint64_t *reason(int32_t s) { return &reasons[size_t(s) * numWords]; }
  size_t usedWords() const { return size_t(level) / 64 + 1; }
  void decideAt(int32_t s);
  void saveReason(int32_t s);
  void setFloor(int32_t s, int64_t height, bool isClosed);
  void remove(int32_t i, int64_t at);
  void restore(int32_t i);
  void forgetCounts(int32_t i);

  bool settle(Decisions &conflict);
  bool raiseStarts(int32_t s, Decisions &conflict);
  bool raiseFloor(int32_t s, Decisions &conflict);
  bool placeIfAlone(int32_t s, int32_t item);
  bool raiseClosed(int32_t first, int32_t end, bool &changed,
                   Decisions &conflict);
  bool raiseRun(int32_t begin, int32_t stop, int32_t first, int32_t end,
                bool &changed, Decisions &conflict);
  bool fitsFromAbove(int32_t s, Decisions &conflict);
  bool blameHighStarts(int32_t s, Decisions &conflict);
  bool fail(int32_t s);

  /// Sections to look at, each once.
  struct Worklist {
    std::vector<char> has;
    std::vector<int32_t> list;
    void add(int32_t s) {
      if (!has[s])
        list.push_back(s);
      has[s] = true;
    }
    int32_t pop() {
      int32_t s = list.back();
      list.pop_back();
      has[s] = false;
      return s;
    }
    void clear() {
      while (!list.empty())
        pop();
    }
  };
  Worklist risen, touched, checked;

  size_t numWords;
  std::vector<uint64_t> reasons;     // numWords per section
  std::vector<int32_t> startSection; // per item: the floor that `start` is
  std::vector<int32_t> candidates;   // per section; -1: count again
  std::vector<Change> trail;
  std::vector<uint64_t> savedReasons;
  std::vector<std::pair<int64_t, int32_t>> byStart; // scratch
};

} // namespace mlir::zero::arena

#endif // ZERO_LIB_SCHEDULE_ARENASTATE_H
