//===- Engine.cpp - Executes the work of all streams ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/Engine.h"
#include "test/fake-cuda/Environment.h"
#include "test/fake-cuda/Registry.h"

#include <algorithm>
#include <chrono>
#include <thread>

using namespace fake_cuda;

// How long the host must rest until work starts that nobody waits for, and how
// often work that waits for other devices is looked at.
constexpr std::chrono::milliseconds kRest(10);
constexpr std::chrono::microseconds kPoll(200);

static thread_local Node *currentNode = nullptr;

Engine &Engine::get() {
  static Engine *engine = new Engine; // its threads outlive main
  return *engine;
}

uint32_t Engine::newEntity() {
  Lock lock(mutex);
  return entities++;
}

bool Engine::inHostFunction() {
  return currentNode && currentNode->isHostFunction;
}

/// The device's queues and threads, from its first work on.
Engine::Device &Engine::device(int number) {
  std::unique_ptr<Device> &slot = devices[number];
  if (slot)
    return *slot;
  slot = std::make_unique<Device>();
  slot->random.seed(environment().seed * 1000003 + number);
  Device &device = *slot;
  std::thread([this, &device] { runDevice(device); }).detach();
  std::thread([this, &device] { runHostFunctions(device); }).detach();
  return device;
}

//===----------------------------------------------------------------------===//
// For the host
//===----------------------------------------------------------------------===//

void Engine::submit(const NodePtr &node) {
  Lock lock(mutex);
  hostClock.tick(kHostEntity);
  node->clock = hostClock;
  node->label = labelOf(node->work.name + " on " + node->place);
  node->number = nodes++;
  open[node->number] = node;
  for (const NodePtr &before : node->before) {
    if (before->done)
      continue;
    before->after.push_back(node);
    ++node->missing;
  }
  Device &queue = device(node->device);
  ++queue.calls;
  if (node->missing == 0)
    queue.ready.push_back(node);
  workers.notify_all();
}

void Engine::wait(const NodePtr &node) {
  Lock lock(mutex);
  ++waiting;
  workers.notify_all();
  hosts.wait(lock, [&] { return node->done; });
  --waiting;
  hostClock.join(node->clock);
}

bool Engine::query(const NodePtr &node) {
  Lock lock(mutex);
  if (node->done) {
    hostClock.join(node->clock);
    return true;
  }
  kicked = true;
  workers.notify_all();
  return false;
}

void Engine::waitAll(int device) {
  while (true) {
    NodePtr last;
    {
      Lock lock(mutex);
      for (const auto &entry : open)
        if (entry.second->device == device)
          last = entry.second;
    }
    if (!last)
      return;
    wait(last);
  }
}

std::string Engine::unfinished() {
  Lock lock(mutex);
  return open.empty() ? "" : labelText(open.begin()->second->label);
}

//===----------------------------------------------------------------------===//
// The worker of a device
//===----------------------------------------------------------------------===//

void Engine::runDevice(Device &device) {
  Lock lock(mutex);
  while (true) {
    poll(device, lock);
    bool go = waiting > 0 || kicked || device.rested;
    if (!go || device.ready.empty()) {
      await(device, lock);
      continue;
    }
    size_t chosen = device.random() % device.ready.size();
    NodePtr node = device.ready[chosen];
    device.ready.erase(device.ready.begin() + chosen);
    start(node, device, lock);
  }
}

/// Sleeps until there may be something to do.
void Engine::await(Device &device, Lock &lock) {
  if (device.ready.empty()) {
    device.rested = false;
    kicked = false;
  }
  uint64_t before = device.calls;
  if (!device.polled.empty())
    workers.wait_for(lock, kPoll);
  else if (device.ready.empty())
    workers.wait(lock);
  else if (workers.wait_for(lock, kRest) == std::cv_status::timeout)
    device.rested = device.calls == before;
}

/// Whether `node`, which may start, comes after all work of `dropped` anyway.
static bool isImplied(const Node &node, const Node &dropped) {
  if (dropped.done)
    return node.clock.coversWork(dropped.clock);
  return !dropped.work.run &&
         std::all_of(
             dropped.before.begin(), dropped.before.end(),
             [&](const NodePtr &before) { return isImplied(node, *before); });
}

void Engine::start(const NodePtr &node, Device &device, Lock &lock) {
  for (const NodePtr &before : node->before)
    node->clock.join(before->clock);
  node->before.clear();
  if (node->dropped) {
    fprintf(stderr, "fake-cuda: note: the dropped wait of %s is %s\n",
            labelText(node->label).c_str(),
            isImplied(*node, *node->dropped) ? "implied by others"
                                             : "needed for its order");
    node->dropped = nullptr;
  }
  // An event is no work: it comes after what its stream has done.
  if (node->work.run)
    node->clock.tick(node->entity);
  if (node->isHostFunction) {
    device.hostFunctions.push_back(node);
    workers.notify_all();
    return;
  }
  run(*node, lock);
  if (node->error.empty() && node->work.poll)
    device.polled.push_back(node);
  else
    finish(node);
}

/// Not while an error sticks: what comes after it would only add to it.
void Engine::run(Node &node, Lock &lock) {
  lock.unlock();
  currentNode = &node;
  if (stickyError().empty()) {
    for (const Access &access : node.work.accesses)
      if (node.error.empty())
        node.error = noteAccess(access);
    std::string error;
    if (node.error.empty() && node.work.run)
      error = node.work.run();
    if (node.error.empty())
      node.error = error;
  }
  currentNode = nullptr;
  lock.lock();
}

void Engine::poll(Device &device, Lock &lock) {
  for (size_t i = 0; i < device.polled.size();) {
    NodePtr node = device.polled[i];
    lock.unlock();
    bool done = !stickyError().empty() || node->work.poll(node->error);
    lock.lock();
    if (!done && node->error.empty()) {
      ++i;
      continue;
    }
    device.polled.erase(device.polled.begin() + i);
    finish(node);
  }
}

void Engine::finish(const NodePtr &node) {
  if (!node->error.empty())
    fail(labelText(node->label) + " of device " + std::to_string(node->device) +
         ": " + node->error);
  node->done = true;
  node->finished = std::chrono::steady_clock::now();
  open.erase(node->number);
  for (const NodePtr &after : node->after)
    if (--after->missing == 0)
      device(after->device).ready.push_back(after);
  node->after.clear();
  node->work = Work();
  workers.notify_all();
  hosts.notify_all();
}

void Engine::runHostFunctions(Device &device) {
  Lock lock(mutex);
  while (true) {
    workers.wait(lock, [&] { return !device.hostFunctions.empty(); });
    NodePtr node = device.hostFunctions.front();
    device.hostFunctions.pop_front();
    run(*node, lock);
    finish(node);
  }
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

static const char *does(bool write) { return write ? "writes" : "reads"; }

/// Notes it for the node of this thread; "" or the race.
static std::string noteIn(Allocation &allocation, const Access &access) {
  const Node &node = *currentNode;
  uint64_t begin = access.address - allocation.window.begin;
  Epoch self{node.entity, node.clock.at(node.entity), node.label};
  std::optional<Race> race = allocation.shadow.access(
      begin, begin + access.bytes, access.write, node.clock, self);
  if (!race)
    return "";
  return std::string("race: it ") + does(access.write) + " " +
         std::to_string(race->end - race->begin) + " bytes at byte " +
         std::to_string(race->begin) + " of " + allocation.text() + " that " +
         labelText(race->other.label) + " " + does(race->otherWrites) +
         ", and nothing orders them";
}

std::string fake_cuda::noteAccess(const Access &access) {
  if (access.bytes == 0 || !currentNode)
    return "";
  Window window;
  std::string error;
  if (!find(currentNode->device, access.address, access.bytes, window, error))
    return std::string(does(access.write)) +
           " memory that it may not: " + error;
  AllocationPtr allocation = Registry::get().around(access.address);
  return allocation ? noteIn(*allocation, access)
                    : "memory was freed while it is in use";
}

/// All that is no memory of the devices: of the host, or places on disk.
static Allocation &elsewhere() {
  static Allocation *all = [] {
    auto *made = new Allocation;
    made->window.bytes = ~uint64_t(0);
    made->what = "memory that is not pinned, or places on disk";
    return made;
  }();
  return *all;
}

/// What a host function uses; see the README.
extern "C" __attribute__((visibility("default"))) void
fake_cuda_host_access(const void *address, uint64_t bytes, int write) {
  Access access = {reinterpret_cast<Address>(address), bytes, write != 0};
  if (!Engine::inHostFunction() || bytes == 0)
    return;
  bool known = Registry::get().around(access.address) != nullptr;
  std::string error = known ? noteAccess(access) : noteIn(elsewhere(), access);
  if (!error.empty() && currentNode->error.empty())
    currentNode->error = error;
}

//===----------------------------------------------------------------------===//
// Labels
//===----------------------------------------------------------------------===//

namespace {
struct Labels {
  std::mutex mutex;
  std::vector<std::string> texts{"the host"};
  std::map<std::string, uint32_t> numbers;
};
} // namespace

static Labels &labels() {
  static Labels *labels = new Labels;
  return *labels;
}

uint32_t fake_cuda::labelOf(const std::string &text) {
  Labels &all = labels();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto [found, added] = all.numbers.try_emplace(text, all.texts.size());
  if (added)
    all.texts.push_back(text);
  return found->second;
}

std::string fake_cuda::labelText(uint32_t label) {
  Labels &all = labels();
  std::lock_guard<std::mutex> lock(all.mutex);
  return all.texts[label];
}
