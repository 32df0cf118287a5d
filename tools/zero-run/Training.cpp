//===- Training.cpp - The loop of a training run --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The beginning of a run: flags beside the program, data, outputs. The steps
// are in TrainingLoop.cpp, initial values and saved weights in
// TrainingWeights.cpp.
//
//===----------------------------------------------------------------------===//

#include "Training.h"

#include "runtime/io/Files.h"
#include "runtime/io/Json.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

using namespace zero_tools;

void zero_tools::require(const zrt::Status &status) {
  if (status.code() == ZRT_ERROR_PEER)
    throw PeerError(status.message());
  if (status)
    throw std::runtime_error(status.message());
}

Training::Training(const RunOptions &options, const zrt::Program &program,
                   const std::string &initFolder,
                   std::function<void(const std::string &)> warn,
                   RunGroup *group)
    : options(options), program(program), info(program.info()),
      initFolder(initFolder), group(group),
      warn([this, warn](const std::string &text) {
        if (!first())
          return; // process 0 says the same
        progress.clear();
        warn(text);
      }) {
  auto mismatch = [&](const std::optional<int64_t> &asked, int64_t actual,
                      const std::string &flag, const std::string &what) {
    if (asked && *asked != actual)
      throw std::runtime_error(options.model + ": is made for " + what + " " +
                               std::to_string(actual) + ", " + flag + " says " +
                               std::to_string(*asked));
  };
  mismatch(options.ranks, info.ranks, options.ranksSource,
           "a number of ranks of");
  mismatch(options.stage, info.stage, "--zero-stage", "ZeRO stage");
  mismatch(options.batch, info.samples_per_rank, "--batch",
           "a batch per rank of");
  warnOfRate();
  openData();
  checkOutputPaths();
  checkOffloadPath();
  zrt_session_options sessionOptions = {};
  sessionOptions.threads_per_rank = uint32_t(options.threads.value_or(1));
  sessionOptions.check_finite = options.checkFinite;
  sessionOptions.host_threads_per_rank =
      uint32_t(options.hostThreads.value_or(1));
  if (!options.offloadPath.empty())
    sessionOptions.offload_path = options.offloadPath.c_str();
  sessionOptions.group = group ? group->get() : nullptr;
  sessionOptions.device = group ? -1 : 0;
  sessionOptions.graph = options.cudaGraph;
  sessionOptions.timeout_factor = options.timeoutFactor.value_or(0);
  sessionOptions.timeout_min_s = options.timeoutSeconds.value_or(0);
  require(session.create(program, &sessionOptions));
  warnOfDisk();
  openCheckpoints();
}

void Training::checkOffloadPath() const {
  uint64_t bytes = zrt_program_planned_bytes(program.get(), ZRT_DISK);
  if (bytes && options.offloadPath.empty())
    throw std::runtime_error(options.model + ": keeps " +
                             std::to_string(bytes) +
                             " bytes of each rank on disk; give "
                             "--offload-path, a folder for them");
}

/// A disk that is not reached as fast as it could be, and why.
void Training::warnOfDisk() const {
  std::string access = session.diskAccess();
  if (access.find('(') != access.npos)
    warn(options.offloadPath + ": the disk is used by " + access);
}

/// A step that was made earlier may have a schedule, and then no rate to set.
void Training::warnOfRate() const {
  bool made = options.kind == ModelKind::Plan || options.loss.empty();
  if (!made || !options.given.count("--lr"))
    return;
  for (uint32_t i = 0; i < info.num_inputs; ++i)
    if (program.input(i).role == ZRT_INPUT_LEARNING_RATE)
      return;
  warn(options.model + ": --lr has no effect: the step has a schedule, or "
                       "nothing to train");
}

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
  int64_t samplesPerStep =
      info.samples_per_rank * int64_t(info.ranks) * microBatches;
  data = std::make_unique<zrt::Dataset>(options.data, std::move(specs),
                                        samplesPerStep,
                                        /*labelsFromTokens=*/true);
  for (size_t i = 0; i < dataInputs.size(); ++i)
    if (data->sourceName(i) != data->inputs()[i].name)
      warn(options.data + ": has no tensor \"labels\", the tokens of " +
           zrt::jsonQuote(data->sourceName(i)) + " are taken as labels");
}

/// A run of hours must not find out at its end that it cannot save.
void Training::checkOutputPaths() const {
  for (const std::string &path :
       {options.saveWeights, options.saveOnnx, options.trace,
        options.report}) {
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
