//===- Casts.cpp - Casts and quantization ---------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators that change the element type. Quantization is a composition of
// core operations; its rounding stops the gradient.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Elementwise.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

/// The attributes that say how a value becomes a float of 8 bits.
static SmallVector<NamedAttribute> castAttributes(NodeContext &c, Type to) {
  SmallVector<NamedAttribute> attributes = {
      c.b.getNamedAttr("to", TypeAttr::get(to))};
  if (!c.node.intAttr("saturate", 1))
    attributes.push_back(c.flag("overflows"));
  std::string mode = c.node.stringAttr("round_mode", "up");
  if (mode != "up")
    attributes.push_back(
        c.b.getNamedAttr("round_scale", c.b.getStringAttr(mode)));
  return attributes;
}

static LogicalResult castTo(NodeContext &c, DType type) {
  Value value = c.value(0);
  Type element = toType(type, c.b.getContext());
  if (!value)
    return failure();
  if (typeOf(value).getElementType() == element)
    return c.result(value);
  return c.result(c.emit<train::CastOp>(value, castAttributes(c, element)));
}

static LogicalResult importCast(NodeContext &c) {
  FailureOr<DType> type = castTarget(c.node);
  return failed(type) ? failure() : castTo(c, *type);
}

/// Only the element type of the second input counts; its value may be unknown.
static LogicalResult importCastLike(NodeContext &c) {
  std::optional<DType> type = c.dtype(1);
  if (!type)
    return c.fail("its second input is not a tensor");
  const HostTensor *tensor = c.host(0);
  if (!tensor)
    return castTo(c, *type);
  FailureOr<CastRules> rules = castRules(c.node);
  if (failed(rules))
    return failure();
  c.set(0, castHost(*tensor, *type, *rules));
  return success();
}

/// Booleans are bytes of 0 and 1.
static LogicalResult importBitCast(NodeContext &c) {
  FailureOr<DType> type = castTarget(c.node);
  Value x = c.value(0);
  std::optional<DType> from = c.dtype(0);
  if (failed(type) || !x || !from)
    return failure();
  if (byteSize(*type) != byteSize(*from))
    return c.fail("its element types differ in width");
  if (*type == *from)
    return c.result(x);
  NamedAttribute to =
      c.b.getNamedAttr("to", TypeAttr::get(toType(*type, c.b.getContext())));
  if (*type == DType::Bool || *from == DType::Bool)
    return c.result(c.emit<train::CastOp>(x, to));
  return c.result(c.emit<train::BitcastOp>(x, to));
}

//===----------------------------------------------------------------------===//
// Quantization
//===----------------------------------------------------------------------===//

/// Repeats every element of `value` along `axis` so that it has `size` there.
static Value repeatBlocks(NodeContext &c, Value value, int64_t axis,
                          int64_t size) {
  SmallVector<int64_t> shape(shapeOf(value));
  int64_t blocks = shape[axis], block = c.node.intAttr("block_size", 0);
  if (block <= 0 || (size + block - 1) / block != blocks) {
    (void)c.fail("its block_size " + Twine(block) + " does not make " +
                 Twine(blocks) + " blocks of " + Twine(size) + " elements");
    return {};
  }
  SmallVector<int64_t> split(shape);
  split.insert(split.begin() + axis + 1, 1);
  value = c.reshape(value, split);
  split[axis + 1] = block;
  value = c.broadcast(value, split);
  shape[axis] = blocks * block;
  value = c.reshape(value, shape);
  if (shape[axis] == size)
    return value;
  // The last block is not whole.
  SmallVector<int64_t> starts(shape.size(), 0), strides(shape.size(), 1);
  shape[axis] = size;
  return c.emit<train::SliceOp>(value, {c.list("starts", starts),
                                        c.list("limits", shape),
                                        c.list("strides", strides)});
}

/// A scale or zero point in a shape that broadcasts to x: one number, one for
/// each index of the axis, or one for each block along it.
static Value spreadOver(NodeContext &c, Value value, ArrayRef<int64_t> shape) {
  if (!value)
    return {};
  ArrayRef<int64_t> own = shapeOf(value);
  int64_t rank = shape.size();
  if (own.empty() || own == ArrayRef<int64_t>{1})
    return c.reshape(value, {});
  int64_t axis = c.node.axis(c.node.intAttr("axis", rank > 1 ? 1 : 0), rank);
  if (c.node.failed())
    return {};
  if (c.node.intAttr("block_size", 0) && int64_t(own.size()) == rank)
    return repeatBlocks(c, value, axis, shape[axis]);
  if (own.size() != 1 || own[0] != shape[axis]) {
    (void)c.fail("its scale or zero point does not fit axis " + Twine(axis));
    return {};
  }
  SmallVector<int64_t> spread(rank - axis, 1);
  spread[0] = own[0];
  return c.reshape(value, spread);
}

/// The element type that attribute `name` or, without it, input `input` says.
static std::optional<DType> typeFrom(NodeContext &c, StringRef name,
                                     unsigned input) {
  if (int64_t number = c.node.intAttr(name, 0)) {
    std::optional<DType> type = dtypeFromOnnx(int32_t(number));
    if (!type)
      (void)c.fail(name + " is element type " + Twine(number) +
                   ", which is not supported");
    return type;
  }
  return c.has(input) ? c.dtype(input) : std::nullopt;
}

/// Rounds `x`, a float, to whole numbers of `type` around `zeroPoint`.
static Value quantize(NodeContext &c, Value x, Value zeroPoint, DType type) {
  Elements e{c};
  Type f32 = c.b.getF32Type(), element = toType(type, c.b.getContext());
  // f32 holds all that 16 bits do.
  if (isFloat(type)) {
    x = e.cast(x, f32);
    if (zeroPoint)
      x = e.add(x, e.cast(zeroPoint, f32));
    return x ? c.emit<train::CastOp>(x, castAttributes(c, element)) : Value();
  }
  x = e.cast(c.emit<train::RoundOp>(x), f32);
  if (zeroPoint)
    x = e.add(x, e.cast(zeroPoint, f32));
  // The cast gives what lies outside the nearest bound.
  return e.cast(x, element);
}

static LogicalResult importQuantizeLinear(NodeContext &c) {
  Elements e{c};
  Value x = c.value(0), scale = c.value(1), zeroPoint;
  if (c.has(2))
    zeroPoint = c.value(2);
  std::optional<DType> type = typeFrom(c, "output_dtype", 2);
  std::optional<DType> precision = typeFrom(c, "precision", 1);
  if (!x || !scale || !precision || c.node.failed())
    return failure();
  SmallVector<int64_t> shape(shapeOf(x));
  Type floats = toType(*precision, c.b.getContext());
  scale = spreadOver(c, e.cast(scale, floats), shape);
  if (zeroPoint)
    zeroPoint = spreadOver(c, zeroPoint, shape);
  Value scaled = e.div(e.cast(x, floats), scale);
  return c.result(quantize(c, scaled, zeroPoint, type.value_or(DType::U8)));
}

/// Computed in f32, or in f64 where 32 bits need it.
static LogicalResult importDequantizeLinear(NodeContext &c) {
  Elements e{c};
  Value x = c.value(0), scale = c.value(1);
  std::optional<DType> type = typeFrom(c, "output_dtype", 1);
  if (!x || !scale || !type)
    return failure();
  SmallVector<int64_t> shape(shapeOf(x));
  bool wide = typeOf(x).getElementType().getIntOrFloatBitWidth() > 16;
  Type floats = wide ? Type(c.b.getF64Type()) : Type(c.b.getF32Type());
  x = e.cast(x, floats);
  if (c.has(2))
    x = e.sub(x, spreadOver(c, e.cast(c.value(2), floats), shape));
  Value product = e.mul(x, spreadOver(c, e.cast(scale, floats), shape));
  return c.result(e.cast(product, toType(*type, c.b.getContext())));
}

/// The extreme of all elements and 0, by `OpTy` over all axes.
template <typename Reduce, typename Pick>
static Value extremeWithZero(NodeContext &c, Value x) {
  SmallVector<int64_t> axes;
  for (int64_t axis = 0, rank = shapeOf(x).size(); axis < rank; ++axis)
    axes.push_back(axis);
  Value extreme = c.emit<Reduce>(x, c.list("axes", axes));
  return c.emit<Pick>({extreme, c.scalar(x, 0)});
}

static LogicalResult importDynamicQuantizeLinear(NodeContext &c) {
  Elements e{c};
  Value x = c.value(0);
  if (!x)
    return failure();
  if (!typeOf(x).getElementType().isF32())
    return c.fail("expects a float32 input");
  Value low = extremeWithZero<train::ReduceMinOp, train::MinOp>(c, x);
  Value high = extremeWithZero<train::ReduceMaxOp, train::MaxOp>(c, x);
  Value scale = e.div(e.sub(high, low), 255.0);
  Value middle = e.clamp(e.div(c.emit<train::NegOp>(low), scale), 0, 255);
  Value zeroPoint = e.cast(c.emit<train::RoundOp>(middle),
                           toType(DType::U8, c.b.getContext()));
  Value y = quantize(c, e.div(x, scale), zeroPoint, DType::U8);
  if (!y)
    return failure();
  c.set(0, y);
  c.set(1, scale);
  c.set(2, zeroPoint);
  return success();
}

void zero::onnx_import::addCastHandlers(HandlerTable &table) {
  table["BitCast"] = {importBitCast, 1, 26};
  table["Cast"] = {importCast, 1};
  table["CastLike"] = {importCastLike, 2, 15};
  table["DequantizeLinear"] = {importDequantizeLinear, 2, 10};
  table["DynamicQuantizeLinear"] = {importDynamicQuantizeLinear, 1, 11};
  table["QuantizeLinear"] = {importQuantizeLinear, 2, 10};
}
