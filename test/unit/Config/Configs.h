//===- Configs.h - Configs of the tests -------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The files in configs/, each with the flags that its first line names.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_CONFIG_CONFIGS_H
#define ZERO_TEST_UNIT_CONFIG_CONFIGS_H

#include "zero/Config/DeepSpeed.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace config_tests {

inline std::string readFile(const std::filesystem::path &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// The names in configs/ without extension, in order.
inline std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const auto &entry :
       std::filesystem::directory_iterator(ZERO_TEST_CONFIGS))
    if (entry.path().extension() == ".json")
      result.push_back(entry.path().stem().string());
  std::sort(result.begin(), result.end());
  return result;
}

inline std::filesystem::path pathOf(const std::string &name,
                                    const std::string &extension) {
  return std::filesystem::path(ZERO_TEST_CONFIGS) / (name + extension);
}

/// `// flags: ranks=4 lr=1e-4`; `none` asks without a model.
inline mlir::zero::ConfigQuestion questionOf(llvm::StringRef text) {
  mlir::zero::ConfigQuestion question;
  llvm::SmallVector<llvm::StringRef> words;
  text.split('\n').first.split("flags:").second.split(words, ' ', -1, false);
  for (llvm::StringRef word : words) {
    auto [key, value] = word.split('=');
    double number = 0;
    (void)value.getAsDouble(number);
    if (key == "none")
      question.complete = false;
    else if (key == "ranks")
      question.flags.ranks = int64_t(number);
    else if (key == "stage")
      question.flags.stage = int64_t(number);
    else if (key == "batch")
      question.flags.batch = int64_t(number);
    else if (key == "accumulate")
      question.flags.accumulate = int64_t(number);
    else if (key == "steps")
      question.flags.steps = int64_t(number);
    else if (key == "lr")
      question.flags.learningRate = number;
    else if (key == "weight-decay")
      question.flags.weightDecay = number;
    else if (key == "precision")
      question.flags.precision = value.str();
    else if (key == "warmup") // of the file's own schedule
      question.flags.lrSchedule = mlir::zero::ScheduleSetting{
          text.contains("WarmupDecayLR") ? "WarmupDecayLR" : "WarmupLR",
          {{"warmup_num_steps", number}}};
  }
  return question;
}

} // namespace config_tests

#endif // ZERO_TEST_UNIT_CONFIG_CONFIGS_H
