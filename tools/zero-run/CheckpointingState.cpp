//===- CheckpointingState.cpp - State between ranks and files -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reading and writing state where it lies; restoring it from a checkpoint is
// CheckpointingRestore.cpp.
//
//===----------------------------------------------------------------------===//

#include "CheckpointingState.h"

#include "Training.h"

#include <algorithm>

using namespace zero_tools;

static_assert(int(ZRT_F32) == int(zrt::DataType::F32) &&
                  int(ZRT_BF16) == int(zrt::DataType::BF16) &&
                  int(ZRT_I64) == int(zrt::DataType::I64) &&
                  int(ZRT_BOOL) == int(zrt::DataType::Bool) &&
                  int(ZRT_U64) == int(zrt::DataType::U64) &&
                  int(ZRT_F8E5M2FNUZ) == int(zrt::DataType::F8E5M2FNUZ),
              "element types are numbered alike");

static const char *roleName(zrt_parameter_role role) {
  switch (role) {
  case ZRT_TRAINED:
    return "trained";
  case ZRT_FROZEN:
    return "frozen";
  case ZRT_BUFFER:
    return "buffer";
  default:
    return "state";
  }
}

zrt::StateTensor zero_tools::stateTensor(const zrt::Program &program,
                                         uint32_t parameter) {
  zrt_parameter_info from = program.parameter(parameter);
  zrt::StateTensor tensor;
  tensor.name = from.name;
  tensor.role = roleName(from.role);
  tensor.of = from.of;
  tensor.tied.assign(from.tied, from.tied + from.num_tied);
  tensor.type = zrt::DataType(from.dtype);
  tensor.shape.assign(from.shape, from.shape + from.rank);
  if (from.role == ZRT_BUFFER) {
    tensor.layout = zrt::StateLayout::PerRank;
    tensor.parts = program.info().ranks;
  } else if (from.sharded) {
    tensor.layout = zrt::StateLayout::Rows;
    tensor.parts = from.shards;
    tensor.chunkRows = from.chunk_rows;
  }
  return tensor;
}

std::string zero_tools::masterName(const std::string &parameter) {
  return parameter + ".master";
}

/// What the forward pass computes in.
static std::string precisionOf(const zrt::Program &program) {
  std::string precision = "f32";
  for (uint32_t i = 0; i < program.info().num_parameters; ++i) {
    zrt_parameter_info parameter = program.parameter(i);
    if (parameter.role == ZRT_TRAINED && parameter.dtype == ZRT_BF16)
      precision = "bf16";
    if (parameter.role == ZRT_TRAINED && parameter.dtype == ZRT_F16)
      precision = "fp16";
  }
  return precision;
}

ProgramState::ProgramState(const zrt::Program &program) {
  zrt_program_info info = program.info();
  planFacts.model = info.name;
  planFacts.optimizer = info.optimizer;
  planFacts.precision = precisionOf(program);
  planFacts.ranks = info.ranks;
  planFacts.stage = info.stage;
  planFacts.grid.assign(info.grid, info.grid + info.num_axes);
  planFacts.microBatches = info.micro_batches;
  for (uint32_t i = 0; i < info.num_parameters; ++i) {
    if (program.parameter(i).role == ZRT_ACCUMULATOR)
      continue;
    stateTensors.push_back(stateTensor(program, i));
    parameters.push_back(i);
  }
}

uint64_t ProgramState::bytes() const {
  uint64_t sum = 0;
  for (const zrt::StateTensor &tensor : stateTensors)
    for (uint32_t part = 0; part < tensor.parts; ++part)
      sum += tensor.partBytes(part);
  return sum;
}

void ProgramState::read(const zrt::Session &session, size_t tensor,
                        uint32_t part, uint64_t offset, void *data,
                        size_t bytes) const {
  // The first ranks hold a part each; replicas of them follow.
  require(
      session.readLocalChunk(parameters[tensor], part, offset, data, bytes));
}

void zero_tools::writeLogical(const zrt::Program &program,
                              zrt::Session &session, uint32_t parameter,
                              uint64_t offset, const void *data, size_t bytes) {
  zrt::StateTensor tensor = stateTensor(program, parameter);
  for (uint32_t rank = 0; rank < program.info().ranks; ++rank) {
    uint32_t part = rank % tensor.parts;
    uint64_t begin = tensor.partBegin(part);
    uint64_t from = std::max(offset, begin);
    uint64_t to = std::min(offset + bytes, begin + tensor.partBytes(part));
    if (from < to)
      require(session.writeChunk(
          parameter, rank, from - begin,
          static_cast<const uint8_t *>(data) + (from - offset), to - from));
  }
}

void zero_tools::readLogical(
    const zrt::Program &program, const zrt::Session &session,
    uint32_t parameter, const std::function<void(const void *, size_t)> &take) {
  zrt::StateTensor tensor = stateTensor(program, parameter);
  std::vector<uint8_t> bucket;
  if (tensor.layout == zrt::StateLayout::PerRank) {
    bucket.resize(tensor.bytes()); // statistics: small
    require(session.getParameter(parameter, bucket.data(), bucket.size()));
    return take(bucket.data(), bucket.size());
  }
  for (uint32_t part = 0; part < tensor.parts; ++part)
    for (uint64_t at = 0, end = tensor.partBytes(part); at < end;) {
      size_t size =
          size_t(std::min<uint64_t>(end - at, zrt::checkpointBucketBytes));
      bucket.resize(std::max(bucket.size(), size));
      require(session.readChunk(parameter, part, at, bucket.data(), size));
      take(bucket.data(), size);
      at += size;
    }
}
