//===- CostModel.cpp - Seconds of compute and collectives ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See CostModel.h; the formulas are explained in docs/planning.md.
//
//===----------------------------------------------------------------------===//

#include "zero/Cost/CostModel.h"

#include <algorithm>

using namespace llvm;
using namespace mlir::zero;

static StringRef collectiveName(TaskKind kind) {
  switch (kind) {
  case TaskKind::AllGather:
    return "all_gather";
  case TaskKind::ReduceScatter:
    return "reduce_scatter";
  case TaskKind::AllReduce:
    return "all_reduce";
  case TaskKind::Compute:
  case TaskKind::CopyIn:
  case TaskKind::CopyOut:
  case TaskKind::DiskRead:
  case TaskKind::DiskWrite:
  case TaskKind::HostCompute:
    break;
  }
  return {};
}

static const Link &linkOf(const Link &general,
                          const std::map<std::string, Link> &special,
                          TaskKind kind) {
  if (special.empty())
    return general;
  auto it = special.find(collectiveName(kind).str());
  return it == special.end() ? general : it->second;
}

/// The peak of `type`, or of the closest type that the machine knows.
static double peakOf(const Machine &machine, StringRef type) {
  static constexpr StringLiteral wider[] = {"i8",   "f8",  "f16", "bf16",
                                            "tf32", "f32", "f64"};
  auto it = machine.peakFlops.find(type.str());
  if (it != machine.peakFlops.end())
    return it->second;
  const auto *from = llvm::find(wider, type);
  if (from == std::end(wider))
    from = std::begin(wider);
  for (; from != std::end(wider); ++from) {
    it = machine.peakFlops.find(from->str());
    if (it != machine.peakFlops.end())
      return it->second;
  }
  return machine.peakFlops.empty() ? 1e9 : machine.peakFlops.begin()->second;
}

/// The part of the peak that a product of this shape reaches.
static double matmulEfficiency(const Machine &machine, const OpWork &work) {
  double efficiency = machine.matmulEfficiency;
  auto saturate = [&](double size, double half) {
    if (size > 0 && half > 0)
      efficiency *= size / (size + half);
  };
  saturate(work.flops, machine.matmulHalfFlops);
  saturate(work.m, machine.constant("matmul_half_rows"));
  saturate(work.n, machine.constant("matmul_half_dim"));
  saturate(work.k, machine.constant("matmul_half_dim"));
  if (work.type == "f8")
    efficiency *= machine.constant("f8_efficiency");
  return efficiency;
}

double CostModel::compute(const OpWork &work) const {
  double bandwidth =
      machine.memoryBandwidth * machine.constant("kernel_bandwidth_efficiency");
  double memory = work.bytes / bandwidth;
  double arithmetic = 0;
  if (work.cls == OpWork::Matmul && work.flops > 0)
    arithmetic = work.flops /
                 (peakOf(machine, work.type) * matmulEfficiency(machine, work));
  else if (work.cls == OpWork::Kernel)
    arithmetic =
        (work.flops +
         work.transcendentals * machine.constant("transcendental_flops")) /
        (peakOf(machine, "f32") * machine.constant("kernel_flops_efficiency"));
  return std::max(memory, arithmetic) + machine.kernelLatency;
}

double CostModel::collectiveLatency(TaskKind kind, RankGroup group) const {
  if (group.ranks <= 1)
    return 0;
  const Link &inner = linkOf(machine.intraNode, machine.intraNodeOf, kind);
  const Link &outer = linkOf(machine.interNode, machine.interNodeOf, kind);
  int64_t perNode = std::max<int64_t>(group.perNode, 1);
  int64_t nodes = (group.ranks + perNode - 1) / perNode;
  // A ring passes each node boundary once per round and node.
  double hops =
      (group.ranks - nodes) * inner.latency + (nodes - 1) * outer.latency;
  if (perNode > 1)
    hops += inner.halfSizeBytes / inner.bandwidth;
  if (nodes > 1)
    hops += outer.halfSizeBytes / (outer.bandwidth * perNode);
  return kind == TaskKind::AllReduce ? 2 * hops : hops;
}

double CostModel::collective(TaskKind kind, int64_t bytes,
                             RankGroup group) const {
  if (group.ranks <= 1 || collectiveName(kind).empty())
    return 0;
  const Link &inner = linkOf(machine.intraNode, machine.intraNodeOf, kind);
  const Link &outer = linkOf(machine.interNode, machine.interNodeOf, kind);
  int64_t perNode = std::max<int64_t>(group.perNode, 1);
  double factor = kind == TaskKind::AllReduce ? 2 : 1;
  double part = factor * bytes / group.ranks;
  double sent = part * (group.ranks - 1);
  double seconds =
      perNode > 1 ? (sent + part * inner.ownPart) / inner.bandwidth : 0;
  // All ranks of a node share its links to the others.
  if (group.ranks > perNode && outer.bandwidth > 0)
    seconds = std::max(seconds, sent / (outer.bandwidth * perNode));
  return seconds + collectiveLatency(kind, group);
}

/// The link of a copy, or null.
static const Link *copyLink(const Machine &machine, TaskKind kind) {
  const Link *link = nullptr;
  switch (kind) {
  case TaskKind::CopyIn:
    link = &machine.hostToDevice;
    break;
  case TaskKind::CopyOut:
    link = &machine.deviceToHost;
    break;
  case TaskKind::DiskRead:
    link = &machine.diskRead;
    break;
  case TaskKind::DiskWrite:
    link = &machine.diskWrite;
    break;
  case TaskKind::Compute:
  case TaskKind::AllGather:
  case TaskKind::ReduceScatter:
  case TaskKind::AllReduce:
  case TaskKind::HostCompute:
    break;
  }
  return link && link->bandwidth > 0 ? link : nullptr;
}

double CostModel::copyLatency(TaskKind kind) const {
  const Link *link = copyLink(machine, kind);
  return link ? link->latency + link->halfSizeBytes / link->bandwidth : 0;
}

double CostModel::copy(TaskKind kind, int64_t bytes) const {
  const Link *link = copyLink(machine, kind);
  return link ? bytes / link->bandwidth + copyLatency(kind) : 0;
}

double CostModel::hostCompute(const OpWork &work) const {
  double bandwidth = machine.hostBandwidth;
  if (bandwidth <= 0)
    bandwidth = machine.hostToDevice.bandwidth;
  if (bandwidth <= 0)
    bandwidth = machine.memoryBandwidth;
  double memory =
      work.bytes / (bandwidth * machine.constant("host_bandwidth_efficiency"));
  double arithmetic = 0;
  if (machine.hostFlops > 0)
    arithmetic = (work.flops + work.transcendentals *
                                   machine.constant("transcendental_flops")) /
                 machine.hostFlops;
  return std::max(memory, arithmetic) + machine.constant("host_latency");
}

RankGroup CostModel::group(int64_t ranks, int64_t stride) const {
  int64_t perNode = machine.ranksPerNode / std::max<int64_t>(stride, 1);
  return {ranks, std::clamp<int64_t>(perNode, 1, std::max<int64_t>(ranks, 1))};
}

int64_t mlir::zero::ringBytes(TaskKind kind, int64_t bytes, int64_t ranks) {
  switch (kind) {
  case TaskKind::AllGather:
  case TaskKind::ReduceScatter:
    return bytes / ranks * (ranks - 1);
  case TaskKind::AllReduce:
    return 2 * (bytes / ranks * (ranks - 1));
  case TaskKind::Compute:
  case TaskKind::CopyIn:
  case TaskKind::CopyOut:
  case TaskKind::DiskRead:
  case TaskKind::DiskWrite:
  case TaskKind::HostCompute:
    return 0;
  }
  return 0;
}
