//===- Validate.cpp - Predictions beside measured steps ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Validate.h.
//
//===----------------------------------------------------------------------===//

#include "zero/Planner/Validate.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

using namespace llvm;
using namespace mlir::zero;

// Hashes of the rows that constants were fitted on, in order.
static constexpr uint64_t fittedRows[] = {
#include "FittedRows.inc"
};

uint64_t mlir::zero::measuredStepHash(const MeasuredStep &step) {
  const ModelShape &shape = step.shape;
  const StepConfig &config = step.config;
  uint64_t hash = 1469598103934665603ull; // FNV-1a
  auto add = [&](uint64_t value) {
    for (int byte = 0; byte != 8; ++byte) {
      hash ^= (value >> (8 * byte)) & 0xff;
      hash *= 1099511628211ull;
    }
  };
  for (StringRef text :
       {StringRef(step.software->name), StringRef(step.machine)})
    for (char c : text)
      add(static_cast<uint8_t>(c));
  for (int64_t value :
       {shape.hidden, shape.layers, shape.heads, shape.kvHeads, shape.ffn,
        shape.vocab, int64_t(shape.gated), config.ranks, config.stage,
        config.seq, config.batch, config.accumulate, int64_t(config.precision),
        int64_t(config.recompute), config.recomputeLayers})
    add(static_cast<uint64_t>(value));
  return hash;
}

bool mlir::zero::isFittedStep(const MeasuredStep &step) {
  return std::binary_search(std::begin(fittedRows), std::end(fittedRows),
                            measuredStepHash(step));
}

double mlir::zero::predictStep(const MeasuredStep &step, Machine machine,
                               const Software &software) {
  if (step.ranksPerNode > 0)
    machine.ranksPerNode = step.ranksPerNode;
  double line = machine.constant("network_line_rate");
  if (step.lineRate > 0 && line > 0)
    machine.interNode.bandwidth *= step.lineRate / line;
  StepPlanner planner(step.shape, CostModel(std::move(machine)), software);
  return planner.time(step.config).step;
}

/// The value that `part` of the sorted values do not exceed (nearest rank).
static double quantile(ArrayRef<double> sorted, double part) {
  if (sorted.empty())
    return 0;
  size_t rank = static_cast<size_t>(std::ceil(part * sorted.size()));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

ErrorSummary mlir::zero::summarizeErrors(std::vector<double> errors) {
  ErrorSummary summary;
  summary.rows = errors.size();
  for (double &error : errors) {
    summary.biasPercent += 100 * error / errors.size();
    error = 100 * std::abs(error);
  }
  llvm::sort(errors);
  size_t half = errors.size() / 2;
  if (!errors.empty()) {
    summary.medianPercent = errors.size() % 2
                                ? errors[half]
                                : (errors[half - 1] + errors[half]) / 2;
    summary.maxPercent = errors.back();
  }
  summary.p95Percent = quantile(errors, 0.95);
  return summary;
}

static bool sameModelAndMachine(const MeasuredStep &a, const MeasuredStep &b) {
  const ModelShape &x = a.shape, &y = b.shape;
  return a.gpu == b.gpu && x.hidden == y.hidden && x.layers == y.layers &&
         x.heads == y.heads && x.kvHeads == y.kvHeads && x.ffn == y.ffn &&
         x.vocab == y.vocab && x.gated == y.gated;
}

double mlir::zero::pairOrderPercent(ArrayRef<MeasuredStep> steps,
                                    ArrayRef<double> predicted) {
  int64_t pairs = 0, kept = 0;
  for (size_t i = 0; i != steps.size(); ++i)
    for (size_t j = 0; j != i; ++j) {
      if (steps[i].seconds == steps[j].seconds ||
          !sameModelAndMachine(steps[i], steps[j]))
        continue;
      ++pairs;
      kept += (steps[i].seconds < steps[j].seconds)
                  ? predicted[i] < predicted[j]
                  : predicted[j] < predicted[i];
    }
  return pairs ? 100.0 * kept / pairs : 100.0;
}
