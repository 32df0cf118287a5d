//===- Graph.h - A part of the program as one launch ------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plan is the same in every step, so what its streams do can be captured
// once and launched as a whole.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CUDA_GRAPH_H
#define ZERO_RT_CUDA_GRAPH_H

#include <cuda.h>

#include <functional>
#include <vector>

namespace zrt::cuda {

class Graph {
public:
  /// Captures what `enqueue` puts on the streams: `first` and `others`, all of
  /// which begin together and are done together. Throws what it throws.
  Graph(CUstream first, const std::vector<CUstream> &others,
        const std::function<void()> &enqueue);
  ~Graph();
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  void launch(CUstream stream);
  /// Whether the last launch is done. Throws Error once the device has failed.
  bool isDone() const;

private:
  void capture(CUstream first, const std::vector<CUstream> &others,
               const std::function<void()> &enqueue);
  CUevent makeEvent();
  void destroy();

  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  CUevent done = nullptr;
  std::vector<CUevent> events;
};

} // namespace zrt::cuda

#endif // ZERO_RT_CUDA_GRAPH_H
