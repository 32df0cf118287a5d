//===- EvaluatorReduce.cpp - Reductions at import -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exporters multiply sizes and compare them.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Evaluator.h"
#include "lib/Import/ReducedAxes.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::zero::onnx_import;

SmallVector<int64_t>
zero::onnx_import::reducedAxes(NodeReader &node, int64_t rank,
                               const SmallVector<int64_t> *given) {
  SmallVector<int64_t> axes = given ? *given : node.intsAttr("axes");
  if (axes.empty() && !node.intAttr("noop_with_empty_axes", 0))
    for (int64_t d = 0; d < rank; ++d)
      axes.push_back(d);
  axes = node.axes(axes, rank);
  llvm::sort(axes);
  return axes;
}

namespace {
/// How two elements combine; integers wrap around.
struct Combination {
  double (*floats)(double, double);
  int64_t (*ints)(int64_t, int64_t);
  std::optional<int64_t> ofNothing; ///< the result without elements
};
} // namespace

/// The element of the result that each element of the input goes to, and the
/// result's shape.
static std::vector<int64_t> findTargets(ArrayRef<int64_t> from,
                                        ArrayRef<int64_t> axes, bool keepDims,
                                        SmallVectorImpl<int64_t> &shape) {
  SmallVector<int64_t> kept(from);
  for (int64_t axis : axes)
    kept[axis] = 1;
  for (auto [d, size] : llvm::enumerate(kept))
    if (keepDims || !llvm::is_contained(axes, int64_t(d)))
      shape.push_back(size);
  return broadcastIndices(kept, from);
}

/// Combines elements; the result starts as the first of each.
static LogicalResult evalReduce(Evaluation &e, Combination combine) {
  const HostTensor &data = e.in(0);
  SmallVector<int64_t> given, shape;
  if (e.has(1))
    given.assign(e.in(1).ints.begin(), e.in(1).ints.end());
  SmallVector<int64_t> axes =
      reducedAxes(e.node, data.rank(), e.has(1) ? &given : nullptr);
  bool keepDims = e.node.intAttr("keepdims", 1);
  if (e.node.failed())
    return failure();
  if (failed(e.budget.take(data.size(), e.node)))
    return failure();
  std::vector<int64_t> targets = findTargets(data.shape, axes, keepDims, shape);
  if (!e.fits(shape))
    return failure();
  HostTensor result(data.type, shape);
  std::vector<bool> started(result.size(), false);
  for (int64_t i = 0; i < data.size(); ++i) {
    int64_t to = targets[i];
    bool first = !started[to];
    started[to] = true;
    if (isFloat(data.type))
      result.setFloat(
          to, first ? data.floats[i]
                    : combine.floats(result.floats[to], data.floats[i]));
    else
      result.setInt(to, first ? data.ints[i]
                              : combine.ints(result.ints[to], data.ints[i]));
  }
  for (int64_t i = 0; i < result.size(); ++i) {
    if (started[i])
      continue;
    if (!combine.ofNothing)
      return e.fail("reduces no elements of a constant");
    if (isFloat(data.type))
      result.setFloat(i, double(*combine.ofNothing));
    else
      result.setInt(i, *combine.ofNothing);
  }
  return e.result(std::move(result));
}

static const Combination kSum = {
    [](double a, double b) { return a + b; },
    [](int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); },
    /*ofNothing=*/0};
static const Combination kProduct = {
    [](double a, double b) { return a * b; },
    [](int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); },
    /*ofNothing=*/1};
static const Combination kMax = {
    [](double a, double b) { return a > b || std::isnan(a) ? a : b; },
    [](int64_t a, int64_t b) { return std::max(a, b); },
    /*ofNothing=*/std::nullopt};
static const Combination kMin = {
    [](double a, double b) { return a < b || std::isnan(a) ? a : b; },
    [](int64_t a, int64_t b) { return std::min(a, b); },
    /*ofNothing=*/std::nullopt};

void zero::onnx_import::addReductionEvaluators(
    llvm::StringMap<Evaluator> &table) {
  auto add = [&](StringRef op, Combination combine) {
    table[op] = {[combine](Evaluation &e) { return evalReduce(e, combine); },
                 1};
  };
  add("ReduceMax", kMax);
  add("ReduceMin", kMin);
  add("ReduceProd", kProduct);
  add("ReduceSum", kSum);
}
