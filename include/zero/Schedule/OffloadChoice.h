//===- OffloadChoice.h - What is worth offloading ---------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Choices of what lives outside device memory, from nothing to everything, for
// the pass `zero-choose-offload` and for compilers that try several.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_SCHEDULE_OFFLOADCHOICE_H
#define ZERO_SCHEDULE_OFFLOADCHOICE_H

#include "zero/Cost/CostModel.h"
#include "zero/Transforms/Offload.h"

namespace mlir::zero {

/// Of a module: the rules that were chosen, as an array of strings, and the
/// choice as a sentence.
constexpr StringLiteral kOffloadRulesAttr = "zero.offload_rules";
constexpr StringLiteral kOffloadChoiceAttr = "zero.offload_choice";

/// By what part a step has to be faster for anything to be offloaded where all
/// fits without.
constexpr double kLeastOffloadGain = 0.02;

/// Whether that may be: not where the host's processor is the device, which
/// gains nothing from handing itself work.
bool mayOffloadForSpeed(const CostModel &cost);

/// Seconds that each channel of a step is busy.
struct OffloadLoad {
  double compute = 0, toHost = 0, toDevice = 0, host = 0;
  double diskRead = 0, diskWrite = 0;

  /// No step is faster: the busiest channel.
  double longest() const;
  /// All channels but compute.
  double copies() const;
};
OffloadLoad operator+(OffloadLoad a, const OffloadLoad &b);

/// The candidates of one kind and layer: they go together.
struct OffloadGroup {
  OffloadKind kind = OffloadKind::Optimizer;
  std::string unit;
  std::vector<std::string> names;
  int64_t bytes = 0; ///< of device memory that this frees
  OffloadLoad host;  ///< what it adds to the channels if it goes to the host
  OffloadLoad disk;  ///< or to the disk
};

/// Where groups live.
struct OffloadLevel {
  std::vector<OffloadRule> rules; ///< nothing: empty
  std::vector<Memory> memory;     ///< by group
  int64_t deviceBytes = 0;        ///< freed
  int64_t hostBytes = 0, diskBytes = 0;
  OffloadLoad load; ///< of the whole step
};

/// The choices of a module.
class OffloadChoices {
public:
  /// For groups that are known, in the order of the step; `compute`: seconds of
  /// the step's compute without offload. `parts`: what the states of a kind are
  /// called in sentences ("m, v").
  OffloadChoices(std::vector<OffloadGroup> groups, double compute,
                 std::string states = "optimizer state");

  /// Choices by what they free, the least first: nothing, then always the group
  /// that adds the fewest seconds to the step for its bytes, in parts of all
  /// that there is; then what rules for whole kinds say: each kind alone, and
  /// all state with and without the gradients.
  size_t size() const { return selections.size(); }

  /// Selection `number` with at most `hostBytes` in host memory (negative: no
  /// limit), the rest on disk: first what needs the least of it. Nothing where
  /// it does not fit and there is no disk.
  std::optional<OffloadLevel> level(size_t number, int64_t hostBytes,
                                    bool disk) const;

  /// Whether selection `number` is what a rule for each of some kinds says.
  bool isWhole(size_t number) const;

  const std::vector<OffloadGroup> &getGroups() const { return groups; }

  /// "m, v of layers 0-17, parameters of wte": what `level` moves.
  std::string describe(const OffloadLevel &level) const;

private:
  void addSelection(std::vector<bool> selection);
  std::vector<size_t> cheapestFirst() const;
  std::vector<OffloadRule> makeRules(ArrayRef<Memory> memory) const;

  std::vector<OffloadGroup> groups;
  double compute;
  std::string states;
  std::vector<std::vector<bool>> selections;
};

/// The choices of a partitioned module that is not scheduled. On failure an
/// error has been emitted.
FailureOr<OffloadChoices> findOffloadChoices(ModuleOp module,
                                             const CostModel &cost);

/// "offloading m, v of layers 0-17 saves 9.1 GiB, costs 3 % of the step", given
/// the seconds of the step with `level` and without any offload nor limit.
std::string explainOffload(const OffloadChoices &choices,
                           const OffloadLevel &level, double seconds,
                           double secondsWithout);

/// Notes a choice as attributes of `module`.
void noteOffload(ModuleOp module, const OffloadLevel &level,
                 StringRef sentence);

/// Says it as a remark.
void remarkOffload(ModuleOp module, StringRef sentence);

} // namespace mlir::zero

#endif // ZERO_SCHEDULE_OFFLOADCHOICE_H
