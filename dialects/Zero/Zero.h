//===- Zero.h - the zero dialect --------------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Types, ops and interfaces of the zero dialect, and the arithmetic of shards
// that everything else shares.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECTS_ZERO_ZERO_H
#define DIALECTS_ZERO_ZERO_H

// GCC needs these two before the generated op headers.
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::zero {

/// Side-effect resource: the training state behind the symbols.
struct ParameterResource
    : public SideEffects::Resource::Base<ParameterResource> {
  StringRef getName() final { return "Parameter"; }
};

/// Side-effect resource: the order of collectives on a communicator.
struct CommunicatorResource
    : public SideEffects::Resource::Base<CommunicatorResource> {
  StringRef getName() final { return "Communicator"; }
};

/// Attributes of the arguments and results of a step function.
constexpr StringLiteral kInputAttr = "zero.input";
constexpr StringLiteral kHyperAttr = "zero.hyper";
/// An argument that is the number in the whole run of the rank's first sample.
constexpr StringLiteral kFirstSampleAttr = "zero.first_sample";
constexpr StringLiteral kOutputAttr = "zero.output";
constexpr StringLiteral kAcrossAttr = "zero.across";
/// Attribute of a module that `zero-partition` has been run on.
constexpr StringLiteral kStageAttr = "zero.stage";
/// Attribute of a module whose step has several micro-batches: how many. The
/// function of this name runs for all but the last.
constexpr StringLiteral kMicroBatchesAttr = "zero.micro_batches";
constexpr StringLiteral kAccumulateName = "accumulate";
/// Attributes of a module that has been scheduled: what the schedule is
/// expected to need, in bytes of one rank and in seconds.
constexpr StringLiteral kPlannedPeakAttr = "zero.planned_peak";
constexpr StringLiteral kPlannedSecondsAttr = "zero.planned_seconds";
/// Attribute of a module whose step computes outputs and trains nothing.
constexpr StringLiteral kForwardAttr = "zero.forward";
/// The grid that `zero-annotate` creates: of one axis, and of two (replicas by
/// shards).
constexpr StringLiteral kGridName = "dp";
constexpr StringLiteral kGrid2DName = "hsdp";

//===----------------------------------------------------------------------===//
// Arithmetic of shards
//===----------------------------------------------------------------------===//

/// Rows of a chunk when `rows` are cut over `ranks`: ceil(rows / ranks).
int64_t getChunkRows(int64_t rows, int64_t ranks);

/// Rows of `rank`'s chunk that hold data: the last ones have fewer or none.
int64_t getRowsOfRank(int64_t rows, int64_t ranks, int64_t rank);

/// Rows of all chunks together, padding included.
int64_t getPaddedRows(int64_t rows, int64_t ranks);

/// What one rank holds of `full` when dimension `dim` is cut over `ranks`.
RankedTensorType getLocalType(RankedTensorType full, int64_t ranks,
                              int64_t dim = 0);

/// Ranks along `axes` of `grid`, or failure where an axis does not exist.
FailureOr<int64_t> getRanks(shard::GridOp grid, ArrayRef<int64_t> axes);

/// The whole tensor behind a tensor or sharded type; null for other types.
RankedTensorType getLogicalType(Type type);

/// Bytes of a tensor or sharded type's whole tensor; 0 for other types.
int64_t getTensorBytes(Type type);

/// Bytes of all tensor operands and results of `op`.
int64_t getOperandAndResultBytes(Operation *op);

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

/// What an op has to do on one rank; see the interface `Cost`.
struct Work {
  double flops = 0;           ///< a multiply-add counts two
  double bytes = 0;           ///< read and written
  double transcendentals = 0; ///< exp, erf, sqrt, ... evaluated
  /// Sizes of a product, 0 for other ops: batch x (m x k) * (k x n).
  int64_t batch = 0, m = 0, n = 0, k = 0;
};

/// The work of an op that does this much per element of its largest operand or
/// result, and reads and writes all of them once.
Work getWorkPerElement(Operation *op, double flops, double transcendentals);

/// Of a product that reads its operands and writes its results once.
Work getProductWork(Operation *op, int64_t batch, int64_t m, int64_t n,
                    int64_t k);

/// Implements `Cost` by constants per element of the largest operand or result.
template <int Flops, int Transcendentals>
struct CostPerElement {
  template <typename ConcreteType>
  class Impl : public OpTrait::TraitBase<ConcreteType, Impl> {
  public:
    Work getWork() {
      return getWorkPerElement(this->getOperation(), Flops, Transcendentals);
    }
  };
};

/// Implements `Cost` for changes of layout.
template <typename ConcreteType>
class CostNothing : public OpTrait::TraitBase<ConcreteType, CostNothing> {
public:
  Work getWork() { return {}; }
};

} // namespace mlir::zero

#include "dialects/Zero/ZeroDialect.h.inc"
#include "dialects/Zero/ZeroEnums.h.inc"
#include "dialects/Zero/ZeroInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Zero/ZeroAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Zero/ZeroTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Zero/ZeroOps.h.inc"

#endif // DIALECTS_ZERO_ZERO_H
