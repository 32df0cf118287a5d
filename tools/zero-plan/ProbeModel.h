//===- ProbeModel.h - The model that calibration times ----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A GPT of any size as a forward function: what a training step is made of
// (products, attention, norms, embeddings, loss), without a file to read.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_PLAN_PROBEMODEL_H
#define ZERO_TOOLS_ZERO_PLAN_PROBEMODEL_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::zero {

/// Sizes of a probe. `width` is a multiple of `heads`.
struct ProbeShape {
  int64_t layers, width, heads, vocabulary, sequence, batch;
};

/// A module with `@forward` from tokens to logits and its parameters, ready
/// for `train::buildTrainStep`. The parameters start as zeros or ones.
OwningOpRef<ModuleOp> buildProbeModel(MLIRContext &context,
                                      const ProbeShape &shape);

} // namespace mlir::zero

#endif // ZERO_TOOLS_ZERO_PLAN_PROBEMODEL_H
