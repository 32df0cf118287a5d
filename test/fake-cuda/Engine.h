//===- Engine.h - Executes the work of all streams ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Work is a graph: a piece of it runs when those before it are done. A stream
// is no more than a chain in it. One thread a device picks at random among what
// is ready, so that every order that the program allows can happen. It starts
// late, when the host waits for something or rests for a moment: what the
// program must not rely on is then not there by luck.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_ENGINE_H
#define ZERO_TEST_FAKECUDA_ENGINE_H

#include "test/fake-cuda/Clock.h"
#include "test/fake-cuda/Queue.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

namespace fake_cuda {

struct Node;
using NodePtr = std::shared_ptr<Node>;

/// A piece of work: of a graph that was captured, or to be done once.
struct Node {
  int device = 0;
  uint32_t entity = 0;
  std::string place; ///< "stream 1", for messages
  Work work;
  bool isHostFunction = false;
  std::vector<NodePtr> before;
  /// A wait that was left out on purpose; see FAKE_CUDA_DROP_WAIT.
  NodePtr dropped;

  // Of the engine.
  Clock clock; ///< before the start: of the host; then what it is ordered after
  uint32_t label = 0;
  std::vector<NodePtr> after;
  uint64_t number = 0;
  size_t missing = 0; ///< of `before`, not done
  bool done = false;
  std::chrono::steady_clock::time_point finished;
  std::string error;
};

class Engine {
public:
  static Engine &get();

  /// A number for a stream or a branch.
  uint32_t newEntity();

  /// Takes work whose `before` and `work` are set.
  void submit(const NodePtr &node);

  /// Waits until it is done; the host is then ordered after it.
  void wait(const NodePtr &node);
  /// Whether it is done, and if so as `wait`.
  bool query(const NodePtr &node);

  /// Whether the calling thread is in a host function.
  static bool inHostFunction();

  /// Waits for all work of a device.
  void waitAll(int device);
  /// Work that is not done: "memcpy on stream 1"; "" if there is none.
  std::string unfinished();

private:
  struct Device {
    std::mt19937_64 random;
    std::vector<NodePtr> ready;
    std::vector<NodePtr> polled;
    std::deque<NodePtr> hostFunctions;
    uint64_t calls = 0; ///< of submit
    bool rested = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  Device &device(int number);
  void runDevice(Device &device);
  void runHostFunctions(Device &device);
  void await(Device &device, Lock &lock);
  void start(const NodePtr &node, Device &device, Lock &lock);
  void run(Node &node, Lock &lock);
  void poll(Device &device, Lock &lock);
  void finish(const NodePtr &node);

  std::mutex mutex;
  std::condition_variable workers, hosts;
  std::map<int, std::unique_ptr<Device>> devices;
  std::map<uint64_t, NodePtr> open; ///< not done, by number
  Clock hostClock;
  uint32_t entities = kHostEntity + 1;
  uint64_t nodes = 0;
  size_t waiting = 0;  ///< threads in `wait`
  bool kicked = false; ///< the host has asked whether something is done
};

/// Numbers for texts, to keep epochs small.
uint32_t labelOf(const std::string &text);
std::string labelText(uint32_t label);

} // namespace fake_cuda

#endif // ZERO_TEST_FAKECUDA_ENGINE_H
