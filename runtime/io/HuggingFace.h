//===- HuggingFace.h - Weights as Hugging Face has them ---------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A folder with model.safetensors, or with model-00001-of-0000N.safetensors
// and an index that says which tensor is in which file: written as the library
// huggingface_hub splits a model, and read with every name of the index taken
// as hostile.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_HUGGINGFACE_H
#define ZERO_RUNTIME_IO_HUGGINGFACE_H

#include "runtime/io/SafeTensors.h"

#include <functional>

namespace zrt {

/// Their default, "5GB".
constexpr uint64_t huggingFaceShardBytes = 5000000000;

/// Which tensors a file holds: greedy in the order given; one that is larger
/// than `limit` has a file of its own, while the file before it goes on.
std::vector<std::vector<size_t>>
huggingFaceShards(const std::vector<SafeTensorsWriter::Tensor> &tensors,
                  uint64_t limit);

/// Gives the values of a tensor to `take`, piece by piece.
using StreamTensor = std::function<void(
    size_t tensor, const std::function<void(const void *, size_t)> &take)>;

/// Throws IoError if `folder` has weights already, or cannot be made: known
/// before the hours of a run.
void checkHuggingFaceFolder(const std::string &folder);

/// Writes the tensors; the index, where there is one, last. Throws IoError.
void writeHuggingFace(const std::string &folder,
                      const std::vector<SafeTensorsWriter::Tensor> &tensors,
                      uint64_t shardBytes, const StreamTensor &stream);

/// Opens weights by what `path` is: such a folder, its index (.json), or a
/// single file as openTensorFile does. `note` receives one-line texts about
/// what is no error: where the index says another size than its tensors have,
/// its files may be of another save. Throws IoError.
std::unique_ptr<TensorFile>
openWeights(const std::string &path,
            const std::function<void(const std::string &)> &note = nullptr);

/// Where writeHuggingFace writes for weights of one file, and the index of
/// several.
std::vector<std::string> huggingFaceOutputs(const std::string &folder);

} // namespace zrt

#endif // ZERO_RUNTIME_IO_HUGGINGFACE_H
