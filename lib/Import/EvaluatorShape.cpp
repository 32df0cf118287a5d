//===- EvaluatorShape.cpp - Operators that move elements ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each computes which input element every result element comes from and lets
// HostTensor::take do the rest, whatever the element type.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Evaluator.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

/// The input with another shape of as many elements.
static LogicalResult reshaped(Evaluation &e,
                              FailureOr<SmallVector<int64_t>> shape) {
  if (failed(shape))
    return failure();
  HostTensor result = e.in(0);
  result.shape.assign(shape->begin(), shape->end());
  return e.result(std::move(result));
}

static bool isIntegral(const HostTensor &tensor) {
  return !isFloat(tensor.type);
}

static LogicalResult evalIdentity(Evaluation &e) { return e.result(e.in(0)); }

static LogicalResult evalReshape(Evaluation &e) {
  if (!isIntegral(e.in(1)))
    return e.fail("its shape is not a list of integers");
  return reshaped(e, reshapeTarget(e.node, e.in(0).shape, e.in(1).ints));
}

static LogicalResult evalFlatten(Evaluation &e) {
  return reshaped(e, flattenedShape(e.node, e.in(0).shape));
}

static LogicalResult evalSqueeze(Evaluation &e) {
  if (e.has(1) && !isIntegral(e.in(1)))
    return e.fail("its axes are not integers");
  return reshaped(
      e, squeezedShape(e.node, e.in(0).shape, e.has(1) ? &e.in(1) : nullptr));
}

static LogicalResult evalUnsqueeze(Evaluation &e) {
  if (!isIntegral(e.in(1)))
    return e.fail("its axes are not integers");
  return reshaped(e, unsqueezedShape(e.node, e.in(0).shape, e.in(1)));
}

/// A result of `shape` whose element at coordinates c is the input's element
/// at base + sum of c[d] * strides[d].
static HostTensor takeStrided(const HostTensor &from, ArrayRef<int64_t> shape,
                              int64_t base, ArrayRef<int64_t> strides) {
  std::vector<int64_t> indices(*countElements(shape));
  SmallVector<int64_t> own = stridesOf(shape);
  for (int64_t k = 0, n = indices.size(); k < n; ++k) {
    int64_t at = base;
    for (size_t d = 0; d < shape.size(); ++d)
      at += k / own[d] % shape[d] * strides[d];
    indices[k] = at;
  }
  return from.take(shape, indices);
}

static LogicalResult evalTranspose(Evaluation &e) {
  FailureOr<SmallVector<int64_t>> perm = permutation(e.node, e.in(0).rank());
  if (failed(perm))
    return failure();
  SmallVector<int64_t> from = stridesOf(e.in(0).shape), shape, strides;
  for (int64_t axis : *perm) {
    shape.push_back(e.in(0).shape[axis]);
    strides.push_back(from[axis]);
  }
  return e.result(takeStrided(e.in(0), shape, 0, strides));
}

static LogicalResult evalSlice(Evaluation &e) {
  SmallVector<int64_t> axes, steps;
  for (unsigned i = 1; i < 5; ++i)
    if (e.has(i) && !isIntegral(e.in(i)))
      return e.fail("its bounds are not integers");
  size_t n = e.in(1).ints.size();
  for (size_t i = 0; i < n; ++i) {
    axes.push_back(i);
    steps.push_back(1);
  }
  if (e.has(3))
    axes.assign(e.in(3).ints.begin(), e.in(3).ints.end());
  if (e.has(4))
    steps.assign(e.in(4).ints.begin(), e.in(4).ints.end());
  FailureOr<SmallVector<SliceRange>> ranges = sliceRanges(
      e.node, e.in(0).shape, e.in(1).ints, e.in(2).ints, axes, steps);
  if (failed(ranges))
    return failure();
  SmallVector<int64_t> from = stridesOf(e.in(0).shape), shape, strides;
  int64_t base = 0;
  for (auto [d, range] : llvm::enumerate(*ranges)) {
    shape.push_back(range.count);
    // A step matters only where a second element is read.
    strides.push_back(range.count > 1 ? from[d] * range.step : 0);
    base += range.count ? from[d] * range.start : 0;
  }
  return e.result(takeStrided(e.in(0), shape, base, strides));
}

static LogicalResult evalExpand(Evaluation &e) {
  if (!isIntegral(e.in(1)))
    return e.fail("its shape is not a list of integers");
  auto shape = broadcastShapes(e.in(0).shape, e.in(1).ints);
  if (!shape)
    return e.fail("its input cannot be expanded to the given shape");
  if (!e.fits(*shape))
    return failure();
  return e.result(
      e.in(0).take(*shape, broadcastIndices(e.in(0).shape, *shape)));
}

static LogicalResult evalConcat(Evaluation &e) {
  int64_t axis = e.node.axis(e.node.intAttr("axis", 0), e.in(0).rank());
  if (e.node.failed())
    return failure();
  SmallVector<int64_t, 4> shape(e.in(0).shape);
  shape[axis] = 0;
  for (unsigned i = 0; i < e.inputs.size(); ++i) {
    if (!e.has(i) || e.in(i).type != e.in(0).type ||
        e.in(i).rank() != e.in(0).rank())
      return e.fail("its inputs differ in type or rank");
    for (int64_t d = 0; d < e.in(0).rank(); ++d)
      if (d != axis && e.in(i).shape[d] != shape[d])
        return e.fail("its inputs differ in a dimension other than the axis");
    shape[axis] += e.in(i).shape[axis];
  }
  if (!e.fits(shape))
    return failure();
  HostTensor result(e.in(0).type, shape);
  int64_t outer = *countElements(ArrayRef(shape).take_front(axis));
  int64_t at = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (const HostTensor *input : e.inputs) {
      int64_t n = input->size() / outer;
      for (int64_t k = 0; k < n; ++k, ++at)
        isFloat(result.type)
            ? void(result.floats[at] = input->floats[o * n + k])
            : void(result.ints[at] = input->ints[o * n + k]);
    }
  return e.result(std::move(result));
}

static LogicalResult evalSplit(Evaluation &e) {
  const HostTensor &data = e.in(0);
  int64_t axis = e.node.axis(e.node.intAttr("axis", 0), data.rank());
  if (e.node.failed())
    return failure();
  if (e.has(1) && !isIntegral(e.in(1)))
    return e.fail("its sizes are not integers");
  FailureOr<SmallVector<int64_t>> sizes =
      splitSizes(e.node, data.shape[axis], e.has(1) ? &e.in(1) : nullptr,
                 e.node.message().output_size());
  if (failed(sizes))
    return failure();
  SmallVector<int64_t> strides = stridesOf(data.shape);
  int64_t start = 0;
  for (int64_t size : *sizes) {
    SmallVector<int64_t, 4> shape(data.shape);
    shape[axis] = size;
    (void)e.result(takeStrided(data, shape, start * strides[axis], strides));
    start += size;
  }
  return success();
}

static LogicalResult evalGather(Evaluation &e) {
  const HostTensor &data = e.in(0), &indices = e.in(1);
  int64_t axis = e.node.axis(e.node.intAttr("axis", 0), data.rank());
  if (e.node.failed())
    return failure();
  if (!isIntegral(indices))
    return e.fail("its indices are not integers");
  ArrayRef<int64_t> in = data.shape;
  SmallVector<int64_t> shape(in.take_front(axis));
  llvm::append_range(shape, indices.shape);
  llvm::append_range(shape, in.drop_front(axis + 1));
  if (!e.fits(shape))
    return failure();
  int64_t inner = *countElements(in.drop_front(axis + 1)), dim = in[axis];
  std::vector<int64_t> from;
  for (int64_t o = 0, n = *countElements(in.take_front(axis)); o < n; ++o)
    for (int64_t index : indices.ints) {
      if (index < -dim || index >= dim)
        return e.fail("index " + Twine(index) + " is out of range for size " +
                      Twine(dim));
      int64_t row = o * dim + (index < 0 ? index + dim : index);
      for (int64_t k = 0; k < inner; ++k)
        from.push_back(row * inner + k);
    }
  return e.result(data.take(shape, from));
}

static LogicalResult evalTile(Evaluation &e) {
  const HostTensor &data = e.in(0), &repeats = e.in(1);
  if (!isIntegral(repeats) || repeats.size() != data.rank())
    return e.fail("needs one repeat count per dimension");
  SmallVector<int64_t, 4> shape(data.shape);
  for (auto [dim, repeat] : llvm::zip(shape, repeats.ints))
    if (repeat < 0 || __builtin_mul_overflow(dim, repeat, &dim))
      return e.fail("has the bad repeat count " + Twine(repeat));
  if (!e.fits(shape))
    return failure();
  SmallVector<int64_t> own = stridesOf(shape), in = stridesOf(data.shape);
  std::vector<int64_t> from(*countElements(shape));
  for (int64_t k = 0, n = from.size(); k < n; ++k)
    for (int64_t d = 0; d < data.rank(); ++d)
      from[k] += k / own[d] % shape[d] % data.shape[d] * in[d];
  return e.result(data.take(shape, from));
}

/// Keeps the upper or lower triangle of the last two dimensions.
static LogicalResult evalTrilu(Evaluation &e) {
  HostTensor result = e.in(0);
  if (result.rank() < 2)
    return e.fail("needs an input of rank 2 or more");
  if (e.has(1) && (!isIntegral(e.in(1)) || e.in(1).size() != 1))
    return e.fail("its diagonal is not one integer");
  bool upper = e.node.intAttr("upper", 1);
  int64_t rows = result.shape[result.rank() - 2], cols = result.shape.back();
  int64_t k = e.has(1) ? std::clamp(e.in(1).ints[0], -rows, cols) : 0;
  for (int64_t i = 0, n = result.size(); i < n; ++i) {
    int64_t row = i / cols % rows, col = i % cols;
    if (upper ? col - row >= k : col - row <= k)
      continue;
    isFloat(result.type) ? void(result.floats[i] = 0)
                         : void(result.ints[i] = 0);
  }
  return e.result(std::move(result));
}

void zero::onnx_import::addShapeEvaluators(llvm::StringMap<Evaluator> &table) {
  table["Identity"] = {evalIdentity, 1};
  table["Reshape"] = {evalReshape, 2};
  table["Flatten"] = {evalFlatten, 1};
  table["Squeeze"] = {evalSqueeze, 1};
  table["Unsqueeze"] = {evalUnsqueeze, 2};
  table["Transpose"] = {evalTranspose, 1};
  table["Slice"] = {evalSlice, 3};
  table["Expand"] = {evalExpand, 2};
  table["Concat"] = {evalConcat, 1};
  table["Split"] = {evalSplit, 1};
  table["Gather"] = {evalGather, 2};
  table["Tile"] = {evalTile, 2};
  table["Trilu"] = {evalTrilu, 1};
}
