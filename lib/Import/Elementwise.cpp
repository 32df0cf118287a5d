//===- Elementwise.cpp - Elementwise operators ----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators that map elements, with numpy's broadcast rules.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/GraphImporter.h"

#include <cmath>

using namespace mlir;
using namespace mlir::zero::onnx_import;

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Whether all elements along dimension `d` are equal.
static bool isUniformAlong(const HostTensor &tensor, int64_t d) {
  int64_t stride = stridesOf(tensor.shape)[d], dim = tensor.shape[d];
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (i / stride % dim == 0)
      continue;
    if (isFloat(tensor.type)
            ? memcmp(&tensor.floats[i], &tensor.floats[i - stride], 8)
            : tensor.ints[i] != tensor.ints[i - stride])
      return false;
  }
  return true;
}

HostTensor zero::onnx_import::compactFor(const HostTensor &tensor,
                                         ArrayRef<int64_t> others) {
  HostTensor result = tensor;
  for (int64_t d = 0; d < tensor.rank(); ++d) {
    int64_t back = tensor.rank() - d;
    if (back > int64_t(others.size()) || result.shape[d] == 1 ||
        others[others.size() - back] != result.shape[d] ||
        !isUniformAlong(result, d))
      continue;
    SmallVector<int64_t, 4> shape(result.shape);
    shape[d] = 1;
    std::vector<int64_t> indices;
    int64_t stride = stridesOf(result.shape)[d], dim = result.shape[d];
    for (int64_t i = 0; i < result.size(); ++i)
      if (i / stride % dim == 0)
        indices.push_back(i);
    result = result.take(shape, indices);
  }
  while (result.rank() && result.shape[0] == 1 &&
         result.rank() <= int64_t(others.size()))
    result.shape.erase(result.shape.begin());
  return result;
}

/// What the other inputs broadcast to, if all are tensors that fit.
static std::optional<SmallVector<int64_t>> otherShapes(NodeContext &c,
                                                       unsigned i) {
  std::optional<SmallVector<int64_t>> others = SmallVector<int64_t>();
  for (unsigned k = 0; k < c.numInputs() && others; ++k) {
    if (k == i)
      continue;
    auto shape = c.has(k) ? c.shape(k) : std::nullopt;
    if (!shape)
      return std::nullopt;
    others = broadcastShapes(*others, *shape);
  }
  return others;
}

/// Input `i` as a value, a constant in its compact form.
static Value operand(NodeContext &c, unsigned i) {
  const HostTensor *tensor = c.host(i);
  auto others = otherShapes(c, i);
  if (!tensor || !tensor->size() || !others)
    return c.value(i);
  HostTensor small = compactFor(*tensor, *others);
  return c.staysInFile(i, small.size()) ? c.value(i) : c.constant(small);
}

/// All inputs as values; empty after an error.
static SmallVector<Value> operands(NodeContext &c) {
  SmallVector<Value> values;
  for (unsigned i = 0; i < c.numInputs(); ++i) {
    values.push_back(operand(c, i));
    if (!values.back())
      return {};
  }
  return values;
}

//===----------------------------------------------------------------------===//
// Operators with an operation of their own
//===----------------------------------------------------------------------===//

template <typename OpTy>
static LogicalResult unary(NodeContext &c) {
  return c.result(c.emit<OpTy>(c.value(0)));
}

template <typename OpTy>
static LogicalResult binary(NodeContext &c) {
  SmallVector<Value> values = operands(c);
  if (values.size() != 2)
    return values.empty() ? failure() : c.fail("expects two inputs");
  return c.result(c.emit<OpTy>(values));
}

/// Max, Min and Sum of any number of inputs: a chain.
template <typename OpTy>
static LogicalResult variadic(NodeContext &c) {
  SmallVector<Value> values = operands(c);
  if (values.empty())
    return failure();
  Value total = values[0];
  for (Value value : ArrayRef(values).drop_front())
    total = c.emit<OpTy>({total, value});
  return c.result(total);
}

static LogicalResult importMul(NodeContext &c) {
  if (failed(binary<train::MulOp>(c)))
    return failure();
  Value product = c.made(0);
  Value gelu = product ? matchGelu(c, product) : Value();
  return gelu ? c.result(gelu) : success();
}

static LogicalResult importWhere(NodeContext &c) {
  SmallVector<Value> values = operands(c);
  if (values.size() != 3)
    return values.empty() ? failure() : c.fail("expects three inputs");
  return c.result(c.emit<train::WhereOp>(values));
}

//===----------------------------------------------------------------------===//
// Add: a bias joins the matrix product before it
//===----------------------------------------------------------------------===//

/// The matrix product that `value` is, through a reshape that only splits its
/// rows; null if it is none.
static train::MatmulOp productBehind(Value value) {
  if (auto reshape = value.getDefiningOp<train::ReshapeOp>()) {
    value = reshape.getInput();
    if (shapeOf(value).back() != shapeOf(reshape).back())
      return {};
  }
  auto product = value.getDefiningOp<train::MatmulOp>();
  return product && shapeOf(product.getLhs()).size() == 2 &&
                 shapeOf(product.getRhs()).size() == 2
             ? product
             : train::MatmulOp();
}

/// x @ w + b as one gemm, where nothing else uses x @ w.
static Value fuseBias(NodeContext &c, ArrayRef<Value> values) {
  for (unsigned i = 0; i < 2; ++i) {
    Value product = values[i], bias = values[1 - i];
    ArrayRef<int64_t> shape = shapeOf(product);
    if (c.usesOfInput(i) != 1 || shape.empty() ||
        shapeOf(bias) != ArrayRef<int64_t>{shape.back()})
      continue;
    train::MatmulOp matmul = productBehind(product);
    if (!matmul)
      continue;
    SmallVector<NamedAttribute> flags;
    if (matmul.getTransposeA())
      flags.push_back(c.flag("transpose_a"));
    if (matmul.getTransposeB())
      flags.push_back(c.flag("transpose_b"));
    Value gemm =
        c.emit<train::GemmOp>({matmul.getLhs(), matmul.getRhs(), bias}, flags);
    return c.reshape(gemm, shape);
  }
  return {};
}

static LogicalResult importAdd(NodeContext &c) {
  SmallVector<Value> values = operands(c);
  if (values.size() != 2)
    return values.empty() ? failure() : c.fail("expects two inputs");
  if (Value fused = fuseBias(c, values))
    return c.result(fused);
  return c.node.failed() ? failure() : c.result(c.emit<train::AddOp>(values));
}

//===----------------------------------------------------------------------===//
// Operators that are composed
//===----------------------------------------------------------------------===//

/// The exponents that models use are products and roots, as in PyTorch; their
/// derivatives are then exact for negative bases, too.
static LogicalResult importPow(NodeContext &c) {
  Value base = c.value(0);
  const HostTensor *exponent = c.host(1);
  if (!base)
    return failure();
  if (exponent && exponent->size() == 1 &&
      exponent->rank() <= typeOf(base).getRank()) {
    double e = exponent->number(0);
    if (e == 1)
      return c.result(base);
    if (e == 2 || e == 3) {
      Value square = c.emit<train::MulOp>({base, base});
      return c.result(e == 2 ? square : c.emit<train::MulOp>({square, base}));
    }
    if (e == 0.5)
      return c.result(c.emit<train::SqrtOp>(base));
    return c.result(c.emit<train::PowOp>({base, c.scalar(base, e)}));
  }
  Value power = c.value(1);
  if (!power)
    return failure();
  Type element = typeOf(base).getElementType();
  if (typeOf(power).getElementType() != element)
    power = c.emit<train::CastOp>(
        power, c.b.getNamedAttr("to", TypeAttr::get(element)));
  return c.result(c.emit<train::PowOp>({base, power}));
}

static LogicalResult importMod(NodeContext &c) {
  Value value = c.value(0);
  if (value && isa<FloatType>(typeOf(value).getElementType()))
    return c.fail("is supported for integers only");
  return binary<train::ModOp>(c);
}

static LogicalResult castTo(NodeContext &c, Type element) {
  Value value = c.value(0);
  if (!value)
    return failure();
  if (typeOf(value).getElementType() == element)
    return c.result(value);
  return c.result(c.emit<train::CastOp>(
      value, c.b.getNamedAttr("to", TypeAttr::get(element))));
}

static LogicalResult importCast(NodeContext &c) {
  int64_t to = c.node.intAttr("to", 0);
  std::optional<DType> type = dtypeFromOnnx(int32_t(to));
  if (!type)
    return c.fail("casts to element type " + Twine(to) +
                  ", which is not supported");
  return castTo(c, toType(*type, c.b.getContext()));
}

/// Only the element type of the second input counts; its value may be unknown.
static LogicalResult importCastLike(NodeContext &c) {
  std::optional<DType> type = c.dtype(1);
  if (!type)
    return c.fail("its second input is not a tensor");
  const HostTensor *tensor = c.host(0);
  if (!tensor)
    return castTo(c, toType(*type, c.b.getContext()));
  c.set(0, castHost(*tensor, *type));
  return success();
}

static LogicalResult importIdentity(NodeContext &c) {
  c.set(0, c.binding(0));
  return success();
}

/// Without randomness dropout is the identity.
static LogicalResult importDropout(NodeContext &c) {
  const HostTensor *ratio = c.host(1), *training = c.host(2);
  if ((c.has(1) && !ratio) || (c.has(2) && !training))
    return c.fail("its ratio and mode must be known at import");
  bool isTraining = training && training->size() == 1 && training->number(0);
  double p = ratio && ratio->size() == 1 ? ratio->number(0) : 0.5;
  if (isTraining && p != 0)
    return c.fail("a dropout ratio of " + std::to_string(p) +
                  " is not supported; export the model with dropout 0 "
                  "(p = 0), which leaves the other gradients as they are");
  if (c.isUsed(1))
    return c.fail("its mask output is used, which is not supported");
  return importIdentity(c);
}

static LogicalResult importGelu(NodeContext &c) {
  std::string approximate = c.node.stringAttr("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    return c.fail("approximate must be 'none' or 'tanh'");
  return c.result(c.emit<train::GeluOp>(
      c.value(0),
      c.b.getNamedAttr("approximate", c.b.getStringAttr(approximate))));
}

static LogicalResult importClip(NodeContext &c) {
  Value value = c.value(0);
  if (value && c.has(1))
    value = c.emit<train::MaxOp>({value, c.value(1)});
  if (value && c.has(2))
    value = c.emit<train::MinOp>({value, c.value(2)});
  return c.result(value);
}

static LogicalResult importLeakyRelu(NodeContext &c) {
  Value x = c.value(0), zero = c.scalar(x, 0);
  Value slope = c.scalar(x, c.node.floatAttr("alpha", 0.01f));
  Value positive = c.emit<train::GreaterOp>({x, zero});
  return c.result(
      c.emit<train::WhereOp>({positive, x, c.emit<train::MulOp>({x, slope})}));
}

/// -floor(-x)
static LogicalResult importCeil(NodeContext &c) {
  Value floor = c.emit<train::FloorOp>(c.emit<train::NegOp>(c.value(0)));
  return c.result(c.emit<train::NegOp>(floor));
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

void zero::onnx_import::addElementwiseHandlers(HandlerTable &table) {
  table["Abs"] = {unary<train::AbsOp>, 1};
  table["Cos"] = {unary<train::CosOp>, 1};
  table["Erf"] = {unary<train::ErfOp>, 1};
  table["Exp"] = {unary<train::ExpOp>, 1};
  table["Floor"] = {unary<train::FloorOp>, 1};
  table["IsNaN"] = {unary<train::IsNanOp>, 1};
  table["Log"] = {unary<train::LogOp>, 1};
  table["Neg"] = {unary<train::NegOp>, 1};
  table["Not"] = {unary<train::NotOp>, 1};
  table["Reciprocal"] = {unary<train::ReciprocalOp>, 1};
  table["Relu"] = {unary<train::ReluOp>, 1};
  table["Sigmoid"] = {unary<train::SigmoidOp>, 1};
  table["Sign"] = {unary<train::SignOp>, 1};
  table["Sin"] = {unary<train::SinOp>, 1};
  table["Sqrt"] = {unary<train::SqrtOp>, 1};
  table["Tanh"] = {unary<train::TanhOp>, 1};

  table["Add"] = {importAdd, 2};
  table["And"] = {binary<train::AndOp>, 2};
  table["Div"] = {binary<train::DivOp>, 2};
  table["Equal"] = {binary<train::EqualOp>, 2};
  table["Greater"] = {binary<train::GreaterOp>, 2};
  table["GreaterOrEqual"] = {binary<train::GreaterEqualOp>, 2};
  table["Less"] = {binary<train::LessOp>, 2};
  table["LessOrEqual"] = {binary<train::LessEqualOp>, 2};
  table["Mod"] = {importMod, 2};
  table["Mul"] = {importMul, 2};
  table["Or"] = {binary<train::OrOp>, 2};
  table["Pow"] = {importPow, 2};
  table["Sub"] = {binary<train::SubOp>, 2};
  table["Xor"] = {binary<train::XorOp>, 2};

  table["Max"] = {variadic<train::MaxOp>, 1};
  table["Min"] = {variadic<train::MinOp>, 1};
  table["Sum"] = {variadic<train::AddOp>, 1};
  table["Where"] = {importWhere, 3};

  table["Cast"] = {importCast, 1};
  table["CastLike"] = {importCastLike, 2, 15};
  table["Ceil"] = {importCeil, 1};
  table["Clip"] = {importClip, 1};
  table["Dropout"] = {importDropout, 1};
  table["Gelu"] = {importGelu, 1, 20};
  table["Identity"] = {importIdentity, 1};
  table["LeakyRelu"] = {importLeakyRelu, 1};
}
