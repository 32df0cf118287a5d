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
#include "runtime/core/ProgramMemory.h"
#include "runtime/host/Transfers.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <set>

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

static std::string_view checkedKernels(const Program &program) {
  std::string missing = firstMissingCpuFeature(program.cpuFeatures);
  if (!missing.empty())
    fail(ZRT_ERROR_TARGET, "the program is compiled for ", program.target,
         ", which has ", missing, "; this machine does not: compile it here");
  return program.kernels;
}

/// Ranks on this machine.
static uint32_t ranksHere(const Program &program, const zrt_group *group) {
  return group ? group->processes->localSize() : program.ranks;
}

/// Refuses what does not fit before anything is made.
static std::shared_ptr<const Program>
checkedSpaces(std::shared_ptr<const Program> program,
              const zrt_session_options &options) {
  checkSpaces(*program, ranksHere(*program, options.group),
              options.offload_path);
  return program;
}

Session::Session(std::shared_ptr<const Program> loaded,
                 const zrt_session_options &options)
    : program(checkedSpaces(std::move(loaded), options)), group(options.group),
      check(options.check || isSet("ZRT_CHECK")),
      poison(options.poison || isSet("ZRT_POISON")),
      kernels(checkedKernels(*program)), engine(dnnl::engine::kind::cpu, 0),
      parameterSet(program->parameters.size(), false) {
  prepareCalls(options.threads_per_rank);
  std::vector<uint32_t> streams = usedStreams();
  uint32_t threadCount = ranksHere(*program, group) * streams.size();
  RankOptions rankOptions{threadCount,
                          std::max(1u, options.host_threads_per_rank),
                          options.offload_path ? options.offload_path : "",
                          {},
                          nullptr};
  if (group)
    joinGroup(rankOptions);
  uint32_t first = group ? group->processes->rank() : 0;
  uint32_t end = group ? first + 1 : program->ranks;
  for (uint32_t rank = first; rank < end; ++rank)
    ranks.push_back(std::make_unique<Rank>(*program, rank, rankOptions));
  inputSet.resize(program->inputs.size() * ranks.size(), false);
  disk = ranks[0]->diskAccess();
  if (options.check_finite || isSet("ZRT_CHECK_FINITE"))
    finite = std::make_unique<FiniteCheck>(*program);
  makeCollectives(threadCount);
  for (std::unique_ptr<Rank> &rank : ranks)
    rank->bind(kernels, calls, collectives, scratchBytes, engine);
  fillInitialValues();
  startThreads(streams, options.threads_per_rank);
  if (group)
    group->processes->onPeerFailure([this] {
      peerFailed = true;
      abortWaits();
    });
}

/// Makes the transport, once all processes have found that there is room.
void Session::joinGroup(RankOptions &rankOptions) {
  group->processes->barrier();
  transport = makeTransport(*group, *program);
  for (size_t arena = 0; arena < program->arenas.size(); ++arena)
    rankOptions.arenas.push_back(
        program->arenas[arena].space == fb::Space_Disk
            ? nullptr
            : transport->arena(group->processes->rank(), arena));
  rankOptions.place = transport->place();
}

/// The compute stream, and those that have commands.
std::vector<uint32_t> Session::usedStreams() const {
  std::set<uint32_t> used = {0};
  for (const Command &command : program->commands)
    used.insert(command.stream);
  return {used.begin(), used.end()};
}

void Session::startThreads(const std::vector<uint32_t> &streams,
                           uint32_t libraryThreads) {
  try {
    for (uint32_t rank = 0; rank < ranks.size(); ++rank)
      for (uint32_t stream : streams)
        threads.emplace_back(&Session::threadMain, this, rank, stream,
                             libraryThreads);
  } catch (...) {
    endThreads();
    throw;
  }
}

Session::~Session() {
  if (group)
    group->processes->onPeerFailure(nullptr);
  endThreads();
}

void Session::endThreads() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ending = true;
  }
  partBegins.notify_all();
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
          auto &entry = known[libraryCallKey(*program, command)];
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

std::deque<Barrier> &Session::barriersOf(const Command &command,
                                         uint32_t threadCount) {
  std::deque<Barrier> &result = barriers[{command.stream, command.axes}];
  if (result.empty()) {
    uint32_t size = program->grid.groupSize(command.axes);
    for (uint32_t group = 0; group < program->ranks / size; ++group)
      result.emplace_back(size, threadCount);
  }
  return result;
}

/// Where a buffer of a rank is; null: out of this process's reach.
uint8_t *Session::addressOf(uint32_t rank, uint32_t buffer) const {
  if (const Rank *local = localRank(rank))
    return local->address(buffer);
  const Buffer &info = program->buffers[buffer];
  uint8_t *arena = transport->arena(rank, info.arena);
  return arena ? arena + info.begin(rank) : nullptr;
}

std::vector<CollectivePiece>
Session::piecesOf(const Command &command,
                  const std::vector<uint32_t> &group) const {
  std::vector<CollectivePiece> pieces;
  for (const Piece &piece : command.pieces) {
    CollectivePiece bound{program->buffers[piece.source].dtype,
                          piece.elements,
                          piece.chunk,
                          {},
                          {},
                          program->grid.innerSize(command.axes)};
    for (uint32_t rank : group) {
      bound.sources.push_back(addressOf(rank, piece.source));
      bound.targets.push_back(addressOf(rank, piece.target));
    }
    pieces.push_back(std::move(bound));
  }
  return pieces;
}

std::unique_ptr<CollectiveCall>
Session::makeCollective(const Command &command,
                        const std::vector<uint32_t> &group, uint32_t number,
                        uint32_t threadCount) {
  if (transport) {
    if (std::none_of(group.begin(), group.end(),
                     [&](uint32_t rank) { return localRank(rank); }))
      return nullptr;
    return transport->makeCollective(
        {command, group, number, piecesOf(command, group)});
  }
  return std::make_unique<Collective>(command.op, command.average,
                                      piecesOf(command, group),
                                      barriersOf(command, threadCount)[number]);
}

void Session::makeCollectives(uint32_t threadCount) {
  collectives.resize(program->commands.size());
  for (size_t index = 0; index < collectives.size(); ++index) {
    const Command &command = program->commands[index];
    if (!command.isCollective())
      continue;
    auto made = std::make_unique<GroupedCollective>();
    made->places.resize(program->ranks);
    for (const std::vector<uint32_t> &group :
         program->grid.groups(command.axes)) {
      uint32_t number = made->groups.size();
      made->groups.push_back(
          makeCollective(command, group, number, threadCount));
      for (uint32_t position = 0; position < group.size(); ++position)
        made->places[group[position]] = {number, position};
    }
    collectives[index] = std::move(made);
  }
}

void Session::recordError(const std::string &message) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (error.empty())
      error = message;
  }
  abortWaits();
}

/// Ends all waits of this process's threads, now and later.
void Session::abortWaits() {
  for (auto &[communicator, groups] : barriers)
    for (Barrier &barrier : groups)
      barrier.abort();
  if (transport)
    transport->abort();
  for (std::unique_ptr<Rank> &rank : ranks)
    rank->abort();
}

void Session::runStream(uint32_t rank, uint32_t stream) {
  auto failed = [&](const std::string &what) {
    recordError("rank " + std::to_string(ranks[rank]->number()) + ", " +
                commandText(*program, ranks[rank]->current(stream)) + ": " +
                what);
  };
  try {
    // Events compare for equality, so the number may wrap around.
    ranks[rank]->run(stream, part, uint32_t(partNumber), partBegin, poison,
                     check, finite.get());
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

void Session::threadMain(uint32_t rank, uint32_t stream,
                         uint32_t libraryThreads) {
  setThreads(libraryThreads);
  for (uint64_t done = 0;; ++done) {
    {
      std::unique_lock<std::mutex> lock(mutex);
      partBegins.wait(lock, [&] { return ending || partNumber > done; });
      if (ending)
        return;
    }
    runStream(rank, stream);
    std::lock_guard<std::mutex> lock(mutex);
    if (--running == 0)
      partEnds.notify_all();
  }
}

/// A micro-batch before the last needs neither learning rate nor step.
void Session::checkInputsSet(Part part) const {
  for (size_t index = 0; index < program->parameters.size(); ++index)
    if (!parameterSet[index]) {
      const Parameter &parameter = program->parameters[index];
      if (group && !parameter.shardBytes(parameter.shardOf(ranks[0]->number())))
        continue; // others hold all of it
      fail(ZRT_ERROR_ARGUMENT, "parameter ", parameter.name,
           " has no value: set it first",
           parameter.initFile.empty() ? "" : " from " + parameter.initFile);
    }
  for (size_t index = 0; index < inputSet.size(); ++index) {
    const Input &input = program->inputs[index / ranks.size()];
    bool needed = part == Part::Step ||
                  (input.role != fb::InputRole_LearningRate &&
                   input.role != fb::InputRole_Step);
    if (needed && !inputSet[index])
      fail(ZRT_ERROR_ARGUMENT, "input ", input.name, " was not set for rank ",
           ranks[index % ranks.size()]->number());
  }
}

void Session::failWithPeer() const {
  throw PeerFailed(group->processes->failure());
}

/// Runs a part of the program on all ranks.
void Session::run(Part which) {
  if (!error.empty())
    fail(ZRT_ERROR_EXECUTION, "an earlier step failed: ", error);
  if (peerFailed)
    failWithPeer();
  checkInputsSet(which);
  if (poison) // before any stream of any rank writes
    for (std::unique_ptr<Rank> &rank : ranks)
      rank->poisonUnwritten();
  if (finite)
    finite->begin(accumulated, ranks);
  Clock::time_point begin = Clock::now();
  {
    std::unique_lock<std::mutex> lock(mutex);
    running = threads.size();
    part = which;
    partBegin = begin;
    ++partNumber;
    partBegins.notify_all();
    partEnds.wait(lock, [&] { return running == 0; });
  }
  std::chrono::nanoseconds time = Clock::now() - begin;
  std::fill(inputSet.begin(), inputSet.end(), false);
  if (!error.empty())
    fail(ZRT_ERROR_EXECUTION, error);
  if (peerFailed)
    failWithPeer();
  for (std::unique_ptr<Rank> &rank : ranks)
    rank->countTail();
  stepMs += std::chrono::duration<double, std::milli>(time).count();
  if (which == Part::MicroBatch)
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
  if (finite) {
    FiniteCheck::AllGather gather;
    if (transport)
      gather = [this](const std::string &own) { return allGather(own); };
    error = finite->finish(ranks, isSkipped(), gather).value_or("");
  }
  if (!error.empty())
    fail(ZRT_ERROR_EXECUTION, error);
  if (check)
    checkState();
}

/// The step has found its gradients not finite and has changed nothing.
bool Session::isSkipped() const {
  for (size_t index = 0; index < program->outputs.size(); ++index) {
    double overflow = 0;
    if (program->outputs[index].name != "overflow" ||
        program->outputs[index].elements != 1)
      continue;
    readOutput(uint32_t(index), &overflow, 1);
    return overflow != 0;
  }
  return false;
}

static double toMs(int64_t nanoseconds) { return double(nanoseconds) * 1e-6; }

zrt_counters Session::counters() const {
  zrt_counters result = {};
  result.steps = steps;
  double count = double(ranks.size());
  for (size_t index = 0; index < program->commands.size(); ++index) {
    const Command &command = program->commands[index];
    double ms = 0;
    for (const std::unique_ptr<Rank> &rank : ranks)
      ms += toMs(rank->commandTime(index)) / count;
    uint64_t times = index < program->microCommands ? accumulations : steps;
    if (auto way = transferOf(*program, command)) {
      result.transfer_bytes_all_ranks[*way] +=
          times * transferBytes(*program, command);
      result.transfer_ms += ms;
    } else if (command.isCollective()) {
      size_t kind = command.op - fb::Op_AllGather;
      result.comm_bytes_times_ranks[kind] +=
          times * program->sentBytesTimesRanks(command);
      result.comm_padding_bytes_times_ranks[kind] +=
          times * program->sentPaddingTimesRanks(command);
      result.comm_ms += ms;
    } else if (command.op == fb::Op_Launch && command.host) {
      result.host_ms += ms;
    } else {
      (command.op == fb::Op_Call ? result.library_ms : result.kernel_ms) += ms;
    }
  }
  for (const std::unique_ptr<Rank> &rank : ranks) {
    result.exposed_comm_ms += toMs(rank->exposedTime()) / count;
    std::vector<uint64_t> byArena = rank->touched();
    uint64_t touched[ZRT_NUM_SPACES] = {};
    for (size_t arena = 0; arena < program->arenas.size(); ++arena)
      touched[program->arenas[arena].space] += byArena[arena];
    for (size_t space = 0; space < ZRT_NUM_SPACES; ++space)
      result.peak_bytes[space] =
          std::max(result.peak_bytes[space], touched[space]);
  }
  result.gathered_peak_bytes = everStepped ? gatheredPeak(*program) : 0;
  result.library_workspace_bytes = scratchBytes;
  result.step_ms = stepMs;
  return result;
}

void Session::resetCounters() {
  steps = accumulations = 0;
  stepMs = 0;
  for (std::unique_ptr<Rank> &rank : ranks)
    rank->resetTimes();
}

/// A rank of this process; null: it is in another.
Rank *Session::localRank(uint32_t rank) const {
  size_t index = rank - ranks[0]->number();
  return index < ranks.size() ? ranks[index].get() : nullptr;
}

const Rank &Session::rankAt(uint32_t rank) const {
  if (rank >= program->ranks)
    fail(ZRT_ERROR_ARGUMENT, "rank ", rank, " of ", program->ranks);
  if (const Rank *local = localRank(rank))
    return *local;
  fail(ZRT_ERROR_ARGUMENT, "the times of rank ", rank, " are in its process; ",
       "this one has rank ", ranks[0]->number());
}

void Session::checkRoom(uint64_t count) const {
  if (count != program->commands.size())
    fail(ZRT_ERROR_ARGUMENT, "room for ", count, " times; the program has ",
         program->commands.size(), " commands");
}

void Session::commandMs(uint32_t rank, double *ms, uint64_t count) const {
  const Rank &from = rankAt(rank);
  checkRoom(count);
  for (size_t index = 0; index < count; ++index)
    ms[index] = toMs(from.commandTime(index));
}

/// Commands behind the micro-batches before the last come when these are done.
void Session::spans(uint32_t rank, zrt_span *spans, uint64_t count) const {
  const Rank &from = rankAt(rank);
  checkRoom(count);
  for (size_t index = 0; index < count; ++index) {
    const Span &span = from.lastSpans()[index];
    int64_t shift =
        everStepped && index >= program->microCommands ? microBatchesTime : 0;
    spans[index] = {toMs(span.start + shift), toMs(span.end + shift),
                    toMs(span.waited)};
  }
}
