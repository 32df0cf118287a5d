//===- IndexOps.cpp - Operators that read and write by index --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All of them become gathers and scatters of rows: the leading dimensions of
// the data are joined, and the row that each index means is computed.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/IndexMath.h"
#include "lib/Import/InputBounds.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

using Dims = SmallVector<int64_t>;

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Fails where an index known at import is not one of a dimension of `size`.
static LogicalResult checkKnown(NodeContext &c, Indices indices, int64_t size) {
  if (!indices)
    return failure();
  if (size == 0 && product(indices.shape()) > 0)
    return c.fail("has indices into a dimension of size 0");
  if (indices.host)
    for (int64_t index : indices.host->ints)
      if (index < -size || index >= size)
        return c.fail("index " + Twine(index) + " is out of range for size " +
                      Twine(size));
  return success();
}

/// The reduction of a scatter; empty after an error.
static StringRef readReduction(NodeContext &c) {
  std::string name = c.node.stringAttr("reduction", "none");
  for (StringRef known : {"none", "add", "mul", "max", "min"})
    if (known == name)
      return known;
  (void)c.fail("its reduction is '" + name +
               "', expected none, add, mul, max or min");
  return {};
}

//===----------------------------------------------------------------------===//
// Gathers
//===----------------------------------------------------------------------===//

static LogicalResult importGather(NodeContext &c) {
  Value data = c.value(0);
  if (!data)
    return failure();
  int64_t axis = c.node.axis(c.node.intAttr("axis", 0), typeOf(data).getRank());
  Value indices = c.node.failed() ? Value() : c.value(1);
  if (!indices)
    return failure();
  // A value needs no other type for this.
  Indices known = c.host(1) ? IndexMath{c}.input(1) : Indices{{}, indices};
  if (failed(checkKnown(c, known, shapeOf(data)[axis])))
    return failure();
  return c.result(
      c.emit<train::GatherOp>({data, indices}, c.integer("axis", axis)));
}

/// For each element of `indices` the number of the element of `shape` at its
/// own coordinates, but for the index along `axis`.
static Indices elementNumbers(NodeContext &c, ArrayRef<int64_t> shape,
                              Indices indices, int64_t axis) {
  IndexMath m{c};
  Dims strides = stridesOf(shape);
  Dims taken(indices.shape());
  Indices numbers = m.mul(m.wrap(indices, shape[axis]), strides[axis]);
  for (int64_t d = 0, rank = shape.size(); d < rank; ++d)
    if (d != axis && taken[d] != 1)
      numbers = m.add(numbers, m.counter(rank, d, taken[d], strides[d]));
  return numbers;
}

/// The element numbers of input 1, which indexes `data` along the axis that
/// the node names; none after an error.
static Indices readElementNumbers(NodeContext &c, Value data) {
  ArrayRef<int64_t> shape = shapeOf(data);
  int64_t rank = shape.size();
  int64_t axis = c.node.axis(c.node.intAttr("axis", 0), rank);
  Indices indices = IndexMath{c}.input(1);
  if (c.node.failed() || failed(checkKnown(c, indices, shape[axis])))
    return {};
  bool fits = int64_t(indices.shape().size()) == rank;
  for (int64_t d = 0; fits && d < rank; ++d)
    fits = d == axis || indices.shape()[d] <= shape[d];
  if (!fits) {
    (void)c.fail("its indices do not fit its data");
    return {};
  }
  boundInput(indices.value, -shape[axis], shape[axis] - 1);
  return elementNumbers(c, shape, indices, axis);
}

static LogicalResult importGatherElements(NodeContext &c) {
  Value data = c.value(0);
  if (!data)
    return failure();
  Indices numbers = readElementNumbers(c, data);
  return c.result(gatherRows(c, data, typeOf(data).getRank(), numbers));
}

/// For each coordinate of `indices` (its last dimension) in the dimensions of
/// `data` after the first `batch`, the number of the row it names; the batch's
/// dimensions are those of `indices`. None after an error.
static Indices rowNumbers(NodeContext &c, ArrayRef<int64_t> data,
                          Indices indices, int64_t batch) {
  if (!indices)
    return {};
  Dims shape(indices.shape());
  int64_t depth = shape.empty() ? -1 : shape.back();
  bool fits = depth >= 0 && batch >= 0 && batch < int64_t(shape.size()) &&
              batch + depth <= int64_t(data.size()) &&
              ArrayRef(shape).take_front(batch) == data.take_front(batch);
  if (!fits) {
    (void)c.fail("its indices do not fit its data");
    return {};
  }
  IndexMath m{c};
  ArrayRef<int64_t> indexed = data.slice(batch, depth);
  if (llvm::is_contained(indexed, 0) && product(shape) > 0) {
    (void)c.fail("has indices into a dimension of size 0");
    return {};
  }
  // Coordinates of different dimensions share one bound of the input.
  if (!indexed.empty()) {
    int64_t largest = *llvm::max_element(indexed);
    boundInput(indices.value, -largest, largest - 1);
  }
  Indices sizes = m.constant(HostTensor::fromInts(indexed));
  Indices strides = m.constant(HostTensor::fromInts(stridesOf(indexed)));
  Indices rows = m.sumLast(m.mul(m.wrap(indices, sizes), strides));
  int64_t rank = shape.size() - 1, step = product(indexed);
  for (int64_t d = batch - 1; d >= 0; --d) {
    rows = m.add(rows, m.counter(rank, d, data[d], step));
    step *= data[d];
  }
  return rows;
}

/// Fails where a coordinate known at import is out of range.
static LogicalResult checkCoordinates(NodeContext &c, ArrayRef<int64_t> indexed,
                                      Indices indices) {
  if (!indices.host)
    return success();
  int64_t depth = indexed.size();
  for (int64_t k = 0, n = indices.host->size(); k < n; ++k) {
    int64_t index = indices.host->ints[k], size = indexed[k % depth];
    if (index < -size || index >= size)
      return c.fail("index " + Twine(index) + " is out of range for size " +
                    Twine(size));
  }
  return success();
}

static LogicalResult importGatherND(NodeContext &c) {
  Value data = c.value(0);
  Indices indices = IndexMath{c}.input(1);
  int64_t batch = c.node.intAttr("batch_dims", 0);
  if (!data || !indices || c.node.failed())
    return failure();
  Indices rows = rowNumbers(c, shapeOf(data), indices, batch);
  if (!rows)
    return failure();
  int64_t depth = indices.shape().back();
  if (failed(checkCoordinates(c, shapeOf(data).slice(batch, depth), indices)))
    return failure();
  return c.result(gatherRows(c, data, batch + depth, rows));
}

/// Compress: the condition, which says what is taken, is known.
static LogicalResult importCompress(NodeContext &c) {
  Value value = c.value(0);
  auto condition = c.ints(1, "condition");
  if (!value || !condition)
    return failure();
  int64_t axis = 0;
  if (c.node.hasAttr("axis"))
    axis = c.node.axis(c.node.intAttr("axis", 0), typeOf(value).getRank());
  else
    value = c.reshape(value, product(shapeOf(value)));
  if (c.node.failed() || !value)
    return failure();
  Dims taken;
  for (auto [i, keep] : llvm::enumerate(*condition)) {
    if (keep && int64_t(i) >= shapeOf(value)[axis])
      return c.fail("its condition is longer than the dimension");
    if (keep)
      taken.push_back(i);
  }
  return c.result(takeAlong(c, value, axis, taken));
}

/// ReverseSequence: element t of a sequence of length n comes from n - 1 - t.
static LogicalResult importReverseSequence(NodeContext &c) {
  Value value = c.value(0);
  Indices lengths = IndexMath{c}.input(1);
  int64_t batch = c.node.intAttr("batch_axis", 1);
  int64_t time = c.node.intAttr("time_axis", 0);
  if (!value || !lengths || c.node.failed())
    return failure();
  ArrayRef<int64_t> shape = shapeOf(value);
  if (shape.size() < 2 || batch + time != 1 || batch * time != 0 ||
      lengths.shape() != shape.slice(batch, 1))
    return c.fail("needs the axes 0 and 1, and a length for each sequence");
  boundInput(lengths.value, 0, shape[time]);
  IndexMath m{c};
  Dims perSequence = {1, 1}, strides = {shape[1], 1};
  perSequence[batch] = shape[batch];
  Value length = m.value(m.reshape(lengths, perSequence));
  Value place = m.value(m.counter(2, time, shape[time]));
  Value isInside = c.emit<train::LessOp>({place, length});
  Value mirrored = c.emit<train::SubOp>({length, place});
  mirrored = c.emit<train::SubOp>({mirrored, c.scalar(mirrored, 1)});
  Value from = c.emit<train::WhereOp>({isInside, mirrored, place});
  if (!from)
    return failure();
  Indices rows = m.add(m.mul({nullptr, from}, strides[time]),
                       m.counter(2, batch, shape[batch], strides[batch]));
  return c.result(gatherRows(c, value, 2, rows));
}

//===----------------------------------------------------------------------===//
// Scatters
//===----------------------------------------------------------------------===//

/// Most rows that a table of where they come from is made for.
static constexpr int64_t maxTable = int64_t(1) << 20;

/// `data` [rows, rest...] with the rows numbered `rows` replaced by those of
/// `updates`, the last one of several: each row is taken from either.
static Value replaceRows(NodeContext &c, Value data, const HostTensor &rows,
                         Value updates) {
  if (!data)
    return {};
  Dims shape(shapeOf(data));
  Dims from(shape[0], 0), masked(shape.size(), 1);
  masked[0] = shape[0];
  HostTensor isNew(DType::Bool, masked);
  for (int64_t k = 0; k < rows.size(); ++k) {
    if (rows.ints[k] < 0 || rows.ints[k] >= shape[0]) {
      (void)c.fail("writes behind the end of its data");
      return {};
    }
    from[rows.ints[k]] = k;
    isNew.setInt(rows.ints[k], 1);
  }
  shape[0] = rows.size();
  Value taken = takeAlong(c, c.reshape(updates, shape), 0, from);
  if (!llvm::is_contained(isNew.ints, 0))
    return taken;
  return c.emit<train::WhereOp>({c.constant(isNew), taken, data});
}

/// Combines `updates` into the rows of `data`, seen as [rows, rest...] with
/// `depth` dimensions in a row number. A sum of floats adds up the updates
/// first, in f32 at least.
static Value scatterRows(NodeContext &c, Value data, int64_t depth,
                         Indices rows, Value updates, StringRef reduction) {
  if (!data || !updates || !rows || reduction.empty())
    return {};
  ArrayRef<int64_t> shape = shapeOf(data);
  Dims flat = {product(shape.take_front(depth))};
  llvm::append_range(flat, shape.drop_front(depth));
  if (reduction == "add" && isa<FloatType>(typeOf(data).getElementType())) {
    Value places = IndexMath{c}.value(rows);
    Value sum = c.emit<train::GatherGradOp>(
        {updates, places}, {c.integer("axis", 0), c.list("data_shape", flat)});
    return c.emit<train::AddOp>({data, c.reshape(sum, shape)});
  }
  if (reduction == "none" && rows.host && rows.host->size() > 0 &&
      flat[0] <= maxTable)
    return c.reshape(replaceRows(c, c.reshape(data, flat), *rows.host, updates),
                     shape);
  Value result = c.emit<train::ScatterOp>(
      {c.reshape(data, flat), IndexMath{c}.value(rows), updates},
      {c.integer("axis", 0),
       c.b.getNamedAttr("reduction", c.b.getStringAttr(reduction))});
  return c.reshape(result, shape);
}

static LogicalResult importScatterElements(NodeContext &c) {
  Value data = c.value(0), updates = c.value(2);
  if (!data || !updates)
    return failure();
  Indices numbers = readElementNumbers(c, data);
  if (numbers && numbers.shape() != shapeOf(updates))
    return c.fail("its updates and indices differ in shape");
  return c.result(scatterRows(c, data, typeOf(data).getRank(), numbers, updates,
                              readReduction(c)));
}

static LogicalResult importScatterND(NodeContext &c) {
  Value data = c.value(0), updates = c.value(2);
  Indices indices = IndexMath{c}.input(1);
  if (!data || !updates || !indices)
    return failure();
  Indices rows = rowNumbers(c, shapeOf(data), indices, /*batch=*/0);
  if (!rows)
    return failure();
  int64_t depth = indices.shape().back();
  if (failed(checkCoordinates(c, shapeOf(data).take_front(depth), indices)))
    return failure();
  Dims taken(rows.shape());
  llvm::append_range(taken, shapeOf(data).drop_front(depth));
  if (shapeOf(updates) != ArrayRef<int64_t>(taken))
    return c.fail("its updates do not have the shape that its indices name");
  return c.result(scatterRows(c, data, depth, rows, updates, readReduction(c)));
}

/// TensorScatter: a piece of a cache, from a place on that each sample names.
static LogicalResult importTensorScatter(NodeContext &c) {
  Value data = c.value(0), updates = c.value(1);
  if (!data || !updates)
    return failure();
  ArrayRef<int64_t> shape = shapeOf(data), piece = shapeOf(updates);
  int64_t rank = shape.size();
  int64_t axis = c.node.axis(c.node.intAttr("axis", -2), rank);
  if (c.node.failed())
    return failure();
  Dims expected(shape);
  if (piece.size() == shape.size())
    expected[axis] = piece[axis];
  if (axis == 0 || piece != ArrayRef<int64_t>(expected) ||
      piece[axis] > shape[axis])
    return c.fail("its update does not fit its cache along axis " +
                  Twine(axis));
  std::string mode = c.node.stringAttr("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return c.fail("its mode is '" + mode + "', expected linear or circular");
  IndexMath m{c};
  Indices places = m.counter(axis + 1, axis, piece[axis]);
  if (c.has(2)) {
    Indices starts = m.input(2);
    if (!starts || starts.shape() != shape.take_front(1))
      return starts ? c.fail("needs a write index for each sample") : failure();
    if (mode == "linear")
      boundInput(starts.value, 0, shape[axis] - piece[axis]);
    Dims perSample(axis + 1, 1);
    perSample[0] = shape[0];
    places = m.add(places, m.reshape(starts, perSample));
  }
  if (!places)
    return failure();
  if (mode == "circular") {
    Value place = m.value(places);
    places = {nullptr, c.emit<train::ModOp>(
                           {place, c.scalar(place, double(shape[axis]))})};
  }
  int64_t step = shape[axis];
  for (int64_t d = axis - 1; d >= 0 && places; --d) {
    places = m.add(places, m.counter(axis + 1, d, shape[d], step));
    step *= shape[d];
  }
  return c.result(scatterRows(c, data, axis + 1, places, updates, "none"));
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

static train::TopKOp makeTopK(NodeContext &c, Value value, int64_t k,
                              int64_t axis, bool largest) {
  SmallVector<NamedAttribute> attributes = {c.integer("k", k),
                                            c.integer("axis", axis)};
  if (!largest)
    attributes.push_back(c.flag("smallest"));
  return value ? c.op<train::TopKOp>(value, attributes) : train::TopKOp();
}

static LogicalResult importTopK(NodeContext &c) {
  Value value = c.value(0);
  if (!value)
    return failure();
  auto given = c.ints(1, "k");
  if (!given || given->size() != 1)
    return given ? c.fail("its k is not one integer") : failure();
  int64_t k = given->front();
  int64_t axis =
      c.node.axis(c.node.intAttr("axis", -1), typeOf(value).getRank());
  bool largest = c.node.intAttr("largest", 1);
  if (c.node.failed())
    return failure();
  if (k < 0 || k > shapeOf(value)[axis])
    return c.fail("its k is " + Twine(k) + ", but the axis has " +
                  Twine(shapeOf(value)[axis]) + " elements");
  train::TopKOp top = makeTopK(c, value, k, axis, largest);
  if (!top)
    return failure();
  c.set(0, top.getValues());
  if (c.numResults() > 1)
    c.set(1, top.getIndices());
  return success();
}

/// Where the first largest or smallest element along `axis` lies, or the last;
/// the axis stays as 1.
static Value extremePlace(NodeContext &c, Value value, int64_t axis,
                          bool largest, bool last) {
  int64_t size = shapeOf(value)[axis];
  if (size == 0) {
    (void)c.fail("has no elements along its axis");
    return {};
  }
  if (last) {
    Dims backwards;
    for (int64_t i = size - 1; i >= 0; --i)
      backwards.push_back(i);
    value = takeAlong(c, value, axis, backwards);
  }
  train::TopKOp top = makeTopK(c, value, 1, axis, largest);
  if (!top || !last)
    return top ? Value(top.getIndices()) : Value();
  Value place = top.getIndices();
  return c.emit<train::SubOp>({c.scalar(place, double(size - 1)), place});
}

template <bool largest>
static LogicalResult importArgExtreme(NodeContext &c) {
  Value value = c.value(0);
  if (!value)
    return failure();
  int64_t axis =
      c.node.axis(c.node.intAttr("axis", 0), typeOf(value).getRank());
  bool keepDims = c.node.intAttr("keepdims", 1);
  bool last = c.node.intAttr("select_last_index", 0);
  if (c.node.failed())
    return failure();
  Dims shape(shapeOf(value));
  shape[axis] = 1;
  if (!keepDims)
    shape.erase(shape.begin() + axis);
  Value place = extremePlace(c, value, axis, largest, last);
  return c.result(c.reshape(place, shape));
}

/// Hardmax: 1 for the first largest element of a row, else 0. Before operator
/// set 13 all dimensions from the axis on are one row.
static LogicalResult importHardmax(NodeContext &c) {
  Value value = c.value(0);
  if (!value)
    return failure();
  Dims shape(shapeOf(value));
  bool isJoined = c.node.version() < 13;
  int64_t axis =
      c.node.axis(c.node.intAttr("axis", isJoined ? 1 : -1), shape.size());
  if (c.node.failed())
    return failure();
  if (isJoined) {
    value = c.reshape(value, {product(ArrayRef(shape).take_front(axis)),
                              product(ArrayRef(shape).drop_front(axis))});
    axis = 1;
  }
  if (!value)
    return failure();
  IndexMath m{c};
  Value place = extremePlace(c, value, axis, /*largest=*/true, /*last=*/false);
  Value counter =
      m.value(m.counter(typeOf(value).getRank(), axis, shapeOf(value)[axis]));
  Value hit = c.emit<train::EqualOp>({place, counter});
  return c.result(
      c.reshape(castTo(c, hit, typeOf(value).getElementType()), shape));
}

/// OneHot: compares indices with a counter along a new axis.
static LogicalResult importOneHot(NodeContext &c) {
  const HostTensor *depth = c.host(1);
  if (!depth || depth->size() != 1)
    return c.fail("its depth must be one number that is known at import");
  int64_t size = toInteger(depth->number(0));
  if (size < 0 || size > c.hostBudget().room())
    return c.fail("its depth is " + Twine(size));
  Value indices = castTo(c, c.value(0), c.b.getI64Type());
  Value values = c.value(2);
  if (!indices || !values)
    return failure();
  if (shapeOf(values) != ArrayRef<int64_t>(2))
    return c.fail("its values are not two");
  int64_t rank = typeOf(indices).getRank() + 1;
  int64_t axis = c.node.axis(c.node.intAttr("axis", -1), rank);
  if (c.node.failed())
    return failure();
  Dims shape(shapeOf(indices));
  shape.insert(shape.begin() + axis, 1);
  IndexMath m{c};
  Value place = m.value(m.wrap({nullptr, c.reshape(indices, shape)}, size));
  Value counter = m.value(m.counter(rank, axis, size));
  Value hit = c.emit<train::EqualOp>({place, counter});
  Value off = c.reshape(slicePiece(c, values, 0, 0, 1), {});
  Value on = c.reshape(slicePiece(c, values, 0, 1, 1), {});
  return c.result(c.emit<train::WhereOp>({hit, on, off}));
}

//===----------------------------------------------------------------------===//
// Running sums and products
//===----------------------------------------------------------------------===//

namespace {
/// What CumSum and CumProd are told.
struct Running {
  Value value;
  int64_t axis;
  bool exclusive, reverse;
};
} // namespace

static FailureOr<Running> readRunning(NodeContext &c) {
  Value value = c.value(0);
  auto given = c.ints(1, "axis");
  if (!value || !given)
    return failure();
  if (given->size() != 1) {
    (void)c.fail("its axis is not one integer");
    return failure();
  }
  int64_t axis = c.node.axis(given->front(), typeOf(value).getRank());
  bool exclusive = c.node.intAttr("exclusive", 0);
  bool reverse = c.node.intAttr("reverse", 0);
  if (c.node.failed())
    return failure();
  return Running{value, axis, exclusive, reverse};
}

static LogicalResult importCumSum(NodeContext &c) {
  FailureOr<Running> running = readRunning(c);
  if (failed(running))
    return failure();
  SmallVector<NamedAttribute> attributes = {c.integer("axis", running->axis)};
  if (running->exclusive)
    attributes.push_back(c.flag("exclusive"));
  if (running->reverse)
    attributes.push_back(c.flag("reverse"));
  return c.result(c.emit<train::CumulativeSumOp>(running->value, attributes));
}

/// `value` with zeros along `axis` but at the places [start, start + size) of
/// it, which move by `shift`.
static Value keepPart(NodeContext &c, Value value, int64_t axis, int64_t start,
                      int64_t size, int64_t shift) {
  int64_t total = shapeOf(value)[axis];
  Dims low(typeOf(value).getRank(), 0), high = low, interior = low;
  low[axis] = start + shift;
  high[axis] = total - low[axis] - size;
  Value part = slicePiece(c, value, axis, start, size);
  return c.emit<train::PadOp>(part, {c.list("low", low), c.list("high", high),
                                     c.list("interior", interior)});
}

/// A recurrence that decays by the operand: it starts from its first element
/// or, without the element itself, from 1, and decays by the element before.
static LogicalResult importCumProd(NodeContext &c) {
  FailureOr<Running> running = readRunning(c);
  if (failed(running))
    return failure();
  auto [value, axis, exclusive, reverse] = *running;
  int64_t size = shapeOf(value)[axis];
  if (size == 0)
    return c.result(value);
  int64_t first = reverse ? size - 1 : 0;
  Value decay = value, start;
  if (exclusive) {
    decay = reverse ? keepPart(c, value, axis, 1, size - 1, -1)
                    : keepPart(c, value, axis, 0, size - 1, 1);
    Value ones = c.broadcast(c.scalar(value, 1), shapeOf(value));
    start = ones ? keepPart(c, ones, axis, first, 1, 0) : Value();
  } else {
    start = keepPart(c, value, axis, first, 1, 0);
  }
  SmallVector<NamedAttribute> attributes = {c.integer("axis", axis)};
  if (reverse)
    attributes.push_back(c.flag("reverse"));
  return c.result(
      c.emit<train::LinearRecurrenceOp>({decay, start}, attributes));
}

void zero::onnx_import::addIndexHandlers(HandlerTable &table) {
  table["ArgMax"] = {importArgExtreme<true>, 1};
  table["ArgMin"] = {importArgExtreme<false>, 1};
  table["Compress"] = {importCompress, 2};
  table["CumProd"] = {importCumProd, 2};
  table["CumSum"] = {importCumSum, 2};
  table["Gather"] = {importGather, 2};
  table["GatherElements"] = {importGatherElements, 2};
  table["GatherND"] = {importGatherND, 2};
  table["Hardmax"] = {importHardmax, 1};
  table["OneHot"] = {importOneHot, 3};
  table["ReverseSequence"] = {importReverseSequence, 2};
  table["Scatter"] = {importScatterElements, 3};
  table["ScatterElements"] = {importScatterElements, 3};
  table["ScatterND"] = {importScatterND, 3};
  table["TensorScatter"] = {importTensorScatter, 2};
  table["TopK"] = {importTopK, 2};
}
