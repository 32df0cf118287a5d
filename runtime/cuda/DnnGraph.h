//===- DnnGraph.h - Operations that cuDNN plans as one ----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// cuDNN's graph API through NVIDIA's header-only frontend, which describes the
// operations and asks for a plan when a session begins. A step executes the
// plan by cuDNN itself: the frontend would load the CUDA runtime for that.
//
// Plans are chosen by cuDNN's heuristics, never by measuring: so that a session
// chooses the same each time. In f32 none rounds its inputs (TF32).
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CUDA_DNNGRAPH_H
#define ZERO_RT_CUDA_DNNGRAPH_H

#include "runtime/cuda/LibraryCall.h"

// What it uses of the CUDA runtime it finds by name, and only where it is
// called: never here.
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include <functional>

namespace zrt::cuda {

namespace fe = cudnn_frontend::graph;

/// The operations of one call while they are described, then their plan.
class DnnGraph {
public:
  using Tensor = std::shared_ptr<fe::Tensor_attributes>;

  explicit DnnGraph(const CallSite &site);

  fe::Graph &graph() { return operations; }
  /// An operand that is read, with its own sizes and strides or others of the
  /// same memory.
  Tensor input(size_t operand);
  Tensor input(size_t operand, std::vector<int64_t> sizes,
               std::vector<int64_t> strides);
  /// Makes `tensor`, which an operation returned, an operand that is written.
  void output(const Tensor &tensor, size_t operand);
  void output(const Tensor &tensor, size_t operand, std::vector<int64_t> sizes,
              std::vector<int64_t> strides);
  /// Contiguous scratch memory of an operand's type, its address the one after
  /// the operands': read or written.
  Tensor scratchInput(size_t operand, const std::vector<int64_t> &sizes);
  void scratchOutput(const Tensor &tensor, size_t operand,
                     const std::vector<int64_t> &sizes);

  /// Chooses a plan. `deterministic`: only one that gives the same bits each
  /// time. Throws Error.
  void plan(bool deterministic);

  uint64_t workspaceBytes() const;
  /// Addresses are those of the operands, in order. Throws Error.
  void run(CUstream stream, const std::vector<CUdeviceptr> &addresses,
           CUdeviceptr workspace) const;

private:
  /// Opens to us what the frontend keeps for subclasses.
  struct Operations : fe::Graph {
    const cudnn_frontend::ExecutionPlan &chosen() const {
      return *plans.execution_plans[plans.candidate];
    }
  };

  void describe(fe::Tensor_attributes &tensor, size_t operand,
                std::vector<int64_t> sizes, std::vector<int64_t> strides) const;
  void check(cudnn_frontend::error_t status, const char *what) const;
  bool isSingle() const;

  const std::string callee;
  std::vector<CallOperand> operands;
  cudnnContext *handle;
  Operations operations;
  uint64_t ownBytes = 0; ///< of the frontend's tensors in the workspace
};

/// A prepared call on one rank's addresses.
class DnnCall final : public LibraryCall {
public:
  DnnCall(std::shared_ptr<const DnnGraph> graph, const CallSite &site);

  uint64_t workspaceBytes() const override;
  void run(CUstream stream, CUdeviceptr workspace) override;

private:
  std::shared_ptr<const DnnGraph> graph;
  std::vector<CUdeviceptr> addresses;
};

/// The graph that `build` makes for a call, or the one that it made before
/// under the same name for a call with equal types, shapes, alignments and
/// attributes.
std::shared_ptr<const DnnGraph>
findDnnGraph(const CallSite &site, const std::string &name,
             const std::function<std::shared_ptr<DnnGraph>()> &build);

/// Addresses of a call's operands, in order.
std::vector<CUdeviceptr> addressesOf(const CallSite &site);

} // namespace zrt::cuda

#endif // ZERO_RT_CUDA_DNNGRAPH_H
