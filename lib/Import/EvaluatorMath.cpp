//===- EvaluatorMath.cpp - Operators that compute elements ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elementwise operators, generators, casts and reductions on host tensors.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Evaluator.h"

#include <cmath>

using namespace mlir;
using namespace mlir::zero::onnx_import;

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

using FloatFn = double (*)(double);
using IntFn = int64_t (*)(int64_t);

static LogicalResult evalUnary(Evaluation &e, FloatFn onFloat, IntFn onInt) {
  HostTensor result(e.in(0).type, e.in(0).shape);
  if (!isFloat(result.type) && !onInt)
    return e.fail("expects a float input");
  for (int64_t i = 0; i < result.size(); ++i) {
    if (isFloat(result.type))
      result.setFloat(i, onFloat(e.in(0).floats[i]));
    else
      result.setInt(i, onInt(e.in(0).ints[i]));
  }
  return e.result(std::move(result));
}

static LogicalResult evalNot(Evaluation &e) {
  if (e.in(0).type != DType::Bool)
    return e.fail("expects a bool input");
  HostTensor result = e.in(0);
  for (int64_t &value : result.ints)
    value = !value;
  return e.result(std::move(result));
}

static LogicalResult evalIsNaN(Evaluation &e) {
  HostTensor result(DType::Bool, e.in(0).shape);
  for (int64_t i = 0; i < result.size(); ++i)
    result.setInt(i, std::isnan(e.in(0).number(i)));
  return e.result(std::move(result));
}

namespace {

/// A binary operator: one function each for floats and integers.
struct Binary {
  double (*onFloat)(double, double);
  int64_t (*onInt)(int64_t, int64_t);
};

} // namespace

// Unsigned arithmetic: overflow wraps as the operators' machine types do.
static int64_t addInt(int64_t a, int64_t b) {
  return uint64_t(a) + uint64_t(b);
}
static int64_t subInt(int64_t a, int64_t b) {
  return uint64_t(a) - uint64_t(b);
}
static int64_t mulInt(int64_t a, int64_t b) {
  return uint64_t(a) * uint64_t(b);
}
/// Division by zero is checked before; -1 overflows on the smallest integer.
static int64_t divInt(int64_t a, int64_t b) {
  return b == -1 ? subInt(0, a) : a / b;
}
static int64_t modInt(int64_t a, int64_t b) {
  int64_t rest = b == -1 ? 0 : a % b;
  return rest && (rest < 0) != (b < 0) ? rest + b : rest;
}
static int64_t powInt(int64_t a, int64_t b) {
  return toInteger(std::pow(double(a), double(b)));
}

/// The numpy broadcast of two inputs, or nothing after an error.
static std::optional<SmallVector<int64_t>> jointShape(Evaluation &e, unsigned i,
                                                      unsigned k) {
  auto shape = broadcastShapes(e.in(i).shape, e.in(k).shape);
  if (!shape)
    (void)e.fail("its inputs cannot be broadcast together");
  else if (!e.fits(*shape))
    return std::nullopt;
  return shape;
}

namespace {

/// The element of a tensor that element `k` of its broadcast repeats. Only
/// where it is neither the same nor one needs a table.
class Repetition {
public:
  Repetition(ArrayRef<int64_t> from, ArrayRef<int64_t> to)
      : step(countElements(from) == countElements(to)) {
    if (!step && countElements(from) != 1)
      table = broadcastIndices(from, to);
  }
  int64_t operator[](int64_t k) const {
    return table.empty() ? step * k : table[k];
  }

private:
  int64_t step;
  std::vector<int64_t> table;
};

} // namespace

/// Combines two tensors; `type` is the result's element type.
static HostTensor combine(const HostTensor &a, const HostTensor &b, DType type,
                          ArrayRef<int64_t> shape, Binary fn) {
  HostTensor result(type, shape);
  Repetition inA(a.shape, shape), inB(b.shape, shape);
  bool floats = isFloat(a.type) || isFloat(b.type);
  for (int64_t k = 0, n = result.size(); k < n; ++k) {
    int64_t number = 0;
    double value = 0;
    if (floats)
      value = fn.onFloat(a.number(inA[k]), b.number(inB[k]));
    else
      number = fn.onInt(a.ints[inA[k]], b.ints[inB[k]]);
    if (isFloat(type))
      result.setFloat(k, floats ? value : double(number));
    else
      result.setInt(k, floats ? toInteger(value) : number);
  }
  return result;
}

static LogicalResult evalBinary(Evaluation &e, Binary fn, bool toBool) {
  auto shape = jointShape(e, 0, 1);
  if (!shape)
    return failure();
  DType type = toBool ? DType::Bool : e.in(0).type;
  return e.result(combine(e.in(0), e.in(1), type, *shape, fn));
}

/// Arithmetic and comparison want equal element types.
static LogicalResult evalSame(Evaluation &e, Binary fn, bool toBool) {
  if (e.in(0).type != e.in(1).type)
    return e.fail("its inputs differ in element type");
  return evalBinary(e, fn, toBool);
}

static LogicalResult evalDivision(Evaluation &e, Binary fn) {
  if (!isFloat(e.in(1).type) && llvm::is_contained(e.in(1).ints, 0))
    return e.fail("divides an integer by zero");
  return evalSame(e, fn, false);
}

/// Max, Min and Sum of any number of inputs.
static LogicalResult evalVariadic(Evaluation &e, Binary fn) {
  HostTensor total = e.in(0);
  for (unsigned i = 1; i < e.inputs.size(); ++i) {
    if (!e.has(i) || e.in(i).type != total.type)
      return e.fail("its inputs differ in element type");
    auto shape = broadcastShapes(total.shape, e.in(i).shape);
    if (!shape)
      return e.fail("its inputs cannot be broadcast together");
    if (!e.fits(*shape))
      return failure();
    total = combine(total, e.in(i), total.type, *shape, fn);
  }
  return e.result(std::move(total));
}

static LogicalResult evalLogical(Evaluation &e, Binary fn) {
  if (e.in(0).type != DType::Bool || e.in(1).type != DType::Bool)
    return e.fail("expects bool inputs");
  return evalBinary(e, fn, true);
}

static LogicalResult evalWhere(Evaluation &e) {
  const HostTensor &condition = e.in(0), &a = e.in(1), &b = e.in(2);
  if (condition.type != DType::Bool || a.type != b.type)
    return e.fail("expects a bool and two inputs of one element type");
  auto shape = jointShape(e, 1, 2);
  if (!shape)
    return failure();
  shape = broadcastShapes(*shape, condition.shape);
  if (!shape)
    return e.fail("its inputs cannot be broadcast together");
  if (!e.fits(*shape))
    return failure();
  HostTensor result(a.type, *shape);
  Repetition inC(condition.shape, *shape), inA(a.shape, *shape),
      inB(b.shape, *shape);
  for (int64_t k = 0, n = result.size(); k < n; ++k) {
    bool first = condition.ints[inC[k]];
    if (isFloat(a.type))
      result.floats[k] = first ? a.floats[inA[k]] : b.floats[inB[k]];
    else
      result.ints[k] = first ? a.ints[inA[k]] : b.ints[inB[k]];
  }
  return e.result(std::move(result));
}

//===----------------------------------------------------------------------===//
// Casts and generators
//===----------------------------------------------------------------------===//

/// Version 1 had names of types.
static int64_t numberOfType(StringRef name) {
  onnx::TensorProto::DataType type;
  return onnx::TensorProto::DataType_Parse(name.str(), &type) ? type : 0;
}

FailureOr<DType> zero::onnx_import::castTarget(NodeReader &node) {
  int64_t to = node.version() < 6 ? numberOfType(node.stringAttr("to", ""))
                                  : node.intAttr("to", 0);
  std::optional<DType> type = dtypeFromOnnx(int32_t(to));
  if (type && !node.failed())
    return *type;
  node.error() << "casts to element type " << to << ", which is not supported";
  return failure();
}

FailureOr<CastRules> zero::onnx_import::castRules(NodeReader &node) {
  CastRules rules;
  rules.saturate = node.intAttr("saturate", 1);
  rules.roundScale = node.stringAttr("round_mode", "up");
  if (llvm::is_contained({"up", "down", "nearest"}, rules.roundScale))
    return rules;
  node.error() << "round_mode must be 'up', 'down' or 'nearest'";
  return failure();
}

static LogicalResult evalCast(Evaluation &e) {
  FailureOr<DType> type = castTarget(e.node);
  FailureOr<CastRules> rules = castRules(e.node);
  if (failed(type) || failed(rules))
    return failure();
  // Floats of 8 bits take several times as long as others.
  if (isFloat(*type) && byteSize(*type) == 1 &&
      failed(e.budget.take(2 * e.in(0).size(), e.node)))
    return failure();
  return e.result(castHost(e.in(0), *type, *rules));
}

static LogicalResult evalRange(Evaluation &e) {
  for (unsigned i = 0; i < 3; ++i)
    if (e.in(i).size() != 1 || e.in(i).type != e.in(0).type)
      return e.fail("expects three scalars of one element type");
  double start = e.in(0).number(0), limit = e.in(1).number(0),
         delta = e.in(2).number(0);
  double count = std::ceil((limit - start) / delta);
  if (delta == 0)
    return e.fail("has a step of 0");
  if (std::isnan(count))
    return e.fail("its bounds and its step are not all finite");
  if (count > double(maxHostElements))
    return e.fail("would make more than " + Twine(maxHostElements) +
                  " elements");
  int64_t size = std::max<int64_t>(0, toInteger(count));
  if (!e.fits(size))
    return failure();
  HostTensor result(e.in(0).type, size);
  for (int64_t i = 0; i < result.size(); ++i) {
    if (isFloat(result.type))
      result.setFloat(i, start + double(i) * delta);
    else
      result.setInt(i, addInt(e.in(0).ints[0], mulInt(i, e.in(2).ints[0])));
  }
  return e.result(std::move(result));
}

static LogicalResult evalConstantOfShape(Evaluation &e) {
  if (isFloat(e.in(0).type) || !e.fits(e.in(0).ints))
    return e.node.failed() ? failure() : e.fail("its shape is not integers");
  HostTensor value(DType::F32, {});
  if (const onnx::TensorProto *proto = e.node.tensorAttr("value")) {
    if (proto->data_location() == onnx::TensorProto::EXTERNAL)
      return e.fail("its value is external data, which is not supported");
    ExternalFiles none("");
    FailureOr<HostTensor> given = evaluateConstant(e.node, none);
    if (failed(given))
      return failure();
    value = std::move(*given);
  }
  if (value.size() != 1)
    return e.fail("its value is not one element");
  std::vector<int64_t> zeros(*countElements(e.in(0).ints), 0);
  return e.result(value.take(e.in(0).ints, zeros));
}

//===----------------------------------------------------------------------===//
// Sums along an axis
//===----------------------------------------------------------------------===//

static LogicalResult evalCumSum(Evaluation &e) {
  HostTensor result = e.in(0);
  if (isFloat(e.in(1).type) || e.in(1).size() != 1)
    return e.fail("its axis is not one integer");
  int64_t axis = e.node.axis(e.in(1).ints[0], result.rank());
  bool reverse = e.node.intAttr("reverse", 0);
  bool exclusive = e.node.intAttr("exclusive", 0);
  if (e.node.failed())
    return failure();
  int64_t n = result.shape[axis], stride = stridesOf(result.shape)[axis];
  for (int64_t i = 0; i < result.size(); ++i) {
    if (i / stride % n)
      continue; // not the start of a line
    double sum = 0;
    for (int64_t k = 0; k < n; ++k) {
      int64_t at = i + (reverse ? n - 1 - k : k) * stride;
      double value = e.in(0).number(at), shown = exclusive ? sum : sum + value;
      sum += value;
      result.setNumber(at, shown);
    }
  }
  return e.result(std::move(result));
}

/// Matrix product of rank-2-or-more operands, e.g. RoPE's angle table.
static LogicalResult evalMatMul(Evaluation &e) {
  const HostTensor &a = e.in(0), &b = e.in(1);
  if (a.rank() < 2 || b.rank() < 2 || !isFloat(a.type) || a.type != b.type ||
      a.shape.back() != b.shape[b.rank() - 2])
    return e.fail("constant operands must be float matrices that fit");
  auto batch = broadcastShapes(ArrayRef(a.shape).drop_back(2),
                               ArrayRef(b.shape).drop_back(2));
  if (!batch)
    return e.fail("its batch dimensions cannot be broadcast together");
  int64_t m = a.shape[a.rank() - 2], k = a.shape.back(), n = b.shape.back();
  SmallVector<int64_t> shape(*batch);
  shape.append({m, n});
  // The work is bounded, not only the result.
  SmallVector<int64_t> work(shape);
  work.push_back(k);
  if (!e.fits(shape) || !e.fits(work) ||
      failed(e.budget.take(*countElements(work), e.node)))
    return failure();
  std::vector<int64_t> ia =
      broadcastIndices(ArrayRef(a.shape).drop_back(2), *batch);
  std::vector<int64_t> ib =
      broadcastIndices(ArrayRef(b.shape).drop_back(2), *batch);
  HostTensor result(a.type, shape);
  for (int64_t at = 0; at < result.size(); ++at) {
    int64_t group = at / (m * n), row = at / n % m, col = at % n;
    double sum = 0;
    for (int64_t i = 0; i < k; ++i)
      sum += a.floats[(ia[group] * m + row) * k + i] *
             b.floats[(ib[group] * k + i) * n + col];
    result.setFloat(at, sum);
  }
  return e.result(std::move(result));
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static void addUnary(llvm::StringMap<Evaluator> &table) {
  auto add = [&](StringRef name, FloatFn onFloat, IntFn onInt = nullptr) {
    table[name] = {[=](Evaluation &e) { return evalUnary(e, onFloat, onInt); },
                   1};
  };
  add("Sqrt", std::sqrt);
  add("Exp", std::exp);
  add("Log", std::log);
  add("Sin", std::sin);
  add("Cos", std::cos);
  add("Tanh", std::tanh);
  add("Erf", std::erf);
  add("Floor", std::floor);
  add("Ceil", std::ceil);
  add("Reciprocal", [](double v) { return 1 / v; });
  add("Sigmoid", [](double v) { return 1 / (1 + std::exp(-v)); });
  add(
      "Neg", [](double v) { return -v; },
      [](int64_t v) { return subInt(0, v); });
  add("Abs", std::fabs, [](int64_t v) { return v < 0 ? subInt(0, v) : v; });
  add(
      "Relu", [](double v) { return v < 0 ? 0 : v; },
      [](int64_t v) { return std::max<int64_t>(v, 0); });
  table["Not"] = {evalNot, 1};
  table["IsNaN"] = {evalIsNaN, 1};
}

static void addArithmetic(llvm::StringMap<Evaluator> &table) {
  auto add = [&](StringRef name, auto run, Binary fn, unsigned inputs = 2) {
    table[name] = {[=](Evaluation &e) { return run(e, fn); }, inputs};
  };
  auto same = [](Evaluation &e, Binary fn) { return evalSame(e, fn, false); };
  auto mixed = [](Evaluation &e, Binary fn) {
    return evalBinary(e, fn, false);
  };
  add("Add", same, {[](double a, double b) { return a + b; }, addInt});
  add("Sub", same, {[](double a, double b) { return a - b; }, subInt});
  add("Mul", same, {[](double a, double b) { return a * b; }, mulInt});
  add("Div", evalDivision, {[](double a, double b) { return a / b; }, divInt});
  add("Mod", evalDivision, {std::fmod, modInt});
  add("Pow", mixed, {std::pow, powInt});
  // NaN wins, as in numpy.
  auto maxInt = [](int64_t a, int64_t b) { return std::max(a, b); };
  auto minInt = [](int64_t a, int64_t b) { return std::min(a, b); };
  add("Max", evalVariadic,
      {[](double a, double b) { return a > b || std::isnan(a) ? a : b; },
       maxInt},
      1);
  add("Min", evalVariadic,
      {[](double a, double b) { return a < b || std::isnan(a) ? a : b; },
       minInt},
      1);
  add("Sum", evalVariadic, {[](double a, double b) { return a + b; }, addInt},
      1);
}

template <template <typename> class Predicate>
static void addPredicate(llvm::StringMap<Evaluator> &table, StringRef name,
                         bool logical = false) {
  Binary fn{
      [](double a, double b) -> double { return Predicate<double>()(a, b); },
      [](int64_t a, int64_t b) -> int64_t {
        return Predicate<int64_t>()(a, b);
      }};
  table[name] = {[=](Evaluation &e) {
                   return logical ? evalLogical(e, fn) : evalSame(e, fn, true);
                 },
                 2};
}

static void addPredicates(llvm::StringMap<Evaluator> &table) {
  addPredicate<std::equal_to>(table, "Equal");
  addPredicate<std::less>(table, "Less");
  addPredicate<std::less_equal>(table, "LessOrEqual");
  addPredicate<std::greater>(table, "Greater");
  addPredicate<std::greater_equal>(table, "GreaterOrEqual");
  addPredicate<std::logical_and>(table, "And", true);
  addPredicate<std::logical_or>(table, "Or", true);
  addPredicate<std::not_equal_to>(table, "Xor", true);
}

void zero::onnx_import::addMathEvaluators(llvm::StringMap<Evaluator> &table) {
  addUnary(table);
  addArithmetic(table);
  addPredicates(table);
  table["Where"] = {evalWhere, 3};
  table["Cast"] = {evalCast, 1};
  table["Range"] = {evalRange, 3};
  table["ConstantOfShape"] = {evalConstantOfShape, 1};
  table["CumSum"] = {evalCumSum, 2};
  table["MatMul"] = {evalMatMul, 2};
}
