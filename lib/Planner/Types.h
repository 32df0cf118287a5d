//===- Types.h - Bytes of an element, by precision --------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_PLANNER_TYPES_H
#define ZERO_LIB_PLANNER_TYPES_H

#include "zero/Planner/StepPlan.h"

namespace mlir::zero {

/// Bytes of one element. `optimizer`: master copy and both states.
struct TypeBytes {
  int64_t parameter, gradient, optimizer, activation;
  llvm::StringLiteral product; ///< type of the products
};

inline TypeBytes typeBytes(Precision precision) {
  switch (precision) {
  case Precision::F32:
    return {4, 4, 8, 4, "f32"};
  case Precision::Mixed:
    return {2, 2, 12, 2, "bf16"};
  case Precision::Bf16:
    return {2, 2, 4, 2, "bf16"};
  case Precision::F8:
    return {2, 2, 12, 2, "f8"};
  }
  return {4, 4, 8, 4, "f32"};
}

/// Elements that rank 0 holds: chunks of ceil(d / shards) of the first
/// dimension, as the partitioned step has them.
int64_t shardElements(const std::vector<ShapeParameter> &list, int64_t shards);

/// The share of gradients that leave the device when they are reduced: without
/// micro-batches also those of parameters that the host updates.
inline OffloadShare leavingGradients(const StepConfig &config) {
  const OffloadShare &update = config.offload.optimizer;
  const OffloadShare &asked = config.offload.gradients;
  if (config.accumulate > 1 || asked.layers < 0 ||
      (update.layers >= 0 && asked.layers >= update.layers))
    return asked;
  return {update.layers, false};
}

/// The layers of `all` that `share` says.
inline int64_t offloadedLayers(const OffloadShare &share, int64_t all) {
  return share.layers < 0 || share.layers > all ? all : share.layers;
}

} // namespace mlir::zero

#endif // ZERO_LIB_PLANNER_TYPES_H
