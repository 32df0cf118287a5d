//===- MatmulPlan.cpp - Steps of a matrix product on a GPU ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See MatmulPlan.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/MatmulPlan.h"

#include "runtime/core/Error.h"
#include "runtime/cuda/Status.h"

#include <sstream>

using namespace zrt;
using namespace zrt::cuda;

static cudaDataType_t typeOf(fb::DType type) {
  switch (type) {
  case fb::DType_F64:
    return CUDA_R_64F;
  case fb::DType_BF16:
    return CUDA_R_16BF;
  case fb::DType_F16:
    return CUDA_R_16F;
  default:
    return CUDA_R_32F;
  }
}

template <typename Value>
static void set(cublasLtMatmulDesc_t desc,
                cublasLtMatmulDescAttributes_t attribute, const Value &value) {
  checkBlas(
      cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof(value)),
      "cublasLtMatmulDescSetAttribute");
}

static BlasObject<cublasLtMatmulDesc_t> makeDesc(const Product &product) {
  bool isDouble = product.d.type == fb::DType_F64;
  cublasComputeType_t compute = isDouble       ? CUBLAS_COMPUTE_64F
                                : product.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                               : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t made = nullptr;
  checkBlas(cublasLtMatmulDescCreate(&made, compute,
                                     isDouble ? CUDA_R_64F : CUDA_R_32F),
            "cublasLtMatmulDescCreate");
  BlasObject<cublasLtMatmulDesc_t> desc(made);
  auto operation = [](bool transposed) {
    return int32_t(transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  };
  set(made, CUBLASLT_MATMUL_DESC_TRANSA, operation(product.transposeA));
  set(made, CUBLASLT_MATMUL_DESC_TRANSB, operation(product.transposeB));
  if (product.bias) {
    set(made, CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t(CUBLASLT_EPILOGUE_BIAS));
    set(made, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
        int32_t(typeOf(product.d.type)));
  }
  return desc;
}

static BlasObject<cublasLtMatrixLayout_t> makeLayout(const MatrixShape &shape) {
  cublasLtMatrixLayout_t made = nullptr;
  checkBlas(cublasLtMatrixLayoutCreate(&made, typeOf(shape.type),
                                       uint64_t(shape.rows),
                                       uint64_t(shape.columns), shape.leading),
            "cublasLtMatrixLayoutCreate");
  BlasObject<cublasLtMatrixLayout_t> layout(made);
  auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, auto value) {
    checkBlas(cublasLtMatrixLayoutSetAttribute(made, attribute, &value,
                                               sizeof(value)),
              "cublasLtMatrixLayoutSetAttribute");
  };
  if (shape.batches > 1) {
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t(shape.batches));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, shape.batchStride);
  }
  return layout;
}

static BlasObject<cublasLtMatmulPreference_t>
makePreference(const Product &product, uint64_t workspace) {
  cublasLtMatmulPreference_t made = nullptr;
  checkBlas(cublasLtMatmulPreferenceCreate(&made),
            "cublasLtMatmulPreferenceCreate");
  BlasObject<cublasLtMatmulPreference_t> preference(made);
  auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    checkBlas(cublasLtMatmulPreferenceSetAttribute(made, attribute, &value,
                                                   sizeof(value)),
              "cublasLtMatmulPreferenceSetAttribute");
  };
  auto aligned = [](const MatrixShape &shape) {
    return uint32_t(shape.alignment);
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aligned(product.a));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aligned(product.b));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, aligned(product.d));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, aligned(product.d));
  return preference;
}

/// All that the choice of an algorithm depends on.
static std::string keyOf(const Product &product) {
  std::ostringstream key;
  key << "matmul";
  for (const MatrixShape *shape : {&product.a, &product.b, &product.d})
    key << ' ' << int(shape->type) << ' ' << shape->rows << ' '
        << shape->columns << ' ' << shape->leading << ' ' << shape->batches
        << ' ' << shape->batchStride << ' ' << shape->alignment;
  key << ' ' << product.transposeA << product.transposeB << product.addToD
      << product.bias << product.tf32;
  return key.str();
}

static std::string shapeText(const MatrixShape &shape) {
  return std::to_string(shape.rows) + "x" + std::to_string(shape.columns) +
         " " + dtypeName(shape.type);
}

using Choice = cublasLtMatmulHeuristicResult_t;

static Choice choose(cublasLtHandle_t handle, const Product &product,
                     cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                     cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t d,
                     uint64_t workspace) {
  BlasObject<cublasLtMatmulPreference_t> preference =
      makePreference(product, workspace);
  Choice choice = {};
  int found = 0;
  cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle, desc, a, b, d, d, preference.get(), 1, &choice, &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (!status && !found))
    fail(ZRT_ERROR_EXECUTION, "cuBLASLt has no algorithm for a product of ",
         shapeText(product.a), " and ", shapeText(product.b), " to ",
         shapeText(product.d));
  checkBlas(status, "cublasLtMatmulAlgoGetHeuristic");
  checkBlas(choice.state, "cublasLtMatmulAlgoGetHeuristic");
  return choice;
}

size_t MatmulCall::addProduct(Libraries &libraries, const Product &product,
                              uint64_t mostWorkspace) {
  handle = libraries.blas();
  PreparedProduct made = {makeDesc(product),
                          makeLayout(product.a),
                          makeLayout(product.b),
                          makeLayout(product.d),
                          {},
                          0,
                          product.addToD,
                          product.bias,
                          product.d.type == fb::DType_F64};
  std::shared_ptr<void> &known = libraries.cache[keyOf(product)];
  if (!known)
    known = std::make_shared<Choice>(choose(handle, product, made.desc.get(),
                                            made.a.get(), made.b.get(),
                                            made.d.get(), mostWorkspace));
  const auto &choice = *static_cast<const Choice *>(known.get());
  made.algorithm = choice.algo;
  made.workspaceBytes = choice.workspaceSize;
  productBytes = std::max<uint64_t>(productBytes, choice.workspaceSize);
  products.push_back(std::move(made));
  return products.size() - 1;
}

void MatmulCall::addRun(size_t product, Place a, Place b, Place d, Place bias) {
  steps.push_back({false, {}, product, a, b, d, bias});
}

void MatmulCall::addCopy(const DeviceKernels &kernels, const View &from,
                         fb::DType fromType, Place fromPlace, const View &to,
                         fb::DType toType, Place toPlace) {
  PreparedCopy copy = kernels.prepareCopy({0, from, fromType}, {0, to, toType});
  steps.push_back({true, copy, 0, fromPlace, {}, toPlace, {}});
}

void MatmulCall::multiply(const Step &step, CUstream stream,
                          CUdeviceptr workspace) {
  PreparedProduct &product = products[step.product];
  if (product.bias) // read when the product is enqueued
    set(product.desc.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER,
        reinterpret_cast<const void *>(step.bias.at(workspace)));
  float one = 1, beta = product.addToD ? 1 : 0;
  double oneDouble = 1, betaDouble = beta;
  const void *alpha = &one, *add = &beta;
  if (product.isDouble) {
    alpha = &oneDouble;
    add = &betaDouble;
  }
  auto pointer = [&](Place place) {
    return reinterpret_cast<void *>(place.at(workspace));
  };
  void *d = pointer(step.d);
  checkBlas(cublasLtMatmul(handle, product.desc.get(), alpha, pointer(step.a),
                           product.a.get(), pointer(step.b), product.b.get(),
                           add, d, product.d.get(), d, product.d.get(),
                           &product.algorithm,
                           reinterpret_cast<void *>(workspace + bytes),
                           product.workspaceBytes, stream),
            "cublasLtMatmul");
}

void MatmulCall::run(CUstream stream, CUdeviceptr workspace) {
  for (const Step &step : steps) {
    if (!step.isCopy) {
      multiply(step, stream, workspace);
      continue;
    }
    PreparedCopy copy = step.copy;
    copy.from += step.a.at(workspace);
    copy.to += step.d.at(workspace);
    launchCopy(copy, stream);
  }
}
