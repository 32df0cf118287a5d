//===- CublasLtProblem.cpp - What products the fake cuBLASLt knows --------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/CublasLt.h"

#include <algorithm>

using namespace fake_cuda;
using namespace fake_cuda::blas;

uint64_t blas::elementBytes(int32_t type) {
  return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

const char *blas::typeName(int32_t type) {
  switch (type) {
  case CUDA_R_32F:
    return "f32";
  case CUDA_R_64F:
    return "f64";
  case CUDA_R_16F:
    return "f16";
  case CUDA_R_16BF:
    return "bf16";
  default:
    return nullptr;
  }
}

const char *blas::epilogueName(uint32_t epilogue) {
  switch (epilogue) {
  case CUBLASLT_EPILOGUE_DEFAULT:
    return "none";
  case CUBLASLT_EPILOGUE_BIAS:
    return "bias";
  case CUBLASLT_EPILOGUE_RELU:
    return "relu";
  case CUBLASLT_EPILOGUE_RELU_BIAS:
    return "relu of bias";
  case CUBLASLT_EPILOGUE_GELU:
    return "gelu";
  case CUBLASLT_EPILOGUE_GELU_BIAS:
    return "gelu of bias";
  case CUBLASLT_EPILOGUE_GELU_AUX:
    return "gelu, its input kept";
  case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    return "gelu of bias, its input kept";
  case CUBLASLT_EPILOGUE_DGELU:
    return "gelu gradient";
  case CUBLASLT_EPILOGUE_DGELU_BGRAD:
    return "gelu and bias gradients";
  case CUBLASLT_EPILOGUE_BGRADA:
    return "bias gradient of A";
  case CUBLASLT_EPILOGUE_BGRADB:
    return "bias gradient of B";
  default:
    return nullptr;
  }
}

/// "" or why a matrix is none.
static std::string checkLayout(const char *name, const Layout &layout) {
  std::string where = std::string("matrix ") + name;
  if (!typeName(layout.type))
    return where + " has data type " + std::to_string(layout.type) +
           ", known are f32, f64, f16 and bf16";
  if (layout.rows == 0 || layout.columns == 0)
    return where + " is empty";
  if (layout.rows > INT32_MAX || layout.columns > INT32_MAX)
    return where + " has more than 2^31 rows or columns";
  uint64_t inner =
      layout.order == CUBLASLT_ORDER_ROW ? layout.columns : layout.rows;
  if (layout.leading < 0 || uint64_t(layout.leading) < inner)
    return where + " has leading dimension " + std::to_string(layout.leading) +
           ", expected at least " + std::to_string(inner);
  if (layout.batches < 1)
    return where + " has " + std::to_string(layout.batches) + " batches";
  return "";
}

static std::string text(uint64_t rows, uint64_t columns) {
  return std::to_string(rows) + "x" + std::to_string(columns);
}

/// Shapes of op(A), op(B), C and D, and their batches.
static std::string checkShapes(const Problem &problem) {
  auto shape = [](const Layout &layout, int32_t trans) {
    return trans == CUBLAS_OP_N ? std::pair(layout.rows, layout.columns)
                                : std::pair(layout.columns, layout.rows);
  };
  auto [m, k] = shape(problem.a, problem.desc.transA);
  auto [k2, n] = shape(problem.b, problem.desc.transB);
  if (k != k2 || problem.d.rows != m || problem.d.columns != n)
    return "shapes do not fit: " + text(m, k) + " times " + text(k2, n) +
           " is not " + text(problem.d.rows, problem.d.columns);
  if (problem.c.rows != m || problem.c.columns != n ||
      problem.c.order != problem.d.order)
    return "matrix C must have the shape and order of D";
  for (const Layout *layout : {&problem.a, &problem.b, &problem.c})
    if (layout->batches != problem.d.batches)
      return "matrices have " + std::to_string(layout->batches) + " and " +
             std::to_string(problem.d.batches) + " batches";
  if (problem.d.batches > 1 && problem.d.batchStride == 0)
    return "matrices D of a batch lie on each other";
  return "";
}

static std::string checkTypes(const Problem &problem) {
  std::string types = std::string(typeName(problem.a.type)) + " times " +
                      typeName(problem.b.type) + " to " +
                      typeName(problem.d.type);
  if (problem.a.type != problem.b.type || problem.c.type != problem.d.type)
    return types + ": A and B, C and D must have one type each";
  int32_t input = problem.a.type, output = problem.d.type;
  int32_t scale = CUDA_R_32F;
  bool fits = false;
  switch (problem.desc.compute) {
  case CUBLAS_COMPUTE_32F:
  case CUBLAS_COMPUTE_32F_PEDANTIC:
    fits = input != CUDA_R_64F && (output == input || output == CUDA_R_32F);
    break;
  case CUBLAS_COMPUTE_32F_FAST_TF32:
    fits = input == CUDA_R_32F && output == CUDA_R_32F;
    break;
  case CUBLAS_COMPUTE_64F:
  case CUBLAS_COMPUTE_64F_PEDANTIC:
    scale = CUDA_R_64F;
    fits = input == CUDA_R_64F && output == CUDA_R_64F;
    break;
  default:
    return "compute type " + std::to_string(problem.desc.compute) +
           " is not known; 32F, 32F_FAST_TF32 and 64F are";
  }
  if (problem.desc.scaleType != scale)
    return "alpha and beta must have the type of the sums";
  if (!fits)
    return types + " with compute type " +
           std::to_string(problem.desc.compute) + " is not supported";
  return "";
}

static std::string checkEpilogue(const Problem &problem) {
  const MatmulDesc &desc = problem.desc;
  const char *name = epilogueName(desc.epilogue);
  if (!name)
    return "epilogue " + std::to_string(desc.epilogue) + " is not known";
  if (desc.epilogue == CUBLASLT_EPILOGUE_DEFAULT)
    return "";
  std::string where = std::string("epilogue '") + name + "'";
  if (problem.d.type == CUDA_R_64F)
    return where + " of f64 is not supported";
  if (problem.d.order != CUBLASLT_ORDER_COL)
    return where + " needs columns of D that are consecutive";
  if ((problem.addsBias() || problem.writesBias()) &&
      problem.biasType() != problem.d.type)
    return where + ": the bias must have the type of D";
  if (!problem.usesAux())
    return "";
  if (problem.auxType() != problem.d.type)
    return where + ": the auxiliary matrix must have the type of D";
  if (desc.auxLeading % 8 || desc.auxLeading < int64_t(problem.d.rows))
    return where + ": the auxiliary matrix has leading dimension " +
           std::to_string(desc.auxLeading) +
           ", expected a multiple of 8 of at least " +
           std::to_string(problem.d.rows);
  if (desc.auxBatchStride % 8)
    return where + ": the batch stride of the auxiliary matrix is no multiple "
                   "of 8";
  return "";
}

std::string Problem::check() const {
  std::string wrong;
  const std::pair<const char *, const Layout *> layouts[] = {
      {"A", &a}, {"B", &b}, {"C", &c}, {"D", &d}};
  for (auto [name, layout] : layouts)
    if (wrong.empty())
      wrong = checkLayout(name, *layout);
  if (wrong.empty())
    wrong = checkTypes(*this);
  if (wrong.empty())
    wrong = checkShapes(*this);
  if (wrong.empty())
    wrong = checkEpilogue(*this);
  return wrong;
}

/// FNV-1a over what an algorithm is chosen for: all but addresses.
uint64_t Problem::hash() const {
  uint64_t hash = 0xCBF29CE484222325;
  auto add = [&](uint64_t value) {
    for (unsigned i = 0; i < 8; ++i)
      hash = (hash ^ (value >> (8 * i) & 0xFF)) * 0x100000001B3;
  };
  for (int64_t value :
       {int64_t(desc.compute), int64_t(desc.transA), int64_t(desc.transB),
        int64_t(desc.epilogue), int64_t(desc.biasType), int64_t(desc.auxType),
        desc.auxLeading})
    add(value);
  for (const Layout *layout : {&a, &b, &c, &d}) {
    for (uint64_t value : {layout->rows, layout->columns})
      add(value);
    for (int64_t value :
         {int64_t(layout->type), int64_t(layout->order), layout->leading,
          layout->batchStride, int64_t(layout->batches)})
      add(value);
  }
  return hash;
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

/// Of `outer` vectors of `inner` elements, and of each batch.
static void addRanges(std::vector<Access> &accesses, Address begin,
                      uint64_t bytes, uint64_t inner, uint64_t outer,
                      int64_t leading, int64_t batches, int64_t batchStride,
                      bool write) {
  for (int64_t batch = 0; batch < (batchStride ? batches : 1); ++batch) {
    Address at = begin + batch * batchStride * int64_t(bytes);
    if (uint64_t(leading) == inner) {
      accesses.push_back({at, inner * outer * bytes, write});
      continue;
    }
    for (uint64_t i = 0; i < outer; ++i)
      accesses.push_back({at + i * leading * bytes, inner * bytes, write});
  }
}

static void addMatrix(std::vector<Access> &accesses, const Layout &layout,
                      Address begin, bool write) {
  uint64_t inner = layout.rows, outer = layout.columns;
  if (layout.order == CUBLASLT_ORDER_ROW)
    std::swap(inner, outer);
  addRanges(accesses, begin, elementBytes(layout.type), inner, outer,
            layout.leading, layout.batches, layout.batchStride, write);
}

std::vector<Access> blas::accessesOf(const Problem &problem,
                                     const Operands &operands) {
  std::vector<Access> accesses;
  const MatmulDesc &desc = problem.desc;
  addMatrix(accesses, problem.a, operands.a, false);
  addMatrix(accesses, problem.b, operands.b, false);
  if (operands.beta != 0)
    addMatrix(accesses, problem.c, operands.c, false);
  addMatrix(accesses, problem.d, operands.d, true);
  if (problem.addsBias() || problem.writesBias())
    addRanges(accesses, desc.bias, elementBytes(problem.biasType()),
              problem.biasElements(), 1, int64_t(problem.biasElements()),
              problem.d.batches, desc.biasBatchStride, problem.writesBias());
  if (problem.usesAux())
    addRanges(accesses, desc.aux, elementBytes(problem.auxType()), problem.m(),
              problem.n(), desc.auxLeading, problem.d.batches,
              desc.auxBatchStride, problem.isGelu());
  if (operands.workspaceBytes)
    accesses.push_back({operands.workspace, operands.workspaceBytes, true});
  return accesses;
}

std::string blas::findOverlap(const Problem &problem, Operands operands) {
  // C in the place of D is read and written, element by element.
  if (operands.c == operands.d && problem.c.leading == problem.d.leading)
    operands.beta = 0;
  std::vector<Access> sorted = accessesOf(problem, operands);
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const Access &a, const Access &b) { return a.address < b.address; });
  Address readEnd = 0, writeEnd = 0;
  for (const Access &access : sorted) {
    bool overlapsWrite = access.address < writeEnd;
    bool overlapsRead = access.write && access.address < readEnd;
    if (overlapsWrite || overlapsRead)
      return "what it writes at " + addressName(access.address) +
             " overlaps with another operand";
    Address &end = access.write ? writeEnd : readEnd;
    end = std::max(end, access.address + access.bytes);
  }
  return "";
}
