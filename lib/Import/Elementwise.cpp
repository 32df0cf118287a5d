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

#include "lib/Import/Elementwise.h"

#include <cmath>
#include <limits>

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

/// Before version 7 the second operand's first dimension lies at `axis` of the
/// first one's, where the node says so.
static Value alignToAxis(NodeContext &c, Value lhs, Value rhs) {
  if (c.node.version() >= 7 || !c.node.hasAttr("axis") || !lhs || !rhs)
    return rhs;
  int64_t rank = shapeOf(lhs).size();
  int64_t axis = c.node.axis(c.node.intAttr("axis", 0), rank);
  SmallVector<int64_t> shape(shapeOf(rhs));
  if (c.node.failed() || axis + int64_t(shape.size()) > rank)
    return rhs;
  shape.resize(rank - axis, 1);
  return c.reshape(rhs, shape);
}

SmallVector<Value> zero::onnx_import::operands(NodeContext &c) {
  // What an axis shifts is not compact at the end.
  bool compact = c.node.version() >= 7 || !c.node.hasAttr("axis");
  SmallVector<Value> values;
  for (unsigned i = 0; i < c.numInputs(); ++i) {
    values.push_back(compact ? operand(c, i) : c.value(i));
    if (!values.back())
      return {};
  }
  if (values.size() == 2)
    values[1] = alignToAxis(c, values[0], values[1]);
  return values;
}

//===----------------------------------------------------------------------===//
// Short forms
//===----------------------------------------------------------------------===//

Value Elements::cast(Value x, Type element) {
  if (!x || typeOf(x).getElementType() == element)
    return x;
  return c.emit<train::CastOp>(x,
                               c.b.getNamedAttr("to", TypeAttr::get(element)));
}

Value Elements::clamp(Value x, Value low, Value high) {
  if (low)
    x = where(isBelow(x, low), low, x);
  if (high)
    x = where(isAbove(x, high), high, x);
  return x;
}

Value Elements::clamp(Value x, double low, double high) {
  Value bound = scalar(x, low);
  return clamp(x, bound, scalar(x, high));
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

/// The logical operators take booleans, the bitwise ones integers; both are
/// the same operations.
static bool takesBits(NodeContext &c) {
  bool wantsBool = !c.node.op().starts_with("Bitwise");
  for (unsigned i = 0; i < c.numInputs(); ++i) {
    std::optional<DType> type = c.has(i) ? c.dtype(i) : std::nullopt;
    if (type && (*type == DType::Bool) == wantsBool && !isFloat(*type))
      continue;
    (void)c.fail(wantsBool ? "expects bool inputs" : "expects integer inputs");
    return false;
  }
  return true;
}

static LogicalResult importNot(NodeContext &c) {
  return takesBits(c) ? unary<train::NotOp>(c) : failure();
}

template <typename OpTy>
static LogicalResult bits(NodeContext &c) {
  return takesBits(c) ? binary<OpTy>(c) : failure();
}

static LogicalResult importBitShift(NodeContext &c) {
  std::string direction = c.node.stringAttr("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return c.fail("its direction must be 'LEFT' or 'RIGHT'");
  return direction == "LEFT" ? binary<train::ShiftLeftOp>(c)
                             : binary<train::ShiftRightOp>(c);
}

/// Max, Min, Sum and Mean of any number of inputs: a chain.
template <typename OpTy>
static Value chain(NodeContext &c) {
  SmallVector<Value> values = operands(c);
  if (values.empty())
    return {};
  Value total = values[0];
  for (Value value : ArrayRef(values).drop_front())
    total = c.emit<OpTy>({total, value});
  return total;
}

template <typename OpTy>
static LogicalResult variadic(NodeContext &c) {
  return c.result(chain<OpTy>(c));
}

static LogicalResult importMean(NodeContext &c) {
  Value total = chain<train::AddOp>(c);
  return c.result(Elements{c}.div(total, double(c.numInputs())));
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
/// derivatives are then exact for negative bases, too. Null if it is no such.
static Value simplePower(NodeContext &c, Value base, double exponent) {
  if (exponent == 1)
    return base;
  if (exponent == 0.5 && isa<FloatType>(typeOf(base).getElementType()))
    return c.emit<train::SqrtOp>(base);
  if (exponent != 2 && exponent != 3)
    return {};
  Value square = c.emit<train::MulOp>({base, base});
  return exponent == 2 ? square : c.emit<train::MulOp>({square, base});
}

/// Powers of integers are computed in f64.
static LogicalResult importPow(NodeContext &c) {
  Elements e{c};
  Value base = c.value(0);
  if (!base)
    return failure();
  Type element = typeOf(base).getElementType();
  Type floats = isa<FloatType>(element) ? element : Type(c.b.getF64Type());
  const HostTensor *exponent = c.host(1);
  if (exponent && exponent->size() == 1 &&
      exponent->rank() <= typeOf(base).getRank()) {
    double number = exponent->number(0);
    if (Value simple = simplePower(c, base, number))
      return c.result(simple);
    Value x = e.cast(base, floats);
    Value power = c.emit<train::PowOp>({x, c.scalar(x, number)});
    return c.result(e.cast(power, element));
  }
  Value by = alignToAxis(c, base, c.value(1));
  by = e.cast(by, floats);
  Value power = c.emit<train::PowOp>({e.cast(base, floats), by});
  return c.result(e.cast(power, element));
}

/// train.mod has the sign of the dividend for floats and of the divisor for
/// integers; fmod asks for the former, its absence for the latter.
static LogicalResult importMod(NodeContext &c) {
  Elements e{c};
  SmallVector<Value> values = operands(c);
  if (values.size() != 2)
    return values.empty() ? failure() : c.fail("expects two inputs");
  Value a = values[0], b = values[1];
  bool ofDividend = c.node.intAttr("fmod", 0);
  bool floats = isa<FloatType>(typeOf(a).getElementType());
  if (!floats && ofDividend)
    return c.result(e.sub(a, e.mul(b, e.div(a, b))));
  Value rest = c.emit<train::ModOp>({a, b});
  if (!floats || ofDividend)
    return c.result(rest);
  // Move a rest of the other sign up to the divisor's; what is 0 has its sign,
  // too.
  Value zero = c.scalar(rest, 0);
  Value isZero = c.emit<train::EqualOp>({rest, zero});
  Value restBelow = e.isBelow(rest, zero), divisorBelow = e.isBelow(b, zero);
  Value differ = c.emit<train::XorOp>({restBelow, divisorBelow});
  Value moved = e.where(differ, e.add(rest, b), rest);
  Value signedZero =
      e.mul(c.emit<train::AbsOp>(rest), c.emit<train::SignOp>(b));
  return c.result(e.where(isZero, signedZero, moved));
}

static LogicalResult importIdentity(NodeContext &c) {
  c.set(0, c.binding(0));
  return success();
}

/// A bound of Clip: an input since version 11, an attribute before.
static Value clipBound(NodeContext &c, Value x, unsigned input,
                       StringRef attribute) {
  if (c.node.version() < 11)
    return c.node.hasAttr(attribute)
               ? c.scalar(x, c.node.floatAttr(attribute, 0))
               : Value();
  if (!c.has(input))
    return {};
  Value bound = c.value(input);
  if (bound && typeOf(bound).getNumElements() != 1)
    (void)c.fail("its bounds must be scalars");
  return c.node.failed() ? Value() : c.reshape(bound, {});
}

static LogicalResult importClip(NodeContext &c) {
  Value x = c.value(0);
  if (!x)
    return failure();
  Value low = clipBound(c, x, 1, "min"), high = clipBound(c, x, 2, "max");
  return c.result(Elements{c}.clamp(x, low, high));
}

static LogicalResult importIsInf(NodeContext &c) {
  Value x = c.value(0);
  if (!x)
    return failure();
  double infinity = std::numeric_limits<double>::infinity();
  bool positive = c.node.intAttr("detect_positive", 1);
  bool negative = c.node.intAttr("detect_negative", 1);
  if (positive && negative)
    x = c.emit<train::AbsOp>(x);
  else if (!positive && !negative)
    // Less than nothing: false for every number.
    return c.result(c.emit<train::LessOp>({x, c.scalar(x, -infinity)}));
  Value bound = c.scalar(x, positive ? infinity : -infinity);
  return c.result(c.emit<train::EqualOp>({x, bound}));
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// Only the shape of the input counts.
static LogicalResult importEyeLike(NodeContext &c) {
  auto shape = c.shape(0);
  std::optional<DType> type = c.dtype(0);
  if (c.node.hasAttr("dtype"))
    type = dtypeFromOnnx(int32_t(c.node.intAttr("dtype", 0)));
  if (!shape || shape->size() != 2 || !type)
    return c.fail("expects a matrix and a dtype that is supported");
  std::optional<int64_t> count = countElements(*shape);
  if (int64_t room = c.hostBudget().room(); !count || *count > room)
    return c.fail("would make a constant of more than " + Twine(room) +
                  " elements at import");
  HostTensor result(*type, *shape);
  int64_t rows = (*shape)[0], columns = (*shape)[1];
  // Beyond the matrix all diagonals are equal: none.
  int64_t k = std::clamp(c.node.intAttr("k", 0), -rows, columns);
  for (int64_t row = std::max<int64_t>(0, -k); row < rows && row + k < columns;
       ++row) {
    int64_t at = row * columns + row + k;
    result.setNumber(at, 1);
  }
  c.set(0, Binding(std::move(result)));
  return success();
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

void zero::onnx_import::addElementwiseHandlers(HandlerTable &table) {
  table["Abs"] = {unary<train::AbsOp>, 1};
  table["Acos"] = {unary<train::AcosOp>, 1, 7};
  table["Acosh"] = {unary<train::AcoshOp>, 1, 9};
  table["Asin"] = {unary<train::AsinOp>, 1, 7};
  table["Asinh"] = {unary<train::AsinhOp>, 1, 9};
  table["Atan"] = {unary<train::AtanOp>, 1, 7};
  table["Atanh"] = {unary<train::AtanhOp>, 1, 9};
  table["BitwiseNot"] = {importNot, 1, 18};
  table["Ceil"] = {unary<train::CeilOp>, 1};
  table["Cos"] = {unary<train::CosOp>, 1, 7};
  table["Cosh"] = {unary<train::CoshOp>, 1, 9};
  table["Erf"] = {unary<train::ErfOp>, 1, 9};
  table["Exp"] = {unary<train::ExpOp>, 1};
  table["Floor"] = {unary<train::FloorOp>, 1};
  table["IsInf"] = {importIsInf, 1, 10};
  table["IsNaN"] = {unary<train::IsNanOp>, 1, 9};
  table["Log"] = {unary<train::LogOp>, 1};
  table["Neg"] = {unary<train::NegOp>, 1};
  table["Not"] = {importNot, 1};
  table["Reciprocal"] = {unary<train::ReciprocalOp>, 1};
  table["Round"] = {unary<train::RoundOp>, 1, 11};
  table["Sigmoid"] = {unary<train::SigmoidOp>, 1};
  table["Sign"] = {unary<train::SignOp>, 1, 9};
  table["Sin"] = {unary<train::SinOp>, 1, 7};
  table["Sinh"] = {unary<train::SinhOp>, 1, 9};
  table["Softplus"] = {unary<train::SoftplusOp>, 1};
  table["Sqrt"] = {unary<train::SqrtOp>, 1};
  table["Tan"] = {unary<train::TanOp>, 1, 7};
  table["Tanh"] = {unary<train::TanhOp>, 1};

  table["Add"] = {importAdd, 2};
  table["And"] = {bits<train::AndOp>, 2};
  table["BitShift"] = {importBitShift, 2, 11};
  table["BitwiseAnd"] = {bits<train::AndOp>, 2, 18};
  table["BitwiseOr"] = {bits<train::OrOp>, 2, 18};
  table["BitwiseXor"] = {bits<train::XorOp>, 2, 18};
  table["Div"] = {binary<train::DivOp>, 2};
  table["Equal"] = {binary<train::EqualOp>, 2};
  table["Greater"] = {binary<train::GreaterOp>, 2};
  table["GreaterOrEqual"] = {binary<train::GreaterEqualOp>, 2, 12};
  table["Less"] = {binary<train::LessOp>, 2};
  table["LessOrEqual"] = {binary<train::LessEqualOp>, 2, 12};
  table["Mod"] = {importMod, 2, 10};
  table["Mul"] = {importMul, 2};
  table["Or"] = {bits<train::OrOp>, 2};
  table["Pow"] = {importPow, 2};
  table["Sub"] = {binary<train::SubOp>, 2};
  table["Xor"] = {bits<train::XorOp>, 2};

  table["Max"] = {variadic<train::MaxOp>, 1};
  table["Mean"] = {importMean, 1};
  table["Min"] = {variadic<train::MinOp>, 1};
  table["Sum"] = {variadic<train::AddOp>, 1};
  table["Where"] = {importWhere, 3, 9};

  table["Clip"] = {importClip, 1};
  table["EyeLike"] = {importEyeLike, 1, 9};
  table["Identity"] = {importIdentity, 1};

  addActivationHandlers(table);
  addCastHandlers(table);
}
