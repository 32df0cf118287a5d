//===- ParameterGroups.cpp - Which parameters a group has -----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Globs over parameter names.
//
//===----------------------------------------------------------------------===//

#include "zero/Autodiff/TrainStep.h"

#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace mlir::train;

namespace {
/// One pattern of one group.
struct NamePattern {
  const ParameterGroup *group;
  StringRef text;
  /// Absent for "auto".
  std::optional<llvm::GlobPattern> glob;

  /// Whether any name of `param` matches; a tied parameter has several.
  bool matches(zero::ParamOp param) const;
};
} // namespace

bool NamePattern::matches(zero::ParamOp param) const {
  if (!glob)
    return param.getLogicalType().getRank() <= 1;
  if (glob->match(param.getSymName()))
    return true;
  ArrayAttr tied = param.getTiedAttr();
  return tied && llvm::any_of(tied.getAsRange<StringAttr>(), [&](auto name) {
           return glob->match(name.getValue());
         });
}

static FailureOr<SmallVector<NamePattern>>
compile(Location loc, ArrayRef<ParameterGroup> groups) {
  SmallVector<NamePattern> patterns;
  for (const ParameterGroup &group : groups)
    for (const std::string &text : group.patterns) {
      NamePattern pattern{&group, text, std::nullopt};
      if (text != "auto") {
        llvm::Expected<llvm::GlobPattern> glob =
            llvm::GlobPattern::create(text);
        if (!glob)
          return emitError(loc)
                 << "pattern " << text
                 << " of parameters: " << llvm::toString(glob.takeError());
        pattern.glob = std::move(*glob);
      }
      patterns.push_back(std::move(pattern));
    }
  return patterns;
}

/// A misspelt pattern would otherwise change nothing, in silence.
static void warnUnmatched(Location loc, const NamePattern &pattern,
                          ModuleOp module) {
  for (auto param : module.getOps<zero::ParamOp>())
    if (pattern.matches(param)) {
      if (pattern.glob)
        emitWarning(loc) << "pattern " << pattern.text
                         << " matches only parameters that are not trained, "
                         << "such as @" << param.getSymName();
      return;
    }
  if (pattern.glob)
    emitWarning(loc) << "pattern " << pattern.text << " matches no parameter";
}

/// Adds what `group` says and none before it did.
static void add(const ParameterGroup &group, GroupValues &values) {
  if (!values.weightDecay)
    values.weightDecay = group.weightDecay;
  bool saysRate = group.learningRateFactor != 1.0 || !group.weightDecay;
  if (!values.learningRateFactor && saysRate)
    values.learningRateFactor = group.learningRateFactor;
}

FailureOr<SmallVector<GroupValues>>
mlir::train::matchGroups(Location loc, ModuleOp module,
                         ArrayRef<TrainedParameter> parameters,
                         ArrayRef<ParameterGroup> groups) {
  FailureOr<SmallVector<NamePattern>> patterns = compile(loc, groups);
  if (failed(patterns))
    return failure();
  SmallVector<GroupValues> result(parameters.size());
  for (const NamePattern &pattern : *patterns) {
    bool used = false;
    for (auto [parameter, values] : llvm::zip_equal(parameters, result)) {
      if (!pattern.matches(parameter.param))
        continue;
      used = true;
      add(*pattern.group, values);
    }
    if (!used)
      warnUnmatched(loc, pattern, module);
  }
  return result;
}
