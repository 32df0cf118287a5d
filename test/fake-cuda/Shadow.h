//===- Shadow.h - Who touched which bytes last ----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each byte of an allocation the last write and the reads since, as epochs:
// an access that is not ordered after those it conflicts with is a race.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_SHADOW_H
#define ZERO_TEST_FAKECUDA_SHADOW_H

#include "test/fake-cuda/Clock.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace fake_cuda {

struct Race {
  uint64_t begin, end; ///< offsets of the first bytes that conflict
  bool otherWrites;
  Epoch other;
};

class Shadow {
public:
  /// Notes an access of [begin, end), offsets in the allocation, by `self`,
  /// which is ordered after what `clock` covers. Returns the first conflict.
  std::optional<Race> access(uint64_t begin, uint64_t end, bool write,
                             const Clock &clock, const Epoch &self);

private:
  struct Cell {
    uint64_t end;
    Epoch write;
    std::vector<Epoch> reads;
  };
  using Cells = std::map<uint64_t, Cell>;

  Cells::iterator split(uint64_t offset);

  std::mutex mutex;
  Cells cells; // by begin; disjoint
};

} // namespace fake_cuda

#endif // ZERO_TEST_FAKECUDA_SHADOW_H
