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
  set(made, CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t(product.epilogue));
  if (product.bias) {
    set(made, CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias);
    set(made, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
        int32_t(typeOf(product.d.type)));
  }
  if (product.auxiliary) {
    set(made, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, product.auxiliary);
    set(made, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, product.d.leading);
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
  auto aligned = [](CUdeviceptr address) { return address % 256; };
  key << ' ' << product.transposeA << product.transposeB << product.addToD
      << product.tf32 << ' ' << product.epilogue << ' ' << aligned(product.bias)
      << ' ' << aligned(product.auxiliary);
  return key.str();
}

using Choice = cublasLtMatmulHeuristicResult_t;

/// Its state says whether there is an algorithm.
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
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (!status && !found)) {
    choice.state = CUBLAS_STATUS_NOT_SUPPORTED;
    return choice;
  }
  checkBlas(status, "cublasLtMatmulAlgoGetHeuristic");
  return choice;
}

std::optional<size_t> MatmulCall::addProduct(Libraries &libraries,
                                             const Product &product,
                                             uint64_t mostWorkspace) {
  handle = libraries.blas();
  PreparedProduct made = {makeDesc(product),
                          makeLayout(product.a),
                          makeLayout(product.b),
                          makeLayout(product.d),
                          {},
                          0,
                          product.addToD,
                          product.d.type == fb::DType_F64};
  std::shared_ptr<void> &known = libraries.cache[keyOf(product)];
  if (!known)
    known = std::make_shared<Choice>(choose(handle, product, made.desc.get(),
                                            made.a.get(), made.b.get(),
                                            made.d.get(), mostWorkspace));
  const auto &choice = *static_cast<const Choice *>(known.get());
  if (choice.state != CUBLAS_STATUS_SUCCESS)
    return std::nullopt;
  made.algorithm = choice.algo;
  made.workspaceBytes = choice.workspaceSize;
  productBytes = std::max<uint64_t>(productBytes, choice.workspaceSize);
  products.push_back(std::move(made));
  return products.size() - 1;
}

void MatmulCall::addRun(size_t product, Place a, Place b, Place d) {
  Step step;
  step.kind = Step::Multiply;
  step.product = product;
  step.a = a;
  step.b = b;
  step.d = d;
  steps.push_back(step);
}

void MatmulCall::addFunction(const PreparedFunction &function) {
  Step step;
  step.kind = Step::Apply;
  step.function = function;
  steps.push_back(step);
}

void MatmulCall::addCopy(const DeviceKernels &kernels, const View &from,
                         fb::DType fromType, Place fromPlace, const View &to,
                         fb::DType toType, Place toPlace) {
  Step step;
  step.kind = Step::Copy;
  step.copy = kernels.prepareCopy({0, from, fromType}, {0, to, toType});
  step.a = fromPlace;
  step.d = toPlace;
  steps.push_back(step);
}

void MatmulCall::multiply(const Step &step, CUstream stream,
                          CUdeviceptr workspace) {
  PreparedProduct &product = products[step.product];
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
    if (step.kind == Step::Multiply) {
      multiply(step, stream, workspace);
    } else if (step.kind == Step::Apply) {
      launchFunction(step.function, stream);
    } else {
      PreparedCopy copy = step.copy;
      copy.from += step.a.at(workspace);
      copy.to += step.d.at(workspace);
      launchCopy(copy, stream);
    }
  }
}
