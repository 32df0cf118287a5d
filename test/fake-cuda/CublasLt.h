//===- CublasLt.h - Matrix products of the fake cuBLASLt ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the descriptors of cublasLt.h hold, and a product made of them. The
// structs lie in the library's opaque ones, as those may be on the stack.
//
// Known are f32, f64, bf16 and f16, sums in f32 (f64 of f64), rows or columns
// that are consecutive, strided batches and the epilogues of
// epilogueName().
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_CUBLASLT_H
#define ZERO_TEST_FAKECUDA_CUBLASLT_H

#include "test/fake-cuda/Queue.h"

#include <cublasLt.h>

#include <string>
#include <vector>

namespace fake_cuda::blas {

struct Layout {
  uint64_t magic;
  int32_t type, order;
  uint64_t rows, columns;
  int64_t leading;
  int64_t batchStride; // elements
  int32_t batches;
};

struct MatmulDesc {
  uint64_t magic;
  int32_t compute, scaleType;
  int32_t transA, transB;
  uint32_t epilogue;
  int32_t biasType, auxType; // -1: that of D
  Address bias, aux;
  int64_t biasBatchStride, auxLeading, auxBatchStride;
};

struct Preference {
  uint64_t magic;
  uint64_t maxWorkspace;
  uint32_t alignment[4]; // A, B, C, D; bytes
};

/// What the heuristic found; the product checks that it is used for the same.
struct Algorithm {
  uint64_t magic;
  uint64_t workspace;
  uint32_t alignment[4];
  uint64_t problem; // a hash of descriptor and layouts
};

static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t));
static_assert(sizeof(MatmulDesc) <= sizeof(cublasLtMatmulDescOpaque_t));
static_assert(sizeof(Preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t));
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

/// D = epilogue(alpha * op(A) * op(B) + beta * C)
struct Problem {
  MatmulDesc desc;
  Layout a, b, c, d;

  uint64_t m() const { return d.rows; }
  uint64_t n() const { return d.columns; }
  uint64_t k() const { return desc.transA == CUBLAS_OP_N ? a.columns : a.rows; }
  int32_t biasType() const {
    return desc.biasType < 0 ? d.type : desc.biasType;
  }
  int32_t auxType() const { return desc.auxType < 0 ? d.type : desc.auxType; }
  bool addsBias() const { return desc.epilogue & 4; }
  bool writesBias() const {
    return desc.epilogue &
           (16 | CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB);
  }
  bool usesAux() const { return desc.epilogue & 128; }
  bool isGelu() const { return desc.epilogue & CUBLASLT_EPILOGUE_GELU; }
  bool isGeluGradient() const { return desc.epilogue & 64; }
  uint64_t biasElements() const {
    return desc.epilogue == CUBLASLT_EPILOGUE_BGRADB ? n() : m();
  }

  /// Whether the real library has it: "" or why not.
  std::string check() const;
  uint64_t hash() const;
};

struct Operands {
  Address a, b, c, d, workspace;
  uint64_t workspaceBytes;
  double alpha, beta;
};

uint64_t elementBytes(int32_t type);
const char *typeName(int32_t type);
const char *epilogueName(uint32_t epilogue);

/// Ranges that the product reads and writes.
std::vector<Access> accessesOf(const Problem &problem,
                               const Operands &operands);
/// "" or what two operands have in common that they must not.
std::string findOverlap(const Problem &problem, Operands operands);
/// Computes it. Within Work::run only.
void multiply(const Problem &problem, const Operands &operands);

} // namespace fake_cuda::blas

#endif // ZERO_TEST_FAKECUDA_CUBLASLT_H
