//===- SessionData.cpp - Data into and out of a session -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parameters, inputs, outputs and the checks of state after a step. All of it
// runs on the caller's thread between steps.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/core/NarrowFloat.h"
#include "runtime/host/Session.h"

#include <algorithm>
#include <cstring>

using namespace zrt;
using namespace zrt::host;

/// Element `index` of `data` as a number.
static double numberAt(const void *data, fb::DType type, uint64_t index) {
  switch (type) {
  case fb::DType_F64:
    return static_cast<const double *>(data)[index];
  case fb::DType_F16:
    return static_cast<const Half *>(data)[index].widen();
  case fb::DType_BF16:
    return static_cast<const BFloat16 *>(data)[index].widen();
  case fb::DType_I64:
    return double(static_cast<const int64_t *>(data)[index]);
  case fb::DType_I32:
    return static_cast<const int32_t *>(data)[index];
  case fb::DType_I16:
    return static_cast<const int16_t *>(data)[index];
  case fb::DType_I8:
    return static_cast<const int8_t *>(data)[index];
  case fb::DType_U8:
  case fb::DType_Bool:
    return static_cast<const uint8_t *>(data)[index];
  default:
    return static_cast<const float *>(data)[index];
  }
}

static int64_t integerAt(const void *data, fb::DType type, uint64_t index) {
  if (type == fb::DType_I64)
    return static_cast<const int64_t *>(data)[index];
  return int64_t(numberAt(data, type, index));
}

static void checkSize(const char *what, const std::string &name, uint64_t given,
                      uint64_t expected) {
  if (given != expected)
    fail(ZRT_ERROR_ARGUMENT, what, " ", name, " has ", expected, " bytes, not ",
         given);
}

template <typename T>
static const T &entry(const std::vector<T> &table, uint32_t index,
                      const char *what) {
  if (index >= table.size())
    fail(ZRT_ERROR_ARGUMENT, what, " ", index,
         " does not exist: the program has ", table.size());
  return table[index];
}

/// An array of ones of a type.
static std::vector<uint8_t> ones(fb::DType type, uint64_t bytes) {
  static const float f32 = 1;
  static const double f64 = 1;
  static const uint16_t f16 = 0x3C00, bf16 = 0x3F80;
  static const int64_t integer = 1; // little endian: also its shorter types
  const void *one = type == fb::DType_F32    ? static_cast<const void *>(&f32)
                    : type == fb::DType_F64  ? &f64
                    : type == fb::DType_F16  ? &f16
                    : type == fb::DType_BF16 ? static_cast<const void *>(&bf16)
                                             : &integer;
  std::vector<uint8_t> data(bytes);
  uint64_t size = elementBytes(type);
  for (uint64_t at = 0; at < bytes; at += size)
    std::memcpy(&data[at], one, size);
  return data;
}

void Session::fillInitialValues() {
  for (const Constant &constant : program->constants)
    for (std::unique_ptr<Rank> &rank : ranks) {
      rank->write(constant.buffer, 0, constant.data, constant.bytes);
      rank->touch(constant.buffer);
    }
  for (uint32_t index = 0; index < program->parameters.size(); ++index) {
    const Parameter &parameter = program->parameters[index];
    if (parameter.init == fb::Init_Zeros) {
      clearParameter(index);
    } else if (parameter.init == fb::Init_Ones) {
      std::vector<uint8_t> data = ones(parameter.dtype, parameter.bytes);
      setParameter(index, data.data(), data.size());
    } else if (parameter.init == fb::Init_Value) {
      setParameter(index, parameter.initValue, parameter.initBytes);
    }
  }
}

/// All zeros, which costs a disk nothing.
void Session::clearParameter(uint32_t index) {
  uint32_t buffer = program->parameters[index].buffer;
  for (std::unique_ptr<Rank> &rank : ranks) {
    rank->clearFrom(buffer, 0);
    rank->touch(buffer);
  }
  parameterSet[index] = true;
}

void Session::setParameter(uint32_t index, const void *data, uint64_t bytes) {
  const Parameter &parameter = entry(program->parameters, index, "parameter");
  checkSize("parameter", parameter.name, bytes, parameter.bytes);
  const auto *from = static_cast<const uint8_t *>(data);
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    uint32_t shard = parameter.shardOf(rank);
    uint64_t held = parameter.shardBytes(shard);
    ranks[rank]->clearFrom(parameter.buffer, held);
    ranks[rank]->write(parameter.buffer, 0, from + parameter.shardBegin(shard),
                       held);
    ranks[rank]->touch(parameter.buffer);
  }
  parameterSet[index] = true;
}

/// The mean over ranks of a buffer that each rank has for itself.
template <typename T>
static void averageRanks(const std::vector<std::unique_ptr<Rank>> &ranks,
                         const Parameter &parameter, T *out) {
  uint64_t count = parameter.bytes / sizeof(T);
  std::vector<double> sums(count, 0);
  std::vector<uint8_t> room;
  for (const std::unique_ptr<Rank> &rank : ranks) {
    const uint8_t *from = rank->contents(parameter.buffer, room);
    for (uint64_t i = 0; i < count; ++i)
      sums[i] += reinterpret_cast<const T *>(from)[i];
  }
  for (uint64_t i = 0; i < count; ++i)
    out[i] = T(sums[i] / double(ranks.size()));
}

void Session::getParameter(uint32_t index, void *data, uint64_t bytes) const {
  const Parameter &parameter = entry(program->parameters, index, "parameter");
  checkSize("parameter", parameter.name, bytes, parameter.bytes);
  if (parameter.role == fb::ParamRole_Buffer) {
    if (parameter.dtype == fb::DType_F32)
      return averageRanks(ranks, parameter, static_cast<float *>(data));
    if (parameter.dtype == fb::DType_F64)
      return averageRanks(ranks, parameter, static_cast<double *>(data));
  }
  auto *to = static_cast<uint8_t *>(data);
  // The first ranks hold a shard each; a replicated one is read from rank 0.
  uint32_t count = parameter.sharded ? parameter.shards : 1;
  for (uint32_t rank = 0; rank < count; ++rank)
    ranks[rank]->read(parameter.buffer, 0, to + parameter.shardBegin(rank),
                      parameter.shardBytes(rank));
}

/// Refuses what is no chunk of what a rank holds of a parameter.
void Session::checkChunk(uint32_t index, uint32_t rank, uint64_t offset,
                         uint64_t bytes) const {
  const Parameter &parameter = entry(program->parameters, index, "parameter");
  if (rank >= ranks.size())
    fail(ZRT_ERROR_ARGUMENT, "parameter ", parameter.name, ": rank ", rank,
         " of ", ranks.size());
  uint64_t held = parameter.shardBytes(parameter.shardOf(rank));
  if (offset > held || bytes > held - offset)
    fail(ZRT_ERROR_ARGUMENT, "parameter ", parameter.name, ": rank ", rank,
         " holds ", held, " bytes, not ", bytes, " from byte ", offset);
}

void Session::readChunk(uint32_t index, uint32_t rank, uint64_t offset,
                        void *data, uint64_t bytes) const {
  checkChunk(index, rank, offset, bytes);
  ranks[rank]->read(program->parameters[index].buffer, offset, data, bytes);
}

void Session::writeChunk(uint32_t index, uint32_t rank, uint64_t offset,
                         const void *data, uint64_t bytes) {
  checkChunk(index, rank, offset, bytes);
  uint32_t buffer = program->parameters[index].buffer;
  if (!parameterSet[index]) // padding of all ranks, also of empty shards
    clearParameter(index);
  ranks[rank]->write(buffer, offset, data, bytes);
}

/// Refuses integers outside the input's range.
static void checkRange(const Input &input, const void *data, int rank) {
  if (!input.hasRange)
    return;
  uint64_t count = input.bytes / elementBytes(input.dtype);
  for (uint64_t i = 0; i < count; ++i) {
    int64_t value = integerAt(data, input.dtype, i);
    if ((value >= input.min && value <= input.max) ||
        (input.hasIgnore && value == input.ignore))
      continue;
    std::string of =
        rank == ZRT_ALL_RANKS ? "" : " of rank " + std::to_string(rank);
    std::string ignored =
        input.hasIgnore ? " and is not " + std::to_string(input.ignore) : "";
    fail(ZRT_ERROR_ARGUMENT, "input ", input.name, of, ": value ", value,
         " at element ", i, " is outside [", input.min, ", ", input.max, "]",
         ignored);
  }
}

void Session::setInput(uint32_t index, int rank, const void *data,
                       uint64_t bytes) {
  const Input &input = entry(program->inputs, index, "input");
  checkSize("input", input.name, bytes, input.bytes);
  bool all = rank == ZRT_ALL_RANKS;
  if (!all && (rank < 0 || uint32_t(rank) >= ranks.size()))
    fail(ZRT_ERROR_ARGUMENT, "input ", input.name, ": rank ", rank, " of ",
         ranks.size());
  checkRange(input, data, rank);
  uint32_t begin = all ? 0 : rank, end = all ? ranks.size() : rank + 1;
  for (uint32_t to = begin; to < end; ++to) {
    ranks[to]->write(input.buffer, 0, data, bytes);
    ranks[to]->touch(input.buffer);
    inputSet[index * ranks.size() + to] = true;
  }
}

void Session::readOutput(uint32_t index, double *values, uint64_t count) const {
  const Output &output = entry(program->outputs, index, "output");
  if (count != output.elements)
    fail(ZRT_ERROR_ARGUMENT, "output ", output.name, " has ", output.elements,
         " elements, not ", count);
  fb::DType type = program->buffers[output.buffer].dtype;
  size_t readers = output.across == fb::AcrossRanks_Same ? 1 : ranks.size();
  double divisor = output.across == fb::AcrossRanks_Mean ? ranks.size() : 1;
  for (uint64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (size_t rank = 0; rank < readers; ++rank)
      sum += numberAt(ranks[rank]->address(output.buffer), type, i);
    values[i] = sum / divisor;
  }
}

void Session::readOutputOfRank(uint32_t index, uint32_t rank, void *data,
                               uint64_t bytes) const {
  const Output &output = entry(program->outputs, index, "output");
  const Buffer &buffer = program->buffers[output.buffer];
  checkSize("output", output.name, bytes,
            output.elements * elementBytes(buffer.dtype));
  if (rank >= ranks.size())
    fail(ZRT_ERROR_ARGUMENT, "output ", output.name, ": rank ", rank, " of ",
         ranks.size());
  ranks[rank]->read(output.buffer, 0, data, bytes);
}

/// The place of the first byte from `from` on that is not zero, or the buffer's
/// end.
uint64_t Session::firstNonZero(uint32_t rank, uint32_t buffer,
                               uint64_t from) const {
  uint64_t bytes = program->buffers[buffer].bytes;
  if (from >= bytes)
    return bytes;
  std::vector<uint8_t> piece(std::min<uint64_t>(bytes - from, 1 << 20));
  while (from < bytes) {
    uint64_t length = std::min<uint64_t>(piece.size(), bytes - from);
    ranks[rank]->read(buffer, from, piece.data(), length);
    for (uint64_t at = 0; at < length; ++at)
      if (piece[at])
        return from + at;
    from += length;
  }
  return bytes;
}

void Session::checkPadding(const Parameter &parameter) const {
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    uint64_t held = parameter.shardBytes(parameter.shardOf(rank));
    uint64_t at = firstNonZero(rank, parameter.buffer, held);
    if (at < program->buffers[parameter.buffer].bytes)
      fail(ZRT_ERROR_EXECUTION, "check: padding of parameter ", parameter.name,
           " on rank ", rank, " is not zero (byte ", at, ")");
  }
}

void Session::checkReplicas(const std::string &what, uint32_t buffer,
                            uint64_t bytes, uint32_t shards) const {
  std::vector<uint8_t> firstRoom, room;
  for (uint32_t rank = 1; bytes && rank < ranks.size(); ++rank) {
    uint32_t first = rank % shards;
    if (first != rank &&
        std::memcmp(ranks[first]->contents(buffer, firstRoom),
                    ranks[rank]->contents(buffer, room), bytes))
      fail(ZRT_ERROR_EXECUTION, "check: ", what, " differs between rank ",
           first, " and ", rank);
  }
}

void Session::checkZero(const Parameter &parameter) const {
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    uint64_t at = firstNonZero(rank, parameter.buffer, 0);
    if (at < program->buffers[parameter.buffer].bytes)
      fail(ZRT_ERROR_EXECUTION, "check: accumulator ", parameter.name,
           " on rank ", rank, " is not zero after the step (byte ", at, ")");
  }
}

void Session::checkState() const {
  for (const Parameter &parameter : program->parameters) {
    checkPadding(parameter);
    if (parameter.role == fb::ParamRole_Accumulator)
      checkZero(parameter);
    if (parameter.role != fb::ParamRole_Buffer)
      checkReplicas("parameter " + parameter.name, parameter.buffer,
                    parameter.sharded ? program->buffers[parameter.buffer].bytes
                                      : parameter.bytes,
                    parameter.sharded ? parameter.shards : 1);
  }
  for (const Output &output : program->outputs) {
    const Buffer &buffer = program->buffers[output.buffer];
    if (output.across == fb::AcrossRanks_Same)
      checkReplicas("output " + output.name, output.buffer,
                    output.elements * elementBytes(buffer.dtype),
                    /*shards=*/1);
  }
}
