//===- TrainingMetrics.cpp - What a step says -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The outputs of a step, what ends a run among them, and the counters of the
// runtime as metrics.
//
//===----------------------------------------------------------------------===//

#include "Training.h"

#include "runtime/io/Json.h"

#include <cmath>
#include <limits>
#include <stdexcept>

using namespace zero_tools;

static std::string nameOf(double value) {
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

/// The sign of a NaN says nothing, but would be printed.
static double withoutNanSign(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

/// An output of one number; nothing where the program has none of that name.
std::optional<double> Training::output(const std::string &name) const {
  int64_t index = program.findOutput(name);
  if (index < 0)
    return std::nullopt;
  double value = 0;
  require(session.readOutput(uint32_t(index), &value, 1));
  return withoutNanSign(value);
}

/// A rank's own value of an output.
static double ownValue(const zrt::Session &session, const zrt::Program &program,
                       uint32_t index, uint32_t rank) {
  zrt_output_info output = program.output(index);
  std::vector<uint8_t> own(output.bytes);
  require(session.readOutputOfRank(index, rank, own.data(), own.size()));
  double value = 0;
  zrt::convert(zrt::DataType(output.dtype), own.data(), zrt::DataType::F64,
               &value, 1);
  return withoutNanSign(value);
}

void Training::readOutputs(int64_t step) {
  int64_t index = program.findOutput("loss");
  if (index < 0)
    throw std::runtime_error(options.model + ": has no output 'loss'");
  current.loss = *output("loss");
  if (program.output(uint32_t(index)).dtype <= ZRT_BF16) {
    current.maxLoss = current.loss;
    for (uint32_t rank = 0; rank < info.ranks; ++rank)
      current.maxLoss = std::max(
          *current.maxLoss, ownValue(session, program, uint32_t(index), rank));
  }
  if (auto norm = output("grad_norm"))
    current.gradNorm = norm;
  else if (auto square = output("grad_norm_sq"))
    current.gradNorm = std::sqrt(*square);
  current.gradNormClipped = output("grad_norm_clipped");
  current.learningRate = output("lr").value_or(options.learningRate);
  current.lossScale = output("loss_scale");
  if (auto overflow = output("overflow"))
    current.skipped = *overflow != 0;
  skippedSteps += current.skipped.value_or(false);
  current.skippedSteps = skippedSteps;
  checkFinite(step);
  checkLossScale(step);
  if (step == startStep)
    firstLoss = current.loss;
}

/// The first rank whose own value of an output is not finite.
std::string Training::badRank(uint32_t index) const {
  for (uint32_t rank = 0; rank < info.ranks; ++rank)
    if (!std::isfinite(ownValue(session, program, index, rank)))
      return " on rank " + std::to_string(rank);
  return "";
}

/// The first number of the step's data for input `index` that is not finite.
std::string Training::badSampleOf(int64_t step, size_t index) const {
  const zrt::InputSpec &input = data->inputs()[index];
  if (zrt::isInteger(input.type) || input.type == zrt::DataType::Bool)
    return "";
  size_t elements = scratch.size() / (zrt::bitWidth(input.type) / 8);
  size_t perSample = elements / size_t(input.shape[0]);
  std::vector<double> values(elements);
  for (int64_t micro = 0; micro < microBatches; ++micro)
    for (uint32_t rank = 0; rank < info.ranks; ++rank) {
      int64_t first = firstSample(step, micro, rank);
      data->read(index, first, scratch.data());
      zrt::convert(input.type, scratch.data(), zrt::DataType::F64,
                   values.data(), elements);
      for (size_t i = 0; i < elements; ++i)
        if (!std::isfinite(values[i]))
          return options.data + ": tensor " +
                 zrt::jsonQuote(data->sourceName(index)) + " has " +
                 nameOf(values[i]) + " in sample " +
                 std::to_string((first + int64_t(i / perSample)) %
                                data->samples()) +
                 ", element " + std::to_string(i % perSample) +
                 ", which rank " + std::to_string(rank) + " has seen";
    }
  return "";
}

std::string Training::badSample(int64_t step) const {
  for (size_t i = 0; i < dataInputs.size(); ++i) {
    scratch.resize(program.input(dataInputs[i]).bytes);
    std::string found = scratch.empty() ? "" : badSampleOf(step, i);
    if (!found.empty())
      return found;
  }
  return "";
}

/// A step that was skipped has changed nothing; after any other the state is
/// lost, and each later step would say the same.
void Training::checkFinite(int64_t step) {
  bool normIsFinite = std::isfinite(current.gradNorm.value_or(0));
  if (current.skipped.value_or(false) ||
      (std::isfinite(current.loss) && normIsFinite))
    return;
  std::string what = std::isfinite(current.loss)
                         ? "the gradients' norm is " + nameOf(*current.gradNorm)
                         : "the loss is " + nameOf(current.loss) +
                               badRank(uint32_t(program.findOutput("loss")));
  std::string cause = badSample(step);
  if (cause.empty())
    cause = "run it with --check-finite to see the first tensor that is not "
            "finite, and look at the learning rate and the initial weights";
  throw CommonError(options.model + ": step " + std::to_string(step + 1) +
                    ": " + what + "; " + cause);
}

/// Where the smallest loss scale overflows with no hysteresis left, no later
/// step would do better: DeepSpeed ends the run too.
void Training::checkLossScale(int64_t step) const {
  if (output("loss_scale_exhausted").value_or(0) == 0)
    return;
  throw CommonError(
      options.model + ": step " + std::to_string(step + 1) +
      ": the gradients overflow at the smallest loss scale, " +
      zrt::jsonNumber(current.lossScale.value_or(1)) +
      "; lower the learning rate, clip, or train in bf16, which needs no loss "
      "scale");
}

void Training::fillSpeeds(double wallMs) {
  double samples =
      double(info.samples_per_rank) * info.ranks * double(microBatches);
  current.microBatches = microBatches;
  current.samplesSeen =
      startSample + (current.step - startStep) * int64_t(samples);
  if (data->samples() > 0)
    current.epoch = double(current.samplesSeen) / double(data->samples());
  current.tokensSeen = current.samplesSeen * tokensPerSample;
  current.stepMs = wallMs;
  current.samplesPerSecond = samples * 1000 / wallMs;
  if (tokensPerSample)
    current.tokensPerSecond =
        current.samplesPerSecond * double(tokensPerSample);
  if (info.flops_per_rank <= 0)
    return;
  double perSecond = info.flops_per_rank / (wallMs * 1e-3);
  current.teraflops = perSecond * 1e-12;
  if (peakFlops > 0)
    current.mfu = perSecond / peakFlops;
}

static zrt::SpaceBytes spaces(const uint64_t *bytes) {
  return {bytes[ZRT_DEVICE], bytes[ZRT_HOST], bytes[ZRT_DISK]};
}

void Training::fillTraffic() {
  zrt_counters counters = session.counters();
  double ranks = info.ranks;
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
  auto copied = [&](zrt_transfer way) {
    return double(counters.transfer_bytes_all_ranks[way]) / ranks;
  };
  current.toHostBytes = copied(ZRT_TO_HOST);
  current.toDeviceBytes = copied(ZRT_TO_DEVICE);
  current.diskReadBytes = copied(ZRT_DISK_READ);
  current.diskWriteBytes = copied(ZRT_DISK_WRITE);
  current.transferMs = counters.transfer_ms;
  current.hostMs = counters.host_ms;
  current.peak = spaces(counters.peak_bytes);
  current.gatheredBytes = counters.gathered_peak_bytes;
}

void Training::fillMemory() {
  current.plannedGatheredBytes = info.window_bytes;
  uint64_t planned[ZRT_NUM_SPACES], padding;
  for (int space = 0; space < ZRT_NUM_SPACES; ++space)
    planned[space] = zrt_program_planned_bytes(program.get(), zrt_space(space));
  current.plannedPeak = spaces(planned);
  auto held = [&](zrt_kind kind) {
    uint64_t bytes = zrt_program_kind_bytes(program.get(), kind, &padding);
    current.statePaddingBytes += double(padding) / info.ranks;
    return double(bytes) - double(padding) / info.ranks;
  };
  current.parameterBytes = held(ZRT_KIND_PARAMETER);
  current.gradientBytes = held(ZRT_KIND_GRADIENT);
  current.optimizerBytes = held(ZRT_KIND_OPTIMIZER_STATE);
}

/// Device memory of a rank: the budget of the plan, else the machine's.
std::optional<double> Training::memoryLimit() const {
  if (info.budget_bytes > 0)
    return double(info.budget_bytes);
  if (deviceMemory > 0)
    return deviceMemory;
  return std::nullopt;
}
