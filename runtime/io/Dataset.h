//===- Dataset.h - Samples of a data file -----------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Samples for the inputs of a training step, out of a file with one tensor per
// input (first dimension = samples) or a stream of tokens (Tokens.h). Says what
// is wrong with the data before the first step where it can.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_DATASET_H
#define ZERO_RUNTIME_IO_DATASET_H

#include "runtime/io/TensorFile.h"

namespace zrt {

/// What a step wants for one of its data inputs, on one rank.
struct InputSpec {
  std::string name;
  DataType type = DataType::F32;
  /// The first dimension counts the samples.
  std::vector<int64_t> shape;
  /// Integers outside [min, max] are an error unless they equal `ignore`.
  bool hasRange = false;
  int64_t min = 0, max = 0;
  bool hasIgnore = false;
  int64_t ignore = 0;
};

/// Which samples a rank sees: micro-batch `micro` of step `step` (from 0).
struct BatchPosition {
  int64_t step = 0, micro = 0, rank = 0;
  int64_t accumulate = 1, ranks = 1;

  /// The first sample of the batch, before cycling. It depends on the product
  /// ranks * batch only, so that N ranks and one rank with N times the batch
  /// see the same data.
  int64_t firstSample(int64_t batch) const {
    return ((step * accumulate + micro) * ranks + rank) * batch;
  }
};

class Dataset {
public:
  /// Opens `path` for the inputs and checks names, types and shapes, and that
  /// there are `samplesPerStep` samples at least. With `labelsFromTokens` an
  /// input "labels" that the file lacks takes the values of the only integer
  /// input of its shape. Throws IoError.
  Dataset(const std::string &path, std::vector<InputSpec> inputs,
          int64_t samplesPerStep, bool labelsFromTokens = false);
  ~Dataset();

  int64_t samples() const { return numSamples; }
  const std::vector<InputSpec> &inputs() const { return specs; }

  /// The tensor of the file that input `index` is read from.
  const std::string &sourceName(size_t index) const {
    return sources[index].name;
  }

  /// Writes the samples of input `index` that start at `firstSample`, cycling
  /// at the end, to `target` in the type of the input. Throws IoError for
  /// integers outside the input's range.
  void read(size_t index, int64_t firstSample, void *target) const;

private:
  /// Where an input's values come from.
  struct Source {
    std::string name; // in the file
    const uint8_t *data = nullptr;
    DataType type = DataType::F32;
    int64_t sampleElements = 0;
  };

  void openTokens(const std::string &path);
  void checkTokenInput(const InputSpec &input) const;
  void openTensors(const std::string &path, bool labelsFromTokens);
  Source tensorSource(const InputSpec &input, const std::string &name);
  std::string labelSource(const InputSpec &labels) const;
  void checkRange(const InputSpec &input, const Source &source,
                  int64_t sample) const;
  [[noreturn]] void outOfRange(const InputSpec &input, const Source &source,
                               int64_t sample, int64_t element,
                               int64_t value) const;

  std::vector<InputSpec> specs;
  std::vector<Source> sources;
  std::unique_ptr<TensorFile> tensors;
  std::unique_ptr<class TokenFile> tokens;
  std::string path;
  int64_t numSamples = -1;
};

/// The shape of tensor `name` of a data file, if the file has it; a stream of
/// tokens has none.
std::optional<std::vector<int64_t>> dataShape(const std::string &path,
                                              const std::string &name);

} // namespace zrt

#endif // ZERO_RUNTIME_IO_DATASET_H
