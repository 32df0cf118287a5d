//===- NonZero.cpp - Lists of rows that the data select -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NonZero of data is as long as the data say. Here it is as long as it can get:
// the number of elements, or less where at most one of some elements is set, or
// where the user says so. What it finds comes first, in NonZero's order.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/GraphImporter.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

/// Which elements of `value` are not 0.
static Value isSet(NodeContext &c, Value value) {
  if (typeOf(value).getElementType().isInteger(1))
    return value;
  Value isZero = c.emit<train::EqualOp>({value, c.scalar(value, 0)});
  return c.emit<train::NotOp>(isZero);
}

/// 0, 1, ..., size - 1.
static Value counter(NodeContext &c, int64_t size) {
  HostTensor numbers(DType::I64, {size});
  for (int64_t i = 0; i < size; ++i)
    numbers.ints[i] = i;
  return c.constant(numbers);
}

/// The coordinates of all elements of `shape`, in order: [rank, elements].
static Value allCoordinates(NodeContext &c, ArrayRef<int64_t> shape) {
  int64_t rank = shape.size(), elements = *countElements(shape);
  HostTensor result(DType::I64, {rank, elements});
  SmallVector<int64_t> strides = stridesOf(shape);
  for (int64_t axis = 0; axis < rank; ++axis)
    for (int64_t i = 0; i < elements; ++i)
      result.ints[axis * elements + i] = i / strides[axis] % shape[axis];
  return c.constant(result);
}

namespace {
struct Rows {
  Value coordinates, mask;
};
} // namespace

/// The first `capacity` of the rows that count, and which of these there are.
static Rows firstRows(NodeContext &c, Rows all, int64_t capacity) {
  int64_t elements = shapeOf(all.mask)[0];
  Value ones = c.emit<train::CastOp>(
      all.mask,
      c.b.getNamedAttr("to", TypeAttr::get(c.b.getI64Type())));
  Value places = c.emit<train::CumulativeSumOp>(
      ones, {c.integer("axis", 0), c.flag("exclusive")});
  Value fits = c.emit<train::LessOp>({places, c.scalar(places, capacity)});
  Value kept = c.emit<train::AndOp>({all.mask, fits});
  places = c.emit<train::WhereOp>({kept, places, c.scalar(places, capacity)});
  HostTensor none(DType::I64, {capacity + 1});
  Value order = c.emit<train::ScatterOp>(
      {c.constant(none), places, counter(c, elements)},
      {c.integer("axis", 0),
       c.b.getNamedAttr("reduction", c.b.getStringAttr("none"))});
  order = c.emit<train::SliceOp>(
      order, {c.list("starts", {0}), c.list("limits", {capacity}),
              c.list("strides", {1})});
  Value count = c.emit<train::ReduceSumOp>(ones, c.list("axes", {0}));
  return {c.emit<train::GatherOp>({all.coordinates, order},
                                  c.integer("axis", 1)),
          c.emit<train::LessOp>({counter(c, capacity), count})};
}

static LogicalResult importNonZero(NodeContext &c) {
  Value value = c.value(0);
  if (!value)
    return failure();
  ArrayRef<int64_t> shape = shapeOf(value);
  int64_t elements = *countElements(shape), capacity = elements;
  int64_t room = c.hostBudget().room();
  if (shape.empty() || elements == 0 || elements > room / int64_t(shape.size()))
    return c.fail("is supported for tensors of 1 to " + Twine(room) +
                  " elements, not for scalars");
  if (std::optional<int64_t> axis = findExclusiveAxis(value))
    capacity = elements / shape[*axis];
  if (c.rowCapacity())
    capacity = std::min(capacity, *c.rowCapacity());
  Value mask = isSet(c, value);
  Rows rows{allCoordinates(c, shape),
            mask ? c.reshape(mask, {elements}) : Value()};
  if (capacity < elements)
    rows = firstRows(c, rows, capacity);
  if (!rows.coordinates || !rows.mask)
    return failure();
  return c.result(c.makeRowList(rows.coordinates, rows.mask));
}

void zero::onnx_import::addNonZeroHandlers(HandlerTable &table) {
  table["NonZero"] = {importNonZero, 1};
}
