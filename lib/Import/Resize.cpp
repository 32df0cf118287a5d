//===- Resize.cpp - Resampling on a regular grid --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Interpolation is separable: one axis after the other becomes a sum of gathers
// along it, each with a weight for every place of the result. Gathers and
// weights are known at import. Whole factors of the nearest element are
// broadcasts.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/IndexMath.h"

#include <cmath>

using namespace mlir;
using namespace mlir::zero::onnx_import;

using Dims = SmallVector<int64_t>;

namespace {
/// What the node's attributes say of all axes.
struct Settings {
  std::string mode, coordinates, rounding;
  double cubic = -0.75, extrapolation = 0;
  bool excludeOutside = false, antialias = false;
};

/// One axis: its sizes, the result by the input as it was asked for, and the
/// part of the input that is looked at.
struct Axis {
  int64_t index, from, to;
  double scale;
  double start = 0, end = 1;
};

/// For each place of the result the elements it is made of, with weights.
struct Samples {
  SmallVector<Dims> places;
  std::vector<std::vector<double>> weights;
  std::vector<bool> isOutside;
};
} // namespace

//===----------------------------------------------------------------------===//
// Where elements come from
//===----------------------------------------------------------------------===//

/// The place in the input that place `i` of the result means.
static double sourceOf(const Settings &s, const Axis &a, int64_t i) {
  double length = a.scale * double(a.from), last = double(a.from - 1);
  if (s.coordinates == "align_corners")
    return length == 1 ? 0 : double(i) * last / (length - 1);
  if (s.coordinates == "asymmetric")
    return double(i) / a.scale;
  if (s.coordinates == "tf_half_pixel_for_nn")
    return (double(i) + 0.5) / a.scale;
  if (s.coordinates == "tf_crop_and_resize") {
    double part = (a.end - a.start) * last;
    return a.start * last +
           (length == 1 ? part / 2 : double(i) * part / (length - 1));
  }
  double middle = (double(i) + 0.5) / a.scale - 0.5;
  if (s.coordinates == "pytorch_half_pixel")
    return length == 1 ? -0.5 : middle;
  if (s.coordinates == "half_pixel_symmetric")
    return double(a.from) / 2 * (1 - double(a.to) / length) + middle;
  return middle;
}

/// The nearest element's place.
static int64_t nearestOf(const Settings &s, double x) {
  double low = std::floor(x), rest = x - low;
  bool isUpper = s.rounding == "ceil"                ? rest > 0
                 : s.rounding == "floor"             ? false
                 : s.rounding == "round_prefer_ceil" ? rest >= 0.5
                                                     : rest > 0.5;
  return int64_t(low) + isUpper;
}

static double cubicWeight(double x, double a) {
  x = std::abs(x);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// The weights of the elements from `first` on, by their distance to the place
/// `ratio` after the element 0. Where elements get fewer, antialiasing widens
/// the window.
static std::vector<double> weightsAt(const Settings &s, double ratio,
                                     double scale) {
  bool isCubic = s.mode == "cubic";
  double stretch = s.antialias ? std::min(scale, 1.0) : 1.0;
  int64_t first = int64_t(std::floor((isCubic ? -2 : -1) / stretch)) + 1;
  std::vector<double> weights;
  double sum = 0;
  for (int64_t i = first; i < 2 - first; ++i) {
    double x = (double(i) - ratio) * stretch;
    double weight =
        isCubic ? cubicWeight(x, s.cubic) : std::max(0.0, 1 - std::abs(x));
    weights.push_back(weight);
    sum += weight;
  }
  if (s.antialias)
    for (double &weight : weights)
      weight /= sum;
  return weights;
}

/// Without the weights of elements outside, which are made up for.
static void excludeOutside(std::vector<double> &weights, int64_t first,
                           int64_t size) {
  double sum = 0;
  for (size_t t = 0; t < weights.size(); ++t) {
    int64_t place = first + int64_t(t);
    if (place < 0 || place >= size)
      weights[t] = 0;
    sum += weights[t];
  }
  for (double &weight : weights)
    weight /= sum == 0 ? 1 : sum;
}

static Samples sampleAxis(const Settings &s, const Axis &a) {
  Samples samples;
  for (int64_t i = 0; i < a.to; ++i) {
    double x = sourceOf(s, a, i), low = std::floor(x);
    samples.isOutside.push_back(s.coordinates == "tf_crop_and_resize" &&
                                (x < 0 || x > double(a.from - 1)));
    std::vector<double> weights = {1.0};
    int64_t first;
    if (s.mode == "nearest") {
      first = nearestOf(s, x);
    } else {
      // An element exactly there is the upper one of its neighbours.
      double ratio = x == low ? 1 : x - low;
      weights = weightsAt(s, ratio, a.scale);
      int64_t count = weights.size();
      first = int64_t(low) - count / 2 + (x == low ? 0 : 1);
      if (s.excludeOutside)
        excludeOutside(weights, first, a.from);
    }
    samples.places.resize(weights.size());
    samples.weights.resize(weights.size());
    for (size_t t = 0; t < weights.size(); ++t) {
      samples.places[t].push_back(
          std::clamp<int64_t>(first + int64_t(t), 0, a.from - 1));
      samples.weights[t].push_back(weights[t]);
    }
  }
  return samples;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

static Value alongAxis(NodeContext &c, Value like, int64_t axis,
                       ArrayRef<double> values) {
  Dims shape(typeOf(like).getRank(), 1);
  shape[axis] = values.size();
  HostTensor tensor(*dtypeFromType(typeOf(like).getElementType()), shape);
  for (auto [i, value] : llvm::enumerate(values))
    tensor.setNumber(i, value);
  return c.constant(tensor);
}

/// Each element `factor` times.
static Value repeatElements(NodeContext &c, Value value, int64_t axis,
                            int64_t factor) {
  Dims split(shapeOf(value)), wide, joined(shapeOf(value));
  split.insert(split.begin() + axis + 1, 1);
  wide = split;
  wide[axis + 1] = factor;
  joined[axis] *= factor;
  return c.reshape(c.broadcast(c.reshape(value, split), wide), joined);
}

/// The factor by which every element is repeated, or 0.
static int64_t repeatFactor(const Samples &samples, const Axis &a) {
  if (samples.places.size() != 1 || a.from == 0 || a.to % a.from != 0)
    return 0;
  int64_t factor = a.to / a.from;
  for (auto [i, place] : llvm::enumerate(samples.places[0]))
    if (place != int64_t(i) / factor)
      return 0;
  return factor;
}

static Value resizeAxis(NodeContext &c, Value value, const Settings &s,
                        const Axis &a) {
  Samples samples = sampleAxis(s, a);
  Value sum;
  if (int64_t factor = repeatFactor(samples, a)) {
    sum = repeatElements(c, value, a.index, factor);
  } else {
    for (auto [places, weights] : llvm::zip(samples.places, samples.weights)) {
      if (llvm::all_of(weights, [](double w) { return w == 0; }))
        continue;
      Value part = takeAlong(c, value, a.index, places);
      if (!llvm::all_of(weights, [](double w) { return w == 1; })) {
        Value factors = alongAxis(c, value, a.index, weights);
        part = c.emit<train::MulOp>({part, factors});
      }
      sum = sum ? c.emit<train::AddOp>({sum, part}) : part;
      if (!sum)
        return {};
    }
  }
  if (!sum || !llvm::is_contained(samples.isOutside, true))
    return sum;
  Dims shape(typeOf(value).getRank(), 1);
  shape[a.index] = a.to;
  HostTensor outside(DType::Bool, shape);
  for (int64_t i = 0; i < a.to; ++i)
    outside.setInt(i, samples.isOutside[i]);
  Value mask = c.constant(outside);
  return c.emit<train::WhereOp>({mask, c.scalar(sum, s.extrapolation), sum});
}

//===----------------------------------------------------------------------===//
// The node
//===----------------------------------------------------------------------===//

/// Numbers of input `i`; none where it is left out or empty.
static FailureOr<SmallVector<double>> readNumbers(NodeContext &c, unsigned i,
                                                  StringRef what) {
  SmallVector<double> numbers;
  if (!c.has(i))
    return numbers;
  const HostTensor *known = c.host(i);
  if (!known) {
    (void)c.fail("its " + what + " must be known at import");
    return failure();
  }
  for (int64_t k = 0; k < known->size(); ++k)
    numbers.push_back(known->number(k));
  return numbers;
}

static LogicalResult checkSettings(NodeContext &c, const Settings &s) {
  auto check = [&](StringRef what, StringRef value,
                   std::initializer_list<StringRef> known) -> LogicalResult {
    return llvm::is_contained(known, value)
               ? success()
               : c.fail("its " + what + " is '" + value +
                        "', which is not supported");
  };
  return success(
      succeeded(check("mode", s.mode, {"nearest", "linear", "cubic"})) &&
      succeeded(check(
          "nearest_mode", s.rounding,
          {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})) &&
      succeeded(check("coordinate_transformation_mode", s.coordinates,
                      {"half_pixel", "half_pixel_symmetric",
                       "pytorch_half_pixel", "align_corners", "asymmetric",
                       "tf_half_pixel_for_nn", "tf_crop_and_resize"})));
}

static FailureOr<Settings> readSettings(NodeContext &c, bool isOld) {
  Settings s;
  s.mode = c.node.stringAttr("mode", "nearest");
  // Upsample-1 calls it so.
  if (s.mode == "bilinear")
    s.mode = "linear";
  s.coordinates = c.node.stringAttr("coordinate_transformation_mode",
                                    isOld ? "asymmetric" : "half_pixel");
  s.rounding =
      c.node.stringAttr("nearest_mode", isOld ? "floor" : "round_prefer_floor");
  s.cubic = c.node.floatAttr("cubic_coeff_a", -0.75);
  s.extrapolation = c.node.floatAttr("extrapolation_value", 0);
  s.excludeOutside = c.node.intAttr("exclude_outside", 0);
  s.antialias = c.node.intAttr("antialias", 0) && s.mode != "nearest";
  if (c.node.failed() || failed(checkSettings(c, s)))
    return failure();
  return s;
}

/// The scales of `axes` so that all are the same, and the sizes they give.
static void keepAspectRatio(StringRef policy, MutableArrayRef<Axis> axes) {
  if (policy == "stretch" || axes.empty())
    return;
  double scale = axes[0].scale;
  for (const Axis &axis : axes)
    scale = policy == "not_larger" ? std::min(scale, axis.scale)
                                   : std::max(scale, axis.scale);
  for (Axis &axis : axes) {
    axis.scale = scale;
    axis.to = int64_t(scale * double(axis.from) + 0.5);
  }
}

/// The axes by their scales or, where there are none, by their sizes.
static LogicalResult sizeAxes(NodeContext &c, ArrayRef<double> scales,
                              ArrayRef<double> sizes,
                              MutableArrayRef<Axis> axes) {
  ArrayRef<double> given = scales.empty() ? sizes : scales;
  if (given.size() != axes.size())
    return c.fail("needs a scale or a size for each axis");
  for (auto [axis, number] : llvm::zip(axes, given)) {
    constexpr double limit = 1 << 24;
    double size = scales.empty() ? number : number * double(axis.from);
    if (!(number > 0) || !(size < limit) || axis.from == 0)
      return c.fail("cannot resize an axis of size " + Twine(axis.from) +
                    " by the scale or to the size " +
                    Twine(std::to_string(number)));
    axis.to = int64_t(size);
    axis.scale = scales.empty() ? size / double(axis.from) : number;
  }
  return success();
}

/// Resizes along `axes`, one after the other.
static LogicalResult resize(NodeContext &c, Value value, const Settings &s,
                            ArrayRef<Axis> axes) {
  Dims shape(shapeOf(value));
  for (const Axis &axis : axes)
    shape[axis.index] = axis.to;
  if (!countElements(shape))
    return c.fail("makes more elements than can be counted");
  // Weights are floats.
  Type element = typeOf(value).getElementType();
  if (s.mode != "nearest" && !isa<FloatType>(element))
    value = castTo(c, value, c.b.getF32Type());
  for (const Axis &axis : axes) {
    bool isSame = axis.to == axis.from && std::abs(axis.scale - 1) < 1e-9 &&
                  axis.start == 0 && axis.end == 1;
    if (value && !isSame)
      value = axis.to ? resizeAxis(c, value, s, axis)
                      : slicePiece(c, value, axis.index, 0, 0);
  }
  return c.result(castTo(c, value, element));
}

static SmallVector<Axis> makeAxes(Value value, ArrayRef<int64_t> indices) {
  SmallVector<Axis> axes;
  for (int64_t index : indices)
    axes.push_back({index, shapeOf(value)[index], 0, 1.0});
  return axes;
}

static LogicalResult importResize(NodeContext &c) {
  Value value = c.value(0);
  bool isOld = c.node.version() < 11;
  FailureOr<Settings> s = readSettings(c, isOld);
  auto scales = readNumbers(c, isOld ? 1 : 2, "scales");
  auto sizes = readNumbers(c, isOld ? 4 : 3, "sizes");
  if (!value || failed(s) || failed(scales) || failed(sizes))
    return failure();
  int64_t rank = typeOf(value).getRank();
  SmallVector<Axis> axes = makeAxes(
      value,
      c.node.axes(
          c.node.intsAttr("axes", llvm::to_vector(llvm::seq<int64_t>(0, rank))),
          rank));
  std::string policy = c.node.stringAttr("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    return c.fail("its keep_aspect_ratio_policy is '" + policy +
                  "', which is not supported");
  if (c.node.failed() || failed(sizeAxes(c, *scales, *sizes, axes)))
    return failure();
  if (scales->empty())
    keepAspectRatio(policy, axes);
  if (s->coordinates == "tf_crop_and_resize") {
    auto part = readNumbers(c, 1, "roi");
    if (failed(part))
      return failure();
    if (part->size() != 2 * axes.size())
      return c.fail("its roi needs a start and an end for each axis");
    for (auto [i, axis] : llvm::enumerate(axes)) {
      axis.start = (*part)[i];
      axis.end = (*part)[axes.size() + i];
    }
  }
  return resize(c, value, *s, axes);
}

static LogicalResult importUpsample(NodeContext &c) {
  Value value = c.value(0);
  FailureOr<Settings> s = readSettings(c, /*isOld=*/true);
  if (!value || failed(s))
    return failure();
  int64_t rank = typeOf(value).getRank();
  auto scales = readNumbers(c, 1, "scales");
  if (failed(scales))
    return failure();
  if (!c.has(1) && rank == 4)
    *scales = {1, 1, c.node.floatAttr("height_scale", 1),
               c.node.floatAttr("width_scale", 1)};
  SmallVector<Axis> axes =
      makeAxes(value, llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  if (c.node.failed() || failed(sizeAxes(c, *scales, {}, axes)))
    return failure();
  return resize(c, value, *s, axes);
}

void zero::onnx_import::addResizeHandlers(HandlerTable &table) {
  table["Resize"] = {importResize, 1, 10};
  table["Upsample"] = {importUpsample, 1};
}
