//===- TrainingLoop.cpp - The steps of a training run ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which samples a step sees, its micro-batches, and what is shown of it.
//
//===----------------------------------------------------------------------===//

#include "Terminal.h"
#include "Training.h"

#include <chrono>
#include <stdexcept>
#include <unistd.h>

using namespace zero_tools;

using Clock = std::chrono::steady_clock;

static double msSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start)
      .count();
}

/// Steps that go once through what is left of the data, after those done.
static int64_t stepsOnce(int64_t done, int64_t used, int64_t samples,
                         int64_t samplesPerStep) {
  // A step without data inputs has no samples to run out of.
  if (samplesPerStep <= 0 || samples <= 0)
    return 1;
  return done + std::max<int64_t>(0, (samples - used) / samplesPerStep);
}

void Training::openCheckpoints() {
  checkpointOptions.folder = options.checkpoint;
  checkpointOptions.every = options.checkpointEvery.value_or(0);
  checkpointOptions.keep = options.keepCheckpoints.value_or(0);
  checkpointOptions.resume = options.resume;
  // What is on disk may be more than memory has room for a copy of.
  checkpointOptions.synchronous =
      options.checkpointSync ||
      zrt_program_planned_bytes(program.get(), ZRT_DISK) > 0;
  checkpointOptions.seed = options.seed;
  checkpoints = std::make_unique<Checkpointing>(
      checkpointOptions, program, session,
      [this](const std::string &text) {
        if (!first())
          return;
        progress.clear();
        printMessage("note", text);
      },
      group);
}

void Training::run() {
  ResumePoint at = checkpoints->resume();
  // A job that is started again has the command line of its first start.
  if (at.resumed && !options.weights.empty() && first())
    printMessage("note", "--weights has no effect: all weights are those of "
                         "the checkpoint");
  startStep = at.step;
  startSample = at.firstSample;
  seed = at.seed.value_or(0);
  numSteps = options.steps.value_or(
      stepsOnce(startStep, startSample, data->samples(),
                info.samples_per_rank * int64_t(info.ranks) * microBatches));
  if (at.resumed && numSteps <= startStep && first())
    printMessage("note", nothingToDo());
  if (first()) {
    openLogs(startStep, startSample);
    progress.begin(startStep, numSteps);
  }
  for (int64_t step = startStep; step < numSteps; ++step) {
    runStep(step);
    if (first())
      show(step);
    if (checkpoints->afterStep(step + 1))
      break;
  }
  checkpoints->finish();
  if (!first())
    return;
  progress.clear();
  printSummary();
}

/// Why a run that goes on has no step.
std::string Training::nothingToDo() const {
  return "nothing to do: the checkpoint is after step " +
         std::to_string(startStep) + ", " +
         (options.steps
              ? "and --steps " + std::to_string(*options.steps) +
                    " ends no later"
              : std::string("and no step is left in the data; --steps K goes "
                            "through it again"));
}

void Training::openLogs(int64_t resumedAt, int64_t samplesAtResume) {
  if (!options.metrics.empty())
    metricsFile =
        std::make_unique<zrt::MetricsFile>(options.metrics, resumedAt, warn);
  LogOptions log;
  log.kinds = options.logs;
  log.folder = options.logDir;
  log.names = options.metricNames;
  log.ranks = info.ranks;
  log.memoryLimit = memoryLimit();
  log.resumedAt = resumedAt;
  log.samplesAtResume = samplesAtResume;
  log.warn = warn;
  logs = std::make_unique<Logs>(log);
  StepLineOptions line;
  line.every = options.logEvery;
  line.ranks = info.ranks;
  line.memoryLimit = memoryLimit();
  line.colors = showsColors(STDOUT_FILENO);
  stepLine = std::make_unique<StepLine>(line);
}

int64_t Training::firstSample(int64_t step, int64_t micro,
                              uint32_t rank) const {
  zrt::BatchPosition at{step - startStep, micro, rank, microBatches,
                        info.ranks};
  return startSample + at.firstSample(info.samples_per_rank);
}

void Training::setInputs(int64_t step, int64_t micro) {
  float learningRate = float(options.learningRate);
  int64_t count = step + 1;
  auto give = [&](uint32_t input, int rank, const auto &value) {
    require(session.setInput(input, rank, &value, sizeof(value)));
  };
  for (uint32_t i = 0; i < info.num_inputs; ++i) {
    zrt_input_role role = program.input(i).role;
    if (role == ZRT_INPUT_LEARNING_RATE)
      give(i, ZRT_ALL_RANKS, learningRate);
    else if (role == ZRT_INPUT_STEP)
      give(i, ZRT_ALL_RANKS, count);
    else if (role == ZRT_INPUT_SEED)
      give(i, ZRT_ALL_RANKS, seed);
    for (uint32_t rank = 0; rank < info.ranks; ++rank)
      if (role == ZRT_INPUT_FIRST_SAMPLE && isLocal(rank))
        give(i, int(rank), firstSample(step, micro, rank));
  }
  for (size_t i = 0; i < dataInputs.size(); ++i) {
    scratch.resize(program.input(dataInputs[i]).bytes);
    for (uint32_t rank = 0; rank < info.ranks; ++rank) {
      if (!isLocal(rank))
        continue;
      data->read(i, firstSample(step, micro, rank), scratch.data());
      require(session.setInput(dataInputs[i], int(rank), scratch.data(),
                               scratch.size()));
    }
  }
}

void Training::runStep(int64_t step) {
  Clock::time_point start = Clock::now();
  session.resetCounters();
  current = {};
  current.step = step + 1;
  if (group)
    group->setPlace("step " + std::to_string(step + 1));
  for (int64_t micro = 0; micro < microBatches; ++micro) {
    Clock::time_point reading = Clock::now();
    setInputs(step, micro);
    current.dataMs += msSince(reading);
    bool last = micro + 1 == microBatches;
    zrt::Status failed = last ? session.step() : session.accumulate();
    if (failed.code() == ZRT_ERROR_PEER)
      require(failed);
    if (failed)
      throw std::runtime_error(options.model + ": step " +
                               std::to_string(step + 1) + ": " +
                               failed.message());
  }
  readOutputs(step);
  double wallMs = msSince(start);
  totalMs += wallMs;
  fillSpeeds(wallMs);
  fillTraffic();
  fillMemory();
  if (metricsFile)
    metricsFile->write(current);
  if (logs)
    logs->write(current);
}

void Training::show(int64_t step) {
  if (stepLine->add(current, /*last=*/step + 1 == numSteps)) {
    progress.clear();
    std::puts(stepLine->format().c_str());
    std::fflush(stdout);
  }
  char note[64];
  std::snprintf(note, sizeof(note), "loss %.6g", current.loss);
  progress.show(step + 1, note);
}

void Training::printSummary() const {
  int64_t steps = current.step ? current.step - startStep : 0;
  std::printf("%lld %s on %u %s, ZeRO stage %u", static_cast<long long>(steps),
              steps == 1 ? "step" : "steps", info.ranks,
              info.ranks == 1 ? "rank" : "ranks", info.stage);
  if (steps)
    std::printf(": loss %.6g to %.6g, %.4g ms a step", firstLoss, current.loss,
                totalMs / double(steps));
  if (current.skippedSteps)
    std::printf(", %lld skipped", static_cast<long long>(current.skippedSteps));
  std::puts("");
}
