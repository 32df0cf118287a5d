//===- ModelMode.cpp - zero-plan --model ----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plans the steps of a model that is known by its sizes.
//
//===----------------------------------------------------------------------===//

#include "Modes.h"
#include "PlanOutput.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace llvm;
using namespace mlir::zero;

static Error planError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

/// "d_model=4096,layers=32,heads=32,...": a model without a name.
static Expected<ModelShape> parseShape(StringRef text) {
  ModelShape shape;
  shape.name = "model";
  int64_t gated = 0, tied = -1, experts = 1, used = 0;
  std::pair<StringLiteral, int64_t *> fields[] = {
      {"d_model", &shape.hidden},
      {"layers", &shape.layers},
      {"heads", &shape.heads},
      {"kv_heads", &shape.kvHeads},
      {"ffn", &shape.ffn},
      {"vocab", &shape.vocab},
      {"positions", &shape.positions},
      {"experts", &experts},
      {"experts_used", &used},
      {"gated", &gated},
      {"tied", &tied},
  };
  SmallVector<StringRef> names;
  for (const auto &field : fields)
    names.push_back(field.first);
  SmallVector<StringRef> parts;
  text.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    auto [name, value] = part.split('=');
    auto *field = llvm::find_if(fields, [name = name.trim()](const auto &f) {
      return f.first == name;
    });
    if (field == std::end(fields)) {
      StringRef close = closestName(name.trim(), names);
      return planError("--shape: unknown size '" + name.trim() + "'" +
                       (close.empty()
                            ? "; known: " + join(names, ", ")
                            : "; did you mean '" + close.str() + "'?"));
    }
    if (value.trim().getAsInteger(10, *field->second) || *field->second < 0)
      return planError("--shape: " + name.trim() + " is '" + value +
                       "'; expected a whole number");
  }
  if (shape.kvHeads == 0)
    shape.kvHeads = shape.heads;
  if (shape.ffn == 0)
    shape.ffn = 4 * shape.hidden;
  shape.gated = gated != 0;
  shape.tied = tied < 0 ? !shape.gated : tied != 0;
  shape.experts = std::max<int64_t>(experts, 1);
  shape.expertsUsed = used > 0 ? std::min(used, shape.experts) : 1;
  std::string wrong = checkShape(shape);
  if (!wrong.empty())
    return planError("--shape: " + wrong);
  return shape;
}

static PlanRow makeRow(const StepPlanner &planner, StepConfig config,
                       const SearchSpace &space) {
  PlanRow row;
  row.config = config;
  row.estimate = planner.estimate(config);
  row.fits = space.fits(row.estimate.memory);
  row.notes =
      row.fits ? explainStep(planner, config, row.estimate, space.memoryBytes)
               : waysToFit(planner, config, space.memoryBytes);
  return row;
}

/// Rules for whole kinds as shares of a model's layers.
static StepOffload readOffload(ArrayRef<OffloadRule> rules, int64_t layers) {
  StepOffload offload;
  for (const OffloadRule &rule : rules) {
    OffloadShare *share =
        rule.kind == OffloadKind::Optimizer    ? &offload.optimizer
        : rule.kind == OffloadKind::Gradients  ? &offload.gradients
        : rule.kind == OffloadKind::Parameters ? &offload.parameters
                                               : &offload.activations;
    share->disk = rule.memory == Memory::Disk;
    share->layers = rule.memory == Memory::Device ? 0
                    : rule.ratio >= 1
                        ? -1
                        : static_cast<int64_t>(rule.ratio * layers);
  }
  return offload;
}

/// A row for each stage, or for the one that was asked for.
static void planStages(const ModelQuestion &question, PlanAnswer &answer) {
  const StepPlanner &planner = *answer.planner;
  for (int64_t stage = 0; stage <= 3; ++stage) {
    if (question.space.stage && *question.space.stage != stage)
      continue;
    StepConfig config = question.space.base;
    config.stage = stage;
    config.batch = question.space.batch.value_or(1);
    config.replicas = question.space.replicas.value_or(1);
    config.recompute = question.space.recompute.value_or(Recompute::None);
    if (stage != 3)
      config.keepLayers = 0;
    if (question.space.offload)
      config.offload =
          chooseOffload(planner, config, question.space, /*coarse=*/false)
              .value_or(StepOffload());
    answer.rows.push_back(makeRow(planner, config, question.space));
    const PlanRow &row = answer.rows.back();
    if (row.fits &&
        (answer.best < 0 ||
         row.estimate.time.step < answer.rows[answer.best].estimate.time.step))
      answer.best = answer.rows.size() - 1;
  }
}

/// The fastest plans that fit.
static void planBest(const ModelQuestion &question, PlanAnswer &answer) {
  auto begin = std::chrono::steady_clock::now();
  SearchResult found = searchPlans(*answer.planner, question.space);
  if (question.stats) {
    std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - begin;
    errs() << formatv("configurations={0} timed={1} seconds={2:f4} "
                      "configurations_per_s={3:f0}\n",
                      found.tried, found.timed, seconds.count(),
                      found.tried / seconds.count());
  }
  answer.notes.push_back(
      formatv("tried {0} plans, {1} of them fit", found.tried, found.timed));
  for (const RankedPlan &plan : found.plans) {
    if (answer.rows.size() == question.rows)
      break;
    answer.rows.push_back(
        makeRow(*answer.planner, plan.config, question.space));
  }
  answer.best = answer.rows.empty() ? -1 : 0;
  // Nothing fits: show the smallest, and by how much it is too large.
  if (answer.rows.empty() && found.tried > 0)
    answer.rows.push_back(
        makeRow(*answer.planner, found.smallest, question.space));
}

/// Writes the timeline of the best plan where it was asked for.
static Error writePictures(const ModelQuestion &question,
                           const PlanAnswer &answer) {
  if (question.report.empty() && question.trace.empty())
    return Error::success();
  if (answer.best < 0)
    return planError("no plan fits: there is nothing to draw");
  const PlanRow &row = answer.rows[answer.best];
  constexpr int64_t mostDrawn = 64;
  if (row.config.accumulate > mostDrawn)
    return planError(
        formatv("--report and --trace draw up to {0} micro-batches, "
                "not {1}",
                mostDrawn, row.config.accumulate));
  Timeline timeline =
      predictedTimeline(*answer.planner, row.config, answer.memoryBytes);
  timeline.notes = row.notes;
  return writeTimelineFiles(timeline, question.trace, question.report);
}

static Expected<int> answerQuestion(const ModelQuestion &asked) {
  Expected<ModelShape> shape =
      asked.shape.empty() ? findModel(asked.model) : parseShape(asked.shape);
  if (!shape)
    return shape.takeError();
  ModelQuestion question = asked;
  question.space.base.offload = readOffload(asked.offload, shape->layers);
  StepConfig check = question.space.base;
  check.stage = question.space.stage.value_or(3);
  check.replicas = question.space.replicas.value_or(1);
  check.batch = question.space.batch.value_or(1);
  std::string wrong = checkConfig(*shape, check);
  if (!wrong.empty())
    return planError(wrong);
  StepPlanner planner(*shape, CostModel(question.machine), *question.software);
  PlanAnswer answer;
  answer.planner = &planner;
  answer.memoryBytes = question.space.memoryBytes;
  answer.notes = question.notes;
  if (question.search)
    planBest(question, answer);
  else
    planStages(question, answer);
  if (answer.rows.empty())
    return planError(formatv("--global-batch {0} is no multiple of {1} ranks",
                             question.space.globalBatch, check.ranks));
  if (question.json)
    printJson(answer, outs());
  else
    printTable(answer, outs());
  if (Error error = writePictures(question, answer))
    return error;
  if (answer.best >= 0)
    return 0;
  const PlanRow &row = answer.rows.back();
  int64_t over = row.estimate.memory.total() - answer.memoryBytes;
  if (over <= 0)
    return planError(formatv(
        "no plan fits: {0} of host memory are needed, {1} more than the {2} of "
        "a rank; an --offload-path, more ranks or a smaller model would help",
        formatBytes(row.estimate.memory.host),
        formatBytes(row.estimate.memory.host - question.space.hostBytes),
        formatBytes(question.space.hostBytes)));
  return planError(formatv("no plan fits into {0}: {1} are missing{2}{3}",
                           formatBytes(answer.memoryBytes), formatBytes(over),
                           row.notes.empty()
                               ? "; more ranks or a smaller model would help"
                               : "; would fit: ",
                           join(row.notes, "; ")));
}

int mlir::zero::runModel(const ModelQuestion &question) {
  Expected<int> status = answerQuestion(question);
  if (status)
    return *status;
  outs().flush();
  errs() << "zero-plan: " << toString(status.takeError()) << '\n';
  return 1;
}

int mlir::zero::runState(double params, int64_t ranks, bool json) {
  static constexpr Precision kinds[] = {Precision::Mixed, Precision::F32,
                                        Precision::Bf16};
  if (json)
    outs() << formatv("{{\"params\": {0:f0}, \"ranks\": {1}", params, ranks);
  else
    outs() << formatv("{0:f0} parameters on {1} ranks: parameters, gradients "
                      "and Adam states of a rank\n{2,-8}{3,16}{4,16}{5,16}"
                      "{6,16}\n",
                      params, ranks, "", "stage 0", "stage 1", "stage 2",
                      "stage 3");
  for (Precision kind : kinds) {
    if (json)
      outs() << formatv(", \"{0}\": [", precisionName(kind));
    else
      outs() << formatv("{0,-8}", precisionName(kind));
    for (int64_t stage = 0; stage <= 3; ++stage) {
      double bytes = stateBytes(params, ranks, stage, kind).total();
      if (json)
        outs() << (stage ? ", " : "") << formatv("{0:f0}", bytes);
      else
        outs() << formatv("{0,16}", formatv("{0:f4} GB", bytes / 1e9).str());
    }
    outs() << (json ? "]" : "\n");
  }
  if (json)
    outs() << "}\n";
  return 0;
}
