//===- Memory.cpp - Memory of the fake devices ----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/Memory.h"
#include "test/fake-cuda/Queue.h"
#include "test/fake-cuda/Registry.h"

#include <algorithm>

using namespace fake_cuda;

bool fake_cuda::find(int device, Address address, uint64_t bytes,
                     Window &window, std::string &error) {
  Registry &registry = Registry::get();
  AllocationPtr allocation = registry.around(address);
  if (allocation &&
      (allocation->device == kHost || allocation->device == device) &&
      bytes <=
          allocation->window.bytes - (address - allocation->window.begin)) {
    window = allocation->window;
    return true;
  }
  error = registry.whyNot(device, address, bytes);
  return false;
}

Window fake_cuda::allocate(int device, uint64_t bytes,
                           const std::string &what) {
  AllocationPtr allocation = Registry::get().addDevice(device, bytes, what);
  return allocation ? allocation->window : Window();
}

bool fake_cuda::release(Address begin, const std::string &what) {
  return Registry::get().remove(begin, what);
}

char *fake_cuda::hostAddress(Address address) {
  AllocationPtr allocation = Registry::get().around(address);
  return allocation
             ? allocation->window.data + (address - allocation->window.begin)
             : nullptr;
}

bool AccessRecorder::locate(Address address, uint32_t bytes,
                            uint32_t alignment) {
  if (!message.empty())
    return false;
  if (address % alignment != 0) {
    message = addressName(address) + " is no multiple of " +
              std::to_string(alignment);
    return false;
  }
  return find(device, address, bytes, window, message);
}

static void joinRanges(std::vector<Range> &ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range &a, const Range &b) { return a.begin < b.begin; });
  size_t kept = 0;
  for (const Range &range : ranges) {
    if (kept && range.begin <= ranges[kept - 1].end)
      ranges[kept - 1].end = std::max(ranges[kept - 1].end, range.end);
    else
      ranges[kept++] = range;
  }
  ranges.resize(kept);
}

void AccessRecorder::close(Ranges &ranges, Range range) {
  if (range.begin == range.end)
    return;
  ranges.closed.push_back(range);
  if (ranges.closed.size() >= ranges.limit) {
    joinRanges(ranges.closed);
    ranges.limit = std::max(ranges.limit, 2 * ranges.closed.size());
  }
}

std::vector<Range> AccessRecorder::take(Ranges &ranges) {
  for (const Range &range : ranges.open)
    close(ranges, range);
  joinRanges(ranges.closed);
  std::vector<Range> taken = std::move(ranges.closed);
  ranges = Ranges();
  return taken;
}
