//===- Machine.cpp - Machines and their constants ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Machine.h.
//
//===----------------------------------------------------------------------===//

#include "zero/Cost/Machine.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace llvm;
using namespace mlir::zero;

// Defaults are neutral: a machine that says nothing is at its peak.
static constexpr MachineConstant constants[] = {
    {"matmul_half_rows", 0,
     "rows of a product (tokens) at which half of the efficiency is reached"},
    {"matmul_half_dim", 0,
     "columns or depth of a product at which half of the efficiency is "
     "reached"},
    {"f8_efficiency", 1, "efficiency of f8 products, of that of the others"},
    {"attention_efficiency", 0.5,
     "part of the peak that fused attention reaches; what its mask hides does "
     "not count"},
    {"kernel_bandwidth_efficiency", 0.85,
     "part of the memory bandwidth that elementwise kernels reach"},
    {"kernel_flops_efficiency", 1,
     "part of the f32 peak that arithmetic outside of products reaches"},
    {"transcendental_flops", 20, "flops that one exp, tanh or erf counts for"},
    {"overlap_slowdown", 0,
     "compute time lost per second of a collective beside it"},
    {"host_overlap_slowdown", 0,
     "compute time lost per second of a copy, or of compute on the host, "
     "beside "
     "it"},
    {"network_line_rate", 0,
     "bytes per second of a rank's part of the adapters that inter_node "
     "stands for; 0: unknown"},
    {"host_bandwidth_efficiency", 0.8,
     "part of the host's memory bandwidth that an update there reaches"},
    {"host_latency", 1e-5, "seconds to start compute on the host"},
    {"processor_cores", 0,
     "cores of a node that its ranks' compute, collectives, copies between "
     "device and host memory and compute of the host share; 0: devices have "
     "processors of their own"},
    {"channel_sharing", 0,
     "time a collective loses per second that another runs beside it"},
};

ArrayRef<MachineConstant> mlir::zero::machineConstants() { return constants; }

double Machine::constant(StringRef name) const {
  auto it = constants.find(name.str());
  if (it != constants.end())
    return it->second;
  for (const MachineConstant &known : machineConstants())
    if (known.name == name)
      return known.value;
  return 0;
}

bool Machine::operator==(const Machine &o) const {
  return name == o.name && nodes == o.nodes && ranksPerNode == o.ranksPerNode &&
         memoryBytes == o.memoryBytes && reservedBytes == o.reservedBytes &&
         hostMemoryBytes == o.hostMemoryBytes && peakFlops == o.peakFlops &&
         matmulEfficiency == o.matmulEfficiency &&
         matmulHalfFlops == o.matmulHalfFlops &&
         memoryBandwidth == o.memoryBandwidth &&
         kernelLatency == o.kernelLatency && intraNode == o.intraNode &&
         interNode == o.interNode && intraNodeOf == o.intraNodeOf &&
         interNodeOf == o.interNodeOf && hostToDevice == o.hostToDevice &&
         deviceToHost == o.deviceToHost && diskRead == o.diskRead &&
         diskWrite == o.diskWrite && hostBandwidth == o.hostBandwidth &&
         hostFlops == o.hostFlops && constants == o.constants;
}

std::optional<int64_t> mlir::zero::parseByteSize(StringRef text) {
  text = text.trim();
  size_t end = text.find_first_not_of("0123456789.");
  StringRef number = text.substr(0, end);
  StringRef unit = end == StringRef::npos ? "" : text.substr(end).trim();
  double scale = StringSwitch<double>(unit)
                     .Cases({"", "B"}, 1)
                     .Case("KiB", 1024.0)
                     .Case("MiB", 1048576.0)
                     .Case("GiB", 1073741824.0)
                     .Case("TiB", 1099511627776.0)
                     .Cases({"kB", "KB"}, 1e3)
                     .Case("MB", 1e6)
                     .Case("GB", 1e9)
                     .Case("TB", 1e12)
                     .Default(0);
  if (scale == 0)
    return std::nullopt;
  // Whole numbers stay exact beyond 2^53.
  int64_t whole;
  if (scale == 1)
    return !number.getAsInteger(10, whole) && whole > 0
               ? std::optional<int64_t>(whole)
               : std::nullopt;
  double value;
  if (number.getAsDouble(value) || !(value > 0) || value * scale >= 9.2e18)
    return std::nullopt;
  return static_cast<int64_t>(std::floor(value * scale));
}

StringRef mlir::zero::closestName(StringRef name,
                                  ArrayRef<StringRef> candidates) {
  StringRef best;
  unsigned bestDistance = name.size() / 3 + 2;
  for (StringRef candidate : candidates) {
    unsigned distance = name.edit_distance(candidate, true, bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}
