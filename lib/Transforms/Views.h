//===- Views.h - values that may share memory -------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a release of a gathered value must wait for.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_TRANSFORMS_VIEWS_H
#define ZERO_LIB_TRANSFORMS_VIEWS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::zero {

/// `value` and all values that may be views of it: results of ViewLike ops, and
/// of ops without effect that make one tensor of one tensor and are not
/// elementwise (a reshape or transpose in any dialect).
llvm::SetVector<Value> getViews(Value value);

/// The last op of `block` that uses `value` or a view of it, releases aside;
/// null where nothing does.
Operation *getLastUse(Value value, Block *block);

} // namespace mlir::zero

#endif // ZERO_LIB_TRANSFORMS_VIEWS_H
