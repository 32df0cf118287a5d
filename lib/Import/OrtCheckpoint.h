//===- OrtCheckpoint.h - onnxruntime's training checkpoints ----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file `checkpoint` of onnxruntime's training artifacts: a FlatBuffer with
// the parameters and the state of the optimizer
// (onnxruntime/core/flatbuffers/schema, ort_training_checkpoint .fbs and
// ort.fbs). Nothing in it is trusted: every offset and length is compared with
// the bytes that are there before it is followed.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_ORTCHECKPOINT_H
#define ZERO_LIB_IMPORT_ORTCHECKPOINT_H

#include "lib/Import/Model.h"

namespace mlir::zero::onnx_import {

/// What the optimizer keeps for a parameter.
struct OrtState {
  std::string param;
  /// "momentum0", "momentum1".
  std::vector<TensorData> moments;
};

struct OrtCheckpoint {
  FileRef file;
  /// Their bytes lie in the file.
  std::vector<TensorData> trained, frozen;
  /// Where training was under way: of the optimizer, after so many steps.
  std::vector<OrtState> states;
  int64_t steps = 0;
};

/// Reads the checkpoint at `path`. On failure `error` has been called once: it
/// starts a diagnostic that names the file.
FailureOr<OrtCheckpoint> readOrtCheckpoint(StringRef path, ErrorFn error);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_ORTCHECKPOINT_H
