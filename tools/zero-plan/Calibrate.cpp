//===- Calibrate.cpp - zero-plan --calibrate ------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Trains probes on this machine and fits the constants of the cost model to
// the time of each command, so that the model's sums are those of the runs.
//
//===----------------------------------------------------------------------===//

#include "Modes.h"
#include "Probe.h"

#include "../zero-compile/Compile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>
#include <unistd.h>

using namespace mlir;
using namespace mlir::zero;

namespace {
/// The samples of one run.
struct ProbeTimes {
  ProbeShape shape;
  int64_t stage;
  std::vector<ProbeSample> samples;
};
} // namespace

/// Small and large products, short and long rows, in seconds a machine of two
/// cores has.
static constexpr ProbeShape kShapes[] = {
    {2, 128, 4, 1024, 64, 4},
    {2, 256, 4, 2048, 128, 4},
    {1, 512, 8, 4096, 128, 2},
};

static constexpr std::pair<TaskKind, StringLiteral> kCollectives[] = {
    {TaskKind::AllGather, "all_gather"},
    {TaskKind::ReduceScatter, "reduce_scatter"},
    {TaskKind::AllReduce, "all_reduce"},
};

static double predict(const CostModel &cost, const ProbeSample &sample,
                      int64_t ranks) {
  if (sample.kind == TaskKind::Compute)
    return cost.compute(sample.work);
  return cost.collective(sample.kind, sample.wholeBytes, cost.group(ranks));
}

/// A part of the commands, fitted by numbers of its own.
using Part = llvm::function_ref<bool(const ProbeSample &)>;

static bool isMatmul(const ProbeSample &sample) {
  return sample.kind == TaskKind::Compute && sample.work.cls == OpWork::Matmul;
}

static bool isKernel(const ProbeSample &sample) {
  return sample.kind == TaskKind::Compute && !isMatmul(sample);
}

/// How far predictions are from the probes, as a part of their time: command by
/// command, and in the sum over a step.
static double misfit(const Machine &machine, ArrayRef<ProbeTimes> probes,
                     Part part) {
  CostModel cost(machine);
  double error = 0;
  for (const ProbeTimes &probe : probes) {
    double apart = 0, together = 0, total = 0;
    for (const ProbeSample &sample : probe.samples) {
      if (!part(sample))
        continue;
      double difference =
          predict(cost, sample, machine.ranksPerNode) - sample.seconds;
      apart += std::abs(difference);
      together += difference;
      total += sample.seconds;
    }
    if (total > 0)
      error += (apart + std::abs(together)) / total;
  }
  return error;
}

/// Multiplies and divides each of `numbers` by smaller and smaller factors as
/// long as that lowers the misfit. None leaves a range of 1 to 1,000 around its
/// start: what the probes do not show stays what a machine can be.
static void fit(Machine &machine, ArrayRef<double *> numbers,
                ArrayRef<ProbeTimes> probes, Part part) {
  SmallVector<double> start;
  for (double *number : numbers)
    start.push_back(*number);
  double best = misfit(machine, probes, part);
  auto improve = [&](size_t i, double by) {
    double before = *numbers[i];
    *numbers[i] *= by;
    double ratio = *numbers[i] / start[i];
    double now = misfit(machine, probes, part);
    if (ratio < 30 && ratio > 1 / 30.0 && now < best * (1 - 1e-6)) {
      best = now;
      return true;
    }
    *numbers[i] = before;
    return false;
  };
  for (double factor : {2.0, 1.4, 1.2, 1.1, 1.05, 1.02, 1.01})
    for (bool improved = true; improved;) {
      improved = false;
      for (size_t i = 0; i < numbers.size(); ++i)
        improved |= improve(i, factor) || improve(i, 1 / factor);
    }
}

static void fitMachine(Machine &machine, ArrayRef<ProbeTimes> probes) {
  machine.matmulEfficiency = 1;
  double &peak = machine.peakFlops["f32"];
  auto constant = [&](StringRef name, double start) {
    return &(machine.constants[name.str()] = start);
  };
  fit(machine,
      {&peak, &machine.matmulHalfFlops, constant("matmul_half_dim", 4)}, probes,
      isMatmul);
  fit(machine,
      {&machine.memoryBandwidth, &machine.kernelLatency,
       constant("transcendental_flops", 10),
       constant("kernel_flops_efficiency", 0.1)},
      probes, isKernel);
  for (auto [kind, name] : kCollectives) {
    Link &link = machine.intraNodeOf[name.str()];
    link = machine.intraNode;
    fit(machine, {&link.latency, &link.bandwidth}, probes,
        [kind = kind](const ProbeSample &s) { return s.kind == kind; });
  }
  // Where every core has a rank, a collective takes compute's time.
  if (machine.ranksPerNode >= int64_t(std::thread::hardware_concurrency()))
    machine.constants["overlap_slowdown"] = 1;
  // A type whose products nobody timed keeps its proportion.
  machine.peakFlops["f64"] = peak / 2;
  machine.peakFlops["bf16"] = machine.peakFlops["f16"] = peak;
}

/// Seconds of fixed arithmetic on each of `threads` threads at once.
static double timeThreads(unsigned threads) {
  auto work = [] {
    volatile float start = 1;
    float sums[64];
    llvm::fill(sums, start);
    for (int i = 0; i < 5000000; ++i)
      for (float &sum : sums)
        sum = sum * 0.999f + 0.5f;
    start = std::accumulate(std::begin(sums), std::end(sums), 0.0f);
  };
  auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> all;
  for (unsigned i = 0; i < threads; ++i)
    all.emplace_back(work);
  for (std::thread &thread : all)
    thread.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// How many cores as fast as one alone this machine has left: hardware threads
/// of one core, and other jobs, leave less than there are.
static double measureCores() {
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  SmallVector<double> cores;
  for (int i = 0; i < 5; ++i) {
    double alone = timeThreads(1);
    cores.push_back(threads * alone / timeThreads(threads));
  }
  llvm::sort(cores);
  return std::clamp<double>(cores[2], 1, threads);
}

/// Sum of predicted over sum of measured time of a part of all probes.
static void printPart(const Machine &machine, ArrayRef<ProbeTimes> probes,
                      StringRef name, Part part) {
  CostModel cost(machine);
  double measured = 0, predicted = 0, apart = 0;
  size_t count = 0;
  for (const ProbeTimes &probe : probes)
    for (const ProbeSample &sample : probe.samples) {
      if (!part(sample))
        continue;
      double seconds = predict(cost, sample, machine.ranksPerNode);
      measured += sample.seconds;
      predicted += seconds;
      apart += std::abs(seconds - sample.seconds);
      ++count;
    }
  if (count)
    llvm::errs() << llvm::format(
        "%-16s %5zu commands  %9.3f ms measured  %9.3f ms predicted  "
        "%5.1f %% apart\n",
        name.str().c_str(), count, 1e3 * measured, 1e3 * predicted,
        100 * apart / measured);
}

static void printFit(const Machine &machine, ArrayRef<ProbeTimes> probes) {
  printPart(machine, probes, "matrix products", isMatmul);
  printPart(machine, probes, "other kernels", isKernel);
  for (auto [kind, name] : kCollectives)
    printPart(machine, probes, name,
              [kind = kind](const ProbeSample &s) { return s.kind == kind; });
}

static llvm::Expected<std::vector<ProbeTimes>> runProbes(int64_t ranks) {
  MLIRContext context;
  zero_tools::prepareContext(context);
  std::vector<ProbeTimes> probes;
  for (const ProbeShape &shape : kShapes)
    for (int64_t stage : {0, 3}) {
      auto samples = runProbe(context, shape, stage, ranks);
      if (!samples)
        return samples.takeError();
      probes.push_back({shape, stage, std::move(*samples)});
    }
  return probes;
}

int mlir::zero::runCalibrate(int64_t ranks, StringRef output) {
  if (ranks < 1) {
    llvm::errs() << "zero-plan: --ranks is " << ranks
                 << ", expected at least 1\n";
    return 1;
  }
  std::error_code failed;
  llvm::ToolOutputFile file(output.empty() ? "-" : output, failed,
                            llvm::sys::fs::OF_Text);
  if (failed) {
    llvm::errs() << "zero-plan: " << output
                 << ": cannot write: " << failed.message() << "\n";
    return 1;
  }
  auto probes = runProbes(ranks);
  if (!probes) {
    llvm::errs() << "zero-plan: " << toString(probes.takeError()) << "\n";
    return 1;
  }
  Machine machine = cantFail(loadMachine("this-cpu"));
  machine.ranksPerNode = ranks;
  int64_t memory = int64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  machine.memoryBytes = memory / ranks;
  machine.hostMemoryBytes = memory; // of all ranks
  fitMachine(machine, *probes);
  // The device is the host: its part is not another one.
  machine.hostBandwidth = machine.memoryBandwidth;
  // So are its cores; times of more ranks than cores hold that already.
  machine.constants["processor_cores"] =
      std::max<double>(ranks, std::round(10 * measureCores()) / 10);
  printFit(machine, *probes);
  file.os() << printMachine(machine) << "\n";
  file.os().flush();
  if (file.os().has_error()) {
    llvm::errs() << "zero-plan: " << output
                 << ": cannot write: " << file.os().error().message() << "\n";
    file.os().clear_error();
    return 1;
  }
  file.keep();
  return 0;
}
