//===- Training.cpp - The loop of a training run --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Data, steps and metrics of a run; initial values and saved weights are in
// TrainingWeights.cpp.
//
//===----------------------------------------------------------------------===//

#include "Training.h"

#include "runtime/io/Files.h"
#include "runtime/io/Json.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <unistd.h>

using namespace zero_tools;

void zero_tools::require(const zrt::Status &status) {
  if (status)
    throw std::runtime_error(status.message());
}

Training::Training(const RunOptions &options, const zrt::Program &program,
                   const std::string &initFolder,
                   std::function<void(const std::string &)> warn)
    : options(options), program(program), info(program.info()),
      initFolder(initFolder), warn(std::move(warn)),
      terminal(isatty(STDERR_FILENO)) {
  auto mismatch = [&](const std::optional<int64_t> &asked, int64_t actual,
                      const std::string &flag, const std::string &what) {
    if (asked && *asked != actual)
      throw std::runtime_error(options.model + ": is made for " + what + " " +
                               std::to_string(actual) + ", " + flag + " says " +
                               std::to_string(*asked));
  };
  mismatch(options.ranks, info.ranks, "--ranks", "a number of ranks of");
  mismatch(options.stage, info.stage, "--zero-stage", "ZeRO stage");
  mismatch(options.batch, info.samples_per_rank, "--batch",
           "a batch per rank of");
  openData();
  checkOutputPaths();
  if (!options.metrics.empty())
    metricsFile = std::make_unique<zrt::MetricsFile>(options.metrics);
  zrt_session_options sessionOptions = {};
  sessionOptions.threads_per_rank = uint32_t(options.threads.value_or(1));
  require(session.create(program, &sessionOptions));
}

// Also after an error: its message begins on a line of its own.
Training::~Training() { clearProgress(); }

static zrt::InputSpec specOf(const zrt_input_info &input) {
  zrt::InputSpec spec;
  spec.name = input.name;
  spec.type = zrt::DataType(input.dtype);
  spec.shape.assign(input.shape, input.shape + input.rank);
  spec.hasRange = input.has_range;
  spec.min = input.min;
  spec.max = input.max;
  spec.hasIgnore = input.has_ignore;
  spec.ignore = input.ignore;
  return spec;
}

void Training::openData() {
  std::vector<zrt::InputSpec> specs;
  for (uint32_t i = 0; i < info.num_inputs; ++i) {
    zrt_input_info input = program.input(i);
    if (input.role != ZRT_INPUT_DATA)
      continue;
    dataInputs.push_back(i);
    specs.push_back(specOf(input));
    const zrt::InputSpec &spec = specs.back();
    if (spec.name != "labels" && zrt::isInteger(spec.type) &&
        spec.shape.size() == 2 && !tokensPerSample)
      tokensPerSample = spec.shape[1];
  }
  int64_t samplesPerStep = info.samples_per_rank * int64_t(info.ranks);
  data = std::make_unique<zrt::Dataset>(options.data, std::move(specs),
                                        samplesPerStep,
                                        /*labelsFromTokens=*/true);
  for (size_t i = 0; i < dataInputs.size(); ++i)
    if (data->sourceName(i) != data->inputs()[i].name)
      warn(options.data + ": has no tensor \"labels\", the tokens of " +
           zrt::jsonQuote(data->sourceName(i)) + " are taken as labels");
  // A step without data inputs has no samples to run out of.
  int64_t once = samplesPerStep > 0 && data->samples() > 0
                     ? data->samples() / samplesPerStep
                     : 1;
  numSteps = options.steps.value_or(once);
}

/// A run of hours must not find out at its end that it cannot save.
void Training::checkOutputPaths() const {
  for (const std::string &path :
       {options.saveWeights, options.trace, options.report}) {
    if (path.empty())
      continue;
    size_t slash = path.rfind('/');
    std::string folder =
        slash == path.npos ? "." : path.substr(0, slash ? slash : 1);
    if (access(folder.c_str(), W_OK | X_OK))
      throw zrt::IoError(path,
                         std::string("cannot create: ") + std::strerror(errno));
  }
}

void Training::run() {
  setInitialValues();
  for (int64_t step = 0; step < numSteps; ++step) {
    runStep(step);
    if (terminal)
      showProgress(step);
  }
  clearProgress();
  std::printf("%lld steps on %u ranks, ZeRO stage %u",
              static_cast<long long>(numSteps), info.ranks, info.stage);
  if (numSteps)
    std::printf(": loss %.6g to %.6g, %.4g ms a step", firstLoss, current.loss,
                totalMs / double(numSteps));
  std::puts("");
}

void Training::showProgress(int64_t step) {
  progressShown = true;
  std::fprintf(stderr, "\r\033[Kstep %lld/%lld  loss %.6g  %.4g ms",
               static_cast<long long>(step + 1),
               static_cast<long long>(numSteps), current.loss, current.stepMs);
}

void Training::clearProgress() {
  if (progressShown)
    std::fputs("\r\033[K", stderr);
  progressShown = false;
}

void Training::setInputs(int64_t step) {
  float learningRate = float(options.learningRate);
  int64_t count = step + 1;
  for (uint32_t i = 0; i < info.num_inputs; ++i) {
    zrt_input_role role = program.input(i).role;
    if (role == ZRT_INPUT_LEARNING_RATE)
      require(session.setInput(i, ZRT_ALL_RANKS, &learningRate,
                               sizeof(learningRate)));
    else if (role == ZRT_INPUT_STEP)
      require(session.setInput(i, ZRT_ALL_RANKS, &count, sizeof(count)));
  }
  for (size_t i = 0; i < dataInputs.size(); ++i) {
    scratch.resize(program.input(dataInputs[i]).bytes);
    for (uint32_t rank = 0; rank < info.ranks; ++rank) {
      zrt::BatchPosition at{step, 0, rank, 1, info.ranks};
      data->read(i, at.firstSample(info.samples_per_rank), scratch.data());
      require(session.setInput(dataInputs[i], int(rank), scratch.data(),
                               scratch.size()));
    }
  }
}

void Training::runStep(int64_t step) {
  auto start = std::chrono::steady_clock::now();
  session.resetCounters();
  setInputs(step);
  require(session.step());
  readLoss(step);
  auto end = std::chrono::steady_clock::now();
  fillMetrics(std::chrono::duration<double, std::milli>(end - start).count());
  if (metricsFile)
    metricsFile->write(current);
}

/// The first rank whose own loss is not finite.
static std::string badRank(const zrt::Session &session, uint32_t index,
                           const zrt_output_info &output, uint32_t ranks) {
  std::vector<uint8_t> own(output.bytes);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    double value = 0;
    if (session.readOutputOfRank(index, rank, own.data(), own.size()) ||
        !zrt::convertsExactly(zrt::DataType(output.dtype), zrt::DataType::F64))
      break;
    zrt::convert(zrt::DataType(output.dtype), own.data(), zrt::DataType::F64,
                 &value, 1);
    if (!std::isfinite(value))
      return " on rank " + std::to_string(rank);
  }
  return "";
}

void Training::readLoss(int64_t step) {
  int64_t index = program.findOutput("loss");
  if (index < 0)
    throw std::runtime_error(options.model + ": has no output 'loss'");
  current = {};
  current.step = step + 1;
  require(session.readOutput(uint32_t(index), &current.loss, 1));
  if (!std::isfinite(current.loss))
    throw std::runtime_error(
        options.model + ": step " + std::to_string(step + 1) +
        ": the loss is " + (std::isnan(current.loss) ? "nan" : "inf") +
        badRank(session, uint32_t(index), program.output(uint32_t(index)),
                info.ranks) +
        "; look at the data, the learning rate and the initial weights");
  if (!step)
    firstLoss = current.loss;
  int64_t norm = program.findOutput("grad_norm_sq");
  double square = 0;
  if (norm < 0)
    return;
  require(session.readOutput(uint32_t(norm), &square, 1));
  current.gradNorm = std::sqrt(square);
}

static zrt::SpaceBytes spaces(const uint64_t *bytes) {
  return {bytes[ZRT_DEVICE], bytes[ZRT_HOST], bytes[ZRT_DISK]};
}

void Training::fillMetrics(double wallMs) {
  zrt_counters counters = session.counters();
  double ranks = info.ranks;
  double samples = double(info.samples_per_rank) * ranks;
  totalMs += wallMs;
  current.learningRate = options.learningRate;
  current.stepMs = wallMs;
  current.samplesPerSecond = samples * 1000 / wallMs;
  if (tokensPerSample)
    current.tokensPerSecond =
        current.samplesPerSecond * double(tokensPerSample);
  if (peakFlops > 0 && info.flops_per_rank > 0)
    current.mfu = info.flops_per_rank / (wallMs * 1e-3) / peakFlops;
  auto sent = [&](const uint64_t *timesRanks, zrt_collective kind) {
    return double(timesRanks[kind]) / ranks;
  };
  const uint64_t *comm = counters.comm_bytes_times_ranks;
  current.allGatherBytes = sent(comm, ZRT_ALL_GATHER);
  current.reduceScatterBytes = sent(comm, ZRT_REDUCE_SCATTER);
  current.allReduceBytes = sent(comm, ZRT_ALL_REDUCE);
  for (int kind = 0; kind < ZRT_NUM_COLLECTIVES; ++kind)
    current.commPaddingBytes +=
        sent(counters.comm_padding_bytes_times_ranks, zrt_collective(kind));
  current.exposedCommMs = counters.exposed_comm_ms;
  current.peak = spaces(counters.peak_bytes);
  current.gatheredBytes = counters.gathered_peak_bytes;
  current.plannedGatheredBytes = info.window_bytes;
  uint64_t planned[ZRT_NUM_SPACES], padding;
  for (int space = 0; space < ZRT_NUM_SPACES; ++space)
    planned[space] = zrt_program_planned_bytes(program.get(), zrt_space(space));
  current.plannedPeak = spaces(planned);
  auto held = [&](zrt_kind kind) {
    uint64_t bytes = zrt_program_kind_bytes(program.get(), kind, &padding);
    current.statePaddingBytes += double(padding) / ranks;
    return double(bytes) - double(padding) / ranks;
  };
  current.parameterBytes = held(ZRT_KIND_PARAMETER);
  current.gradientBytes = held(ZRT_KIND_GRADIENT);
  current.optimizerBytes = held(ZRT_KIND_OPTIMIZER_STATE);
}
