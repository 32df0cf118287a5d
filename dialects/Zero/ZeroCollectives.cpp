//===- ZeroCollectives.cpp - collectives and transfers --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifiers of the collectives: how operands, results and grid relate.
//
//===----------------------------------------------------------------------===//

#include "dialects/Zero/Zero.h"

using namespace mlir;
using namespace mlir::zero;

/// Looks up the grid of a collective or view and counts its ranks.
static FailureOr<int64_t> verifyGrid(Operation *op, FlatSymbolRefAttr name,
                                     ArrayRef<int64_t> axes,
                                     SymbolTableCollection &symbols) {
  auto grid = symbols.lookupNearestSymbolFrom<shard::GridOp>(op, name);
  if (!grid)
    return op->emitOpError() << "refers to " << name
                             << ", which is not a shard.grid of this module";
  FailureOr<int64_t> ranks = getRanks(grid, axes);
  if (failed(ranks)) {
    InFlightDiagnostic diag = op->emitOpError()
                              << "expects axes of static size in grid " << name
                              << ", got [" << axes << "]";
    diag.attachNote(grid.getLoc()) << "the grid is declared here";
    return diag;
  }
  return ranks;
}

/// The type one rank holds of `whole`; failure with a message otherwise.
static LogicalResult verifyLocal(Operation *op, Type local, Type whole,
                                 int64_t ranks, int64_t dim) {
  auto full = dyn_cast<RankedTensorType>(whole);
  if (!full || !full.hasStaticShape() || dim < 0 || dim >= full.getRank())
    return op->emitOpError() << "cannot cut " << whole << " along dimension "
                             << dim << "; expects a static tensor that has it";
  RankedTensorType expected = getLocalType(full, ranks, dim);
  if (local != expected)
    return op->emitOpError()
           << "expects " << expected << " as the part of " << full
           << " on one of " << ranks << " ranks, got " << local;
  return success();
}

/// A shard at rest is used with its own grid, axes and logical shape.
static LogicalResult verifySharded(Operation *op, ShardedType sharded,
                                   FlatSymbolRefAttr grid,
                                   ArrayRef<int64_t> axes) {
  if (sharded.getGrid() != grid || sharded.getAxes() != axes)
    return op->emitOpError()
           << "expects the grid and axes of its operand " << sharded << ", got "
           << grid << " axes [" << axes << "]";
  return success();
}

/// The types a collective yields, itself or through its future.
static SmallVector<Type> yieldedTypes(Operation *op) {
  if (op->getNumResults() == 1)
    if (auto future = dyn_cast<FutureType>(op->getResult(0).getType()))
      return SmallVector<Type>(future.getTypes());
  return SmallVector<Type>(op->getResultTypes());
}

using PairVerifier = function_ref<LogicalResult(Type, Type, int64_t)>;

/// Pairs operands with yielded types, given the number of ranks.
static LogicalResult verifyBucket(Operation *op, FlatSymbolRefAttr grid,
                                  ArrayRef<int64_t> axes,
                                  SymbolTableCollection &symbols,
                                  PairVerifier verifyPair) {
  FailureOr<int64_t> ranks = verifyGrid(op, grid, axes, symbols);
  if (failed(ranks))
    return failure();
  SmallVector<Type> yielded = yieldedTypes(op);
  if (yielded.empty() || yielded.size() != op->getNumOperands())
    return op->emitOpError()
           << "expects one result per operand, got " << op->getNumOperands()
           << " operands and " << yielded.size() << " results";
  for (auto [input, output] : llvm::zip(op->getOperandTypes(), yielded))
    if (failed(verifyPair(input, output, *ranks)))
      return failure();
  return success();
}

template <typename OpTy>
static LogicalResult verifyGather(OpTy op, SymbolTableCollection &symbols) {
  return verifyBucket(
      op, op.getGridAttr(), op.getAxes(), symbols,
      [&](Type input, Type output, int64_t ranks) -> LogicalResult {
        auto sharded = dyn_cast<ShardedType>(input);
        if (!sharded)
          return verifyLocal(op, input, output, ranks, op.getDim());
        if (failed(verifySharded(op, sharded, op.getGridAttr(), op.getAxes())))
          return failure();
        if (output != sharded.getLogicalType())
          return op.emitOpError()
                 << "expects " << sharded.getLogicalType() << " gathered from "
                 << sharded << ", got " << output;
        return success();
      });
}

template <typename OpTy>
static LogicalResult verifyReduceScatter(OpTy op,
                                         SymbolTableCollection &symbols) {
  return verifyBucket(op, op.getGridAttr(), op.getAxes(), symbols,
                      [&](Type input, Type output, int64_t ranks) {
                        return verifyLocal(op, output, input, ranks,
                                           op.getDim());
                      });
}

template <typename OpTy>
static LogicalResult verifyAllReduce(OpTy op, SymbolTableCollection &symbols) {
  return verifyBucket(op, op.getGridAttr(), op.getAxes(), symbols,
                      [&](Type input, Type output, int64_t) -> LogicalResult {
                        if (input != output)
                          return op.emitOpError()
                                 << "expects " << input
                                 << " as the sum of tensors of that type, got "
                                 << output;
                        return success();
                      });
}

// What every collective defines alike, given its verifier and result name.
#define ZERO_COLLECTIVE(OP, VERIFY, NAME)                                      \
  LogicalResult OP::verifySymbolUses(SymbolTableCollection &symbols) {         \
    return VERIFY(*this, symbols);                                             \
  }                                                                            \
  SmallVector<Type> OP::getYieldedTypes() { return yieldedTypes(*this); }      \
  void OP::getAsmResultNames(OpAsmSetValueNameFn setName) {                    \
    if (getOperation()->getNumResults())                                       \
      setName(getOperation()->getResult(0), NAME);                             \
  }

ZERO_COLLECTIVE(AllGatherOp, verifyGather, "gathered")
ZERO_COLLECTIVE(AllGatherStartOp, verifyGather, "gather")
ZERO_COLLECTIVE(ReduceScatterOp, verifyReduceScatter, "reduced")
ZERO_COLLECTIVE(ReduceScatterStartOp, verifyReduceScatter, "reduce")
ZERO_COLLECTIVE(AllReduceOp, verifyAllReduce, "reduced")
ZERO_COLLECTIVE(AllReduceStartOp, verifyAllReduce, "reduce")
ZERO_COLLECTIVE(ReshardOp, verifyReduceScatter, "kept")
#undef ZERO_COLLECTIVE

//===----------------------------------------------------------------------===//
// LocalOp
//===----------------------------------------------------------------------===//

LogicalResult LocalOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<int64_t> ranks =
      verifyGrid(*this, getGridAttr(), getAxes(), symbols);
  if (failed(ranks))
    return failure();
  int64_t dim = getDim();
  if (auto sharded = dyn_cast<ShardedType>(getSource().getType())) {
    if (failed(verifySharded(*this, sharded, getGridAttr(), getAxes())))
      return failure();
    dim = sharded.getDim();
  }
  return verifyLocal(*this, getType(), getLogicalType(getSource().getType()),
                     *ranks, dim);
}

void LocalOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "local");
}

//===----------------------------------------------------------------------===//
// TransferOp, TransferStartOp, WaitOp; on_host stands in ZeroHost.cpp
//===----------------------------------------------------------------------===//

/// Whether a transfer may turn a value of type `from` into one of type `to`.
static LogicalResult verifyMoved(Operation *op, Type from, Type to,
                                 Memory source, Memory target) {
  auto shard = dyn_cast<ShardedType>(from);
  if (!shard ? from == to
             : shard.getMem() == source && shard.withMemory(target) == to)
    return success();
  return op->emitOpError() << "changes mem and nothing else; cannot turn "
                           << from << " in " << stringifyMemory(source)
                           << " memory into " << to << " in "
                           << stringifyMemory(target) << " memory";
}

template <typename OpTy>
static LogicalResult verifyTransfer(OpTy op, TypeRange types) {
  Memory from = op.getFrom(), to = op.getTo();
  if (from == to || (from != Memory::Host && to != Memory::Host))
    return op.emitOpError()
           << "moves from " << stringifyMemory(from) << " to "
           << stringifyMemory(to) << "; one side, and only one, must be host";
  if (op.getInputs().empty() || op.getInputs().size() != types.size())
    return op.emitOpError() << "expects at least one tensor and as many "
                            << "results, got " << op.getInputs().size()
                            << " tensors and " << types.size() << " results";
  for (auto [input, type] : llvm::zip_equal(op.getInputs(), types))
    if (failed(verifyMoved(op, input.getType(), type, from, to)))
      return failure();
  return success();
}

LogicalResult TransferOp::verify() {
  return verifyTransfer(*this, getResultTypes());
}

void TransferOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (getNumResults())
    setName(getResult(0), "moved");
}

LogicalResult TransferStartOp::verify() {
  return verifyTransfer(*this, getFuture().getType().getTypes());
}

void TransferStartOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getFuture(), "move");
}

LogicalResult WaitOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       WaitOp::Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  auto future = dyn_cast<FutureType>(adaptor.getFuture().getType());
  if (!future)
    return failure();
  llvm::append_range(types, future.getTypes());
  return success();
}

void WaitOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (getNumResults())
    setName(getResult(0), "awaited");
}
