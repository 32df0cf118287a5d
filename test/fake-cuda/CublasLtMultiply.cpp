//===- CublasLtMultiply.cpp - Products of the fake cuBLASLt ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/CublasLt.h"
#include "test/fake-cuda/PtxHalf.h"

#include <cmath>
#include <cstring>

using namespace fake_cuda;
using namespace fake_cuda::blas;

static double load(const char *at, int32_t type) {
  switch (type) {
  case CUDA_R_32F: {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  case CUDA_R_64F: {
    double value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  default: {
    uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return type == CUDA_R_16F ? F16{bits}.widen() : BF16{bits}.widen();
  }
  }
}

static void store(char *at, int32_t type, double value) {
  auto single = static_cast<float>(value);
  switch (type) {
  case CUDA_R_32F:
    std::memcpy(at, &single, sizeof single);
    return;
  case CUDA_R_64F:
    std::memcpy(at, &value, sizeof value);
    return;
  default: {
    uint16_t bits =
        type == CUDA_R_16F ? F16::round(single).bits : BF16::round(single).bits;
    std::memcpy(at, &bits, sizeof bits);
  }
  }
}

namespace {
/// A matrix in memory; strides in elements.
struct Matrix {
  char *data;
  int32_t type;
  int64_t rowStride, columnStride;

  char *at(uint64_t row, uint64_t column) const {
    return data +
           int64_t(elementBytes(type)) *
               (int64_t(row) * rowStride + int64_t(column) * columnStride);
  }
};

/// One product of the batch, with sums of type T.
template <typename T>
class Product {
public:
  Product(const Problem &problem, const Operands &operands, uint64_t batch);
  void run();

private:
  void multiply();
  void finish();
  void reduceBias();
  T roundInput(double value) const;

  const Problem &problem;
  const Operands &operands;
  uint64_t m, n, k;
  Matrix a, b, c, d, aux;
  char *bias = nullptr;
  std::vector<T> left, right, sums; // m x k, k x n, m x n
};
} // namespace

static Matrix matrixOf(const Layout &layout, Address begin, uint64_t batch,
                       bool transposed) {
  Matrix matrix{nullptr, layout.type, 1, layout.leading};
  if (layout.order == CUBLASLT_ORDER_ROW)
    std::swap(matrix.rowStride, matrix.columnStride);
  if (transposed)
    std::swap(matrix.rowStride, matrix.columnStride);
  int64_t bytes = elementBytes(layout.type);
  matrix.data =
      hostAddress(begin + int64_t(batch) * layout.batchStride * bytes);
  return matrix;
}

template <typename T>
Product<T>::Product(const Problem &problem, const Operands &operands,
                    uint64_t batch)
    : problem(problem), operands(operands), m(problem.m()), n(problem.n()),
      k(problem.k()) {
  const MatmulDesc &desc = problem.desc;
  a = matrixOf(problem.a, operands.a, batch, desc.transA != CUBLAS_OP_N);
  b = matrixOf(problem.b, operands.b, batch, desc.transB != CUBLAS_OP_N);
  c = operands.beta != 0 ? matrixOf(problem.c, operands.c, batch, false)
                         : Matrix{};
  d = matrixOf(problem.d, operands.d, batch, false);
  if (problem.addsBias() || problem.writesBias())
    bias = hostAddress(desc.bias + batch * desc.biasBatchStride *
                                       elementBytes(problem.biasType()));
  if (problem.usesAux())
    aux = {hostAddress(desc.aux + batch * desc.auxBatchStride *
                                      elementBytes(problem.auxType())),
           problem.auxType(), 1, desc.auxLeading};
}

/// TF32 keeps 10 bits of the significand.
template <typename T>
T Product<T>::roundInput(double value) const {
  if (problem.desc.compute != CUBLAS_COMPUTE_32F_FAST_TF32 ||
      !std::isfinite(value))
    return static_cast<T>(value);
  auto single = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &single, sizeof bits);
  bits = (bits + 0x1000) & ~0x1FFFu;
  std::memcpy(&single, &bits, sizeof bits);
  return single;
}

template <typename T>
void Product<T>::multiply() {
  left.resize(m * k);
  right.resize(k * n);
  sums.assign(m * n, 0);
  for (uint64_t i = 0; i < m; ++i)
    for (uint64_t p = 0; p < k; ++p)
      left[i * k + p] = roundInput(load(a.at(i, p), a.type));
  for (uint64_t p = 0; p < k; ++p)
    for (uint64_t j = 0; j < n; ++j)
      right[p * n + j] = roundInput(load(b.at(p, j), b.type));
  for (uint64_t i = 0; i < m; ++i)
    for (uint64_t p = 0; p < k; ++p) {
      T factor = left[i * k + p];
      const T *row = &right[p * n];
      T *sum = &sums[i * n];
      for (uint64_t j = 0; j < n; ++j)
        sum[j] += factor * row[j];
    }
}

// The library's GELU is the one by tanh.
static constexpr double kSqrt2OverPi = 0.79788456080286535588;
static constexpr double kCubic = 0.044715;

static double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(kSqrt2OverPi * (x + kCubic * x * x * x)));
}

static double geluGradient(double x) {
  double t = std::tanh(kSqrt2OverPi * (x + kCubic * x * x * x));
  double inner = kSqrt2OverPi * (1 + 3 * kCubic * x * x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
}

/// From sums to D; `sums` then holds what was stored, for the bias gradient.
template <typename T>
void Product<T>::finish() {
  for (uint64_t i = 0; i < m; ++i)
    for (uint64_t j = 0; j < n; ++j) {
      T value = T(operands.alpha) * sums[i * n + j];
      if (operands.beta != 0)
        value += T(operands.beta) * T(load(c.at(i, j), c.type));
      if (problem.addsBias())
        value += load(bias + i * elementBytes(problem.biasType()),
                      problem.biasType());
      if (problem.isGelu() && problem.usesAux())
        store(aux.at(i, j), aux.type, value);
      if (problem.isGelu())
        value = gelu(value);
      if (problem.desc.epilogue & CUBLASLT_EPILOGUE_RELU)
        value = value > 0 ? value : 0;
      if (problem.isGeluGradient())
        value *= geluGradient(load(aux.at(i, j), aux.type));
      sums[i * n + j] = value;
      store(d.at(i, j), d.type, value);
    }
}

/// The gradient of a bias: of D over columns, of op(A) or op(B) over k.
template <typename T>
void Product<T>::reduceBias() {
  bool ofA = problem.desc.epilogue == CUBLASLT_EPILOGUE_BGRADA;
  bool ofB = problem.desc.epilogue == CUBLASLT_EPILOGUE_BGRADB;
  for (uint64_t i = 0; i < problem.biasElements(); ++i) {
    T sum = 0;
    uint64_t terms = ofA || ofB ? k : n;
    for (uint64_t j = 0; j < terms; ++j)
      sum += ofA ? left[i * k + j] : ofB ? right[j * n + i] : sums[i * n + j];
    store(bias + i * elementBytes(problem.biasType()), problem.biasType(), sum);
  }
}

template <typename T>
void Product<T>::run() {
  multiply();
  finish();
  if (problem.writesBias())
    reduceBias();
}

void blas::multiply(const Problem &problem, const Operands &operands) {
  // What an algorithm leaves in its workspace is of no use to anyone.
  if (operands.workspaceBytes)
    std::memset(hostAddress(operands.workspace), 0xFF, operands.workspaceBytes);
  for (int32_t batch = 0; batch < problem.d.batches; ++batch) {
    if (problem.desc.compute == CUBLAS_COMPUTE_64F)
      Product<double>(problem, operands, batch).run();
    else
      Product<float>(problem, operands, batch).run();
  }
}
