//===- Launcher.cpp - All processes of a run on this machine --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Launcher.h.
//
//===----------------------------------------------------------------------===//

#include "Launcher.h"

#include "Terminal.h"

#include "runtime/comm/Socket.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <new>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace zero_tools;

using Clock = std::chrono::steady_clock;

/// How long a process may take to say why it has failed before all have met.
static constexpr std::chrono::seconds startPatience(1);
/// How long the others may take to end when one has failed.
static constexpr std::chrono::seconds patience(4);

namespace {

struct Child {
  pid_t process;
  uint32_t rank;
  bool ended = false;
  int status = 0;

  bool exited(int code) const {
    return ended && WIFEXITED(status) && WEXITSTATUS(status) == code;
  }
};

class Supervisor {
public:
  Supervisor(std::vector<Child> children, LaunchBoard &board)
      : children(std::move(children)), board(board) {}

  /// Until all have ended. The exit code of the launcher.
  int run(const sigset_t &watched);

private:
  bool reap();
  void signalAll(int signal);
  void killStragglers();
  void explain();
  void pass(int signal);
  int exitCode() const;

  std::vector<Child> children;
  LaunchBoard &board;
  std::optional<Clock::time_point> firstBadEnd;
  std::optional<size_t> firstBad; // in `children`
  int asked = 0;                  // the signal that ends the run
  bool killed = false;
};

} // namespace

/// Takes down who has ended; true when all have.
bool Supervisor::reap() {
  bool all = true;
  for (Child &child : children) {
    if (!child.ended)
      child.ended = waitpid(child.process, &child.status, WNOHANG) > 0;
    all = all && child.ended;
    if (!child.ended || child.exited(0) || firstBadEnd)
      continue;
    firstBadEnd = Clock::now();
    firstBad = size_t(&child - children.data());
  }
  return all;
}

void Supervisor::signalAll(int signal) {
  for (const Child &child : children)
    if (!child.ended)
      kill(child.process, signal);
}

/// A process that cannot end, because it is stopped or waits for a device.
void Supervisor::killStragglers() {
  if (!firstBadEnd || killed)
    return;
  // Who waits for the first meeting would do so for long.
  bool met = board.joined == children.size();
  if (Clock::now() - *firstBadEnd < (met ? patience : startPatience))
    return;
  killed = true;
  signalAll(SIGKILL);
}

/// Who ended how, where the processes could not say it themselves.
void Supervisor::explain() {
  if (exitCode() != 1 || !firstBad || asked || board.printed.exchange(true))
    return;
  // The first that did not end because of another.
  const Child *child = &children[*firstBad];
  for (const Child &other : children)
    if (other.ended && WIFSIGNALED(other.status) && !WIFSIGNALED(child->status))
      child = &other;
  std::string rank = "rank " + std::to_string(child->rank);
  if (WIFSIGNALED(child->status))
    printMessage("error", rank + " was killed by signal " +
                              std::to_string(WTERMSIG(child->status)) + " (" +
                              strsignal(WTERMSIG(child->status)) + ")");
  else
    printMessage("error", rank + " ended with exit code " +
                              std::to_string(WEXITSTATUS(child->status)));
}

int Supervisor::exitCode() const {
  bool good = true, saved = true;
  for (const Child &child : children) {
    good = good && child.exited(0);
    saved = saved && child.exited(128 + SIGTERM);
  }
  if (good || saved)
    return good ? 0 : 128 + SIGTERM;
  return asked && !board.saves ? 128 + asked : 1;
}

/// A signal to end: the first asks for an end with a checkpoint, where there
/// are any, the second for any end.
void Supervisor::pass(int signal) {
  board.ending = true;
  if (asked)
    signalAll(SIGKILL);
  else if (!board.saves || signal == SIGINT)
    signalAll(signal == SIGHUP ? SIGTERM : signal);
  asked = signal;
}

int Supervisor::run(const sigset_t &watched) {
  while (!reap()) {
    killStragglers();
    timespec wait = {0, 100 * 1000 * 1000};
    int signal = sigtimedwait(&watched, nullptr, &wait);
    if (signal > 0 && signal != SIGCHLD)
      pass(signal);
  }
  explain();
  return exitCode();
}

static LaunchBoard &makeBoard() {
  void *memory = mmap(nullptr, sizeof(LaunchBoard), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw std::runtime_error(std::string("--processes: no memory to share: ") +
                             std::strerror(errno));
  return *new (memory) LaunchBoard;
}

/// A new process begins: it ends with the launcher.
static void beginChild(pid_t launcher, const sigset_t &before) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher)
    _exit(1); // it has ended already
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

std::optional<Launched> zero_tools::launchProcesses(uint32_t count,
                                                    int &exitCode) {
  zrt::Socket listener = zrt::listenOn(0, /*loopbackOnly=*/true);
  LaunchBoard &board = makeBoard();
  Launched launched;
  launched.settings.size = launched.settings.localSize = count;
  launched.settings.port = zrt::portOf(listener);
  launched.settings.source = "--processes";
  launched.board = &board;
  sigset_t watched, before;
  sigemptyset(&watched);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP})
    sigaddset(&watched, signal);
  sigprocmask(SIG_BLOCK, &watched, &before);
  pid_t launcher = getpid();
  std::vector<Child> children;
  for (uint32_t rank = 0; rank < count; ++rank) {
    pid_t process = fork();
    if (process == 0) {
      beginChild(launcher, before);
      launched.settings.rank = launched.settings.localRank = rank;
      if (rank == 0)
        launched.listener = dup(listener.get());
      return launched;
    }
    if (process < 0) {
      std::string reason = std::strerror(errno);
      for (const Child &child : children)
        kill(child.process, SIGKILL);
      for (Child &child : children)
        waitpid(child.process, &child.status, 0);
      throw std::runtime_error("--processes " + std::to_string(count) +
                               ": cannot start process " +
                               std::to_string(rank) + ": " + reason);
    }
    children.push_back({process, rank});
  }
  listener.close();
  exitCode = Supervisor(std::move(children), board).run(watched);
  return std::nullopt;
}
