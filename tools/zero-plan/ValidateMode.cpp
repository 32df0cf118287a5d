//===- ValidateMode.cpp - zero-plan --validate ----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Predicts the steps of a table and says how far off the predictions are.
//
//===----------------------------------------------------------------------===//

#include "Modes.h"

#include "zero/Planner/Validate.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace mlir::zero;

static void printRow(const MeasuredStep &step, double predicted) {
  const StepConfig &config = step.config;
  std::string again = recomputeName(config.recompute).str();
  if (config.recomputeLayers >= 0)
    again += formatv("({0})", config.recomputeLayers).str();
  outs() << formatv(
      "{0,5} {1,-20} {2,-12} {3,-10} {4,5} {5} {6,6} {7,9} {8,-9} {9,-5} "
      "{10,9} {11,9} {12,7} {13}\n",
      step.line, StringRef(step.software->name).take_front(20), step.model,
      step.machine, config.ranks, config.stage, config.seq,
      formatv("{0}x{1}", config.batch, config.accumulate).str(), again,
      precisionName(config.precision), formatv("{0:f4}", step.seconds).str(),
      formatv("{0:f4}", predicted).str(),
      formatv("{0:f1}", 100 * (predicted / step.seconds - 1)).str(),
      isFittedStep(step) ? "fitted" : "");
}

static void printSummary(StringRef name, StringRef rows,
                         std::vector<double> errors) {
  if (errors.empty())
    return;
  ErrorSummary s = summarizeErrors(std::move(errors));
  outs() << formatv("{0,-32} {1,-10} {2,5} {3,8} {4,8} {5,8} {6,8}\n", name,
                    rows, s.rows, formatv("{0:f2}", s.medianPercent).str(),
                    formatv("{0:f2}", s.p95Percent).str(),
                    formatv("{0:f2}", s.maxPercent).str(),
                    formatv("{0:f2}", s.biasPercent).str());
}

int mlir::zero::runValidate(StringRef file, const Machine *machine) {
  Expected<std::vector<MeasuredStep>> steps =
      readMeasuredSteps(file, /*anyMachine=*/machine != nullptr);
  if (!steps) {
    errs() << "zero-plan: " << toString(steps.takeError()) << '\n';
    return 1;
  }
  outs() << formatv("{0,5} {1,-20} {2,-12} {3,-10} {4,5} {5} {6,6} {7,9} "
                    "{8,-9} {9,-5} {10,9} {11,9} {12,7}\n",
                    "line", "software", "model", "machine", "ranks", "Z", "seq",
                    "batch", "recompute", "types", "measured", "predicted",
                    "error %");
  using Errors = std::vector<double>;
  std::map<std::string, std::pair<Errors, Errors>> bySource;
  Errors all;
  std::vector<double> predictions;
  std::vector<std::string> notes;
  for (MeasuredStep &step : *steps) {
    if (machine)
      step.machine = machine->name;
    Machine used = machine ? *machine : cantFail(loadMachine(step.machine));
    double predicted = predictStep(step, std::move(used), *step.software);
    predictions.push_back(predicted);
    printRow(step, predicted);
    double error = predicted / step.seconds - 1;
    auto &[fitted, others] =
        bySource[(step.software->name + " on " + step.machine).str()];
    (isFittedStep(step) ? fitted : others).push_back(error);
    all.push_back(error);
    std::string note = step.note;
    int64_t params = step.shape.size(step.config.seq);
    if (note.empty() && step.params > 0 && step.params != params)
      note = formatv("line {0}: {1} has {2} parameters, as published {3}",
                     step.line, step.model, params, step.params);
    if (!note.empty() && !is_contained(notes, note))
      notes.push_back(note);
  }
  outs() << formatv("\n{0,-32} {1,-10} {2,5} {3,8} {4,8} {5,8} {6,8}\n",
                    "absolute error in percent", "", "rows", "median", "p95",
                    "max", "bias");
  Errors unseen;
  for (const auto &[name, errors] : bySource) {
    printSummary(name, "fitted", errors.first);
    printSummary(name, "not fitted", errors.second);
    unseen.insert(unseen.end(), errors.second.begin(), errors.second.end());
  }
  printSummary("all", "not fitted", unseen);
  printSummary("all", "", all);
  for (const std::string &note : notes)
    outs() << "note: " << note << '\n';
  ErrorSummary s = summarizeErrors(all);
  outs() << formatv("rows={0} median_abs_error_percent={1:f2} "
                    "p95_abs_error_percent={2:f2} pair_order_percent={3:f2}\n",
                    s.rows, s.medianPercent, s.p95Percent,
                    pairOrderPercent(*steps, predictions));
  return 0;
}
