//===- TrainToLinalgWindows.h - Sliding windows -----------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the elements of the windows of poolings and convolutions lie, as index
// arithmetic of kernels; private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_TRAINTOLINALGWINDOWS_H
#define ZERO_LIB_LOWERING_TRAINTOLINALGWINDOWS_H

#include "TrainToLinalg.h"

namespace mlir::zero {

/// An element of a window.
struct WindowPlace {
  SmallVector<Value> indices; ///< in the input, also where it is padding
  Value inside;               ///< i1: in the input; null: always
  Value counted;              ///< i1: in the input or its padding; null: always
};

/// A window that an element of the input is in, if `valid`.
struct WindowCover {
  SmallVector<Value> window;
  Value valid;
};

/// The windows over the spatial dimensions of a tensor [N, C, spatial...].
struct Windows {
  SmallVector<int64_t> input, kernel, strides, pads, dilations;

  /// Those of a pooling.
  template <typename OpTy>
  Windows(OpTy op, ArrayRef<int64_t> inputShape)
      : Windows(op, inputShape, op.getKernel()) {}
  template <typename OpTy>
  Windows(OpTy op, ArrayRef<int64_t> inputShape, ArrayRef<int64_t> kernel)
      : input(inputShape), kernel(kernel), strides(op.getStrides()),
        pads(op.getPads()), dilations(op.getDilations()) {}

  /// The place of the `element`-th element of a window [n, c, spatial...].
  WindowPlace locate(OpBuilder &b, Location loc, ValueRange window,
                     ValueRange element) const;

  /// The window in which the element of the input at `indices` has the place
  /// `offset`; `outputs` is the shape of the result.
  WindowCover findWindow(OpBuilder &b, Location loc, ArrayRef<int64_t> outputs,
                         ValueRange indices, ValueRange offset) const;

private:
  void locateDim(OpBuilder &b, Location loc, unsigned dim, Value window,
                 Value element, WindowPlace &place) const;
};

/// lhs and rhs; a null lhs is true.
Value both(OpBuilder &b, Location loc, Value lhs, Value rhs);

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_TRAINTOLINALGWINDOWS_H
