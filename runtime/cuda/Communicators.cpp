//===- Communicators.cpp - Collectives among GPUs -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Communicators.h. The works of collectives are in Collectives.cpp.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Communicators.h"

#include "runtime/comm/Futex.h"
#include "runtime/core/Error.h"
#include "runtime/cuda/Status.h"

#include <algorithm>
#include <chrono>
#include <thread>

using namespace zrt;
using namespace zrt::cuda;

void Cancel::check() const {
  if (isSet())
    throw Aborted();
}

void PollPause::operator()() {
  constexpr uint32_t shortly = 2000;
  auto time = looks < shortly ? std::chrono::microseconds(20)
                              : std::chrono::microseconds(500);
  looks += looks < shortly;
  std::this_thread::sleep_for(time);
}

bool Communicators::needed(const Program &program) {
  return std::any_of(program.commands.begin(), program.commands.end(),
                     [&](const Command &command) {
                       return command.isCollective() &&
                              program.grid.groupSize(command.axes) > 1;
                     });
}

Communicators::Communicators(const Program &program, uint32_t rank,
                             const ncclUniqueId &id,
                             const std::vector<DeviceBlock> &arenas,
                             bool always, double timeoutSeconds,
                             const Cancel &cancel)
    : program(program), rank(rank), timeoutSeconds(timeoutSeconds),
      cancel(cancel) {
  if (!needed(program) && !always)
    return;
  try {
    createAll(id);
    for (ncclComm_t communicator : all)
      registerArenas(communicator, arenas);
  } catch (...) {
    abort();
    throw;
  }
}

Communicators::~Communicators() {
  if (!aborted)
    finish();
}

/// A communicator of all ranks that some command can use is not made twice.
void Communicators::createAll(const ncclUniqueId &id) {
  world = createWorld(id);
  bool worldUsed = false;
  for (const Command &command : program.commands) {
    uint32_t size = program.grid.groupSize(command.axes);
    if (!command.isCollective() || size == 1)
      continue;
    ncclComm_t &communicator = byUse[{command.stream, command.axes}];
    if (communicator)
      continue;
    if (size == program.ranks && !worldUsed) {
      communicator = world;
      worldUsed = true;
    } else {
      communicator = split(command.axes);
    }
  }
}

static ncclConfig_t configuration() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

ncclComm_t Communicators::createWorld(const ncclUniqueId &id) {
  ncclConfig_t config = configuration();
  ncclComm_t made = nullptr;
  ncclResult_t status =
      ncclCommInitRankConfig(&made, int(program.ranks), id, int(rank), &config);
  if (made)
    all.push_back(made);
  checkNccl(status, "ncclCommInitRankConfig");
  settle(made, "ncclCommInitRankConfig");
  return made;
}

/// The communicator of the group over `axes` that this rank is in.
ncclComm_t Communicators::split(const std::vector<uint32_t> &axes) {
  std::vector<std::vector<uint32_t>> groups = program.grid.groups(axes);
  int color = 0, key = 0;
  for (size_t group = 0; group < groups.size(); ++group) {
    auto place = std::find(groups[group].begin(), groups[group].end(), rank);
    if (place == groups[group].end())
      continue;
    color = int(group);
    key = int(place - groups[group].begin());
  }
  ncclConfig_t config = configuration();
  ncclComm_t made = nullptr;
  checkNccl(ncclCommSplit(world, color, key, &made, &config), "ncclCommSplit",
            world);
  settle(world, "ncclCommSplit");
  all.push_back(made);
  settle(made, "ncclCommSplit");
  return made;
}

void Communicators::registerArenas(ncclComm_t communicator,
                                   const std::vector<DeviceBlock> &arenas) {
  for (const DeviceBlock &arena : arenas) {
    if (!arena.bytes())
      continue;
    Registration made{communicator, nullptr};
    checkNccl(ncclCommRegister(communicator,
                               reinterpret_cast<void *>(arena.address()),
                               arena.bytes(), &made.handle),
              "ncclCommRegister", communicator);
    settle(communicator, "ncclCommRegister");
    registrations.push_back(made);
  }
}

/// Waits until what was asked of a communicator is under way.
void Communicators::settle(ncclComm_t communicator, const char *what) const {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  PollPause pause;
  while (true) {
    ncclResult_t state = ncclSuccess;
    checkNccl(ncclCommGetAsyncError(communicator, &state),
              "ncclCommGetAsyncError", communicator);
    checkNccl(state, what, communicator);
    if (state == ncclSuccess)
      return;
    cancel.check();
    std::chrono::duration<double> waited = Clock::now() - begin;
    if (waited.count() > timeoutSeconds)
      fail(ZRT_ERROR_EXECUTION, what, ": the other ranks have not come within ",
           timeoutSeconds, " s");
    pause();
  }
}

void Communicators::checkAsync() const {
  for (ncclComm_t communicator : all) {
    ncclResult_t state = ncclSuccess;
    checkNccl(ncclCommGetAsyncError(communicator, &state),
              "ncclCommGetAsyncError", communicator);
    checkNccl(state, "NCCL", communicator);
  }
}

void Communicators::abort() noexcept {
  if (aborted)
    return;
  aborted = true;
  for (auto it = all.rbegin(); it != all.rend(); ++it)
    ncclCommAbort(*it);
  all.clear();
}

/// What fails at the end cannot be told to anybody: then it is cut off.
void Communicators::finish() noexcept {
  try {
    for (const Registration &registration : registrations) {
      checkNccl(
          ncclCommDeregister(registration.communicator, registration.handle),
          "ncclCommDeregister", registration.communicator);
      settle(registration.communicator, "ncclCommDeregister");
    }
    while (!all.empty()) {
      ncclComm_t last = all.back();
      checkNccl(ncclCommFinalize(last), "ncclCommFinalize", last);
      settle(last, "ncclCommFinalize");
      all.pop_back();
      checkNccl(ncclCommDestroy(last), "ncclCommDestroy");
    }
  } catch (const std::exception &) {
    abort();
  }
}

void Communicators::broadcast(CUdeviceptr data, uint64_t bytes, uint32_t root,
                              CUstream stream) {
  auto *place = reinterpret_cast<void *>(data);
  checkNccl(
      ncclBroadcast(place, place, bytes, ncclUint8, int(root), world, stream),
      "ncclBroadcast", world);
  settle(world, "ncclBroadcast");
}
