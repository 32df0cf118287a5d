//===- Import.h - ONNX to train + zero -------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns an ONNX model (opset 13 to 23) into a module of the train and zero
// dialects with static shapes. Weights never enter the IR: they are streamed
// into a safetensors file that `zero.param` refers to. Everything that can be
// computed from shapes and constants is computed here, so that no integer
// shape arithmetic remains.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_IMPORT_IMPORT_H
#define ZERO_IMPORT_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mlir {
class Diagnostic;
} // namespace mlir

namespace mlir::zero {

/// What was decided about one initializer, for `--list-params`.
struct ParamReport {
  std::string name;
  std::vector<int64_t> shape;
  std::string elementType;
  /// "trained", "constant" or "buffer".
  std::string role;
  /// The reason, in one clause.
  std::string why;
};

/// The value of an input that is a constant of the module.
struct InputValue {
  /// As in a safetensors header, for instance "I64". Empty if there is no
  /// tensor: an optional without an element, or a sequence without tensors.
  std::string type;
  std::vector<int64_t> shape;
  /// Row-major, little-endian.
  std::string bytes;
};

/// The optimizer of onnxruntime's training artifacts.
struct FoundOptimizer {
  /// "sgd", "adamw" or "adamw-hf", as train-step has them.
  std::string name;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weightDecay = 0.0;
  bool biasCorrection = true;
};

/// What a model says of its own training.
struct FoundTraining {
  /// @forward also computes gradients: train-step takes those.
  bool gradients = false;
  std::optional<FoundOptimizer> optimizer;
  /// There is no @forward but @step, of a TrainingInfoProto.
  bool step = false;
};

struct ImportOptions {
  /// Sizes of symbolic dimensions (`--dim NAME=N`).
  std::map<std::string, int64_t> dims;
  /// The batch that the module is for, where the model was exported at another:
  /// the first dimension of its first input and of the inputs that have the
  /// same. A model whose batch has a name takes it from `dims`.
  std::optional<int64_t> batch;
  /// Inputs that are constants (`--value NAME=FILE`), by name.
  std::map<std::string, InputValue> values;
  /// The most rows that a NonZero of data gives (`--moe-capacity`), for a
  /// mixture of experts: the tokens that an expert takes; absent: all there can
  /// be.
  std::optional<int64_t> rowCapacity;
  /// Where the weights are written; empty: they are not written.
  std::string weightsPath;
  /// How the module names that file; empty: like weightsPath.
  std::string weightsName;
  /// Glob patterns that override what is trained; freezing wins.
  std::vector<std::string> train, freeze;
  /// The module will become a training step: BatchNormalization exported in
  /// its evaluation form is imported in its training form, with a remark.
  bool training = false;
  /// onnxruntime's optimizer_model.onnx and checkpoint; empty: beside the model,
  /// under these names.
  std::string optimizerModel, checkpoint;
  /// When set, what the model says of its own training is imported, too, and
  /// said here; else it is imported as a model to evaluate or to differentiate.
  FoundTraining *found = nullptr;
  /// When set, receives one entry per initializer, in the file's order.
  std::vector<ParamReport> *report = nullptr;
};

/// Imports the model at `path`. On failure one diagnostic has been emitted,
/// located at the file or at the ONNX node it is about.
FailureOr<OwningOpRef<ModuleOp>>
importOnnx(StringRef path, MLIRContext &context, const ImportOptions &options);

/// Prints a diagnostic of the importer as one line,
/// `TOOL: error: FILE: node 'NAME': MESSAGE`.
void printImportDiagnostic(raw_ostream &os, StringRef tool,
                           Diagnostic &diagnostic);

/// Prints `report` as an aligned table.
void printParamReport(raw_ostream &os, ArrayRef<ParamReport> report);

} // namespace mlir::zero

#endif // ZERO_IMPORT_IMPORT_H
