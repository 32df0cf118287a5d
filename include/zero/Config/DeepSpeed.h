//===- DeepSpeed.h - DeepSpeed's JSON as settings of a run ------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every key that DeepSpeed reads (release 0.19) is in a table: its type, range
// and default, and whether it becomes a setting of a run, has no effect, or is
// refused, and why. Uses only LLVM's Support library.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CONFIG_DEEPSPEED_H
#define ZERO_CONFIG_DEEPSPEED_H

#include "zero/Config/Document.h"

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace mlir::zero {

//===----------------------------------------------------------------------===//
// Settings
//===----------------------------------------------------------------------===//

/// As short as it can be without losing a bit.
std::string showNumber(double value);

/// A learning-rate (or momentum) schedule: its numbers by DeepSpeed's names.
struct ScheduleSetting {
  std::string kind;
  std::map<std::string, double> numbers;
};

/// The number of a schedule that is its learning rate where nothing is scaled:
/// its maximum after a warm-up, in the middle of a cycle, or where a range
/// starts; mostly "lr".
llvm::StringRef baseRateName(llvm::StringRef kind);

/// That rate, by DeepSpeed's defaults where the numbers do not say it; absent
/// where they have to.
std::optional<double> baseRate(const ScheduleSetting &schedule);

/// What a config or the flags of a tool say; absent: not said. The member's
/// flag of zero-run stands beside it.
struct RunSettings {
  std::optional<int64_t> ranks;        // --ranks
  std::optional<int64_t> stage;        // --zero-stage
  std::optional<int64_t> batch;        // --batch: samples of a micro-batch
  std::optional<int64_t> accumulate;   // --accumulate
  std::optional<int64_t> steps;        // --steps
  std::vector<int64_t> grid;           // --zero-grid
  std::optional<bool> shardAll;        // --zero-shard
  std::optional<std::string> schedule; // --zero-schedule
  /// --offload: rules as "optimizer=host", or one that is none or auto.
  std::vector<std::string> offload;
  std::optional<std::string> offloadPath; // --offload-path

  std::optional<std::string> optimizer; // --optimizer
  std::optional<double> learningRate;   // --lr
  std::optional<double> beta1, beta2;   // --betas
  std::optional<double> epsilon;        // --epsilon
  std::optional<double> weightDecay;    // --weight-decay
  std::optional<double> momentum;       // --momentum
  std::optional<double> dampening;
  std::optional<bool> nesterov; // --nesterov
  std::optional<bool> biasCorrection;

  std::optional<std::string> precision;  // --precision: f32, bf16 or fp16
  std::optional<std::string> reduceType; // --reduce-type
  std::optional<bool> skipNonFinite;
  std::optional<double> lossScale;            // --loss-scale, 0: dynamic
  std::optional<double> lossScaleMin;         // --loss-scale-min
  std::optional<int64_t> lossScaleWindow;     // --loss-scale-window
  std::optional<int64_t> lossScaleHysteresis; // --loss-scale-hysteresis
  std::optional<int64_t> initialScalePower;   // --initial-scale-power
  std::optional<bool> consecutiveHysteresis;

  std::optional<double> clipNorm, clipValue;       // --clip, --clip-value
  std::optional<ScheduleSetting> lrSchedule;       // --lr-schedule
  std::optional<ScheduleSetting> momentumSchedule; // of OneCycle
  std::optional<int64_t> logEvery;                 // --log-every
  std::vector<std::string> logs;                   // --log
  std::optional<std::string> logDir, metricNames;  // --log-dir, --metric-names
};

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// What becomes of a key.
enum class ConfigVerdict { Used, Mapped, NoEffect, Refused };

/// "used", "mapped", "no effect" or "refused".
llvm::StringRef verdictName(ConfigVerdict verdict);

enum class ConfigType {
  Bool,
  Integer,
  Number,
  Text,
  /// fp32, fp16 or bf16.
  Dtype,
  /// Two numbers.
  Pair,
  List,
  /// An object whose keys are in the table.
  Section,
  /// An object or list whose contents are not looked at, but for `enabled`.
  Open,
};

/// A row of the table. `path` is what DeepSpeed's documentation calls the key,
/// with dots between sections.
struct ConfigKey {
  const char *path;
  ConfigType type;
  /// DeepSpeed's default as JSON; empty: none.
  const char *defaultValue;
  ConfigVerdict verdict;
  /// What it becomes, or why not.
  const char *note;
  /// Other names in the same section, with | between them.
  const char *aliases = "";
  /// Of numbers.
  double min = 0, max = 9.3e18;
  /// Of texts, with | between them; empty: any.
  const char *choices = "";
  /// Refused keys: values that ask for nothing, with | between them.
  const char *harmless = "";
  /// Of a section: does nothing unless its key `enabled` is true.
  bool switched = false;
  /// Optimizers or schedulers that have this parameter, with | between them.
  const char *kinds = "";
  /// Of numbers: Infinity is one of them.
  bool infinite = false;

  constexpr ConfigKey named(const char *names) const;
  constexpr ConfigKey range(double low, double high) const;
  constexpr ConfigKey oneOf(const char *values) const;
  constexpr ConfigKey unless(const char *values) const;
  constexpr ConfigKey withSwitch() const;
  constexpr ConfigKey of(const char *names) const;
  constexpr ConfigKey orInfinity() const;
};

/// All keys, section by section.
llvm::ArrayRef<ConfigKey> deepSpeedKeys();

/// Writes the table of all keys as Markdown, for the documentation.
void printKeyTable(llvm::raw_ostream &os);

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// A key of a file, or one whose absence has an effect, and what became of it.
struct ConfigEntry {
  /// As the file has it.
  std::string path;
  /// As the file has it; "-" for an absent key.
  std::string value;
  ConfigVerdict verdict = ConfigVerdict::NoEffect;
  std::string becomes;
};

/// What a file means.
struct ConfigResult {
  /// The flags' settings and, where there are none, the file's.
  RunSettings settings;
  /// In the file's order; then those of absent keys.
  std::vector<ConfigEntry> entries;
  /// What is worth a line before a run: flags that go before the file, settings
  /// that DeepSpeed ignores in silence, defaults that change the training.
  std::vector<std::string> notes;

  /// "KEY: WHY" of each refused entry.
  std::vector<std::string> refusals() const;
};

struct ConfigQuestion {
  /// What the command line says; goes before the file.
  RunSettings flags;
  /// Whether a value that nobody gave is refused; otherwise the entry tells
  /// what would give it.
  bool complete = true;
  /// The number of ranks is chosen later: what depends on it is left open.
  bool anyRanks = false;
};

/// What `text` means to a run. Fails where it is no JSON ("LINE:COLUMN: ...");
/// all else that is wrong is a refused entry.
llvm::Expected<ConfigResult>
readDeepSpeedConfig(llvm::StringRef text, const ConfigQuestion &question);

/// Of a file; the error is "FILE: ..." or "FILE:LINE:COLUMN: ...".
llvm::Expected<ConfigResult>
readDeepSpeedConfigFile(const std::string &path,
                        const ConfigQuestion &question);

/// Writes the entries as a table and a last line that counts them; `file` is
/// its name.
void printConfigResult(llvm::raw_ostream &os, const ConfigResult &result,
                       llvm::StringRef file);

//===----------------------------------------------------------------------===//
// Implementation details
//===----------------------------------------------------------------------===//

constexpr ConfigKey ConfigKey::named(const char *names) const {
  ConfigKey copy = *this;
  copy.aliases = names;
  return copy;
}
constexpr ConfigKey ConfigKey::range(double low, double high) const {
  ConfigKey copy = *this;
  copy.min = low;
  copy.max = high;
  return copy;
}
constexpr ConfigKey ConfigKey::oneOf(const char *values) const {
  ConfigKey copy = *this;
  copy.choices = values;
  return copy;
}
constexpr ConfigKey ConfigKey::unless(const char *values) const {
  ConfigKey copy = *this;
  copy.harmless = values;
  return copy;
}
constexpr ConfigKey ConfigKey::withSwitch() const {
  ConfigKey copy = *this;
  copy.switched = true;
  return copy;
}
constexpr ConfigKey ConfigKey::of(const char *names) const {
  ConfigKey copy = *this;
  copy.kinds = names;
  return copy;
}
constexpr ConfigKey ConfigKey::orInfinity() const {
  ConfigKey copy = *this;
  copy.infinite = true;
  return copy;
}

} // namespace mlir::zero

#endif // ZERO_CONFIG_DEEPSPEED_H
