//===- DeviceKernels.h - Code on a GPU --------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX, which the driver assembles for its device, and the runtime's own kernels
// (Kernels.cu).
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CUDA_DEVICEKERNELS_H
#define ZERO_RT_CUDA_DEVICEKERNELS_H

#include "runtime/core/Layout.h"
#include "runtime/cuda/CopyShape.h"

#include <cuda.h>

#include <map>
#include <string>
#include <string_view>

namespace zrt::cuda {

/// PTX that is loaded into the current context.
class Module {
public:
  /// Empty text: a module of nothing. Throws Error that begins with `what`.
  Module(std::string_view ptx, const std::string &what);
  ~Module();
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;

  /// Throws Error if there is no such function.
  CUfunction find(const std::string &name) const;

private:
  CUmodule module = nullptr;
};

/// A tensor in memory of a device.
struct Tensor {
  CUdeviceptr address; ///< of the storage, before the view's offset
  View view;
  fb::DType type;
};

/// A copy whose shape is known.
struct PreparedCopy {
  CUfunction function;
  CUdeviceptr from, to;
  CopyShape shape;
};

/// An elementwise function or sums, whose arguments are known.
struct PreparedFunction {
  CUfunction function;
  CUdeviceptr from, to;
  int64_t count;                                 ///< of results
  int64_t stride = 0, terms = 0, termStride = 0; // of sums
};

class DeviceKernels {
public:
  DeviceKernels();

  /// A copy between views of the same sizes, or of the same number of elements
  /// if both are contiguous. A stride of 0 in the source broadcasts. Types
  /// differ only from f32 to bf16 or f16 and back, rounding to nearest even.
  /// Throws Error where there is no kernel for the types.
  PreparedCopy prepareCopy(const Tensor &from, const Tensor &to) const;
  /// "gelu" and "relu" of `from`, or "gelu_grad", by which `to` is multiplied.
  PreparedFunction prepareFunction(const std::string &name, fb::DType type,
                                   CUdeviceptr from, CUdeviceptr to,
                                   int64_t count) const;
  /// to[i] = sum over j < terms of from[i * stride + j * termStride].
  PreparedFunction prepareSums(fb::DType fromType, fb::DType toType,
                               const PreparedFunction &sums) const;

private:
  Module module;
};

/// Enqueues it. Throws Error.
void launchCopy(const PreparedCopy &copy, CUstream stream);
void launchFunction(const PreparedFunction &function, CUstream stream);

} // namespace zrt::cuda

#endif // ZERO_RT_CUDA_DEVICEKERNELS_H
