//===- Random.cpp - Dropout and random operators --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every node that draws is a site of its own: its numbers depend on the run's
// seed, the step, the site and the sample. The attribute `seed` of ONNX, the
// same in every step, is not used.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/GraphImporter.h"

using namespace mlir;
using namespace mlir::zero;
using namespace mlir::zero::onnx_import;

//===----------------------------------------------------------------------===//
// What numbers depend on
//===----------------------------------------------------------------------===//

namespace {
/// The operands of a random operation.
struct Draw {
  Value key, firstSample;
};
} // namespace

/// The argument of the function that has the attribute `name` = `value`; a new
/// one, an i64, the first time.
static Value getArgument(NodeContext &c, StringRef name, Attribute value) {
  auto function =
      c.b.getInsertionBlock()->getParent()->getParentOfType<func::FuncOp>();
  for (BlockArgument argument : function.getArguments())
    if (function.getArgAttr(argument.getArgNumber(), name) == value)
      return argument;
  unsigned index = function.getNumArguments();
  auto type = RankedTensorType::get({}, c.b.getI64Type());
  auto attributes = c.b.getDictionaryAttr(c.b.getNamedAttr(name, value));
  if (failed(function.insertArgument(index, type, attributes, c.loc())))
    return {};
  return function.getArgument(index);
}

static Draw newSite(NodeContext &c) {
  // Steps draw numbers of their own.
  if (c.refuseLoop())
    return {};
  Value seed = getArgument(c, kHyperAttr, c.b.getStringAttr("seed"));
  Value step = getArgument(c, kHyperAttr, c.b.getStringAttr("step"));
  return {c.emit<train::RandomKeyOp>({seed, step},
                                     c.integer("site", c.newRandomSite())),
          getArgument(c, kFirstSampleAttr, c.b.getUnitAttr())};
}

template <typename Op>
static Value draw(NodeContext &c, Draw site, ArrayRef<int64_t> shape,
                  Type element) {
  return c.emit<Op>({site.key, site.firstSample},
                    {c.list("shape", shape),
                     c.b.getNamedAttr("element", TypeAttr::get(element))});
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

namespace {
struct DropoutMode {
  double ratio = 0.5;
  bool training = false;
};
} // namespace

static std::optional<DropoutMode> readMode(NodeContext &c) {
  DropoutMode mode;
  if (c.node.version() < 12) {
    mode.ratio = c.node.floatAttr("ratio", 0.5);
    mode.training =
        c.node.version() < 7 && c.node.intAttr("is_test", 0) == 0;
    return mode;
  }
  const HostTensor *ratio = c.host(1), *training = c.host(2);
  if ((c.has(1) && !ratio) || (c.has(2) && !training)) {
    c.node.error() << "its ratio and mode must be known at import";
    return std::nullopt;
  }
  if (ratio && ratio->size() == 1)
    mode.ratio = ratio->number(0);
  mode.training = training && training->size() == 1 && training->number(0) != 0;
  return mode;
}

/// The mask of before operator set 10 has the type of the data.
static Value castMask(NodeContext &c, Value mask, Value like) {
  if (!mask || c.node.version() >= 10)
    return mask;
  return c.emit<train::CastOp>(
      mask, c.b.getNamedAttr(
                "to", TypeAttr::get(typeOf(like).getElementType())));
}

static LogicalResult setMask(NodeContext &c, Value mask, Value like) {
  if (Value result = castMask(c, mask, like)) {
    c.set(1, result);
    return success();
  }
  return failure();
}

/// Nothing is dropped.
static LogicalResult importIdentity(NodeContext &c) {
  c.set(0, c.binding(0));
  if (c.numResults() < 2 || !c.isUsed(1))
    return success();
  Value x = c.value(0);
  if (!x)
    return failure();
  HostTensor one(DType::Bool, {});
  one.setInt(0, 1);
  return setMask(c, c.broadcast(c.constant(one), shapeOf(x)), x);
}

static LogicalResult importDropout(NodeContext &c) {
  std::optional<DropoutMode> mode = readMode(c);
  if (!mode)
    return failure();
  if (!mode->training || mode->ratio == 0)
    return importIdentity(c);
  if (!(mode->ratio > 0 && mode->ratio < 1))
    return c.fail("its ratio is " + std::to_string(mode->ratio) +
                  ", expected one in [0, 1)");
  Value x = c.value(0);
  if (!x)
    return failure();
  if (!isa<FloatType>(typeOf(x).getElementType()))
    return c.fail("expects a float input");
  Draw site = newSite(c);
  Value dropped = c.emit<train::DropoutOp>({x, site.key, site.firstSample},
                                           c.number("ratio", mode->ratio));
  if (failed(c.result(dropped)) || c.numResults() < 2 || !c.isUsed(1))
    return success(dropped != nullptr);
  Value drawn = draw<train::RandomUniformOp>(c, site, shapeOf(x),
                                             c.b.getF32Type());
  Value stays =
      c.emit<train::GreaterEqualOp>({drawn, c.scalar(drawn, mode->ratio)});
  return stays ? setMask(c, stays, x) : failure();
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

/// The type that the attribute `dtype` says, `fallback` without it.
static std::optional<DType> readType(NodeContext &c,
                                     std::optional<DType> fallback) {
  if (!c.node.hasAttr("dtype") && fallback)
    return fallback;
  int64_t number = c.node.intAttr("dtype", onnx::TensorProto::FLOAT);
  std::optional<DType> type = dtypeFromOnnx(int32_t(number));
  if (!type)
    c.node.error() << "has dtype " << number << ", which is not supported";
  return type;
}

/// Shape and type of the result: of input 0 in the forms with one.
static LogicalResult readResult(NodeContext &c, SmallVector<int64_t> &shape,
                                Type &element) {
  std::optional<DType> type;
  if (c.has(0)) {
    if (!c.shape(0))
      return c.fail("its input is not a tensor");
    shape = *c.shape(0);
    type = readType(c, c.dtype(0));
  } else {
    shape = c.node.intsAttr("shape");
    type = readType(c, std::nullopt);
  }
  if (!type)
    return failure();
  element = toType(*type, c.b.getContext());
  if (!isa<FloatType>(element))
    return c.fail("draws floats; its dtype is no float type");
  return success();
}

/// `scale` * (random numbers) + `offset`.
template <typename Op>
static LogicalResult importRandom(NodeContext &c, double scale, double offset) {
  SmallVector<int64_t> shape;
  Type element;
  if (failed(readResult(c, shape, element)))
    return failure();
  Value drawn = draw<Op>(c, newSite(c), shape, element);
  if (drawn && scale != 1)
    drawn = c.emit<train::MulOp>({drawn, c.scalar(drawn, scale)});
  if (drawn && offset != 0)
    drawn = c.emit<train::AddOp>({drawn, c.scalar(drawn, offset)});
  return c.result(drawn);
}

static LogicalResult importUniform(NodeContext &c) {
  double low = c.node.floatAttr("low", 0), high = c.node.floatAttr("high", 1);
  return importRandom<train::RandomUniformOp>(c, high - low, low);
}

static LogicalResult importNormal(NodeContext &c) {
  return importRandom<train::RandomNormalOp>(c, c.node.floatAttr("scale", 1),
                                             c.node.floatAttr("mean", 0));
}

/// Ones with the probabilities that the input is.
static LogicalResult importBernoulli(NodeContext &c) {
  Value probability = c.value(0);
  if (!probability)
    return failure();
  std::optional<DType> type = readType(c, c.dtype(0));
  if (!type)
    return failure();
  if (!isa<FloatType>(typeOf(probability).getElementType()))
    return c.fail("expects a float input");
  Type wide = typeOf(probability).getElementType().isF64() ? c.b.getF64Type()
                                                           : c.b.getF32Type();
  Value drawn = draw<train::RandomUniformOp>(c, newSite(c),
                                             shapeOf(probability), wide);
  if (typeOf(probability).getElementType() != wide)
    probability = c.emit<train::CastOp>(
        probability, c.b.getNamedAttr("to", TypeAttr::get(wide)));
  Value one = c.emit<train::LessOp>({drawn, probability});
  if (!one || *type == DType::Bool)
    return c.result(one);
  Type element = toType(*type, c.b.getContext());
  return c.result(c.emit<train::CastOp>(
      one, c.b.getNamedAttr("to", TypeAttr::get(element))));
}

/// Classes drawn by the logarithms of their weights, [batch, classes]: how many
/// classes have a running sum of probabilities that a uniform number reaches.
static LogicalResult importMultinomial(NodeContext &c) {
  Value weights = c.value(0);
  if (!weights)
    return failure();
  int64_t number = c.node.intAttr("dtype", onnx::TensorProto::INT32);
  int64_t count = c.node.intAttr("sample_size", 1);
  std::optional<DType> type = dtypeFromOnnx(int32_t(number));
  if (!type || (type != DType::I32 && type != DType::I64))
    return c.fail("draws classes as int32 or int64, not as dtype " +
                  std::to_string(number));
  SmallVector<int64_t> shape(shapeOf(weights));
  if (shape.size() != 2 || !isa<FloatType>(typeOf(weights).getElementType()) ||
      shape[1] < 1 || count < 1)
    return c.fail("expects floats of batch and classes, and a sample_size of "
                  "at least 1");
  Type wide = c.b.getF32Type(), integer = c.b.getI64Type();
  auto cast = [&](Value x, Type to) {
    return c.emit<train::CastOp>(x,
                                 c.b.getNamedAttr("to", TypeAttr::get(to)));
  };
  Value sums = c.emit<train::CumulativeSumOp>(
      c.emit<train::SoftmaxOp>(cast(weights, wide), c.integer("axis", 1)),
      c.integer("axis", 1));
  if (!sums)
    return failure();
  Value drawn = draw<train::RandomUniformOp>(c, newSite(c),
                                             {shape[0], count, 1}, wide);
  Value reached = c.emit<train::GreaterEqualOp>(
      {drawn, c.reshape(sums, {shape[0], 1, shape[1]})});
  Value classes = c.emit<train::ReduceSumOp>(cast(reached, integer),
                                             c.list("axes", {2}));
  if (!classes)
    return failure();
  // The last sum may be below 1.
  classes =
      c.emit<train::MinOp>({classes, c.scalar(classes, double(shape[1] - 1))});
  return c.result(
      type == DType::I64 ? classes : cast(classes, c.b.getI32Type()));
}

void zero::onnx_import::addRandomHandlers(HandlerTable &table) {
  table["Bernoulli"] = {importBernoulli, 1, 15};
  table["Dropout"] = {importDropout, 1};
  table["Multinomial"] = {importMultinomial, 1, 7};
  table["RandomNormal"] = {importNormal};
  table["RandomNormalLike"] = {importNormal, 1};
  table["RandomUniform"] = {importUniform};
  table["RandomUniformLike"] = {importUniform, 1};
}
