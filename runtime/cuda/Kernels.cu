//===- Kernels.cu - Kernels of the runtime itself -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies between strided views, which may convert between f32 and bf16 or f16.
// They become PTX when the project is built.
//
//===----------------------------------------------------------------------===//

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "runtime/cuda/CopyShape.h"

using zrt::cuda::CopyShape;

__device__ void store(float from, float &to) { to = from; }
__device__ void store(__nv_bfloat16 from, float &to) {
  to = __bfloat162float(from);
}
__device__ void store(__half from, float &to) { to = __half2float(from); }
__device__ void store(float from, __nv_bfloat16 &to) {
  to = __float2bfloat16_rn(from);
}
__device__ void store(float from, __half &to) { to = __float2half_rn(from); }
template <typename T>
__device__ void store(T from, T &to) {
  to = from;
}

/// Places of one element in both views. The loop has constant bounds so that
/// the shape stays in parameter memory.
template <typename From, typename To>
__device__ void copyElements(const From *from, To *to, const CopyShape &shape) {
  int64_t step = int64_t(gridDim.x) * blockDim.x;
  int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t element = first; element < shape.elements; element += step) {
    int64_t rest = element, source = 0, target = 0;
#pragma unroll
    for (int dim = CopyShape::kDims - 1; dim >= 0; --dim) {
      int64_t size = shape.sizes[dim];
      if (size == 1)
        continue;
      int64_t outer = rest / size, place = rest - outer * size;
      source += place * shape.from[dim];
      target += place * shape.to[dim];
      rest = outer;
    }
    store(from[source], to[target]);
  }
}

#define COPY(NAME, FROM, TO)                                                   \
  extern "C" __global__ void NAME(const FROM *from, TO *to,                    \
                                  const CopyShape shape) {                     \
    copyElements(from, to, shape);                                             \
  }

COPY(zrt_copy_1, uint8_t, uint8_t)
COPY(zrt_copy_2, uint16_t, uint16_t)
COPY(zrt_copy_4, uint32_t, uint32_t)
COPY(zrt_copy_8, uint64_t, uint64_t)
COPY(zrt_copy_bf16_f32, __nv_bfloat16, float)
COPY(zrt_copy_f16_f32, __half, float)
COPY(zrt_copy_f32_bf16, float, __nv_bfloat16)
COPY(zrt_copy_f32_f16, float, __half)
