//===- Software.h - What runs a step ----------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a training framework adds to, or takes from, what a machine can do:
// needed to compare the cost model with steps that others have measured.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PLANNER_SOFTWARE_H
#define ZERO_PLANNER_SOFTWARE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::zero {

/// How a framework runs a step. Times in seconds.
struct Software {
  llvm::StringRef name;
  llvm::StringRef meaning;
  /// Bytes that elementwise ops move, as a multiple of one read of each
  /// operand and one write of each result in compute precision.
  double elementwise = 1;
  /// Passes over the logits in 4-byte elements, forward and backward together.
  double lossPasses = 4;
  /// Reads and writes of the update, as a multiple of the least.
  double update = 1;
  /// Part of the machine's attention efficiency; 0: attention is not fused, its
  /// matrix is written to memory `attentionPasses` times a step.
  double attention = 1;
  double attentionPasses = 0;
  /// Part of the machine's efficiency of f8 products.
  double f8Products = 1;
  /// Time to launch the kernels of one layer, forward: no layer is faster.
  double layerSeconds = 0;
  /// Per micro-batch and per layer's parameters in the update.
  double batchSeconds = 0, updateLayerSeconds = 0;
  /// Part of a layer's products and of its attention that selective
  /// recomputation repeats, and of all of a layer that full one does.
  double selectiveProducts = 0, selectiveAttention = 0, fullRecompute = 1;
  /// Bytes of an element of a reduced gradient where parameters are 4 bytes.
  int reduceBytes = 4;
  /// Gathers and reductions wait for each other.
  bool oneCommunicator = false;
  /// Collectives run beside compute.
  bool overlap = true;
  /// Stages 1 and 2 gather parameters in the forward pass, not after the
  /// update.
  bool gatherInForward = false;
  /// Stage 3: embedding and head stay gathered from forward to backward.
  bool keepOuter = false;
};

/// All that are known. The first is this compiler's own.
llvm::ArrayRef<Software> knownSoftware();

/// By name, or null.
const Software *findSoftware(llvm::StringRef name);

} // namespace mlir::zero

#endif // ZERO_PLANNER_SOFTWARE_H
