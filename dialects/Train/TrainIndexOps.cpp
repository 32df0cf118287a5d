//===- TrainIndexOps.cpp - Indices, order and running sums ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Result types, rules, costs and derivatives of the operations of
// TrainOpsIndex.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/InferError.h"
#include "dialects/Train/VjpBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::train;
using zero::Work;

using Dims = SmallVector<int64_t>;
using Types = SmallVectorImpl<Type>;
using MaybeLoc = std::optional<Location>;

#define VJP(OP)                                                                \
  LogicalResult OP::buildVjp(OpBuilder &builder, ValueRange resultGrads,       \
                             Grads &operandGrads)

//===----------------------------------------------------------------------===//
// Scatter
//===----------------------------------------------------------------------===//

LogicalResult ScatterOp::inferReturnTypes(MLIRContext *, MaybeLoc loc,
                                          Adaptor adaptor, Types &types) {
  InferError error(loc, getOperationName());
  ArrayRef<int64_t> data = shapeOf(adaptor.getData());
  int64_t axis = adaptor.getAxis();
  if (failed(requireAxis(error, axis, data.size())))
    return failure();
  Dims taken(data.take_front(axis));
  llvm::append_range(taken, shapeOf(adaptor.getIndices()));
  llvm::append_range(taken, data.drop_front(axis + 1));
  if (failed(requireShape(error, "updates", adaptor.getUpdates(), taken)))
    return failure();
  types.push_back(adaptor.getData().getType());
  return success();
}

LogicalResult ScatterOp::verify() {
  Type element = getTensorType(getData()).getElementType();
  Type other = getTensorType(getUpdates()).getElementType();
  if (element != other)
    return emitOpError() << "updates have element type " << other
                         << ", expected " << element << " as the data";
  static constexpr StringRef kinds[] = {"none", "add", "mul", "max", "min"};
  if (!llvm::is_contained(kinds, getReduction()))
    return emitOpError()
           << "reduction is \"" << getReduction()
           << "\", expected \"none\", \"add\", \"mul\", \"max\" or \"min\"";
  if (element.isInteger(1) && getReduction() != "none")
    return emitOpError() << "reduction \"" << getReduction()
                         << "\" is not defined for booleans";
  return success();
}

/// The data read and written once, the updated slices once more.
Work ScatterOp::getWork() {
  Work work;
  if (getReduction() != "none")
    work.flops = getTensorType(getUpdates()).getNumElements();
  work.bytes = zero::getOperandAndResultBytes(*this) +
               2 * zero::getTensorBytes(getUpdates().getType());
  return work;
}

namespace {
/// The pieces of a scatter's derivatives.
struct ScatterVjp : VjpBuilder {
  ScatterVjp(OpBuilder &builder, ScatterOp op, Value dy)
      : VjpBuilder(builder, op), op(op), dy(dy) {}

  Value gather(Value from) const {
    return make<GatherOp>(from, op.getIndices(), op.getAxis());
  }
  Value scatter(Value data, Value updates, StringRef reduction) const {
    return make<ScatterOp>(data, op.getIndices(), updates, op.getAxis(),
                           reduction);
  }
  /// Sums values of the updates' shape to where they go.
  Value sumUpdates(Value values) const {
    return make<GatherGradOp>(values, op.getIndices(), op.getAxis(),
                              shapeOf(op.getData()));
  }
  Value fill(double value, Value like) const {
    return broadcast(scalar(dy, value), shapeOf(like));
  }

  void replacing(Grads &grads) const;
  void multiplying(Grads &grads) const;
  void selecting(Grads &grads) const;

  mutable ScatterOp op;
  Value dy;
};
} // namespace

void ScatterVjp::replacing(Grads &grads) const {
  grads.push_back(scatter(dy, fill(0, op.getUpdates()), "none"));
  grads.push_back(gather(dy));
}

/// The product without one factor is the product divided by it, and for a zero
/// the product of the others.
void ScatterVjp::multiplying(Grads &grads) const {
  Value updates = op.getUpdates();
  Value factors = scatter(fill(1, op.getData()), updates, "mul");
  grads.push_back(mul(dy, factors));
  Value isZero = make<EqualOp>(updates, scalar(dy, 0));
  Value nonZero = where(isZero, scalar(dy, 1), updates);
  Value product = mul(dy, scatter(op.getData(), nonZero, "mul"));
  Value zeros = gather(sumUpdates(castLike(isZero, dy)));
  Value others = sub(zeros, castLike(isZero, dy));
  Value noneElse = make<EqualOp>(others, scalar(dy, 0));
  Value rest = div(gather(product), nonZero);
  grads.push_back(where(noneElse, rest, scalar(dy, 0)));
}

/// Of the elements equal to the largest or smallest each has the same part.
void ScatterVjp::selecting(Grads &grads) const {
  Value result = op.getResult();
  Value dataWins = castLike(make<EqualOp>(op.getData(), result), dy);
  Value updateWins =
      castLike(make<EqualOp>(op.getUpdates(), gather(result)), dy);
  Value count = add(dataWins, sumUpdates(updateWins));
  Value share = div(dy, count);
  grads.push_back(mul(dataWins, share));
  grads.push_back(mul(updateWins, gather(share)));
}

VJP(ScatterOp) {
  ScatterVjp b(builder, *this, resultGrads[0]);
  SmallVector<Value> grads; // of data and updates
  if (getReduction() == "none")
    b.replacing(grads);
  else if (getReduction() == "add")
    grads = {b.dy, b.gather(b.dy)};
  else if (getReduction() == "mul")
    b.multiplying(grads);
  else
    b.selecting(grads);
  operandGrads.append({grads[0], Value(), grads[1]});
  return success();
}

//===----------------------------------------------------------------------===//
// Top k
//===----------------------------------------------------------------------===//

LogicalResult TopKOp::inferReturnTypes(MLIRContext *context, MaybeLoc loc,
                                       Adaptor adaptor, Types &types) {
  InferError error(loc, getOperationName());
  Dims shape(shapeOf(adaptor.getInput()));
  int64_t axis = adaptor.getAxis(), k = adaptor.getK();
  if (failed(requireAxis(error, axis, shape.size())))
    return failure();
  if (k < 0 || k > shape[axis])
    return error("k is ", k, ", but axis ", axis, " has ", shape[axis],
                 " elements");
  shape[axis] = k;
  types.push_back(RankedTensorType::get(
      shape, getTensorType(adaptor.getInput()).getElementType()));
  types.push_back(RankedTensorType::get(shape, IntegerType::get(context, 64)));
  return success();
}

/// One pass over the axis for each of the k elements.
Work TopKOp::getWork() {
  Work work;
  work.flops = getTensorType(getInput()).getNumElements() * getK();
  work.bytes = zero::getOperandAndResultBytes(*this);
  return work;
}

/// `start`, `start + step`, ... with this shape, of which one size is not 1.
static Value buildCounter(const VjpBuilder &b, ArrayRef<int64_t> shape,
                          int64_t step) {
  Dims values;
  for (int64_t i = 0, n = ShapedType::getNumElements(shape); i < n; ++i)
    values.push_back(i * step);
  auto type = RankedTensorType::get(shape, b.builder.getI64Type());
  return b.make<arith::ConstantOp>(
      DenseElementsAttr::get(type, ArrayRef<int64_t>(values)));
}

/// The gradient goes to where the elements were taken from, in the input seen
/// as one dimension.
VJP(TopKOp) {
  VjpBuilder b(builder, *this);
  ArrayRef<int64_t> shape = b.shapeOf(getInput());
  int64_t size = shape[getAxis()], k = getK();
  int64_t outer = ShapedType::getNumElements(shape.take_front(getAxis()));
  int64_t inner = ShapedType::getNumElements(shape.drop_front(getAxis() + 1));
  if (!resultGrads[0]) {
    operandGrads.push_back(Value());
    return success();
  }
  Value places = b.reshape(getIndices(), {outer, k, inner});
  places = b.mul(places, b.scalar(places, inner));
  places = b.add(places, buildCounter(b, {outer, 1, 1}, size * inner));
  places = b.add(places, buildCounter(b, {1, 1, inner}, 1));
  int64_t taken = outer * k * inner;
  places = b.reshape(places, {taken});
  Value grad = b.make<GatherGradOp>(b.reshape(resultGrads[0], {taken}), places,
                                    /*axis=*/0, Dims{outer * size * inner});
  operandGrads.push_back(b.reshape(grad, shape));
  return success();
}

//===----------------------------------------------------------------------===//
// Running sums
//===----------------------------------------------------------------------===//

template <typename Op>
static LogicalResult verifyAxis(Op op) {
  return requireAxis({op.getLoc(), Op::getOperationName()}, op.getAxis(),
                     getTensorType(op.getResult()).getRank());
}

LogicalResult CumulativeSumOp::verify() { return verifyAxis(*this); }
LogicalResult LinearRecurrenceOp::verify() { return verifyAxis(*this); }

/// An element takes part in the sums behind it: the sum from the other end.
VJP(CumulativeSumOp) {
  VjpBuilder b(builder, *this);
  operandGrads.push_back(b.make<CumulativeSumOp>(
      resultGrads[0], getAxis(), getExclusive(), !getReverse()));
  return success();
}

/// `value` moved by one place along `axis`, towards its end or its start, with
/// a zero where nothing comes in.
static Value shiftByOne(const VjpBuilder &b, Value value, int64_t axis,
                        bool towardsEnd) {
  Dims starts(b.shapeOf(value).size(), 0), low = starts, high = starts;
  Dims interior = starts, limits(b.shapeOf(value)), ones(starts.size(), 1);
  if (limits[axis] == 0)
    return value;
  (towardsEnd ? low : high)[axis] = 1;
  if (towardsEnd)
    --limits[axis];
  else
    starts[axis] = 1;
  Value kept = b.make<SliceOp>(value, starts, limits, ones);
  return b.make<PadOp>(kept, low, high, interior);
}

/// With g[i] = dy[i] + decay[i + 1] * g[i + 1], the recurrence from the other
/// end: the gradient by input[i] is g[i], by decay[i] g[i] * h[i - 1].
VJP(LinearRecurrenceOp) {
  VjpBuilder b(builder, *this);
  int64_t axis = getAxis();
  Value decay = shiftByOne(b, getDecay(), axis, /*towardsEnd=*/getReverse());
  Value grad =
      b.make<LinearRecurrenceOp>(decay, resultGrads[0], axis, !getReverse());
  Value before = shiftByOne(b, getResult(), axis, /*towardsEnd=*/!getReverse());
  operandGrads.append({b.mul(grad, before), grad});
  return success();
}
