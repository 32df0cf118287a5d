//===- IndexMath.cpp - Positions computed by handlers ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arithmetic on indices, and what is taken by them.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/IndexMath.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

using Dims = SmallVector<int64_t>;

int64_t zero::onnx_import::product(ArrayRef<int64_t> sizes) {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

Value zero::onnx_import::castTo(NodeContext &c, Value value, Type type) {
  if (!value || typeOf(value).getElementType() == type)
    return value;
  return c.emit<train::CastOp>(value,
                               c.b.getNamedAttr("to", TypeAttr::get(type)));
}

Value zero::onnx_import::int64Constant(NodeContext &c, ArrayRef<int64_t> values,
                                       ArrayRef<int64_t> shape) {
  HostTensor tensor(DType::I64, shape);
  tensor.ints.assign(values.begin(), values.end());
  return c.constant(tensor);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Indices IndexMath::input(unsigned i) const {
  const HostTensor *known = c.host(i);
  if (known && !isFloat(known->type))
    return constant(castHost(*known, DType::I64));
  Value value = c.value(i);
  return {nullptr, castTo(c, value, c.b.getI64Type())};
}

Indices IndexMath::constant(HostTensor tensor) const {
  return {std::make_shared<HostTensor>(std::move(tensor)), Value()};
}

Indices IndexMath::counter(int64_t rank, int64_t axis, int64_t size,
                           int64_t step) const {
  Dims shape(rank, 1);
  shape[axis] = size;
  HostTensor tensor(DType::I64, shape);
  for (int64_t i = 0; i < size; ++i)
    tensor.ints[i] = i * step;
  return constant(std::move(tensor));
}

Value IndexMath::value(Indices a) const {
  return a.host ? c.constant(*a.host) : a.value;
}

/// `combine` of the elements that numpy's rules pair, where both are known; no
/// indices otherwise.
static Indices
combineKnown(const IndexMath &m, Indices a, Indices b,
             llvm::function_ref<int64_t(int64_t, int64_t)> combine) {
  if (!a.host || !b.host)
    return {};
  auto shape = broadcastShapes(a.host->shape, b.host->shape);
  if (!shape || !countElements(*shape) ||
      *countElements(*shape) > m.c.hostBudget().room())
    return {};
  HostTensor result(DType::I64, *shape);
  std::vector<int64_t> ia = broadcastIndices(a.host->shape, *shape);
  std::vector<int64_t> ib = broadcastIndices(b.host->shape, *shape);
  for (int64_t k = 0, n = result.size(); k < n; ++k)
    result.ints[k] = combine(a.host->ints[ia[k]], b.host->ints[ib[k]]);
  return m.constant(std::move(result));
}

// Sums and products of known indices wrap around like those of the program.
static int64_t addWrapping(int64_t a, int64_t b) {
  return int64_t(uint64_t(a) + uint64_t(b));
}
static int64_t mulWrapping(int64_t a, int64_t b) {
  return int64_t(uint64_t(a) * uint64_t(b));
}

Indices IndexMath::add(Indices a, Indices b) const {
  if (!a || !b)
    return {};
  if (Indices known = combineKnown(*this, a, b, addWrapping))
    return known;
  Value lhs = value(a), rhs = value(b);
  return {nullptr, c.emit<train::AddOp>({lhs, rhs})};
}

Indices IndexMath::mul(Indices a, Indices b) const {
  if (!a || !b)
    return {};
  if (Indices known = combineKnown(*this, a, b, mulWrapping))
    return known;
  Value lhs = value(a), rhs = value(b);
  return {nullptr, c.emit<train::MulOp>({lhs, rhs})};
}

Indices IndexMath::mul(Indices a, int64_t factor) const {
  HostTensor tensor(DType::I64, {});
  tensor.ints[0] = factor;
  return factor == 1 ? a : mul(a, constant(std::move(tensor)));
}

Indices IndexMath::wrap(Indices a, Indices sizes) const {
  if (!a || !sizes)
    return {};
  auto wrapOne = [](int64_t i, int64_t size) {
    return i < 0 ? addWrapping(i, size) : i;
  };
  if (Indices known = combineKnown(*this, a, sizes, wrapOne))
    return known;
  Value index = value(a), size = value(sizes);
  Value negative = c.emit<train::LessOp>({index, c.scalar(index, 0)});
  Value wrapped = c.emit<train::AddOp>({index, size});
  return {nullptr, c.emit<train::WhereOp>({negative, wrapped, index})};
}

Indices IndexMath::wrap(Indices a, int64_t size) const {
  HostTensor tensor(DType::I64, {});
  tensor.ints[0] = size;
  return wrap(a, constant(std::move(tensor)));
}

Indices IndexMath::sumLast(Indices a) const {
  if (!a)
    return {};
  ArrayRef<int64_t> outer = a.shape().drop_back();
  if (!a.host)
    return {nullptr, c.emit<train::ReduceSumOp>(
                         a.value, c.list("axes", int64_t(outer.size())))};
  HostTensor result(DType::I64, outer);
  int64_t depth = a.shape().back();
  for (int64_t k = 0, n = a.host->size(); k < n; ++k)
    result.ints[k / depth] =
        addWrapping(result.ints[k / depth], a.host->ints[k]);
  return constant(std::move(result));
}

Indices IndexMath::reshape(Indices a, ArrayRef<int64_t> shape) const {
  if (!a)
    return {};
  if (!a.host)
    return {nullptr, c.reshape(a.value, shape)};
  HostTensor result = *a.host;
  result.shape.assign(shape.begin(), shape.end());
  return constant(std::move(result));
}

//===----------------------------------------------------------------------===//
// Taking
//===----------------------------------------------------------------------===//

Value zero::onnx_import::slicePiece(NodeContext &c, Value value, int64_t axis,
                                    int64_t start, int64_t size,
                                    int64_t stride) {
  if (!value)
    return {};
  SmallVector<int64_t> starts(typeOf(value).getRank(), 0);
  SmallVector<int64_t> limits(shapeOf(value)), strides(starts.size(), 1);
  if (start == 0 && stride == 1 && size == limits[axis])
    return value;
  starts[axis] = start;
  limits[axis] = size ? start + (size - 1) * stride + 1 : start;
  strides[axis] = stride;
  return c.emit<train::SliceOp>(value, {c.list("starts", starts),
                                        c.list("limits", limits),
                                        c.list("strides", strides)});
}

Value zero::onnx_import::takeAlong(NodeContext &c, Value value, int64_t axis,
                                   ArrayRef<int64_t> positions) {
  int64_t count = positions.size();
  if (!value || count == 0)
    return slicePiece(c, value, axis, 0, 0);
  int64_t stride = count > 1 ? positions[1] - positions[0] : 1;
  bool isEven = stride > 0;
  for (int64_t i = 0; i < count; ++i)
    isEven = isEven && positions[i] == positions[0] + i * stride;
  if (isEven)
    return slicePiece(c, value, axis, positions[0], count, stride);
  Value places = int64Constant(c, positions, count);
  return c.emit<train::GatherOp>({value, places}, c.integer("axis", axis));
}

Value zero::onnx_import::gatherRows(NodeContext &c, Value data, int64_t depth,
                                    Indices rows) {
  if (!data || !rows)
    return {};
  ArrayRef<int64_t> shape = shapeOf(data);
  Dims flat = {product(shape.take_front(depth))};
  llvm::append_range(flat, shape.drop_front(depth));
  Value places = IndexMath{c}.value(rows);
  return c.emit<train::GatherOp>({c.reshape(data, flat), places},
                                 c.integer("axis", 0));
}
