//===- SessionData.cpp - Data into and out of a session -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parameters, inputs, outputs and the checks of state after a step. All of it
// runs on the caller's thread between steps. In a group what reads goes through
// the transport, and what writes concerns the own rank alone.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/core/Values.h"
#include "runtime/host/Session.h"
#include "runtime/io/Hash.h"

#include <algorithm>
#include <cstring>

using namespace zrt;
using namespace zrt::host;

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
      std::vector<uint8_t> data = onesOf(parameter.dtype, parameter.bytes);
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
  const Parameter &parameter = entryOf(program->parameters, index, "parameter");
  checkSizeOf("parameter", parameter.name, bytes, parameter.bytes);
  const auto *from = static_cast<const uint8_t *>(data);
  for (std::unique_ptr<Rank> &rank : ranks) {
    uint32_t shard = parameter.shardOf(rank->number());
    uint64_t held = parameter.shardBytes(shard);
    rank->clearFrom(parameter.buffer, held);
    rank->write(parameter.buffer, 0, from + parameter.shardBegin(shard), held);
    rank->touch(parameter.buffer);
  }
  parameterSet[index] = true;
}

/// Runs what takes data to other processes.
template <typename Body>
void Session::exchange(Body body) const {
  try {
    body();
  } catch (const Aborted &) {
    failWithPeer();
  } catch (const Late &late) {
    fail(ZRT_ERROR_EXECUTION, "rank ", ranks[0]->number(),
         ", between steps: ", late.what());
  }
}

/// Texts of any length, by rank.
std::vector<std::string> Session::allGather(const std::string &own) const {
  uint64_t size = own.size();
  std::vector<uint64_t> sizes(program->ranks);
  std::vector<std::string> result;
  exchange([&] {
    transport->allGather(&size, sizeof(size), sizes.data());
    uint64_t most = *std::max_element(sizes.begin(), sizes.end());
    std::string padded = own, all(most * sizes.size(), '\0');
    padded.resize(most);
    transport->allGather(padded.data(), most, all.data());
    for (size_t rank = 0; rank < sizes.size(); ++rank)
      result.push_back(all.substr(rank * most, sizes[rank]));
  });
  return result;
}

/// The first bytes of what a rank holds of a parameter, in process 0 at least.
void Session::readHeld(uint32_t buffer, uint32_t rank, uint64_t offset,
                       uint8_t *to, uint64_t bytes) const {
  const Rank *local = localRank(rank);
  if (!transport || rank == 0) {
    if (local)
      local->read(buffer, offset, to, bytes);
    return;
  }
  std::vector<uint8_t> own;
  if (local) {
    own.resize(bytes);
    local->read(buffer, offset, own.data(), bytes);
  }
  exchange([&] { transport->toFirst(rank, local ? own.data() : to, bytes); });
  if (local)
    std::copy(own.begin(), own.end(), to);
}

/// The mean over ranks of a buffer that each rank has for itself.
template <typename T>
void Session::averageRanks(const Parameter &parameter, T *out) const {
  uint64_t count = parameter.bytes / sizeof(T);
  std::vector<double> sums(count, 0);
  std::vector<T> room(count);
  for (uint32_t rank = 0; rank < program->ranks; ++rank) {
    readHeld(parameter.buffer, rank, 0,
             reinterpret_cast<uint8_t *>(room.data()), parameter.bytes);
    for (uint64_t i = 0; i < count; ++i)
      sums[i] += room[i];
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
    readHeld(parameter.buffer, rank, 0, to + parameter.shardBegin(rank),
             parameter.shardBytes(rank));
}

/// Refuses what is no chunk of what a rank holds of a parameter.
void Session::checkChunk(uint32_t index, uint32_t rank, uint64_t offset,
                         uint64_t bytes) const {
  const Parameter &parameter = entryOf(program->parameters, index, "parameter");
  if (rank >= program->ranks)
    fail(ZRT_ERROR_ARGUMENT, "parameter ", parameter.name, ": rank ", rank,
         " of ", program->ranks);
  uint64_t held = parameter.shardBytes(parameter.shardOf(rank));
  if (offset > held || bytes > held - offset)
    fail(ZRT_ERROR_ARGUMENT, "parameter ", parameter.name, ": rank ", rank,
         " holds ", held, " bytes, not ", bytes, " from byte ", offset);
}

void Session::readChunk(uint32_t index, uint32_t rank, uint64_t offset,
                        void *data, uint64_t bytes) const {
  checkChunk(index, rank, offset, bytes);
  readHeld(program->parameters[index].buffer, rank, offset,
           static_cast<uint8_t *>(data), bytes);
}

void Session::readLocalChunk(uint32_t index, uint32_t rank, uint64_t offset,
                             void *data, uint64_t bytes) const {
  checkChunk(index, rank, offset, bytes);
  const Rank *local = localRank(rank);
  if (!local)
    fail(ZRT_ERROR_ARGUMENT, "rank ", rank, " is in another process; this one ",
         "has rank ", ranks[0]->number());
  local->read(program->parameters[index].buffer, offset, data, bytes);
}

void Session::writeChunk(uint32_t index, uint32_t rank, uint64_t offset,
                         const void *data, uint64_t bytes) {
  checkChunk(index, rank, offset, bytes);
  Rank *local = localRank(rank);
  if (!local)
    return;
  uint32_t buffer = program->parameters[index].buffer;
  if (!parameterSet[index]) // padding of all ranks, also of empty shards
    clearParameter(index);
  local->write(buffer, offset, data, bytes);
}

void Session::setInput(uint32_t index, int rank, const void *data,
                       uint64_t bytes) {
  const Input &input = entryOf(program->inputs, index, "input");
  checkSizeOf("input", input.name, bytes, input.bytes);
  bool all = rank == ZRT_ALL_RANKS;
  if (!all && (rank < 0 || uint32_t(rank) >= program->ranks))
    fail(ZRT_ERROR_ARGUMENT, "input ", input.name, ": rank ", rank, " of ",
         program->ranks);
  if (!all && !localRank(uint32_t(rank)))
    return;
  checkInputRange(input, data, rank);
  for (size_t to = 0; to < ranks.size(); ++to) {
    if (!all && ranks[to]->number() != uint32_t(rank))
      continue;
    ranks[to]->write(input.buffer, 0, data, bytes);
    ranks[to]->touch(input.buffer);
    inputSet[index * ranks.size() + to] = true;
  }
}

/// An output's numbers on all ranks: rank after rank.
std::vector<double> Session::numbersOf(const Output &output) const {
  fb::DType type = program->buffers[output.buffer].dtype;
  std::vector<double> own;
  for (const std::unique_ptr<Rank> &rank : ranks)
    for (uint64_t i = 0; i < output.elements; ++i)
      own.push_back(numberAt(rank->address(output.buffer), type, i));
  if (!transport)
    return own;
  std::vector<double> all(own.size() * program->ranks);
  exchange([&] {
    transport->allGather(own.data(), own.size() * sizeof(double), all.data());
  });
  return all;
}

void Session::readOutput(uint32_t index, double *values, uint64_t count) const {
  const Output &output = entryOf(program->outputs, index, "output");
  if (count != output.elements)
    fail(ZRT_ERROR_ARGUMENT, "output ", output.name, " has ", output.elements,
         " elements, not ", count);
  std::vector<double> numbers = numbersOf(output);
  size_t readers = output.across == fb::AcrossRanks_Same ? 1 : program->ranks;
  double divisor = output.across == fb::AcrossRanks_Mean ? program->ranks : 1;
  for (uint64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (size_t rank = 0; rank < readers; ++rank)
      sum += numbers[rank * count + i];
    values[i] = sum / divisor;
  }
}

void Session::readOutputOfRank(uint32_t index, uint32_t rank, void *data,
                               uint64_t bytes) const {
  const Output &output = entryOf(program->outputs, index, "output");
  const Buffer &buffer = program->buffers[output.buffer];
  checkSizeOf("output", output.name, bytes,
              output.elements * elementBytes(buffer.dtype));
  if (rank >= program->ranks)
    fail(ZRT_ERROR_ARGUMENT, "output ", output.name, ": rank ", rank, " of ",
         program->ranks);
  readHeld(output.buffer, rank, 0, static_cast<uint8_t *>(data), bytes);
}

/// The place of the first byte from `from` on that is not zero, or the buffer's
/// end.
uint64_t Session::firstNonZero(const Rank &rank, uint32_t buffer,
                               uint64_t from) const {
  uint64_t bytes = program->buffers[buffer].bytes;
  if (from >= bytes)
    return bytes;
  std::vector<uint8_t> piece(std::min<uint64_t>(bytes - from, 1 << 20));
  while (from < bytes) {
    uint64_t length = std::min<uint64_t>(piece.size(), bytes - from);
    rank.read(buffer, from, piece.data(), length);
    for (uint64_t at = 0; at < length; ++at)
      if (piece[at])
        return from + at;
    from += length;
  }
  return bytes;
}

void Session::checkPadding(const Parameter &parameter) const {
  for (const std::unique_ptr<Rank> &rank : ranks) {
    uint64_t held = parameter.shardBytes(parameter.shardOf(rank->number()));
    uint64_t at = firstNonZero(*rank, parameter.buffer, held);
    if (at < program->buffers[parameter.buffer].bytes)
      fail(ZRT_ERROR_EXECUTION, "check: padding of parameter ", parameter.name,
           " on rank ", rank->number(), " is not zero (byte ", at, ")");
  }
}

/// A hash of a buffer's first bytes, by rank.
std::vector<std::string> Session::hashesOf(uint32_t buffer,
                                           uint64_t bytes) const {
  std::vector<std::string> hashes;
  std::vector<uint8_t> room;
  for (const std::unique_ptr<Rank> &rank : ranks) {
    Hash hash;
    hash.update(rank->contents(buffer, room), bytes);
    hashes.push_back(hash.text());
  }
  return transport ? allGather(hashes[0]) : hashes;
}

void Session::checkReplicas(const std::string &what, uint32_t buffer,
                            uint64_t bytes, uint32_t shards) const {
  if (!bytes || shards >= program->ranks)
    return;
  std::vector<std::string> hashes = hashesOf(buffer, bytes);
  for (uint32_t rank = 1; rank < program->ranks; ++rank) {
    uint32_t first = rank % shards;
    if (hashes[first] != hashes[rank])
      fail(ZRT_ERROR_EXECUTION, "check: ", what, " differs between rank ",
           first, " and ", rank);
  }
}

void Session::checkZero(const Parameter &parameter) const {
  for (const std::unique_ptr<Rank> &rank : ranks) {
    uint64_t at = firstNonZero(*rank, parameter.buffer, 0);
    if (at < program->buffers[parameter.buffer].bytes)
      fail(ZRT_ERROR_EXECUTION, "check: accumulator ", parameter.name,
           " on rank ", rank->number(), " is not zero after the step (byte ",
           at, ")");
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
