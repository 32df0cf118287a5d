//===- CublasLtTest.cpp - The fake cuBLASLt -------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/FakeCuda/Fixture.h"

#include <cublasLt.h>

#include <cmath>
#include <cstring>

using namespace testing;

using CublasLtTest = FakeCudaTest;

#define BLAS(CALL) EXPECT_EQ(CALL, CUBLAS_STATUS_SUCCESS)

namespace {
/// A matrix of columns (or rows) that are consecutive, filled with small
/// numbers; batches one behind the other.
struct Matrix {
  uint64_t rows, columns;
  int64_t leading;
  int32_t batches = 1;
  int32_t order = CUBLASLT_ORDER_COL;
  CUdeviceptr memory = 0;
  std::vector<float> values = {};

  int64_t outer() const { return order == CUBLASLT_ORDER_COL ? columns : rows; }
  int64_t stride() const { return leading * outer(); }
  float &at(uint64_t batch, uint64_t row, uint64_t column) {
    if (order == CUBLASLT_ORDER_ROW)
      std::swap(row, column);
    return values[batch * stride() + column * leading + row];
  }
  void fill(float seed) {
    values.resize(stride() * batches);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = std::sin(seed + i);
    memory = allocate(values.size() * sizeof(float));
    write(memory, values);
  }
  void *pointer() const { return reinterpret_cast<void *>(memory); }
  cublasLtMatrixLayout_t layout() const {
    cublasLtMatrixLayout_t made = nullptr;
    BLAS(cublasLtMatrixLayoutCreate(&made, CUDA_R_32F, rows, columns, leading));
    auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, auto value) {
      BLAS(cublasLtMatrixLayoutSetAttribute(made, attribute, &value,
                                            sizeof value));
    };
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batches);
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride());
    set(CUBLASLT_MATRIX_LAYOUT_ORDER, order);
    return made;
  }
};

/// A product of f32 and what it is made of.
struct Product {
  Matrix a, b, d;
  bool transA = false, transB = false;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  float alpha = 1, beta = 0;
  CUdeviceptr bias = 0, aux = 0;
  int64_t auxLeading = 0;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  uint64_t workspaceBytes = 1 << 20;

  void prepare() {
    a.fill(1);
    b.fill(2);
    d.fill(3);
  }
  cublasLtMatmulDesc_t desc() const {
    cublasLtMatmulDesc_t made = nullptr;
    BLAS(cublasLtMatmulDescCreate(&made, compute, CUDA_R_32F));
    auto set = [&](cublasLtMatmulDescAttributes_t attribute, auto value) {
      BLAS(cublasLtMatmulDescSetAttribute(made, attribute, &value,
                                          sizeof value));
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, transA ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, transB ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, auxLeading);
    return made;
  }
  /// One element of op(A) * op(B), in f64.
  double sum(int batch, uint64_t row, uint64_t column) {
    double total = 0;
    uint64_t k = transA ? a.rows : a.columns;
    for (uint64_t i = 0; i < k; ++i)
      total += double(transA ? a.at(batch, i, row) : a.at(batch, row, i)) *
               (transB ? b.at(batch, column, i) : b.at(batch, i, column));
    return total;
  }
  cublasStatus_t run(CUstream stream);
};
} // namespace

/// By the heuristic, in workspace as it asks for.
cublasStatus_t Product::run(CUstream stream) {
  cublasLtHandle_t handle = nullptr;
  BLAS(cublasLtCreate(&handle));
  cublasLtMatmulDesc_t made = desc();
  cublasLtMatrixLayout_t layouts[] = {a.layout(), b.layout(), d.layout()};
  cublasLtMatmulPreference_t preference = nullptr;
  BLAS(cublasLtMatmulPreferenceCreate(&preference));
  BLAS(cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspaceBytes,
      sizeof workspaceBytes));
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle, made, layouts[0], layouts[1], layouts[2], layouts[2], preference,
      1, &found, &count);
  CUdeviceptr workspace =
      found.workspaceSize ? allocate(found.workspaceSize) : 0;
  if (status == CUBLAS_STATUS_SUCCESS)
    status = cublasLtMatmul(
        handle, made, &alpha, a.pointer(), layouts[0], b.pointer(), layouts[1],
        &beta, d.pointer(), layouts[2], d.pointer(), layouts[2], &found.algo,
        reinterpret_cast<void *>(workspace), found.workspaceSize, stream);
  for (cublasLtMatrixLayout_t layout : layouts)
    BLAS(cublasLtMatrixLayoutDestroy(layout));
  BLAS(cublasLtMatmulPreferenceDestroy(preference));
  BLAS(cublasLtMatmulDescDestroy(made));
  BLAS(cublasLtDestroy(handle));
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  if (workspace)
    EXPECT_EQ(cuMemFree(workspace), CUDA_SUCCESS);
  return status;
}

/// Runs it and compares D with `expected(batch, row, column)`.
template <typename Fn>
static void expectProduct(Product &product, Fn expected) {
  Matrix before = product.d;
  BLAS(product.run(makeStream()));
  product.d.values = read(product.d.memory, product.d.values.size());
  for (int batch = 0; batch < product.d.batches; ++batch)
    for (uint64_t row = 0; row < product.d.rows; ++row)
      for (uint64_t column = 0; column < product.d.columns; ++column) {
        double old = before.at(batch, row, column);
        ASSERT_NEAR(product.d.at(batch, row, column),
                    expected(batch, row, column, old), 1e-5)
            << batch << ", " << row << ", " << column;
        before.at(batch, row, column) = product.d.at(batch, row, column);
      }
  // Nothing between the columns.
  EXPECT_EQ(std::memcmp(before.values.data(), product.d.values.data(),
                        before.values.size() * sizeof(float)),
            0);
}

TEST_F(CublasLtTest, TransposesStridesAndBatches) {
  useDevice(0);
  for (bool transA : {false, true})
    for (bool transB : {false, true}) {
      Product product;
      product.a = transA ? Matrix{40, 5, 41, 3} : Matrix{5, 40, 7, 3};
      product.b = transB ? Matrix{6, 40, 6, 3} : Matrix{40, 6, 44, 3};
      product.d = {5, 6, 9, 3};
      product.transA = transA;
      product.transB = transB;
      product.alpha = 2;
      product.prepare();
      expectProduct(product, [&](int batch, int row, int column, double) {
        return 2 * product.sum(batch, row, column);
      });
    }
}

TEST_F(CublasLtTest, RowsAndAddition) {
  useDevice(0);
  Product product;
  product.a = {4, 3, 5, 1, CUBLASLT_ORDER_ROW};
  product.b = {3, 2, 3};
  product.d = {4, 2, 2, 1, CUBLASLT_ORDER_ROW};
  product.beta = 0.5f;
  product.prepare();
  expectProduct(product, [&](int batch, int row, int column, double old) {
    return product.sum(batch, row, column) + 0.5 * old;
  });
}

static double gelu(double x) {
  return 0.5 * x *
         (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

TEST_F(CublasLtTest, BiasAndGelu) {
  useDevice(0);
  std::vector<float> bias = {1, -2, 3, -4, 5};
  Product product;
  product.a = {5, 4, 5};
  product.b = {4, 3, 4};
  product.d = {5, 3, 5};
  product.bias = allocate(sizeof(float) * 5);
  write(product.bias, bias);
  product.aux = allocate(sizeof(float) * 8 * 3);
  product.auxLeading = 8;
  product.prepare();
  auto sum = [&](int row, int column) {
    return product.sum(0, row, column) + bias[row];
  };
  product.epilogue = CUBLASLT_EPILOGUE_BIAS;
  expectProduct(product, [&](int, int row, int column, double) {
    return sum(row, column);
  });
  product.epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
  expectProduct(product, [&](int, int row, int column, double) {
    return std::max(0.0, sum(row, column));
  });
  product.epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  expectProduct(product, [&](int, int row, int column, double) {
    return gelu(sum(row, column));
  });
  std::vector<float> kept = read(product.aux, 8 * 3);
  for (int row = 0; row < 5; ++row)
    for (int column = 0; column < 3; ++column)
      EXPECT_NEAR(kept[column * 8 + row], sum(row, column), 1e-5);
}

TEST_F(CublasLtTest, GradientsOfGeluAndBias) {
  useDevice(0);
  Product product;
  product.a = {5, 4, 5};
  product.b = {4, 3, 4};
  product.d = {5, 3, 5};
  product.bias = allocate(sizeof(float) * 5);
  product.aux = allocate(sizeof(float) * 8 * 3);
  product.auxLeading = 8;
  product.prepare();
  std::vector<float> input(8 * 3);
  for (size_t i = 0; i < input.size(); ++i)
    input[i] = std::cos(i);
  write(product.aux, input);
  product.epilogue = CUBLASLT_EPILOGUE_DGELU_BGRAD;
  auto slope = [&](int row, int column) {
    double x = input[column * 8 + row], step = 1e-5;
    return (gelu(x + step) - gelu(x - step)) / (2 * step);
  };
  expectProduct(product, [&](int, int row, int column, double) {
    return product.sum(0, row, column) * slope(row, column);
  });
  std::vector<float> gradient = read(product.bias, 5);
  for (int row = 0; row < 5; ++row) {
    double expected = 0;
    for (int column = 0; column < 3; ++column)
      expected += product.sum(0, row, column) * slope(row, column);
    EXPECT_NEAR(gradient[row], expected, 1e-5);
  }
  product.epilogue = CUBLASLT_EPILOGUE_BGRADA;
  BLAS(product.run(makeStream()));
  gradient = read(product.bias, 5);
  for (int row = 0; row < 5; ++row) {
    double expected = 0;
    for (int i = 0; i < 4; ++i)
      expected += product.a.at(0, row, i);
    EXPECT_NEAR(gradient[row], expected, 1e-5);
  }
  product.epilogue = CUBLASLT_EPILOGUE_BGRADB;
  BLAS(product.run(makeStream()));
  gradient = read(product.bias, 3);
  for (int column = 0; column < 3; ++column) {
    double expected = 0;
    for (int i = 0; i < 4; ++i)
      expected += product.b.at(0, i, column);
    EXPECT_NEAR(gradient[column], expected, 1e-5);
  }
}

// 1 + 2^-11 is 1 + 2^-10 in TF32.
TEST_F(CublasLtTest, Tf32WhenAskedFor) {
  useDevice(0);
  for (bool isNarrow : {false, true}) {
    Product product;
    product.a = product.b = product.d = {1, 1, 1};
    product.prepare();
    write(product.a.memory, {1 + 0x1p-11f});
    write(product.b.memory, {1});
    if (isNarrow)
      product.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
    BLAS(product.run(makeStream()));
    EXPECT_EQ(read(product.d.memory, 1)[0],
              isNarrow ? 1 + 0x1p-10f : 1 + 0x1p-11f);
  }
}

/// bf16 with sums in f32: 256 + 1 would be 256 in bf16.
TEST_F(CublasLtTest, SumsOf16BitsAreInF32) {
  useDevice(0);
  std::vector<uint16_t> a = {0x4380, 0x3F80, 0x3F80},
                        b = {0x3F80, 0x3F80, 0x3F80};
  CUdeviceptr at = allocate(16), bt = allocate(16), dt = allocate(16);
  CUDA(cuMemcpyHtoD(at, a.data(), 6));
  CUDA(cuMemcpyHtoD(bt, b.data(), 6));
  cublasLtHandle_t handle = nullptr;
  BLAS(cublasLtCreate(&handle));
  cublasLtMatmulDescOpaque_t desc;
  BLAS(cublasLtMatmulDescInit(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  cublasLtMatrixLayoutOpaque_t left, right, out;
  BLAS(cublasLtMatrixLayoutInit(&left, CUDA_R_16BF, 1, 3, 1));
  BLAS(cublasLtMatrixLayoutInit(&right, CUDA_R_16BF, 3, 1, 3));
  BLAS(cublasLtMatrixLayoutInit(&out, CUDA_R_32F, 1, 1, 1));
  float one = 1, zero = 0;
  BLAS(cublasLtMatmul(handle, &desc, &one, reinterpret_cast<void *>(at), &left,
                      reinterpret_cast<void *>(bt), &right, &zero, nullptr,
                      &out, reinterpret_cast<void *>(dt), &out, nullptr,
                      nullptr, 0, nullptr));
  CUDA(cuCtxSynchronize());
  EXPECT_EQ(read(dt, 1)[0], 258);
  BLAS(cublasLtDestroy(handle));
}

//===----------------------------------------------------------------------===//
// What is refused
//===----------------------------------------------------------------------===//

/// A small product with one thing changed.
template <typename Change>
static void runWrong(Change change) {
  useDevice(0);
  Product product;
  product.a = {8, 40, 8};
  product.b = {40, 8, 40};
  product.d = {8, 8, 8};
  product.prepare();
  change(product);
  EXPECT_NE(product.run(makeStream()), CUBLAS_STATUS_SUCCESS);
}

TEST_F(CublasLtTest, ShapesMustFit) {
  EXPECT_FAULT("shapes do not fit: 8x40 times 8x40 is not 8x8", [] {
    runWrong([](Product &product) { product.transB = true; });
  });
  EXPECT_FAULT("matrix A has leading dimension 7, expected at least 8", [] {
    runWrong([](Product &product) { product.a.leading = 7; });
  });
  EXPECT_FAULT("matrices have 2 and 1 batches", [] {
    runWrong([](Product &product) { product.b.batches = 2; });
  });
}

TEST_F(CublasLtTest, EpiloguesMustBeComplete) {
  EXPECT_FAULT("the bias is missing", [] {
    runWrong(
        [](Product &product) { product.epilogue = CUBLASLT_EPILOGUE_BIAS; });
  });
  EXPECT_FAULT("the auxiliary matrix has leading dimension 12, expected a "
               "multiple of 8 of at least 8",
               [] {
                 runWrong([](Product &product) {
                   product.epilogue = CUBLASLT_EPILOGUE_GELU_AUX;
                   product.aux = allocate(4096);
                   product.auxLeading = 12;
                 });
               });
  EXPECT_FAULT("epilogue 138 is not known", [] {
    runWrong([](Product &product) {
      product.epilogue = static_cast<cublasLtEpilogue_t>(138);
    });
  });
}

TEST_F(CublasLtTest, OperandsMustNotOverlap) {
  EXPECT_FAULT("what it writes at .* overlaps with another operand", [] {
    runWrong([](Product &product) { product.d.memory = product.a.memory; });
  });
}

TEST_F(CublasLtTest, AddressesMustBeAligned) {
  EXPECT_FAULT(
      "matrix A at .* is not aligned to 256 bytes, as the heuristic was "
      "told",
      [] { runWrong([](Product &product) { product.a.memory += 4; }); });
}

TEST_F(CublasLtTest, AccessesMustBeInBounds) {
  EXPECT_FAULT("cublasLtMatmul 8x8x40 f32 to f32", [] {
    useDevice(0);
    Product product;
    product.a = {8, 40, 8};
    product.b = {40, 8, 40};
    product.d = {8, 8, 8};
    product.prepare();
    CUDA(cuMemFree(product.b.memory));
    product.run(makeStream());
  });
}

TEST_F(CublasLtTest, LeaksAtTheEnd) {
  auto leak = [] {
    useDevice(0);
    cublasLtHandle_t handle = nullptr;
    BLAS(cublasLtCreate(&handle));
    cublasLtMatmulPreference_t preference = nullptr;
    BLAS(cublasLtMatmulPreferenceCreate(&preference));
    BLAS(cublasLtDestroy(handle));
    CUDA(cuDevicePrimaryCtxRelease(0));
  };
  EXPECT_FAULT("1 handle or descriptor of cuBLASLt not destroyed", leak,
               Variable{"FAKE_CUDA_LEAKS", "1"});
}

TEST_F(CublasLtTest, AttributesMustBeKnown) {
  EXPECT_FAULT("attribute 17 is not known to the fake library", [] {
    useDevice(0);
    cublasLtMatmulDesc_t desc = nullptr;
    BLAS(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    void *scale = nullptr;
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(
                  desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scale, 8),
              CUBLAS_STATUS_NOT_SUPPORTED);
  });
  EXPECT_FAULT("attribute EPILOGUE has 4 bytes, not 8", [] {
    useDevice(0);
    cublasLtMatmulDesc_t desc = nullptr;
    BLAS(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    uint64_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(
                  desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 8),
              CUBLAS_STATUS_INVALID_VALUE);
  });
}
