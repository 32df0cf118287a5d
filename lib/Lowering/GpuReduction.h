//===- GpuReduction.h - Sums along some dimensions --------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reduction of a tensor to a tensor as launches. Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_GPUREDUCTION_H
#define ZERO_LIB_LOWERING_GPUREDUCTION_H

#include "GpuMapper.h"

namespace mlir::zero {

/// A linalg.generic with parallel loops and reductions, as launches.
class Reduction {
public:
  Reduction(GpuMapper &mapper, size_t step);
  void emitColumns();
  void emitRows();

  using Sums = PieceValues; ///< by result and column
  /// Stores the results of the columns from `column` on, or what their readers
  /// make of them.
  void finish(LaunchCode &code, Value column, Sums sums, int64_t width);
  void bindAll(LaunchCode &code);
  /// Whether the result's elements start from a known value.
  bool startsFromFill() const { return !llvm::is_contained(fills, Value()); }

private:
  SmallVector<int64_t> getExtents(utils::IteratorType kind) const;
  Piece makePiece(LaunchCode &code, Value column, Value row, int64_t width,
                  bool wide) const;
  Sums getNeutral(LaunchCode &code, int64_t width) const;
  SmallVector<Value> addRow(LaunchCode &code, const Piece &piece,
                            ValueRange carried, bool alongRow) const;
  Sums sumRows(LaunchCode &code, Value column, Value first, int64_t step,
               int64_t width);
  Sums joinThreads(LaunchCode &code, const Sums &sums, int64_t width) const;
  void finishReader(LaunchCode &code, linalg::GenericOp reader, Value base,
                    Value column, ArrayRef<Value> sums);
  void storePartials(LaunchCode &code, Value split, Value column,
                     const Sums &sums);
  void addPartials(int64_t width);
  void makePartials(int64_t splits);
  /// Whether a thread has to go over all of a sum in order, since nothing is
  /// known of how its parts could be combined.
  bool isSerial() const { return llvm::is_contained(combiners, nullptr); }
  Sums getStart(LaunchCode &code, Value column, int64_t width) const;
  Sums split(ValueRange flat, int64_t width) const;

  GpuMapper &mapper;
  linalg::GenericOp op;
  SmallVector<Operation *> combiners;
  SmallVector<Value> fills; ///< what results start from, null: as they are
  SmallVector<SmallVector<linalg::GenericOp>> readers;
  SmallVector<Value> partials; ///< by result: splits x columns
  int64_t columns, rows, splits = 1;
};

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_GPUREDUCTION_H
