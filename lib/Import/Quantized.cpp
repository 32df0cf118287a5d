//===- Quantized.cpp - Products of integers -------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products and convolutions of 8-bit integers: zero points are subtracted in
// i32, and what is computed there is brought back to 8 bits by a scale.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Formula.h"
#include "lib/Import/Window.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

namespace {
/// Builds with i32 what 8-bit operands mean.
struct Quantized {
  explicit Quantized(NodeContext &c) : c(c), f{c} {}

  NodeContext &c;
  Formula f;

  /// Input `i` less its zero point, input `zero`, where there is one; `dim` is
  /// the dimension that a vector of zero points belongs to.
  Value operand(unsigned i, unsigned zero, int64_t dim);
  /// `vector` with its only dimension as dimension `dim` of a tensor of `rank`.
  Value along(Value vector, int64_t dim, int64_t rank);
  /// round(sum * scale) + zero point, in the range of the element type `to`.
  Value requantize(Value sum, Value scale, unsigned zero, Type to);
};
} // namespace

Value Quantized::along(Value vector, int64_t dim, int64_t rank) {
  if (!vector || typeOf(vector).getRank() != 1 || shapeOf(vector)[0] == 1 ||
      dim < 0)
    return vector && typeOf(vector).getRank() == 1 && shapeOf(vector)[0] == 1
               ? c.reshape(vector, {})
               : vector;
  SmallVector<int64_t> shape(rank, 1);
  shape[dim] = shapeOf(vector)[0];
  return c.reshape(vector, shape);
}

Value Quantized::operand(unsigned i, unsigned zero, int64_t dim) {
  Value x = c.value(i);
  if (!x)
    return {};
  int64_t rank = typeOf(x).getRank();
  Value wide = f.cast(x, c.b.getI32Type());
  if (!c.has(zero))
    return wide;
  Value point = f.cast(c.value(zero), c.b.getI32Type());
  return f.sub(wide, along(point, dim < 0 ? rank + dim : dim, rank));
}

Value Quantized::requantize(Value sum, Value scale, unsigned zero, Type to) {
  auto integer = dyn_cast<IntegerType>(to);
  if (!integer || integer.getWidth() != 8) {
    (void)c.fail("its result does not have 8-bit elements");
    return {};
  }
  // The sum of products may have more digits than an f32.
  Type wide = c.b.getF64Type();
  Value y = c.emit<train::RoundOp>(f.mul(f.cast(sum, wide), scale));
  if (c.has(zero))
    y = f.add(y, f.cast(along(c.value(zero), -1, 1), wide));
  double low = integer.isUnsigned() ? 0 : -128;
  y = c.emit<train::MaxOp>({y, c.scalar(y, low)});
  y = c.emit<train::MinOp>({y, c.scalar(y, low + 255)});
  return f.cast(y, to);
}

/// The type of the result of a quantized operator: that of its zero point.
static Type resultType(NodeContext &c, unsigned zero) {
  Value value = c.value(c.has(zero) ? zero : 0);
  return value ? typeOf(value).getElementType() : Type();
}

/// x's scale * w's scale / y's scale, shaped to broadcast along `dim`.
static Value emitScale(Quantized &q, unsigned x, unsigned w, unsigned y,
                       int64_t dim, int64_t rank) {
  auto scale = [&](unsigned i, int64_t own) {
    return q.f.cast(q.along(q.c.value(i), own, rank), q.c.b.getF64Type());
  };
  return q.f.div(q.f.mul(scale(x, -1), scale(w, dim)), scale(y, -1));
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// A product of matrices or batches of them.
static Value emitProduct(Quantized &q, Value a, Value b) {
  if (!a || !b)
    return {};
  if (typeOf(a).getRank() < 2 || typeOf(b).getRank() < 2) {
    (void)q.c.fail("expects operands of rank 2 or more");
    return {};
  }
  return q.c.emit<train::MatmulOp>({a, b});
}

static LogicalResult importMatMulInteger(NodeContext &c) {
  Quantized q(c);
  return c.result(emitProduct(q, q.operand(0, 2, -2), q.operand(1, 3, -1)));
}

static LogicalResult importQLinearMatMul(NodeContext &c) {
  Quantized q(c);
  Value sum = emitProduct(q, q.operand(0, 2, -2), q.operand(3, 5, -1));
  if (!sum)
    return failure();
  int64_t rank = typeOf(sum).getRank();
  return c.result(q.requantize(sum, emitScale(q, 1, 4, 6, rank - 1, rank), 7,
                               resultType(c, 7)));
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

static Value emitConv(NodeContext &c, Value input, Value weight, Value bias) {
  if (!input || !weight)
    return {};
  int64_t rank = typeOf(input).getRank();
  if (rank < 3 || typeOf(weight).getRank() != rank) {
    (void)c.fail("expects an input and a weight of one rank, 3 or more");
    return {};
  }
  ArrayRef<int64_t> kernel = shapeOf(weight).drop_front(2);
  auto window = readPaddedWindow(c, shapeOf(input).drop_front(2), kernel);
  if (failed(window))
    return {};
  if (ArrayRef(window->kernel) != kernel) {
    (void)c.fail("its kernel_shape is not the weight's");
    return {};
  }
  SmallVector<Value> operands{input, weight};
  if (bias)
    operands.push_back(bias);
  return c.emit<train::ConvOp>(
      operands,
      {c.list("strides", window->strides), c.list("pads", window->pads),
       c.list("dilations", window->dilations),
       c.integer("group", c.node.intAttr("group", 1))});
}

static LogicalResult importConvInteger(NodeContext &c) {
  Quantized q(c);
  return c.result(emitConv(c, q.operand(0, 2, 1), q.operand(1, 3, 0), {}));
}

static LogicalResult importQLinearConv(NodeContext &c) {
  Quantized q(c);
  Value bias = c.has(8) ? c.value(8) : Value();
  Value sum = emitConv(c, q.operand(0, 2, 1), q.operand(3, 5, 0), bias);
  if (!sum)
    return failure();
  int64_t rank = typeOf(sum).getRank();
  return c.result(
      q.requantize(sum, emitScale(q, 1, 4, 6, 1, rank), 7, resultType(c, 7)));
}

void zero::onnx_import::addQuantizedHandlers(HandlerTable &table) {
  table["ConvInteger"] = {importConvInteger, 2, 10};
  table["MatMulInteger"] = {importMatMulInteger, 2, 10};
  table["QLinearConv"] = {importQLinearConv, 8, 10};
  table["QLinearMatMul"] = {importQLinearMatMul, 8, 10};
}
