//===- TrainInferTypes.cpp - Result types of operations -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Result types of all operations except the elementwise and the windowed ones
// (convolutions and poolings), with the shape checks that they need.
// Verification compares the types of an operation with these.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/InferError.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::train;

using Dims = SmallVector<int64_t>;
using Types = SmallVectorImpl<Type>;
using MaybeLoc = std::optional<Location>;

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

std::string mlir::train::formatShape(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '[';
  llvm::interleaveComma(shape, os);
  os << ']';
  return text;
}

FailureOr<Dims> mlir::train::broadcastShapes(ArrayRef<int64_t> lhs,
                                             ArrayRef<int64_t> rhs) {
  if (lhs.size() < rhs.size())
    std::swap(lhs, rhs);
  Dims shape(lhs);
  size_t offset = lhs.size() - rhs.size();
  for (auto [i, dim] : llvm::enumerate(rhs)) {
    int64_t &out = shape[offset + i];
    if (out == 1)
      out = dim;
    else if (dim != 1 && dim != out)
      return failure();
  }
  return shape;
}

Type mlir::train::getStatisticsType(Type elementType) {
  return elementType.isF64() ? elementType
                             : Float32Type::get(elementType.getContext());
}

LogicalResult mlir::train::requireShape(InferError error, StringRef what,
                                        Value value, ArrayRef<int64_t> shape) {
  if (shapeOf(value) == shape)
    return success();
  return error(what, " has shape ", formatShape(shapeOf(value)), ", expected ",
               formatShape(shape));
}

LogicalResult mlir::train::requireAxis(InferError error, int64_t axis,
                                       int64_t rank) {
  if (axis >= 0 && axis < rank)
    return success();
  return error("axis ", axis, " is out of range for rank ", rank);
}

static LogicalResult requireLength(InferError error, StringRef what,
                                   ArrayRef<int64_t> list, int64_t length) {
  if (static_cast<int64_t>(list.size()) == length)
    return success();
  return error(what, " has ", list.size(), " numbers, expected ", length);
}

static RankedTensorType withShape(Value like, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, getTensorType(like).getElementType());
}

static Type elementType(Value value) {
  return getTensorType(value).getElementType();
}

/// The type of statistics of `value`, with this shape.
static RankedTensorType statistics(Value value, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, getStatisticsType(elementType(value)));
}

#define INFER(OP)                                                              \
  LogicalResult OP::inferReturnTypes(MLIRContext *, MaybeLoc loc,              \
                                     Adaptor adaptor, Types &types)

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// [rows, inner, ...] of the last two dimensions after an optional transpose.
static std::pair<int64_t, int64_t> matrixDims(Value value, bool transpose) {
  ArrayRef<int64_t> shape = shapeOf(value).take_back(2);
  return transpose ? std::pair(shape[1], shape[0])
                   : std::pair(shape[0], shape[1]);
}

static LogicalResult inferProduct(InferError error, Value lhs, Value rhs,
                                  bool transposeA, bool transposeB,
                                  Dims &shape) {
  for (Value operand : {lhs, rhs})
    if (shapeOf(operand).size() < 2)
      return error("operand of shape ", formatShape(shapeOf(operand)),
                   " is not a matrix, reshape it to rank 2 first");
  auto [rows, inner] = matrixDims(lhs, transposeA);
  auto [otherInner, columns] = matrixDims(rhs, transposeB);
  if (inner != otherInner)
    return error("contracted dimensions differ, ", inner, " and ", otherInner);
  FailureOr<Dims> batch =
      broadcastShapes(shapeOf(lhs).drop_back(2), shapeOf(rhs).drop_back(2));
  if (failed(batch))
    return error("batch dimensions ", formatShape(shapeOf(lhs).drop_back(2)),
                 " and ", formatShape(shapeOf(rhs).drop_back(2)),
                 " do not broadcast");
  shape = *batch;
  shape.append({rows, columns});
  return success();
}

INFER(MatmulOp) {
  Dims shape;
  if (failed(inferProduct({loc, getOperationName()}, adaptor.getLhs(),
                          adaptor.getRhs(), adaptor.getTransposeA(),
                          adaptor.getTransposeB(), shape)))
    return failure();
  types.push_back(withShape(adaptor.getLhs(), shape));
  return success();
}

INFER(GemmOp) {
  InferError error(loc, getOperationName());
  Dims shape;
  if (failed(inferProduct(error, adaptor.getA(), adaptor.getB(),
                          adaptor.getTransposeA(), adaptor.getTransposeB(),
                          shape)))
    return failure();
  if (shape.size() != 2)
    return error("operands have batch dimensions, use matmul and add");
  FailureOr<Dims> wider = broadcastShapes(shape, shapeOf(adaptor.getC()));
  if (failed(wider) || *wider != shape)
    return error("bias of shape ", formatShape(shapeOf(adaptor.getC())),
                 " does not broadcast to the result's shape ",
                 formatShape(shape));
  types.push_back(withShape(adaptor.getA(), shape));
  return success();
}

//===----------------------------------------------------------------------===//
// Shape operations
//===----------------------------------------------------------------------===//

/// The number of elements, or failure where it exceeds 64 bits.
static FailureOr<int64_t> countElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t dim : shape)
    if (llvm::MulOverflow(count, dim, count))
      return failure();
  return count;
}

static LogicalResult requireSizes(InferError error, ArrayRef<int64_t> shape) {
  for (int64_t dim : shape)
    if (dim < 0)
      return error("shape ", formatShape(shape), " has a negative size");
  return success();
}

INFER(ReshapeOp) {
  InferError error(loc, getOperationName());
  if (failed(requireSizes(error, adaptor.getShape())))
    return failure();
  FailureOr<int64_t> from = countElements(shapeOf(adaptor.getInput()));
  FailureOr<int64_t> to = countElements(adaptor.getShape());
  if (failed(from) || failed(to))
    return failTooLarge(error);
  if (*from != *to)
    return error("cannot reshape ", *from, " elements to ",
                 formatShape(adaptor.getShape()), ", which has ", *to);
  types.push_back(withShape(adaptor.getInput(), adaptor.getShape()));
  return success();
}

INFER(BroadcastOp) {
  InferError error(loc, getOperationName());
  ArrayRef<int64_t> from = shapeOf(adaptor.getInput());
  FailureOr<Dims> wider = broadcastShapes(from, adaptor.getShape());
  if (failed(wider) || ArrayRef<int64_t>(*wider) != adaptor.getShape())
    return error("shape ", formatShape(from), " does not broadcast to ",
                 formatShape(adaptor.getShape()));
  types.push_back(withShape(adaptor.getInput(), adaptor.getShape()));
  return success();
}

INFER(TransposeOp) {
  InferError error(loc, getOperationName());
  ArrayRef<int64_t> from = shapeOf(adaptor.getInput());
  Dims sorted(adaptor.getPermutation());
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, from.size())))
    return error(formatShape(adaptor.getPermutation()),
                 " is not a permutation of ", from.size(), " dimensions");
  Dims shape;
  for (int64_t dim : adaptor.getPermutation())
    shape.push_back(from[dim]);
  types.push_back(withShape(adaptor.getInput(), shape));
  return success();
}

INFER(SliceOp) {
  InferError error(loc, getOperationName());
  ArrayRef<int64_t> from = shapeOf(adaptor.getInput());
  ArrayRef<int64_t> starts = adaptor.getStarts(), limits = adaptor.getLimits(),
                    strides = adaptor.getStrides();
  int64_t rank = from.size();
  if (failed(requireLength(error, "starts", starts, rank)) ||
      failed(requireLength(error, "limits", limits, rank)) ||
      failed(requireLength(error, "strides", strides, rank)))
    return failure();
  Dims shape;
  for (int64_t i = 0; i < rank; ++i) {
    if (starts[i] < 0 || starts[i] > limits[i] || limits[i] > from[i])
      return error("range [", starts[i], ", ", limits[i],
                   ") is not within dimension ", i, " of size ", from[i]);
    if (strides[i] < 1)
      return error("stride ", strides[i], " of dimension ", i,
                   " is not positive");
    int64_t span = limits[i] - starts[i];
    shape.push_back(span == 0 ? 0 : (span - 1) / strides[i] + 1);
  }
  types.push_back(withShape(adaptor.getInput(), shape));
  return success();
}

INFER(ConcatOp) {
  InferError error(loc, getOperationName());
  // SameOperandsElementType has the message for this.
  if (adaptor.getInputs().empty())
    return failure();
  Value first = adaptor.getInputs().front();
  int64_t axis = adaptor.getAxis();
  Dims shape(shapeOf(first));
  if (failed(requireAxis(error, axis, shape.size())))
    return failure();
  for (Value input : adaptor.getInputs().drop_front()) {
    Dims other(shapeOf(input));
    if (other.size() == shape.size())
      other[axis] = shape[axis];
    if (other != shape)
      return error("operand of shape ", formatShape(shapeOf(input)),
                   " cannot be joined to shape ", formatShape(shapeOf(first)),
                   " along axis ", axis);
  }
  shape[axis] = 0;
  for (Value input : adaptor.getInputs())
    if (llvm::AddOverflow(shape[axis], shapeOf(input)[axis], shape[axis]))
      return failTooLarge(error);
  types.push_back(withShape(first, shape));
  return success();
}

INFER(PadOp) {
  InferError error(loc, getOperationName());
  ArrayRef<int64_t> from = shapeOf(adaptor.getInput());
  ArrayRef<int64_t> low = adaptor.getLow(), high = adaptor.getHigh(),
                    interior = adaptor.getInterior();
  int64_t rank = from.size();
  if (failed(requireLength(error, "low", low, rank)) ||
      failed(requireLength(error, "high", high, rank)) ||
      failed(requireLength(error, "interior", interior, rank)))
    return failure();
  Dims shape;
  for (int64_t i = 0; i < rank; ++i) {
    if (low[i] < 0 || high[i] < 0 || interior[i] < 0)
      return error("padding of dimension ", i, " is negative");
    int64_t size;
    if (llvm::MulOverflow(std::max<int64_t>(from[i] - 1, 0), interior[i],
                          size) ||
        llvm::AddOverflow(size, from[i], size) ||
        llvm::AddOverflow(size, low[i], size) ||
        llvm::AddOverflow(size, high[i], size))
      return failTooLarge(error);
    shape.push_back(size);
  }
  types.push_back(withShape(adaptor.getInput(), shape));
  return success();
}

/// The shape of gathering by `indices` along `axis` from `data`.
static LogicalResult inferGather(InferError error, ArrayRef<int64_t> data,
                                 Value indices, int64_t axis, Dims &shape) {
  if (failed(requireAxis(error, axis, data.size())))
    return failure();
  llvm::append_range(shape, data.take_front(axis));
  llvm::append_range(shape, shapeOf(indices));
  llvm::append_range(shape, data.drop_front(axis + 1));
  return success();
}

INFER(GatherOp) {
  InferError error(loc, getOperationName());
  Dims shape;
  if (failed(inferGather(error, shapeOf(adaptor.getData()),
                         adaptor.getIndices(), adaptor.getAxis(), shape)))
    return failure();
  types.push_back(withShape(adaptor.getData(), shape));
  return success();
}

INFER(GatherGradOp) {
  InferError error(loc, getOperationName());
  Dims shape;
  if (failed(requireSizes(error, adaptor.getDataShape())) ||
      failed(inferGather(error, adaptor.getDataShape(), adaptor.getIndices(),
                         adaptor.getAxis(), shape)) ||
      failed(requireShape(error, "grad", adaptor.getGrad(), shape)))
    return failure();
  types.push_back(withShape(adaptor.getGrad(), adaptor.getDataShape()));
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static LogicalResult inferReduce(InferError error, Value input,
                                 ArrayRef<int64_t> axes, bool keepDims,
                                 bool needsElements, Types &types) {
  ArrayRef<int64_t> from = shapeOf(input);
  int64_t previous = -1;
  for (int64_t axis : axes) {
    if (failed(requireAxis(error, axis, from.size())))
      return failure();
    if (axis <= previous)
      return error("axes ", formatShape(axes),
                   " are not distinct and ascending");
    if (needsElements && from[axis] == 0)
      return error("axis ", axis, " has no elements to choose from");
    previous = axis;
  }
  Dims shape;
  for (auto [i, dim] : llvm::enumerate(from)) {
    if (!llvm::is_contained(axes, static_cast<int64_t>(i)))
      shape.push_back(dim);
    else if (keepDims)
      shape.push_back(1);
  }
  types.push_back(withShape(input, shape));
  return success();
}

#define INFER_REDUCE(OP, NEEDS_ELEMENTS)                                       \
  INFER(OP) {                                                                  \
    return inferReduce({loc, getOperationName()}, adaptor.getInput(),          \
                       adaptor.getAxes(), adaptor.getKeepdims(),               \
                       NEEDS_ELEMENTS, types);                                 \
  }

INFER_REDUCE(ReduceSumOp, false)
INFER_REDUCE(ReduceMeanOp, false)
INFER_REDUCE(ReduceMaxOp, true)
INFER_REDUCE(ReduceMinOp, true)
INFER_REDUCE(ReduceProdOp, false)
INFER_REDUCE(ReduceLogSumExpOp, false)

//===----------------------------------------------------------------------===//
// Normalizations
//===----------------------------------------------------------------------===//

/// The shape of the statistics of a normalization from `axis` on.
static Dims statisticsShape(ArrayRef<int64_t> shape, int64_t axis) {
  Dims result(shape);
  std::fill(result.begin() + axis, result.end(), 1);
  return result;
}

INFER(LayerNormOp) {
  InferError error(loc, getOperationName());
  Value input = adaptor.getInput();
  ArrayRef<int64_t> shape = shapeOf(input);
  int64_t axis = adaptor.getAxis();
  if (failed(requireAxis(error, axis, shape.size())) ||
      failed(requireShape(error, "scale", adaptor.getScale(),
                          shape.drop_front(axis))) ||
      (adaptor.getBias() &&
       failed(requireShape(error, "bias", adaptor.getBias(),
                           shape.drop_front(axis)))))
    return failure();
  RankedTensorType saved = statistics(input, statisticsShape(shape, axis));
  types.append({input.getType(), saved, saved});
  return success();
}

INFER(LayerNormGradOp) {
  InferError error(loc, getOperationName());
  Value input = adaptor.getInput(), scale = adaptor.getScale();
  ArrayRef<int64_t> shape = shapeOf(input);
  int64_t axis = adaptor.getAxis();
  if (failed(requireAxis(error, axis, shape.size())) ||
      failed(requireShape(error, "grad", adaptor.getGrad(), shape)) ||
      failed(requireShape(error, "scale", scale, shape.drop_front(axis))) ||
      failed(requireShape(error, "mean", adaptor.getMean(),
                          statisticsShape(shape, axis))) ||
      failed(requireShape(error, "rstd", adaptor.getRstd(),
                          statisticsShape(shape, axis))))
    return failure();
  types.append({input.getType(), scale.getType(), scale.getType()});
  return success();
}

INFER(RmsNormOp) {
  InferError error(loc, getOperationName());
  Value input = adaptor.getInput();
  ArrayRef<int64_t> shape = shapeOf(input);
  int64_t axis = adaptor.getAxis();
  if (failed(requireAxis(error, axis, shape.size())) ||
      failed(requireShape(error, "scale", adaptor.getScale(),
                          shape.drop_front(axis))))
    return failure();
  types.append(
      {input.getType(), statistics(input, statisticsShape(shape, axis))});
  return success();
}

INFER(RmsNormGradOp) {
  InferError error(loc, getOperationName());
  Value input = adaptor.getInput(), scale = adaptor.getScale();
  ArrayRef<int64_t> shape = shapeOf(input);
  int64_t axis = adaptor.getAxis();
  if (failed(requireAxis(error, axis, shape.size())) ||
      failed(requireShape(error, "grad", adaptor.getGrad(), shape)) ||
      failed(requireShape(error, "scale", scale, shape.drop_front(axis))) ||
      failed(requireShape(error, "rstd", adaptor.getRstd(),
                          statisticsShape(shape, axis))))
    return failure();
  types.append({input.getType(), scale.getType()});
  return success();
}

INFER(NormalizeOp) {
  Value input = adaptor.getInput();
  ArrayRef<int64_t> shape = shapeOf(input);
  int64_t axis = adaptor.getAxis();
  if (failed(requireAxis({loc, getOperationName()}, axis, shape.size())))
    return failure();
  types.append(
      {input.getType(), statistics(input, statisticsShape(shape, axis))});
  return success();
}

INFER(NormalizeGradOp) {
  InferError error(loc, getOperationName());
  Value output = adaptor.getOutput();
  ArrayRef<int64_t> shape = shapeOf(output);
  int64_t axis = adaptor.getAxis();
  if (failed(requireAxis(error, axis, shape.size())) ||
      failed(requireShape(error, "grad", adaptor.getGrad(), shape)) ||
      failed(requireShape(error, "rstd", adaptor.getRstd(),
                          statisticsShape(shape, axis))))
    return failure();
  types.push_back(output.getType());
  return success();
}

/// Every one of `vectors` has one element per channel of `input`.
static LogicalResult
requireChannels(InferError error, Value input,
                ArrayRef<std::pair<StringRef, Value>> vectors) {
  if (shapeOf(input).size() < 2)
    return error("input of shape ", formatShape(shapeOf(input)),
                 " has no channel dimension");
  for (auto [what, vector] : vectors)
    if (failed(requireShape(error, what, vector, shapeOf(input)[1])))
      return failure();
  return success();
}

INFER(BatchNormOp) {
  Value input = adaptor.getInput();
  if (failed(requireChannels({loc, getOperationName()}, input,
                             {{"scale", adaptor.getScale()},
                              {"bias", adaptor.getBias()},
                              {"running_mean", adaptor.getRunningMean()},
                              {"running_var", adaptor.getRunningVar()}})))
    return failure();
  RankedTensorType saved = statistics(input, shapeOf(input)[1]);
  types.append({input.getType(), adaptor.getRunningMean().getType(),
                adaptor.getRunningVar().getType(), saved, saved});
  return success();
}

INFER(BatchNormGradOp) {
  InferError error(loc, getOperationName());
  Value input = adaptor.getInput(), scale = adaptor.getScale();
  if (failed(requireShape(error, "grad", adaptor.getGrad(), shapeOf(input))) ||
      failed(requireChannels(error, input,
                             {{"scale", scale},
                              {"save_mean", adaptor.getSaveMean()},
                              {"save_rstd", adaptor.getSaveRstd()}})))
    return failure();
  types.append({input.getType(), scale.getType(), scale.getType()});
  return success();
}

INFER(BatchNormInferenceOp) {
  if (failed(requireChannels({loc, getOperationName()}, adaptor.getInput(),
                             {{"scale", adaptor.getScale()},
                              {"bias", adaptor.getBias()},
                              {"mean", adaptor.getMean()},
                              {"var", adaptor.getVar()}})))
    return failure();
  types.push_back(adaptor.getInput().getType());
  return success();
}

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

/// What a cross-entropy and its gradient have in common fits; `loss` becomes
/// the shape of the loss.
template <typename Adaptor>
static LogicalResult inferCrossEntropy(InferError error, Adaptor adaptor,
                                       Dims &loss) {
  Dims shape(shapeOf(adaptor.getLogits()));
  int64_t axis = adaptor.getAxis();
  if (failed(requireAxis(error, axis, shape.size())))
    return failure();
  int64_t classes = shape[axis];
  shape.erase(shape.begin() + axis);
  if (failed(requireShape(error, "labels", adaptor.getLabels(), shape)) ||
      (adaptor.getWeights() &&
       failed(requireShape(error, "weights", adaptor.getWeights(), classes))))
    return failure();
  StringRef reduction = adaptor.getReduction();
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    return error("reduction is \"", reduction,
                 "\", expected \"mean\", \"sum\" or \"none\"");
  if (reduction == "none")
    loss = shape;
  return success();
}

INFER(CrossEntropyOp) {
  Value logits = adaptor.getLogits();
  Dims loss;
  if (failed(inferCrossEntropy({loc, getOperationName()}, adaptor, loss)))
    return failure();
  types.append({statistics(logits, loss),
                statistics(logits, shapeOf(adaptor.getLabels()))});
  return success();
}

INFER(CrossEntropyGradOp) {
  InferError error(loc, getOperationName());
  Value logits = adaptor.getLogits();
  Dims loss;
  if (failed(inferCrossEntropy(error, adaptor, loss)) ||
      failed(requireShape(error, "grad", adaptor.getGrad(), loss)) ||
      failed(requireShape(error, "lse", adaptor.getLse(),
                          shapeOf(adaptor.getLabels()))))
    return failure();
  types.push_back(logits.getType());
  return success();
}

LogicalResult SumSquaresOp::inferReturnTypes(MLIRContext *context, MaybeLoc,
                                             Adaptor, Types &types) {
  types.push_back(RankedTensorType::get({}, Float64Type::get(context)));
  return success();
}

INFER(AccumulateOp) {
  InferError error(loc, getOperationName());
  types.push_back(adaptor.getSum().getType());
  return requireShape(error, "grad", adaptor.getGrad(),
                      shapeOf(adaptor.getSum()));
}

INFER(UpdateLossScaleOp) {
  (void)loc;
  types.append(
      {adaptor.getScale().getType(), adaptor.getHysteresisLeft().getType(),
       adaptor.getIteration().getType(), adaptor.getLastOverflow().getType(),
       adaptor.getOverflow().getType()});
  return success();
}

INFER(NextStepOp) {
  (void)loc;
  types.push_back(adaptor.getStep().getType());
  return success();
}

INFER(SgdOp) {
  (void)loc;
  types.push_back(adaptor.getParam().getType());
  if (adaptor.getMomentumBuffer())
    types.push_back(adaptor.getMomentumBuffer().getType());
  return success();
}

template <typename Adaptor>
static LogicalResult inferAdam(Adaptor adaptor, Types &types) {
  types.append({adaptor.getParam().getType(), adaptor.getExpAvg().getType(),
                adaptor.getExpAvgSq().getType()});
  return success();
}

LogicalResult AdamOp::inferReturnTypes(MLIRContext *, MaybeLoc, Adaptor adaptor,
                                       Types &types) {
  return inferAdam(adaptor, types);
}

LogicalResult AdamwOp::inferReturnTypes(MLIRContext *, MaybeLoc,
                                        Adaptor adaptor, Types &types) {
  return inferAdam(adaptor, types);
}

LogicalResult AdamHatOp::inferReturnTypes(MLIRContext *, MaybeLoc,
                                          Adaptor adaptor, Types &types) {
  return inferAdam(adaptor, types);
}

INFER(AdagradOp) {
  (void)loc;
  types.append({adaptor.getParam().getType(), adaptor.getSum().getType()});
  return success();
}
