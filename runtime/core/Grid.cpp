//===- Grid.cpp - How ranks are arranged ----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Grid.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Grid.h"

#include <algorithm>
#include <map>

using namespace zrt;

uint32_t Grid::groupSize(const std::vector<uint32_t> &axes) const {
  uint32_t size = 1;
  for (uint32_t axis = 0; axis < shape.size(); ++axis)
    if (axes.empty() || std::find(axes.begin(), axes.end(), axis) != axes.end())
      size *= shape[axis];
  return size;
}

uint32_t Grid::innerSize(const std::vector<uint32_t> &axes) const {
  return axes.empty() ? shape.back()
                      : shape[*std::max_element(axes.begin(), axes.end())];
}

std::vector<std::vector<uint32_t>>
Grid::groups(const std::vector<uint32_t> &axes) const {
  uint32_t ranks = groupSize({});
  // A group is known by the rank whose coordinates on `axes` are 0.
  std::map<uint32_t, std::vector<uint32_t>> byFirst;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    uint32_t first = rank, stride = 1;
    for (uint32_t axis = shape.size(); axis-- > 0; stride *= shape[axis])
      if (axes.empty() ||
          std::find(axes.begin(), axes.end(), axis) != axes.end())
        first -= rank / stride % shape[axis] * stride;
    byFirst[first].push_back(rank);
  }
  std::vector<std::vector<uint32_t>> result;
  for (auto &[first, group] : byFirst)
    result.push_back(std::move(group));
  return result;
}
