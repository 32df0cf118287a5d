//===- Window.h - Sliding windows of operators ------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The attributes that convolutions and poolings share.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_WINDOW_H
#define ZERO_LIB_IMPORT_WINDOW_H

#include "lib/Import/GraphImporter.h"

namespace mlir::zero::onnx_import {

/// One number per spatial dimension; pads: all begins, then all ends.
struct Window {
  SmallVector<int64_t> kernel, strides, dilations, pads;

  /// How far the kernel reaches in a dimension.
  int64_t extent(size_t dim) const {
    return (kernel[dim] - 1) * dilations[dim] + 1;
  }
};

/// Reads kernel_shape (`kernel` if it is not there), strides, dilations and
/// pads for `rank` spatial dimensions; fails after an error.
FailureOr<Window> readWindow(NodeContext &c, size_t rank,
                             ArrayRef<int64_t> kernel);

/// The same of an operator on an input [N, C, sizes...], with auto_pad.
FailureOr<Window> readPaddedWindow(NodeContext &c, ArrayRef<int64_t> sizes,
                                   ArrayRef<int64_t> kernel);

/// Whether `values` has `count` entries between `smallest` and 2^31; emits an
/// error that names the attribute if not.
bool checkEntries(NodeContext &c, StringRef name, ArrayRef<int64_t> values,
                  size_t count, int64_t smallest);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_WINDOW_H
