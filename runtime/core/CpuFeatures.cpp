//===- CpuFeatures.cpp - What this processor can execute ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares LLVM's feature names with those that the Linux kernel lists.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/CpuFeatures.h"

#include <fstream>
#include <map>
#include <set>
#include <sstream>

using namespace zrt;

/// LLVM's name of a feature without the marks in which the two differ
/// ("avx512bf16", "avx512_bf16").
static std::string plainName(const std::string &name) {
  std::string plain;
  for (char c : name)
    if (c != '+' && c != '_' && c != '.' && c != '-')
      plain += c;
  return plain;
}

/// What the kernel calls a feature, where it is more than a matter of marks.
static std::string kernelName(const std::string &plain) {
  static const std::map<std::string, std::string> names = {
      {"64bit", "lm"},
      {"bmi", "bmi1"},
      {"crc32", "sse42"},
      {"evex512", "avx512f"},
      {"lzcnt", "abm"},
      {"pclmul", "pclmulqdq"},
      {"prfchw", "3dnowprefetch"},
      {"rdrnd", "rdrand"},
      {"sahf", "lahflm"},
      {"sha", "shani"},
      {"sse3", "pni"},
      {"x87", "fpu"},
      {"neon", "asimd"},
      {"fparmv8", "fp"},
      {"lse", "atomics"}};
  auto found = names.find(plain);
  return found == names.end() ? plain : found->second;
}

static std::set<std::string> readFeatures() {
  std::set<std::string> features;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; features.empty() && std::getline(file, line);) {
    if (line.rfind("flags", 0) && line.rfind("Features", 0))
      continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;)
      features.insert(plainName(word));
  }
  return features;
}

std::string
zrt::firstMissingCpuFeature(const std::vector<std::string> &features) {
  static const std::set<std::string> present = readFeatures();
  for (const std::string &feature : features)
    if (!present.count(kernelName(plainName(feature))))
      return feature;
  return "";
}
