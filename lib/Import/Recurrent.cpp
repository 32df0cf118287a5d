//===- Recurrent.cpp - LSTM, GRU and RNN ----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A recurrent layer becomes one product of all steps' inputs with the weights,
// and then a loop of what depends on the step before; a few steps, one by one.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/RecurrentActivations.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

static constexpr int64_t maxSteps = maxLoopSteps;

namespace {
/// What is the same for both directions of a layer. Shapes: x is
/// [steps, batch, inputs] whatever the layout.
struct Layer {
  int64_t gates, steps, batch, inputs, hidden, directions;
  bool batchFirst, forwardOnly, backwardFirst;
  double clip;
  SmallVector<Activation> activations;
  Value x;
  /// Steps that count, by sample; null: all.
  Value lengths;
};

/// One direction: its weights, and the state that goes from step to step.
struct Direction {
  bool backward;
  /// W x + b of all steps, [steps * batch, gates * hidden].
  Value projected;
  /// [gates * hidden, hidden] and, or null, [gates * hidden].
  Value weights, recurrentBias;
  /// LSTM only, or null: [3 * hidden].
  Value peepholes;
  ArrayRef<Activation> activations;
  /// [batch, hidden]; `cell` is LSTM's.
  Value state, cell;
};
} // namespace

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

/// The rows or, for axis 1, columns [start, start + size).
static Value cut(NodeContext &c, Value value, int64_t axis, int64_t start,
                 int64_t size) {
  if (!value || shapeOf(value)[axis] == size)
    return value;
  SmallVector<int64_t> limits(shapeOf(value)), starts(limits.size(), 0),
      strides(limits.size(), 1);
  starts[axis] = start;
  limits[axis] = start + size;
  return c.emit<train::SliceOp>(value, {c.list("starts", starts),
                                        c.list("limits", limits),
                                        c.list("strides", strides)});
}

/// Entry `index` of the first axis, which goes; null for null.
static Value entry(NodeContext &c, Value value, int64_t index) {
  Value row = cut(c, value, 0, index, 1);
  return row ? c.reshape(row, ArrayRef(shapeOf(row)).drop_front()) : Value();
}

static Value add(NodeContext &c, Value a, Value b) {
  return a && b ? c.emit<train::AddOp>({a, b}) : Value();
}
static Value mul(NodeContext &c, Value a, Value b) {
  return a && b ? c.emit<train::MulOp>({a, b}) : Value();
}
static Value oneMinus(NodeContext &c, Value a) {
  return a ? c.emit<train::SubOp>({c.scalar(a, 1), a}) : Value();
}

/// `a` times the transpose of `b`.
static Value timesTransposed(NodeContext &c, Value a, Value b) {
  return a && b ? c.emit<train::MatmulOp>({a, b}, c.flag("transpose_b"))
                : Value();
}

static Value clipped(NodeContext &c, const Layer &layer, Value x) {
  if (layer.clip <= 0 || !x)
    return x;
  x = c.emit<train::MinOp>({x, c.scalar(x, layer.clip)});
  return x ? c.emit<train::MaxOp>({x, c.scalar(x, -layer.clip)}) : Value();
}

static Value activate(NodeContext &c, const Layer &layer,
                      const Activation &activation, Value x) {
  return applyActivation(c, activation, clipped(c, layer, x));
}

//===----------------------------------------------------------------------===//
// Cells: one step; they update the direction's state
//===----------------------------------------------------------------------===//

using Cell = void (*)(NodeContext &c, const Layer &layer, Direction &d,
                      Value input);

/// `input` plus the recurrent product.
static Value preActivation(NodeContext &c, Direction &d, Value input) {
  return add(c, input, timesTransposed(c, d.state, d.weights));
}

static void rnnCell(NodeContext &c, const Layer &layer, Direction &d,
                    Value input) {
  d.state = activate(c, layer, d.activations[0], preActivation(c, d, input));
}

/// Gates of ONNX's LSTM are input, output, forget, cell.
static void lstmCell(NodeContext &c, const Layer &layer, Direction &d,
                     Value input) {
  int64_t h = layer.hidden;
  Value all = preActivation(c, d, input);
  auto gate = [&](int64_t i, int64_t peephole, Value seen) {
    Value x = cut(c, all, 1, i * h, h);
    if (d.peepholes && peephole >= 0)
      x = add(c, x, mul(c, cut(c, d.peepholes, 0, peephole * h, h), seen));
    return activate(c, layer, d.activations[i == 3 ? 1 : 0], x);
  };
  Value in = gate(0, 0, d.cell);
  Value forget =
      c.node.intAttr("input_forget", 0) ? oneMinus(c, in) : gate(2, 2, d.cell);
  Value candidate = gate(3, -1, Value());
  d.cell = add(c, mul(c, forget, d.cell), mul(c, in, candidate));
  Value out = gate(1, 1, d.cell);
  d.state = mul(
      c, out, d.cell ? applyActivation(c, d.activations[2], d.cell) : Value());
}

/// Gates of ONNX's GRU are update, reset, hidden.
static void gruCell(NodeContext &c, const Layer &layer, Direction &d,
                    Value input) {
  int64_t h = layer.hidden;
  bool linearFirst = c.node.intAttr("linear_before_reset", 0);
  Value bias = d.recurrentBias ? cut(c, d.recurrentBias, 0, 2 * h, h) : Value();
  Value gates =
      add(c, cut(c, input, 1, 0, 2 * h),
          timesTransposed(c, d.state, cut(c, d.weights, 0, 0, 2 * h)));
  Value update = activate(c, layer, d.activations[0], cut(c, gates, 1, 0, h));
  Value reset = activate(c, layer, d.activations[0], cut(c, gates, 1, h, h));
  Value own = cut(c, d.weights, 0, 2 * h, h);
  Value before = linearFirst ? d.state : mul(c, reset, d.state);
  Value product = timesTransposed(c, before, own);
  if (bias)
    product = add(c, product, bias);
  if (linearFirst)
    product = mul(c, reset, product);
  Value hidden = activate(c, layer, d.activations[1],
                          add(c, cut(c, input, 1, 2 * h, h), product));
  d.state =
      add(c, mul(c, oneMinus(c, update), hidden), mul(c, update, d.state));
}

//===----------------------------------------------------------------------===//
// Directions
//===----------------------------------------------------------------------===//

/// Adds `bias` and the part of the recurrent bias that need not wait for the
/// reset gate: one sum for all steps.
static Value inputBias(NodeContext &c, const Layer &layer, Direction &d,
                       Value bias) {
  int64_t width = layer.gates * layer.hidden;
  Value own = cut(c, bias, 0, 0, width);
  d.recurrentBias = cut(c, bias, 0, width, width);
  if (c.node.op() != "GRU")
    return add(c, own, d.recurrentBias);
  // GRU's hidden gate may multiply its recurrent bias.
  int64_t h = layer.hidden;
  Value gates =
      add(c, cut(c, own, 0, 0, 2 * h), cut(c, d.recurrentBias, 0, 0, 2 * h));
  Value hidden = cut(c, own, 0, 2 * h, h);
  return gates && hidden
             ? c.emit<train::ConcatOp>({gates, hidden}, c.integer("axis", 0))
             : Value();
}

/// Input `i`, of shape [directions, ...], for direction `index`; null if it is
/// left out or there was an error.
static Value directed(NodeContext &c, const Layer &layer, unsigned i,
                      int64_t index, ArrayRef<int64_t> shape) {
  if (!c.has(i))
    return {};
  Value value = c.value(i);
  if (!value)
    return {};
  SmallVector<int64_t> expected{layer.directions};
  llvm::append_range(expected, shape);
  bool isState = i >= 5 && i <= 6;
  if (isState && layer.batchFirst)
    std::swap(expected[0], expected[1]);
  if (ArrayRef(expected) != shapeOf(value)) {
    (void)c.fail("its input " + Twine(i) + " has a shape that does not fit");
    return {};
  }
  if (isState && layer.batchFirst)
    value = c.transpose(value, {1, 0, 2});
  return entry(c, value, index);
}

static Direction startDirection(NodeContext &c, const Layer &layer,
                                int64_t index) {
  Direction d;
  int64_t width = layer.gates * layer.hidden;
  d.backward = index == 1 || layer.backwardFirst;
  Value w = directed(c, layer, 1, index, {width, layer.inputs});
  d.weights = directed(c, layer, 2, index, {width, layer.hidden});
  Value bias = directed(c, layer, 3, index, {2 * width});
  Value flat = c.reshape(layer.x, {layer.steps * layer.batch, layer.inputs});
  if (w && flat && bias)
    d.projected = c.emit<train::GemmOp>({flat, w, inputBias(c, layer, d, bias)},
                                        c.flag("transpose_b"));
  else
    d.projected = timesTransposed(c, flat, w);
  bool isLstm = c.node.op() == "LSTM";
  d.peepholes =
      isLstm ? directed(c, layer, 7, index, {3 * layer.hidden}) : Value();
  int64_t count = isLstm ? 3 : c.node.op() == "GRU" ? 2 : 1;
  d.activations = ArrayRef(layer.activations).slice(index * count, count);
  auto initial = [&](unsigned i) {
    if (c.has(i))
      return directed(c, layer, i, index, {layer.batch, layer.hidden});
    return c.broadcast(c.scalar(layer.x, 0), {layer.batch, layer.hidden});
  };
  d.state = initial(5);
  if (isLstm)
    d.cell = initial(6);
  return d;
}

/// Whether each step counts, by sample: [steps, batch, 1]; null if all do.
static Value stepsCount(NodeContext &c, const Layer &layer) {
  if (!layer.lengths)
    return {};
  HostTensor numbers(*dtypeFromType(typeOf(layer.lengths).getElementType()),
                     {layer.steps, 1});
  for (int64_t t = 0; t < layer.steps; ++t)
    numbers.setInt(t, t);
  Value counts = c.emit<train::LessOp>({c.constant(numbers), layer.lengths});
  return c.reshape(counts, {layer.steps, layer.batch, 1});
}

/// One step: updates the states and returns what it gives. After its end a
/// sample keeps its state (where `counts` is false), and what it gives is 0.
static Value runStep(NodeContext &c, const Layer &layer, Direction &d,
                     Cell cell, Value input, Value counts) {
  Value state = d.state, cellState = d.cell;
  cell(c, layer, d, input);
  if (c.node.failed() || !d.state || !counts)
    return d.state;
  Value given = c.emit<train::WhereOp>({counts, d.state, c.scalar(d.state, 0)});
  d.state = c.emit<train::WhereOp>({counts, d.state, state});
  if (d.cell)
    d.cell = c.emit<train::WhereOp>({counts, d.cell, cellState});
  return given;
}

/// All steps as a loop; the states after each, or null where there are too few.
static Value runLoop(NodeContext &c, const Layer &layer, Direction &d,
                     Cell cell, Value inputs, Value counts) {
  Direction inside = d;
  train::ScanOp scan = c.tryLoop(
      layer.steps, d.backward, &c.node.message(),
      [&](train::ScanBuilder &loop, SmallVectorImpl<Value> &carried,
          SmallVectorImpl<Value> &stacked) {
        inside.state = loop.addCarried(d.state);
        if (d.cell)
          inside.cell = loop.addCarried(d.cell);
        Value input = loop.addScanned(inputs);
        Value counted = counts ? loop.addScanned(counts) : Value();
        stacked.push_back(runStep(c, layer, inside, cell, input, counted));
        carried.push_back(inside.state);
        if (inside.cell)
          carried.push_back(inside.cell);
        return success(!c.node.failed() && stacked.back());
      });
  if (!scan)
    return {};
  d.state = scan.getFinals()[0];
  if (d.cell)
    d.cell = scan.getFinals()[1];
  return scan.getStacked()[0];
}

/// Runs all steps; the states after each, [steps, batch, hidden].
static Value runDirection(NodeContext &c, const Layer &layer, Direction &d,
                          Cell cell) {
  Value inputs = c.reshape(
      d.projected, {layer.steps, layer.batch, layer.gates * layer.hidden});
  Value counts = stepsCount(c, layer);
  if (c.node.failed() || !inputs)
    return {};
  if (Value states = runLoop(c, layer, d, cell, inputs, counts))
    return states;
  SmallVector<Value> states(layer.steps);
  for (int64_t i = 0; i < layer.steps; ++i) {
    int64_t t = d.backward ? layer.steps - 1 - i : i;
    Value state = runStep(c, layer, d, cell,
                          cut(c, d.projected, 0, t * layer.batch, layer.batch),
                          entry(c, counts, t));
    if (!state)
      return {};
    states[t] = c.reshape(state, {1, layer.batch, layer.hidden});
  }
  return states.size() == 1
             ? states[0]
             : c.emit<train::ConcatOp>(states, c.integer("axis", 0));
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

static LogicalResult readSizes(NodeContext &c, Layer &layer) {
  std::string direction = c.node.stringAttr("direction", "forward");
  layer.directions = direction == "bidirectional" ? 2 : 1;
  layer.backwardFirst = direction == "reverse";
  if (!layer.backwardFirst && layer.directions == 1 && direction != "forward")
    return c.fail("its direction is '" + printable(direction) +
                  "', expected 'forward', 'reverse' or 'bidirectional'");
  auto weights = c.shape(2);
  if (!weights || weights->size() != 3 || typeOf(layer.x).getRank() != 3)
    return c.fail("expects an input and weights of rank 3");
  layer.batchFirst = c.node.intAttr("layout", 0);
  if (layer.batchFirst)
    layer.x = c.transpose(layer.x, {1, 0, 2});
  if (!layer.x)
    return failure();
  layer.steps = shapeOf(layer.x)[0];
  layer.batch = shapeOf(layer.x)[1];
  layer.inputs = shapeOf(layer.x)[2];
  layer.hidden = weights->back();
  if (c.node.intAttr("hidden_size", layer.hidden) != layer.hidden)
    return c.fail("its hidden_size is not that of its weights, " +
                  Twine(layer.hidden));
  if (layer.steps < 1 || layer.steps > maxSteps || layer.hidden < 1)
    return c.fail("has " + Twine(layer.steps) + " steps of size " +
                  Twine(layer.hidden) + "; supported are 1 to " +
                  Twine(maxSteps) + " steps");
  layer.clip = c.node.floatAttr("clip", 0);
  if (c.has(4) && !(layer.lengths = c.value(4)))
    return failure();
  if (layer.lengths && shapeOf(layer.lengths) != ArrayRef(layer.batch))
    return c.fail("needs one length per sample");
  return failure(c.node.failed());
}

/// The states of both directions as the node's outputs: all, and the last.
static LogicalResult setStates(NodeContext &c, const Layer &layer,
                               ArrayRef<Direction> directions,
                               ArrayRef<Value> states) {
  auto join = [&](ArrayRef<Value> values, int64_t axis, ArrayRef<int64_t> shape,
                  ArrayRef<int64_t> batchFirst) {
    Value all = values.size() == 1
                    ? values[0]
                    : c.emit<train::ConcatOp>(values, c.integer("axis", axis));
    all = all ? c.reshape(all, shape) : all;
    return all && layer.batchFirst ? c.transpose(all, batchFirst) : all;
  };
  int64_t d = layer.directions, b = layer.batch, h = layer.hidden;
  SmallVector<Value> hidden, cells;
  for (const Direction &direction : directions) {
    hidden.push_back(direction.state);
    cells.push_back(direction.cell);
  }
  if (c.numResults() > 0 && c.isUsed(0))
    c.set(0, Binding(join(states, 1, {layer.steps, d, b, h}, {2, 0, 1, 3})));
  if (c.numResults() > 1 && c.isUsed(1))
    c.set(1, Binding(join(hidden, 0, {d, b, h}, {1, 0, 2})));
  if (c.numResults() > 2 && c.isUsed(2) && directions[0].cell)
    c.set(2, Binding(join(cells, 0, {d, b, h}, {1, 0, 2})));
  return failure(c.node.failed());
}

static LogicalResult importLayer(NodeContext &c, int64_t gates,
                                 ArrayRef<StringRef> defaults, Cell cell) {
  Layer layer;
  layer.gates = gates;
  layer.x = c.value(0);
  if (!layer.x || failed(readSizes(c, layer)))
    return failure();
  auto activations = readActivations(c, defaults, layer.directions);
  if (failed(activations))
    return failure();
  layer.activations = *activations;
  SmallVector<Direction> directions;
  SmallVector<Value> states;
  for (int64_t i = 0; i < layer.directions; ++i) {
    directions.push_back(startDirection(c, layer, i));
    if (c.node.failed())
      return failure();
    states.push_back(runDirection(c, layer, directions.back(), cell));
    if (!states.back())
      return failure();
  }
  return setStates(c, layer, directions, states);
}

static LogicalResult importRNN(NodeContext &c) {
  return importLayer(c, 1, {"Tanh"}, rnnCell);
}
static LogicalResult importGRU(NodeContext &c) {
  return importLayer(c, 3, {"Sigmoid", "Tanh"}, gruCell);
}
static LogicalResult importLSTM(NodeContext &c) {
  return importLayer(c, 4, {"Sigmoid", "Tanh", "Tanh"}, lstmCell);
}

void zero::onnx_import::addRecurrentHandlers(HandlerTable &table) {
  table["GRU"] = {importGRU, 3};
  table["LSTM"] = {importLSTM, 3};
  table["RNN"] = {importRNN, 3};
}
