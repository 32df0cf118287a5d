//===- StepPeaks.cpp - A program of what a GPU can do at most -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See writePeaks in StepData.h.
//
//===----------------------------------------------------------------------===//

#include "StepData.h"

#include "runtime/core/Layout.h"
#include "runtime/io/Files.h"

#include <fstream>
#include <zlib.h>

using namespace zrt;

namespace {
class PeakProgram {
public:
  explicit PeakProgram(int64_t size) : size(size) {
    program.version = 1;
    program.name = "peaks";
    program.ranks = program.num_streams = 1;
    program.target = "cuda:sm_80";
    program.arenas.push_back(std::make_unique<fb::ArenaT>());
    program.arenas[0]->alignment = 256;
    command(fb::Op_Call, "matmul", {matrix("a"), matrix("b"), matrix("c")});
    command(fb::Op_Copy, "", {matrix("from"), matrix("to")});
  }
  std::string bytes();

private:
  /// A parameter, whose values come from a seed.
  uint32_t matrix(const std::string &name) {
    auto buffer = std::make_unique<fb::BufferT>();
    fb::ArenaT &arena = *program.arenas[0];
    buffer->name = name;
    buffer->offset = (arena.bytes + 255) / 256 * 256;
    buffer->bytes = uint64_t(size) * uint64_t(size) * 2;
    buffer->dtype = fb::DType_BF16;
    buffer->shape = {size, size};
    arena.bytes = buffer->offset + buffer->bytes;
    program.buffers.push_back(std::move(buffer));
    auto parameter = std::make_unique<fb::ParameterT>();
    parameter->name = name;
    parameter->buffer = uint32_t(program.buffers.size()) - 1;
    parameter->dtype = fb::DType_BF16;
    parameter->shape = {size, size};
    program.parameters.push_back(std::move(parameter));
    return uint32_t(program.buffers.size()) - 1;
  }
  void command(fb::Op op, const std::string &callee,
               const std::vector<uint32_t> &buffers) {
    auto command = std::make_unique<fb::CommandT>();
    command->op = op;
    command->callee = callee;
    for (uint32_t buffer : buffers) {
      auto operand = std::make_unique<fb::OperandT>();
      operand->buffer = buffer;
      operand->sizes = {size, size};
      operand->strides = {size, 1};
      command->operands.push_back(std::move(operand));
    }
    program.commands.push_back(std::move(command));
  }

  int64_t size;
  fb::ProgramT program;
};
} // namespace

std::string PeakProgram::bytes() {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::Program::Pack(builder, &program), fb::ProgramIdentifier());
  std::string text(reinterpret_cast<const char *>(builder.GetBufferPointer()),
                   builder.GetSize());
  auto *data = reinterpret_cast<const Bytef *>(text.data());
  uint32_t sum = uint32_t(crc32_z(0, data, text.size()));
  text += "ZSUM";
  for (int byte = 0; byte < 4; ++byte)
    text += char(sum >> (8 * byte));
  return text;
}

void bench::writePeaks(const std::string &planPath, int64_t size) {
  std::string bytes = PeakProgram(size).bytes();
  std::ofstream file(planPath, std::ios::binary);
  file.write(bytes.data(), std::streamsize(bytes.size()));
  file.close();
  if (!file)
    throw IoError(planPath, "cannot be written");
}
