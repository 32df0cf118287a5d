//===- Registry.cpp - Allocations of the fake devices ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/Registry.h"
#include "test/fake-cuda/Environment.h"
#include "test/fake-cuda/Queue.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <sys/mman.h>

using namespace fake_cuda;

constexpr uint64_t kPage = 4096;

static uint64_t wholePages(uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

Address fake_cuda::reserveAddresses(uint64_t bytes) {
  // One page more: what runs over the end must not meet the next allocation.
  void *at = mmap(nullptr, wholePages(bytes) + kPage, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? 0 : reinterpret_cast<Address>(at);
}

char *fake_cuda::mapData(uint64_t bytes) {
  void *at = mmap(nullptr, wholePages(bytes), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return nullptr;
  // NaN in every floating type: a use before the first write shows.
  std::memset(at, 0xff, bytes);
  return static_cast<char *>(at);
}

void fake_cuda::unmapData(char *data, uint64_t bytes) {
  munmap(data, wholePages(bytes));
}

std::string Allocation::text() const {
  if (window.begin == 0) // all that was not allocated here
    return what;
  std::string place = device == kHost
                          ? "pinned memory " + std::to_string(number)
                          : "memory " + std::to_string(number) + " of device " +
                                std::to_string(device);
  return place + " (" + std::to_string(window.bytes) + " bytes, " + what + ")";
}

Registry &Registry::get() {
  static Registry *registry = new Registry; // used until the process ends
  return *registry;
}

void Registry::insert(const AllocationPtr &allocation) {
  allocation->number = numbers[allocation->device]++;
  live[allocation->window.begin] = allocation;
}

bool Registry::reserve(int device, uint64_t bytes) {
  std::unique_lock<std::shared_mutex> lock(mutex);
  uint64_t &used = usedBytes[device];
  if (bytes > environment().memory || used > environment().memory - bytes)
    return false;
  used += bytes;
  return true;
}

void Registry::unreserve(int device, uint64_t bytes) {
  std::unique_lock<std::shared_mutex> lock(mutex);
  usedBytes[device] -= bytes;
}

uint64_t Registry::used(int device) const {
  std::shared_lock<std::shared_mutex> lock(mutex);
  auto found = usedBytes.find(device);
  return found == usedBytes.end() ? 0 : found->second;
}

AllocationPtr Registry::addDevice(int device, uint64_t bytes,
                                  const std::string &what) {
  if (!reserve(device, bytes))
    return nullptr;
  char *data = mapData(bytes);
  Address begin = data ? reserveAddresses(bytes) : 0;
  if (!begin) {
    unreserve(device, bytes);
    return nullptr;
  }
  auto allocation = std::make_shared<Allocation>();
  allocation->window = {begin, bytes, data};
  allocation->device = device;
  allocation->what = what;
  std::unique_lock<std::shared_mutex> lock(mutex);
  insert(allocation);
  return allocation;
}

AllocationPtr Registry::addForeign(int device, Window window,
                                   const std::string &what) {
  auto allocation = std::make_shared<Allocation>();
  allocation->window = window;
  allocation->device = device;
  allocation->what = what;
  allocation->owned = false;
  std::unique_lock<std::shared_mutex> lock(mutex);
  insert(allocation);
  return allocation;
}

AllocationPtr Registry::addHost(uint64_t bytes, const std::string &what) {
  char *data = mapData(bytes);
  if (!data)
    return nullptr;
  auto allocation = std::make_shared<Allocation>();
  allocation->window = {reinterpret_cast<Address>(data), bytes, data};
  allocation->what = what;
  std::unique_lock<std::shared_mutex> lock(mutex);
  freed.erase(allocation->window.begin); // host addresses do come again
  insert(allocation);
  return allocation;
}

AllocationPtr Registry::around(Address address) const {
  std::shared_lock<std::shared_mutex> lock(mutex);
  auto next = live.upper_bound(address);
  if (next == live.begin())
    return nullptr;
  const AllocationPtr &allocation = std::prev(next)->second;
  return address - allocation->window.begin < allocation->window.bytes
             ? allocation
             : nullptr;
}

bool Registry::remove(Address begin, const std::string &what) {
  std::unique_lock<std::shared_mutex> lock(mutex);
  auto found = live.find(begin);
  if (found == live.end() || found->second->what != what)
    return false;
  AllocationPtr allocation = found->second;
  live.erase(found);
  const Window &window = allocation->window;
  if (allocation->device != kHost && allocation->owned)
    usedBytes[allocation->device] -= window.bytes;
  freed[begin] = {begin + window.bytes, allocation->text()};
  if (allocation->owned)
    unmapData(window.data, window.bytes);
  return true;
}

static std::string hex(Address address) {
  char text[32];
  snprintf(text, sizeof text, "0x%llx",
           static_cast<unsigned long long>(address));
  return text;
}

std::string Registry::whyNot(int device, Address address,
                             uint64_t bytes) const {
  std::string range = std::to_string(bytes) + " bytes at " + hex(address);
  if (AllocationPtr allocation = around(address)) {
    if (allocation->device != kHost && allocation->device != device)
      return range + " lie in " + allocation->text() + ", not of device " +
             std::to_string(device);
    uint64_t offset = address - allocation->window.begin;
    return range + " begin at byte " + std::to_string(offset) + " of " +
           allocation->text() + " and end " +
           std::to_string(bytes - (allocation->window.bytes - offset)) +
           " bytes beyond it";
  }
  std::shared_lock<std::shared_mutex> lock(mutex);
  auto next = freed.upper_bound(address);
  if (next != freed.begin() && std::prev(next)->second.first > address)
    return range + " lie in " + std::prev(next)->second.second +
           ", which was freed";
  auto after = live.upper_bound(address);
  if (after != live.begin()) {
    const Allocation &before = *std::prev(after)->second;
    uint64_t beyond = address - (before.window.begin + before.window.bytes);
    if (beyond < kPage)
      return range + " lie " + std::to_string(beyond) + " bytes beyond " +
             before.text();
  }
  return range + " are not allocated";
}

std::vector<std::string> Registry::leaks() const {
  std::shared_lock<std::shared_mutex> lock(mutex);
  std::vector<std::string> texts;
  for (const auto &entry : live)
    texts.push_back(entry.second->text());
  return texts;
}

std::string fake_cuda::addressName(Address address) {
  AllocationPtr allocation = Registry::get().around(address);
  if (!allocation)
    return address ? "unknown" : "null";
  return (allocation->device == kHost ? "host " : "memory ") +
         std::to_string(allocation->number) + "+" +
         std::to_string(address - allocation->window.begin);
}
