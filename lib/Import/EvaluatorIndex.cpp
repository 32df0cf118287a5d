//===- EvaluatorIndex.cpp - Operators that search and index ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Those whose result has a size that depends on their input (NonZero, Unique,
// Compress) exist for tensors known at import only. The others stand in
// exporters' computations of shapes and masks.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Evaluator.h"

#include <cmath>

using namespace mlir;
using namespace mlir::zero::onnx_import;

using Dims = SmallVector<int64_t>;

/// The product of sizes of a tensor that exists.
static int64_t product(ArrayRef<int64_t> sizes) {
  return *countElements(sizes);
}

static void copyElement(HostTensor &to, int64_t i, const HostTensor &from,
                        int64_t k) {
  if (isFloat(to.type))
    to.floats[i] = from.floats[k];
  else
    to.ints[i] = from.ints[k];
}

//===----------------------------------------------------------------------===//
// Searching
//===----------------------------------------------------------------------===//

/// The coordinates of elements that are not zero, a column each.
static LogicalResult evalNonZero(Evaluation &e) {
  const HostTensor &data = e.in(0);
  if (failed(e.budget.take(data.size(), e.node)))
    return failure();
  std::vector<int64_t> places;
  for (int64_t i = 0; i < data.size(); ++i)
    if (data.number(i) != 0)
      places.push_back(i);
  int64_t count = places.size();
  Dims shape = {data.rank(), count}, strides = stridesOf(data.shape);
  if (!e.fits(shape))
    return failure();
  HostTensor result(DType::I64, shape);
  for (int64_t d = 0; d < data.rank(); ++d)
    for (int64_t k = 0; k < count; ++k)
      result.ints[d * count + k] = places[k] / strides[d] % data.shape[d];
  return e.result(std::move(result));
}

/// The input's slices along `axis` at `positions`.
static HostTensor takeSlices(const HostTensor &data, int64_t axis,
                             ArrayRef<int64_t> positions) {
  ArrayRef<int64_t> in = data.shape;
  Dims shape(in);
  shape[axis] = positions.size();
  int64_t inner = product(in.drop_front(axis + 1));
  std::vector<int64_t> from;
  for (int64_t o = 0, n = product(in.take_front(axis)); o < n; ++o)
    for (int64_t position : positions)
      for (int64_t k = 0; k < inner; ++k)
        from.push_back((o * in[axis] + position) * inner + k);
  return data.take(shape, from);
}

/// Input 0, and the axis that the node names; without one the input is flat.
static FailureOr<std::pair<HostTensor, int64_t>> readAlong(Evaluation &e) {
  if (failed(e.budget.take(e.in(0).size(), e.node)))
    return failure();
  HostTensor data = e.in(0);
  int64_t axis = 0;
  if (e.node.hasAttr("axis"))
    axis = e.node.axis(e.node.intAttr("axis", 0), data.rank());
  else
    data.shape.assign(1, data.size());
  if (e.node.failed())
    return failure();
  return std::pair(std::move(data), axis);
}

static LogicalResult evalCompress(Evaluation &e) {
  auto along = readAlong(e);
  if (failed(along))
    return failure();
  auto &[data, axis] = *along;
  Dims taken;
  for (int64_t i = 0; i < e.in(1).size(); ++i) {
    if (e.in(1).number(i) == 0)
      continue;
    if (i >= data.shape[axis])
      return e.fail("its condition is longer than the dimension");
    taken.push_back(i);
  }
  return e.result(takeSlices(data, axis, taken));
}

namespace {
/// Compares slices of a tensor along an axis.
struct SliceOrder {
  const HostTensor &data;
  int64_t outer, size, inner;

  /// Negative where slice `a` comes before slice `b`; what is not a number
  /// comes last.
  int compare(int64_t a, int64_t b) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t k = 0; k < inner; ++k) {
        int64_t i = (o * size + a) * inner + k, j = (o * size + b) * inner + k;
        if (int order = compareElements(i, j))
          return order;
      }
    return 0;
  }

private:
  int compareElements(int64_t i, int64_t j) const {
    if (!isFloat(data.type))
      return data.ints[i] < data.ints[j] ? -1 : data.ints[i] > data.ints[j];
    double x = data.floats[i], y = data.floats[j];
    if (std::isnan(x) || std::isnan(y))
      return int(std::isnan(x)) - int(std::isnan(y));
    return x < y ? -1 : x > y;
  }
};
} // namespace

/// The first slice of each kind, with where each slice's kind is and how many
/// there are of it.
static LogicalResult evalUnique(Evaluation &e) {
  auto along = readAlong(e);
  if (failed(along))
    return failure();
  auto &[data, axis] = *along;
  ArrayRef<int64_t> in = data.shape;
  SliceOrder order{data, product(in.take_front(axis)), in[axis],
                   product(in.drop_front(axis + 1))};
  Dims sorted(in[axis]);
  for (int64_t i = 0; i < in[axis]; ++i)
    sorted[i] = i;
  llvm::stable_sort(
      sorted, [&](int64_t a, int64_t b) { return order.compare(a, b) < 0; });
  // Kinds in the order of their slices, then as the node wants them.
  std::vector<int64_t> kindOf(in[axis]);
  Dims first, counts;
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i == 0 || order.compare(sorted[i - 1], sorted[i]) != 0) {
      first.push_back(sorted[i]);
      counts.push_back(0);
    }
    ++counts.back();
    kindOf[sorted[i]] = first.size() - 1;
  }
  Dims shown = llvm::to_vector(llvm::seq<int64_t>(0, first.size()));
  if (!e.node.intAttr("sorted", 1))
    llvm::sort(shown,
               [&](int64_t a, int64_t b) { return first[a] < first[b]; });
  Dims place(shown.size()), firstShown, countsShown, inverse;
  for (auto [i, kind] : llvm::enumerate(shown)) {
    place[kind] = i;
    firstShown.push_back(first[kind]);
    countsShown.push_back(counts[kind]);
  }
  for (int64_t kind : kindOf)
    inverse.push_back(place[kind]);
  (void)e.result(takeSlices(data, axis, firstShown));
  (void)e.result(HostTensor::fromInts(firstShown));
  (void)e.result(HostTensor::fromInts(inverse));
  return e.result(HostTensor::fromInts(countsShown));
}

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

namespace {
/// A box by its corners.
struct Box {
  double left, right, top, bottom;

  Box(const double *numbers, bool byCenter) {
    double x = numbers[byCenter ? 0 : 1], y = numbers[byCenter ? 1 : 0];
    double w = numbers[byCenter ? 2 : 3], h = numbers[byCenter ? 3 : 2];
    left = byCenter ? x - w / 2 : std::min(x, w);
    right = byCenter ? x + w / 2 : std::max(x, w);
    top = byCenter ? y - h / 2 : std::min(y, h);
    bottom = byCenter ? y + h / 2 : std::max(y, h);
  }
  double area() const { return (right - left) * (bottom - top); }
  /// The area of both by that of either.
  double overlap(const Box &other) const {
    double w = std::min(right, other.right) - std::max(left, other.left);
    double h = std::min(bottom, other.bottom) - std::max(top, other.top);
    if (!(w > 0 && h > 0 && area() > 0 && other.area() > 0))
      return 0;
    return w * h / (area() + other.area() - w * h);
  }
};
} // namespace

/// Number `i`, a scalar, or what stands for it.
static double scalarOr(Evaluation &e, unsigned i, double fallback) {
  return e.has(i) && e.in(i).size() == 1 ? e.in(i).number(0) : fallback;
}

/// The boxes of one class that stay, best first: `boxes` has four numbers each.
static Dims keepBoxes(Evaluation &e, const double *boxes, const double *scores,
                      int64_t count, int64_t limit) {
  bool byCenter = e.node.intAttr("center_point_box", 0);
  double most = scalarOr(e, 3, 0);
  bool hasLeast = e.has(4) && e.in(4).size() == 1;
  Dims order, kept;
  for (int64_t i = 0; i < count; ++i)
    if (!std::isnan(scores[i]) && (!hasLeast || scores[i] > e.in(4).number(0)))
      order.push_back(i);
  llvm::stable_sort(
      order, [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  for (int64_t i : order) {
    if (int64_t(kept.size()) >= limit)
      break;
    Box box(boxes + 4 * i, byCenter);
    if (llvm::none_of(kept, [&](int64_t k) {
          return Box(boxes + 4 * k, byCenter).overlap(box) > most;
        }))
      kept.push_back(i);
  }
  return kept;
}

/// NonMaxSuppression: batch, class and box of what stays.
static LogicalResult evalNonMaxSuppression(Evaluation &e) {
  const HostTensor &boxes = e.in(0), &scores = e.in(1);
  if (!isFloat(boxes.type) || !isFloat(scores.type) || boxes.rank() != 3 ||
      scores.rank() != 3 || boxes.shape[2] != 4 ||
      boxes.shape[0] != scores.shape[0] || boxes.shape[1] != scores.shape[2])
    return e.fail("its scores do not fit its boxes");
  int64_t classes = scores.shape[1], count = boxes.shape[1];
  // Each box is compared with those that stay.
  constexpr int64_t limit = 1 << 12;
  int64_t most = toInteger(scalarOr(e, 2, 0));
  if (std::min(most, count) > limit)
    return e.fail("keeps more than " + Twine(limit) + " boxes of a class");
  Dims found;
  for (int64_t b = 0; b < boxes.shape[0]; ++b)
    for (int64_t k = 0; k < classes; ++k)
      for (int64_t box : keepBoxes(
               e, boxes.floats.data() + b * count * 4,
               scores.floats.data() + (b * classes + k) * count, count, most))
        found.append({b, k, box});
  HostTensor result = HostTensor::fromInts(found);
  result.shape.assign({int64_t(found.size()) / 3, 3});
  return e.result(std::move(result));
}

//===----------------------------------------------------------------------===//
// By element
//===----------------------------------------------------------------------===//

/// `index` as a place in a dimension of `size`; an error where it is none.
static FailureOr<int64_t> resolve(Evaluation &e, int64_t index, int64_t size) {
  if (index >= -size && index < size)
    return index < 0 ? index + size : index;
  (void)e.fail("index " + Twine(index) + " is out of range for size " +
               Twine(size));
  return failure();
}

/// For each element of input 1 the element of input 0 that it names along the
/// node's axis.
static FailureOr<std::vector<int64_t>> elementsNamed(Evaluation &e) {
  const HostTensor &data = e.in(0), &indices = e.in(1);
  int64_t axis = e.node.axis(e.node.intAttr("axis", 0), data.rank());
  if (e.node.failed())
    return failure();
  bool fits = !isFloat(indices.type) && indices.rank() == data.rank();
  for (int64_t d = 0; fits && d < data.rank(); ++d)
    fits = d == axis || indices.shape[d] <= data.shape[d];
  if (!fits) {
    (void)e.fail("its indices do not fit its data");
    return failure();
  }
  Dims own = stridesOf(indices.shape), strides = stridesOf(data.shape);
  std::vector<int64_t> elements(indices.size(), 0);
  for (int64_t k = 0; k < indices.size(); ++k)
    for (int64_t d = 0; d < data.rank(); ++d) {
      FailureOr<int64_t> place = k / own[d] % indices.shape[d];
      if (d == axis)
        place = resolve(e, indices.ints[k], data.shape[axis]);
      if (failed(place))
        return failure();
      elements[k] += *place * strides[d];
    }
  return elements;
}

static LogicalResult evalGatherElements(Evaluation &e) {
  auto elements = elementsNamed(e);
  if (failed(elements))
    return failure();
  return e.result(e.in(0).take(e.in(1).shape, *elements));
}

/// Combines updates into `result` at `places` as the node's reduction says.
static LogicalResult scatterInto(Evaluation &e, HostTensor &result,
                                 ArrayRef<int64_t> places,
                                 const HostTensor &updates) {
  std::string reduction = e.node.stringAttr("reduction", "none");
  if (updates.type != result.type || updates.size() != int64_t(places.size()))
    return e.fail("its updates do not fit its indices and data");
  for (auto [k, place] : llvm::enumerate(places)) {
    double old = result.number(place), update = updates.number(k);
    double value = reduction == "add"   ? old + update
                   : reduction == "mul" ? old * update
                   : reduction == "max" ? std::max(old, update)
                                        : std::min(old, update);
    if (reduction == "none")
      copyElement(result, place, updates, k);
    else
      result.setNumber(place, value);
  }
  return success();
}

static LogicalResult evalScatterElements(Evaluation &e) {
  auto elements = elementsNamed(e);
  HostTensor result = e.in(0);
  if (failed(elements) || failed(scatterInto(e, result, *elements, e.in(2))))
    return failure();
  return e.result(std::move(result));
}

//===----------------------------------------------------------------------===//
// By coordinates
//===----------------------------------------------------------------------===//

/// The elements of input 0 in the rows that the coordinates of input 1 name,
/// in dimensions after the first `batch`.
static FailureOr<std::vector<int64_t>> rowsNamed(Evaluation &e, int64_t batch) {
  const HostTensor &data = e.in(0), &indices = e.in(1);
  ArrayRef<int64_t> in = data.shape, at = indices.shape;
  int64_t depth = at.empty() ? -1 : at.back();
  bool fits = !isFloat(indices.type) && depth >= 0 && batch >= 0 &&
              batch < int64_t(at.size()) &&
              batch + depth <= int64_t(in.size()) &&
              at.take_front(batch) == in.take_front(batch);
  Dims shape(fits ? at.drop_back() : at);
  if (!fits) {
    (void)e.fail("its indices do not fit its data");
    return failure();
  }
  llvm::append_range(shape, in.drop_front(batch + depth));
  if (!e.fits(shape))
    return failure();
  int64_t perBatch = product(at.drop_front(batch).drop_back());
  int64_t inner = product(in.drop_front(batch + depth));
  Dims strides = stridesOf(in);
  std::vector<int64_t> elements;
  for (int64_t r = 0, rows = product(at.drop_back()); r < rows; ++r) {
    int64_t base = batch ? r / perBatch * strides[batch - 1] : 0;
    for (int64_t d = 0; d < depth; ++d) {
      FailureOr<int64_t> place =
          resolve(e, indices.ints[r * depth + d], in[batch + d]);
      if (failed(place))
        return failure();
      base += *place * strides[batch + d];
    }
    for (int64_t k = 0; k < inner; ++k)
      elements.push_back(base + k);
  }
  return elements;
}

static LogicalResult evalGatherND(Evaluation &e) {
  int64_t batch = e.node.intAttr("batch_dims", 0);
  if (e.node.failed())
    return failure();
  auto elements = rowsNamed(e, batch);
  if (failed(elements))
    return failure();
  Dims shape(ArrayRef<int64_t>(e.in(1).shape).drop_back());
  llvm::append_range(shape, ArrayRef<int64_t>(e.in(0).shape)
                                .drop_front(batch + e.in(1).shape.back()));
  return e.result(e.in(0).take(shape, *elements));
}

static LogicalResult evalScatterND(Evaluation &e) {
  auto elements = rowsNamed(e, /*batch=*/0);
  HostTensor result = e.in(0);
  if (failed(elements) || failed(scatterInto(e, result, *elements, e.in(2))))
    return failure();
  return e.result(std::move(result));
}

void zero::onnx_import::addIndexEvaluators(llvm::StringMap<Evaluator> &table) {
  table["Compress"] = {evalCompress, 2};
  table["GatherElements"] = {evalGatherElements, 2};
  table["GatherND"] = {evalGatherND, 2};
  table["NonMaxSuppression"] = {evalNonMaxSuppression, 2};
  table["NonZero"] = {evalNonZero, 1};
  table["Scatter"] = {evalScatterElements, 3};
  table["ScatterElements"] = {evalScatterElements, 3};
  table["ScatterND"] = {evalScatterND, 3};
  table["Unique"] = {evalUnique, 1};
}
