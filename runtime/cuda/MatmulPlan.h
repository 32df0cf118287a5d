//===- MatmulPlan.h - Steps of a matrix product on a GPU --------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies and cuBLASLt products on operands and workspace. Matrices here are as
// cuBLASLt has them: column-major.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CUDA_MATMULPLAN_H
#define ZERO_RT_CUDA_MATMULPLAN_H

#include "runtime/cuda/DeviceKernels.h"
#include "runtime/cuda/LibraryCall.h"

#include <cublasLt.h>

#include <optional>
#include <type_traits>

namespace zrt::cuda {

/// An address, or an offset in the workspace.
struct Place {
  bool inWorkspace = false;
  CUdeviceptr value = 0;

  CUdeviceptr at(CUdeviceptr workspace) const {
    return inWorkspace ? workspace + value : value;
  }
};

struct MatrixShape {
  fb::DType type = fb::DType_F32;
  int64_t rows = 0, columns = 0;
  int64_t leading = 0; ///< elements from one column to the next
  int64_t batches = 1, batchStride = 0;
  uint64_t alignment = 256; ///< of every matrix of the stack, in bytes
};

/// D = A * B, perhaps plus what D holds, and what the library does besides.
struct Product {
  MatrixShape a, b, d;
  bool transposeA = false, transposeB = false;
  bool addToD = false, tf32 = false;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  CUdeviceptr bias = 0;      ///< a bias, or its gradient
  CUdeviceptr auxiliary = 0; ///< what a function was of; as D
};

/// Frees an object of cuBLASLt.
struct BlasDelete {
  void operator()(cublasLtMatmulDesc_t desc) const {
    cublasLtMatmulDescDestroy(desc);
  }
  void operator()(cublasLtMatrixLayout_t layout) const {
    cublasLtMatrixLayoutDestroy(layout);
  }
  void operator()(cublasLtMatmulPreference_t preference) const {
    cublasLtMatmulPreferenceDestroy(preference);
  }
};
template <typename Handle>
using BlasObject = std::unique_ptr<std::remove_pointer_t<Handle>, BlasDelete>;

class MatmulCall : public LibraryCall {
public:
  uint64_t workspaceBytes() const override { return bytes + productBytes; }
  void run(CUstream stream, CUdeviceptr workspace) override;

  /// Workspace beside the products', which comes behind.
  uint64_t bytes = 0;

  void addCopy(const DeviceKernels &kernels, const View &from,
               fb::DType fromType, Place fromPlace, const View &to,
               fb::DType toType, Place toPlace);
  void addFunction(const PreparedFunction &function);
  /// Chooses the algorithm for a product; its number for addRun. Nothing where
  /// the library has none. Throws Error.
  std::optional<size_t> addProduct(Libraries &libraries, const Product &product,
                                   uint64_t mostWorkspace);
  void addRun(size_t product, Place a, Place b, Place d);

private:
  struct PreparedProduct {
    BlasObject<cublasLtMatmulDesc_t> desc;
    BlasObject<cublasLtMatrixLayout_t> a, b, d;
    cublasLtMatmulAlgo_t algorithm;
    uint64_t workspaceBytes;
    bool addToD, isDouble;
  };
  struct Step {
    enum Kind { Copy, Multiply, Apply } kind = Copy;
    PreparedCopy copy = {}; // its addresses come from the places
    PreparedFunction function = {};
    size_t product = 0;
    Place a, b, d; // of a copy: from a to d
  };
  void multiply(const Step &step, CUstream stream, CUdeviceptr workspace);

  cublasLtHandle_t handle = nullptr;
  uint64_t productBytes = 0;
  std::vector<PreparedProduct> products;
  std::vector<Step> steps;
};

} // namespace zrt::cuda

#endif // ZERO_RT_CUDA_MATMULPLAN_H
