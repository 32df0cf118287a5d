//===- Matmul.cpp - Matrix products ---------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library function "matmul": any strides, broadcast stacks and a bias of
// any broadcast shape. oneDNN takes strided views and a bias row as they are;
// the other cases are turned into those: an output of columns by transposing
// the product, a view without consecutive elements by packing it, another bias
// by writing it into the output first.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/host/LibraryCall.h"

#include <algorithm>
#include <cstring>

using namespace zrt;

namespace {
/// A stack of matrices: the last two dimensions are rows and columns.
struct Matrices {
  View view;
  Place place;

  size_t rank() const { return view.sizes.size(); }
  int64_t &size(size_t fromLast) { return view.sizes[rank() - 1 - fromLast]; }
  int64_t &stride(size_t fromLast) {
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
};

class MatmulBuilder {
public:
  MatmulBuilder(const Command &command, const dnnl::engine &engine);
  LibraryCall build();

private:
  void checkShapes();
  void simplify();
  bool mergesIntoRows(Matrices &matrices, bool mayBroadcast);
  void pack(Matrices &matrices);
  void addProduct(bool nativeBias, bool addToOut);
  dnnl::matmul::primitive_desc describe(bool nativeBias, bool addToOut,
                                        size_t matrixRank) const;
  bool biasIsRow();

  const dnnl::engine &engine;
  LibraryCall call;
  Matrices a, b, out;
  std::optional<Matrices> bias;
};
} // namespace

/// A view whose offset has become part of the operand's address.
static Matrices operandMatrices(const Command &command, size_t index) {
  Matrices matrices{command.operands[index].view, {}};
  matrices.view.offset = 0;
  matrices.place.operand = index;
  return matrices;
}

MatmulBuilder::MatmulBuilder(const Command &command, const dnnl::engine &engine)
    : engine(engine) {
  size_t count = command.operands.size();
  if (count != 3 && count != 4)
    fail(ZRT_ERROR_FORMAT, "a matmul has 3 or 4 operands, not ", count);
  a = operandMatrices(command, 0);
  b = operandMatrices(command, 1);
  out = operandMatrices(command, count - 1);
  if (count == 4)
    bias = operandMatrices(command, 2);
  checkShapes();
}

void MatmulBuilder::checkShapes() {
  auto text = [](const Matrices &matrices) {
    std::string shape;
    for (int64_t size : matrices.view.sizes)
      shape += (shape.empty() ? "" : "x") + std::to_string(size);
    return shape;
  };
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
    fail(ZRT_ERROR_FORMAT, "shapes do not fit: ", text(a), " times ", text(b),
         bias ? " plus " + text(*bias) : "", " is not ", text(out));
}

/// True if the innermost stack dimension and the rows step through memory as
/// one dimension.
bool MatmulBuilder::mergesIntoRows(Matrices &matrices, bool mayBroadcast) {
  if (mayBroadcast && matrices.size(1) == 1 && matrices.size(2) == 1)
    return true;
  return matrices.size(1) == out.size(1) && matrices.size(2) == out.size(2) &&
         matrices.stride(2) == matrices.stride(1) * matrices.size(1);
}

/// Brings the operands to the form with the fewest dimensions and with rows
/// of the output contiguous where that is possible.
void MatmulBuilder::simplify() {
  std::vector<Matrices *> all = {&a, &b, &out};
  if (bias)
    all.push_back(&*bias);
  // Broadcast: one size-1 form for both ways of writing it.
  for (Matrices *matrices : all)
    for (size_t dim = 0; dim < matrices->rank(); ++dim)
      if (matrices->view.strides[dim] == 0 &&
          (dim + 2 < matrices->rank() || (bias && matrices == &*bias)))
        matrices->view.sizes[dim] = 1;
  for (size_t dim = 0; dim + 2 < out.rank();) {
    if (out.view.sizes[dim] != 1) {
      ++dim;
      continue;
    }
    for (Matrices *matrices : all)
      matrices->dropDim(dim);
  }
  while (out.rank() > 2 && b.size(2) == 1 && mergesIntoRows(a, false) &&
         mergesIntoRows(out, false) && (!bias || mergesIntoRows(*bias, true))) {
    for (Matrices *matrices : all) {
      if (matrices != &b)
        matrices->size(1) *= matrices->size(2);
      matrices->dropDim(matrices->rank() - 3);
    }
  }
  // The library writes rows; an output of columns is the transposed product.
  if (out.size(0) > 1 && out.stride(0) != 1 &&
      (out.size(1) == 1 || out.stride(1) == 1)) {
    for (Matrices *matrices : all)
      matrices->transpose();
    std::swap(a, b);
  }
}

/// Gives matrices without a dimension of consecutive elements a place in
/// scratch memory where they have one.
void MatmulBuilder::pack(Matrices &matrices) {
  auto consecutive = [&](size_t inner, size_t outer) {
    bool step = matrices.size(inner) == 1 || matrices.stride(inner) == 1;
    return step && (matrices.size(outer) == 1 ||
                    matrices.stride(outer) >= matrices.size(inner));
  };
  if (consecutive(0, 1) || consecutive(1, 0))
    return;
  View packed = contiguousView(matrices.view.sizes);
  Place place =
      call.scratch(*elementCount(matrices.view.sizes) * sizeof(float));
  call.addCopy(matrices.view, matrices.place, packed, place);
  matrices.view = packed;
  matrices.place = place;
}

bool MatmulBuilder::biasIsRow() {
  for (size_t fromLast = 1; fromLast < bias->rank(); ++fromLast)
    if (bias->size(fromLast) != 1)
      return false;
  return bias->size(0) == out.size(0) &&
         (bias->size(0) == 1 || bias->stride(0) == 1);
}

/// The last `rank` dimensions of a view for the library. A dimension of size
/// 1 gets the stride it would have in a plain layout.
static dnnl::memory::desc describeView(const View &view, size_t rank) {
  dnnl::memory::dims sizes(view.sizes.end() - rank, view.sizes.end());
  dnnl::memory::dims strides(view.strides.end() - rank, view.strides.end());
  int64_t &rowStride = strides[rank - 2], &columnStride = strides[rank - 1];
  if (sizes[rank - 1] == 1)
    columnStride = 1;
  if (sizes[rank - 2] == 1)
    rowStride = columnStride == 1 ? sizes[rank - 1] : 1;
  int64_t reach =
      std::max(rowStride * sizes[rank - 2], columnStride * sizes[rank - 1]);
  for (size_t dim = rank - 2; dim-- > 0;) {
    if (sizes[dim] == 1)
      strides[dim] = reach;
    reach = std::max(reach, strides[dim] * sizes[dim]);
  }
  return {sizes, dnnl::memory::data_type::f32, strides};
}

dnnl::matmul::primitive_desc MatmulBuilder::describe(bool nativeBias,
                                                     bool addToOut,
                                                     size_t matrixRank) const {
  dnnl::primitive_attr attr = primitiveAttr();
  if (addToOut) {
    dnnl::post_ops ops;
    ops.append_sum(1.0f);
    attr.set_post_ops(ops);
  }
  dnnl::memory::desc aDesc = describeView(a.view, matrixRank);
  dnnl::memory::desc bDesc = describeView(b.view, matrixRank);
  dnnl::memory::desc outDesc = describeView(out.view, matrixRank);
  if (!nativeBias)
    return {{aDesc, bDesc, outDesc}, attr, engine};
  return {{aDesc, bDesc, describeView(bias->view, matrixRank), outDesc},
          attr,
          engine};
}

static bool isSlow(const dnnl::matmul::primitive_desc &desc) {
  return std::strstr(desc.impl_info_str(), "ref") != nullptr;
}

void MatmulBuilder::addProduct(bool nativeBias, bool addToOut) {
  size_t rank = out.rank();
  auto desc = describe(nativeBias, addToOut, rank);
  // A stack the library has no fast code for is multiplied one by one.
  bool loop = rank > 2 && isSlow(desc);
  if (loop) {
    rank = 2;
    desc = describe(nativeBias, addToOut, rank);
  }
  auto arg = [&](int id, Matrices &matrices) {
    PrimitiveArg result{
        id, describeView(matrices.view, rank), matrices.place, {}};
    for (size_t dim = 0; loop && dim + 2 < out.rank(); ++dim)
      result.loopStrides.push_back(matrices.view.sizes[dim] == 1
                                       ? 0
                                       : matrices.view.strides[dim] *
                                             int64_t(sizeof(float)));
    return result;
  };
  std::vector<PrimitiveArg> args = {
      arg(DNNL_ARG_SRC, a), arg(DNNL_ARG_WEIGHTS, b), arg(DNNL_ARG_DST, out)};
  if (nativeBias)
    args.push_back(arg(DNNL_ARG_BIAS, *bias));
  std::vector<int64_t> loopSizes;
  if (loop)
    loopSizes.assign(out.view.sizes.begin(), out.view.sizes.end() - 2);
  call.addPrimitive(dnnl::matmul(desc), desc.scratchpad_desc(), std::move(args),
                    std::move(loopSizes));
}

LibraryCall MatmulBuilder::build() {
  simplify();
  pack(a);
  pack(b);
  Matrices target = out;
  bool unpack = out.size(0) > 1 && out.stride(0) != 1;
  if (unpack) {
    out.view = contiguousView(out.view.sizes);
    out.place = call.scratch(*elementCount(out.view.sizes) * sizeof(float));
  }
  bool nativeBias = bias && biasIsRow();
  bool addToOut = bias && !nativeBias;
  if (addToOut) {
    View spread = bias->view;
    for (size_t dim = 0; dim < spread.sizes.size(); ++dim)
      if (spread.sizes[dim] == 1)
        spread.strides[dim] = 0;
    spread.sizes = out.view.sizes;
    call.addCopy(spread, bias->place, out.view, out.place);
  }
  addProduct(nativeBias, addToOut);
  if (unpack)
    call.addCopy(out.view, out.place, target.view, target.place);
  return std::move(call);
}

LibraryCall zrt::makeMatmul(const Command &command,
                            const dnnl::engine &engine) {
  return MatmulBuilder(command, engine).build();
}
