//===- CublasLt.cpp - The calls of the fake cuBLASLt ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the real library would refuse, or what this one does not know, is one
// line on stderr and a status; nothing is ignored.
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/CublasLt.h"
#include "test/fake-cuda/Environment.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

using namespace fake_cuda;
using namespace fake_cuda::blas;

struct cublasLtContext {
  uint64_t magic;
  int device;
};

static constexpr uint64_t kHandleMagic = 0x4842'4C54'0001;
static constexpr uint64_t kLayoutMagic = 0x4842'4C54'0002;
static constexpr uint64_t kDescMagic = 0x4842'4C54'0003;
static constexpr uint64_t kPreferenceMagic = 0x4842'4C54'0004;
static constexpr uint64_t kAlgorithmMagic = 0x4842'4C54'0005;

static cublasStatus_t refuse(const char *function, const std::string &why,
                             cublasStatus_t status) {
  fail(std::string(function) + ": " + why);
  return status;
}

static cublasStatus_t invalid(const char *function, const std::string &why) {
  return refuse(function, why, CUBLAS_STATUS_INVALID_VALUE);
}

/// Handles and descriptors that were created and not destroyed.
static std::atomic<int64_t> living{0};

static std::string leaksAtExit() {
  int64_t count = living;
  return count ? std::to_string(count) +
                     " handle or descriptor of cuBLASLt not destroyed"
               : "";
}

template <typename T>
static T *as(void *opaque, uint64_t magic) {
  auto *held = static_cast<T *>(opaque);
  return held && held->magic == magic ? held : nullptr;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

namespace {
/// Where an attribute lies in its struct; `only`: the one value that is
/// supported, not stored.
struct Attribute {
  int number;
  const char *name;
  size_t bytes;
  ptrdiff_t offset; // -1: fixed
  int64_t only = 0;
};
} // namespace

static const Attribute kLayoutAttributes[] = {
    {CUBLASLT_MATRIX_LAYOUT_TYPE, "TYPE", 4, offsetof(Layout, type)},
    {CUBLASLT_MATRIX_LAYOUT_ORDER, "ORDER", 4, offsetof(Layout, order)},
    {CUBLASLT_MATRIX_LAYOUT_ROWS, "ROWS", 8, offsetof(Layout, rows)},
    {CUBLASLT_MATRIX_LAYOUT_COLS, "COLS", 8, offsetof(Layout, columns)},
    {CUBLASLT_MATRIX_LAYOUT_LD, "LD", 8, offsetof(Layout, leading)},
    {CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, "BATCH_COUNT", 4,
     offsetof(Layout, batches)},
    {CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, "STRIDED_BATCH_OFFSET", 8,
     offsetof(Layout, batchStride)},
    {CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, "PLANE_OFFSET", 8, -1},
};

static const Attribute kDescAttributes[] = {
    {CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, "COMPUTE_TYPE", 4,
     offsetof(MatmulDesc, compute)},
    {CUBLASLT_MATMUL_DESC_SCALE_TYPE, "SCALE_TYPE", 4,
     offsetof(MatmulDesc, scaleType)},
    {CUBLASLT_MATMUL_DESC_POINTER_MODE, "POINTER_MODE", 4, -1,
     CUBLASLT_POINTER_MODE_HOST},
    {CUBLASLT_MATMUL_DESC_TRANSA, "TRANSA", 4, offsetof(MatmulDesc, transA)},
    {CUBLASLT_MATMUL_DESC_TRANSB, "TRANSB", 4, offsetof(MatmulDesc, transB)},
    {CUBLASLT_MATMUL_DESC_TRANSC, "TRANSC", 4, -1, CUBLAS_OP_N},
    {CUBLASLT_MATMUL_DESC_FILL_MODE, "FILL_MODE", 4, -1, CUBLAS_FILL_MODE_FULL},
    {CUBLASLT_MATMUL_DESC_EPILOGUE, "EPILOGUE", 4,
     offsetof(MatmulDesc, epilogue)},
    {CUBLASLT_MATMUL_DESC_BIAS_POINTER, "BIAS_POINTER", 8,
     offsetof(MatmulDesc, bias)},
    {CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, "BIAS_BATCH_STRIDE", 8,
     offsetof(MatmulDesc, biasBatchStride)},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, "EPILOGUE_AUX_POINTER", 8,
     offsetof(MatmulDesc, aux)},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, "EPILOGUE_AUX_LD", 8,
     offsetof(MatmulDesc, auxLeading)},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE,
     "EPILOGUE_AUX_BATCH_STRIDE", 8, offsetof(MatmulDesc, auxBatchStride)},
    {CUBLASLT_MATMUL_DESC_FAST_ACCUM, "FAST_ACCUM", 1, -1},
    {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, "BIAS_DATA_TYPE", 4,
     offsetof(MatmulDesc, biasType)},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, "EPILOGUE_AUX_DATA_TYPE", 4,
     offsetof(MatmulDesc, auxType)},
};

static const Attribute kPreferenceAttributes[] = {
    {CUBLASLT_MATMUL_PREF_SEARCH_MODE, "SEARCH_MODE", 4, -1,
     CUBLASLT_SEARCH_BEST_FIT},
    {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, "MAX_WORKSPACE_BYTES", 8,
     offsetof(Preference, maxWorkspace)},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, "MIN_ALIGNMENT_A_BYTES", 4,
     offsetof(Preference, alignment[0])},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, "MIN_ALIGNMENT_B_BYTES", 4,
     offsetof(Preference, alignment[1])},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, "MIN_ALIGNMENT_C_BYTES", 4,
     offsetof(Preference, alignment[2])},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, "MIN_ALIGNMENT_D_BYTES", 4,
     offsetof(Preference, alignment[3])},
};

template <size_t count>
static cublasStatus_t setAttribute(const char *function, void *object,
                                   const Attribute (&attributes)[count],
                                   int number, const void *value,
                                   size_t bytes) {
  if (!object || !value)
    return invalid(function, "no such descriptor, or no value");
  for (const Attribute &attribute : attributes) {
    if (attribute.number != number)
      continue;
    if (attribute.bytes != bytes)
      return invalid(function, std::string("attribute ") + attribute.name +
                                   " has " + std::to_string(attribute.bytes) +
                                   " bytes, not " + std::to_string(bytes));
    if (attribute.offset >= 0)
      std::memcpy(static_cast<char *>(object) + attribute.offset, value, bytes);
    else if (std::memcmp(value, &attribute.only, bytes) != 0)
      return refuse(function,
                    std::string("attribute ") + attribute.name +
                        " is supported with its default only",
                    CUBLAS_STATUS_NOT_SUPPORTED);
    return CUBLAS_STATUS_SUCCESS;
  }
  return refuse(function,
                "attribute " + std::to_string(number) +
                    " is not known to the fake library",
                CUBLAS_STATUS_NOT_SUPPORTED);
}

template <size_t count>
static cublasStatus_t getAttribute(const char *function, const void *object,
                                   const Attribute (&attributes)[count],
                                   int number, void *value, size_t bytes,
                                   size_t *written) {
  if (!object)
    return invalid(function, "no such descriptor");
  for (const Attribute &attribute : attributes) {
    if (attribute.number != number)
      continue;
    if (written)
      *written = attribute.bytes;
    if (bytes == 0 && written)
      return CUBLAS_STATUS_SUCCESS;
    if (bytes != attribute.bytes || !value)
      return invalid(function, std::string("attribute ") + attribute.name +
                                   " has " + std::to_string(attribute.bytes) +
                                   " bytes, not " + std::to_string(bytes));
    if (attribute.offset >= 0)
      std::memcpy(value, static_cast<const char *>(object) + attribute.offset,
                  bytes);
    else
      std::memcpy(value, &attribute.only, bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  return refuse(function,
                "attribute " + std::to_string(number) +
                    " is not known to the fake library",
                CUBLAS_STATUS_NOT_SUPPORTED);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static std::string makeProblem(void *desc, void *a, void *b, void *c, void *d,
                               Problem &problem) {
  auto *held = as<MatmulDesc>(desc, kDescMagic);
  if (!held)
    return "no such matmul descriptor";
  problem.desc = *held;
  const std::pair<void *, Layout *> layouts[] = {
      {a, &problem.a}, {b, &problem.b}, {c, &problem.c}, {d, &problem.d}};
  for (auto [opaque, layout] : layouts) {
    auto *found = as<Layout>(opaque, kLayoutMagic);
    if (!found)
      return "no such matrix layout";
    *layout = *found;
  }
  return problem.check();
}

/// Big products ask for some workspace, that its use is tested.
static uint64_t workspaceFor(const Problem &problem, uint64_t most) {
  uint64_t wanted = problem.k() >= 32 ? 64 * problem.m() : 0;
  return std::min<uint64_t>(most, (wanted + 255) / 256 * 256);
}

static std::string checkAlignment(const Algorithm &algorithm,
                                  const Problem &problem,
                                  const Operands &operands) {
  const char *names[] = {"A", "B", "C", "D"};
  const Address addresses[] = {operands.a, operands.b, operands.c, operands.d};
  for (int i = 0; i < 4; ++i)
    if (addresses[i] % algorithm.alignment[i])
      return std::string("matrix ") + names[i] + " at " +
             addressName(addresses[i]) + " is not aligned to " +
             std::to_string(algorithm.alignment[i]) +
             " bytes, as the heuristic was told";
  if (operands.workspaceBytes && operands.workspace % 16)
    return "the workspace is not aligned to 16 bytes";
  if ((problem.addsBias() || problem.writesBias()) &&
      (!problem.desc.bias ||
       problem.desc.bias % elementBytes(problem.biasType())))
    return "the bias is missing or not aligned";
  if (problem.usesAux() && (!problem.desc.aux || problem.desc.aux % 16))
    return "the auxiliary matrix is missing or not aligned to 16 bytes";
  return "";
}

/// What holds of this very call: addresses, algorithm, workspace. Leaves of the
/// workspace what the algorithm needs.
static std::string checkCall(const Problem &problem, Operands &operands,
                             const cublasLtMatmulAlgo_t *algo) {
  if (!operands.a || !operands.b || !operands.d ||
      (operands.beta != 0 && !operands.c))
    return "a matrix has no address";
  Algorithm algorithm{kAlgorithmMagic, 0, {}, problem.hash()};
  for (int i = 0; i < 4; ++i)
    algorithm.alignment[i] = elementBytes((i < 2 ? problem.a : problem.d).type);
  if (algo)
    std::memcpy(&algorithm, algo, sizeof algorithm);
  if (algorithm.magic != kAlgorithmMagic)
    return "the algorithm is none that the heuristic has given";
  if (algorithm.problem != problem.hash())
    return "the algorithm was chosen for another product";
  if (operands.workspaceBytes < algorithm.workspace)
    return "the workspace has " + std::to_string(operands.workspaceBytes) +
           " bytes, but the algorithm needs " +
           std::to_string(algorithm.workspace);
  operands.workspaceBytes = algorithm.workspace;
  return checkAlignment(algorithm, problem, operands);
}

static std::string describe(const Problem &problem, const Operands &operands) {
  std::string text =
      std::to_string(problem.m()) + "x" + std::to_string(problem.n()) + "x" +
      std::to_string(problem.k()) + " " + typeName(problem.a.type) + " to " +
      typeName(problem.d.type);
  if (problem.d.batches > 1)
    text += ", batch " + std::to_string(problem.d.batches);
  if (problem.desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32)
    text += ", tf32";
  if (problem.desc.transA != CUBLAS_OP_N)
    text += ", A transposed";
  if (problem.desc.transB != CUBLAS_OP_N)
    text += ", B transposed";
  if (operands.beta != 0)
    text += ", added to C";
  if (problem.desc.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
    text += std::string(", epilogue ") + epilogueName(problem.desc.epilogue);
  return text;
}

static double scaleFactor(const void *value, int32_t type) {
  if (type == CUDA_R_64F)
    return *static_cast<const double *>(value);
  return *static_cast<const float *>(value);
}

static Address addressOf(const void *pointer) {
  return reinterpret_cast<Address>(pointer);
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  log("cublasLtCreate()");
  if (!injectedFault("cublasLtCreate").empty())
    return CUBLAS_STATUS_NOT_INITIALIZED;
  int device = deviceOf(nullptr);
  if (device < 0)
    return refuse("cublasLtCreate", "there is no current context",
                  CUBLAS_STATUS_NOT_INITIALIZED);
  static const bool isChecked = (addExitCheck(leaksAtExit), true);
  living += isChecked;
  *handle = reinterpret_cast<cublasLtHandle_t>(
      new cublasLtContext{kHandleMagic, device});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  log("cublasLtDestroy()");
  auto *context = as<cublasLtContext>(handle, kHandleMagic);
  if (!context)
    return invalid("cublasLtDestroy", "no such handle");
  context->magic = 0;
  --living;
  delete context;
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void) { return CUBLAS_VERSION; }

const char *cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return "CUBLAS_STATUS_SUCCESS";
  case CUBLAS_STATUS_NOT_INITIALIZED:
    return "CUBLAS_STATUS_NOT_INITIALIZED";
  case CUBLAS_STATUS_INVALID_VALUE:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case CUBLAS_STATUS_EXECUTION_FAILED:
    return "CUBLAS_STATUS_EXECUTION_FAILED";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  default:
    return "unknown cuBLAS status";
  }
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
  return cublasLtGetStatusName(status);
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t opaque,
                                                 size_t size, cudaDataType type,
                                                 uint64_t rows,
                                                 uint64_t columns,
                                                 int64_t leading) {
  if (size < sizeof(Layout))
    return CUBLAS_STATUS_ALLOC_FAILED;
  Layout layout{
      kLayoutMagic, type, CUBLASLT_ORDER_COL, rows, columns, leading, 0, 1};
  std::memcpy(static_cast<void *>(opaque), &layout, sizeof layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout,
                                          cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  ++living;
  *layout = new cublasLtMatrixLayoutOpaque_t;
  return cublasLtMatrixLayoutInit_internal(*layout, sizeof **layout, type, rows,
                                           columns, leading);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  if (!as<Layout>(layout, kLayoutMagic))
    return invalid("cublasLtMatrixLayoutDestroy", "no such matrix layout");
  as<Layout>(layout, kLayoutMagic)->magic = 0;
  --living;
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                 cublasLtMatrixLayoutAttribute_t attribute,
                                 const void *value, size_t bytes) {
  return setAttribute("cublasLtMatrixLayoutSetAttribute",
                      as<Layout>(layout, kLayoutMagic), kLayoutAttributes,
                      attribute, value, bytes);
}

cublasStatus_t
cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                 cublasLtMatrixLayoutAttribute_t attribute,
                                 void *value, size_t bytes, size_t *written) {
  return getAttribute("cublasLtMatrixLayoutGetAttribute",
                      as<Layout>(layout, kLayoutMagic), kLayoutAttributes,
                      attribute, value, bytes, written);
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t opaque,
                                               size_t size,
                                               cublasComputeType_t compute,
                                               cudaDataType_t scaleType) {
  if (size < sizeof(MatmulDesc))
    return CUBLAS_STATUS_ALLOC_FAILED;
  MatmulDesc desc{};
  desc.magic = kDescMagic;
  desc.compute = compute;
  desc.scaleType = scaleType;
  desc.transA = desc.transB = CUBLAS_OP_N;
  desc.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  desc.biasType = desc.auxType = -1;
  std::memcpy(static_cast<void *>(opaque), &desc, sizeof desc);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc,
                                        cublasComputeType_t compute,
                                        cudaDataType_t scaleType) {
  ++living;
  *desc = new cublasLtMatmulDescOpaque_t;
  return cublasLtMatmulDescInit_internal(*desc, sizeof **desc, compute,
                                         scaleType);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  if (!as<MatmulDesc>(desc, kDescMagic))
    return invalid("cublasLtMatmulDescDestroy", "no such matmul descriptor");
  as<MatmulDesc>(desc, kDescMagic)->magic = 0;
  --living;
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                               cublasLtMatmulDescAttributes_t attribute,
                               const void *value, size_t bytes) {
  return setAttribute("cublasLtMatmulDescSetAttribute",
                      as<MatmulDesc>(desc, kDescMagic), kDescAttributes,
                      attribute, value, bytes);
}

cublasStatus_t
cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t desc,
                               cublasLtMatmulDescAttributes_t attribute,
                               void *value, size_t bytes, size_t *written) {
  return getAttribute("cublasLtMatmulDescGetAttribute",
                      as<MatmulDesc>(desc, kDescMagic), kDescAttributes,
                      attribute, value, bytes, written);
}

cublasStatus_t
cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t opaque,
                                      size_t size) {
  if (size < sizeof(Preference))
    return CUBLAS_STATUS_ALLOC_FAILED;
  Preference preference{kPreferenceMagic, 0, {256, 256, 256, 256}};
  std::memcpy(static_cast<void *>(opaque), &preference, sizeof preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  ++living;
  *preference = new cublasLtMatmulPreferenceOpaque_t;
  return cublasLtMatmulPreferenceInit_internal(*preference,
                                               sizeof **preference);
}

cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  if (!as<Preference>(preference, kPreferenceMagic))
    return invalid("cublasLtMatmulPreferenceDestroy", "no such preference");
  as<Preference>(preference, kPreferenceMagic)->magic = 0;
  --living;
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t preference,
    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
    size_t bytes) {
  return setAttribute("cublasLtMatmulPreferenceSetAttribute",
                      as<Preference>(preference, kPreferenceMagic),
                      kPreferenceAttributes, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t opaque, int requested,
    cublasLtMatmulHeuristicResult_t results[], int *returned) {
  const char *function = "cublasLtMatmulAlgoGetHeuristic";
  if (!injectedFault(function).empty())
    return CUBLAS_STATUS_NOT_SUPPORTED;
  auto *preference = as<Preference>(opaque, kPreferenceMagic);
  if (!as<cublasLtContext>(handle, kHandleMagic) || !preference ||
      requested < 1 || !results || !returned)
    return invalid(function, "no such handle or preference, or no room");
  Problem problem;
  std::string wrong = makeProblem(desc, a, b, c, d, problem);
  *returned = 0;
  if (!wrong.empty())
    return refuse(function, wrong, CUBLAS_STATUS_NOT_SUPPORTED);
  Algorithm algorithm{};
  algorithm.magic = kAlgorithmMagic;
  algorithm.workspace = workspaceFor(problem, preference->maxWorkspace);
  std::memcpy(algorithm.alignment, preference->alignment,
              sizeof algorithm.alignment);
  algorithm.problem = problem.hash();
  results[0] = {};
  std::memcpy(&results[0].algo, &algorithm, sizeof algorithm);
  results[0].workspaceSize = algorithm.workspace;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].wavesCount = 1;
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
               const void *alpha, const void *a, cublasLtMatrixLayout_t aLayout,
               const void *b, cublasLtMatrixLayout_t bLayout, const void *beta,
               const void *c, cublasLtMatrixLayout_t cLayout, void *d,
               cublasLtMatrixLayout_t dLayout, const cublasLtMatmulAlgo_t *algo,
               void *workspace, size_t workspaceBytes, cudaStream_t stream) {
  const char *function = "cublasLtMatmul";
  if (!injectedFault(function).empty())
    return CUBLAS_STATUS_EXECUTION_FAILED;
  auto *context = as<cublasLtContext>(handle, kHandleMagic);
  if (!context || !alpha || !beta)
    return invalid(function, "no such handle, or no alpha or beta");
  if (deviceOf(stream) != context->device)
    return invalid(function, "the stream is none of the handle's device");
  Problem problem;
  std::string wrong =
      makeProblem(desc, aLayout, bLayout, cLayout, dLayout, problem);
  if (!wrong.empty())
    return invalid(function, wrong);
  Operands operands{addressOf(a),
                    addressOf(b),
                    addressOf(c),
                    addressOf(d),
                    addressOf(workspace),
                    workspace ? workspaceBytes : 0,
                    scaleFactor(alpha, problem.desc.scaleType),
                    scaleFactor(beta, problem.desc.scaleType)};
  wrong = checkCall(problem, operands, algo);
  if (wrong.empty())
    wrong = findOverlap(problem, operands);
  std::string text = describe(problem, operands);
  if (!wrong.empty())
    return invalid(function, text + ": " + wrong);
  log("cublasLtMatmul(%s, %s)", text.c_str(), streamName(stream).c_str());
  CUresult result =
      enqueue(stream, {"cublasLtMatmul " + text, accessesOf(problem, operands),
                       [problem, operands] {
                         multiply(problem, operands);
                         return std::string();
                       }});
  return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS
                                : CUBLAS_STATUS_EXECUTION_FAILED;
}

} // extern "C"
