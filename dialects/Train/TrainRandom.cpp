//===- TrainRandom.cpp - Random numbers -----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Result types, verifiers and derivatives of the operations of
// TrainOpsRandom.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/InferError.h"
#include "dialects/Train/VjpBuilder.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::train;

//===----------------------------------------------------------------------===//
// Result types
//===----------------------------------------------------------------------===//

LogicalResult RandomKeyOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location>, Adaptor,
                                            SmallVectorImpl<Type> &types) {
  types.push_back(
      RankedTensorType::get({}, IntegerType::get(context, /*width=*/64)));
  return success();
}

/// The type of numbers that are drawn from nothing.
template <typename Adaptor>
static LogicalResult inferDrawn(InferError error, Adaptor adaptor,
                                SmallVectorImpl<Type> &types) {
  Type element = adaptor.getElement();
  if (!isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(element))
    return error("draws elements of type ", element,
                 ", expected f16, bf16, f32 or f64");
  int64_t count = 1;
  bool overflows = false;
  for (int64_t size : adaptor.getShape()) {
    if (size < 0)
      return error("has the shape ", formatShape(adaptor.getShape()),
                   " with a negative size");
    overflows |= llvm::MulOverflow(count, size, count);
  }
  if (overflows)
    return failTooLarge(error);
  types.push_back(RankedTensorType::get(adaptor.getShape(), element));
  return success();
}

LogicalResult
RandomUniformOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                  Adaptor adaptor,
                                  SmallVectorImpl<Type> &types) {
  return inferDrawn({loc, getOperationName()}, adaptor, types);
}

LogicalResult
RandomNormalOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                 Adaptor adaptor,
                                 SmallVectorImpl<Type> &types) {
  return inferDrawn({loc, getOperationName()}, adaptor, types);
}

LogicalResult DropoutOp::inferReturnTypes(MLIRContext *,
                                          std::optional<Location>,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getInput().getType());
  return success();
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

LogicalResult RandomKeyOp::verify() {
  if (int64_t(getSite()) < 0 || int64_t(getSite()) > UINT32_MAX)
    return emitOpError("site is ") << int64_t(getSite())
                                   << ", expected a number in [0, 2^32)";
  return success();
}

/// Checks which dimension holds how many samples.
template <typename Op>
static LogicalResult verifySamples(Op op) {
  if (op.getSamples().has_value() != op.getAlong().has_value())
    return op.emitOpError("has 'samples' without 'along', or the reverse");
  if (!op.getSamples())
    return success();
  ArrayRef<int64_t> shape = shapeOf(op.getResult());
  int64_t samples = *op.getSamples(), along = *op.getAlong();
  if (along < 0 || along >= int64_t(shape.size()))
    return op.emitOpError("has samples along dimension ")
           << along << " of a tensor of rank " << shape.size();
  if (samples <= 0 || shape[along] % samples != 0)
    return op.emitOpError("has ")
           << samples << " samples along a dimension of " << shape[along];
  return success();
}

LogicalResult RandomUniformOp::verify() { return verifySamples(*this); }
LogicalResult RandomNormalOp::verify() { return verifySamples(*this); }

LogicalResult DropoutOp::verify() {
  double ratio = getRatio().convertToDouble();
  if (!(ratio >= 0 && ratio < 1))
    return emitOpError("ratio is ") << ratio << ", expected one in [0, 1)";
  return verifySamples(*this);
}

//===----------------------------------------------------------------------===//
// Derivative
//===----------------------------------------------------------------------===//

LogicalResult DropoutOp::buildVjp(OpBuilder &builder, ValueRange resultGrads,
                                  Grads &operandGrads) {
  operandGrads.push_back(DropoutOp::create(
      builder, getLoc(), resultGrads[0], getKey(), getFirstSample(),
      getRatioAttr(), getSamplesAttr(), getAlongAttr()));
  operandGrads.append(2, Value());
  return success();
}
