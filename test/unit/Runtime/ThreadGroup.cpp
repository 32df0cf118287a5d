//===- ThreadGroup.cpp - A group of processes that are threads ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See ThreadGroup.h.
//
//===----------------------------------------------------------------------===//

#include "ThreadGroup.h"

#include <thread>

using namespace zrt;
using namespace zrt::test;

std::vector<std::string> ThreadHub::meet(uint32_t rank,
                                         const std::string &bytes) {
  std::unique_lock<std::mutex> lock(mutex);
  if (!why.empty())
    throw PeerFailed(why);
  given[rank] = bytes;
  uint64_t mine = round;
  if (++arrived == size) {
    arrived = 0;
    last = given;
    ++round;
    changed.notify_all();
  }
  changed.wait(lock, [&] { return round != mine || !why.empty(); });
  if (round == mine)
    throw PeerFailed(why);
  return last;
}

void ThreadHub::fail(uint32_t rank, const std::string &what) {
  std::vector<std::function<void()>> others;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!why.empty())
      return;
    why = what;
    changed.notify_all();
    for (uint32_t other = 0; other < size; ++other)
      if (other != rank && aborts[other])
        aborts[other]();
  }
}

void ThreadHub::setAbort(uint32_t rank, std::function<void()> abort) {
  std::lock_guard<std::mutex> lock(mutex);
  aborts[rank] = std::move(abort);
  if (!why.empty() && aborts[rank])
    aborts[rank]();
}

std::string ThreadHub::failure() {
  std::lock_guard<std::mutex> lock(mutex);
  return why;
}

namespace {
class ThreadGroup : public ProcessGroup {
public:
  ThreadGroup(ThreadHub &hub, uint32_t number) : hub(hub), number(number) {}

  uint32_t rank() const override { return number; }
  uint32_t size() const override { return hub.size; }
  uint32_t localRank() const override { return number; }
  uint32_t localSize() const override { return hub.size; }
  bool oneMachine() const override { return hub.oneMachine; }
  std::vector<std::string> allGather(const std::string &bytes) override {
    return hub.meet(number, bytes);
  }
  std::string broadcast(const std::string &bytes) override {
    return hub.meet(number, bytes)[0];
  }
  void barrier() override { hub.meet(number, ""); }
  void setPlace(const std::string &) override {}
  void reportFailure(const std::string &what) override {
    hub.fail(number, what);
  }
  void onPeerFailure(std::function<void()> abort) override {
    hub.setAbort(number, std::move(abort));
  }
  std::string failure() const override { return hub.failure(); }

private:
  ThreadHub &hub;
  uint32_t number;
};
} // namespace

zrt_group zrt::test::makeGroup(ThreadHub &hub, uint32_t rank) {
  zrt_group group;
  group.processes = std::make_unique<ThreadGroup>(hub, rank);
  return group;
}

std::vector<std::string> zrt::test::runProcesses(
    uint32_t size,
    const std::function<void(zrt_group &group, uint32_t rank)> &body,
    double timeoutSeconds) {
  ThreadHub hub(size);
  std::vector<std::string> texts(size);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      zrt_group group = makeGroup(hub, rank);
      group.timeoutMinSeconds = timeoutSeconds;
      try {
        body(group, rank);
      } catch (const std::exception &error) {
        texts[rank] = error.what();
        group.processes->reportFailure(error.what());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return texts;
}
