//===- StepLowering.h - From the step function to a program -----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The state of plan-lower: it walks the step in order and emits one command per
// op, binding every value to a buffer. See StepStorage.h for when a buffer may
// be overwritten, CommandOrder.h for streams and events.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_STEPLOWERING_H
#define ZERO_LIB_LOWERING_STEPLOWERING_H

#include "CommandOrder.h"
#include "StepStorage.h"

#include "dialects/Plan/Plan.h"
#include "dialects/Zero/Zero.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include <array>

namespace mlir::zero {

/// Stream of what the host's processor does.
constexpr StringLiteral kHostStream = "host";

/// The arena of what lies in `value`, or in a value of `type` at rest.
plan::Space getSpace(Value value);
plan::Space getSpace(Type type);

/// The symbol that `value` is read from, as a whole or this rank's part, or
/// moved from; empty where it is something else.
StringRef findSymbol(Value value);

/// A collective of the step, with or without a future.
struct Collective {
  enum Kind { AllGather, ReduceScatter, AllReduce };
  Operation *op = nullptr;
  Kind kind = AllGather;
  bool average = false;
  SmallVector<int64_t> axes; ///< of the grid
  int64_t dim = 0;           ///< that is cut
  int64_t ranks = 1;         ///< that take part
  Value future;              ///< or null: done when it returns
  ValueRange inputs, outputs;
};

/// Operands of a collective's command, one entry per tensor.
struct Bucket {
  SmallVector<Value> sources, targets;
  SmallVector<int64_t> elements, chunks;
};

/// Emits into a program of two blocks, declarations and commands, which become
/// one at the end.
class StepLowering {
public:
  /// `grid`: sizes of the axes that the ranks form. `front` runs for all
  /// micro-batches but the last; null where there is one.
  StepLowering(ModuleOp module, func::FuncOp front, func::FuncOp step,
               ArrayRef<int64_t> grid, int64_t stage);

  LogicalResult run();

private:
  // Symbols and the signature.
  LogicalResult declareSymbols();
  void declareParam(ParamOp param);
  void declareState(StateOp state);
  LogicalResult declareInputs();
  LogicalResult declareInput(BlockArgument arg);
  LogicalResult declareOutputs(func::ReturnOp ret);
  void declareParameter(Operation *symbol, StringRef name, Type type,
                        plan::Kind kind, plan::ParamRole role);
  void finish();

  // Ops of the step.
  LogicalResult lowerFunction(func::FuncOp function);
  LogicalResult lower(Operation *op);
  LogicalResult lowerConstant(arith::ConstantOp op);
  LogicalResult lowerRead(ReadOp op);
  LogicalResult lowerLocal(LocalOp op);
  LogicalResult lowerReshard(ReshardOp op);
  LogicalResult lowerView(Operation *op);
  LogicalResult lowerAssign(AssignOp op);
  LogicalResult lowerRelease(ReleaseOp op);
  LogicalResult lowerDispatch(plan::DispatchOp op);
  LogicalResult lowerCall(Operation *op);
  LogicalResult lowerWait(WaitOp op);

  // Collectives (PlanLowerCollectives.cpp).
  LogicalResult lowerCollective(Operation *op);
  void placeGather(const Collective &collective, Bucket &bucket);
  void placeReduceScatter(const Collective &collective, Bucket &bucket);
  void placeAllReduce(const Collective &collective, Bucket &bucket);
  plan::CommandOpInterface emit(const Collective &collective,
                                const Bucket &bucket);
  void add(Bucket &bucket, const Place &source, const Place &target,
           int64_t elements, int64_t chunk);
  std::string describe(const Collective &collective);
  std::string findParameter(Value value);
  std::string findUpdated(Operation *user);
  bool isOnlyAdded(Value value);

  // Transfers and compute of the host (PlanLowerOffload.cpp).
  template <typename OpTy>
  LogicalResult lowerTransfer(OpTy op);
  void moveTo(Location loc, plan::Space space, Value input, Value output,
              Operation *op);
  LogicalResult lowerOnHost(Operation *op);
  void endOnHost();
  Storage *yieldedStorage(Value result, plan::DispatchOp op);
  void reserveDiskBlocks();
  std::string describeMoved(Value input, Value output);
  int64_t paddingOf(const Place &place) const;

  // Pieces of the above.
  ShapedType getHeldType(Type type) const;
  void issue(plan::CommandOpInterface command);
  Place placeResult(plan::DispatchOp op, Value result);
  std::optional<int64_t> getParts(ArrayRef<int64_t> axes) const;
  IntegerAttr getPartsAttr(int64_t parts);
  template <typename OpTy>
  FailureOr<Place> partOf(OpTy op, Value source, Type type);
  const Place &placeOf(Value value);
  Value bufferOf(Value value, Location loc);
  Place fresh(Location loc, ShapedType type, plan::Kind kind);
  Place tie(plan::DispatchOp op, unsigned result, int64_t operand);
  Storage *assignedStorage(Value value, Operation *producer);
  void copy(Location loc, const Place &from, const Place &to);
  void markGradient(Value value);
  bool isParameter(Value value);

  ModuleOp module;
  func::FuncOp front;
  func::FuncOp step; ///< the function that is lowered
  SmallVector<int64_t> grid;
  int64_t ranks, stage;
  StepLiveness liveness;
  plan::ProgramOp program;
  OpBuilder declarations, commands;
  StepMemory memory;
  CommandOrder order;
  bool onHost = false;                 ///< what is lowered runs on the host
  plan::CommandOpInterface lastOnHost; ///< the last command that does
  DenseMap<Value, plan::CommandOpInterface> inFlight; ///< by future
  llvm::StringMap<Storage *> symbols;
  llvm::StringMap<Storage *> inputs; ///< by name: both functions have them
  std::array<DenseMap<Attribute, Storage *>, 2> constants; ///< 1: the host's
};

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_STEPLOWERING_H
