//===- Samples.h - Which dimension holds the samples ------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first dimension of every input counts samples. Where it goes from there
// is followed through the operations: random numbers belong to samples.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_SAMPLES_H
#define ZERO_LIB_IMPORT_SAMPLES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::zero::onnx_import {

/// Gives every random operation of `function` the dimension that holds its
/// samples, and how many; none where it depends on no sample. An error names
/// the operation for which that cannot be proved.
LogicalResult placeSamples(func::FuncOp function);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_SAMPLES_H
