//===- Reductions.cpp - Reductions along axes -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums, products, extremes and norms.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Formula.h"
#include "lib/Import/ReducedAxes.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

namespace {
/// A reduction: what of, and along which axes in ascending order.
struct Reduced {
  Value input;
  SmallVector<int64_t> axes;
  bool keepDims = true;
};
} // namespace

static FailureOr<Reduced> readReduced(NodeContext &c) {
  Reduced r;
  r.input = c.value(0);
  if (!r.input)
    return failure();
  std::optional<SmallVector<int64_t>> given;
  if (c.has(1)) {
    given = c.ints(1, "axes");
    if (!given)
      return failure();
  }
  r.axes =
      reducedAxes(c.node, typeOf(r.input).getRank(), given ? &*given : nullptr);
  r.keepDims = c.node.intAttr("keepdims", 1);
  if (c.node.failed())
    return failure();
  return r;
}

template <typename OpTy>
static Value emitReduce(NodeContext &c, const Reduced &r, Value input) {
  return Formula{c}.reduce<OpTy>(input, r.axes, r.keepDims);
}

template <typename OpTy>
static LogicalResult importReduce(NodeContext &c) {
  auto r = readReduced(c);
  return failed(r) ? failure() : c.result(emitReduce<OpTy>(c, *r, r->input));
}

//===----------------------------------------------------------------------===//
// Extremes
//===----------------------------------------------------------------------===//

static int64_t countReduced(const Reduced &r) {
  int64_t count = 1;
  for (int64_t axis : r.axes)
    count *= shapeOf(r.input)[axis];
  return count;
}

/// The smallest or largest value of a type, infinities of floats.
static HostTensor extremeOf(DType type, bool largest) {
  HostTensor tensor(type, {});
  if (isFloat(type)) {
    double infinity = std::numeric_limits<double>::infinity();
    tensor.setFloat(0, largest ? infinity : -infinity);
    return tensor;
  }
  unsigned bits = byteSize(type) * 8;
  bool isUnsigned = type == DType::U8 || type == DType::U16 ||
                    type == DType::U32 || type == DType::U64;
  uint64_t all = ~uint64_t(0) >> (64 - bits);
  if (type == DType::Bool)
    tensor.setInt(0, largest);
  else if (isUnsigned)
    tensor.setInt(0, largest ? int64_t(all) : 0);
  else
    tensor.setInt(0, largest ? int64_t(all >> 1) : -int64_t(all >> 1) - 1);
  return tensor;
}

/// Of no elements the result is the value that any other replaces.
static Value emitEmptyExtreme(NodeContext &c, const Reduced &r, bool isMax) {
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(shapeOf(r.input))) {
    if (!llvm::is_contained(r.axes, int64_t(dim)))
      shape.push_back(size);
    else if (r.keepDims)
      shape.push_back(1);
  }
  Type element = typeOf(r.input).getElementType();
  return c.broadcast(
      c.constant(extremeOf(*dtypeFromType(element), /*largest=*/!isMax)),
      shape);
}

/// Booleans count as 0 and 1.
template <typename OpTy>
static LogicalResult importExtreme(NodeContext &c) {
  auto r = readReduced(c);
  if (failed(r))
    return failure();
  if (countReduced(*r) == 0)
    return c.result(
        emitEmptyExtreme(c, *r, std::is_same_v<OpTy, train::ReduceMaxOp>));
  Type element = typeOf(r->input).getElementType();
  if (!element.isInteger(1))
    return c.result(emitReduce<OpTy>(c, *r, r->input));
  Formula f{c};
  Value numbers = f.cast(r->input, c.b.getIntegerType(8));
  return c.result(f.cast(emitReduce<OpTy>(c, *r, numbers), element));
}

//===----------------------------------------------------------------------===//
// Means, norms and logarithms
//===----------------------------------------------------------------------===//

/// The mean of integers is rounded toward zero.
static LogicalResult importMean(NodeContext &c) {
  auto r = readReduced(c);
  if (failed(r))
    return failure();
  if (isa<FloatType>(typeOf(r->input).getElementType()))
    return c.result(emitReduce<train::ReduceMeanOp>(c, *r, r->input));
  int64_t count = countReduced(*r);
  if (count == 0)
    return c.fail("the mean of no integers does not exist");
  return c.result(Formula{c}.div(
      emitReduce<train::ReduceSumOp>(c, *r, r->input), double(count)));
}

/// (sum of |x|^p)^(1/p); of integers by way of floats where a root is taken.
static LogicalResult importNorm(NodeContext &c, double p, bool takesRoot) {
  auto r = readReduced(c);
  if (failed(r))
    return failure();
  Formula f{c};
  Type element = typeOf(r->input).getElementType();
  bool converts = takesRoot && p != 1 && !isa<FloatType>(element);
  Value x = converts ? f.cast(r->input, c.b.getF64Type()) : r->input;
  Value sum = emitReduce<train::ReduceSumOp>(c, *r, f.power(x, p));
  return c.result(f.cast(takesRoot ? f.root(sum, p) : sum, element));
}

static LogicalResult importLogSum(NodeContext &c) {
  auto r = readReduced(c);
  if (failed(r))
    return failure();
  Value sum = emitReduce<train::ReduceSumOp>(c, *r, r->input);
  return c.result(Formula{c}.log(sum));
}

void zero::onnx_import::addReductionHandlers(HandlerTable &table) {
  table["ReduceL1"] = {[](NodeContext &c) { return importNorm(c, 1, true); },
                       1};
  table["ReduceL2"] = {[](NodeContext &c) { return importNorm(c, 2, true); },
                       1};
  table["ReduceLogSum"] = {importLogSum, 1};
  table["ReduceLogSumExp"] = {importReduce<train::ReduceLogSumExpOp>, 1};
  table["ReduceMax"] = {importExtreme<train::ReduceMaxOp>, 1};
  table["ReduceMean"] = {importMean, 1};
  table["ReduceMin"] = {importExtreme<train::ReduceMinOp>, 1};
  table["ReduceProd"] = {importReduce<train::ReduceProdOp>, 1};
  table["ReduceSum"] = {importReduce<train::ReduceSumOp>, 1};
  table["ReduceSumSquare"] = {
      [](NodeContext &c) { return importNorm(c, 2, false); }, 1};
}
