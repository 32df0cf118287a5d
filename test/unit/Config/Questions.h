//===- Questions.h - What a config in a test means --------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads configs that tests have in their text.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_CONFIG_QUESTIONS_H
#define ZERO_TEST_UNIT_CONFIG_QUESTIONS_H

#include "zero/Config/DeepSpeed.h"

#include <gtest/gtest.h>

namespace config_tests {

using namespace mlir::zero;

/// The meaning of a config whose quotes are single ones.
inline ConfigResult read(std::string text,
                         const ConfigQuestion &question = {}) {
  for (char &c : text)
    c = c == '\'' ? '"' : c;
  llvm::Expected<ConfigResult> result = readDeepSpeedConfig(text, question);
  if (result)
    return *result;
  ADD_FAILURE() << llvm::toString(result.takeError());
  return {};
}

inline ConfigQuestion onRanks(int64_t ranks) {
  ConfigQuestion question;
  question.flags.ranks = ranks;
  return question;
}

/// The refusals of a config, one a line.
inline std::string refusals(const std::string &text,
                            const ConfigQuestion &question = {}) {
  std::string lines;
  for (const std::string &line : read(text, question).refusals())
    lines += (lines.empty() ? "" : "\n") + line;
  return lines;
}

/// What became of a key.
inline std::string fate(const ConfigResult &result, const std::string &path) {
  for (const ConfigEntry &entry : result.entries)
    if (entry.path == path)
      return (verdictName(entry.verdict) + ": " + entry.becomes).str();
  return "no such entry";
}

inline bool hasNote(const ConfigResult &result, const std::string &note) {
  for (const std::string &line : result.notes)
    if (line == note)
      return true;
  return false;
}

} // namespace config_tests

#endif // ZERO_TEST_UNIT_CONFIG_QUESTIONS_H
