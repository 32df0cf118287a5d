//===- Presets.cpp - Machines that are known by name ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Machine files that are part of the program. The sources of the numbers are
// in docs/planning.md.
//
//===----------------------------------------------------------------------===//

#include "zero/Cost/Machine.h"

using namespace llvm;
using namespace mlir::zero;

namespace {
struct Preset {
  StringLiteral name, text;
};
} // namespace

static constexpr Preset presets[] = {
    {"v100-32", R"({
  "name": "v100-32", "ranks_per_node": 16,
  "memory": "32GiB", "reserved_memory": "1GiB", "host_memory": "1.5TB",
  "peak_flops": {"f32": 1.57e13, "f16": 1.25e14},
  "matmul_efficiency": 0.56,
  "memory_bandwidth": 9e11, "kernel_latency": 5e-6,
  "intra_node": {"latency": 5e-6, "bandwidth": 1.2e11},
  "inter_node": {"latency": 6.87e-05, "bandwidth": 6.25e+09},
  "host_to_device": {"latency": 1e-5, "bandwidth": 3e9},
  "device_to_host": {"latency": 1e-5, "bandwidth": 3e9},
  "disk_read": {"latency": 1e-4, "bandwidth": 1.6e9},
  "disk_write": {"latency": 1e-4, "bandwidth": 1.6e9},
  "host_bandwidth": 1.28e10, "host_flops": 5.2e11,
  "constants": {"host_bandwidth_efficiency": 0.57}
})"},
    {"a100-40", R"({
  "name": "a100-40", "ranks_per_node": 8,
  "memory": "40GiB", "reserved_memory": "1.5GiB", "host_memory": "1TiB",
  "peak_flops": {"f32": 1.95e13, "tf32": 1.56e14, "bf16": 3.12e14, "f16": 3.12e14},
  "matmul_efficiency": 0.779,
  "memory_bandwidth": 1.555e12, "kernel_latency": 5e-6,
  "intra_node": {"latency": 3.2e-6, "bandwidth": 2.35e11,
                 "half_size": 4e6, "own_part": 0.195},
  "inter_node": {"latency": 6.87e-05, "bandwidth": 6.19e+09},
  "host_to_device": {"latency": 1e-5, "bandwidth": 2.5e10},
  "device_to_host": {"latency": 1e-5, "bandwidth": 2.5e10},
  "disk_read": {"latency": 1e-4, "bandwidth": 1.25e9},
  "disk_write": {"latency": 1e-4, "bandwidth": 6.25e8},
  "host_bandwidth": 4.1e10, "host_flops": 1.15e12,
  "constants": {"matmul_half_rows": 620, "matmul_half_dim": 59.8,
                "overlap_slowdown": 0.148, "channel_sharing": 0.702,
                "attention_efficiency": 0.55, "network_line_rate": 2.5e10}
})"},
    {"a100-80", R"({
  "name": "a100-80", "ranks_per_node": 8,
  "memory": "80GiB", "reserved_memory": "1.5GiB", "host_memory": "2TiB",
  "peak_flops": {"f32": 1.95e13, "tf32": 1.56e14, "bf16": 3.12e14, "f16": 3.12e14},
  "matmul_efficiency": 0.816,
  "memory_bandwidth": 2.039e12, "kernel_latency": 5e-6,
  "intra_node": {"latency": 3.2e-6, "bandwidth": 2.35e11,
                 "half_size": 4e6, "own_part": 0.195},
  "inter_node": {"latency": 6.87e-05, "bandwidth": 6.19e+09},
  "host_to_device": {"latency": 1e-5, "bandwidth": 2.5e10},
  "device_to_host": {"latency": 1e-5, "bandwidth": 2.5e10},
  "disk_read": {"latency": 1e-4, "bandwidth": 1.25e9},
  "disk_write": {"latency": 1e-4, "bandwidth": 6.25e8},
  "host_bandwidth": 4.1e10, "host_flops": 1.15e12,
  "constants": {"matmul_half_rows": 620, "matmul_half_dim": 59.8,
                "overlap_slowdown": 0.148, "channel_sharing": 0.702,
                "attention_efficiency": 0.55, "network_line_rate": 2.5e10}
})"},
    {"h100", R"({
  "name": "h100", "ranks_per_node": 8,
  "memory": "80GiB", "reserved_memory": "1.5GiB", "host_memory": "2TiB",
  "peak_flops": {"f32": 6.69e13, "tf32": 4.945e14, "bf16": 9.894e14, "f16": 9.894e14, "f8": 1.9789e15},
  "matmul_efficiency": 0.62,
  "memory_bandwidth": 3.35e12, "kernel_latency": 4e-6,
  "intra_node": {"latency": 4.3e-6, "bandwidth": 3.62e11, "own_part": 0.352,
                 "all_reduce": {"latency": 2.2e-6, "bandwidth": 4.67e11, "own_part": 0}},
  "inter_node": {"latency": 6.87e-05, "bandwidth": 2.79e+10},
  "host_to_device": {"latency": 1e-5, "bandwidth": 5.48e10},
  "device_to_host": {"latency": 1e-5, "bandwidth": 4.68e10},
  "disk_read": {"latency": 1e-4, "bandwidth": 3.4e9},
  "disk_write": {"latency": 1e-4, "bandwidth": 1.4e9},
  "host_bandwidth": 6.1e10, "host_flops": 1.8e12,
  "constants": {"matmul_half_rows": 620, "matmul_half_dim": 59.8,
                "overlap_slowdown": 0.148, "channel_sharing": 0.702,
                "attention_efficiency": 0.34, "f8_efficiency": 0.882,
                "network_line_rate": 5e10}
})"},
    {"h100-96", R"({
  "base": "h100", "name": "h100-96",
  "memory": "96GB", "memory_bandwidth": 2.4e12, "matmul_efficiency": 0.463
})"},
    {"h200", R"({
  "base": "h100", "name": "h200",
  "memory": "141GB", "memory_bandwidth": 4.8e12,
  "host_to_device": {"bandwidth": 5.54e10},
  "device_to_host": {"bandwidth": 5.51e10}
})"},
    {"b200", R"({
  "base": "h100", "name": "b200",
  "memory": "180GB", "memory_bandwidth": 8e12,
  "peak_flops": {"f32": 7.5e13, "tf32": 1.125e15, "bf16": 2.25e15, "f16": 2.25e15, "f8": 4.5e15},
  "matmul_efficiency": 0.598,
  "intra_node": {"latency": 4.3e-6, "bandwidth": 6.82e11,
                 "all_reduce": {"latency": 2.2e-6, "bandwidth": 8.38e11}},
  "host_to_device": {"bandwidth": 5.54e10},
  "device_to_host": {"bandwidth": 5.51e10},
  "host_bandwidth": 7.2e10, "host_flops": 1.9e12
})"},
    {"gh200", R"({
  "base": "h100", "name": "gh200", "ranks_per_node": 1,
  "memory": "96GB", "memory_bandwidth": 4e12, "host_memory": "480GB",
  "host_to_device": {"latency": 5e-6, "bandwidth": 3.59e11},
  "device_to_host": {"latency": 5e-6, "bandwidth": 3.77e11},
  "host_bandwidth": 4.1e11, "host_flops": 7.1e12
})"},
    {"rtx4090-pcie", R"({
  "name": "rtx4090-pcie", "ranks_per_node": 8,
  "memory": "24GiB", "reserved_memory": "1GiB", "host_memory": "512GiB",
  "peak_flops": {"f32": 8.26e13, "tf32": 8.26e13, "bf16": 1.652e14, "f16": 1.652e14, "f8": 3.304e14},
  "matmul_efficiency": 0.85, "matmul_half_flops": 1e9,
  "memory_bandwidth": 1.008e12, "kernel_latency": 4e-6,
  "intra_node": {"latency": 1e-5, "bandwidth": 1.2e10},
  "inter_node": {"latency": 2e-5, "bandwidth": 3e9},
  "host_to_device": {"latency": 1e-5, "bandwidth": 2.5e10},
  "device_to_host": {"latency": 1e-5, "bandwidth": 2.5e10},
  "disk_read": {"latency": 1e-4, "bandwidth": 8e8},
  "disk_write": {"latency": 1e-4, "bandwidth": 6e8},
  "host_bandwidth": 4.1e10, "host_flops": 1.15e12
})"},
    {"this-cpu", R"({
  "name": "this-cpu", "ranks_per_node": 8,
  "memory": "8GiB", "host_memory": "64GiB",
  "peak_flops": {"f64": 4e10, "f32": 8e10, "bf16": 8e10, "f16": 2e10},
  "matmul_efficiency": 0.85, "matmul_half_flops": 1e6,
  "memory_bandwidth": 4e10, "kernel_latency": 2e-6,
  "intra_node": {"latency": 1e-5, "bandwidth": 3e9},
  "inter_node": {"latency": 5e-5, "bandwidth": 1e9},
  "host_to_device": {"latency": 2e-6, "bandwidth": 1.2e10},
  "device_to_host": {"latency": 2e-6, "bandwidth": 1.2e10},
  "disk_read": {"latency": 1e-4, "bandwidth": 1e9},
  "disk_write": {"latency": 1e-4, "bandwidth": 5e8},
  "host_bandwidth": 4e10, "host_flops": 2e10,
  "constants": {"processor_cores": 2}
})"},
};

std::vector<StringRef> mlir::zero::machinePresets() {
  std::vector<StringRef> names;
  for (const Preset &preset : presets)
    names.push_back(preset.name);
  return names;
}

StringRef mlir::zero::machinePresetText(StringRef name) {
  for (const Preset &preset : presets)
    if (preset.name == name)
      return preset.text;
  return {};
}
