//===- Contractions.cpp - Matrix products, convolutions, poolings ---------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrix products reach the IR as few, large, two-dimensional products: a
// transposed operand becomes a flag, and leading dimensions of the left
// operand become rows when the right one is a matrix, so that the gradient of
// the weight is one product, too.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/GraphImporter.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// Looks through a transpose of the last two dimensions.
static Value skipTranspose(Value value, bool &transposed) {
  auto op = value.getDefiningOp<train::TransposeOp>();
  if (!op)
    return value;
  ArrayRef<int64_t> perm = op.getPermutation();
  int64_t rank = perm.size();
  for (int64_t i = 0; i < rank - 2; ++i)
    if (perm[i] != i)
      return value;
  if (rank < 2 || perm[rank - 1] != rank - 2)
    return value;
  transposed = !transposed;
  return op.getInput();
}

static Value product(NodeContext &c, Value a, Value b, bool transposeA,
                     bool transposeB) {
  SmallVector<NamedAttribute> flags;
  if (transposeA)
    flags.push_back(c.flag("transpose_a"));
  if (transposeB)
    flags.push_back(c.flag("transpose_b"));
  return c.emit<train::MatmulOp>({a, b}, flags);
}

/// [..., K] x [K, N] as [rows, K] x [K, N].
static Value flattenedProduct(NodeContext &c, Value a, Value b,
                              bool transposeB) {
  SmallVector<int64_t> result(shapeOf(a));
  int64_t rows = *countElements(ArrayRef(result).drop_back());
  Value flat = c.reshape(a, {rows, result.back()});
  Value product2D = product(c, flat, b, false, transposeB);
  if (!product2D)
    return {};
  result.back() = shapeOf(product2D).back();
  return c.reshape(product2D, result);
}

static LogicalResult importMatMul(NodeContext &c) {
  Value a = c.value(0), b = c.value(1);
  if (!a || !b)
    return failure();
  int64_t rankA = typeOf(a).getRank(), rankB = typeOf(b).getRank();
  if (rankA == 0 || rankB == 0)
    return c.fail("expects operands of rank 1 or more");
  // numpy: a vector is a row on the left and a column on the right, and the
  // dimension added for that disappears from the result.
  if (rankA == 1)
    a = c.reshape(a, {1, shapeOf(a)[0]});
  if (rankB == 1)
    b = c.reshape(b, {shapeOf(b)[0], 1});
  bool transposeA = false, transposeB = false;
  b = skipTranspose(b, transposeB);
  Value result;
  if (typeOf(a).getRank() > 2 && typeOf(b).getRank() == 2) {
    result = flattenedProduct(c, a, b, transposeB);
  } else {
    a = skipTranspose(a, transposeA);
    result = product(c, a, b, transposeA, transposeB);
  }
  if (!result)
    return failure();
  SmallVector<int64_t> shape(shapeOf(result));
  if (rankB == 1)
    shape.pop_back();
  if (rankA == 1)
    shape.erase(shape.end() - (rankB == 1 ? 1 : 2));
  return c.result(c.reshape(result, shape));
}

static LogicalResult importGemm(NodeContext &c) {
  Value a = c.value(0), b = c.value(1);
  if (!a || !b)
    return failure();
  if (typeOf(a).getRank() != 2 || typeOf(b).getRank() != 2)
    return c.fail("expects matrices");
  bool transposeA = c.node.intAttr("transA", 0);
  bool transposeB = c.node.intAttr("transB", 0);
  double alpha = c.node.floatAttr("alpha", 1);
  double beta = c.node.floatAttr("beta", 1);
  a = skipTranspose(a, transposeA);
  b = skipTranspose(b, transposeB);
  if (alpha != 1)
    a = c.emit<train::MulOp>({a, c.scalar(a, alpha)});
  Value bias = c.has(2) && beta != 0 ? c.value(2) : Value();
  if (!a || (c.has(2) && beta != 0 && !bias))
    return failure();
  if (!bias)
    return c.result(product(c, a, b, transposeA, transposeB));
  if (beta != 1)
    bias = c.emit<train::MulOp>({bias, c.scalar(bias, beta)});
  SmallVector<NamedAttribute> flags;
  if (transposeA)
    flags.push_back(c.flag("transpose_a"));
  if (transposeB)
    flags.push_back(c.flag("transpose_b"));
  return c.result(c.emit<train::GemmOp>({a, b, bias}, flags));
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

namespace {

/// The attributes that convolutions and poolings share.
struct Window {
  SmallVector<int64_t> kernel, strides, dilations, pads;
};

} // namespace

/// Checks a list of one entry per spatial dimension.
static bool checkEntries(NodeContext &c, StringRef name,
                         ArrayRef<int64_t> values, size_t count,
                         int64_t smallest) {
  // Large enough for any model; keeps the arithmetic on windows from
  // overflowing.
  constexpr int64_t largest = int64_t(1) << 31;
  bool good = values.size() == count && llvm::all_of(values, [&](int64_t v) {
                return v >= smallest && v <= largest;
              });
  if (!good)
    c.node.error() << "'" << name << "' needs " << count
                   << " entries of at least " << smallest;
  return good;
}

/// Pads of auto_pad's SAME modes: the result has ceil(size / stride) entries.
static void padSame(Window &window, ArrayRef<int64_t> sizes, bool upper) {
  size_t rank = sizes.size();
  for (size_t d = 0; d < rank; ++d) {
    int64_t count = (sizes[d] + window.strides[d] - 1) / window.strides[d];
    int64_t extent = (window.kernel[d] - 1) * window.dilations[d] + 1;
    int64_t total = std::max<int64_t>(
        (count - 1) * window.strides[d] + extent - sizes[d], 0);
    window.pads[d] = upper ? total / 2 : total - total / 2;
    window.pads[rank + d] = total - window.pads[d];
  }
}

/// Reads the window of an input [N, C, sizes...].
static FailureOr<Window> readWindow(NodeContext &c, ArrayRef<int64_t> sizes,
                                    ArrayRef<int64_t> kernel) {
  size_t rank = sizes.size();
  Window window;
  SmallVector<int64_t> ones(rank, 1), zeros(2 * rank, 0);
  window.kernel = c.node.intsAttr("kernel_shape", kernel);
  window.strides = c.node.intsAttr("strides", ones);
  window.dilations = c.node.intsAttr("dilations", ones);
  window.pads = c.node.intsAttr("pads", zeros);
  std::string mode = c.node.stringAttr("auto_pad", "NOTSET");
  if (c.node.failed() ||
      !checkEntries(c, "kernel_shape", window.kernel, rank, 1) ||
      !checkEntries(c, "strides", window.strides, rank, 1) ||
      !checkEntries(c, "dilations", window.dilations, rank, 1) ||
      !checkEntries(c, "pads", window.pads, 2 * rank, 0))
    return failure();
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER")
    padSame(window, sizes, mode == "SAME_UPPER");
  else if (mode == "VALID")
    window.pads = zeros;
  else if (mode != "NOTSET") {
    (void)c.fail("has the unknown auto_pad '" + mode + "'");
    return failure();
  }
  return window;
}

static bool isZero(const HostTensor &tensor) {
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (tensor.number(i) != 0)
      return false;
  return true;
}

static LogicalResult importConv(NodeContext &c) {
  Value input = c.value(0), weight = c.value(1);
  if (!input || !weight)
    return failure();
  int64_t rank = typeOf(input).getRank();
  if (rank < 3 || typeOf(weight).getRank() != rank)
    return c.fail("expects an input and a weight of one rank, 3 or more");
  ArrayRef<int64_t> kernel = shapeOf(weight).drop_front(2);
  auto window = readWindow(c, shapeOf(input).drop_front(2), kernel);
  if (failed(window))
    return failure();
  if (ArrayRef(window->kernel) != kernel)
    return c.fail("its kernel_shape is not the weight's");
  SmallVector<Value> operands{input, weight};
  // torch.export gives convolutions without a bias one of zeros.
  if (c.has(2) && !(c.host(2) && isZero(*c.host(2))))
    operands.push_back(c.value(2));
  return c.result(c.emit<train::ConvOp>(
      operands,
      {c.list("strides", window->strides), c.list("pads", window->pads),
       c.list("dilations", window->dilations),
       c.integer("group", c.node.intAttr("group", 1))}));
}

//===----------------------------------------------------------------------===//
// Poolings
//===----------------------------------------------------------------------===//

/// Whether rounding the result's size up instead of down changes it.
static bool ceilMatters(const Window &window, ArrayRef<int64_t> sizes) {
  size_t rank = sizes.size();
  for (size_t d = 0; d < rank; ++d) {
    int64_t extent = (window.kernel[d] - 1) * window.dilations[d] + 1;
    int64_t room = sizes[d] + window.pads[d] + window.pads[rank + d] - extent;
    if (room % window.strides[d])
      return true;
  }
  return false;
}

/// The input and window of a pooling.
static FailureOr<Window> readPool(NodeContext &c, Value input) {
  if (!input || typeOf(input).getRank() < 3) {
    if (input)
      (void)c.fail("expects an input of rank 3 or more");
    return failure();
  }
  if (!c.node.hasAttr("kernel_shape")) {
    (void)c.fail("has no kernel_shape");
    return failure();
  }
  ArrayRef<int64_t> sizes = shapeOf(input).drop_front(2);
  auto window = readWindow(c, sizes, {});
  if (succeeded(window) && c.node.intAttr("ceil_mode", 0) &&
      ceilMatters(*window, sizes)) {
    (void)c.fail("ceil_mode is not supported where it changes the result");
    return failure();
  }
  return window;
}

static SmallVector<NamedAttribute> poolAttributes(NodeContext &c,
                                                  const Window &window) {
  return {c.list("kernel", window.kernel), c.list("strides", window.strides),
          c.list("pads", window.pads), c.list("dilations", window.dilations)};
}

static LogicalResult importMaxPool(NodeContext &c) {
  Value input = c.value(0);
  auto window = readPool(c, input);
  if (failed(window))
    return failure();
  return c.result(c.emit<train::MaxPoolOp>(input, poolAttributes(c, *window)));
}

static LogicalResult importAveragePool(NodeContext &c) {
  Value input = c.value(0);
  auto window = readPool(c, input);
  if (failed(window))
    return failure();
  SmallVector<NamedAttribute> attributes = poolAttributes(c, *window);
  if (c.node.intAttr("count_include_pad", 0))
    attributes.push_back(c.flag("count_include_pad"));
  return c.result(c.emit<train::AvgPoolOp>(input, attributes));
}

/// Global poolings are reductions over the spatial dimensions.
template <typename OpTy>
static LogicalResult importGlobalPool(NodeContext &c) {
  Value input = c.value(0);
  if (!input || typeOf(input).getRank() < 3)
    return input ? c.fail("expects an input of rank 3 or more") : failure();
  SmallVector<int64_t> axes;
  for (int64_t d = 2; d < typeOf(input).getRank(); ++d)
    axes.push_back(d);
  return c.result(
      c.emit<OpTy>(input, {c.list("axes", axes), c.flag("keepdims")}));
}

void zero::onnx_import::addContractionHandlers(HandlerTable &table) {
  table["AveragePool"] = {importAveragePool, 1};
  table["Conv"] = {importConv, 2};
  table["Gemm"] = {importGemm, 2};
  table["GlobalAveragePool"] = {importGlobalPool<train::ReduceMeanOp>, 1};
  table["GlobalMaxPool"] = {importGlobalPool<train::ReduceMaxOp>, 1};
  table["MatMul"] = {importMatMul, 2};
  table["MaxPool"] = {importMaxPool, 1};
}
