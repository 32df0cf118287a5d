//===- Sequences.h - Cutting tensors up and joining them -------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What loops and sequences do with tensors. Tensors that are known at import
// stay so.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_SEQUENCES_H
#define ZERO_LIB_IMPORT_SEQUENCES_H

#include "lib/Import/GraphImporter.h"

namespace mlir::zero::onnx_import {

/// The slice of `tensor` at `index` of `axis`, which it no longer has. Both are
/// in range.
FailureOr<Binding> elementAt(NodeContext &c, Binding &tensor, int64_t axis,
                             int64_t index);

/// `tensors`, at least one, along `axis`: one that they have or, with
/// `newAxis`, one before that.
FailureOr<Binding> joinBindings(NodeContext &c, MutableArrayRef<Binding> tensors,
                                int64_t axis, bool newAxis);

/// Shape of a binding that is a tensor; an error naming `what` otherwise.
FailureOr<SmallVector<int64_t>> tensorShape(NodeContext &c, Binding &tensor,
                                            const Twine &what);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_SEQUENCES_H
