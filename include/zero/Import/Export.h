//===- Export.h - Trained weights back into an ONNX file -------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes a model again as it was, to the byte, but for the values of its
// parameters: what zero-import renamed, split or tied on the way in goes back
// to the initializers that it came from.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_IMPORT_EXPORT_H
#define ZERO_IMPORT_EXPORT_H

#include "zero/Import/Import.h"

#include <functional>
#include <optional>

namespace mlir::zero {

/// A tensor of trained weights: its element type as safetensors names it
/// ("F32") and its elements, row-major and little-endian. The bytes outlive the
/// export.
struct WeightTensor {
  std::string elementType;
  std::vector<int64_t> shape;
  ArrayRef<char> bytes;
};

/// The tensor of a name, if the weights have one.
using WeightLookup = std::function<std::optional<WeightTensor>(StringRef name)>;

struct ExportOptions {
  /// The model that the weights are of. It is read again.
  std::string modelPath;
  /// The new model. Weights that the model keeps beside it go into one file
  /// named like this one, with ".data" behind.
  std::string outputPath;
  /// How the model was imported: `train` and `freeze` decide what is tied.
  ImportOptions import;
};

/// Writes the model with `weights`. A parameter that they lack keeps its value,
/// with a warning; a graph input without an initializer that they have becomes
/// one (weights of onnxruntime's training artifacts). Fails with one diagnostic
/// where a shape or type does not fit, where nothing fits, and where a file
/// cannot be written; then no file has changed. Memory does not grow with the
/// weights.
LogicalResult exportOnnx(MLIRContext &context, const ExportOptions &options,
                         const WeightLookup &weights);

} // namespace mlir::zero

#endif // ZERO_IMPORT_EXPORT_H
