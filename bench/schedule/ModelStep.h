//===- ModelStep.h - Steps of standard models -------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The stage-3 training step of a Llama as a step graph, op by op, with the
// times of a machine: bf16 compute and traffic, fp32 state, each layer
// recomputed from its input in the backward pass.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_BENCH_SCHEDULE_MODELSTEP_H
#define ZERO_BENCH_SCHEDULE_MODELSTEP_H

#include "zero/Cost/CostModel.h"
#include "zero/Cost/StepGraph.h"

namespace mlir::zero {

/// A Llama and its share of a batch.
struct LlamaShape {
  std::string name;
  int64_t layers, hidden, feedForward, heads, kvHeads, vocabulary;
  int64_t tokens = 8192; ///< of one rank: one sequence
};

LlamaShape llama8b();
LlamaShape llama70b();
LlamaShape llama405b();

/// Layers are units 0, 1, ...; embedding and head are units of their own.
StepGraph llamaStep(const LlamaShape &shape, const CostModel &cost,
                    int64_t ranks);

} // namespace mlir::zero

#endif // ZERO_BENCH_SCHEDULE_MODELSTEP_H
