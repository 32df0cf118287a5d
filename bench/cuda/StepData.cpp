//===- StepData.cpp - Weights and data of measured steps ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See StepData.h.
//
//===----------------------------------------------------------------------===//

#include "StepData.h"

#include "runtime/core/NarrowFloat.h"
#include "runtime/io/Files.h"

#include <algorithm>
#include <cstring>

using namespace zrt;
using namespace zrt::bench;

namespace {
/// SplitMix64: a sequence of a seed, the same everywhere.
class Random {
public:
  explicit Random(const std::string &name) {
    for (char c : name)
      state = (state ^ uint8_t(c)) * 0x100000001b3u;
  }
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// In [-1, 1).
  double uniform() { return double(int64_t(next())) / 9223372036854775808.0; }

private:
  uint64_t state = 0xcbf29ce484222325u;
};
} // namespace

static void store(double value, zrt_dtype type, uint8_t *to) {
  auto put = [&](auto element) { std::memcpy(to, &element, sizeof(element)); };
  switch (type) {
  case ZRT_F32:
    return put(float(value));
  case ZRT_F64:
    return put(value);
  case ZRT_BF16:
    return put(BFloat16::round(float(value)));
  case ZRT_F16:
    return put(Half::round(float(value)));
  case ZRT_I64:
    return put(int64_t(value));
  case ZRT_I32:
    return put(int32_t(value));
  default:
    return put(uint8_t(value));
  }
}

static uint64_t countOf(const int64_t *shape, uint32_t rank) {
  uint64_t count = 1;
  for (uint32_t dim = 0; dim < rank; ++dim)
    count *= uint64_t(shape[dim]);
  return count;
}

StepData::StepData(const std::string &weightsPath,
                   const std::string &dataPath) {
  if (!weightsPath.empty())
    weights = openTensorFile(weightsPath);
  if (!dataPath.empty())
    data = openTensorFile(dataPath);
}

/// Scales are ones and biases zeros, as models begin.
static std::vector<uint8_t> seeded(const zrt_parameter_info &info,
                                   const std::string &name) {
  std::vector<uint8_t> values(info.bytes);
  uint64_t count = countOf(info.shape, info.rank);
  if (!count)
    return values;
  uint64_t size = info.bytes / count;
  auto endsWith = [&](const std::string &end) {
    return name.size() >= end.size() &&
           name.compare(name.size() - end.size(), end.size(), end) == 0;
  };
  Random random(name);
  for (uint64_t i = 0; i < count; ++i) {
    double value = 0.035 * random.uniform();
    if (info.rank <= 1)
      value = endsWith("bias") || endsWith("mean") ? 0 : 1;
    store(value, info.dtype, &values[i * size]);
  }
  return values;
}

std::vector<uint8_t> StepData::parameter(const zrt_parameter_info &info) {
  std::vector<std::string> names = {
      info.init_tensor[0] ? info.init_tensor : info.name, info.name};
  names.insert(names.end(), info.tied, info.tied + info.num_tied);
  if (!weights)
    return seeded(info, names[0]);
  for (const std::string &name : names) {
    const TensorInfo *found = weights->find(name);
    if (!found)
      continue;
    if (found->bytes != info.bytes)
      throw IoError(weights->path(),
                    "tensor " + name + " has " + std::to_string(found->bytes) +
                        " bytes, the program's " + std::to_string(info.bytes));
    const uint8_t *values = weights->data(name);
    return {values, values + found->bytes};
  }
  throw IoError(weights->path(), "has no tensor " + names[0]);
}

std::vector<uint8_t> StepData::input(const zrt_input_info &info, uint64_t batch,
                                     uint32_t rank, uint32_t ranks,
                                     uint64_t step, double learningRate) {
  std::vector<uint8_t> values(info.bytes);
  uint64_t count = countOf(info.shape, info.rank);
  uint64_t size = info.bytes / std::max<uint64_t>(1, count);
  if (info.role != ZRT_INPUT_DATA) {
    double value =
        info.role == ZRT_INPUT_STEP ? double(step + 1) : learningRate;
    for (uint64_t i = 0; i < count; ++i)
      store(value, info.dtype, &values[i * size]);
    return values;
  }
  uint64_t place = batch * ranks + rank;
  const TensorInfo *rows = data ? data->find(info.name) : nullptr;
  if (rows) {
    uint64_t batches = rows->bytes / std::max<uint64_t>(1, info.bytes);
    if (!batches)
      throw IoError(data->path(), "tensor " + std::string(info.name) +
                                      " has less than one batch");
    std::memcpy(values.data(),
                data->data(info.name) + place % batches * info.bytes,
                info.bytes);
    return values;
  }
  Random random(info.name + std::to_string(place));
  bool integer = info.dtype >= ZRT_I64;
  uint64_t range = info.has_range ? uint64_t(info.max - info.min) + 1 : 2;
  for (uint64_t i = 0; i < count; ++i)
    store(integer ? double(info.min + int64_t(random.next() % range))
                  : random.uniform(),
          info.dtype, &values[i * size]);
  return values;
}
