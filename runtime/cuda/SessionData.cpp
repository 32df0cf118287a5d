//===- SessionData.cpp - Data into and out of a session -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parameters, inputs, outputs and the checks of state after a step. All of it
// runs on the caller's thread between steps. In a group what reads is done by
// all processes alike, and what writes concerns the own rank alone.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Futex.h"
#include "runtime/core/Values.h"
#include "runtime/cuda/Session.h"
#include "runtime/cuda/Status.h"

#include <algorithm>
#include <cstring>

using namespace zrt;
using namespace zrt::cuda;

Rank *Session::localRank(uint32_t rank) const {
  uint32_t place = rank - firstRank;
  return place < ranks.size() ? ranks[place].get() : nullptr;
}

void Session::checkRank(const std::string &what, uint32_t rank) const {
  if (rank >= program->ranks)
    fail(ZRT_ERROR_ARGUMENT, what, ": rank ", rank, " of ", program->ranks);
}

void Session::fetch(uint32_t rank, uint32_t buffer, uint64_t offset, void *data,
                    uint64_t bytes) const {
  Rank *local = localRank(rank);
  if (local) {
    local->use();
    local->memory().read(buffer, offset, data, bytes);
  }
  if (!rankOptions.inGroup)
    return;
  ranks[0]->use();
  auto *to = static_cast<uint8_t *>(data);
  try {
    for (uint64_t at = 0; at < bytes; at += stagingPiece) {
      uint64_t piece = std::min(bytes - at, stagingPiece);
      if (local)
        checkCuda(cuMemcpyHtoD(staging.address(), to + at, piece),
                  "cuMemcpyHtoD");
      ranks[0]->broadcast(staging.address(), piece, rank);
      if (!local)
        checkCuda(cuMemcpyDtoH(to + at, staging.address(), piece),
                  "cuMemcpyDtoH");
    }
  } catch (const Aborted &) {
    failWithPeer();
  } catch (const Error &error) {
    fail(error.code(), rankText(firstRank), ", between steps: ", error.what());
  }
}

std::vector<uint8_t> Session::contents(uint32_t rank, uint32_t buffer,
                                       uint64_t bytes) const {
  std::vector<uint8_t> result(bytes);
  fetch(rank, buffer, 0, result.data(), bytes);
  return result;
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

void Session::fillInitialValues() {
  for (std::unique_ptr<Rank> &rank : ranks) {
    rank->use();
    for (const Constant &constant : program->constants) {
      rank->memory().write(constant.buffer, 0, constant.data, constant.bytes);
      rank->memory().touch(constant.buffer);
    }
  }
  for (uint32_t index = 0; index < program->parameters.size(); ++index) {
    const Parameter &parameter = program->parameters[index];
    if (parameter.init == fb::Init_Zeros) {
      clearParameter(index);
    } else if (parameter.init == fb::Init_Ones) {
      std::vector<uint8_t> data = onesOf(parameter.dtype, parameter.bytes);
      setParameter(index, data.data(), data.size());
    } else if (parameter.init == fb::Init_Value) {
      setParameter(index, parameter.initValue, parameter.initBytes);
    }
  }
}

void Session::clearParameter(uint32_t index) {
  uint32_t buffer = program->parameters[index].buffer;
  for (std::unique_ptr<Rank> &rank : ranks) {
    rank->use();
    rank->memory().clearFrom(buffer, 0);
    rank->memory().touch(buffer);
  }
  parameterSet[index] = true;
}

void Session::setParameter(uint32_t index, const void *data, uint64_t bytes) {
  const Parameter &parameter = entryOf(program->parameters, index, "parameter");
  checkSizeOf("parameter", parameter.name, bytes, parameter.bytes);
  const auto *from = static_cast<const uint8_t *>(data);
  for (std::unique_ptr<Rank> &rank : ranks) {
    uint32_t shard = parameter.shardOf(rank->number());
    uint64_t held = parameter.shardBytes(shard);
    rank->use();
    rank->memory().clearFrom(parameter.buffer, held);
    rank->memory().write(parameter.buffer, 0,
                         from + parameter.shardBegin(shard), held);
    rank->memory().touch(parameter.buffer);
  }
  parameterSet[index] = true;
}

/// The mean over ranks of a buffer that each rank has for itself.
template <typename T>
void Session::averageRanks(const Parameter &parameter, T *out) const {
  uint64_t count = parameter.bytes / sizeof(T);
  std::vector<double> sums(count, 0);
  std::vector<T> values(count);
  for (uint32_t rank = 0; rank < program->ranks; ++rank) {
    fetch(rank, parameter.buffer, 0, values.data(), parameter.bytes);
    for (uint64_t i = 0; i < count; ++i)
      sums[i] += values[i];
  }
  for (uint64_t i = 0; i < count; ++i)
    out[i] = T(sums[i] / double(program->ranks));
}

void Session::getParameter(uint32_t index, void *data, uint64_t bytes) const {
  const Parameter &parameter = entryOf(program->parameters, index, "parameter");
  checkSizeOf("parameter", parameter.name, bytes, parameter.bytes);
  if (parameter.role == fb::ParamRole_Buffer) {
    if (parameter.dtype == fb::DType_F32)
      return averageRanks(parameter, static_cast<float *>(data));
    if (parameter.dtype == fb::DType_F64)
      return averageRanks(parameter, static_cast<double *>(data));
  }
  auto *to = static_cast<uint8_t *>(data);
  // The first ranks hold a shard each; a replicated one is read from rank 0.
  uint32_t count = parameter.sharded ? parameter.shards : 1;
  for (uint32_t rank = 0; rank < count; ++rank)
    fetch(rank, parameter.buffer, 0, to + parameter.shardBegin(rank),
          parameter.shardBytes(rank));
}

/// Refuses what is no chunk of what a rank holds of a parameter.
void Session::checkChunk(uint32_t index, uint32_t rank, uint64_t offset,
                         uint64_t bytes) const {
  const Parameter &parameter = entryOf(program->parameters, index, "parameter");
  checkRank("parameter " + parameter.name, rank);
  uint64_t held = parameter.shardBytes(parameter.shardOf(rank));
  if (offset > held || bytes > held - offset)
    fail(ZRT_ERROR_ARGUMENT, "parameter ", parameter.name, ": rank ", rank,
         " holds ", held, " bytes, not ", bytes, " from byte ", offset);
}

void Session::readChunk(uint32_t index, uint32_t rank, uint64_t offset,
                        void *data, uint64_t bytes) const {
  checkChunk(index, rank, offset, bytes);
  fetch(rank, program->parameters[index].buffer, offset, data, bytes);
}

void Session::readLocalChunk(uint32_t index, uint32_t rank, uint64_t offset,
                             void *data, uint64_t bytes) const {
  checkChunk(index, rank, offset, bytes);
  Rank *local = localRank(rank);
  if (!local)
    fail(ZRT_ERROR_ARGUMENT, "rank ", rank, " is in another process; this one ",
         "has rank ", firstRank);
  local->use();
  local->memory().read(program->parameters[index].buffer, offset, data, bytes);
}

void Session::writeChunk(uint32_t index, uint32_t rank, uint64_t offset,
                         const void *data, uint64_t bytes) {
  checkChunk(index, rank, offset, bytes);
  Rank *local = localRank(rank);
  if (!local)
    return;
  if (!parameterSet[index]) // padding of all ranks, also of empty shards
    clearParameter(index);
  local->use();
  local->memory().write(program->parameters[index].buffer, offset, data, bytes);
}

//===----------------------------------------------------------------------===//
// Inputs and outputs
//===----------------------------------------------------------------------===//

void Session::setInput(uint32_t index, int rank, const void *data,
                       uint64_t bytes) {
  const Input &input = entryOf(program->inputs, index, "input");
  checkSizeOf("input", input.name, bytes, input.bytes);
  bool all = rank == ZRT_ALL_RANKS;
  if (!all)
    checkRank("input " + input.name, uint32_t(rank));
  checkInputRange(input, data, rank);
  for (uint32_t place = 0; place < ranks.size(); ++place) {
    Rank &to = *ranks[place];
    if (!all && to.number() != uint32_t(rank))
      continue;
    to.use();
    to.memory().write(input.buffer, 0, data, bytes);
    to.memory().touch(input.buffer);
    inputSet[index * ranks.size() + place] = true;
  }
}

void Session::readOutput(uint32_t index, double *values, uint64_t count) const {
  const Output &output = entryOf(program->outputs, index, "output");
  if (count != output.elements)
    fail(ZRT_ERROR_ARGUMENT, "output ", output.name, " has ", output.elements,
         " elements, not ", count);
  fb::DType type = program->buffers[output.buffer].dtype;
  bool same = output.across == fb::AcrossRanks_Same;
  uint32_t readers = same ? 1 : program->ranks;
  double divisor = output.across == fb::AcrossRanks_Mean ? readers : 1;
  std::fill_n(values, count, 0);
  for (uint32_t rank = 0; rank < readers; ++rank) {
    std::vector<uint8_t> data =
        contents(rank, output.buffer, count * elementBytes(type));
    for (uint64_t i = 0; i < count; ++i)
      values[i] += numberAt(data.data(), type, i);
  }
  for (uint64_t i = 0; i < count; ++i)
    values[i] /= divisor;
}

void Session::readOutputOfRank(uint32_t index, uint32_t rank, void *data,
                               uint64_t bytes) const {
  const Output &output = entryOf(program->outputs, index, "output");
  const Buffer &buffer = program->buffers[output.buffer];
  checkSizeOf("output", output.name, bytes,
              output.elements * elementBytes(buffer.dtype));
  checkRank("output " + output.name, rank);
  fetch(rank, output.buffer, 0, data, bytes);
}

//===----------------------------------------------------------------------===//
// Checks of state
//===----------------------------------------------------------------------===//

/// All bytes of a rank's buffer from `from` on have to be zero.
void Session::checkZeros(const std::string &what, const std::string &when,
                         uint32_t buffer, uint32_t rank, uint64_t from) const {
  uint64_t bytes = program->buffers[buffer].bytes;
  std::vector<uint8_t> piece(
      std::min<uint64_t>(bytes - std::min(from, bytes), 1 << 20));
  while (from < bytes) {
    uint64_t length = std::min<uint64_t>(piece.size(), bytes - from);
    fetch(rank, buffer, from, piece.data(), length);
    for (uint64_t at = 0; at < length; ++at)
      if (piece[at])
        fail(ZRT_ERROR_EXECUTION, "check: ", what, " on rank ", rank,
             " is not zero", when, " (byte ", from + at, ")");
    from += length;
  }
}

void Session::checkReplicas(const std::string &what, uint32_t buffer,
                            uint64_t bytes, uint32_t shards) const {
  for (uint32_t rank = shards; bytes && rank < program->ranks; ++rank) {
    uint32_t first = rank % shards;
    if (contents(first, buffer, bytes) != contents(rank, buffer, bytes))
      fail(ZRT_ERROR_EXECUTION, "check: ", what, " differs between rank ",
           first, " and ", rank);
  }
}

void Session::checkState() const {
  for (const Parameter &parameter : program->parameters) {
    uint32_t buffer = parameter.buffer;
    uint64_t bytes = program->buffers[buffer].bytes;
    for (uint32_t rank = 0; rank < program->ranks; ++rank) {
      checkZeros("padding of parameter " + parameter.name, "", buffer, rank,
                 parameter.shardBytes(parameter.shardOf(rank)));
      if (parameter.role == fb::ParamRole_Accumulator)
        checkZeros("accumulator " + parameter.name, " after the step", buffer,
                   rank, 0);
    }
    if (parameter.role != fb::ParamRole_Buffer)
      checkReplicas("parameter " + parameter.name, buffer,
                    parameter.sharded ? bytes : parameter.bytes,
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
