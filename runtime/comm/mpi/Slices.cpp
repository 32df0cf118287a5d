//===- Slices.cpp - A bucket in messages ----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Slices.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/mpi/Slices.h"

#include "runtime/core/Layout.h"

#include <algorithm>

using namespace zrt;
using namespace zrt::mpi;

static uint64_t aligned(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

std::vector<Slice> zrt::mpi::cut(const std::vector<CollectivePiece> &pieces,
                                 RangeOf rangeOf, uint32_t position,
                                 uint64_t bytes) {
  std::vector<Slice> slices;
  for (size_t piece = 0; piece < pieces.size(); ++piece) {
    ElementRange range = rangeOf(pieces[piece], position);
    uint64_t size = elementBytes(pieces[piece].type);
    while (range.begin < range.end) {
      if (slices.empty() || aligned(slices.back().bytes) + 64 > bytes)
        slices.emplace_back();
      Slice &slice = slices.back();
      uint64_t offset = aligned(slice.bytes);
      uint64_t end = std::min(range.end, range.begin + (bytes - offset) / size);
      slice.spans.push_back({piece, {range.begin, end}, offset});
      slice.bytes = offset + (end - range.begin) * size;
      range.begin = end;
    }
  }
  return slices;
}
