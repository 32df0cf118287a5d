//===- OffloadRules.cpp - what lives outside device memory, in words ------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads and prints rules, and finds the candidates that each one means.
//
//===----------------------------------------------------------------------===//

#include "OffloadStep.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace mlir::zero;
using llvm::Expected;
using llvm::formatv;
using llvm::GlobPattern;

static constexpr std::pair<StringLiteral, OffloadKind> kKinds[] = {
    {"optimizer", OffloadKind::Optimizer},
    {"gradients", OffloadKind::Gradients},
    {"parameters", OffloadKind::Parameters},
    {"activations", OffloadKind::Activations}};

StringRef zero::stringifyOffloadKind(OffloadKind kind) {
  for (auto &[name, known] : kKinds)
    if (known == kind)
      return name;
  llvm_unreachable("unknown kind");
}

bool OffloadRule::operator==(const OffloadRule &other) const {
  return kind == other.kind && pattern == other.pattern &&
         memory == other.memory && ratio == other.ratio;
}

/// Reads the memory and the share, "disk:0.5".
static bool parseTarget(StringRef text, OffloadRule &rule, std::string &error) {
  auto [name, share] = text.split(':');
  std::optional<Memory> memory = symbolizeMemory(name);
  if (!memory) {
    error = formatv("expects device, host or disk, not '{0}'", name);
    return false;
  }
  rule.memory = *memory;
  double ratio = 1;
  if (text.contains(':') &&
      (share.getAsDouble(ratio) || !(ratio >= 0 && ratio <= 1))) {
    error = formatv("expects a ratio from 0 to 1, not '{0}'", share);
    return false;
  }
  rule.ratio = ratio;
  return true;
}

static bool parseRule(StringRef text, OffloadRule &rule, std::string &error) {
  // A name may have any sign but the last '='.
  auto [what, target] = text.rsplit('=');
  if (!text.contains('=')) {
    error = "expects KIND[@GLOB]=device|host|disk[:RATIO], such as "
            "optimizer=host";
    return false;
  }
  StringRef kind = what.split('@').first;
  const auto *known =
      llvm::find_if(kKinds, [&](auto &entry) { return entry.first == kind; });
  if (known == std::end(kKinds)) {
    error = formatv("unknown kind '{0}'; expects optimizer, gradients, "
                    "parameters or activations",
                    kind);
    return false;
  }
  rule.kind = known->second;
  if (what.contains('@'))
    rule.pattern = what.split('@').second.str();
  Expected<GlobPattern> glob = GlobPattern::create(rule.pattern);
  if (!glob) {
    error = formatv("'{0}' is no pattern: {1}", rule.pattern,
                    llvm::toString(glob.takeError()));
    return false;
  }
  return parseTarget(target, rule, error);
}

FailureOr<OffloadRule> zero::parseOffloadRule(StringRef text,
                                              std::string &error) {
  OffloadRule rule;
  std::string problem;
  if (parseRule(text.trim(), rule, problem))
    return rule;
  error = formatv("offload rule '{0}': {1}", text, problem);
  return failure();
}

std::string zero::printOffloadRule(const OffloadRule &rule) {
  std::string text = stringifyOffloadKind(rule.kind).str();
  if (rule.pattern != "*")
    text += "@" + rule.pattern;
  text += "=" + stringifyMemory(rule.memory).str();
  if (rule.ratio == 1)
    return text;
  llvm::raw_string_ostream(text) << llvm::format(":%g", rule.ratio);
  return text;
}

bool zero::matchesName(const OffloadRule &rule, StringRef name) {
  Expected<GlobPattern> glob = GlobPattern::create(rule.pattern);
  if (glob)
    return glob->match(name);
  consumeError(glob.takeError());
  return false;
}

/// Marks what one rule takes: whole tensors, in order, that fit in its share.
/// Returns how many match.
static int64_t applyRule(const OffloadRule &rule,
                         ArrayRef<OffloadCandidate> candidates,
                         MutableArrayRef<Memory> chosen) {
  SmallVector<size_t> matching;
  double total = 0;
  for (auto [i, candidate] : llvm::enumerate(candidates))
    if (candidate.kind == rule.kind && matchesName(rule, candidate.name)) {
      matching.push_back(i);
      total += candidate.bytes;
    }
  double left = total * rule.ratio;
  for (size_t i : matching) {
    int64_t bytes = candidates[i].bytes;
    if (rule.ratio < 1 && (bytes == 0 || bytes > left))
      continue;
    left -= candidates[i].bytes;
    chosen[i] = rule.memory;
  }
  return matching.size();
}

LogicalResult zero::chooseMemories(ModuleOp module, ArrayRef<OffloadRule> rules,
                                   ArrayRef<OffloadCandidate> candidates,
                                   SmallVectorImpl<Memory> &chosen) {
  chosen.assign(candidates.size(), Memory::Device);
  for (const OffloadRule &rule : rules) {
    if (applyRule(rule, candidates, chosen))
      continue;
    std::string known;
    for (const OffloadCandidate &candidate : candidates)
      if (candidate.kind == rule.kind && known.empty())
        known = candidate.name;
    InFlightDiagnostic diag = emitError(module.getLoc())
                              << "offload rule '" << printOffloadRule(rule)
                              << "' matches nothing: ";
    if (known.empty())
      return diag << "the step has no " << stringifyOffloadKind(rule.kind)
                  << " that could be moved";
    return diag << "the first name of its kind is '" << known << "'";
  }
  return success();
}
