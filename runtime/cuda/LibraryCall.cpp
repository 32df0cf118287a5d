//===- LibraryCall.cpp - Library functions on a GPU -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See LibraryCall.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/LibraryCall.h"

#include "runtime/core/Error.h"
#include "runtime/cuda/DeviceKernels.h"
#include "runtime/cuda/Status.h"

using namespace zrt;
using namespace zrt::cuda;

Libraries::~Libraries() {
  cache.clear(); // what is in it may need the handles
  if (blasHandle)
    cublasLtDestroy(blasHandle);
  if (dnnHandle)
    cudnnDestroy(dnnHandle);
}

cublasLtContext *Libraries::blas() {
  if (!blasHandle)
    checkBlas(cublasLtCreate(&blasHandle), "cublasLtCreate");
  return blasHandle;
}

cudnnContext *Libraries::dnn() {
  if (!dnnHandle)
    checkDnn(cudnnCreate(&dnnHandle), "cudnnCreate");
  return dnnHandle;
}

const DeviceKernels &Libraries::kernels() {
  if (!ownKernels)
    ownKernels = std::make_shared<const DeviceKernels>();
  return *ownKernels;
}

std::unique_ptr<LibraryCall> cuda::makeLibraryCall(const CallSite &site) {
  const std::string &name = site.command.callee;
  if (name == "matmul")
    return makeMatmul(site);
  if (name == "conv" || name == "conv_grad_input" || name == "conv_grad_weight")
    return makeConvolution(site);
#ifdef ZERO_CUDA_ATTENTION
  if (name == "attention" || name == "attention_grad")
    return makeAttention(site);
#endif
  fail(ZRT_ERROR_FORMAT, "unknown library function \"", name, "\"");
}
