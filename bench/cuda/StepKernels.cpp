//===- StepKernels.cpp - What kernels move and compute --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See describeKernels in StepData.h. A kernel moves each of its operands once:
// what it reads twice is its own fault.
//
//===----------------------------------------------------------------------===//

#include "StepData.h"

#include "runtime/core/Program.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

using namespace zrt;
using nlohmann::json;

namespace {
struct Sum {
  uint64_t runs = 0;
  double ms = 0, bytes = 0, flops = 0;
};
} // namespace

static double bytesOf(const Program &program, const Command &command) {
  double bytes = 0;
  for (const Operand &operand : command.operands) {
    // A broadcast dimension is read once.
    double elements = 1;
    for (size_t dim = 0; dim < operand.view.sizes.size(); ++dim)
      if (operand.view.strides[dim])
        elements *= double(operand.view.sizes[dim]);
    bytes +=
        elements * double(elementBytes(program.buffers[operand.buffer].dtype));
  }
  return bytes;
}

/// Of a matrix product: two for each element of the result and of k.
static double flopsOf(const Command &command) {
  if (command.callee != "matmul" || command.operands.size() < 3)
    return 0;
  return 2.0 * double(*elementCount(command.operands.back().view.sizes)) *
         double(command.operands[0].view.sizes.back());
}

static std::string nameOf(const Program &program, const Command &command) {
  std::string name = opName(command.op);
  if (command.op == fb::Op_Launch)
    return "launch " + command.callee;
  if (command.op != fb::Op_Call)
    return name;
  name += " " + command.callee;
  for (const Operand &operand : command.operands) {
    name += " ";
    for (size_t dim = 0; dim < operand.view.sizes.size(); ++dim)
      name += (dim ? "x" : "") + std::to_string(operand.view.sizes[dim]);
    name += dtypeName(program.buffers[operand.buffer].dtype);
  }
  return name;
}

std::string bench::describeKernels(const std::string &planPath,
                                   const std::vector<double> &commandMs,
                                   uint64_t steps) {
  std::shared_ptr<const Program> program = Program::fromFile(planPath);
  std::map<std::string, Sum> sums;
  for (size_t index = 0; index < program->commands.size(); ++index) {
    const Command &command = program->commands[index];
    if (command.host)
      continue;
    uint64_t runs = steps * program->timesPerStep(index);
    Sum &sum = sums[nameOf(*program, command)];
    sum.runs += runs;
    sum.ms += commandMs[index];
    sum.bytes += double(runs) * bytesOf(*program, command);
    sum.flops += double(runs) * flopsOf(command);
  }
  std::vector<std::pair<std::string, Sum>> sorted(sums.begin(), sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](auto &a, auto &b) { return a.second.ms > b.second.ms; });
  json list = json::array();
  for (const auto &[name, sum] : sorted) {
    if (sum.ms <= 0)
      continue;
    json entry = {{"name", name},
                  {"ms_per_step", sum.ms / double(steps)},
                  {"runs", sum.runs}};
    if (sum.bytes > 0)
      entry["gb_per_s"] = sum.bytes / sum.ms * 1e-6;
    if (sum.flops > 0)
      entry["tflop_per_s"] = sum.flops / sum.ms * 1e-9;
    list.push_back(entry);
  }
  return list.dump();
}
