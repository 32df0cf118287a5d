//===- Grid.h - How ranks are arranged ------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks on a grid [A, B, ..., S], row-major: rank = ((a * B + b) * ...) * S +
// s. State is sharded over the last axis and replicated over the others.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_GRID_H
#define ZERO_RT_CORE_GRID_H

#include <cstdint>
#include <vector>

namespace zrt {

class Grid {
public:
  /// `shape` has at least one axis, all of at least 1.
  explicit Grid(std::vector<uint32_t> shape = {1}) : shape(std::move(shape)) {}

  uint32_t axes() const { return shape.size(); }
  const std::vector<uint32_t> &sizes() const { return shape; }
  /// Parts of a sharded tensor that names no other number: the last axis.
  uint32_t shards() const { return shape.back(); }
  /// Whether a tensor may be cut in so many parts: over the last axis, or all.
  bool hasShards(uint32_t count) const {
    return count == shards() || count == groupSize({});
  }

  /// Ranks in one group of a collective over `axes`; no axes mean all.
  uint32_t groupSize(const std::vector<uint32_t> &axes) const;
  /// Ranks in a row of a group along the innermost of `axes`.
  uint32_t innerSize(const std::vector<uint32_t> &axes) const;
  /// The groups of a collective: ranks that differ only in `axes`. Within a
  /// group ranks ascend: the innermost axis runs fastest.
  std::vector<std::vector<uint32_t>>
  groups(const std::vector<uint32_t> &axes) const;

private:
  std::vector<uint32_t> shape;
};

} // namespace zrt

#endif // ZERO_RT_CORE_GRID_H
