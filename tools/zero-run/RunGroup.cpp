//===- RunGroup.cpp - The other processes of a run ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See RunGroup.h.
//
//===----------------------------------------------------------------------===//

#include "RunGroup.h"

#include "TemporaryFolder.h"
#include "Terminal.h"

#include "runtime/comm/Group.h"

#include <chrono>
#include <unistd.h>

using namespace zero_tools;
using namespace std::chrono_literals;

/// How long a process may take to end by itself when another one has failed: it
/// may be inside a long command, or wait for a device.
static constexpr auto patience = 4s;

RunGroup::RunGroup(const Launched &launched, const GroupSettings &settings)
    : launched(launched) {
  const LaunchSettings &from = launched.settings;
  zrt_group_options options = {};
  options.rank = from.rank;
  options.size = from.size;
  options.local_rank = from.localRank;
  options.local_size = from.localSize;
  options.address = from.address.c_str();
  options.port = from.port;
  options.listener = launched.listener;
  if (!settings.transport.empty())
    options.transport = settings.transport.c_str();
  options.connect_timeout_s = settings.connectSeconds.value_or(0);
  options.timeout_factor = settings.timeoutFactor.value_or(0);
  options.timeout_min_s = settings.timeoutSeconds.value_or(0);
  zrt_status failed = zrt_group_create(&options, &group);
  if (failed == ZRT_ERROR_PEER && from.rank != 0)
    throw PeerError(zrt_last_error());
  if (failed)
    throw std::runtime_error(zrt_last_error());
  if (launched.board)
    ++launched.board->joined;
  watcher = std::thread([this] { watch(); });
}

RunGroup::~RunGroup() {
  if (watcher.joinable()) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      ending = true;
    }
    changed.notify_all();
    watcher.join();
  }
  zrt_group_destroy(group);
}

/// Ends the process where it does not end by itself.
void RunGroup::watch() {
  std::unique_lock<std::mutex> lock(mutex);
  while (!changed.wait_for(lock, 100ms, [&] { return ending; })) {
    if (zrt_group_failed_rank(group) < 0)
      continue;
    if (changed.wait_for(lock, patience, [&] { return ending; }))
      return;
    if (zrt_group_prints_failure(group))
      print(group->processes->failure());
    TemporaryFolder::removeNow();
    _exit(exitCode());
  }
}

void RunGroup::print(const std::string &text) {
  LaunchBoard *board = launched.board;
  // That processes are lost which a signal has ended is no news.
  if (board &&
      ((board->ending && !board->saves) || board->printed.exchange(true)))
    return;
  printMessage("error", text);
}

int RunGroup::exitCode() const {
  return zrt_group_failed_rank(group) == rank() ? 1 : peerFailedExitCode;
}

void RunGroup::report(const std::exception &error) {
  bool peer = dynamic_cast<const PeerError *>(&error);
  bool common = dynamic_cast<const CommonError *>(&error) && rank() != 0;
  // Process 0 says it; only if it does not, this one.
  for (int round = 0; common && round < 20; ++round) {
    if (zrt_group_failed_rank(group) >= 0)
      break;
    std::this_thread::sleep_for(100ms);
  }
  if (!peer)
    zrt_group_report_failure(group, error.what());
}

int RunGroup::fail(const std::exception &error) {
  report(error);
  if (zrt_group_prints_failure(group))
    print(zrt_group_failure(group));
  return exitCode();
}

/// Statuses of collective functions.
static void check(zrt_status status) {
  if (status == ZRT_ERROR_PEER)
    throw PeerError(zrt_last_error());
  if (status)
    throw std::runtime_error(zrt_last_error());
}

std::string RunGroup::broadcast(const std::string &bytes) {
  const void *data = bytes.data();
  size_t size = bytes.size();
  check(zrt_group_broadcast(group, &data, &size));
  return std::string(static_cast<const char *>(data), size);
}

std::vector<std::string> RunGroup::allGather(const std::string &bytes) {
  try {
    return group->processes->allGather(bytes);
  } catch (const zrt::PeerFailed &failed) {
    throw PeerError(failed.what());
  }
}

void RunGroup::savesBeforeEnd() {
  if (launched.board)
    launched.board->saves = true;
}

bool RunGroup::askedToEnd() const {
  return launched.board && launched.board->ending;
}

void RunGroup::setPlace(const std::string &place) {
  group->processes->setPlace(place);
}
