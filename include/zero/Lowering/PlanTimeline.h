//===- PlanTimeline.h - What a program will do, over time -------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Discrete-event simulation of a plan.program: its own streams and events, with
// the seconds of each command from the cost model.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LOWERING_PLANTIMELINE_H
#define ZERO_LOWERING_PLANTIMELINE_H

#include "dialects/Plan/Plan.h"
#include "zero/Cost/CostModel.h"
#include "zero/Report/Timeline.h"

namespace mlir::zero {

/// What `command` has to do on one rank. A library call by the shapes of its
/// operands; a kernel moves its buffers once (the rows of a table that it looks
/// up, not the table) and computes what the ops in its function do.
OpWork getCommandWork(plan::CommandOpInterface command);

/// Floating-point operations of `command` if it is a product, a convolution or
/// an attention, as the utilization of a machine is counted (PaLM,
/// arXiv 2204.02311, appendix B): of an attention the whole square, without the
/// scores that its gradient computes again. Otherwise 0.
double countModelFlops(plan::CommandOpInterface command);

/// "all_gather fc1.weight", "matmul /fc1/Gemm": the op, with its parameters,
/// what a copy says it moves, or the node of the model.
std::string getCommandLabel(plan::CommandOpInterface command);

/// What channel `command` is work for: Compute, a collective, a copy between
/// two memory spaces, or HostCompute.
TaskKind getCommandKind(plan::CommandOpInterface command);

/// Bytes of the whole tensors of `collective`, padding not counted.
int64_t getWholeBytes(plan::CollectiveOpInterface collective);

/// What one rank sends for `command` in the ring model, or what a copy moves
/// from one memory space to another.
int64_t getSentBytes(plan::CommandOpInterface command);

/// Seconds of `command` when it has its stream for itself.
double predictSeconds(plan::CommandOpInterface command, const CostModel &cost);

/// One step of `program` on rank 0. A span per command (releases take no time
/// and have none), `command` being its number in the .zplan; memory whenever
/// compute comes to another command. Deterministic.
Timeline predictTimeline(plan::ProgramOp program, const CostModel &cost);

/// Bytes of one rank's arenas in `space`; 0 before they are allocated.
int64_t getArenaBytes(plan::ProgramOp program, plan::Space space);

/// Why the arena of `program` in `space` is larger than `budget` bytes, in one
/// line: how many bytes are missing, the largest tensors alive at the peak, and
/// what would help.
std::string describeMissingMemory(plan::ProgramOp program, int64_t budget,
                                  plan::Space space = plan::Space::Device);

} // namespace mlir::zero

#endif // ZERO_LOWERING_PLANTIMELINE_H
