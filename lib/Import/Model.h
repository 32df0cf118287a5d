//===- Model.h - Reading and checking an ONNX file -------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The protobuf message with everything checked that later stages rely on:
// versions, unique names, known inputs, tensors whose bytes are really there.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_MODEL_H
#define ZERO_LIB_IMPORT_MODEL_H

#include "lib/Import/FileAccess.h"
#include "lib/Import/HostTensor.h"
#include "lib/Import/WireWalk.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"

namespace mlir::zero::onnx_import {

/// A tensor of the file: its bytes lie in the message, in a mapped file
/// (`file`) or, for tensors stored in typed fields, in `owned`.
struct TensorData {
  std::string name;
  DType type = DType::F32;
  SmallVector<int64_t, 4> shape;
  ArrayRef<char> bytes;
  std::shared_ptr<std::vector<char>> owned;
  FileRef file;

  int64_t size() const { return bytes.size() / byteSize(type); }
  HostTensor decode() const { return HostTensor::decode(type, shape, bytes); }
};

struct TrainingForm;

/// A model that has passed the checks.
struct Model {
  std::string path;
  FileRef file;
  /// Without the elements of the graph's initializers that are in `file`
  /// (WireWalk.h): those are reached through `initializers`.
  onnx::ModelProto proto;
  /// The version of the default operator set.
  int64_t opset = 0;
  /// The version of the operator set of `domain`; 0 if it is not imported.
  int64_t opsetOf(StringRef domain) const;
  /// The graph's initializers, in the file's order, and their index by name.
  std::vector<TensorData> initializers;
  llvm::StringMap<unsigned> initializerIndex;
  /// How the model says that it is trained; null: it does not, or is not asked.
  std::shared_ptr<TrainingForm> training;
  /// How often each value is used, graph outputs included.
  llvm::StringMap<unsigned> uses;

  const onnx::GraphProto &graph() const { return proto.graph(); }
  bool fromPyTorch() const { return proto.producer_name() == "pytorch"; }
  const TensorData *initializer(StringRef name) const;
};

using ErrorFn = llvm::function_ref<InFlightDiagnostic()>;

/// Checks `proto` and finds its bytes, those of `stored` where it has some.
FailureOr<TensorData> readTensor(const onnx::TensorProto &proto,
                                 ExternalFiles &files, ErrorFn error,
                                 const StoredData &stored = {});

/// Reads and checks the model at `path`, with `withTraining` as the step of its
/// TrainingInfoProto, if it has one.
FailureOr<std::unique_ptr<Model>>
loadModel(StringRef path, MLIRContext *context, bool withTraining = false);

/// The location of node number `index`: its name, in the file, at "line"
/// index + 1, so that nodes without a name can be told apart too.
Location nodeLoc(const Model &model, int index, MLIRContext *context);

/// A name from the file, made fit for a one-line message.
std::string printable(StringRef name);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_MODEL_H
