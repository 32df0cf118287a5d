//===- TrainElementwise.cpp - Types of elementwise operations -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Result types of elementwise operations, and what their verifiers check.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/InferError.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::train;

using Dims = SmallVector<int64_t>;
using Types = SmallVectorImpl<Type>;
using MaybeLoc = std::optional<Location>;

static Type elementType(Value value) {
  return getTensorType(value).getElementType();
}

//===----------------------------------------------------------------------===//
// Result types
//===----------------------------------------------------------------------===//

/// The broadcast of all operands' shapes, with this element type.
static LogicalResult inferBroadcast(InferError error, ValueRange operands,
                                    Type element, Types &types) {
  Dims shape;
  for (Value operand : operands) {
    FailureOr<Dims> wider = broadcastShapes(shape, shapeOf(operand));
    if (failed(wider))
      return error("operand of shape ", formatShape(shapeOf(operand)),
                   " does not broadcast with shape ", formatShape(shape));
    shape = *wider;
  }
  types.push_back(RankedTensorType::get(shape, element));
  return success();
}

#define INFER(OP)                                                              \
  LogicalResult OP::inferReturnTypes(MLIRContext *, MaybeLoc loc,              \
                                     Adaptor adaptor, Types &types)

#define INFER_BINARY(OP)                                                       \
  INFER(OP) {                                                                  \
    return inferBroadcast({loc, getOperationName()}, adaptor.getOperands(),    \
                          elementType(adaptor.getLhs()), types);               \
  }
#define INFER_COMPARE(OP)                                                      \
  LogicalResult OP::inferReturnTypes(MLIRContext *context, MaybeLoc loc,       \
                                     Adaptor adaptor, Types &types) {          \
    return inferBroadcast({loc, getOperationName()}, adaptor.getOperands(),    \
                          IntegerType::get(context, 1), types);                \
  }

INFER_BINARY(AddOp)
INFER_BINARY(SubOp)
INFER_BINARY(MulOp)
INFER_BINARY(DivOp)
INFER_BINARY(PowOp)
INFER_BINARY(MaxOp)
INFER_BINARY(MinOp)
INFER_BINARY(ModOp)
INFER_BINARY(AndOp)
INFER_BINARY(OrOp)
INFER_BINARY(XorOp)
INFER_BINARY(ShiftLeftOp)
INFER_BINARY(ShiftRightOp)
INFER_COMPARE(EqualOp)
INFER_COMPARE(LessOp)
INFER_COMPARE(LessEqualOp)
INFER_COMPARE(GreaterOp)
INFER_COMPARE(GreaterEqualOp)

INFER(WhereOp) {
  return inferBroadcast({loc, getOperationName()}, adaptor.getOperands(),
                        elementType(adaptor.getOnTrue()), types);
}

LogicalResult IsNanOp::inferReturnTypes(MLIRContext *context, MaybeLoc,
                                        Adaptor adaptor, Types &types) {
  types.push_back(RankedTensorType::get(shapeOf(adaptor.getInput()),
                                        IntegerType::get(context, 1)));
  return success();
}

LogicalResult CastOp::inferReturnTypes(MLIRContext *, MaybeLoc, Adaptor adaptor,
                                       Types &types) {
  types.push_back(
      RankedTensorType::get(shapeOf(adaptor.getInput()), adaptor.getTo()));
  return success();
}

LogicalResult BitcastOp::inferReturnTypes(MLIRContext *, MaybeLoc,
                                          Adaptor adaptor, Types &types) {
  types.push_back(
      RankedTensorType::get(shapeOf(adaptor.getInput()), adaptor.getTo()));
  return success();
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

LogicalResult CastOp::verify() {
  if (llvm::is_contained({"up", "down", "nearest"}, getRoundScale()))
    return success();
  return emitOpError() << "round_scale is \"" << getRoundScale()
                       << "\", expected \"up\", \"down\" or \"nearest\"";
}

LogicalResult BitcastOp::verify() {
  Type from = getInput().getType().getElementType(), to = getTo();
  if (from.getIntOrFloatBitWidth() == to.getIntOrFloatBitWidth())
    return success();
  return emitOpError() << "reads the bits of " << from << " as " << to
                       << ", which has another width";
}
