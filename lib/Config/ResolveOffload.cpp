//===- ResolveOffload.cpp - What a config keeps outside the device --------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns offload_optimizer, offload_param, their old names and DeepCompile's
// switches into rules of --offload. Where DeepSpeed has limits that a plan has
// not (stages, ratios), the file is taken at its word, and a note says so.
//
//===----------------------------------------------------------------------===//

#include "Reader.h"

using namespace mlir::zero;
using llvm::StringRef;
using llvm::Twine;

using Verdict = ConfigVerdict;

static constexpr StringRef kParam = "zero_optimization.offload_param";
static constexpr StringRef kOptimizer = "zero_optimization.offload_optimizer";

static std::string member(StringRef section, StringRef name) {
  return (section + "." + name).str();
}

/// The flag that says where a kind goes; empty: none does.
static std::string flagFor(const std::vector<std::string> &flags,
                           StringRef kind) {
  for (StringRef rule : flags)
    if (rule == "auto" || rule == "none" ||
        rule.take_until([](char c) { return c == '=' || c == '@'; }) == kind)
      return ("--offload " + rule).str();
  return "";
}

/// The rule that the file has given for a kind already; empty: none.
static std::string ruleFor(const std::vector<std::string> &rules,
                           StringRef kind) {
  for (StringRef rule : rules)
    if (rule.starts_with((kind + "=").str()))
      return rule.str();
  return "";
}

void ConfigReader::offload(StringRef path, Verdict verdict, StringRef kind,
                           const Twine &where) {
  std::string flag = flagFor(flags.offload, kind);
  if (!flag.empty())
    return sayAndNote(path, Verdict::NoEffect, flag + " goes before it");
  std::string rule = (kind + "=" + where).str();
  // Flags come last: of several rules the last counts.
  settings.offload.insert(settings.offload.end() - flags.offload.size(), rule);
  say(path, verdict, "--offload " + rule);
}

//===----------------------------------------------------------------------===//
// offload_optimizer and offload_param
//===----------------------------------------------------------------------===//

/// The share of the optimizer's state that goes.
double ConfigReader::offloadRatio(StringRef section) {
  std::string path = member(section, "ratio");
  double ratio = number(path).value_or(1);
  if (!value(path))
    return 1;
  if (ratio == 1)
    say(path, Verdict::Used, "all of it");
  else if (settings.stage.value_or(0) < 3)
    sayAndNote(path, Verdict::Used,
               "DeepSpeed ignores it below stage 3 in silence; here " +
                   show(ratio) + " of the bytes go at every stage");
  else
    say(path, Verdict::Used, show(ratio) + " of the bytes go");
  return ratio;
}

/// The folder of what is on disk; there is one.
void ConfigReader::resolveOffloadPath(StringRef section) {
  std::string path = member(section, "nvme_path");
  std::optional<std::string> folder = text(path);
  if (flags.offloadPath) {
    if (folder && *folder != *flags.offloadPath)
      sayAndNote(path, Verdict::NoEffect,
                 "--offload-path " + *flags.offloadPath + " goes before it");
    else
      say(path, Verdict::Used, "--offload-path " + *flags.offloadPath);
    return;
  }
  if (isAuto(path))
    return missing(path, "--offload-path");
  if (!folder || folder->empty())
    return say(member(section, "device"), Verdict::Refused,
               "nvme needs nvme_path, the folder of its files (DeepSpeed "
               "ignores such an nvme in silence); give it or --offload-path");
  if (settings.offloadPath && *settings.offloadPath != *folder)
    return say(path, Verdict::Refused,
               "found " + *folder + ", the other nvme_path is " +
                   *settings.offloadPath +
                   "; one folder has all files: give --offload-path");
  settings.offloadPath = *folder;
  say(path, Verdict::Used, "--offload-path " + *folder);
}

void ConfigReader::resolveOffloadSection(StringRef section, StringRef kind) {
  std::string key = member(section, "device");
  std::string device = text(key).value_or("none");
  std::string path = member(section, "nvme_path");
  if (isAuto(key))
    return say(key, Verdict::Refused,
               "found \"auto\"; expected \"none\", \"cpu\" or \"nvme\"; "
               "--offload auto chooses what --memory needs");
  if (value(key) && device == "none")
    say(key, Verdict::Used, "the state stays on the device");
  if (value(path) && device != "nvme")
    say(path, Verdict::NoEffect, "for nvme");
  std::string share = member(section, "ratio");
  if (device == "none" && value(share))
    say(share, Verdict::NoEffect, "nothing goes to the host");
  if (device == "none")
    return;
  double ratio = offloadRatio(section);
  if (ratio == 0)
    return say(key, Verdict::NoEffect, "ratio 0 is none of it");
  bool taken = flagFor(flags.offload, kind).empty();
  offload(key, Verdict::Used, kind,
          (device == "cpu" ? "host" : "disk") +
              (ratio < 1 ? ":" + show(ratio) : std::string()));
  if (device == "nvme" && taken)
    resolveOffloadPath(section);
  int64_t stage = settings.stage.value_or(0),
          least = kind == "optimizer" ? 1 : 3;
  if (taken && stage < least)
    note(entry(key).path, "DeepSpeed ignores it below stage " + Twine(least) +
                              " in silence; here it acts at every stage");
}

//===----------------------------------------------------------------------===//
// Other names
//===----------------------------------------------------------------------===//

/// Names from before there was a section.
void ConfigReader::resolveOldOffload(StringRef path, StringRef kind) {
  if (!boolean(path))
    return;
  std::string rule = ruleFor(settings.offload, kind);
  std::string section = (kind == "optimizer" ? kOptimizer : kParam).str();
  if (!*boolean(path))
    say(path, Verdict::NoEffect, "asks for nothing");
  else if (rule.empty() && value(member(section, "device")))
    say(path, Verdict::NoEffect, "the section says that nothing goes");
  else if (!rule.empty() && flagFor(flags.offload, kind).empty())
    say(path, Verdict::NoEffect, "the section says it: --offload " + rule);
  else
    offload(path, Verdict::Used, kind, "host");
}

void ConfigReader::resolveDeepCompile(StringRef path, StringRef kind) {
  if (!boolean(path))
    return;
  std::string rule = ruleFor(settings.offload, kind);
  if (!*boolean(path))
    say(path, Verdict::NoEffect, "asks for nothing");
  else if (!boolean("compile.deepcompile").value_or(false))
    say(path, Verdict::NoEffect, "compile.deepcompile is not true");
  else if (!rule.empty() && flagFor(flags.offload, kind).empty())
    say(path, Verdict::NoEffect,
        "zero_optimization says it: --offload " + rule);
  else
    offload(path, Verdict::Mapped, kind, "host");
}

void ConfigReader::resolveOffload() {
  resolveOffloadSection(kOptimizer, "optimizer");
  resolveOffloadSection(kParam, "parameters");
  resolveOldOffload("zero_optimization.cpu_offload", "optimizer");
  resolveOldOffload("zero_optimization.cpu_offload_param", "parameters");
  resolveDeepCompile("compile.offload_opt_states", "optimizer");
  resolveDeepCompile("compile.offload_parameters", "parameters");
  resolveDeepCompile("compile.offload_activation", "activations");
}
