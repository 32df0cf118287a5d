//===- GpuElements.h - Elements of linalg operations in a thread -*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How one thread loads, computes and stores the elements of a linalg.generic
// that are its own: a few in a row along the innermost loop, so that they come
// and go 16 bytes at a time. Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_GPUELEMENTS_H
#define ZERO_LIB_LOWERING_GPUELEMENTS_H

#include "GpuLaunch.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::zero {

/// Elements of a linalg.generic that one thread has.
struct Piece {
  SmallVector<Value> indices; ///< of the loops, for the first element
  int64_t width = 1;          ///< elements along the innermost loop
  bool wide = false;          ///< whether pointers are known to be aligned
};

/// The argument, allocation or scratch view that `buffer` is a view of.
Value getBase(Value buffer);

/// Whether `value` is a buffer of rank 0.
bool isScalarBuffer(Value value);

/// The number of elements of `op`'s loops of the given kind, or of all.
int64_t countLoops(linalg::GenericOp op,
                   std::optional<utils::IteratorType> kind = std::nullopt);

/// The most elements in a row that a thread of `ops` can have: 1 if elements
/// of an operand lie apart. It divides the innermost extents unless `tails`,
/// where an operation of one loop has a rest.
int64_t chooseWidth(ArrayRef<linalg::GenericOp> ops, bool tails = false);

/// Whether pieces of `width` elements of `operand` are contiguous and aligned
/// if the buffers are.
bool isWide(OpOperand &operand, int64_t width);

/// Adds the arguments of the function that must be aligned for `isWide`.
void addWideBases(linalg::GenericOp op, int64_t width,
                  llvm::SetVector<Value> &bases);

/// i1: all of `bases` are multiples of 16 bytes.
Value areAligned(LaunchCode &code, ArrayRef<Value> bases);

/// The elements of an operand that belong to `piece`.
SmallVector<Value> loadPiece(LaunchCode &code, OpOperand &operand,
                             const Piece &piece);
void storePiece(LaunchCode &code, OpOperand &operand, const Piece &piece,
                ValueRange values);

/// The elements of all operands that the body reads; null where `has` already
/// holds them or the body does not read them.
using PieceValues = SmallVector<SmallVector<Value>>;
void loadPieces(LaunchCode &code, linalg::GenericOp op, const Piece &piece,
                PieceValues &values);

/// What the body of `op` computes for the element number `at` of `piece` from
/// `args`, the values of its block arguments (null if not read).
SmallVector<Value> computeElement(LaunchCode &code, linalg::GenericOp op,
                                  const Piece &piece, int64_t at,
                                  ArrayRef<Value> args);

/// What the body computes for a whole piece, by result and element.
PieceValues computePiece(LaunchCode &code, linalg::GenericOp op,
                         const Piece &piece, const PieceValues &values);

/// The operation that combines the result number `index` of a reduction with
/// what was there, or null.
Operation *getCombiner(linalg::GenericOp op, unsigned index);

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_GPUELEMENTS_H
