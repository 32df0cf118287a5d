//===- Status.h - Statuses of NVIDIA's libraries ----------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every call's status is looked at: one that is no success becomes an Error of
// one line, with the function, the library's words and its number's name.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CUDA_STATUS_H
#define ZERO_RT_CUDA_STATUS_H

#include <cublasLt.h>
#include <cuda.h>
#include <cudnn.h>
#include <nccl.h>

#include <string>

namespace zrt::cuda {

/// "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)".
std::string statusText(CUresult status);

/// Throw Error unless the call succeeded; `what` is the function, perhaps with
/// what it was for.
void checkCuda(CUresult status, const std::string &what);
void checkBlas(cublasStatus_t status, const std::string &what);
void checkDnn(cudnnStatus_t status, const std::string &what);
/// ncclInProgress is no error.
void checkNccl(ncclResult_t status, const std::string &what,
               ncclComm_t communicator = nullptr);

} // namespace zrt::cuda

#endif // ZERO_RT_CUDA_STATUS_H
