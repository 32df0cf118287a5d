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
// A product with operands in bf16 or f16 is computed block by block, so that
// what is widened to f32 at a time has a size of its own. Each element of the
// result is one sum in f32 over all of k, rounded once.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/host/LibraryCall.h"

#include <algorithm>
#include <cstring>

using namespace zrt;

namespace {
/// A stack of matrices: the last two dimensions are rows and columns.
struct Matrices : Stored {
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
  /// Keeps `count` of the rows (fromLast 1) or columns (0) from `begin` on; all
  /// of a broadcast dimension.
  void cut(size_t fromLast, int64_t begin, int64_t count) {
    if (size(fromLast) == 1)
      return;
    size(fromLast) = count;
    place.byteOffset += begin * stride(fromLast) * elementBytes(type);
  }
  bool isConsecutive() const;
};

/// A product, or a block of one.
struct Product {
  Matrices a, b, out;
  std::optional<Matrices> bias;
};

/// Scratch memory that the blocks of one operand share: the first is the
/// largest.
using Room = std::optional<Place>;

class MatmulBuilder : Product {
public:
  MatmulBuilder(const Command &command, const std::vector<fb::DType> &types,
                const dnnl::engine &engine);
  LibraryCall build();

private:
  void checkShapes();
  void simplify();
  bool mergesIntoRows(Matrices &matrices, bool mayBroadcast);
  std::vector<Matrices *> all();
  bool isNarrow();
  bool isSlowStack() const;
  void loopOverStack();
  Matrices inScratch(const Matrices &matrices, Room &room);
  Matrices taken(const Matrices &matrices, Room &room);
  void addBlocks();
  void addBlock(Product block);
  void addProduct(const Product &block, bool addToOut);
  dnnl::matmul::primitive_desc describe(const Product &block,
                                        bool addToOut) const;

  const dnnl::engine &engine;
  LibraryCall call;
  Room aRoom, bRoom, biasRoom, outRoom;
};
} // namespace

/// A view whose offset has become part of the operand's address.
static Matrices operandMatrices(const Command &command,
                                const std::vector<fb::DType> &types,
                                size_t index) {
  Matrices matrices{{command.operands[index].view, {}, types[index]}};
  matrices.view.offset = 0;
  matrices.place.operand = index;
  return matrices;
}

MatmulBuilder::MatmulBuilder(const Command &command,
                             const std::vector<fb::DType> &types,
                             const dnnl::engine &engine)
    : engine(engine) {
  size_t count = command.operands.size();
  if (count != 3 && count != 4)
    fail(ZRT_ERROR_FORMAT, "a matmul has 3 or 4 operands, not ", count);
  a = operandMatrices(command, types, 0);
  b = operandMatrices(command, types, 1);
  out = operandMatrices(command, types, count - 1);
  if (count == 4)
    bias = operandMatrices(command, types, 2);
  checkShapes();
}

std::vector<Matrices *> MatmulBuilder::all() {
  std::vector<Matrices *> operands = {&a, &b, &out};
  if (bias)
    operands.push_back(&*bias);
  return operands;
}

bool MatmulBuilder::isNarrow() {
  for (Matrices *matrices : all())
    if (matrices->type != fb::DType_F32)
      return true;
  return false;
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
  std::vector<Matrices *> operands = all();
  // Broadcast: one size-1 form for both ways of writing it.
  for (Matrices *matrices : operands)
    for (size_t dim = 0; dim < matrices->rank(); ++dim)
      if (matrices->view.strides[dim] == 0 &&
          (dim + 2 < matrices->rank() || (bias && matrices == &*bias)))
        matrices->view.sizes[dim] = 1;
  for (size_t dim = 0; dim + 2 < out.rank();) {
    if (out.view.sizes[dim] != 1) {
      ++dim;
      continue;
    }
    for (Matrices *matrices : operands)
      matrices->dropDim(dim);
  }
  while (out.rank() > 2 && b.size(2) == 1 && mergesIntoRows(a, false) &&
         mergesIntoRows(out, false) && (!bias || mergesIntoRows(*bias, true))) {
    for (Matrices *matrices : operands) {
      if (matrices != &b)
        matrices->size(1) *= matrices->size(2);
      matrices->dropDim(matrices->rank() - 3);
    }
  }
  // The library writes rows; an output of columns is the transposed product.
  if (out.size(0) > 1 && out.stride(0) != 1 &&
      (out.size(1) == 1 || out.stride(1) == 1)) {
    for (Matrices *matrices : operands)
      matrices->transpose();
    std::swap(a, b);
  }
}

bool Matrices::isConsecutive() const {
  auto consecutive = [&](size_t inner, size_t outer) {
    size_t last = rank() - 1;
    int64_t size = view.sizes[last - inner], steps = view.sizes[last - outer];
    bool step = size == 1 || view.strides[last - inner] == 1;
    return step && (steps == 1 || view.strides[last - outer] >= size);
  };
  return consecutive(0, 1) || consecutive(1, 0);
}

/// Matrices like these in scratch memory, in f32 and without gaps; the rows or
/// the columns are consecutive, as they were.
Matrices MatmulBuilder::inScratch(const Matrices &matrices, Room &room) {
  if (!room)
    room = call.scratch(*elementCount(matrices.view.sizes) * sizeof(float));
  Matrices packed = matrices;
  bool columns = packed.size(1) > 1 && packed.stride(1) == 1;
  if (columns)
    packed.transpose();
  packed.view = contiguousView(packed.view.sizes);
  if (columns)
    packed.transpose();
  packed.place = *room;
  packed.type = fb::DType_F32;
  return packed;
}

/// An operand in the form that the library takes.
Matrices MatmulBuilder::taken(const Matrices &matrices, Room &room) {
  if (matrices.type == fb::DType_F32 && matrices.isConsecutive())
    return matrices;
  Matrices packed = inScratch(matrices, room);
  call.addCopy(matrices, packed);
  return packed;
}

static bool biasIsRow(const Product &block) {
  const View &bias = block.bias->view;
  for (size_t dim = 0; dim + 1 < bias.sizes.size(); ++dim)
    if (bias.sizes[dim] != 1)
      return false;
  return bias.sizes.back() == block.out.view.sizes.back() &&
         (bias.sizes.back() == 1 || bias.strides.back() == 1);
}

/// A view for the library. A dimension of size 1 gets the stride it would have
/// in a plain layout.
static dnnl::memory::desc describeView(const View &view) {
  size_t rank = view.sizes.size();
  dnnl::memory::dims sizes = view.sizes, strides = view.strides;
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

/// The primitive for operands that are in the form it takes.
dnnl::matmul::primitive_desc MatmulBuilder::describe(const Product &block,
                                                     bool addToOut) const {
  dnnl::primitive_attr attr = primitiveAttr();
  if (addToOut) {
    dnnl::post_ops ops;
    ops.append_sum(1.0f);
    attr.set_post_ops(ops);
  }
  dnnl::memory::desc aDesc = describeView(block.a.view);
  dnnl::memory::desc bDesc = describeView(block.b.view);
  dnnl::memory::desc outDesc = describeView(block.out.view);
  if (!block.bias || addToOut)
    return {{aDesc, bDesc, outDesc}, attr, engine};
  return {
      {aDesc, bDesc, describeView(block.bias->view), outDesc}, attr, engine};
}

/// Whether the library has no fast code for the stack as a whole.
bool MatmulBuilder::isSlowStack() const {
  Product packed = *this;
  for (Matrices *matrices : {&packed.a, &packed.b, &packed.out})
    if (!matrices->isConsecutive())
      matrices->view = contiguousView(matrices->view.sizes);
  bool addToOut = bias && !biasIsRow(packed);
  return std::strstr(describe(packed, addToOut).impl_info_str(), "ref");
}

/// The matrices of a stack one by one.
void MatmulBuilder::loopOverStack() {
  size_t stack = out.rank() - 2;
  call.loop.assign(out.view.sizes.begin(), out.view.sizes.end() - 2);
  for (Matrices *matrices : all())
    for (size_t dim = 0; dim < stack; ++dim) {
      bool repeats = matrices->view.sizes[0] == 1;
      auto bytes = int64_t(elementBytes(matrices->type));
      matrices->place.loopStrides.push_back(
          repeats ? 0 : matrices->view.strides[0] * bytes);
      matrices->dropDim(0);
    }
}

void MatmulBuilder::addProduct(const Product &block, bool addToOut) {
  auto desc = describe(block, addToOut);
  auto arg = [](int id, const Matrices &matrices) {
    return PrimitiveArg{id, describeView(matrices.view), matrices.place};
  };
  std::vector<PrimitiveArg> args = {arg(DNNL_ARG_SRC, block.a),
                                    arg(DNNL_ARG_WEIGHTS, block.b),
                                    arg(DNNL_ARG_DST, block.out)};
  if (block.bias && !addToOut)
    args.push_back(arg(DNNL_ARG_BIAS, *block.bias));
  call.addPrimitive(dnnl::matmul(desc), desc.scratchpad_desc(),
                    std::move(args));
}

/// Adds a product whose `a` and `b` are in the form the library takes.
void MatmulBuilder::addBlock(Product block) {
  Matrices target = block.out;
  bool isRows = target.size(0) == 1 || target.stride(0) == 1;
  bool unpack = !isRows || target.type != fb::DType_F32;
  if (unpack) {
    block.out = inScratch(target, outRoom);
    block.out.view = contiguousView(target.view.sizes);
  }
  bool addToOut = block.bias && !biasIsRow(block);
  if (addToOut) {
    Matrices spread = *block.bias;
    for (size_t dim = 0; dim < spread.rank(); ++dim)
      if (spread.view.sizes[dim] == 1)
        spread.view.strides[dim] = 0;
    spread.view.sizes = block.out.view.sizes;
    call.addCopy(spread, block.out);
  } else if (block.bias) {
    block.bias = taken(*block.bias, biasRoom);
  }
  addProduct(block, addToOut);
  if (unpack)
    call.addCopy(block.out, target);
}

/// Elements of an operand that are in f32 at a time.
constexpr int64_t panelElements = int64_t(1) << 22;

/// How many of `size` rows of `width` elements make a panel.
static int64_t blockOf(int64_t size, int64_t width) {
  int64_t rows = panelElements / width / 64 * 64;
  return std::min(size, std::max<int64_t>(rows, 64));
}

/// The product in blocks of the result, over all of k. `a` is widened once
/// where it is one panel, else once for each block of columns.
void MatmulBuilder::addBlocks() {
  int64_t rows = blockOf(out.size(1), std::max<int64_t>(a.size(0), 2048));
  int64_t columns = blockOf(out.size(0), std::max(a.size(0), rows));
  Product whole = *this;
  if (rows == out.size(1))
    whole.a = taken(a, aRoom);
  for (int64_t column = 0; column < out.size(0); column += columns) {
    int64_t width = std::min(columns, out.size(0) - column);
    Product panel = whole;
    panel.b.cut(0, column, width);
    panel.out.cut(0, column, width);
    if (bias)
      panel.bias->cut(0, column, width);
    panel.b = taken(panel.b, bRoom);
    for (int64_t row = 0; row < out.size(1); row += rows) {
      int64_t height = std::min(rows, out.size(1) - row);
      Product block = panel;
      block.a.cut(1, row, height);
      block.out.cut(1, row, height);
      if (bias)
        block.bias->cut(1, row, height);
      block.a = taken(block.a, aRoom);
      addBlock(block);
    }
  }
}

LibraryCall MatmulBuilder::build() {
  simplify();
  bool narrow = isNarrow();
  if (out.rank() > 2 && (narrow || isSlowStack()))
    loopOverStack();
  if (narrow) {
    addBlocks();
  } else {
    a = taken(a, aRoom);
    b = taken(b, bRoom);
    addBlock(*this);
  }
  return std::move(call);
}

LibraryCall zrt::makeMatmul(const Command &command,
                            const std::vector<fb::DType> &types,
                            const dnnl::engine &engine) {
  return MatmulBuilder(command, types, engine).build();
}
