//===- CostModel.h - Seconds of compute and of collectives ------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Predicts how long one op takes on one rank of a machine. Needs no MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_COST_COSTMODEL_H
#define ZERO_COST_COSTMODEL_H

#include "zero/Cost/Machine.h"
#include "zero/Cost/StepGraph.h"

namespace mlir::zero {

/// What an op has to do.
struct OpWork {
  /// How the op runs.
  enum Class : uint8_t {
    Matmul, ///< products and convolutions, on the matrix units
    Kernel  ///< everything else
  };
  Class cls = Kernel;
  double flops = 0; ///< a multiply-add counts two
  double bytes = 0; ///< read and written
  /// Sizes of a product, 0 if unknown: batch x (m x k) * (k x n).
  int64_t batch = 0, m = 0, n = 0, k = 0;
  double transcendentals = 0;   ///< exp, tanh, erf, ... evaluated (kernels)
  llvm::StringRef type = "f32"; ///< element type of the products
};

/// The ranks of one collective: `ranks` of them, `perNode` on each node.
struct RankGroup {
  int64_t ranks = 1, perNode = 1;
};

/// Seconds on one rank of a machine.
class CostModel {
public:
  explicit CostModel(Machine machine) : machine(std::move(machine)) {}

  const Machine &getMachine() const { return machine; }

  double compute(const OpWork &work) const;

  /// `bytes`: the whole tensors (gathered or before reduction).
  double collective(TaskKind kind, int64_t bytes, RankGroup group) const;
  /// The part of `collective` that does not depend on bytes.
  double collectiveLatency(TaskKind kind, RankGroup group) const;

  /// A copy between two memory spaces: CopyIn, CopyOut, DiskRead or DiskWrite.
  /// Other kinds take no time, and so does a link the machine does not know.
  double copy(TaskKind kind, int64_t bytes) const;
  /// The part of `copy` that does not depend on bytes.
  double copyLatency(TaskKind kind) const;

  /// One rank's compute on the host's processor: bound by the bandwidth of the
  /// host's memory or by its arithmetic. A machine that says nothing of its
  /// host has the bandwidth of its host link, else that of its device.
  double hostCompute(const OpWork &work) const;

  /// How `ranks` ranks in a row, `stride` apart, lie on the nodes.
  RankGroup group(int64_t ranks, int64_t stride = 1) const;

private:
  Machine machine;
};

/// What one rank sends in the ring model for whole tensors of `bytes`.
int64_t ringBytes(TaskKind kind, int64_t bytes, int64_t ranks);

} // namespace mlir::zero

#endif // ZERO_COST_COSTMODEL_H
