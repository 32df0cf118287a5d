//===- CheckpointRun.h - A run whose state is known -------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// State of every layout whose values follow from the step, so that a test can
// tell which checkpoint it got, and that it got all of it.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_IO_CHECKPOINTRUN_H
#define ZERO_TEST_UNIT_IO_CHECKPOINTRUN_H

#include "runtime/io/Checkpoint.h"
#include "runtime/io/Files.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace zrt::test {

/// Five rows on four ranks (2, 2, 1, none), three on one, a scalar, a value of
/// each rank, and nothing at all.
inline std::vector<StateTensor> knownTensors() {
  StateTensor rows{"w", "trained", "", {"tied"}, DataType::F32, {5, 3}};
  rows.layout = StateLayout::Rows;
  rows.parts = 4;
  rows.chunkRows = 2;
  StateTensor moment = rows;
  moment.name = "w.exp_avg";
  moment.role = "state";
  moment.of = "w";
  moment.tied.clear();
  StateTensor whole{"b", "frozen", "", {}, DataType::BF16, {3}};
  StateTensor scale{"loss_scale", "state", "", {}, DataType::F32, {}};
  StateTensor statistic{"mean", "buffer", "", {}, DataType::F64, {2}};
  statistic.layout = StateLayout::PerRank;
  statistic.parts = 4;
  StateTensor nothing{"nothing", "frozen", "", {}, DataType::I64, {0, 2}};
  return {rows, moment, whole, scale, statistic, nothing};
}

/// Byte `at` of a part at a step.
inline uint8_t knownByte(int64_t step, size_t tensor, uint32_t part,
                         uint64_t at) {
  return uint8_t(step * 71 + int64_t(tensor) * 37 + part * 13 + at * 5 + 1);
}

inline RunFacts knownFacts(int64_t step) {
  RunFacts facts;
  facts.model = "m";
  facts.optimizer = "adamw";
  facts.precision = "f32";
  facts.ranks = 4;
  facts.stage = 3;
  facts.grid = {4};
  facts.step = step;
  facts.samples = step * 10;
  facts.seed = 5;
  return facts;
}

inline std::string saveKnown(CheckpointFolder &folder, int64_t step,
                             int64_t keep = 0) {
  return folder.save(
      knownFacts(step), knownTensors(),
      [&](size_t tensor, uint32_t part, uint64_t offset, void *data,
          size_t bytes) {
        for (size_t i = 0; i < bytes; ++i)
          static_cast<uint8_t *>(data)[i] =
              knownByte(step, tensor, part, offset + i);
      },
      keep);
}

/// The step of a checkpoint after all its values were compared. Throws IoError
/// as loading does.
inline int64_t loadKnown(const Checkpoint &checkpoint,
                         unsigned threads = checkpointThreads) {
  int64_t step = checkpoint.facts().step;
  std::vector<StateTensor> tensors = knownTensors();
  uint64_t expected = 0, wrong = 0, got = 0;
  for (const StateTensor &tensor : tensors)
    for (uint32_t part = 0; part < tensor.parts; ++part)
      expected += tensor.partBytes(part);
  checkpoint.stream(
      [&](size_t tensor, uint32_t part, uint64_t offset, const void *data,
          size_t bytes) {
        got += bytes;
        for (size_t i = 0; i < bytes; ++i)
          wrong += static_cast<const uint8_t *>(data)[i] !=
                   knownByte(step, tensor, part, offset + i);
      },
      threads);
  EXPECT_EQ(got, expected);
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(checkpoint.facts().samples, step * 10);
  return step;
}

/// The step of the newest checkpoint, 0 if there is none.
inline int64_t newestStep(const std::string &path, FileSystem &system) {
  if (!Checkpoint::anyIn(path, system))
    return 0;
  return loadKnown(Checkpoint::open(path, system));
}

} // namespace zrt::test

#endif // ZERO_TEST_UNIT_IO_CHECKPOINTRUN_H
