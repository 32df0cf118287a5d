//===- Offload.h - What lives outside device memory -------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Optimizer state, gradients, parameters and saved activations in host memory
// or on disk: what can be moved, what is, and the step that follows.
//
// Sources: ZeRO-Offload (arXiv 2101.06840), ZeRO-Infinity (arXiv 2104.07857).
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TRANSFORMS_OFFLOAD_H
#define ZERO_TRANSFORMS_OFFLOAD_H

#include "dialects/Zero/Zero.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::zero {

enum class OffloadKind {
  Optimizer,  ///< moments and masters of a parameter; it is updated on the host
  Gradients,  ///< kept or accumulated until the update
  Parameters, ///< at rest
  Activations ///< of the forward pass that the backward pass reads
};

/// "optimizer", "gradients", "parameters", "activations".
StringRef stringifyOffloadKind(OffloadKind kind);

/// Where the values of a kind live whose name matches a glob pattern. Names are
/// those of parameters; of an activation the layer and the name of the op that
/// makes it, numbered from the second of the same kind in a layer on:
/// "h.0.gelu", "h.0.add", "h.0.add.1".
struct OffloadRule {
  OffloadKind kind = OffloadKind::Optimizer;
  std::string pattern = "*";
  Memory memory = Memory::Host;
  /// Share of the bytes that match, 0 to 1, that go: whole tensors in the order
  /// of the step, each that still fits in.
  double ratio = 1;

  bool operator==(const OffloadRule &other) const;
};

/// Reads "KIND[@PATTERN]=device|host|disk[:RATIO]", as in "optimizer=host",
/// "optimizer@h.*=host:0.5" or "parameters=disk"; `error` says what is wrong.
FailureOr<OffloadRule> parseOffloadRule(StringRef text, std::string &error);
std::string printOffloadRule(const OffloadRule &rule);

/// Something of a step that can live outside device memory.
struct OffloadCandidate {
  OffloadKind kind;
  std::string name;  ///< unique within its kind
  std::string unit;  ///< layer, or empty
  int64_t bytes = 0; ///< what one rank holds
  /// Bytes that cross one way in a step because of it alone.
  int64_t toHostBytes = 0, toDeviceBytes = 0;
};

/// What can be offloaded of a partitioned module that is not scheduled, in the
/// order of the step.
FailureOr<std::vector<OffloadCandidate>> findOffloadCandidates(ModuleOp module);

/// Rewrites a partitioned module that is not scheduled so that what the rules
/// say lives elsewhere; of several rules for one value the last counts. Fails,
/// with a message that has been emitted, where a rule matches nothing. Copies
/// are synchronous `zero.transfer`s: `zero-schedule` spreads them.
LogicalResult applyOffload(ModuleOp module, ArrayRef<OffloadRule> rules);

} // namespace mlir::zero

#endif // ZERO_TRANSFORMS_OFFLOAD_H
