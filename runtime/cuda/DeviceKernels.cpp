//===- DeviceKernels.cpp - Code on a GPU ----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See DeviceKernels.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/DeviceKernels.h"

#include "runtime/core/Error.h"
#include "runtime/cuda/Status.h"

#include <algorithm>

using namespace zrt;
using namespace zrt::cuda;

static const char kernelsPtx[] =
#include "runtime/cuda/Kernels.ptx.inc"
    ;

Module::Module(std::string_view ptx, const std::string &what) {
  if (ptx.empty()) // of a program without kernels
    return;
  std::string text(ptx); // the driver wants a zero at its end
  char log[4096] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log) - 1)};
  CUresult status =
      cuModuleLoadDataEx(&module, text.c_str(), 2, options, values);
  if (status == CUDA_SUCCESS)
    return;
  std::string details(log);
  std::replace(details.begin(), details.end(), '\n', ' ');
  fail(ZRT_ERROR_TARGET, what, " cannot be loaded: ", statusText(status),
       details.empty() ? "" : "; " + details);
}

Module::~Module() {
  if (module)
    cuModuleUnload(module);
}

CUfunction Module::find(const std::string &name) const {
  CUfunction function = nullptr;
  checkCuda(cuModuleGetFunction(&function, module, name.c_str()),
            "kernel " + name);
  return function;
}

DeviceKernels::DeviceKernels() : module(kernelsPtx, "the runtime's kernels") {}

static std::string copyName(fb::DType from, fb::DType to) {
  if (from == to)
    return "zrt_copy_" + std::to_string(elementBytes(from));
  auto narrow = [](fb::DType type) {
    return type == fb::DType_BF16 || type == fb::DType_F16;
  };
  bool converts = (from == fb::DType_F32 && narrow(to)) ||
                  (to == fb::DType_F32 && narrow(from));
  if (!converts)
    fail(ZRT_ERROR_FORMAT, "elements of type ", dtypeName(from),
         " are not converted to ", dtypeName(to));
  return std::string("zrt_copy_") + dtypeName(from) + "_" + dtypeName(to);
}

PreparedCopy DeviceKernels::prepareCopy(const Tensor &from,
                                        const Tensor &to) const {
  PreparedCopy copy = {};
  copy.function = module.find(copyName(from.type, to.type));
  copy.from = from.address + from.view.offset * elementBytes(from.type);
  copy.to = to.address + to.view.offset * elementBytes(to.type);
  copy.shape.elements = int64_t(*elementCount(to.view.sizes));
  std::fill_n(copy.shape.sizes, CopyShape::kDims, 1);
  View source = from.view, target = to.view;
  if (source.sizes != target.sizes) { // both contiguous
    source = contiguousView({copy.shape.elements});
    target = source;
  }
  size_t rank = target.sizes.size(), lead = CopyShape::kDims - rank;
  for (size_t dim = 0; dim < rank; ++dim) {
    copy.shape.sizes[lead + dim] = target.sizes[dim];
    copy.shape.from[lead + dim] = source.strides[dim];
    copy.shape.to[lead + dim] = target.strides[dim];
  }
  return copy;
}

PreparedFunction DeviceKernels::prepareFunction(const std::string &name,
                                                fb::DType type,
                                                CUdeviceptr from,
                                                CUdeviceptr to,
                                                int64_t count) const {
  PreparedFunction prepared = {};
  prepared.function = module.find("zrt_" + name + "_" + dtypeName(type));
  prepared.from = from;
  prepared.to = to;
  prepared.count = count;
  return prepared;
}

PreparedFunction
DeviceKernels::prepareSums(fb::DType fromType, fb::DType toType,
                           const PreparedFunction &sums) const {
  PreparedFunction prepared = sums;
  prepared.function = module.find(
      std::string("zrt_sum_") + dtypeName(fromType) + "_" + dtypeName(toType));
  return prepared;
}

/// A thread for each element, up to a number that fills any device.
static void launch(CUfunction function, int64_t elements, void **arguments,
                   CUstream stream, const char *what) {
  constexpr int64_t threads = 256, mostBlocks = 4096;
  if (elements == 0)
    return;
  int64_t blocks = std::min(mostBlocks, (elements + threads - 1) / threads);
  checkCuda(cuLaunchKernel(function, unsigned(blocks), 1, 1, threads, 1, 1, 0,
                           stream, arguments, nullptr),
            what);
}

void cuda::launchCopy(const PreparedCopy &copy, CUstream stream) {
  PreparedCopy values = copy; // the driver takes pointers to what is no const
  void *arguments[] = {&values.from, &values.to, &values.shape};
  launch(copy.function, copy.shape.elements, arguments, stream,
         "cuLaunchKernel of a copy");
}

void cuda::launchFunction(const PreparedFunction &function, CUstream stream) {
  PreparedFunction values = function;
  void *arguments[] = {&values.from,   &values.to,    &values.count,
                       &values.stride, &values.terms, &values.termStride};
  launch(function.function, function.count, arguments, stream,
         "cuLaunchKernel of an epilogue");
}
