//===- Sequences.cpp - Sequences and optionals ----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sequences and optionals exist at import only: how long a sequence is and
// whether an optional has an element is known there, and what comes out of them
// are tensors.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Sequences.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

// The most tensors that one node makes of one.
static constexpr int64_t maxPieces = int64_t(1) << 16;

//===----------------------------------------------------------------------===//
// Cutting and joining
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<int64_t>>
zero::onnx_import::tensorShape(NodeContext &c, Binding &tensor,
                               const Twine &what) {
  if (std::optional<SmallVector<int64_t>> shape = c.bindingShape(tensor))
    return *shape;
  (void)c.fail(what + " is not a tensor");
  return failure();
}

/// The elements [start, start + size) along `axis`.
static HostTensor sliceHost(const HostTensor &tensor, int64_t axis,
                            int64_t start, int64_t size) {
  ArrayRef<int64_t> from = tensor.shape;
  int64_t rows = *countElements(from.take_front(axis));
  int64_t inner = *countElements(from.drop_front(axis + 1));
  SmallVector<int64_t> shape(from);
  shape[axis] = size;
  std::vector<int64_t> indices;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < size * inner; ++i)
      indices.push_back((row * from[axis] + start) * inner + i);
  return tensor.take(shape, indices);
}

/// The piece of `tensor` between `start` and `start + size` of `axis`, without
/// the axis if `drop` (and `size` is 1).
static FailureOr<Binding> piece(NodeContext &c, Binding &tensor, int64_t axis,
                                int64_t start, int64_t size, bool drop) {
  if (const HostTensor *host = c.hostOf(tensor)) {
    HostTensor result = sliceHost(*host, axis, start, size);
    if (drop)
      result.shape.erase(result.shape.begin() + axis);
    return Binding(std::move(result));
  }
  Value value = c.valueOf(tensor);
  if (!value)
    return failure();
  SmallVector<int64_t> limits(shapeOf(value)), starts(limits.size(), 0),
      strides(limits.size(), 1);
  starts[axis] = start;
  limits[axis] = start + size;
  value = c.emit<train::SliceOp>(value, {c.list("starts", starts),
                                         c.list("limits", limits),
                                         c.list("strides", strides)});
  if (value && drop) {
    SmallVector<int64_t> shape(shapeOf(value));
    shape.erase(shape.begin() + axis);
    value = c.reshape(value, shape);
  }
  if (!value)
    return failure();
  return Binding(value);
}

FailureOr<Binding> zero::onnx_import::elementAt(NodeContext &c, Binding &tensor,
                                                int64_t axis, int64_t index) {
  return piece(c, tensor, axis, index, 1, /*drop=*/true);
}

/// Joins known tensors that agree in all but `axis`.
static HostTensor joinHost(ArrayRef<const HostTensor *> tensors, int64_t axis,
                           ArrayRef<int64_t> shape) {
  HostTensor result(tensors.front()->type, shape);
  int64_t rows = *countElements(shape.take_front(axis));
  int64_t row = *countElements(shape.drop_front(axis)), at = 0;
  for (const HostTensor *tensor : tensors) {
    int64_t width = rows ? tensor->size() / rows : 0;
    for (int64_t i = 0; i < tensor->size(); ++i) {
      int64_t to = i / width * row + at + i % width;
      if (isFloat(result.type))
        result.floats[to] = tensor->floats[i];
      else
        result.ints[to] = tensor->ints[i];
    }
    at += width;
  }
  return result;
}

/// The shape of `tensors` joined along `axis`; an error if they do not fit.
static FailureOr<SmallVector<int64_t>>
joinedShape(NodeContext &c, ArrayRef<SmallVector<int64_t>> shapes,
            int64_t axis) {
  SmallVector<int64_t> result = shapes.front();
  for (const SmallVector<int64_t> &shape : shapes.drop_front()) {
    bool fits = shape.size() == result.size() &&
                !__builtin_add_overflow(result[axis], shape[axis],
                                        &result[axis]);
    for (int64_t i = 0, e = result.size(); fits && i < e; ++i)
      fits = i == axis || shape[i] == result[i];
    if (!fits) {
      (void)c.fail("its tensors differ in shape and cannot be joined");
      return failure();
    }
  }
  return result;
}

FailureOr<Binding>
zero::onnx_import::joinBindings(NodeContext &c,
                                MutableArrayRef<Binding> tensors, int64_t axis,
                                bool newAxis) {
  SmallVector<SmallVector<int64_t>> shapes;
  SmallVector<const HostTensor *> hosts;
  for (Binding &tensor : tensors) {
    FailureOr<SmallVector<int64_t>> shape =
        tensorShape(c, tensor, "one of what it joins");
    if (failed(shape))
      return failure();
    axis = c.node.axis(axis, shape->size() + newAxis);
    if (c.node.failed())
      return failure();
    if (newAxis)
      shape->insert(shape->begin() + axis, 1);
    shapes.push_back(*shape);
    const HostTensor *host = c.hostOf(tensor);
    if (host && (hosts.empty() || hosts[0]->type == host->type))
      hosts.push_back(host);
  }
  FailureOr<SmallVector<int64_t>> shape = joinedShape(c, shapes, axis);
  if (failed(shape))
    return failure();
  std::optional<int64_t> count = countElements(*shape);
  if (hosts.size() == tensors.size() && count && *count <= maxHostElements)
    return Binding(joinHost(hosts, axis, *shape));
  SmallVector<Value> values;
  for (auto [tensor, padded] : llvm::zip(tensors, shapes)) {
    Value value = c.valueOf(tensor);
    if (!value || !(value = c.reshape(value, padded)))
      return failure();
    values.push_back(value);
  }
  Value value = values.size() == 1
                    ? values[0]
                    : c.emit<train::ConcatOp>(values, c.integer("axis", axis));
  if (!value)
    return failure();
  return Binding(value);
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

/// The sequence that is input `i`; null after an error.
static const std::vector<Binding> *sequence(NodeContext &c, unsigned i) {
  if (c.has(i) && c.binding(i).sequence)
    return c.binding(i).sequence.get();
  (void)c.fail("its input " + Twine(i) + " is not a sequence");
  return nullptr;
}

static LogicalResult setFirst(NodeContext &c, Binding binding) {
  if (!c.numResults())
    return c.fail("has no output");
  c.set(0, std::move(binding));
  return success();
}

/// The sizes of SplitToSequence's pieces.
static FailureOr<SmallVector<int64_t>> sequenceSizes(NodeContext &c,
                                                     int64_t dim) {
  SmallVector<int64_t> sizes;
  int64_t chunk = 1;
  if (c.has(1)) {
    auto given = c.ints(1, "split");
    if (!given)
      return failure();
    if (c.host(1)->rank() == 1)
      return splitSizes(c.node, dim, c.host(1), 0);
    chunk = given->size() == 1 ? given->front() : 0;
  }
  if (chunk <= 0) {
    (void)c.fail("its split is not a positive size");
    return failure();
  }
  if ((dim - 1) / chunk >= maxPieces) {
    (void)c.fail("makes more than " + Twine(maxPieces) + " pieces");
    return failure();
  }
  for (int64_t left = dim; left > 0; left -= chunk)
    sizes.push_back(std::min(chunk, left));
  return sizes;
}

static LogicalResult importSplitToSequence(NodeContext &c) {
  auto shape = tensorShape(c, c.binding(0), "its input 0");
  if (failed(shape))
    return failure();
  int64_t axis = c.node.axis(c.node.intAttr("axis", 0), shape->size());
  if (c.node.failed())
    return failure();
  auto sizes = sequenceSizes(c, (*shape)[axis]);
  if (failed(sizes))
    return failure();
  bool squeeze = !c.has(1) && !c.node.intAttr("keepdims", 1);
  std::vector<Binding> pieces;
  int64_t start = 0;
  for (int64_t size : *sizes) {
    FailureOr<Binding> next = piece(c, c.binding(0), axis, start, size, squeeze);
    if (failed(next))
      return failure();
    pieces.push_back(*next);
    start += size;
  }
  return setFirst(c, Binding::list(std::move(pieces)));
}

/// Fails if input `i` is no tensor: sequences do not nest.
static LogicalResult checkElement(NodeContext &c, unsigned i) {
  if (c.has(i) && c.bindingShape(c.binding(i)))
    return success();
  return c.fail("its input " + Twine(i) + " is not a tensor");
}

static LogicalResult importSequenceConstruct(NodeContext &c) {
  std::vector<Binding> elements;
  for (unsigned i = 0; i < c.numInputs(); ++i) {
    if (failed(checkElement(c, i)))
      return failure();
    elements.push_back(c.binding(i));
  }
  return setFirst(c, Binding::list(std::move(elements)));
}

static LogicalResult importSequenceEmpty(NodeContext &c) {
  return setFirst(c, Binding::list({}));
}

/// Input 1 as a position in a sequence of `size`; `end` says whether the place
/// after the last is one, too.
static std::optional<int64_t> position(NodeContext &c, int64_t size, bool end) {
  unsigned input = c.node.op() == "SequenceInsert" ? 2 : 1;
  auto given = c.ints(input, "position");
  if (!given)
    return std::nullopt;
  int64_t index = given->size() == 1 ? given->front() : -size - 1;
  if (index >= -size && index < size + end)
    return index < 0 ? index + size : index;
  if (given->size() == 1)
    (void)c.fail("position " + Twine(index) +
                 " is out of range for a sequence of " + Twine(size));
  else
    (void)c.fail("its position is not one integer");
  return std::nullopt;
}

static LogicalResult importSequenceAt(NodeContext &c) {
  const std::vector<Binding> *elements = sequence(c, 0);
  auto index = elements ? position(c, elements->size(), false) : std::nullopt;
  return index ? setFirst(c, (*elements)[*index]) : failure();
}

static LogicalResult importSequenceErase(NodeContext &c) {
  const std::vector<Binding> *elements = sequence(c, 0);
  if (!elements)
    return failure();
  std::vector<Binding> rest = *elements;
  if (c.has(1)) {
    auto index = position(c, rest.size(), false);
    if (!index)
      return failure();
    rest.erase(rest.begin() + *index);
  } else if (rest.empty()) {
    return c.fail("its sequence is empty");
  } else {
    rest.pop_back();
  }
  return setFirst(c, Binding::list(std::move(rest)));
}

static LogicalResult importSequenceInsert(NodeContext &c) {
  const std::vector<Binding> *elements = sequence(c, 0);
  if (!elements || failed(checkElement(c, 1)))
    return failure();
  std::vector<Binding> longer = *elements;
  std::optional<int64_t> index = longer.size();
  if (c.has(2) && !(index = position(c, longer.size(), true)))
    return failure();
  longer.insert(longer.begin() + *index, c.binding(1));
  return setFirst(c, Binding::list(std::move(longer)));
}

static LogicalResult importSequenceLength(NodeContext &c) {
  const std::vector<Binding> *elements = sequence(c, 0);
  if (!elements)
    return failure();
  HostTensor length(DType::I64, {});
  length.setInt(0, elements->size());
  return setFirst(c, Binding(std::move(length)));
}

static LogicalResult importConcatFromSequence(NodeContext &c) {
  const std::vector<Binding> *elements = sequence(c, 0);
  if (!elements)
    return failure();
  if (elements->empty())
    return c.fail("its sequence is empty");
  std::vector<Binding> copy = *elements;
  FailureOr<Binding> joined =
      joinBindings(c, copy, c.node.intAttr("axis", 0),
                   c.node.intAttr("new_axis", 0));
  return failed(joined) ? failure() : setFirst(c, *joined);
}

//===----------------------------------------------------------------------===//
// Optionals
//===----------------------------------------------------------------------===//

static LogicalResult importOptional(NodeContext &c) {
  return setFirst(c, c.has(0) ? c.binding(0) : Binding::none());
}

static LogicalResult importOptionalGetElement(NodeContext &c) {
  if (c.binding(0).isNone)
    return c.fail("its optional has no element");
  return setFirst(c, c.binding(0));
}

static LogicalResult importOptionalHasElement(NodeContext &c) {
  HostTensor result(DType::Bool, {});
  result.setInt(0, c.has(0) && !c.binding(0).isNone);
  return setFirst(c, Binding(std::move(result)));
}

void zero::onnx_import::addSequenceHandlers(HandlerTable &table) {
  table["ConcatFromSequence"] = {importConcatFromSequence, 1};
  table["Optional"] = {importOptional, 0};
  table["OptionalGetElement"] = {importOptionalGetElement, 1};
  table["OptionalHasElement"] = {importOptionalHasElement, 0};
  table["SequenceAt"] = {importSequenceAt, 2};
  table["SequenceConstruct"] = {importSequenceConstruct, 1};
  table["SequenceEmpty"] = {importSequenceEmpty, 0};
  table["SequenceErase"] = {importSequenceErase, 1};
  table["SequenceInsert"] = {importSequenceInsert, 2};
  table["SequenceLength"] = {importSequenceLength, 1};
  table["SplitToSequence"] = {importSplitToSequence, 1};
}
