//===- PlanBuilder.cpp - Programs for the runtime's tests -----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See PlanBuilder.h.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

#include <algorithm>
#include <fstream>
#include <iterator>

using namespace zrt;
using namespace zrt::test;

const std::vector<uint8_t> &zrt::test::kernelBytes() {
  static const std::vector<uint8_t> bytes = [] {
    std::ifstream file(ZERO_TEST_KERNELS, std::ios::binary);
    return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
  }();
  return bytes;
}

static int64_t countOf(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

PlanBuilder::PlanBuilder(uint32_t ranks) {
  program.version = 1;
  program.name = "test";
  program.ranks = ranks;
  program.num_streams = 1;
  program.target = "host:test";
  auto arena = std::make_unique<fb::ArenaT>();
  arena->alignment = 64;
  program.arenas.push_back(std::move(arena));
}

void PlanBuilder::in(fb::Space space) {
  for (arena = 0; arena < program.arenas.size(); ++arena)
    if (program.arenas[arena]->space == space)
      return;
  auto added = std::make_unique<fb::ArenaT>();
  added->space = space;
  added->alignment = 4096;
  program.arenas.push_back(std::move(added));
}

uint32_t PlanBuilder::buffer(const std::string &name,
                             std::vector<int64_t> shape, fb::DType dtype,
                             fb::Kind kind, int64_t capacity) {
  auto buffer = std::make_unique<fb::BufferT>();
  fb::ArenaT &arena = *program.arenas[this->arena];
  uint64_t unit = arena.alignment;
  buffer->name = name;
  buffer->arena = uint32_t(this->arena);
  buffer->offset = (arena.bytes + unit - 1) / unit * unit;
  buffer->bytes = std::max(countOf(shape), capacity) * elementBytes(dtype);
  if (arena.space != fb::Space_Device) {
    uint64_t exact = buffer->bytes;
    buffer->bytes = (exact + unit - 1) / unit * unit;
    buffer->padding_bytes = (buffer->bytes - exact) * program.ranks;
  }
  buffer->dtype = dtype;
  buffer->shape = std::move(shape);
  buffer->kind = kind;
  arena.bytes = buffer->offset + buffer->bytes;
  program.buffers.push_back(std::move(buffer));
  return program.buffers.size() - 1;
}

uint32_t PlanBuilder::chunkOf(uint32_t whole, int64_t chunk) {
  auto buffer = std::make_unique<fb::BufferT>(*program.buffers[whole]);
  buffer->name += ".chunk";
  buffer->rank_stride = chunk * elementBytes(buffer->dtype);
  buffer->bytes = buffer->rank_stride;
  buffer->shape = {chunk};
  program.buffers.push_back(std::move(buffer));
  return program.buffers.size() - 1;
}

uint32_t PlanBuilder::input(const std::string &name, std::vector<int64_t> shape,
                            fb::DType dtype) {
  auto input = std::make_unique<fb::InputT>();
  input->name = name;
  input->dtype = dtype;
  input->shape = shape;
  input->buffer = buffer(name, std::move(shape), dtype, fb::Kind_Input);
  uint32_t index = input->buffer;
  program.inputs.push_back(std::move(input));
  return index;
}

void PlanBuilder::output(uint32_t buffer, fb::AcrossRanks across) {
  auto output = std::make_unique<fb::OutputT>();
  output->name = program.buffers[buffer]->name;
  output->buffer = buffer;
  output->across_ranks = across;
  program.outputs.push_back(std::move(output));
}

fb::ParameterT &PlanBuilder::parameter(const std::string &name,
                                       std::vector<int64_t> shape, bool sharded,
                                       fb::Init init) {
  auto parameter = std::make_unique<fb::ParameterT>();
  parameter->name = name;
  parameter->shape = shape;
  parameter->sharded = sharded;
  parameter->init = init;
  if (sharded) {
    int64_t shards = program.grid.empty() ? program.ranks : program.grid.back();
    shape[0] = (shape[0] + shards - 1) / shards;
    parameter->chunk_rows = shape[0];
  }
  parameter->buffer =
      buffer(name, std::move(shape), fb::DType_F32, fb::Kind_Parameter);
  program.parameters.push_back(std::move(parameter));
  return *program.parameters.back();
}

fb::CommandT &PlanBuilder::command(fb::Op op, const std::string &callee) {
  auto command = std::make_unique<fb::CommandT>();
  command->op = op;
  command->callee = callee;
  program.commands.push_back(std::move(command));
  return *program.commands.back();
}

void PlanBuilder::operand(fb::CommandT &command, uint32_t buffer) {
  const std::vector<int64_t> &shape = program.buffers[buffer]->shape;
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t dim = shape.size(); dim-- > 0;) {
    strides[dim] = stride;
    stride *= shape[dim];
  }
  operand(command, buffer, 0, shape, strides);
}

void PlanBuilder::operand(fb::CommandT &command, uint32_t buffer,
                          int64_t offset, std::vector<int64_t> sizes,
                          std::vector<int64_t> strides) {
  auto operand = std::make_unique<fb::OperandT>();
  operand->buffer = buffer;
  operand->offset = offset;
  operand->sizes = std::move(sizes);
  operand->strides = std::move(strides);
  command.operands.push_back(std::move(operand));
}

void PlanBuilder::attr(fb::CommandT &command, const std::string &name,
                       std::vector<int64_t> ints) {
  auto attr = std::make_unique<fb::AttrT>();
  attr->name = name;
  attr->ints = std::move(ints);
  command.attrs.push_back(std::move(attr));
}

fb::CommandT &PlanBuilder::launch(const std::string &kernel,
                                  const std::vector<uint32_t> &buffers) {
  if (program.kernels.empty())
    program.kernels = kernelBytes();
  fb::CommandT &added = command(fb::Op_Launch, kernel);
  for (uint32_t buffer : buffers)
    operand(added, buffer);
  return added;
}

fb::CommandT &PlanBuilder::collective(fb::Op op, uint32_t source,
                                      uint32_t target, int64_t elements,
                                      int64_t chunk, bool average) {
  fb::CommandT &added = command(op);
  auto piece = std::make_unique<fb::PieceT>();
  piece->source = source;
  piece->target = target;
  piece->elements = elements;
  piece->chunk = chunk;
  added.pieces.push_back(std::move(piece));
  added.average = average;
  return added;
}

void PlanBuilder::streams(uint32_t further, uint32_t events) {
  program.num_streams = further + 1;
  program.num_events = events;
}

void zrt::test::place(fb::CommandT &command, uint32_t stream,
                      std::vector<uint32_t> wait, int32_t signal) {
  command.stream = stream;
  command.wait = std::move(wait);
  command.signal = signal;
}

std::string PlanBuilder::bytes() const {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::Program::Pack(builder, &program), fb::ProgramIdentifier());
  return std::string(reinterpret_cast<const char *>(builder.GetBufferPointer()),
                     builder.GetSize());
}

Running::Running(const std::string &bytes, const zrt_session_options &options) {
  Status failed = program.loadBytes(bytes.data(), bytes.size());
  EXPECT_FALSE(failed) << failed.message();
  failed = session.create(program, &options);
  EXPECT_FALSE(failed) << failed.message();
}

std::string zrt::test::loadError(const std::string &bytes) {
  Program program;
  Status failed = program.loadBytes(bytes.data(), bytes.size());
  return failed.message();
}

std::string zrt::test::loadError(const PlanBuilder &plan) {
  return loadError(plan.bytes());
}

std::string zrt::test::sessionError(const PlanBuilder &plan,
                                    const zrt_session_options &options) {
  std::string bytes = plan.bytes();
  Program program;
  Status failed = program.loadBytes(bytes.data(), bytes.size());
  EXPECT_FALSE(failed) << failed.message();
  Session session;
  failed = session.create(program, &options);
  return failed.message();
}

std::vector<float> zrt::test::numbers(uint64_t seed, size_t count) {
  std::vector<float> result(count);
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (float &number : result) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    number = float(int32_t(state >> 32)) / 2147483648.0f;
  }
  return result;
}
