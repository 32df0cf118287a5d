//===- PtxNvccTest.cpp - Kernels that nvcc compiles -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CUDA C++ with all that comes of it: library functions with their slow paths,
// calls, divergence, shuffles, shared memory, 16 bits. The results are those of
// the same formulas in f64 on the host.
//
//===----------------------------------------------------------------------===//

#include "test/unit/FakeCuda/PtxTest.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>

using namespace ptx_test;

static const char *const source = R"(
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void softmax(const float *x, float *y, int n) {
  __shared__ float parts[4];
  extern __shared__ float row[];
  const float *from = x + (size_t)blockIdx.x * n;
  float most = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    most = fmaxf(most, from[i]);
  for (int o = 16; o; o >>= 1)
    most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
  if (threadIdx.x % 32 == 0)
    parts[threadIdx.x / 32] = most;
  __syncthreads();
  most = fmaxf(fmaxf(parts[0], parts[1]), fmaxf(parts[2], parts[3]));
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    sum += row[i] = expf(from[i] - most);
  for (int o = 16; o; o >>= 1)
    sum += __shfl_down_sync(~0u, sum, o);
  if (threadIdx.x % 32 == 0)
    parts[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = parts[0] + parts[1] + parts[2] + parts[3];
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    y[(size_t)blockIdx.x * n + i] = row[i] / sum;
}

__device__ __noinline__ float choose(int kind, float x) {
  switch (kind) {
  case 0: return sinf(x);
  case 1: return cosf(x);
  case 2: return tanhf(x);
  case 3: return erff(x);
  case 4: return log1pf(fabsf(x));
  case 5: return expm1f(x * 0.01f);
  case 6: return powf(fabsf(x) + 0.5f, 1.7f);
  case 7: return cbrtf(x);
  case 8: return atan2f(x, 2.0f);
  default: return logf(fabsf(x) + 1e-30f);
  }
}

// The kinds of a warp's lanes differ.
extern "C" __global__ void functions(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  y[i] = choose(i % 10, x[i]);
}

extern "C" __global__ void doubles(const double *x, double *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = exp(sin(x[i])) / sqrt(fabs(x[i]) + 1) + pow(fabs(x[i]), 0.3) +
           log(fabs(x[i]) + 2) + fmod(x[i], 0.7);
}

extern "C" __global__ void halves(const __nv_bfloat16 *a, __nv_bfloat16 *b,
                                  __half2 *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float x = __bfloat162float(a[i]);
  b[i] = __float2bfloat16(x * x) + a[i];
  c[i] = __hfma2(c[i], c[i], __float2half2_rn(x));
}

// Greatest common divisors: integer division and loops of many lengths.
extern "C" __global__ void divisors(const int *a, const int *b, int *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int x = a[i], y = b[i];
  while (y) {
    int rest = x % y;
    x = y;
    y = rest;
  }
  c[i] = x;
}

// Bitonic sort of a block in shared memory.
extern "C" __global__ void sort(unsigned long long *values) {
  __shared__ unsigned long long room[256];
  unsigned t = threadIdx.x;
  room[t] = values[t];
  __syncthreads();
  for (unsigned k = 2; k <= 256; k *= 2)
    for (unsigned j = k / 2; j; j /= 2) {
      unsigned other = t ^ j;
      if (other > t) {
        bool up = (t & k) == 0;
        if ((room[t] > room[other]) == up) {
          unsigned long long keep = room[t];
          room[t] = room[other];
          room[other] = keep;
        }
      }
      __syncthreads();
    }
  values[t] = room[t];
}
)";

/// The PTX of the source.
static std::string compile(const std::string &flag) {
  TemporaryFile from(".cu"), to(".ptx");
  std::ofstream(from.path) << source;
  std::string command = std::string(ZERO_NVCC) + " -ptx -arch=sm_90 " + flag +
                        " -o " + to.path + " " + from.path;
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::stringstream read;
  read << std::ifstream(to.path).rdbuf();
  return read.str();
}

static float input(int i) { return std::sin(i * 0.37f) * 7 + 0.01f * i; }

static void checkSoftmax(fake_cuda::Module &module) {
  const int rows = 3, n = 200;
  Array<float> x(rows * n), y(rows * n);
  for (int i = 0; i < rows * n; ++i)
    x[i] = input(i);
  EXPECT_EQ(launch(module, "softmax", {{rows, 1, 1}, {128, 1, 1}, n * 4},
                   x.address(), y.address(), n),
            "");
  for (int row = 0; row < rows; ++row) {
    double sum = 0;
    for (int i = 0; i < n; ++i)
      sum += std::exp(double(x[row * n + i]));
    for (int i = 0; i < n; ++i)
      EXPECT_NEAR(y[row * n + i] * sum / std::exp(double(x[row * n + i])), 1,
                  3e-6);
  }
}

static void checkFunctions(fake_cuda::Module &module) {
  const int n = 1000;
  Array<float> x(n), y(n);
  for (int i = 0; i < n; ++i)
    x[i] = input(i);
  x[10] = 1e9f; // reduced by the slow path
  x[11] = -3e7f;
  EXPECT_EQ(launch(module, "functions", {{4, 1, 1}, {256, 1, 1}}, x.address(),
                   y.address(), n),
            "");
  const std::function<double(double)> functions[] = {
      [](double v) { return std::sin(v); },
      [](double v) { return std::cos(v); },
      [](double v) { return std::tanh(v); },
      [](double v) { return std::erf(v); },
      [](double v) { return std::log1p(std::fabs(v)); },
      [](double v) { return std::expm1(v * 0.01f); },
      [](double v) { return std::pow(float(std::fabs(v)) + 0.5f, 1.7f); },
      [](double v) { return std::cbrt(v); },
      [](double v) { return std::atan2(v, 2); },
      [](double v) { return std::log(std::fabs(v) + 1e-30); }};
  for (int i = 0; i < n; ++i) {
    double expected = functions[i % 10](x[i]);
    EXPECT_NEAR(y[i], expected, 2e-6 * std::max(1.0, std::fabs(expected)))
        << i << ": " << x[i];
  }
}

static void checkDoubles(fake_cuda::Module &module) {
  const int n = 100;
  Array<double> x(n), y(n);
  for (int i = 0; i < n; ++i)
    x[i] = input(i);
  EXPECT_EQ(launch(module, "doubles", {{1, 1, 1}, {128, 1, 1}}, x.address(),
                   y.address(), n),
            "");
  for (int i = 0; i < n; ++i) {
    double v = x[i];
    EXPECT_NEAR(y[i],
                std::exp(std::sin(v)) / std::sqrt(std::fabs(v) + 1) +
                    std::pow(std::fabs(v), 0.3) + std::log(std::fabs(v) + 2) +
                    std::fmod(v, 0.7),
                1e-13);
  }
}

static void checkHalves(fake_cuda::Module &module) {
  const int n = 64;
  Array<uint16_t> a(n), b(n);
  Array<uint32_t> c(n, 0x40003C00); // (1, 2)
  for (int i = 0; i < n; ++i)
    a[i] = 0x3F80 + i; // 1 + i / 128
  EXPECT_EQ(launch(module, "halves", {{1, 1, 1}, {64, 1, 1}}, a.address(),
                   b.address(), c.address(), n),
            "");
  for (int i = 0; i < n; ++i) {
    float x = 1 + i / 128.0f;
    uint32_t bits = uint32_t(b[i]) << 16;
    float sum;
    std::memcpy(&sum, &bits, sizeof sum);
    EXPECT_NEAR(sum, x * x + x, 2.5f / 64);
    // 1 * 1 + x and 2 * 2 + x in f16, whose units are 2^-9 and 2^-8 there.
    EXPECT_EQ(c[i] & 0xFFFF, 0x4000 + std::lround((x - 1) * 512));
    EXPECT_NEAR(double(c[i] >> 16), 0x4500 + (x - 1) * 256, 0.5);
  }
}

static void checkDivisors(fake_cuda::Module &module) {
  const int n = 500;
  Array<int> a(n), b(n), c(n);
  for (int i = 0; i < n; ++i) {
    a[i] = i * 7919 % 10007 * 6;
    b[i] = i * 104729 % 5003 * 4;
  }
  EXPECT_EQ(launch(module, "divisors", {{2, 1, 1}, {256, 1, 1}}, a.address(),
                   b.address(), c.address(), n),
            "");
  for (int i = 0; i < n; ++i) {
    int x = a[i], y = b[i];
    while (y)
      std::swap(x %= y, y);
    EXPECT_EQ(c[i], x);
  }
}

static void checkSort(fake_cuda::Module &module) {
  Array<uint64_t> values(256);
  for (uint64_t i = 0; i < 256; ++i)
    values[i] = i * 0x9E3779B97F4A7C15;
  std::vector<uint64_t> expected = values.values();
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(launch(module, "sort", {{1, 1, 1}, {256, 1, 1}}, values.address()),
            "");
  EXPECT_EQ(values.values(), expected);
}

using PtxNvcc = testing::TestWithParam<const char *>;

TEST_P(PtxNvcc, Kernels) {
  if (!*ZERO_NVCC)
    GTEST_SKIP() << "there is no nvcc";
  auto module = parse(compile(GetParam()));
  ASSERT_TRUE(module);
  checkSoftmax(*module);
  checkFunctions(*module);
  checkDoubles(*module);
  checkHalves(*module);
  checkDivisors(*module);
  checkSort(*module);
}

// Optimized, and as written: with its variables in local memory.
INSTANTIATE_TEST_SUITE_P(Levels, PtxNvcc, testing::Values("-O3", "-G"),
                         [](const auto &info) {
                           return info.index ? "Debug" : "Optimized";
                         });
