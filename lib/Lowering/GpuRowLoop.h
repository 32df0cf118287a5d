//===- GpuRowLoop.h - Loops over rows as launches ---------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop nest whose body works on a row: what is known of it, and the code of
// the threads that share a row. Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_GPUROWLOOP_H
#define ZERO_LIB_LOWERING_GPUROWLOOP_H

#include "GpuMapper.h"

namespace mlir::zero {

/// A perfect nest of loops from 0 by 1.
struct LoopNest {
  explicit LoopNest(scf::ForOp outer);
  int64_t countSteps() const;
  Block &getBody() const { return *body; }
  /// Whether all induction variables of more than one step are among
  /// `indices`, so that each step has elements of its own there.
  bool isOwn(ArrayRef<OpFoldResult> indices) const;
  bool isOwn(Value buffer) const;

  scf::ForOp outer, inner;
  Block *body; ///< of the innermost loop
  SmallVector<Value> variables;
  SmallVector<int64_t> extents;
  bool isPlain = true; ///< bounds are known
};

/// What a temporary of a row becomes.
enum class Holder {
  Registers, ///< a thread's elements, in registers
  Own,       ///< in memory, each element used by one thread only
  Memory     ///< in memory, with barriers
};

/// A loop over rows: a team of threads (a warp or a block) has a row at a time.
class RowLoop {
public:
  RowLoop(GpuMapper &mapper, size_t step);

  /// Whether rows are independent of each other and all they do is understood.
  bool analyze();
  void emit();

private:
  using Rows = SmallVector<SmallVector<Value>>; ///< by turn and element

  // Analysis.
  bool analyzeWrite(Value buffer, ArrayRef<OpFoldResult> indices);
  bool analyzeGeneric(linalg::GenericOp op);
  bool analyzeOp(Operation &op);
  bool isPrivate(Value base) const;
  bool usesTemporaries();
  void chooseTeam();
  void holdTemporaries();
  Holder chooseHolder(Value base) const;
  int64_t countElements(linalg::GenericOp op) const;

  // Code of a team.
  SmallVector<Value> emitRow(Value row, ValueRange carried);
  void emitOp(Operation &op);
  void emitScalar(linalg::GenericOp op);
  void emitSum(linalg::GenericOp op);
  void emitElements(linalg::GenericOp op);
  void emitPiece(linalg::GenericOp op, Piece piece, int64_t turn, Value inside);
  PieceValues reduceInside(linalg::GenericOp op, const Piece &piece,
                           PieceValues values);
  void forPieces(linalg::GenericOp op, ValueRange carried,
                 llvm::function_ref<SmallVector<Value>(
                     const Piece &, int64_t turn, Value inside, ValueRange)>
                     build,
                 SmallVector<Value> *results);
  Piece makePiece(linalg::GenericOp op, Value number);
  PieceValues readOperands(linalg::GenericOp op, const Piece &piece,
                           int64_t turn);
  Value readScalar(Value buffer);
  void store(memref::StoreOp store);
  void touch(Value base);
  void syncFor(Operation &op);
  void bindTemporaries();
  void storePartials(ValueRange carried);
  void addSumSteps();
  void emitWholeRows();

  GpuMapper &mapper;
  size_t step;
  Location loc;
  LoopNest nest;
  std::unique_ptr<LaunchCode> code;
  int64_t elements = 0, width = 1, team = kWarpSize, turns = 1, teams = 1;
  bool unrolled = true, wide = false;
  bool storesInside = false; ///< in loops of a row
  Value lane, ownTeam;

  llvm::SetVector<Value> written, read, temporaries;
  llvm::DenseMap<Value, Holder> holders;
  llvm::DenseMap<Value, int64_t> offsets; ///< of temporaries in scratch memory
  llvm::MapVector<Value, Operation *> accumulators; ///< by base: the combiner
  llvm::DenseMap<Value, Rows> registers; ///< of temporaries and accumulators
  llvm::DenseMap<Value, Value> scalars;  ///< of buffers of rank 0
  llvm::SmallPtrSet<Value, 4> mixed;     ///< read and written in a row
  llvm::SmallPtrSet<Value, 4> touched;   ///< of those, since the last barrier
  SmallVector<Value> sumBuffers;         ///< partial sums of accumulators
  SmallVector<Partials> partials;        ///< of what the loop carries
};

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_GPUROWLOOP_H
