//===- Checkpointing.cpp - Checkpoints of a training run ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A save beside the next steps copies the state to memory that is there from
// the start, and a thread writes that copy. One save runs at a time; its error
// is thrown where the run next asks.
//
//===----------------------------------------------------------------------===//

#include "Checkpointing.h"

#include "CheckpointingState.h"
#include "Training.h"

#include "runtime/io/Files.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <future>
#include <limits>

using namespace zero_tools;

using Clock = std::chrono::steady_clock;

static std::atomic<bool> terminationAsked = false;
static_assert(std::atomic<bool>::is_always_lock_free,
              "may be set by a signal handler");

static void askToEnd(int) { terminationAsked = true; }

namespace {

/// SIGTERM is taken down instead of ending the process; a second one ends it.
class TerminationGuard {
public:
  TerminationGuard() {
    terminationAsked = false;
    struct sigaction action = {};
    action.sa_handler = askToEnd;
    action.sa_flags = int(SA_RESTART | SA_RESETHAND);
    sigaction(SIGTERM, &action, &before);
  }
  ~TerminationGuard() { sigaction(SIGTERM, &before, nullptr); }

private:
  struct sigaction before;
};

/// State copied out of the ranks.
class Snapshot {
public:
  explicit Snapshot(const ProgramState &state) : state(state) {
    uint64_t bytes = 0;
    for (const zrt::StateTensor &tensor : state.tensors()) {
      begins.emplace_back();
      for (uint32_t part = 0; part < tensor.parts; ++part) {
        begins.back().push_back(bytes);
        bytes += tensor.partBytes(part);
      }
    }
    memory.resize(bytes);
  }

  void take(const zrt::Session &session) {
    for (size_t tensor = 0; tensor < begins.size(); ++tensor)
      for (uint32_t part = 0; part < begins[tensor].size(); ++part)
        if (uint64_t bytes = state.tensors()[tensor].partBytes(part))
          state.read(session, tensor, part, 0, &memory[begins[tensor][part]],
                     bytes);
  }
  void read(size_t tensor, uint32_t part, uint64_t offset, void *data,
            size_t bytes) const {
    std::memcpy(data, &memory[begins[tensor][part] + offset], bytes);
  }
  uint64_t bytes() const { return memory.size(); }

private:
  const ProgramState &state;
  std::vector<std::vector<uint64_t>> begins; // by tensor and part
  std::vector<uint8_t> memory;
};

} // namespace

struct Checkpointing::State {
  const CheckpointOptions &options;
  const zrt::Program &program;
  zrt::Session &session;
  std::function<void(const std::string &)> note;
  ProgramState state;
  std::optional<zrt::CheckpointFolder> folder;
  std::optional<TerminationGuard> guard;
  std::optional<Snapshot> snapshot;
  std::future<std::string> writer;
  ResumePoint start;
  std::optional<int64_t> seed;
  int64_t done = 0, saved = -1;
  bool ended = false;
  double blockedMs = 0;

  State(const CheckpointOptions &options, const zrt::Program &program,
        zrt::Session &session, std::function<void(const std::string &)> note)
      : options(options), program(program), session(session),
        note(std::move(note)), state(program), seed(options.seed) {}

  zrt::RunFacts facts() const;
  void save();
  void wait();
  void load();
  void refuseForeign();
};

/// The samples that a step uses, over all ranks and micro-batches.
static int64_t samplesPerStep(const zrt_program_info &info) {
  return info.samples_per_rank * int64_t(info.ranks) *
         int64_t(info.micro_batches);
}

zrt::RunFacts Checkpointing::State::facts() const {
  zrt::RunFacts facts = state.facts();
  facts.step = done;
  facts.samples =
      start.firstSample + (done - start.step) * samplesPerStep(program.info());
  facts.seed = seed;
  return facts;
}

/// Until the save that runs is on disk. Throws its error.
void Checkpointing::State::wait() {
  if (writer.valid())
    writer.get();
}

void Checkpointing::State::save() {
  Clock::time_point begin = Clock::now();
  wait();
  saved = done;
  if (!snapshot) {
    folder->save(
        facts(), state.tensors(),
        [this](size_t tensor, uint32_t part, uint64_t offset, void *data,
               size_t bytes) {
          state.read(session, tensor, part, offset, data, bytes);
        },
        options.keep);
  } else {
    snapshot->take(session);
    writer = std::async(std::launch::async, [this, facts = facts()] {
      return folder->save(
          facts, state.tensors(),
          [this](size_t tensor, uint32_t part, uint64_t offset, void *data,
                 size_t bytes) {
            snapshot->read(tensor, part, offset, data, bytes);
          },
          options.keep);
    });
  }
  blockedMs +=
      std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

Checkpointing::Checkpointing(const CheckpointOptions &options,
                             const zrt::Program &program, zrt::Session &session,
                             std::function<void(const std::string &)> note)
    : state(
          std::make_unique<State>(options, program, session, std::move(note))) {
  if (options.folder.empty())
    return;
  state->folder.emplace(options.folder);
  state->guard.emplace();
  if (!options.synchronous)
    state->snapshot.emplace(state->state);
}

Checkpointing::~Checkpointing() {
  // An error that nobody asked for any more: another one ended the run.
  if (state->writer.valid())
    state->writer.wait();
}

uint64_t Checkpointing::snapshotBytes() const {
  return state->snapshot ? state->snapshot->bytes() : 0;
}

/// A folder holds the checkpoints of one run: those of another would be taken
/// for newer ones of this, or be removed by --keep.
void Checkpointing::State::refuseForeign() {
  std::vector<std::string> names = folder->checkpoints();
  if (names.empty())
    return;
  int64_t newest = zrt::CheckpointName::parse(names.back())->step;
  if (options.resume.empty())
    throw zrt::IoError(folder->path(),
                       "has the checkpoint " + names.back() +
                           " of an earlier run; go on with --resume, or give "
                           "--checkpoint another folder");
  if (newest > start.step)
    throw zrt::IoError(
        folder->path(),
        "has the checkpoint " + names.back() +
            ", and this run goes on from step " + std::to_string(start.step) +
            "; give --checkpoint another folder, or remove the later ones");
}

void Checkpointing::State::load() {
  zrt::Checkpoint checkpoint = zrt::Checkpoint::open(options.resume);
  const zrt::RunFacts &facts = checkpoint.facts();
  start = {facts.step, facts.samples, /*resumed=*/true};
  restore(checkpoint, program, session, note);
  if (seed && facts.seed && *seed != *facts.seed)
    note("--seed " + std::to_string(*seed) + " takes the place of the saved " +
         std::to_string(*facts.seed));
  if (!seed)
    seed = facts.seed;
  note("goes on after step " + std::to_string(facts.step) + " of " +
       checkpoint.path() + " (" + std::to_string(facts.ranks) +
       (facts.ranks == 1 ? " rank" : " ranks") + ", ZeRO stage " +
       std::to_string(facts.stage) + ", " + facts.precision + ")");
}

ResumePoint Checkpointing::resume() {
  const CheckpointOptions &options = state->options;
  // A job that is started again and again has the same command line each time.
  bool first = !options.resume.empty() && state->folder &&
               options.resume == options.folder &&
               !zrt::Checkpoint::anyIn(options.resume);
  if (first)
    state->note(options.resume + " has no checkpoint yet: the run starts at "
                                 "step 0");
  else if (!options.resume.empty())
    state->load();
  if (state->folder)
    state->refuseForeign();
  state->done = state->saved = state->start.step;
  return state->start;
}

bool Checkpointing::afterStep(int64_t done) {
  if (!state->folder)
    return false;
  state->done = done;
  using namespace std::chrono_literals;
  if (state->writer.valid() &&
      state->writer.wait_for(0s) == std::future_status::ready)
    state->wait(); // its error, now rather than at the next save
  bool ending = terminationAsked;
  if (ending || (state->options.every > 0 && done % state->options.every == 0))
    state->save();
  if (!ending)
    return false;
  state->wait();
  state->ended = true;
  state->note("SIGTERM: stops after step " + std::to_string(done) +
              ", which is saved; go on with --resume " + state->options.folder);
  return true;
}

void Checkpointing::finish() {
  if (!state->folder)
    return;
  if (state->saved != state->done)
    state->save();
  Clock::time_point begin = Clock::now();
  state->wait();
  state->blockedMs +=
      std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

bool Checkpointing::terminated() const { return state->ended; }

double Checkpointing::blockedMs() const { return state->blockedMs; }
