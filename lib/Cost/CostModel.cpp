//===- CostModel.cpp - Seconds of compute and collectives ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See CostModel.h.
//
//===----------------------------------------------------------------------===//

#include "zero/Cost/CostModel.h"

using namespace mlir::zero;

int64_t mlir::zero::ringBytes(TaskKind kind, int64_t bytes, int64_t ranks) {
  switch (kind) {
  case TaskKind::AllGather:
  case TaskKind::ReduceScatter:
    return bytes / ranks * (ranks - 1);
  case TaskKind::AllReduce:
    return 2 * (bytes / ranks * (ranks - 1));
  case TaskKind::Compute:
  case TaskKind::CopyIn:
  case TaskKind::CopyOut:
    return 0;
  }
  return 0;
}
