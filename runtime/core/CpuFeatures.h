//===- CpuFeatures.h - What this processor can execute --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whether machine code that uses given instruction set extensions can run here.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_CPUFEATURES_H
#define ZERO_RT_CORE_CPUFEATURES_H

#include <string>
#include <vector>

namespace zrt {

/// The first of the features (LLVM's names, "avx512f" or "+avx512f") that
/// this machine lacks, or "".
std::string firstMissingCpuFeature(const std::vector<std::string> &features);

} // namespace zrt

#endif // ZERO_RT_CORE_CPUFEATURES_H
