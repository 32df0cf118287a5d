//===- Session.cpp - A program and its ranks on the host ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Set-up, the rank threads, the step and its counters. Access to parameters,
// inputs and outputs is in SessionData.cpp.
//
//===----------------------------------------------------------------------===//

#include "runtime/host/Session.h"
#include "runtime/core/CpuFeatures.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>

using namespace zrt;
using namespace zrt::host;

/// Sets the number of OpenMP threads that library calls of this thread use.
/// The OpenMP runtime is the one that oneDNN brought, hence by name.
static void setThreads(uint32_t count) {
  using Set = void (*)(int);
  static auto set =
      reinterpret_cast<Set>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set)
    set(int(std::max(1u, count)));
}

static bool isSet(const char *variable) {
  const char *value = std::getenv(variable);
  return value && *value && std::strcmp(value, "0") != 0;
}

static std::string commandText(const Program &program, size_t index) {
  const Command &command = program.commands[index];
  std::string text = "command " + std::to_string(index) + " (" +
                     opName(command.op) +
                     (command.callee.empty() ? "" : " " + command.callee) + ")";
  return command.location.empty() ? text : text + " from " + command.location;
}

static std::string_view checkedKernels(const Program &program) {
  std::string missing = firstMissingCpuFeature(program.cpuFeatures);
  if (!missing.empty())
    fail(ZRT_ERROR_TARGET, "the program is compiled for ", program.target,
         ", which has ", missing, "; this machine does not: compile it here");
  return program.kernels;
}

Session::Session(std::shared_ptr<const Program> loaded,
                 const zrt_session_options &options)
    : program(std::move(loaded)), check(options.check || isSet("ZRT_CHECK")),
      poison(options.poison || isSet("ZRT_POISON")),
      kernels(checkedKernels(*program)), engine(dnnl::engine::kind::cpu, 0),
      barrier(program->ranks), parameterSet(program->parameters.size(), false),
      inputSet(program->inputs.size() * program->ranks, false) {
  prepareCalls(options.threads_per_rank);
  for (uint32_t rank = 0; rank < program->ranks; ++rank)
    ranks.push_back(std::make_unique<Rank>(*program, rank));
  collectives = makeCollectives();
  for (std::unique_ptr<Rank> &rank : ranks)
    rank->bind(kernels, calls, collectives, scratchBytes, engine);
  fillInitialValues();
  try {
    for (uint32_t rank = 0; rank < program->ranks; ++rank)
      threads.emplace_back(&Session::threadMain, this, rank,
                           options.threads_per_rank);
  } catch (...) {
    endThreads();
    throw;
  }
}

Session::~Session() { endThreads(); }

void Session::endThreads() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ending = true;
  }
  stepBegins.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

/// Makes the library calls on a thread of their own: the library decides with
/// the number of OpenMP threads it sees, and the caller's is not ours to set.
void Session::prepareCalls(uint32_t threadCount) {
  std::exception_ptr failure;
  std::thread([&] {
    size_t index = 0;
    try {
      setThreads(threadCount);
      std::map<std::string, std::shared_ptr<const LibraryCall>> known;
      for (; index < program->commands.size(); ++index) {
        const Command &command = program->commands[index];
        std::shared_ptr<const LibraryCall> call;
        if (command.op == fb::Op_Call) {
          auto &entry = known[libraryCallKey(command)];
          if (!entry)
            entry = std::make_shared<const LibraryCall>(
                makeLibraryCall(*program, command, engine));
          call = entry;
          scratchBytes = std::max(scratchBytes, call->scratchBytes);
        }
        calls.push_back(std::move(call));
      }
    } catch (const Error &error) {
      failure = std::make_exception_ptr(Error(
          error.code(), commandText(*program, index) + ": " + error.what()));
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure)
    std::rethrow_exception(failure);
}

std::vector<Collective> Session::makeCollectives() const {
  std::vector<Collective> result;
  for (const Command &command : program->commands) {
    if (!command.isCollective())
      continue;
    std::vector<CollectivePiece> pieces;
    for (const Piece &piece : command.pieces) {
      CollectivePiece bound{program->buffers[piece.source].dtype,
                            piece.elements,
                            piece.chunk,
                            {},
                            {}};
      for (const std::unique_ptr<Rank> &rank : ranks) {
        bound.sources.push_back(rank->address(piece.source));
        bound.targets.push_back(rank->address(piece.target));
      }
      pieces.push_back(std::move(bound));
    }
    result.emplace_back(command.op, command.average, std::move(pieces));
  }
  return result;
}

void Session::recordError(const std::string &message) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (error.empty())
      error = message;
  }
  barrier.abort();
}

void Session::runRank(uint32_t rank) {
  auto failed = [&](const std::string &what) {
    recordError("rank " + std::to_string(rank) + ", " +
                commandText(*program, ranks[rank]->current) + ": " + what);
  };
  try {
    if (poison)
      ranks[rank]->poisonUnwritten();
    ranks[rank]->run(barrier, poison);
  } catch (const Aborted &) {
    // The rank that failed has said why.
  } catch (const dnnl::error &error) {
    failed(std::string("oneDNN: ") + error.message);
  } catch (const std::exception &error) {
    failed(error.what());
  } catch (...) {
    failed("unknown exception");
  }
}

void Session::threadMain(uint32_t rank, uint32_t threadCount) {
  setThreads(threadCount);
  for (uint64_t done = 0;; ++done) {
    {
      std::unique_lock<std::mutex> lock(mutex);
      stepBegins.wait(lock, [&] { return ending || stepNumber > done; });
      if (ending)
        return;
    }
    runRank(rank);
    std::lock_guard<std::mutex> lock(mutex);
    if (--running == 0)
      stepEnds.notify_all();
  }
}

void Session::checkInputsSet() {
  for (size_t index = 0; index < program->parameters.size(); ++index)
    if (!parameterSet[index]) {
      const Parameter &parameter = program->parameters[index];
      fail(ZRT_ERROR_ARGUMENT, "parameter ", parameter.name,
           " has no value: set it first",
           parameter.initFile.empty() ? "" : " from " + parameter.initFile);
    }
  for (size_t index = 0; index < inputSet.size(); ++index)
    if (!inputSet[index])
      fail(ZRT_ERROR_ARGUMENT, "input ",
           program->inputs[index / program->ranks].name,
           " was not set for rank ", index % program->ranks);
}

void Session::step() {
  if (!error.empty())
    fail(ZRT_ERROR_EXECUTION, "an earlier step failed: ", error);
  checkInputsSet();
  auto begin = std::chrono::steady_clock::now();
  {
    std::unique_lock<std::mutex> lock(mutex);
    running = program->ranks;
    ++stepNumber;
    stepBegins.notify_all();
    stepEnds.wait(lock, [&] { return running == 0; });
  }
  std::chrono::duration<double, std::milli> time =
      std::chrono::steady_clock::now() - begin;
  std::fill(inputSet.begin(), inputSet.end(), false);
  if (!error.empty())
    fail(ZRT_ERROR_EXECUTION, error);
  stepMs += time.count();
  ++steps;
  if (check)
    checkState();
}

zrt_counters Session::counters() const {
  zrt_counters result = {};
  result.steps = steps;
  size_t nextCollective = 0;
  double count = program->ranks;
  for (size_t index = 0; index < program->commands.size(); ++index) {
    const Command &command = program->commands[index];
    double ms = 0;
    for (const std::unique_ptr<Rank> &rank : ranks)
      ms += double(rank->nanoseconds[index]) * 1e-6 / count;
    if (command.isCollective()) {
      const Collective &collective = collectives[nextCollective++];
      size_t kind = command.op - fb::Op_AllGather;
      result.comm_bytes_times_ranks[kind] +=
          steps * collective.bytesTimesRanks();
      result.comm_padding_bytes_times_ranks[kind] +=
          steps * collective.paddingBytesTimesRanks();
      result.exposed_comm_ms += ms;
    } else {
      (command.op == fb::Op_Call ? result.library_ms : result.kernel_ms) += ms;
    }
  }
  for (const std::unique_ptr<Rank> &rank : ranks) {
    result.gathered_peak_bytes =
        std::max(result.gathered_peak_bytes, rank->gatheredPeak());
    uint64_t touched[ZRT_NUM_SPACES] = {};
    for (size_t arena = 0; arena < program->arenas.size(); ++arena)
      touched[program->arenas[arena].space] += rank->touched()[arena];
    for (size_t space = 0; space < ZRT_NUM_SPACES; ++space)
      result.peak_bytes[space] =
          std::max(result.peak_bytes[space], touched[space]);
  }
  result.library_workspace_bytes = scratchBytes;
  result.step_ms = stepMs;
  return result;
}

void Session::resetCounters() {
  steps = 0;
  stepMs = 0;
  for (std::unique_ptr<Rank> &rank : ranks)
    std::fill(rank->nanoseconds.begin(), rank->nanoseconds.end(), 0);
}

void Session::commandMs(uint32_t rank, double *ms, uint64_t count) const {
  if (rank >= ranks.size())
    fail(ZRT_ERROR_ARGUMENT, "rank ", rank, " of ", ranks.size());
  const std::vector<uint64_t> &times = ranks[rank]->nanoseconds;
  if (count != times.size())
    fail(ZRT_ERROR_ARGUMENT, "room for ", count, " times; the program has ",
         times.size(), " commands");
  std::transform(times.begin(), times.end(), ms,
                 [](uint64_t time) { return double(time) * 1e-6; });
}
