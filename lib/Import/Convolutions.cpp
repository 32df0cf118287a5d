//===- Convolutions.cpp - Convolutions ------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Convolutions and transposed ones, which are the gradient of a convolution by
// its input.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Formula.h"
#include "lib/Import/Window.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

static bool isZero(const HostTensor &tensor) {
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (tensor.number(i) != 0)
      return false;
  return true;
}

/// Whether there is a bias that changes anything: torch.export gives
/// convolutions without a bias one of zeros.
static bool hasBias(NodeContext &c) {
  return c.has(2) && !(c.host(2) && isZero(*c.host(2)));
}

/// Input and weight, of one rank of 3 or more; failure after an error.
static LogicalResult readOperands(NodeContext &c, Value &input, Value &weight) {
  input = c.value(0);
  weight = c.value(1);
  if (!input || !weight)
    return failure();
  int64_t rank = typeOf(input).getRank();
  if (rank < 3 || typeOf(weight).getRank() != rank)
    return c.fail("expects an input and a weight of one rank, 3 or more");
  return success();
}

static SmallVector<NamedAttribute> convAttributes(NodeContext &c,
                                                  const Window &window) {
  return {c.list("strides", window.strides), c.list("pads", window.pads),
          c.list("dilations", window.dilations),
          c.integer("group", c.node.intAttr("group", 1))};
}

static LogicalResult importConv(NodeContext &c) {
  Value input, weight;
  if (failed(readOperands(c, input, weight)))
    return failure();
  ArrayRef<int64_t> kernel = shapeOf(weight).drop_front(2);
  auto window = readPaddedWindow(c, shapeOf(input).drop_front(2), kernel);
  if (failed(window))
    return failure();
  if (ArrayRef(window->kernel) != kernel)
    return c.fail("its kernel_shape is not the weight's");
  SmallVector<Value> operands{input, weight};
  if (hasBias(c))
    operands.push_back(c.value(2));
  return c.result(c.emit<train::ConvOp>(operands, convAttributes(c, *window)));
}

//===----------------------------------------------------------------------===//
// Transposed
//===----------------------------------------------------------------------===//

/// Shares what is cut off in a dimension between begin and end.
static void sharePads(Window &window, size_t dim, int64_t total,
                      bool moreAtEnd) {
  int64_t less = llvm::divideFloorSigned(total, 2);
  window.pads[dim] = moreAtEnd ? less : total - less;
  window.pads[window.kernel.size() + dim] = total - window.pads[dim];
}

/// The pads of a transposed convolution, of which those at the end become less
/// by output_padding; negative ones add zeros.
static LogicalResult readTransposedPads(NodeContext &c, Window &window,
                                        ArrayRef<int64_t> sizes) {
  size_t rank = sizes.size();
  std::string mode = c.node.stringAttr("auto_pad", "NOTSET");
  if (mode != "NOTSET" && mode != "VALID" && mode != "SAME_UPPER" &&
      mode != "SAME_LOWER")
    return c.fail("has the unknown auto_pad '" + mode + "'");
  SmallVector<int64_t> zeros(rank, 0);
  SmallVector<int64_t> extra = c.node.intsAttr("output_padding", zeros);
  SmallVector<int64_t> shape = c.node.intsAttr("output_shape");
  // Some exporters write the batch and the channels too.
  if (shape.size() == rank + 2)
    shape.erase(shape.begin(), shape.begin() + 2);
  if (c.node.failed() || !checkEntries(c, "output_padding", extra, rank, 0) ||
      (!shape.empty() && !checkEntries(c, "output_shape", shape, rank, 1)))
    return failure();
  // Keeps the arithmetic on sizes from overflowing.
  if (!checkEntries(c, "sizes of the input", sizes, rank, 1))
    return failure();
  bool isSame = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  for (size_t d = 0; d < rank; ++d) {
    int64_t whole =
        (sizes[d] - 1) * window.strides[d] + window.extent(d) + extra[d];
    if (!shape.empty())
      sharePads(window, d, whole - shape[d], mode == "SAME_UPPER");
    else if (isSame)
      sharePads(window, d, whole - sizes[d] * window.strides[d],
                mode == "SAME_UPPER");
    else if (mode == "VALID")
      window.pads[d] = window.pads[rank + d] = 0;
    window.pads[rank + d] -= extra[d];
  }
  return success();
}

/// The gradient by its input of the convolution that `window` describes, where
/// negative pads are zeros around it.
static Value emitTransposed(NodeContext &c, Value input, Value weight,
                            Window window) {
  size_t rank = window.kernel.size();
  int64_t channels;
  if (llvm::MulOverflow(shapeOf(weight)[1], c.node.intAttr("group", 1),
                        channels)) {
    (void)c.fail("its result is too large");
    return {};
  }
  SmallVector<int64_t> shape{shapeOf(input)[0], channels};
  SmallVector<int64_t> low(rank + 2, 0), high(rank + 2, 0), none(rank + 2, 0);
  for (size_t d = 0; d < rank; ++d) {
    int64_t &before = window.pads[d], &after = window.pads[rank + d];
    low[d + 2] = std::max<int64_t>(-before, 0);
    high[d + 2] = std::max<int64_t>(-after, 0);
    before = std::max<int64_t>(before, 0);
    after = std::max<int64_t>(after, 0);
    shape.push_back((shapeOf(input)[d + 2] - 1) * window.strides[d] +
                    window.extent(d) - before - after);
    if (shape.back() < 1) {
      (void)c.fail("its pads leave nothing of spatial dimension " + Twine(d));
      return {};
    }
  }
  SmallVector<NamedAttribute> attributes = convAttributes(c, window);
  attributes.push_back(c.list("input_shape", shape));
  Value result = c.emit<train::ConvGradInputOp>({input, weight}, attributes);
  if (low == none && high == none)
    return result;
  return c.emit<train::PadOp>(result, {c.list("low", low), c.list("high", high),
                                       c.list("interior", none)});
}

static LogicalResult importConvTranspose(NodeContext &c) {
  Value input, weight;
  if (failed(readOperands(c, input, weight)))
    return failure();
  ArrayRef<int64_t> kernel = shapeOf(weight).drop_front(2);
  ArrayRef<int64_t> sizes = shapeOf(input).drop_front(2);
  auto window = readWindow(c, sizes.size(), kernel);
  if (failed(window))
    return failure();
  if (ArrayRef(window->kernel) != kernel)
    return c.fail("its kernel_shape is not the weight's");
  if (failed(readTransposedPads(c, *window, sizes)))
    return failure();
  Value result = emitTransposed(c, input, weight, *window);
  if (result && hasBias(c)) {
    Formula f{c};
    result = f.add(result, f.perChannel(c.value(2), typeOf(result).getRank()));
  }
  return c.result(result);
}

void zero::onnx_import::addConvolutionHandlers(HandlerTable &table) {
  table["Conv"] = {importConv, 2};
  table["ConvTranspose"] = {importConvTranspose, 2};
}
