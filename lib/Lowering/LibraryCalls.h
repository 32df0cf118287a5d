//===- LibraryCalls.h - Ops that are library calls --------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which ops of a step stay outside kernels: matrix products and convolutions,
// which a library computes, and changes of shape that are only strides to it.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_LIBRARYCALLS_H
#define ZERO_LIB_LOWERING_LIBRARYCALLS_H

#include "mlir/IR/Operation.h"
#include <optional>

namespace mlir::zero {

/// Sizes and strides of a view, and where it starts, in elements.
struct StridedLayout {
  int64_t offset = 0;
  SmallVector<int64_t> sizes, strides;

  /// Row-major of `shape`, from the start.
  static StridedLayout contiguous(ArrayRef<int64_t> shape);
  bool isContiguous() const;
};

/// `source` broadcast to `shape` by numpy's rules: stride 0 where it repeats.
StridedLayout broadcastLayout(const StridedLayout &source,
                              ArrayRef<int64_t> shape);

/// Whether `op` is computed by a library (oneDNN, cuBLASLt, cuDNN).
bool isLibraryCall(Operation *op);

/// The layout of `op`'s result over the storage of its operand, which has
/// layout `source`; nothing if `op` does not only change the layout, or the
/// result cannot be expressed with strides.
std::optional<StridedLayout> viewThrough(Operation *op,
                                         const StridedLayout &source);

/// Whether `op` needs no kernel: a reshape of a contiguous tensor, or a change
/// of layout that only library calls see, through strides.
bool isLayoutView(Operation *op);

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_LIBRARYCALLS_H
