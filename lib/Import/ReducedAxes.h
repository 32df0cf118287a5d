//===- ReducedAxes.h - Axes of reductions -----------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rule that reductions computed at import share with those that become IR.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_REDUCEDAXES_H
#define ZERO_LIB_IMPORT_REDUCEDAXES_H

#include "lib/Import/NodeReader.h"

namespace mlir::zero::onnx_import {

/// The axes that a reduction of a tensor of `rank` goes over, ascending: those
/// `given` as an input if there is one (from version 13 on for ReduceSum, 18
/// for the others), else the attribute's; without any all, or none where the
/// node says so. After an error the node has failed.
SmallVector<int64_t> reducedAxes(NodeReader &node, int64_t rank,
                                 const SmallVector<int64_t> *given);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_REDUCEDAXES_H
