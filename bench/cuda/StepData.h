//===- StepData.h - Weights and data of measured steps ----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values from files, or from a seed of their name: the same on every machine.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_BENCH_CUDA_STEPDATA_H
#define ZERO_BENCH_CUDA_STEPDATA_H

#include "runtime/io/TensorFile.h"
#include "zero-rt/zero-rt.h"

#include <memory>
#include <string>
#include <vector>

namespace zrt::bench {

class StepData {
public:
  /// Files of safetensors or npz; empty: values of a seed. Throws IoError.
  StepData(const std::string &weights, const std::string &data);

  /// The whole tensor of a parameter that the program takes from a file.
  /// Throws IoError.
  std::vector<uint8_t> parameter(const zrt_parameter_info &info);
  /// The input of a rank: the file's rows of batch `batch`, from the start
  /// again at the end; of a rate or a step its value.
  std::vector<uint8_t> input(const zrt_input_info &info, uint64_t batch,
                             uint32_t rank, uint32_t ranks, uint64_t step,
                             double learningRate);

private:
  std::unique_ptr<TensorFile> weights, data;
};

/// What kernels and calls of a program move and compute, with their times by
/// command, as JSON text: a list, longest first.
std::string describeKernels(const std::string &planPath,
                            const std::vector<double> &commandMs,
                            uint64_t steps);

/// Writes a program for GPUs that shows what they can do at most: a product of
/// two bf16 matrices of `size` rows and columns, and a copy of as many bytes.
/// Throws IoError.
void writePeaks(const std::string &planPath, int64_t size);

} // namespace zrt::bench

#endif // ZERO_BENCH_CUDA_STEPDATA_H
