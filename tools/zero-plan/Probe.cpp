//===- Probe.cpp - Timing the commands of a plan --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Probe.h.
//
//===----------------------------------------------------------------------===//

#include "Probe.h"

#include "dialects/Plan/Plan.h"
#include "zero-rt/Session.h"
#include "zero/Autodiff/TrainStep.h"
#include "zero/Lowering/Kernels.h"
#include "zero/Lowering/Plan.h"
#include "zero/Lowering/PlanTimeline.h"
#include "zero/Pipelines.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::zero;

static constexpr int kWarmUp = 2, kSteps = 7;

namespace {
/// A session on a probe's plan.
class ProbeRun {
public:
  llvm::Error start(const std::string &bytes);
  /// Milliseconds of every command: the median over steps, of collectives on
  /// the rank that waited least, of others the mean over ranks.
  llvm::Expected<std::vector<double>> time(llvm::ArrayRef<ProbeSample> samples);

private:
  llvm::Error setInputs();
  llvm::Error step();

  zrt::Program program;
  zrt::Session session;
  zrt_program_info info;
  int64_t count = 0;
};
} // namespace

static llvm::Error toError(const zrt::Status &status) {
  if (status)
    return llvm::createStringError("calibration: " + status.message());
  return llvm::Error::success();
}

llvm::Error ProbeRun::start(const std::string &bytes) {
  if (auto error = toError(program.loadBytes(bytes.data(), bytes.size())))
    return error;
  info = program.info();
  return toError(session.create(program));
}

/// Tokens that spread over the vocabulary, the same in every run.
llvm::Error ProbeRun::setInputs() {
  float learningRate = 1e-3f;
  for (uint32_t i = 0; i < info.num_inputs; ++i) {
    zrt_input_info input = program.input(i);
    std::vector<int64_t> tokens(input.bytes / sizeof(int64_t));
    for (size_t t = 0; t < tokens.size(); ++t)
      tokens[t] = int64_t(t * 2654435761u % uint64_t(input.max + 1));
    const void *data = tokens.data();
    if (input.role == ZRT_INPUT_LEARNING_RATE)
      data = &learningRate;
    else if (input.role == ZRT_INPUT_STEP)
      data = &count;
    if (auto error =
            toError(session.setInput(i, ZRT_ALL_RANKS, data, input.bytes)))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error ProbeRun::step() {
  ++count;
  session.resetCounters();
  if (auto error = setInputs())
    return error;
  return toError(session.step());
}

llvm::Expected<std::vector<double>>
ProbeRun::time(llvm::ArrayRef<ProbeSample> samples) {
  std::vector<std::vector<double>> all(samples.size());
  std::vector<double> own(samples.size());
  for (int i = 0; i < kWarmUp + kSteps; ++i) {
    if (auto error = step())
      return error;
    std::vector<double> sum(samples.size(), 0), least(samples.size(), 1e30);
    for (uint32_t rank = 0; rank < info.ranks; ++rank) {
      if (auto error = toError(zrt_session_command_ms(session.get(), rank,
                                                      own.data(), own.size())))
        return error;
      for (size_t c = 0; c < own.size(); ++c) {
        sum[c] += own[c] / info.ranks;
        least[c] = std::min(least[c], own[c]);
      }
    }
    for (size_t c = 0; i >= kWarmUp && c < own.size(); ++c)
      all[c].push_back(samples[c].kind == TaskKind::Compute ? sum[c]
                                                            : least[c]);
  }
  std::vector<double> median;
  for (std::vector<double> &times : all) {
    std::nth_element(times.begin(), times.begin() + kSteps / 2, times.end());
    median.push_back(times[kSteps / 2]);
  }
  return median;
}

/// The plan of a probe's training step.
static LogicalResult planProbe(ModuleOp module, int64_t stage, int64_t ranks) {
  train::TrainStepOptions step;
  step.loss = "causal-lm";
  step.labels = "input";
  if (failed(train::buildTrainStep(module, step)))
    return failure();
  ZeroOptions options;
  options.stage = stage;
  options.ranks = ranks;
  options.schedule = false;
  PassManager passes(module.getContext());
  buildZeroPipeline(passes, options);
  buildPlanPipeline(passes);
  return passes.run(module);
}

/// What the commands have to do, in the order of the file.
static std::vector<ProbeSample> describeCommands(plan::ProgramOp program) {
  std::vector<ProbeSample> samples;
  for (Operation &op : program.getBody().front()) {
    if (!isa<plan::CommandOpInterface>(op) || isa<plan::ReleaseOp>(op))
      continue;
    auto command = cast<plan::CommandOpInterface>(op);
    ProbeSample sample;
    sample.kind = getCommandKind(command);
    if (auto collective = dyn_cast<plan::CollectiveOpInterface>(op))
      sample.wholeBytes = getWholeBytes(collective);
    else
      sample.work = getCommandWork(command);
    samples.push_back(sample);
  }
  return samples;
}

llvm::Expected<std::vector<ProbeSample>>
mlir::zero::runProbe(MLIRContext &context, const ProbeShape &shape,
                     int64_t stage, int64_t ranks) {
  OwningOpRef<ModuleOp> module = buildProbeModel(context, shape);
  std::string bytes;
  if (failed(planProbe(*module, stage, ranks)))
    return llvm::createStringError("calibration: the probe does not compile");
  auto program = *module->getOps<plan::ProgramOp>().begin();
  std::vector<ProbeSample> samples = describeCommands(program);
  FailureOr<KernelTarget> target = KernelTarget::host();
  if (failed(target) || failed(writeZplan(*module, *target, bytes)))
    return llvm::createStringError("calibration: the probe does not compile");
  ProbeRun run;
  if (auto error = run.start(bytes))
    return error;
  auto times = run.time(samples);
  if (!times)
    return times.takeError();
  for (auto [sample, ms] : llvm::zip_equal(samples, *times))
    sample.seconds = ms / 1000;
  return samples;
}
