//===- Kernels.cu - Kernels of the runtime itself -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies between strided views, which may convert between f32 and bf16 or f16,
// and what is done to matrix products where cuBLASLt does not do it itself.
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

/// f on each element.
template <typename T, typename Function>
__device__ void forEach(int64_t count, Function f) {
  int64_t step = int64_t(gridDim.x) * blockDim.x;
  int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t element = first; element < count; element += step)
    f(element);
}

template <typename T>
__device__ float load(const T &from) {
  float value;
  store(from, value);
  return value;
}

// GELU by tanh, as cuBLASLt has it.
constexpr float geluScale = 0.7978845608028654f, geluCube = 0.044715f;

__device__ float gelu(float x) {
  return 0.5f * x * (1 + tanhf(geluScale * (x + geluCube * x * x * x)));
}

__device__ float geluGradient(float x) {
  float tanh = tanhf(geluScale * (x + geluCube * x * x * x));
  float inner = geluScale * (1 + 3 * geluCube * x * x);
  return 0.5f * (1 + tanh) + 0.5f * x * (1 - tanh * tanh) * inner;
}

#define POINTWISE(SUFFIX, T)                                                   \
  extern "C" __global__ void zrt_gelu_##SUFFIX(const T *from, T *to,           \
                                               int64_t count) {                \
    forEach<T>(count, [=](int64_t i) { store(gelu(load(from[i])), to[i]); });  \
  }                                                                            \
  extern "C" __global__ void zrt_relu_##SUFFIX(const T *from, T *to,           \
                                               int64_t count) {                \
    forEach<T>(count,                                                          \
               [=](int64_t i) { store(fmaxf(load(from[i]), 0.0f), to[i]); });  \
  }                                                                            \
  extern "C" __global__ void zrt_gelu_grad_##SUFFIX(const T *from, T *to,      \
                                                    int64_t count) {           \
    forEach<T>(count, [=](int64_t i) {                                         \
      store(load(to[i]) * geluGradient(load(from[i])), to[i]);                 \
    });                                                                        \
  }

POINTWISE(f32, float)
POINTWISE(bf16, __nv_bfloat16)
POINTWISE(f16, __half)

/// to[i] = sum over j < terms of from[i * stride + j * termStride].
#define SUMS(NAME, FROM, TO)                                                   \
  extern "C" __global__ void NAME(const FROM *from, TO *to, int64_t count,     \
                                  int64_t stride, int64_t terms,               \
                                  int64_t termStride) {                        \
    forEach<TO>(count, [=](int64_t i) {                                        \
      float sum = 0;                                                           \
      for (int64_t j = 0; j < terms; ++j)                                      \
        sum += load(from[i * stride + j * termStride]);                        \
      store(sum, to[i]);                                                       \
    });                                                                        \
  }

SUMS(zrt_sum_f32_f32, float, float)
SUMS(zrt_sum_bf16_bf16, __nv_bfloat16, __nv_bfloat16)
SUMS(zrt_sum_f16_f16, __half, __half)
SUMS(zrt_sum_bf16_f32, __nv_bfloat16, float)
SUMS(zrt_sum_f16_f32, __half, float)
