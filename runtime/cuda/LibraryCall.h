//===- LibraryCall.h - Library functions on a GPU ---------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call command is prepared when a session begins: the library chooses its
// algorithm and says what workspace that needs. A step only enqueues it, and
// may be captured in a graph, so running allocates nothing and does not wait.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CUDA_LIBRARYCALL_H
#define ZERO_RT_CUDA_LIBRARYCALL_H

#include "runtime/core/Program.h"

#include <cuda.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

struct cublasLtContext;
struct cudnnContext;

namespace zrt::cuda {

class DeviceKernels;

/// The libraries on one rank's device. Its context is current wherever calls
/// are prepared, run and destroyed, on one thread at a time.
class Libraries {
public:
  Libraries() = default;
  ~Libraries();
  Libraries(const Libraries &) = delete;
  Libraries &operator=(const Libraries &) = delete;

  /// Made when first asked for. Throw Error.
  cublasLtContext *blas();
  cudnnContext *dnn();
  /// Our own kernels: strided and converting copies.
  const DeviceKernels &kernels();
  /// What calls of equal shapes share, by a key that begins with the function.
  std::map<std::string, std::shared_ptr<void>> cache;
  /// 90 for sm_90.
  int capability = 0;

private:
  cublasLtContext *blasHandle = nullptr;
  cudnnContext *dnnHandle = nullptr;
  std::shared_ptr<const DeviceKernels> ownKernels;
};

/// An operand of a call: a view whose offset is part of the address.
struct CallOperand {
  View view; ///< offset 0; sizes and strides in elements
  fb::DType type;
  CUdeviceptr address; ///< of the view's first element, on this rank
};

/// What is known of a call when it is prepared.
struct CallSite {
  const Command &command;            ///< callee and attributes
  std::vector<CallOperand> operands; ///< inputs, then outputs
  Libraries &libraries;
};

/// A prepared call on one rank's addresses.
class LibraryCall {
public:
  virtual ~LibraryCall() = default;

  /// Device memory that a run needs, aligned to 256 bytes. Calls of one stream
  /// share it: it holds anything before and nothing after.
  virtual uint64_t workspaceBytes() const = 0;
  /// Enqueues the call on `stream`; `workspace` has workspaceBytes() bytes.
  /// Throws Error.
  virtual void run(CUstream stream, CUdeviceptr workspace) = 0;
};

/// Prepares the function of a call command. Throws Error where there is none of
/// that name, it cannot take the operands or the library has no algorithm.
std::unique_ptr<LibraryCall> makeLibraryCall(const CallSite &site);

/// "matmul": operands a, b, perhaps a bias, and the result. (cuBLASLt)
std::unique_ptr<LibraryCall> makeMatmul(const CallSite &site);
/// "conv", "conv_grad_input", "conv_grad_weight". (cuDNN)
std::unique_ptr<LibraryCall> makeConvolution(const CallSite &site);
/// "attention", "attention_grad". (cuDNN)
std::unique_ptr<LibraryCall> makeAttention(const CallSite &site);

} // namespace zrt::cuda

#endif // ZERO_RT_CUDA_LIBRARYCALL_H
