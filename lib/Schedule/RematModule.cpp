//===- RematModule.cpp - Recomputation in a module's steps ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Joins the fronts of a module's step functions, and explains choices.
//
//===----------------------------------------------------------------------===//

#include "zero/Schedule/RematModule.h"

#include "RematStep.h"
#include "ScheduleRemarks.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::zero;

static FailureOr<SmallVector<StepPhases>> getPhases(ModuleOp module,
                                                    SymbolTable &symbols) {
  if (Attribute stage = module->getAttr(kStageAttr))
    return emitError(module.getLoc())
           << "is partitioned, at stage " << stage
           << "; recomputation is decided before zero-partition";
  return findPhases(module, symbols);
}

//===----------------------------------------------------------------------===//
// Levels
//===----------------------------------------------------------------------===//

/// How often a step runs `func`: the function of the micro-batches before the
/// last once for each of these.
static int64_t countRuns(FunctionOpInterface func, ModuleOp module) {
  auto count = module->getAttrOfType<IntegerAttr>(kMicroBatchesAttr);
  return count && func.getName() == kAccumulateName ? count.getInt() - 1 : 1;
}

static void add(RematLevel &level, const RematPoint &point, int64_t runs) {
  level.peakBytes = std::max(level.peakBytes, point.peakBytes);
  level.seconds += point.seconds * runs;
  level.choices.push_back(point);
}

const RematLevel &RematLevels::within(int64_t bytes) const {
  for (const RematLevel &level : levels)
    if (level.peakBytes <= bytes)
      return level;
  return levels.back();
}

/// One level for each memory at which some function has another choice.
static RematLevels joinFronts(ArrayRef<RematFront> fronts,
                              ArrayRef<int64_t> runs) {
  std::vector<int64_t> peaks;
  int64_t selective = 0;
  for (const RematFront &front : fronts) {
    for (const RematPoint &point : front.points)
      peaks.push_back(point.peakBytes);
    selective = std::max(selective, front.points[front.selective].peakBytes);
  }
  llvm::sort(peaks, std::greater<>());
  peaks.erase(llvm::unique(peaks), peaks.end());
  RematLevels result;
  for (int64_t peak : peaks) {
    RematLevel level;
    for (auto [front, count] : llvm::zip_equal(fronts, runs))
      add(level, front.points[front.within(peak)], count);
    if (!result.levels.empty() &&
        level.peakBytes >= result.levels.back().peakBytes)
      continue;
    if (peak >= selective)
      result.selective = result.levels.size();
    result.levels.push_back(std::move(level));
  }
  if (peaks.empty()) // no step function
    result.levels.emplace_back();
  return result;
}

FailureOr<RematLevels>
zero::findRematLevels(ModuleOp module, const CostModel &cost, int64_t stage) {
  SymbolTable symbols(module);
  FailureOr<SmallVector<StepPhases>> phases = getPhases(module, symbols);
  if (failed(phases))
    return failure();
  std::vector<RematFront> fronts;
  std::vector<int64_t> runs;
  RematLevel perLayer;
  for (StepPhases &part : *phases) {
    runs.push_back(countRuns(part.func, module));
    RematStep step = buildRematStep(std::move(part), symbols, cost, stage);
    fronts.push_back(rematFront(step.graph));
    add(perLayer, rematPerLayer(step.graph), runs.back());
  }
  RematLevels levels = joinFronts(fronts, runs);
  levels.perLayer = std::move(perLayer);
  return levels;
}

//===----------------------------------------------------------------------===//
// One level
//===----------------------------------------------------------------------===//

namespace {
/// What is computed again of one layer.
struct LayerSummary {
  Operation *first = nullptr;
  llvm::MapVector<StringRef, int64_t> ops; ///< how many, by name
  int64_t bytes = 0;                       ///< not held for the backward pass
  double seconds = 0;
};
} // namespace

/// "2 layer_norm, 1 gelu".
static std::string listOps(const LayerSummary &layer) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (auto &[name, count] : layer.ops)
    os << (text.empty() ? "" : ", ") << count << " " << name;
  return text;
}

static void explain(const RematStep &step, const RematPoint &point) {
  remark::RemarkOpts options =
      remark::RemarkOpts::name("recomputed").category("train-remat");
  std::vector<LayerSummary> layers(step.layers.size());
  for (auto [i, node] : llvm::enumerate(step.graph.nodes)) {
    if (!point.recomputed[i])
      continue;
    LayerSummary &layer = layers[node.layer];
    layer.first = layer.first ? layer.first : step.ops[i];
    ++layer.ops[step.ops[i]->getName().stripDialect()];
    layer.bytes += node.uses.empty() ? 0 : node.bytes;
    layer.seconds += node.seconds;
  }
  for (auto [name, layer] : llvm::zip(step.layers, layers))
    if (layer.first)
      remark::passed(layer.first->getLoc(), options)
          << ("the backward pass computes " + listOps(layer) + " of layer '" +
              name + "' again: " + describeBytes(layer.bytes) +
              " are not held, for " + describeSeconds(layer.seconds));
  RematPoint none = rematNone(step.graph);
  remark::analysis(step.phases.func->getLoc(),
                   remark::RemarkOpts::name("plan").category("train-remat"))
      << ("values take " + describeBytes(point.peakBytes) +
          " at the peak instead of " + describeBytes(none.peakBytes) +
          ", for " + describeSeconds(point.seconds) + " of computing again");
}

FailureOr<int64_t> zero::applyRematLevel(ModuleOp module,
                                         const RematLevel &level,
                                         const CostModel &cost, int64_t stage) {
  SymbolTable symbols(module);
  FailureOr<SmallVector<StepPhases>> phases = getPhases(module, symbols);
  if (failed(phases))
    return failure();
  int64_t count = 0;
  for (auto [part, point] : llvm::zip_equal(*phases, level.choices)) {
    RematStep step = buildRematStep(std::move(part), symbols, cost, stage);
    count += llvm::count(point.recomputed, true);
    if (module.getContext()->getRemarkEngine())
      explain(step, point);
    applyRemat(step, point);
  }
  Builder builder(module.getContext());
  module->setAttr(kRecomputedAttr, builder.getI64IntegerAttr(count));
  module->setAttr(kRecomputedSecondsAttr,
                  builder.getF64FloatAttr(level.seconds));
  return count;
}
