//===- Clock.h - Vector clocks --------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Work A is ordered before work B if B's clock has at least A's time at A's
// entity. Entities are streams, the branches of graphs, and the host (0).
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_CLOCK_H
#define ZERO_TEST_FAKECUDA_CLOCK_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fake_cuda {

constexpr uint32_t kHostEntity = 0;

struct Epoch {
  uint32_t entity = kHostEntity;
  uint32_t time = 0;  ///< 0: never
  uint32_t label = 0; ///< what did it; see labelText
};

class Clock {
public:
  uint32_t at(uint32_t entity) const {
    return entity < times.size() ? times[entity] : 0;
  }
  bool covers(const Epoch &epoch) const {
    return at(epoch.entity) >= epoch.time;
  }
  /// Whether it has all that `other` has, but for the host.
  bool coversWork(const Clock &other) const {
    for (size_t i = kHostEntity + 1; i < other.times.size(); ++i)
      if (at(i) < other.times[i])
        return false;
    return true;
  }
  void join(const Clock &other) {
    if (times.size() < other.times.size())
      times.resize(other.times.size());
    for (size_t i = 0; i < other.times.size(); ++i)
      times[i] = std::max(times[i], other.times[i]);
  }
  void tick(uint32_t entity) {
    if (entity >= times.size())
      times.resize(entity + 1);
    ++times[entity];
  }

private:
  std::vector<uint32_t> times;
};

} // namespace fake_cuda

#endif // ZERO_TEST_FAKECUDA_CLOCK_H
