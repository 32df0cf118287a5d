//===- Session.cpp - A program and its ranks on GPUs ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Set-up, the ranks' threads, the step and its counters. Access to parameters,
// inputs and outputs is in SessionData.cpp.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Session.h"

#include "runtime/comm/Futex.h"
#include "runtime/core/CpuFeatures.h"
#include "runtime/core/ProgramMemory.h"
#include "runtime/cuda/Status.h"
#include "runtime/host/Transfers.h"
#include "runtime/io/Files.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

using namespace zrt;
using namespace zrt::cuda;

static bool isSet(const char *variable) {
  const char *value = std::getenv(variable);
  return value && *value && std::strcmp(value, "0") != 0;
}

static RankOptions rankOptionsOf(const zrt_session_options &options) {
  RankOptions result;
  result.offloadPath = options.offload_path ? options.offload_path : "";
  result.hostThreads = std::max(1u, options.host_threads_per_rank);
  result.poison = options.poison || isSet("ZRT_POISON");
  result.graph = options.graph != 0;
  if (options.group) {
    result.inGroup = options.group->processes->size() > 1;
    result.timeoutFactor = options.group->timeoutFactor;
    result.timeoutMinSeconds = options.group->timeoutMinSeconds;
  } else {
    if (options.timeout_factor > 0)
      result.timeoutFactor = options.timeout_factor;
    if (options.timeout_min_s > 0)
      result.timeoutMinSeconds = options.timeout_min_s;
  }
  return result;
}

static std::string_view checkedKernels(const Program &program) {
  std::string missing = firstMissingCpuFeature(program.cpuFeatures);
  if (!missing.empty())
    fail(ZRT_ERROR_TARGET, "the program's launches on the host need ", missing,
         ", which this machine does not have: compile it here");
  return program.kernels;
}

/// Refuses what cannot be before anything is made.
static void checkOptions(const Program &program,
                         const zrt_session_options &options) {
  if (options.check_finite || isSet("ZRT_CHECK_FINITE"))
    fail(ZRT_ERROR_ARGUMENT, "the search for what is not finite is not ",
         "possible on CUDA: compile the model for the host for it");
  uint64_t bytes = program.plannedBytes(fb::Space_Disk);
  if (!bytes)
    return;
  if (!options.offload_path || !*options.offload_path)
    fail(ZRT_ERROR_ARGUMENT, "the program keeps ", bytes,
         " bytes a rank on disk: name a folder for them");
  uint64_t ranks =
      options.group ? options.group->processes->localSize() : program.ranks;
  checkDiskRoom(options.offload_path, bytes * std::max<uint64_t>(1, ranks),
                "the disk space of the ranks");
}

Session::Session(std::shared_ptr<const Program> loaded,
                 const zrt_session_options &options)
    : program(std::move(loaded)), group(options.group),
      check(options.check || isSet("ZRT_CHECK")),
      rankOptions(rankOptionsOf(options)),
      hostKernels(checkedKernels(*program)),
      parameterSet(program->parameters.size(), false) {
  checkOptions(*program, options);
  if (group)
    group->processes->onPeerFailure([this] {
      peerFailed = true;
      cancel.set();
    });
  try {
    makeRanks(options);
    connectRanks();
    onRanks([&](uint32_t place) { ranks[place]->bind(hostKernels); });
    inputSet.resize(program->inputs.size() * ranks.size(), false);
    disk = ranks[0]->memory().diskAccess();
    fillInitialValues();
  } catch (...) {
    if (group)
      group->processes->onPeerFailure(nullptr);
    cancel.set(); // communicators end without waiting for each other
    freeStaging();
    throw;
  }
}

Session::~Session() {
  if (group)
    group->processes->onPeerFailure(nullptr);
  // Communicators end on all ranks at the same time. The device goes with its
  // last rank.
  threads->run([&](uint32_t place) {
    if (place == 0)
      freeStaging();
    ranks[place].reset();
  });
}

void Session::freeStaging() noexcept {
  try {
    if (!ranks.empty() && ranks[0])
      ranks[0]->use();
    staging = DeviceBlock();
  } catch (const std::exception &) {
    // The driver is gone, and the memory with it.
  }
}

void Session::makeRanks(const zrt_session_options &options) {
  uint32_t count = group ? 1 : program->ranks;
  int device = std::max(0, options.device);
  if (group) {
    firstRank = group->processes->rank();
    device = int(group->processes->localRank());
  }
  ranks.resize(count);
  threads = std::make_unique<RankThreads>(count);
  onRanks([&](uint32_t place) {
    ranks[place] = std::make_unique<Rank>(
        *program, firstRank + place, device + int(place), rankOptions, cancel);
    if (place == 0 && rankOptions.inGroup)
      staging = DeviceBlock(stagingPiece, "memory for what others hold");
  });
}

/// The identity of the first communicator comes from rank 0.
void Session::connectRanks() {
  ncclUniqueId id = {};
  bool needed = Communicators::needed(*program) || rankOptions.inGroup;
  if (needed && firstRank == 0)
    checkNccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
  if (rankOptions.inGroup) {
    std::string bytes(reinterpret_cast<const char *>(&id), sizeof(id));
    bytes = group->processes->broadcast(bytes);
    if (bytes.size() != sizeof(id))
      fail(ZRT_ERROR_EXECUTION, "rank 0 sent ", bytes.size(),
           " bytes for the identity of a communicator");
    std::memcpy(&id, bytes.data(), sizeof(id));
  }
  onRanks([&](uint32_t place) { ranks[place]->connect(id); });
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

std::string Session::commandText(size_t index) const {
  if (index >= program->commands.size())
    return "before the first command";
  const Command &command = program->commands[index];
  std::string text = "command " + std::to_string(index) + " (" +
                     opName(command.op) +
                     (command.callee.empty() ? "" : " " + command.callee) + ")";
  return command.location.empty() ? text : text + " from " + command.location;
}

std::string Session::rankText(uint32_t rank) const {
  return "rank " + std::to_string(rank);
}

void Session::failWithPeer() const {
  throw PeerFailed(group->processes->failure());
}

/// Keeps the first failure. Who was only told to end has nothing to say.
void Session::recordFailure(uint32_t rank,
                            const std::exception_ptr &thrown) const {
  std::exception_ptr named;
  try {
    std::rethrow_exception(thrown);
  } catch (const Aborted &) {
    return;
  } catch (const CommandError &error) {
    named = std::make_exception_ptr(Error(
        error.code(), rankText(rank) + ", " + commandText(error.command()) +
                          ": " + error.what()));
  } catch (const Error &error) {
    named = std::make_exception_ptr(
        Error(error.code(), rankText(rank) + ": " + error.what()));
  } catch (const std::exception &error) {
    named = std::make_exception_ptr(
        Error(ZRT_ERROR_EXECUTION, rankText(rank) + ": " + error.what()));
  }
  std::lock_guard<std::mutex> lock(failureMutex);
  if (!failure)
    failure = named;
}

void Session::onRanks(const std::function<void(uint32_t place)> &body) const {
  threads->run([&](uint32_t place) {
    try {
      if (ranks[place])
        ranks[place]->use();
      body(place);
    } catch (...) {
      // In this order: the others' errors that come of the abort are later.
      recordFailure(firstRank + place, std::current_exception());
      cancel.set();
      if (ranks[place])
        ranks[place]->abort();
    }
  });
  if (failure)
    std::rethrow_exception(failure);
  if (peerFailed)
    failWithPeer();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// A micro-batch before the last needs the data alone.
void Session::checkInputsSet(Part part) const {
  for (size_t index = 0; index < program->parameters.size(); ++index) {
    const Parameter &parameter = program->parameters[index];
    bool held = false;
    for (const std::unique_ptr<Rank> &rank : ranks)
      held = held || parameter.shardBytes(parameter.shardOf(rank->number()));
    if (held && !parameterSet[index])
      fail(ZRT_ERROR_ARGUMENT, "parameter ", parameter.name,
           " has no value: set it first",
           parameter.initFile.empty() ? "" : " from " + parameter.initFile);
  }
  for (size_t index = 0; index < inputSet.size(); ++index) {
    const Input &input = program->inputs[index / ranks.size()];
    bool needed =
        part == Part::Step || (input.role != fb::InputRole_LearningRate &&
                               input.role != fb::InputRole_Step);
    if (needed && !inputSet[index])
      fail(ZRT_ERROR_ARGUMENT, "input ", input.name, " was not set for rank ",
           firstRank + index % ranks.size());
  }
}

/// Runs a part of the program on all ranks.
void Session::run(Part part) {
  using Clock = std::chrono::steady_clock;
  if (!error.empty())
    fail(ZRT_ERROR_EXECUTION, "an earlier step failed: ", error);
  checkInputsSet(part);
  Clock::time_point begin = Clock::now();
  try {
    onRanks([&](uint32_t place) { ranks[place]->run(part); });
  } catch (const Error &failed) {
    error = failed.what();
    throw;
  }
  std::chrono::nanoseconds time = Clock::now() - begin;
  std::fill(inputSet.begin(), inputSet.end(), false);
  stepMs += std::chrono::duration<double, std::milli>(time).count();
  if (part == Part::MicroBatch)
    microBatchesTime += time.count();
}

void Session::accumulate() {
  uint32_t before = program->microBatches - 1;
  if (accumulated == before)
    fail(ZRT_ERROR_ARGUMENT, "a step of this program has ",
         program->microBatches, " micro-batches; all before the last, ", before,
         ", are accumulated: run the step");
  if (accumulated == 0)
    microBatchesTime = 0;
  run(Part::MicroBatch);
  ++accumulated;
  ++accumulations;
}

void Session::step() {
  uint32_t before = program->microBatches - 1;
  if (accumulated != before)
    fail(ZRT_ERROR_ARGUMENT, "a step of this program has ",
         program->microBatches, " micro-batches; accumulate ", before,
         " before the step, not ", accumulated);
  run(Part::Step);
  accumulated = 0;
  ++steps;
  everStepped = true;
  if (check)
    checkState();
}

//===----------------------------------------------------------------------===//
// Counters
//===----------------------------------------------------------------------===//

static double toMs(int64_t nanoseconds) { return double(nanoseconds) * 1e-6; }

/// Adds what a command has done, `ms` of time on average over ranks.
static void countCommand(const Program &program, const Command &command,
                         uint64_t times, double ms, zrt_counters &counters) {
  if (auto way = host::transferOf(program, command)) {
    counters.transfer_bytes_all_ranks[*way] +=
        times * host::transferBytes(program, command);
    counters.transfer_ms += ms;
  } else if (command.isCollective()) {
    size_t kind = command.op - fb::Op_AllGather;
    counters.comm_bytes_times_ranks[kind] +=
        times * program.sentBytesTimesRanks(command);
    counters.comm_padding_bytes_times_ranks[kind] +=
        times * program.sentPaddingTimesRanks(command);
    counters.comm_ms += ms;
  } else if (command.op == fb::Op_Launch && command.host) {
    counters.host_ms += ms;
  } else {
    (command.op == fb::Op_Call ? counters.library_ms : counters.kernel_ms) +=
        ms;
  }
}

zrt_counters Session::counters() const {
  zrt_counters result = {};
  result.steps = steps;
  auto count = double(ranks.size());
  for (size_t index = 0; index < program->commands.size(); ++index) {
    double ms = 0;
    for (const std::unique_ptr<Rank> &rank : ranks)
      ms += toMs(rank->times().commandTime(index)) / count;
    countCommand(*program, program->commands[index],
                 index < program->microCommands ? accumulations : steps, ms,
                 result);
  }
  for (const std::unique_ptr<Rank> &rank : ranks) {
    result.exposed_comm_ms += toMs(rank->times().exposed()) / count;
    result.library_workspace_bytes =
        std::max(result.library_workspace_bytes, rank->workspaceBytes());
    const std::vector<uint64_t> &byArena = rank->memory().touched();
    uint64_t touched[ZRT_NUM_SPACES] = {};
    for (size_t arena = 0; arena < program->arenas.size(); ++arena)
      touched[program->arenas[arena].space] += byArena[arena];
    for (size_t space = 0; space < ZRT_NUM_SPACES; ++space)
      result.peak_bytes[space] =
          std::max(result.peak_bytes[space], touched[space]);
  }
  result.gathered_peak_bytes = everStepped ? gatheredPeak(*program) : 0;
  result.step_ms = stepMs;
  return result;
}

void Session::resetCounters() {
  steps = accumulations = 0;
  stepMs = 0;
  for (std::unique_ptr<Rank> &rank : ranks)
    rank->resetTimes();
}

const Rank &Session::timedRank(uint32_t rank, uint64_t count) const {
  checkRank("the times", rank);
  if (count != program->commands.size())
    fail(ZRT_ERROR_ARGUMENT, "room for ", count, " times; the program has ",
         program->commands.size(), " commands");
  if (const Rank *local = localRank(rank))
    return *local;
  fail(ZRT_ERROR_ARGUMENT, "the times of rank ", rank, " are in its process; ",
       "this one has rank ", firstRank);
}

void Session::commandMs(uint32_t rank, double *ms, uint64_t count) const {
  const Rank &from = timedRank(rank, count);
  for (size_t index = 0; index < count; ++index)
    ms[index] = toMs(from.times().commandTime(index));
}

/// Commands behind the micro-batches before the last come when these are done.
void Session::spans(uint32_t rank, zrt_span *spans, uint64_t count) const {
  const Rank &from = timedRank(rank, count);
  for (size_t index = 0; index < count; ++index) {
    const Span &span = from.times().spans()[index];
    int64_t shift =
        everStepped && index >= program->microCommands ? microBatchesTime : 0;
    spans[index] = {toMs(span.start + shift), toMs(span.end + shift),
                    toMs(span.waited)};
  }
}
