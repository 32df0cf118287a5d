//===- CudnnGraph.h - Operation graphs of the fake cuDNN ------ -*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Descriptors as the backend API of cuDNN 9 sets them, the graph of operations
// that they describe, and its evaluation in f32. What cuDNN would not take, or
// this fake does not know, is an error that says what.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_CUDNNGRAPH_H
#define ZERO_TEST_FAKECUDA_CUDNNGRAPH_H

#include "test/fake-cuda/Queue.h"

#include <cudnn.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace fake_cuda::dnn {

/// What a call returns and cudnnGetLastErrorString says.
struct DnnError : std::runtime_error {
  DnnError(cudnnStatus_t status, const std::string &text)
      : std::runtime_error(text), status(status) {}
  cudnnStatus_t status;
};

struct Descriptor;
using DescriptorPtr = std::shared_ptr<Descriptor>;

struct Attribute {
  cudnnBackendAttributeType_t type;
  int64_t count = 0;
  std::vector<char> bytes;
  std::vector<DescriptorPtr> descriptors; ///< in place of bytes
};

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<int, Attribute> attributes;       // by name
  std::shared_ptr<const struct Graph> graph; ///< of an execution plan

  /// Throw DnnError where the attribute is not there or of another type.
  const Attribute &get(cudnnBackendAttributeName_t name) const;
  const Descriptor &descriptor(cudnnBackendAttributeName_t name) const;
  int64_t integer(cudnnBackendAttributeName_t name) const;
  int64_t integer(cudnnBackendAttributeName_t name, int64_t otherwise) const;
  double number(cudnnBackendAttributeName_t name) const;
  std::vector<int64_t> integers(cudnnBackendAttributeName_t name) const;
  bool has(cudnnBackendAttributeName_t name) const {
    return attributes.count(name);
  }
};

/// A tensor of a graph.
struct Tensor {
  int64_t uid = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int64_t> sizes, strides;
  int64_t alignment = 1;
  bool isVirtual = false;
  bool byValue = false; ///< the address is the host's, read when executed
  bool written = false; ///< by an operation of the graph

  int64_t count() const;
  /// Elements from the first to the last, with what lies between.
  int64_t span() const;
  int64_t elementBytes() const;
};

struct Operation {
  enum Kind {
    ConvForward,
    ConvData,
    ConvFilter,
    Pointwise,
    Matmul,
    Reduction,
    Reshape
  };
  Kind kind;
  /// Of convolutions: x, w, y in whatever order they are read and written.
  std::vector<size_t> inputs;
  size_t output = 0;
  int mode = 0;     ///< of Pointwise and Reduction
  int64_t axis = 0; ///< of GEN_INDEX
  double scales[2] = {1, 1};
  std::vector<int64_t> padsBegin, padsEnd, dilations, strides;
};

/// Engines of a graph, as heuristics list them. The fake has three for each, so
/// that a choice can be wrong.
enum Engine : int64_t {
  TensorCoreEngine,       ///< rounds inputs of f32 to TF32
  NondeterministicEngine, ///< says that it is
  PlainEngine
};

struct Graph {
  std::vector<Tensor> tensors;
  std::vector<Operation> operations; // each after those that it reads
  int64_t engine = PlainEngine;
  uint64_t workspaceBytes = 0;

  /// Of a finalized descriptor of an operation graph. Throws DnnError.
  static Graph read(const Descriptor &operationGraph);
  /// "conv+add", for the log.
  std::string text() const;
  bool isSingle() const;
};

/// Bytes of the fake's memory under each tensor that is not virtual, by number.
using Storage = std::vector<char *>;

/// Executes `graph`. Throws DnnError.
void evaluate(const Graph &graph, const Storage &storage);

} // namespace fake_cuda::dnn

#endif // ZERO_TEST_FAKECUDA_CUDNNGRAPH_H
