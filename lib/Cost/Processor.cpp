//===- Processor.cpp - Devices that are the host's processor --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Processor.h.
//
//===----------------------------------------------------------------------===//

#include "zero/Cost/Processor.h"

#include <algorithm>

using namespace mlir::zero;

bool mlir::zero::usesProcessor(TaskKind kind) {
  return kind != TaskKind::DiskRead && kind != TaskKind::DiskWrite;
}

double mlir::zero::processorSeconds(const Machine &machine, int64_t ranks,
                                    double busySeconds) {
  double cores = machine.constant("processor_cores");
  if (cores <= 0)
    return 0;
  int64_t ofNode = std::min(ranks, std::max<int64_t>(machine.ranksPerNode, 1));
  return busySeconds * ofNode / cores;
}
