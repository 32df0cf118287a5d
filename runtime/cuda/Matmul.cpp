//===- Matmul.cpp - Matrix products on a GPU ------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library function "matmul" by cuBLASLt: any strides, broadcast stacks and
// a bias of any broadcast shape. The library takes rows or columns that are
// consecutive, one stack dimension and a bias row as they are; the other cases
// are turned into those: an output of columns by transposing the product, a
// view without consecutive elements by packing it, further stack dimensions by
// several products, another bias by writing it into the output first.
//
// Sums are in f32 (f64 of f64) and are rounded once. f32 is multiplied as f32,
// unless the attribute "tf32" asks for less.
//
// Attributes may ask for more (see Epilogue). What the library has no algorithm
// for is done by kernels of ours behind the product.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/MatmulPlan.h"

#include "runtime/core/Error.h"
#include "runtime/cuda/Status.h"

#include <algorithm>
#include <optional>

using namespace zrt;
using namespace zrt::cuda;

namespace {
/// What the algorithm search may use; the largest that is chosen is allocated.
constexpr uint64_t mostWorkspace = 32 << 20;
constexpr uint64_t alignment = 256;

/// A stack of matrices: the last two dimensions are rows and columns.
struct Matrices {
  View view; // offset 0
  fb::DType type;
  Place place;

  size_t rank() const { return view.sizes.size(); }
  int64_t &size(size_t fromLast) { return view.sizes[rank() - 1 - fromLast]; }
  int64_t &stride(size_t fromLast) {
    return view.strides[rank() - 1 - fromLast];
  }
  int64_t size(size_t fromLast) const {
    return view.sizes[rank() - 1 - fromLast];
  }
  int64_t stride(size_t fromLast) const {
    return view.strides[rank() - 1 - fromLast];
  }
  void transpose() {
    std::swap(size(0), size(1));
    std::swap(stride(0), stride(1));
  }
  void dropDim(size_t dim) {
    view.sizes.erase(view.sizes.begin() + dim);
    view.strides.erase(view.strides.begin() + dim);
  }
  uint64_t bytes() const {
    return *elementCount(view.sizes) * elementBytes(type);
  }
  /// Rows (inner 0) or columns (inner 1) of consecutive elements.
  bool isConsecutive(size_t inner) const {
    size_t outer = 1 - inner;
    return (size(inner) == 1 || stride(inner) == 1) &&
           (size(outer) == 1 || stride(outer) >= size(inner));
  }
};

/// What is done beside the product, by attributes of the command. `pre` is what
/// a function is of, `dbias` the gradient of a bias; both have the result's
/// type and stand in front of it.
struct Epilogue {
  bool gelu = false, relu = false; ///< of the product and the bias
  bool aux = false;                ///< of gelu: `pre` is written as well
  bool geluGrad = false;           ///< product * gelu'(pre)
  bool biasGrad = false;  ///< of geluGrad: sums of the result's columns
  bool biasGradA = false; ///< sums of the rows of a
  bool biasGradB = false; ///< sums of the columns of b

  explicit Epilogue(const Command &command);
  bool any() const { return gelu || relu || geluGrad || sums(); }
  bool sums() const { return biasGrad || biasGradA || biasGradB; }
  bool usesPre() const { return aux || geluGrad; }
  size_t operands() const { return size_t(usesPre()) + size_t(sums()); }
  cublasLtEpilogue_t forLibrary(bool bias) const;
};

class MatmulBuilder {
public:
  explicit MatmulBuilder(const CallSite &site);
  std::unique_ptr<LibraryCall> build();

private:
  std::vector<Matrices *> all();
  void checkShapes() const;
  void chooseTypes();
  void simplify();
  bool merges(const Matrices &matrices, size_t dim, bool mayBroadcast) const;
  void mergeDims(size_t dim);
  Place workspace(uint64_t bytes);
  Matrices packed(const Matrices &matrices, fb::DType type);
  Matrices taken(const Matrices &matrices);
  bool takesBiasRow() const;
  void addBias();
  void addProducts();
  void addProducts(size_t product);
  void addParts(Product product);
  void addSums(const Matrices &from, size_t alongFromLast);
  Product describe() const;
  MatrixShape shapeOf(const Matrices &matrices, bool swapped) const;
  uint64_t alignmentOf(const Matrices &matrices) const;

  const CallSite &site;
  std::unique_ptr<MatmulCall> call = std::make_unique<MatmulCall>();
  const Epilogue epilogue;
  Matrices a, b, out;
  Matrices given[2]; // a and b before they are packed
  std::optional<Matrices> bias;
  CUdeviceptr pre = 0, dbias = 0;  // of the epilogue
  std::optional<Matrices> biasRow; // for the library
  fb::DType type = fb::DType_F32;  // of a and b
  bool addToOut = false;
};
} // namespace

static std::string shapeText(const View &view) {
  std::string text;
  for (int64_t size : view.sizes)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

Epilogue::Epilogue(const Command &command) {
  auto has = [&](const char *name) {
    std::vector<int64_t> values = command.ints(name);
    return !values.empty() && values[0] != 0;
  };
  gelu = has("gelu");
  relu = has("relu");
  aux = has("aux");
  geluGrad = has("gelu_grad");
  biasGrad = has("bias_grad");
  biasGradA = has("bias_grad_a");
  biasGradB = has("bias_grad_b");
}

cublasLtEpilogue_t Epilogue::forLibrary(bool bias) const {
  if (geluGrad)
    return biasGrad ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DGELU;
  // The library multiplies b by a: see MatmulBuilder::shapeOf.
  if (biasGradA)
    return CUBLASLT_EPILOGUE_BGRADB;
  if (biasGradB)
    return CUBLASLT_EPILOGUE_BGRADA;
  if (relu)
    return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  if (gelu && aux)
    return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  if (gelu)
    return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

MatmulBuilder::MatmulBuilder(const CallSite &site)
    : site(site), epilogue(site.command) {
  size_t count = site.operands.size(), extra = epilogue.operands();
  if (count != 3 + extra && count != 4 + extra)
    fail(ZRT_ERROR_FORMAT, "a matmul has ", 3 + extra, " or ", 4 + extra,
         " operands, not ", count);
  auto matrices = [&](size_t index) {
    const CallOperand &operand = site.operands[index];
    return Matrices{operand.view, operand.type, Place{false, operand.address}};
  };
  a = matrices(0);
  b = matrices(1);
  out = matrices(count - 1);
  if (count == 4 + extra)
    bias = matrices(2);
  if (epilogue.usesPre())
    pre = site.operands[count - 1 - extra].address;
  if (epilogue.sums())
    dbias = site.operands[count - 2].address;
  checkShapes();
  chooseTypes();
}

std::vector<Matrices *> MatmulBuilder::all() {
  std::vector<Matrices *> operands = {&a, &b, &out};
  if (bias)
    operands.push_back(&*bias);
  return operands;
}

void MatmulBuilder::checkShapes() const {
  size_t rank = out.rank();
  bool fits = rank >= 2 && a.rank() == rank && b.rank() == rank &&
              (!bias || bias->rank() == rank);
  fits = fits && a.size(1) == out.size(1) && b.size(0) == out.size(0) &&
         a.size(0) == b.size(1);
  for (size_t dim = 0; fits && dim < rank; ++dim) {
    int64_t size = out.view.sizes[dim];
    auto broadcasts = [&](const Matrices &matrices) {
      return matrices.view.sizes[dim] == 1 || matrices.view.sizes[dim] == size;
    };
    if (dim + 2 < rank)
      fits = broadcasts(a) && broadcasts(b);
    fits = fits && (!bias || broadcasts(*bias));
  }
  if (!fits)
    fail(ZRT_ERROR_FORMAT, "shapes do not fit: ", shapeText(a.view), " times ",
         shapeText(b.view), bias ? " plus " + shapeText(bias->view) : "",
         " is not ", shapeText(out.view));
}

void MatmulBuilder::chooseTypes() {
  for (const Matrices *matrices : all())
    if (!isFloat(matrices->type))
      fail(ZRT_ERROR_FORMAT, "a matmul of ", dtypeName(matrices->type),
           " is not possible; f64, f32, bf16 and f16 are");
  type = a.type == b.type ? a.type : fb::DType_F32;
}

/// Whether dimensions `dim` and `dim` + 1 step through memory as one.
bool MatmulBuilder::merges(const Matrices &matrices, size_t dim,
                           bool mayBroadcast) const {
  const View &view = matrices.view;
  if (view.sizes[dim] == 1 && view.sizes[dim + 1] == 1)
    return mayBroadcast;
  return view.sizes[dim] == out.view.sizes[dim] &&
         view.sizes[dim + 1] == out.view.sizes[dim + 1] &&
         view.strides[dim] == view.strides[dim + 1] * view.sizes[dim + 1];
}

/// Makes one dimension of `dim` and `dim` + 1.
void MatmulBuilder::mergeDims(size_t dim) {
  for (Matrices *matrices : all()) {
    matrices->view.sizes[dim + 1] *= matrices->view.sizes[dim];
    matrices->dropDim(dim);
  }
}

/// Brings the operands to the form with the fewest dimensions and with rows
/// of the output contiguous where that is possible.
void MatmulBuilder::simplify() {
  // Broadcast: one size-1 form for both ways of writing it.
  for (Matrices *matrices : all())
    for (size_t dim = 0; dim < matrices->rank(); ++dim)
      if (matrices->view.strides[dim] == 0 &&
          (dim + 2 < matrices->rank() || (bias && matrices == &*bias)))
        matrices->view.sizes[dim] = 1;
  for (size_t dim = 0; dim + 2 < out.rank();) {
    if (out.view.sizes[dim] != 1)
      ++dim;
    else
      for (Matrices *matrices : all())
        matrices->dropDim(dim);
  }
  // A stack of a that one b is for is one matrix.
  while (out.rank() > 2 && b.size(2) == 1 && merges(a, out.rank() - 3, false) &&
         merges(out, out.rank() - 3, false) &&
         (!bias || merges(*bias, out.rank() - 3, true)))
    mergeDims(out.rank() - 3);
  for (size_t dim = out.rank() - 2; dim-- > 1;) {
    bool together = true;
    for (Matrices *matrices : all())
      together = together && merges(*matrices, dim - 1, true);
    if (together)
      mergeDims(dim - 1);
  }
  // The library writes rows; an output of columns is the transposed product.
  if (!out.isConsecutive(0) && out.isConsecutive(1)) {
    for (Matrices *matrices : all())
      matrices->transpose();
    std::swap(a, b);
  }
}

Place MatmulBuilder::workspace(uint64_t bytes) {
  Place place{true, call->bytes};
  call->bytes += (bytes + alignment - 1) / alignment * alignment;
  return place;
}

/// Matrices like these in the workspace, without gaps.
Matrices MatmulBuilder::packed(const Matrices &matrices, fb::DType as) {
  Matrices result = matrices;
  result.view = contiguousView(matrices.view.sizes);
  result.type = as;
  result.place = workspace(result.bytes());
  return result;
}

/// An operand in the form that the library takes.
Matrices MatmulBuilder::taken(const Matrices &matrices) {
  if (matrices.type == type &&
      (matrices.isConsecutive(0) || matrices.isConsecutive(1)))
    return matrices;
  Matrices result = packed(matrices, type);
  call->addCopy(site.libraries.kernels(), matrices.view, matrices.type,
                matrices.place, result.view, result.type, result.place);
  return result;
}

/// The library reads a bias of one row, of the output's type, by vectors.
bool MatmulBuilder::takesBiasRow() const {
  const View &view = bias->view;
  for (size_t dim = 0; dim + 1 < view.sizes.size(); ++dim)
    if (view.sizes[dim] != 1)
      return false;
  return bias->type == out.type && bias->type != fb::DType_F64 &&
         bias->size(0) == out.size(0) &&
         (bias->size(0) == 1 || bias->stride(0) == 1) &&
         bias->place.value % 16 == 0;
}

void MatmulBuilder::addBias() {
  if (!bias)
    return;
  if (takesBiasRow()) {
    biasRow = bias;
    return;
  }
  addToOut = true;
  View spread = bias->view;
  for (size_t dim = 0; dim < spread.sizes.size(); ++dim)
    if (spread.sizes[dim] == 1)
      spread.strides[dim] = 0;
  spread.sizes = out.view.sizes;
  Place place = epilogue.aux ? Place{false, pre} : out.place;
  call->addCopy(site.libraries.kernels(), spread, bias->type, bias->place,
                out.view, out.type, place);
}

/// Row-major matrices are the transposed column-major ones that the library
/// knows: the rows of `matrices` are columns there. With `swapped` it is the
/// columns that are consecutive.
MatrixShape MatmulBuilder::shapeOf(const Matrices &matrices,
                                   bool swapped) const {
  MatrixShape shape;
  size_t inner = swapped ? 1 : 0;
  shape.type = matrices.type;
  shape.rows = matrices.size(inner);
  shape.columns = matrices.size(1 - inner);
  shape.leading = shape.columns == 1 ? shape.rows : matrices.stride(1 - inner);
  if (out.rank() > 2) {
    shape.batches = out.size(2);
    shape.batchStride = matrices.size(2) == 1 ? 0 : matrices.stride(2);
  }
  shape.alignment = alignmentOf(matrices);
  return shape;
}

/// Bytes, a power of two up to 256, that every matrix's address is a multiple
/// of.
uint64_t MatmulBuilder::alignmentOf(const Matrices &matrices) const {
  uint64_t bits = matrices.place.value | alignment;
  for (size_t dim = 0; dim + 3 < matrices.rank(); ++dim)
    bits |= uint64_t(matrices.view.strides[dim]) * elementBytes(matrices.type);
  return bits & -bits;
}

Product MatmulBuilder::describe() const {
  Product product;
  bool aSwapped = !b.isConsecutive(0), bSwapped = !a.isConsecutive(0);
  product.transposeA = aSwapped;
  product.transposeB = bSwapped;
  product.a = shapeOf(b, aSwapped);
  product.b = shapeOf(a, bSwapped);
  product.d = shapeOf(out, false);
  product.addToD = addToOut;
  std::vector<int64_t> tf32 = site.command.ints("tf32");
  product.tf32 = !tf32.empty() && tf32[0] != 0;
  product.bias = biasRow ? biasRow->place.value : dbias;
  product.auxiliary = pre;
  product.epilogue = epilogue.forLibrary(biasRow.has_value());
  return product;
}

/// Sums of the rows (0) or columns (1) of a matrix, to `dbias`.
void MatmulBuilder::addSums(const Matrices &from, size_t alongFromLast) {
  size_t other = 1 - alongFromLast;
  PreparedFunction sums = {};
  sums.from = from.place.value;
  sums.to = dbias;
  sums.count = from.size(other);
  sums.stride = from.stride(other);
  sums.terms = from.size(alongFromLast);
  sums.termStride = from.stride(alongFromLast);
  call->addFunction(
      site.libraries.kernels().prepareSums(from.type, out.type, sums));
}

/// The product with its bias, and the rest of the epilogue behind it.
void MatmulBuilder::addParts(Product product) {
  const DeviceKernels &kernels = site.libraries.kernels();
  Matrices result = out;
  if (epilogue.aux)
    out.place = {false, pre};
  product.d = shapeOf(out, false);
  product.epilogue =
      biasRow ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  product.bias = biasRow ? biasRow->place.value : 0;
  product.auxiliary = 0;
  std::optional<size_t> plain =
      call->addProduct(site.libraries, product, mostWorkspace);
  if (!plain)
    fail(ZRT_ERROR_EXECUTION, "cuBLASLt has no algorithm for ",
         shapeText(a.view), " ", dtypeName(a.type), " times ",
         shapeText(b.view), " to ", dtypeName(out.type));
  addProducts(*plain);
  auto apply = [&](const char *name, CUdeviceptr from) {
    call->addFunction(
        kernels.prepareFunction(name, out.type, from, result.place.value,
                                int64_t(*elementCount(out.view.sizes))));
  };
  if (epilogue.gelu || epilogue.relu)
    apply(epilogue.gelu ? "gelu" : "relu", out.place.value);
  if (epilogue.geluGrad)
    apply("gelu_grad", pre);
  if (epilogue.biasGrad)
    addSums(result, 1);
  if (epilogue.biasGradA)
    addSums(given[0], 0);
  if (epilogue.biasGradB)
    addSums(given[1], 1);
}

void MatmulBuilder::addProducts() {
  Product product = describe();
  std::optional<size_t> whole;
  // The library's functions come behind all sums: none is in the output before.
  if (!addToOut || !epilogue.any())
    whole = call->addProduct(site.libraries, product, mostWorkspace);
  if (whole)
    addProducts(*whole);
  else
    addParts(product);
}

/// One product for each place in the stack dimensions but the innermost.
void MatmulBuilder::addProducts(size_t product) {
  size_t loops = out.rank() > 3 ? out.rank() - 3 : 0;
  std::vector<int64_t> position(loops, 0);
  while (true) {
    auto at = [&](const Matrices &matrices) {
      Place place = matrices.place;
      for (size_t dim = 0; dim < loops; ++dim)
        if (matrices.view.sizes[dim] != 1)
          place.value += position[dim] * matrices.view.strides[dim] *
                         elementBytes(matrices.type);
      return place;
    };
    call->addRun(product, at(b), at(a), at(out));
    size_t dim = loops;
    while (dim > 0 && ++position[dim - 1] == out.view.sizes[dim - 1])
      position[--dim] = 0;
    if (dim == 0)
      return;
  }
}

/// What the library and our kernels for epilogues rely on.
static void checkEpilogue(const Matrices &a, const Matrices &b,
                          const Matrices &out) {
  if (out.rank() != 2 || !isContiguous(out.view) || a.type != b.type ||
      out.type == fb::DType_F64)
    fail(ZRT_ERROR_FORMAT, "a matmul with an epilogue takes two matrices of "
                           "one type to a contiguous one of f32, bf16 or f16");
}

std::unique_ptr<LibraryCall> MatmulBuilder::build() {
  if (*elementCount(out.view.sizes) == 0)
    return std::move(call);
  if (a.size(0) == 0)
    fail(ZRT_ERROR_FORMAT, "a matmul over 0 elements");
  if (epilogue.any())
    checkEpilogue(a, b, out);
  simplify();
  given[0] = a;
  given[1] = b;
  a = taken(a);
  b = taken(b);
  Matrices target = out;
  bool direct = out.isConsecutive(0) &&
                (out.type == type || out.type == fb::DType_F32) &&
                (out.type == fb::DType_F64) == (type == fb::DType_F64);
  if (!direct)
    out = packed(out, type == fb::DType_F64 ? type : fb::DType_F32);
  addBias();
  addProducts();
  if (!direct)
    call->addCopy(site.libraries.kernels(), out.view, out.type, out.place,
                  target.view, target.type, target.place);
  return std::move(call);
}

std::unique_ptr<LibraryCall> cuda::makeMatmul(const CallSite &site) {
  return MatmulBuilder(site).build();
}
