//===- Train.h - The train dialect ------------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compute graph of one training step: operations, the Differentiable
// interface, and helpers that passes and importers share. TrainDialect.td says
// what the dialect is for.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_TRAIN_H
#define ZERO_DIALECTS_TRAIN_TRAIN_H

// GCC needs these two before the generated op headers.
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

#include "dialects/Zero/Zero.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::train {

/// Marks an operation whose result elements are scalar functions of the operand
/// elements that numpy's broadcast rules pair with them.
template <typename ConcreteType>
class BroadcastElementwise
    : public OpTrait::TraitBase<ConcreteType, BroadcastElementwise> {};

} // namespace mlir::train

#include "dialects/Train/TrainDialect.h.inc"

#include "dialects/Train/TrainInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Train/TrainAttributes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Train/TrainOps.h.inc"

namespace mlir::train {

/// The shape two tensors broadcast to by numpy's rules, or failure.
FailureOr<SmallVector<int64_t>> broadcastShapes(ArrayRef<int64_t> lhs,
                                                ArrayRef<int64_t> rhs);

/// The type of saved statistics and losses of operands with this element type:
/// f64 for f64, f32 for anything narrower.
Type getStatisticsType(Type elementType);

/// Sums `grad`, the gradient by a value broadcast to some shape, down to the
/// `shape` that value had before the broadcast.
Value reduceToShape(OpBuilder &builder, Location loc, Value grad,
                    ArrayRef<int64_t> shape);

/// The value of a schedule at the `step`-th step, counted from 1, in f64: what
/// `train.schedule` computes before it rounds.
double evaluateSchedule(ScheduleAttr schedule, int64_t step);

/// A number of a schedule, or its default value; the kind has one called
/// `name`.
double getScheduleNumber(ScheduleAttr schedule, StringRef name);

/// A rank-0 constant of `elementType`.
Value createScalar(OpBuilder &builder, Location loc, Type elementType,
                   double value);

/// Creates an operation from outside data: where its result types cannot be
/// inferred (shapes that do not fit) it emits an error at `loc` and fails,
/// while `OpTy::create` would end the process.
template <typename OpTy>
FailureOr<OpTy> createChecked(OpBuilder &builder, Location loc,
                              ValueRange operands,
                              ArrayRef<NamedAttribute> attributes = {}) {
  MLIRContext *context = builder.getContext();
  OperationState state(loc, OpTy::getOperationName());
  state.addOperands(operands);
  state.addAttributes(attributes);
  DictionaryAttr dictionary = state.attributes.getDictionary(context);
  typename OpTy::Properties properties;
  OperationName name(OpTy::getOperationName(), context);
  name.initOpProperties(&properties, /*init=*/nullptr);
  auto error = [&] { return emitError(loc); };
  if (failed(OpTy::setPropertiesFromAttr(properties, dictionary, error)) ||
      failed(OpTy::inferReturnTypes(context, loc, operands, dictionary,
                                    &properties, /*regions=*/{}, state.types)))
    return failure();
  return cast<OpTy>(builder.create(state));
}

} // namespace mlir::train

#endif // ZERO_DIALECTS_TRAIN_TRAIN_H
