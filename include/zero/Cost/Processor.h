//===- Processor.h - Devices that are the host's processor ------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the device is the host's processor (constant "processor_cores"), the
// channels of a rank, and the ranks of a node, share its cores: a copy or an
// update on the host beside compute is no gain. Needs no MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_COST_PROCESSOR_H
#define ZERO_COST_PROCESSOR_H

#include "zero/Cost/Machine.h"
#include "zero/Cost/StepGraph.h"

namespace mlir::zero {

/// Whether a core is busy for as long as a task of `kind` takes: compute,
/// collectives, copies between device and host memory, and compute of the host;
/// a disk works on its own.
bool usesProcessor(TaskKind kind);

/// The least seconds of a step of `ranks` ranks in each of which tasks that use
/// a processor take `busySeconds` one after the other. 0 where devices have
/// processors of their own.
double processorSeconds(const Machine &machine, int64_t ranks,
                        double busySeconds);

} // namespace mlir::zero

#endif // ZERO_COST_PROCESSOR_H
