//===- Reader.h - Reads a config --------------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// First each key of the file is looked up and its value checked; then keys
// become settings, section by section.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_CONFIG_READER_H
#define ZERO_LIB_CONFIG_READER_H

#include "Keys.h"

#include "llvm/ADT/StringMap.h"

namespace mlir::zero {

inline std::string show(double value) { return showNumber(value); }
inline std::string show(int64_t value) { return std::to_string(value); }
inline std::string show(const std::string &value) { return value; }
inline std::string show(bool value) { return value ? "true" : "false"; }

class ConfigReader {
public:
  ConfigReader(const ConfigQuestion &question, ConfigResult &result)
      : flags(question.flags), complete(question.complete),
        ranksLater(question.anyRanks || !question.complete), result(result),
        settings(result.settings) {
    settings = question.flags;
  }

  void read(const ConfigValue &file);

private:
  // Check.cpp: keys and values.
  struct Seen {
    const ConfigValue *value;
    size_t entry;
  };
  void readSection(llvm::StringRef section, const ConfigValue &object,
                   llvm::StringRef off);
  void readKey(llvm::StringRef section, llvm::StringRef name,
               const ConfigValue &value, llvm::StringRef off);
  void readContents(const ConfigKey &key, const std::string &path,
                    const ConfigValue &value, llvm::StringRef off);
  bool checkKind(const ConfigKey &key, const std::string &path,
                 const ConfigValue &value);
  void judge(const ConfigKey &key, ConfigEntry &entry,
             const ConfigValue &value);
  bool isOn(const ConfigKey &section, const ConfigValue &object) const;
  void findKinds(const ConfigValue &file);

  // What the file says.
  /// Null where the key is absent, null, refused or without effect.
  const ConfigValue *value(llvm::StringRef path) const;
  bool isAuto(llvm::StringRef path) const;
  std::optional<double> number(llvm::StringRef path) const;
  std::optional<int64_t> integer(llvm::StringRef path) const;
  std::optional<bool> boolean(llvm::StringRef path) const;
  std::optional<std::string> text(llvm::StringRef path) const;
  /// The key's row; one is added where the file has none.
  ConfigEntry &entry(llvm::StringRef path);
  void say(llvm::StringRef path, ConfigVerdict verdict,
           const llvm::Twine &becomes);
  void note(llvm::StringRef path, const llvm::Twine &text);
  /// The row says so, and a line before the run too.
  void sayAndNote(llvm::StringRef path, ConfigVerdict verdict,
                  const llvm::Twine &becomes);
  /// A value that only a flag can give.
  void missing(llvm::StringRef path, llvm::StringRef flag);

  // Keys become settings; a flag that was given goes before.
  template <typename T>
  void take(llvm::StringRef path, std::optional<T> &setting, const T &value,
            llvm::StringRef flag);
  /// `path` has a value, maybe "auto": then the flag's or `whenAuto`.
  template <typename T>
  void takeKey(llvm::StringRef path, std::optional<T> &setting,
               std::optional<T> value, llvm::StringRef flag,
               std::optional<T> whenAuto = std::nullopt);

  // Resolve.cpp.
  void resolveZero();
  void resolveGrid();
  void resolveBatches();
  void checkBatches(int64_t train, int64_t micro, int64_t steps, int64_t ranks);
  void splitBatch(int64_t train, bool microGiven, bool stepsGiven);
  void describeBatches(bool overridden);
  void resolveClipping();
  void resolveLogs();
  void resolveLog(llvm::StringRef section, llvm::StringRef kind);
  void nameIgnored();

  // ResolveOffload.cpp.
  void resolveOffload();
  void resolveOffloadSection(llvm::StringRef section, llvm::StringRef kind);
  void resolveOffloadPath(llvm::StringRef section);
  void resolveOldOffload(llvm::StringRef path, llvm::StringRef kind);
  void resolveDeepCompile(llvm::StringRef path, llvm::StringRef kind);
  double offloadRatio(llvm::StringRef section);
  /// A rule of the file, unless a flag says where the kind goes.
  void offload(llvm::StringRef path, ConfigVerdict verdict,
               llvm::StringRef kind, const llvm::Twine &where);

  // ResolveTraining.cpp.
  void resolvePrecision();
  void resolveReduceType(llvm::StringRef precision);
  void resolveLossScale();
  void resolveOptimizer();
  void resolveOptimizerNumbers(llvm::StringRef name);
  void resolveSchedule();
  void resolveScheduleNumbers(ScheduleSetting &schedule);
  void resolveRates(ScheduleSetting &schedule);
  void putRate(ScheduleSetting &schedule, double rate);
  void resolveCycleMomentum(ScheduleSetting &schedule);

  const RunSettings flags;
  const bool complete;
  /// Nobody has to say the number of ranks yet.
  const bool ranksLater;
  ConfigResult &result;
  RunSettings &settings;
  llvm::StringMap<Seen> seen;
  /// Canonical names of what the file asks for; empty: unknown.
  std::string optimizerKind, schedulerKind;
  bool hasOptimizer = false, hasScheduler = false;
  size_t unknown = 0;
};

template <typename T>
void ConfigReader::take(llvm::StringRef path, std::optional<T> &setting,
                        const T &value, llvm::StringRef flag) {
  if (setting && !(*setting == value)) {
    sayAndNote(path, ConfigVerdict::NoEffect,
               flag + " " + show(*setting) + " goes before it");
    return;
  }
  setting = value;
  say(path, ConfigVerdict::Used, flag + " " + show(value));
}

template <typename T>
void ConfigReader::takeKey(llvm::StringRef path, std::optional<T> &setting,
                           std::optional<T> value, llvm::StringRef flag,
                           std::optional<T> whenAuto) {
  if (value)
    return take(path, setting, *value, flag);
  if (!isAuto(path))
    return;
  if (setting)
    return say(path, ConfigVerdict::Used, show(*setting) + ", from " + flag);
  if (!whenAuto)
    return missing(path, flag);
  setting = *whenAuto;
  say(path, ConfigVerdict::Used,
      flag + " " + show(*whenAuto) + ", as Hugging Face's Trainer has it");
}

} // namespace mlir::zero

#endif // ZERO_LIB_CONFIG_READER_H
