//===- TrainingForms.h - Models that say how they are trained --*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two forms. onnxruntime's training artifacts: a graph with a backward pass
// that ends in nodes which accumulate gradients, beside it a graph of the
// optimizer and a checkpoint with the weights. ONNX's TrainingInfoProto: a
// second graph that computes new values of initializers. Both become an
// ordinary graph whose outputs are the loss and the gradients or new values.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_TRAININGFORMS_H
#define ZERO_LIB_IMPORT_TRAININGFORMS_H

#include "lib/Import/Model.h"
#include "zero/Import/Import.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::zero::onnx_import {

class Parameters;

struct TrainingForm {
  enum Kind { Gradients, Step };
  Kind kind = Gradients;
  /// Parameters by the order of the graph's outputs behind the loss, which is
  /// the first: whose gradient or new value each is.
  std::vector<std::string> targets;
  llvm::StringSet<> trained;
  /// What else the step replaces: states of the optimizer, counters.
  llvm::StringSet<> states;
  /// What onnxruntime's optimizer has kept, by parameter and named as the
  /// states that go on with it, and after how many steps.
  std::vector<std::pair<std::string, TensorData>> moments;
  int64_t doneSteps = 0;
  /// Inputs of the second graph, whose scalars are numbers of the step.
  llvm::StringSet<> numbers;
};

/// The graph's input that stands for the gradient by the loss.
constexpr llvm::StringLiteral kSeedInput = "train.loss_seed";

/// Joins the training algorithm of `model`, which has one, to its graph:
/// before anything else looks at the graph. `stored` has an entry more for each
/// initializer that is added. The form is in `model.training`.
LogicalResult joinAlgorithm(Model &model, std::vector<StoredData> &stored,
                            ErrorFn error);

/// Recognizes the training graph of onnxruntime's artifacts, takes the weights
/// from the checkpoint, and sets `model.training`. Without a training graph
/// nothing happens. With `options.found` null the model is only evaluated.
LogicalResult takeArtifacts(Model &model, const ImportOptions &options,
                            MLIRContext *context);

/// Marks the results of @forward or makes it @step, and says in `found` what
/// the module is. `parameters` have the names of the module.
LogicalResult finishTraining(ModuleOp module, const Model &model,
                             Parameters &parameters, FoundTraining &found);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_TRAININGFORMS_H
