//===- RunGroup.h - The other processes of a run ----------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What this process does together with the others: agree, exchange a few bytes,
// and fail together. The first error is printed once and all processes end, at
// most ten seconds after it.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_RUNGROUP_H
#define ZERO_TOOLS_ZERO_RUN_RUNGROUP_H

#include "Launcher.h"

#include "zero-rt/zero-rt.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace zero_tools {

/// Another process has failed: this one ends without a word of its own.
class PeerError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// An error that all processes find alike: process 0 reports it.
class CommonError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

struct GroupSettings {
  std::string transport; // empty: chosen
  std::optional<double> timeoutFactor, timeoutSeconds, connectSeconds;
};

class RunGroup {
public:
  /// What a process exits with when another one has failed.
  static constexpr int peerFailedExitCode = 75;

  /// Collective, as all that follows; throws std::runtime_error.
  RunGroup(const Launched &launched, const GroupSettings &settings);
  ~RunGroup();

  uint32_t rank() const { return launched.settings.rank; }
  uint32_t size() const { return launched.settings.size; }
  zrt_group *get() const { return group; }
  /// That of the launcher; empty: there is none.
  const std::string &temporaryFolder() const { return launched.folder; }

  std::string broadcast(const std::string &bytes);
  std::vector<std::string> allGather(const std::string &bytes);
  void barrier() { allGather(""); }

  /// Not collective: after each step this process asks whether to end, and
  /// saves its state before it does.
  void savesBeforeEnd();
  bool askedToEnd() const;

  /// Not collective: where this process is, for what others say when it is
  /// lost.
  void setPlace(const std::string &place);
  /// Not collective: this process cannot go on. Tells the others.
  void report(const std::exception &error);
  /// The same; prints what is to be printed, and gives the exit code.
  int fail(const std::exception &error);

private:
  void watch();
  void print(const std::string &text);
  int exitCode() const;

  Launched launched;
  zrt_group *group = nullptr;
  std::mutex mutex;
  std::condition_variable changed;
  bool ending = false;
  std::thread watcher;
};

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_RUNGROUP_H
