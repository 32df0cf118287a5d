//===- Status.cpp - Statuses of NVIDIA's libraries ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Status.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Status.h"

#include "runtime/core/Error.h"

using namespace zrt;

std::string cuda::statusText(CUresult status) {
  const char *name = nullptr, *words = nullptr;
  if (cuGetErrorName(status, &name) != CUDA_SUCCESS || !name)
    return "unknown error " + std::to_string(int(status));
  if (cuGetErrorString(status, &words) != CUDA_SUCCESS || !words)
    return name;
  return std::string(words) + " (" + name + ")";
}

void cuda::checkCuda(CUresult status, const std::string &what) {
  if (status != CUDA_SUCCESS)
    fail(status == CUDA_ERROR_OUT_OF_MEMORY ? ZRT_ERROR_MEMORY
                                            : ZRT_ERROR_EXECUTION,
         what, ": ", statusText(status));
}

void cuda::checkBlas(cublasStatus_t status, const std::string &what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    fail(ZRT_ERROR_EXECUTION, what, ": ", cublasLtGetStatusString(status), " (",
         cublasLtGetStatusName(status), ")");
}

void cuda::checkDnn(cudnnStatus_t status, const std::string &what) {
  if (status != CUDNN_STATUS_SUCCESS)
    fail(ZRT_ERROR_EXECUTION, what, ": ", cudnnGetErrorString(status));
}

void cuda::checkNccl(ncclResult_t status, const std::string &what,
                     ncclComm_t communicator) {
  if (status == ncclSuccess || status == ncclInProgress)
    return;
  const char *last = ncclGetLastError(communicator);
  std::string details = last ? last : "";
  // One line, whatever the library wrote.
  details = details.substr(0, details.find('\n'));
  fail(ZRT_ERROR_EXECUTION, what, ": ", ncclGetErrorString(status),
       details.empty() ? "" : "; " + details);
}
