//===- ThreadQueue.cpp - Transfers on threads -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See ThreadQueue.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/ThreadQueue.h"

using namespace zrt;

ThreadQueue::ThreadQueue(FileSystem &system, unsigned count) : system(system) {
  try {
    for (unsigned thread = 0; thread < count; ++thread)
      threads.emplace_back(&ThreadQueue::work, this);
  } catch (...) {
    stop();
    throw;
  }
}

ThreadQueue::~ThreadQueue() { stop(); }

/// What has not begun is dropped; what is under way ends first.
void ThreadQueue::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ending = true;
    waiting.clear();
  }
  begun.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

int64_t ThreadQueue::begin(const Transfer &transfer) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    waiting.push_back(transfer);
  }
  begun.notify_one();
  return 0;
}

int64_t ThreadQueue::finish(uint64_t &tag, int64_t &result) {
  std::unique_lock<std::mutex> lock(mutex);
  finished.wait(lock, [&] { return !answers.empty(); });
  Answer answer = std::move(answers.front());
  answers.pop_front();
  if (answer.failure)
    std::rethrow_exception(answer.failure);
  tag = answer.tag;
  result = answer.result;
  return 0;
}

ThreadQueue::Answer ThreadQueue::answer(const Transfer &transfer) {
  try {
    int64_t result = transfer.write
                         ? system.writeAt(transfer.file, transfer.data,
                                          transfer.bytes, transfer.offset)
                         : system.readAt(transfer.file, transfer.data,
                                         transfer.bytes, transfer.offset);
    return {transfer.tag, result, nullptr};
  } catch (...) {
    return {transfer.tag, 0, std::current_exception()};
  }
}

void ThreadQueue::work() {
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    begun.wait(lock, [&] { return ending || !waiting.empty(); });
    if (ending)
      return;
    Transfer transfer = waiting.front();
    waiting.pop_front();
    lock.unlock();
    Answer done = answer(transfer);
    lock.lock();
    answers.push_back(std::move(done));
    finished.notify_one();
  }
}
