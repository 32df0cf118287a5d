//===- Machine.h - What a machine can do ------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Machines as data: a JSON file, or a preset of that form. Needs no MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_COST_MACHINE_H
#define ZERO_COST_MACHINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mlir::zero {

/// Time of a collective on n ranks: alpha(n) + bytes / bandwidth, where bytes
/// is what one rank sends in the ring model. Of a copy: latency + bytes /
/// bandwidth.
struct Link {
  double latency = 0;       ///< seconds of one hop
  double bandwidth = 0;     ///< bytes per second and rank, one way
  double halfSizeBytes = 0; ///< message that gets half of `bandwidth`
  /// A rank's own part of the tensors counts as this much of a sent one.
  double ownPart = 0;

  bool operator==(const Link &o) const {
    return latency == o.latency && bandwidth == o.bandwidth &&
           halfSizeBytes == o.halfSizeBytes && ownPart == o.ownPart;
  }
};

/// A machine: nodes of equal ranks. Bandwidths in bytes per second, times in
/// seconds, memory in bytes.
struct Machine {
  std::string name;
  int64_t nodes = 1, ranksPerNode = 8;
  int64_t memoryBytes = 0;     ///< of a rank's device
  int64_t reservedBytes = 0;   ///< context and libraries, not for the plan
  int64_t hostMemoryBytes = 0; ///< of a node, shared by its ranks
  std::map<std::string, double> peakFlops; ///< by type: "f32", "bf16", ...
  double matmulEfficiency = 1;             ///< of the peak, for large products
  /// Flops of a product at which half of that efficiency is reached.
  double matmulHalfFlops = 0;
  double memoryBandwidth = 0; ///< device memory
  double kernelLatency = 0;   ///< of one launch
  Link intraNode, interNode;  ///< of one rank
  /// Links as a kind of collective ("all_gather", "reduce_scatter",
  /// "all_reduce") sees them, where it differs from the above.
  std::map<std::string, Link> intraNodeOf, interNodeOf;
  /// Of one rank while all ranks of its node copy.
  Link hostToDevice, deviceToHost;
  Link diskRead, diskWrite;
  /// What one rank's part of the host's processor does while all ranks of its
  /// node compute there. 0: unknown; see CostModel::hostCompute.
  double hostBandwidth = 0; ///< host memory, bytes read plus written a second
  double hostFlops = 0;     ///< f32, flop/s
  /// Further named constants of the model, fitted or measured; see
  /// `machineConstants`.
  std::map<std::string, double> constants;

  /// Host memory for one rank, all ranks of the node having as much.
  int64_t hostMemoryOfRank() const {
    return hostMemoryBytes / (ranksPerNode > 0 ? ranksPerNode : 1);
  }

  /// A constant of `machineConstants`, or its default.
  double constant(llvm::StringRef name) const;

  bool operator==(const Machine &o) const;
};

/// A named constant of the cost model that a machine may set.
struct MachineConstant {
  llvm::StringLiteral name;
  double value; ///< where the machine does not say
  llvm::StringLiteral meaning;
};

/// All constants of the cost model.
llvm::ArrayRef<MachineConstant> machineConstants();

/// Names of the presets.
std::vector<llvm::StringRef> machinePresets();

/// The JSON text of a preset; empty if there is none of that name.
llvm::StringRef machinePresetText(llvm::StringRef name);

/// A preset by name, or a JSON file by path (it ends in .json). An error names
/// the file, the field, what was found and what is expected.
llvm::Expected<Machine> loadMachine(llvm::StringRef nameOrPath);

/// A machine of JSON text; `file` is what errors call it. `"base": "NAME"`
/// starts from a preset.
llvm::Expected<Machine> parseMachine(llvm::StringRef text,
                                     llvm::StringRef file);

/// The JSON form of a machine; `loadMachine` reads it back unchanged.
std::string printMachine(const Machine &machine);

/// Bytes of "80GiB", "80GB", "1048576" or "1.5KiB": an integer number of
/// bytes above zero. Nothing if it is no size.
std::optional<int64_t> parseByteSize(llvm::StringRef text);

/// The candidate closest to `name` if it is close enough to be a slip of the
/// keys, else an empty string.
llvm::StringRef closestName(llvm::StringRef name,
                            llvm::ArrayRef<llvm::StringRef> candidates);

} // namespace mlir::zero

#endif // ZERO_COST_MACHINE_H
