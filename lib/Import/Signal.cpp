//===- Signal.cpp - Fourier transforms and windows ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Fourier transform is a product with a matrix of sines and cosines, which is
// known at import: one library call with a gradient. Window functions and mel
// weights are constants.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Formula.h"

#include <cmath>

using namespace mlir;
using namespace mlir::zero::onnx_import;

//===----------------------------------------------------------------------===//
// Fourier transforms
//===----------------------------------------------------------------------===//

namespace {
/// A transform of `size` places of `parts` numbers (1: real, 2: complex).
struct Transform {
  int64_t size, parts, length;
  bool inverse, oneSided;

  /// From one half of a spectrum to real numbers.
  bool isRealResult() const { return inverse && oneSided; }
  int64_t resultSize() const {
    return oneSided && !inverse ? length / 2 + 1 : length;
  }
  int64_t resultParts() const { return isRealResult() ? 1 : 2; }
  /// The places that are read: others are cut off.
  int64_t used() const {
    return std::min(size, isRealResult() ? length / 2 + 1 : length);
  }
  void fillEntry(HostTensor &matrix, int64_t from, int64_t to) const;
};
} // namespace

/// What place `from` adds to place `to` of the result: e^(-2 pi i from to /
/// length), or its conjugate / length for the inverse.
void Transform::fillEntry(HostTensor &matrix, int64_t from, int64_t to) const {
  // The product in full could overflow; only its remainder matters.
  auto turn = static_cast<unsigned __int128>(from) * to % length;
  double angle = 2 * M_PI * double(uint64_t(turn)) / double(length);
  double cosine = std::cos(angle), sine = std::sin(angle);
  if (!inverse)
    sine = -sine;
  double scale = inverse ? 1 / double(length) : 1;
  // The other half of the spectrum is the conjugate of this one.
  if (isRealResult() && from != 0 && 2 * from != length)
    scale *= 2;
  int64_t columns = resultSize() * resultParts();
  int64_t row = from * parts, column = to * resultParts();
  auto set = [&](int64_t part, int64_t resultPart, double value) {
    matrix.setNumber((row + part) * columns + column + resultPart,
                     value * scale);
  };
  set(0, 0, cosine);
  if (parts == 2)
    set(1, 0, -sine);
  if (resultParts() == 2)
    set(0, 1, sine);
  if (parts == 2 && resultParts() == 2)
    set(1, 1, cosine);
}

/// Transforms `axis` of a tensor [..., parts]; null after an error.
static Value emitTransform(NodeContext &c, Value input, int64_t axis,
                           Transform t) {
  int64_t rank = typeOf(input).getRank(), used = t.used();
  auto elements = countElements(
      {used * t.parts, std::max<int64_t>(t.resultSize(), 1) * t.resultParts()});
  if (t.length < 1 || !elements || *elements > c.hostBudget().room()) {
    c.node.error() << "a transform of length " << t.length
                   << " is not supported; it would need a matrix of more than "
                   << c.hostBudget().room() << " elements, or none";
    return {};
  }
  if (used < t.size) {
    SmallVector<int64_t> starts(rank, 0), limits(shapeOf(input)),
        strides(rank, 1);
    limits[axis] = used;
    input = c.emit<train::SliceOp>(input, {c.list("starts", starts),
                                           c.list("limits", limits),
                                           c.list("strides", strides)});
  }
  Type element = typeOf(input).getElementType();
  HostTensor matrix(*dtypeFromType(element),
                    {used * t.parts, t.resultSize() * t.resultParts()});
  for (int64_t from = 0; from < used; ++from)
    for (int64_t to = 0; to < t.resultSize(); ++to)
      t.fillEntry(matrix, from, to);
  // The axis moves before the parts, and both are one dimension of a product.
  SmallVector<int64_t> order, back(rank);
  for (int64_t d = 0; d + 1 < rank; ++d)
    if (d != axis)
      order.push_back(d);
  order.append({axis, rank - 1});
  for (auto [place, d] : llvm::enumerate(order))
    back[d] = place;
  Value moved = c.transpose(input, order);
  if (!moved)
    return {};
  SmallVector<int64_t> shape(shapeOf(moved));
  int64_t rows = *countElements(ArrayRef(shape).drop_back(2));
  Value product = c.emit<train::MatmulOp>(
      {c.reshape(moved, {rows, used * t.parts}), c.constant(matrix)});
  shape[rank - 2] = t.resultSize();
  shape[rank - 1] = t.resultParts();
  return c.transpose(c.reshape(product, shape), back);
}

/// The number that input `i` is, or `fallback` without one; nothing after an
/// error.
static std::optional<int64_t> readInt(NodeContext &c, unsigned i,
                                      StringRef what, int64_t fallback) {
  if (!c.has(i))
    return fallback;
  auto values = c.ints(i, what);
  if (!values)
    return std::nullopt;
  if (values->size() == 1)
    return values->front();
  c.node.error() << what << " has " << values->size()
                 << " elements, expected one number";
  return std::nullopt;
}

/// A signal [..., 1 or 2]: null after an error.
static Value readSignal(NodeContext &c) {
  Value input = c.value(0);
  if (!input)
    return {};
  ArrayRef<int64_t> shape = shapeOf(input);
  if (shape.size() >= 2 && (shape.back() == 1 || shape.back() == 2) &&
      isa<FloatType>(typeOf(input).getElementType()))
    return input;
  (void)c.fail("expects a float signal whose last dimension is 1 (real) or 2 "
               "(complex)");
  return {};
}

/// The axis is an attribute before version 20, then an input.
static LogicalResult importDft(NodeContext &c) {
  Value input = readSignal(c);
  bool isOld = c.node.version() < 20;
  auto axis = isOld ? std::optional(c.node.intAttr("axis", 1))
                    : readInt(c, 2, "axis", -2);
  if (!input || !axis)
    return failure();
  int64_t rank = typeOf(input).getRank();
  int64_t normal = c.node.axis(*axis, rank);
  if (!c.node.failed() && normal == rank - 1)
    return c.fail("its axis is that of the real and imaginary parts");
  bool inverse = c.node.intAttr("inverse", 0);
  bool oneSided = c.node.intAttr("onesided", 0);
  if (c.node.failed())
    return failure();
  int64_t size = shapeOf(input)[normal];
  auto length =
      readInt(c, 1, "dft_length", inverse && oneSided ? 2 * (size - 1) : size);
  if (!length)
    return failure();
  return c.result(
      emitTransform(c, input, normal,
                    {size, shapeOf(input).back(), *length, inverse, oneSided}));
}

/// Overlapping frames of a signal [N, samples, parts]: [N, frames, length,
/// parts].
static Value emitFrames(NodeContext &c, Value signal, int64_t step,
                        int64_t length) {
  int64_t count = (shapeOf(signal)[1] - length) / step + 1;
  auto elements = countElements({count, length});
  if (!elements || *elements > c.hostBudget().room()) {
    (void)c.fail("its frames have too many elements");
    return {};
  }
  HostTensor places(DType::I64, {count, length});
  for (int64_t i = 0; i < *elements; ++i)
    places.setInt(i, i / length * step + i % length);
  return c.emit<train::GatherOp>({signal, c.constant(places)},
                                 c.integer("axis", 1));
}

static LogicalResult importStft(NodeContext &c) {
  Value signal = readSignal(c);
  auto step = readInt(c, 1, "frame_step", 0);
  if (!signal || !step)
    return failure();
  if (typeOf(signal).getRank() != 3)
    return c.fail("expects a signal of rank 3");
  Value window = c.has(2) ? c.value(2) : Value();
  if (c.node.failed())
    return failure();
  if (window && typeOf(window).getRank() != 1)
    return c.fail("expects a window of rank 1");
  int64_t samples = shapeOf(signal)[1];
  auto length =
      readInt(c, 3, "frame_length", window ? shapeOf(window)[0] : samples);
  if (!length)
    return failure();
  if (*step < 1 || *length < 1 || *length > samples ||
      (window && shapeOf(window)[0] != *length))
    return c.fail("expects a positive frame_step, and a frame_length that is "
                  "the window's and at most the signal's");
  Value frames = emitFrames(c, signal, *step, *length);
  if (window)
    frames = Formula{c}.mul(frames, c.reshape(window, {*length, 1}));
  if (!frames)
    return failure();
  bool oneSided = c.node.intAttr("onesided", 1);
  return c.result(emitTransform(c, frames, 2,
                                {*length, shapeOf(frames).back(), *length,
                                 /*inverse=*/false, oneSided}));
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// The float type that output_datatype names; nothing after an error.
static std::optional<DType> readDatatype(NodeContext &c) {
  auto type = dtypeFromOnnx(c.node.intAttr("output_datatype", 1));
  if (!c.node.failed() && type && *type != DType::Bool)
    return type;
  c.node.error() << "its output_datatype is not supported";
  return std::nullopt;
}

/// A sum of cosines over one period.
static LogicalResult importWindow(NodeContext &c, double offset, double first,
                                  double second) {
  auto size = readInt(c, 0, "size", 0);
  auto type = readDatatype(c);
  if (!size || !type)
    return failure();
  if (*size < 0 || *size > c.hostBudget().room())
    return c.fail("its size " + Twine(*size) + " is not supported");
  bool periodic = c.node.intAttr("periodic", 1);
  HostTensor window(*type, {*size});
  double period = double(periodic ? *size : *size - 1);
  for (int64_t i = 0; i < *size; ++i) {
    double angle = period > 0 ? 2 * M_PI * double(i) / period : 0;
    window.setNumber(i, offset - first * std::cos(angle) +
                            second * std::cos(2 * angle));
  }
  c.set(0, Binding(std::move(window)));
  return success();
}

/// Places of a spectrum where the triangles of mel bins begin, peak and end.
static std::vector<int64_t> melPlaces(double low, double high, int64_t bins,
                                      int64_t length, double rate) {
  auto toMel = [](double hertz) {
    return 2595 * std::log1p(hertz / 700) / std::log(10.0);
  };
  double first = toMel(low);
  double step = (toMel(high) - first) / double(bins + 2);
  std::vector<int64_t> places;
  for (int64_t i = 0; i < bins + 2; ++i) {
    double mel = double(i) * step + first;
    double hertz = 700 * std::expm1(mel / 2595 * std::log(10.0));
    places.push_back(toInteger(std::floor(double(length + 1) * hertz / rate)));
  }
  return places;
}

static void fillTriangle(HostTensor &weights, int64_t bins, int64_t bin,
                         int64_t left, int64_t center, int64_t right) {
  int64_t rows = weights.shape[0];
  auto set = [&](int64_t row, double value) {
    if (row >= 0 && row < rows)
      weights.setNumber(row * bins + bin, value);
  };
  if (center == left)
    set(center, 1);
  for (int64_t row = std::max<int64_t>(left, 0);
       center > left && row <= std::min(center, rows - 1); ++row)
    set(row, double(row - left) / double(center - left));
  for (int64_t row = std::max<int64_t>(center, 0); row < std::min(right, rows);
       ++row)
    set(row, double(right - row) / double(right - center));
}

static LogicalResult importMelWeights(NodeContext &c) {
  auto bins = readInt(c, 0, "num_mel_bins", 0);
  auto length = readInt(c, 1, "dft_length", 0);
  auto rate = readInt(c, 2, "sample_rate", 0);
  auto type = readDatatype(c);
  if (!bins || !length || !rate || !type)
    return failure();
  const HostTensor *low = c.host(3), *high = c.host(4);
  if (!low || !high || low->size() != 1 || high->size() != 1)
    return c.fail("its edges must be numbers that are known at import");
  int64_t room = c.hostBudget().room();
  auto elements = *length < 0 || *length > room
                      ? std::nullopt
                      : countElements({*length / 2 + 1, *bins});
  if (!elements || *elements > room || *rate < 1)
    return c.fail("its sizes are not supported");
  std::vector<int64_t> places =
      melPlaces(low->number(0), high->number(0), *bins, *length, *rate);
  HostTensor weights(*type, {*length / 2 + 1, *bins});
  for (int64_t bin = 0; bin < *bins; ++bin)
    fillTriangle(weights, *bins, bin, places[bin], places[bin + 1],
                 places[bin + 2]);
  c.set(0, Binding(std::move(weights)));
  return success();
}

void zero::onnx_import::addSignalHandlers(HandlerTable &table) {
  table["BlackmanWindow"] = {
      [](NodeContext &c) { return importWindow(c, 0.42, 0.5, 0.08); }, 1, 17};
  table["DFT"] = {importDft, 1, 17};
  table["HammingWindow"] = {
      [](NodeContext &c) { return importWindow(c, 25.0 / 46, 21.0 / 46, 0); },
      1, 17};
  table["HannWindow"] = {
      [](NodeContext &c) { return importWindow(c, 0.5, 0.5, 0); }, 1, 17};
  table["MelWeightMatrix"] = {importMelWeights, 5, 17};
  table["STFT"] = {importStft, 2, 17};
}
