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
#include "RunGroup.h"
#include "Training.h"

#include "runtime/comm/Frame.h"
#include "runtime/io/Files.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <future>
#include <limits>
#include <utility>

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

/// State copied out of the ranks, or one rank's.
class Snapshot {
public:
  Snapshot(const ProgramState &state, std::optional<uint32_t> only)
      : state(state), only(only) {
    uint64_t bytes = 0;
    for (const zrt::StateTensor &tensor : state.tensors()) {
      begins.emplace_back();
      for (uint32_t part = 0; part < tensor.parts; ++part) {
        begins.back().push_back(bytes);
        bytes += !only || *only == part ? tensor.partBytes(part) : 0;
      }
    }
    memory.resize(bytes);
  }

  void take(const zrt::Session &session) {
    for (size_t tensor = 0; tensor < begins.size(); ++tensor)
      for (uint32_t part = 0; part < begins[tensor].size(); ++part)
        if (uint64_t bytes = state.tensors()[tensor].partBytes(part);
            bytes && (!only || *only == part))
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
  std::optional<uint32_t> only;
  std::vector<std::vector<uint64_t>> begins; // by tensor and part
  std::vector<uint8_t> memory;
};

} // namespace

struct Checkpointing::State {
  const CheckpointOptions &options;
  const zrt::Program &program;
  zrt::Session &session;
  std::function<void(const std::string &)> note;
  RunGroup *group; // null: all ranks are here
  ProgramState state;
  /// Of process 0.
  std::optional<zrt::CheckpointFolder> folder;
  std::optional<TerminationGuard> guard;
  std::optional<Snapshot> snapshot;
  std::future<std::vector<zrt::Checkpoint::FileEntry>> writer;
  /// The checkpoint that is being written; empty: none.
  std::string name;
  zrt::RunFacts namedFacts;
  ResumePoint start;
  std::optional<int64_t> seed;
  int64_t done = 0, saved = -1;
  bool ended = false;
  double blockedMs = 0;

  State(const CheckpointOptions &options, const zrt::Program &program,
        zrt::Session &session, std::function<void(const std::string &)> note,
        RunGroup *group)
      : options(options), program(program), session(session),
        note(std::move(note)), group(group), state(program),
        seed(options.seed) {}
  ~State();

  bool first() const { return !group || group->rank() == 0; }
  bool isOn() const { return !options.folder.empty(); }
  zrt::RunFacts facts() const;
  std::vector<zrt::Checkpoint::FileEntry>
  writeFiles(const zrt::ReadState &read);
  void save();
  void wait();
  void commit(const std::vector<zrt::Checkpoint::FileEntry> &own);
  bool agree();
  void compareStart() const;
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

/// What goes into the checkpoint of a step: the file of this process's rank; of
/// all ranks, and the commit, where it has all of them.
std::vector<zrt::Checkpoint::FileEntry>
Checkpointing::State::writeFiles(const zrt::ReadState &read) {
  if (group)
    return zrt::writeCheckpointFiles(options.folder, name, group->rank(),
                                     namedFacts.step, state.tensors(), read);
  folder->save(namedFacts, state.tensors(), read, options.keep);
  return {};
}

/// Files as bytes, for other processes.
static std::string
packed(const std::vector<zrt::Checkpoint::FileEntry> &files) {
  zrt::PayloadWriter writer;
  for (const zrt::Checkpoint::FileEntry &file : files) {
    writer.text(file.name).number(file.bytes).text(file.headerHash);
    writer.number(file.pieces.size());
    for (const zrt::Checkpoint::Piece &piece : file.pieces)
      writer.number(piece.tensor).number(piece.part).text(piece.hash);
  }
  return writer.bytes;
}

static void unpack(const std::string &bytes,
                   std::vector<zrt::Checkpoint::FileEntry> &files) {
  zrt::PayloadReader reader(bytes);
  while (auto name = reader.text()) {
    zrt::Checkpoint::FileEntry &file = files.emplace_back();
    file.name = *name;
    file.bytes = reader.number().value_or(0);
    file.headerHash = reader.text().value_or("");
    uint64_t pieces = reader.number().value_or(0);
    for (uint64_t i = 0; i < pieces && !reader.atEnd(); ++i) {
      zrt::Checkpoint::Piece &piece = file.pieces.emplace_back();
      piece.tensor = size_t(reader.number().value_or(0));
      piece.part = uint32_t(reader.number().value_or(0));
      piece.hash = reader.text().value_or("");
    }
  }
}

/// All processes have written their files: process 0 commits, and the others
/// know it.
void Checkpointing::State::commit(
    const std::vector<zrt::Checkpoint::FileEntry> &own) {
  if (!group)
    return;
  std::vector<std::string> all = group->allGather(packed(own));
  if (first()) {
    zrt::CheckpointIndex index = {namedFacts, state.tensors(), {}};
    for (const std::string &bytes : all)
      unpack(bytes, index.files);
    folder->commit(std::exchange(name, ""), index, options.keep);
  }
  group->barrier();
}

/// Until the save that runs is on disk. Throws its error.
void Checkpointing::State::wait() {
  if (writer.valid())
    commit(writer.get());
}

void Checkpointing::State::save() {
  Clock::time_point begin = Clock::now();
  wait();
  saved = done;
  namedFacts = facts();
  if (group) {
    if (first())
      name = folder->begin(done);
    name = group->broadcast(name);
  }
  if (!snapshot) {
    commit(writeFiles([this](size_t tensor, uint32_t part, uint64_t offset,
                             void *data, size_t bytes) {
      state.read(session, tensor, part, offset, data, bytes);
    }));
  } else {
    snapshot->take(session);
    writer = std::async(std::launch::async, [this] {
      return writeFiles([this](size_t tensor, uint32_t part, uint64_t offset,
                               void *data, size_t bytes) {
        snapshot->read(tensor, part, offset, data, bytes);
      });
    });
  }
  blockedMs +=
      std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

Checkpointing::State::~State() {
  // An error that nobody asked for any more: another one ended the run.
  if (writer.valid())
    writer.wait();
  if (group && folder && !name.empty())
    folder->abandon(name);
}

Checkpointing::Checkpointing(const CheckpointOptions &options,
                             const zrt::Program &program, zrt::Session &session,
                             std::function<void(const std::string &)> note,
                             RunGroup *group)
    : state(std::make_unique<State>(options, program, session, std::move(note),
                                    group)) {
  if (!state->isOn())
    return;
  if (state->first())
    state->folder.emplace(options.folder);
  state->guard.emplace();
  std::optional<uint32_t> only;
  if (group) {
    only = group->rank();
    group->savesBeforeEnd();
  }
  if (!options.synchronous)
    state->snapshot.emplace(state->state, only);
}

Checkpointing::~Checkpointing() = default;

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

/// A folder that not all machines have would give them different states.
void Checkpointing::State::compareStart() const {
  if (!group || options.resume.empty())
    return;
  std::vector<std::string> all = group->allGather(std::to_string(start.step));
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      throw CommonError(options.resume + ": rank " + std::to_string(rank) +
                        " finds step " + all[rank] + " in it, rank 0 step " +
                        all[0] +
                        "; all processes need the same folder, on a "
                        "file system that their machines share");
}

ResumePoint Checkpointing::resume() {
  const CheckpointOptions &options = state->options;
  // A job that is started again and again has the same command line each time.
  bool starts = !options.resume.empty() && options.resume == options.folder &&
                (!zrt::Folder::exists(options.resume) ||
                 !zrt::Checkpoint::anyIn(options.resume));
  if (starts)
    state->note(options.resume + " has no checkpoint yet: the run starts at "
                                 "step 0");
  else if (!options.resume.empty())
    state->load();
  if (state->folder)
    state->refuseForeign();
  state->compareStart();
  state->done = state->saved = state->start.step;
  state->start.seed = state->seed;
  return state->start;
}

/// Commits a save that is written, and says whether the run has to end; all
/// processes do the same.
bool Checkpointing::State::agree() {
  using namespace std::chrono_literals;
  bool ending = terminationAsked || (group && group->askedToEnd());
  bool ready =
      writer.valid() && writer.wait_for(0s) == std::future_status::ready;
  if (group) {
    std::string mine = {ending ? '1' : '0', ready ? '1' : '0'};
    for (const std::string &theirs : group->allGather(mine)) {
      ending = ending || theirs.at(0) == '1';
      ready = ready && theirs.at(1) == '1';
    }
  }
  if (ready)
    wait(); // its error, now rather than at the next save
  return ending;
}

bool Checkpointing::afterStep(int64_t done) {
  if (!state->isOn())
    return false;
  state->done = done;
  bool ending = state->agree();
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
  if (!state->isOn())
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
