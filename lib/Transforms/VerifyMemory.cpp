//===- VerifyMemory.cpp - rules of where values lie -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every value lies in one memory space, see getMemory; only transfers change
// it.
//
//===----------------------------------------------------------------------===//

#include "VerifyMemory.h"

#include "dialects/Zero/Zero.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "zero/Transforms/StepUtils.h"

using namespace mlir;
using namespace mlir::zero;

static LogicalResult checkTransfer(Operation *op, Memory from) {
  bool anyFailed = false;
  for (Value operand : op->getOperands())
    if (Memory memory = getMemory(operand); memory != from) {
      anyFailed = true;
      op->emitOpError() << "moves from " << stringifyMemory(from)
                        << " memory a value of type " << operand.getType()
                        << " that is in " << stringifyMemory(memory)
                        << " memory";
    }
  return failure(anyFailed);
}

static LogicalResult checkAssign(AssignOp assign, SymbolTable &symbols) {
  Type type;
  if (auto param = symbols.lookup<ParamOp>(assign.getSymbol()))
    type = param.getType();
  else if (auto state = symbols.lookup<StateOp>(assign.getSymbol()))
    type = state.getType();
  auto sharded = dyn_cast_or_null<ShardedType>(type);
  Memory expected = sharded ? sharded.getMem() : Memory::Device;
  Memory memory = getMemory(assign.getValue());
  // Zeros are filled in where the symbol is, but for a disk.
  bool isFill = expected != Memory::Disk && isZeroSplat(assign.getValue());
  if (memory == expected || isFill)
    return success();
  return assign.emitOpError()
         << "gives " << assign.getSymbolAttr() << ", which is in "
         << stringifyMemory(expected) << " memory, a value in "
         << stringifyMemory(memory)
         << " memory; move it with zero.transfer first";
}

/// That all operands are where the processor of `op` computes.
static LogicalResult checkCompute(Operation *op, Memory expected) {
  bool anyFailed = false;
  for (Value operand : op->getOperands())
    if (Memory memory = getMemory(operand); memory != expected) {
      anyFailed = true;
      op->emitOpError() << "computes on a value in " << stringifyMemory(memory)
                        << " memory; move it with zero.transfer first";
    }
  return failure(anyFailed);
}

/// What names a value, and neither moves nor computes it.
static bool onlyNames(Operation *op) {
  return isa<LocalOp, WaitOp, ReleaseOp, ViewLikeOpInterface>(op) ||
         op->hasTrait<CostNothing>();
}

static LogicalResult checkOp(Operation *op, SymbolTable &symbols) {
  Operation *parent = op->getParentOp();
  if (isa<OnHostOp, OnHostStartOp>(parent)) {
    if (!isa<ZeroDialect>(op->getDialect()) || isa<YieldOp>(op))
      return success();
    return op->emitOpError() << "stands in a " << parent->getName()
                             << ", whose body only computes";
  }
  if (auto assign = dyn_cast<AssignOp>(op))
    return checkAssign(assign, symbols);
  if (auto transfer = dyn_cast<TransferOp>(op))
    return checkTransfer(op, transfer.getFrom());
  if (auto transfer = dyn_cast<TransferStartOp>(op))
    return checkTransfer(op, transfer.getFrom());
  if (isa<OnHostOp, OnHostStartOp>(op))
    return checkCompute(op, Memory::Host);
  return onlyNames(op) ? success() : checkCompute(op, Memory::Device);
}

LogicalResult zero::verifyMemory(FunctionOpInterface func,
                                 SymbolTable &symbols) {
  bool anyFailed = false;
  func->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == func)
      return WalkResult::advance();
    anyFailed |= failed(checkOp(op, symbols));
    // Bodies of ops in a body of the host need no check of their own.
    bool onHost = isa<OnHostOp, OnHostStartOp>(op->getParentOp());
    return onHost ? WalkResult::skip() : WalkResult::advance();
  });
  return failure(anyFailed);
}
