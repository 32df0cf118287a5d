//===- Evaluator.cpp - Dispatch and rules of shape operators --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Looks evaluators up and holds the shape rules that host evaluation and the
// operators that become IR have in common.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Evaluator.h"
#include "lib/Import/Model.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

HostBudget::HostBudget(size_t fileBytes) {
  constexpr size_t perByte = 256, least = 1 << 23, most = 1 << 27;
  total = std::clamp(std::min(fileBytes, most) * perByte, least, most);
}

LogicalResult HostBudget::take(int64_t elements, NodeReader &node) {
  // Both are sizes of tensors in memory.
  used += elements;
  if (used <= total)
    return success();
  return node.error() << "the model computes more than " << total
                      << " constant elements at import, the limit for a file "
                         "of its size";
}

bool Evaluation::fits(ArrayRef<int64_t> shape) {
  for (int64_t dim : shape)
    if (dim < 0) {
      node.error() << "has the negative dimension " << dim;
      return false;
    }
  std::optional<int64_t> count = countElements(shape);
  if (count && *count <= budget.room())
    return true;
  if (count && *count <= maxHostElements)
    return succeeded(budget.take(*count, node));
  node.error() << "would make a constant of more than " << maxHostElements
               << " elements at import";
  return false;
}

Evaluator zero::onnx_import::findEvaluator(StringRef op) {
  static const llvm::StringMap<Evaluator> table = [] {
    llvm::StringMap<Evaluator> entries;
    addMathEvaluators(entries);
    addShapeEvaluators(entries);
    addIndexEvaluators(entries);
    addReductionEvaluators(entries);
    return entries;
  }();
  return table.lookup(op);
}

LogicalResult zero::onnx_import::evaluate(Evaluator evaluator,
                                          Evaluation &evaluation) {
  for (unsigned i = 0; i < evaluator.minInputs; ++i)
    if (!evaluation.has(i))
      return evaluation.fail("input " + Twine(i) + " is missing");
  if (failed(evaluator.fn(evaluation)))
    return failure();
  return failure(evaluation.node.failed());
}

FailureOr<HostTensor>
zero::onnx_import::evaluateConstant(NodeReader &node, ExternalFiles &files) {
  if (const onnx::TensorProto *proto = node.tensorAttr("value")) {
    FailureOr<TensorData> data =
        readTensor(*proto, files, [&] { return node.error(); });
    if (failed(data))
      return failure();
    if (data->size() <= maxHostElements)
      return data->decode();
    node.error() << "has more than " << maxHostElements
                 << " elements; store it as an initializer";
    return failure();
  }
  HostTensor result;
  if (node.hasAttr("value_int")) {
    result.ints = {node.intAttr("value_int", 0)};
  } else if (node.hasAttr("value_ints")) {
    result = HostTensor::fromInts(node.intsAttr("value_ints"));
  } else if (node.hasAttr("value_float")) {
    result = HostTensor(DType::F32, {});
    result.floats[0] = node.floatAttr("value_float", 0);
  } else if (node.hasAttr("value_floats")) {
    SmallVector<double> values = node.floatsAttr("value_floats");
    result = HostTensor(DType::F32, {int64_t(values.size())});
    result.floats.assign(values.begin(), values.end());
  } else if (!node.failed()) {
    node.error() << "has no value attribute that is supported (value, "
                    "value_int(s), value_float(s))";
  }
  if (node.failed())
    return failure();
  return result;
}

//===----------------------------------------------------------------------===//
// Shape rules
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<int64_t>>
zero::onnx_import::reshapeTarget(NodeReader &node, ArrayRef<int64_t> shape,
                                 ArrayRef<int64_t> target) {
  bool allowZero = node.intAttr("allowzero", 0);
  SmallVector<int64_t> result(target);
  std::optional<size_t> open;
  for (auto [i, dim] : llvm::enumerate(result)) {
    if (dim == 0 && !allowZero) {
      if (i >= shape.size()) {
        node.error() << "entry " << i << " copies a dimension that the input "
                     << "does not have";
        return failure();
      }
      dim = shape[i];
    } else if (dim == -1 && !open) {
      open = i;
      dim = 1;
    } else if (dim < 0) {
      node.error() << "has the bad target dimension " << dim;
      return failure();
    }
  }
  int64_t from = countElements(shape).value_or(-1);
  int64_t to = countElements(result).value_or(-1);
  if (open && to > 0 && from % to == 0)
    result[*open] = from / to;
  else if (open || from != to) {
    node.error() << "cannot turn " << from << " elements into the target shape";
    return failure();
  }
  return result;
}

/// Clamps as the operator's specification says.
static SliceRange sliceRange(int64_t dim, int64_t start, int64_t end,
                             int64_t step) {
  auto resolve = [&](int64_t v) { return v < 0 ? v + dim : v; };
  SliceRange range{0, 0, step};
  int64_t limit;
  if (step > 0) {
    range.start = std::clamp<int64_t>(resolve(start), 0, dim);
    limit = std::clamp<int64_t>(resolve(end), 0, dim);
    if (limit > range.start)
      range.count = (limit - range.start - 1) / step + 1;
  } else {
    range.start = std::clamp<int64_t>(resolve(start), -1, dim - 1);
    // An end below -dim means "through the first element".
    limit = std::clamp<int64_t>(end < -dim ? -1 : resolve(end), -1, dim - 1);
    // Unsigned: the step may be the smallest integer.
    if (range.start > limit)
      range.count =
          uint64_t(range.start - limit - 1) / (0 - uint64_t(step)) + 1;
  }
  return range;
}

FailureOr<SmallVector<SliceRange>> zero::onnx_import::sliceRanges(
    NodeReader &node, ArrayRef<int64_t> shape, ArrayRef<int64_t> starts,
    ArrayRef<int64_t> ends, ArrayRef<int64_t> axes, ArrayRef<int64_t> steps) {
  SmallVector<SliceRange> ranges;
  for (int64_t dim : shape)
    ranges.push_back({0, dim, 1});
  if (ends.size() != starts.size() || steps.size() != starts.size() ||
      axes.size() != starts.size()) {
    node.error() << "starts, ends, axes and steps differ in length";
    return failure();
  }
  SmallVector<int64_t> normal = node.axes(axes, shape.size());
  if (node.failed())
    return failure();
  for (auto [i, axis] : llvm::enumerate(normal)) {
    if (steps[i] == 0) {
      node.error() << "has a step of 0";
      return failure();
    }
    ranges[axis] = sliceRange(shape[axis], starts[i], ends[i], steps[i]);
  }
  return ranges;
}

FailureOr<SmallVector<int64_t>>
zero::onnx_import::splitSizes(NodeReader &node, int64_t size,
                              const HostTensor *given, int64_t outputs) {
  SmallVector<int64_t> sizes;
  if (given) {
    sizes.assign(given->ints.begin(), given->ints.end());
  } else {
    // Equal pieces, the last one smaller.
    outputs = node.intAttr("num_outputs", outputs);
    if (outputs <= 0 || outputs > size) {
      node.error() << "cannot cut " << size << " rows into " << outputs
                   << " pieces";
      return failure();
    }
    int64_t chunk = (size + outputs - 1) / outputs;
    sizes.assign(outputs - 1, chunk);
    sizes.push_back(size - chunk * (outputs - 1));
  }
  int64_t left = size;
  for (int64_t piece : sizes) {
    if (piece < 0) {
      node.error() << "has the negative size " << piece;
      return failure();
    }
    left = piece > left ? -1 : left - piece;
  }
  if (left == 0)
    return sizes;
  node.error() << "its sizes do not add up to " << size;
  return failure();
}

FailureOr<SmallVector<int64_t>>
zero::onnx_import::squeezedShape(NodeReader &node, ArrayRef<int64_t> shape,
                                 const HostTensor *axes) {
  SmallVector<int64_t> drop, result;
  if (axes)
    drop = node.axes(axes->ints, shape.size());
  if (node.failed())
    return failure();
  for (auto [i, dim] : llvm::enumerate(shape)) {
    bool named = llvm::is_contained(drop, int64_t(i));
    if (named && dim != 1) {
      node.error() << "cannot drop axis " << i << " of size " << dim;
      return failure();
    }
    if (axes ? !named : dim != 1)
      result.push_back(dim);
  }
  return result;
}

FailureOr<SmallVector<int64_t>>
zero::onnx_import::unsqueezedShape(NodeReader &node, ArrayRef<int64_t> shape,
                                   const HostTensor &axes) {
  int64_t rank = shape.size() + axes.ints.size();
  SmallVector<int64_t> added = node.axes(axes.ints, rank), result;
  if (node.failed())
    return failure();
  const int64_t *next = shape.begin();
  for (int64_t i = 0; i < rank; ++i)
    result.push_back(llvm::is_contained(added, i) ? 1 : *next++);
  return result;
}

FailureOr<SmallVector<int64_t>>
zero::onnx_import::flattenedShape(NodeReader &node, ArrayRef<int64_t> shape) {
  int64_t axis = node.intAttr("axis", 1), rank = shape.size();
  if (axis != rank)
    axis = node.axis(axis, rank);
  if (node.failed())
    return failure();
  return SmallVector<int64_t>{*countElements(shape.take_front(axis)),
                              *countElements(shape.drop_front(axis))};
}

FailureOr<SmallVector<int64_t>> zero::onnx_import::permutation(NodeReader &node,
                                                               int64_t rank) {
  SmallVector<int64_t> perm;
  for (int64_t i = 0; i < rank; ++i)
    perm.push_back(rank - 1 - i);
  SmallVector<int64_t> given = node.intsAttr("perm", perm);
  for (int64_t axis : given)
    if (axis < 0)
      node.error() << "its permutation has the negative axis " << axis;
  if (int64_t(given.size()) == rank)
    perm = node.axes(given, rank);
  else
    node.error() << "its permutation has " << given.size()
                 << " entries for rank " << rank;
  if (node.failed())
    return failure();
  return perm;
}
