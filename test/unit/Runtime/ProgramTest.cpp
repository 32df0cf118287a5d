//===- ProgramTest.cpp - Tests of loading programs ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a program's tables say, and that every way in which one can be wrong is
// refused with a message.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

#include <cstdio>
#include <fstream>
#include <limits>
#include <zlib.h>

using namespace zrt;
using namespace zrt::test;

namespace {
/// A program with an entry of every kind, all of them right.
PlanBuilder everything() {
  PlanBuilder plan(2);
  plan.program.num_streams = 1;
  plan.program.num_events = 2;
  uint32_t x = plan.input("x", {4}); // buffer 0
  plan.program.inputs[0]->has_range = false;
  uint32_t y = plan.buffer("y", {4}); // buffer 1
  plan.parameter("w", {3, 2}, true);  // buffer 2
  plan.program.parameters[0]->tied = {"v"};
  uint32_t g = plan.buffer("g", {3, 2}, fb::DType_F32, fb::Kind_Gathered, 8);
  fb::CommandT &gather = plan.collective(fb::Op_AllGather, 2, g, 6, 4);
  gather.signal = 0;
  plan.launch("double4", {x, y}).wait = {0};
  fb::CommandT &call = plan.command(fb::Op_Call, "matmul");
  plan.operand(call, x, 0, {2, 2}, {2, 1});
  plan.operand(call, x, 0, {2, 2}, {2, 1});
  plan.operand(call, y, 0, {2, 2}, {2, 1});
  call.release = {g};
  fb::CommandT &copy = plan.command(fb::Op_Copy);
  plan.operand(copy, x);
  plan.operand(copy, y);
  fb::CommandT &fill = plan.command(fb::Op_Fill);
  plan.operand(fill, y);
  auto constant = std::make_unique<fb::ConstantT>();
  constant->buffer = plan.buffer("c", {2});
  constant->data.resize(8);
  plan.program.constants.push_back(std::move(constant));
  plan.output(y);
  return plan;
}

/// The message for `everything` after a change.
template <typename Change>
std::string errorAfter(Change change) {
  PlanBuilder plan = everything();
  change(plan.program);
  return loadError(plan);
}

const int64_t huge = std::numeric_limits<int64_t>::max();
} // namespace

TEST(Program, TablesAreReadable) {
  Running running(everything());
  const Program &program = running.program;
  zrt_program_info info = program.info();
  EXPECT_STREQ(info.name, "test");
  EXPECT_EQ(info.ranks, 2u);
  EXPECT_EQ(info.num_commands, 5u);
  EXPECT_EQ(program.findInput("x"), 0);
  EXPECT_EQ(program.findInput("nothing"), -1);
  EXPECT_EQ(program.findOutput("y"), 0);
  EXPECT_EQ(program.findParameter("w"), 0);
  EXPECT_EQ(program.findParameter("v"), 0); // tied
  EXPECT_EQ(program.findParameter("u"), -1);
  zrt_parameter_info w = program.parameter(0);
  EXPECT_EQ(std::vector<int64_t>(w.shape, w.shape + w.rank),
            (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(w.bytes, 24u);
  EXPECT_EQ(w.chunk_rows, 2);
  ASSERT_EQ(w.num_tied, 1u);
  EXPECT_STREQ(w.tied[0], "v");
  EXPECT_EQ(program.input(0).bytes, 16u);
  EXPECT_EQ(program.output(0).elements, 4u);
  EXPECT_STREQ(program.command(0).op, "all_gather");
  EXPECT_STREQ(program.command(2).callee, "matmul");
  zrt_arena_info arena;
  EXPECT_EQ(zrt_program_get_arena(program.get(), 0, &arena), ZRT_OK);
  EXPECT_EQ(arena.bytes, zrt_program_planned_bytes(program.get(), ZRT_DEVICE));
  EXPECT_EQ(zrt_program_get_arena(program.get(), 1, &arena),
            ZRT_ERROR_ARGUMENT);
  EXPECT_EQ(std::string(zrt_last_error()),
            "arena 1 does not exist: the program has 1");
}

/// Shared storage counts once, by kind; of parameters only what is at rest.
TEST(Program, KindBytes) {
  PlanBuilder plan(2);
  uint32_t whole =
      plan.parameter("whole", {4, 2}, false, fb::Init_Zeros).buffer;
  plan.program.buffers[whole]->padding_bytes = 16;
  plan.chunkOf(whole, 4);
  plan.parameter("other", {5}, false, fb::Init_Zeros);
  plan.buffer("copy", {5}, fb::DType_F32, fb::Kind_Parameter);
  plan.buffer("activation", {7});
  std::string bytes = plan.bytes();
  Program program;
  Status failed = program.loadBytes(bytes.data(), bytes.size());
  ASSERT_FALSE(failed) << failed.message();
  uint64_t padding = 0;
  EXPECT_EQ(zrt_program_kind_bytes(program.get(), ZRT_KIND_PARAMETER, &padding),
            32u + 20);
  EXPECT_EQ(padding, 16u);
  EXPECT_EQ(zrt_program_kind_bytes(program.get(), ZRT_KIND_ACTIVATION, nullptr),
            28u);
  EXPECT_EQ(zrt_program_kind_bytes(program.get(), ZRT_KIND_GRADIENT, &padding),
            0u);
  EXPECT_EQ(padding, 0u);
}

/// The bytes of a file: the table and its checksum.
static std::string sealed(std::string bytes) {
  auto sum = uint32_t(
      crc32_z(0, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()));
  bytes += "ZSUM";
  for (int shift = 0; shift < 32; shift += 8)
    bytes += char(sum >> shift & 0xFF);
  return bytes;
}

TEST(Program, Files) {
  Program program;
  Status missing = program.loadFile("no/such/file.zplan");
  EXPECT_EQ(missing.code(), ZRT_ERROR_IO);
  EXPECT_EQ(missing.message(),
            "cannot open no/such/file.zplan: No such file or directory");
  Status folder = program.loadFile(testing::TempDir());
  EXPECT_EQ(folder.code(), ZRT_ERROR_IO);
  std::string path = testing::TempDir() + "zrt-program-test.zplan";
  std::string bytes = sealed(everything().bytes());
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_FALSE(program.loadFile(path));
  std::ofstream(path, std::ios::binary) << bytes.substr(0, 100);
  EXPECT_EQ(program.loadFile(path).message(),
            path + ": the program is truncated or damaged (100 bytes without a "
                   "checksum at the end)");
  // Whatever is damaged, be it in the middle of the machine code.
  for (size_t at = 0; at < bytes.size(); at += 97) {
    std::string damaged = bytes;
    damaged[at] = char(damaged[at] ^ 4);
    std::ofstream(path, std::ios::binary) << damaged;
    EXPECT_EQ(program.loadFile(path).code(), ZRT_ERROR_FORMAT) << at;
  }
  std::remove(path.c_str());
}

TEST(Program, NotAProgram) {
  EXPECT_EQ(loadError(std::string()),
            "not a zplan program (0 bytes without the identifier ZPLN)");
  EXPECT_EQ(loadError(std::string(64, 'x')),
            "not a zplan program (64 bytes without the identifier ZPLN)");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.version = 2; }),
            "the program has format version 2; this runtime reads version 1: "
            "compile it again");
}

/// No cut and no changed byte brings the loader down. Kernels are left out:
/// their bytes are code.
TEST(Program, DamageNeverCrashes) {
  PlanBuilder plan = everything();
  plan.program.kernels.clear();
  std::string bytes = plan.bytes();
  EXPECT_EQ(loadError(bytes), "");
  // The last three bytes may be the padding of a string.
  for (size_t size = 0; size + 3 < bytes.size(); ++size)
    EXPECT_NE(loadError(bytes.substr(0, size)), "") << size;
  int refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at)
    for (int value : {0x00, 0x01, 0x7F, 0x80, 0xFF}) {
      std::string damaged = bytes;
      damaged[at] = char(value);
      refused += !loadError(damaged).empty();
    }
  EXPECT_GT(refused, 1000);
}

/// Damage that the checks let pass leaves a program that is safe to run.
TEST(Program, AcceptedDamageIsSafe) {
  PlanBuilder plan = everything();
  plan.program.kernels.clear();
  plan.program.commands.erase(plan.program.commands.begin() + 1); // launch
  plan.program.parameters[0]->init = fb::Init_Ones;
  const std::string bytes = plan.bytes();
  int ran = 0;
  for (size_t at = 8; at < bytes.size(); ++at)
    for (int flipped : {0x01, 0x81}) {
      std::string damaged = bytes;
      damaged[at] = char(damaged[at] ^ flipped);
      Program program;
      Session session;
      if (program.loadBytes(damaged.data(), damaged.size()) ||
          session.create(program))
        continue;
      for (uint32_t input = 0; input < program.info().num_inputs; ++input) {
        std::vector<uint8_t> data(program.input(input).bytes);
        Status ignored =
            session.setInput(input, ZRT_ALL_RANKS, data.data(), data.size());
        (void)ignored;
      }
      ran += !session.step();
    }
  EXPECT_GT(ran, 100);
}

/// What FlatBuffers' verifier accepts and no executor may see.
TEST(Program, Indices) {
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.ranks = 0; }),
            "the program is for 0 ranks; 1 to 1024 are possible");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.ranks = 4000000000u; }),
            "the program is for 4000000000 ranks; 1 to 1024 are possible");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.buffers[1]->arena = 1; }),
            "buffer y: arena 1 does not exist: the program has 1");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.inputs[0]->buffer = 99; }),
            "input x: buffer 99 does not exist: the program has 5");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.parameters[0]->buffer = 99; }),
            "parameter w: buffer 99 does not exist: the program has 5");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.outputs[0]->buffer = 99; }),
            "output y: buffer 99 does not exist: the program has 5");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.constants[0]->buffer = 99; }),
            "constant: buffer 99 does not exist: the program has 5");
  EXPECT_EQ(errorAfter(
                [](fb::ProgramT &p) { p.commands[0]->pieces[0]->source = 99; }),
            "command 0 (all_gather): buffer 99 does not exist: the program "
            "has 5");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.commands[1]->operands[0]->buffer = 99;
            }),
            "command 1 (launch double4): buffer 99 does not exist: the program "
            "has 5");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.commands[2]->release = {99}; }),
            "command 2 (call matmul): buffer 99 does not exist: the program "
            "has 5");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.commands[0]->op = static_cast<fb::Op>(77);
            }),
            "command 0 (unknown): unknown operation 77");
}

TEST(Program, ArenasAndBuffers) {
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.arenas[0]->alignment = 48; }),
            "arena 0: alignment 48 is not a power of two up to 4096");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.arenas[0]->space = static_cast<fb::Space>(9);
            }),
            "arena 0: unknown memory space 9");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.arenas[0]->bytes = 100; }),
            "buffer w: ends outside its arena (offset 128, 16 bytes, rank "
            "stride 0; the arena has 100 bytes)");
  EXPECT_EQ(
      errorAfter([](fb::ProgramT &p) { p.buffers[0]->offset = ~uint64_t(63); }),
      "buffer x: ends outside its arena (offset 18446744073709551552, 16 "
      "bytes, rank stride 0; the arena has 264 bytes)");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.buffers[0]->rank_stride = ~uint64_t(63);
            }),
            "buffer x: ends outside its arena (offset 0, 16 bytes, rank stride "
            "18446744073709551552; the arena has 264 bytes)");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.buffers[0]->offset = 2; }),
            "buffer x: is not aligned to its elements (offset 2, rank stride "
            "0)");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.buffers[0]->shape = {5}; }),
            "buffer x: needs 20 bytes but its buffer x has 16");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.buffers[0]->shape = {huge, huge};
            }),
            "buffer x: its shape is negative or overflows");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.buffers[0]->dtype = static_cast<fb::DType>(50);
            }),
            "buffer x: unknown element type 50");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.buffers[0]->kind = static_cast<fb::Kind>(50);
            }),
            "buffer x: unknown kind 50");
  EXPECT_EQ(
      errorAfter([](fb::ProgramT &p) { p.buffers[0]->padding_bytes = 33; }),
      "buffer x: has more padding (33 bytes on all ranks) than 16 bytes a "
      "rank");
}

TEST(Program, ParametersInputsOutputs) {
  EXPECT_EQ(
      errorAfter([](fb::ProgramT &p) { p.parameters[0]->chunk_rows = 1; }),
      "parameter w: 1 rows on each of 2 ranks do not hold its 3 rows");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.parameters[0]->shards = 3; }),
            "parameter w: has 3 shards; expected 2, the grid's last axis, or "
            "all 2 ranks");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.buffers[0]->shards = 3; }),
            "buffer x: has 3 shards; expected 2, the grid's last axis, or all "
            "2 ranks");
  EXPECT_EQ(
      errorAfter([](fb::ProgramT &p) { p.parameters[0]->chunk_rows = 3; }),
      "parameter w: needs 24 bytes but its buffer w has 16");
  EXPECT_EQ(
      errorAfter([](fb::ProgramT &p) { p.parameters[0]->chunk_rows = huge; }),
      "parameter w: its shape is negative or overflows");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.parameters[0]->shape = {}; }),
            "parameter w: a sharded parameter needs a first dimension");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.parameters[0]->role = fb::ParamRole_Buffer;
            }),
            "parameter w: is a buffer of each rank and cannot be sharded");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.parameters[0]->dtype = fb::DType_F64;
            }),
            "parameter w: has type f64 but its buffer w has f32");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.parameters[0]->role = static_cast<fb::ParamRole>(9);
            }),
            "parameter w: unknown role 9 or init 0");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.inputs[0]->shape = {5}; }),
            "input x: needs 20 bytes but its buffer x has 16");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.inputs[0]->has_range = true; }),
            "input x: a range is only for integers, not f32");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.inputs[0]->role = static_cast<fb::InputRole>(9);
            }),
            "input x: unknown role 9");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.outputs[0]->across_ranks = static_cast<fb::AcrossRanks>(9);
            }),
            "output y: unknown rule across ranks 9");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.constants[0]->data.resize(9); }),
            "constant: has 9 bytes but its buffer c has 8");
}

TEST(Program, OperandsAndCopies) {
  auto operand = [](fb::ProgramT &p) -> fb::OperandT & {
    return *p.commands[1]->operands[0];
  };
  EXPECT_EQ(
      errorAfter([&](fb::ProgramT &p) { operand(p).offset = 1; }),
      "command 1 (launch double4): operand 0 reaches to byte 20 of buffer "
      "x, which has 16");
  EXPECT_EQ(errorAfter([&](fb::ProgramT &p) { operand(p).offset = -1; }),
            "command 1 (launch double4): operand 0 has a negative or "
            "overflowing size");
  EXPECT_EQ(errorAfter([&](fb::ProgramT &p) {
              operand(p).sizes = {huge};
              operand(p).strides = {huge};
            }),
            "command 1 (launch double4): operand 0 has a negative or "
            "overflowing size");
  EXPECT_EQ(errorAfter([&](fb::ProgramT &p) {
              operand(p).sizes = {huge, huge};
              operand(p).strides = {0, 0};
            }),
            "command 1 (launch double4): operand 0 has a negative or "
            "overflowing size");
  EXPECT_EQ(errorAfter([&](fb::ProgramT &p) { operand(p).strides = {}; }),
            "command 1 (launch double4): operand 0 has 1 sizes but 0 strides");
  EXPECT_EQ(errorAfter([&](fb::ProgramT &p) {
              operand(p).sizes = operand(p).strides =
                  std::vector<int64_t>(13, 1);
            }),
            "command 1 (launch double4): operand 0 has 13 dimensions; the most "
            "is 12");
  EXPECT_EQ(errorAfter([&](fb::ProgramT &p) {
              operand(p).sizes = {2};
              operand(p).strides = {2};
            }),
            "command 1 (launch double4): operand 0 is strided; kernels take "
            "contiguous buffers");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.commands[1]->callee = ""; }),
            "command 1 (launch): has no kernel name");
  EXPECT_EQ(
      errorAfter([](fb::ProgramT &p) { p.commands[3]->operands.pop_back(); }),
      "command 3 (copy): has 1 operands instead of 2");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.commands[3]->operands[1]->sizes = {3};
            }),
            "command 3 (copy): copies between different shapes");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.commands[3]->operands[1]->strides = {0};
            }),
            "command 3 (copy): writes an element more than once");
  EXPECT_EQ(
      errorAfter([](fb::ProgramT &p) { p.buffers[1]->dtype = fb::DType_I32; }),
      "command 3 (copy): copies f32 to i32");
}

TEST(Program, Events) {
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.commands[0]->stream = 1; }),
            "command 0 (all_gather): stream 1 does not exist: the program has "
            "1");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.commands[0]->signal = 2; }),
            "command 0 (all_gather): event 2 does not exist: the program has "
            "2");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.commands[1]->wait = {1}; }),
            "command 1 (launch double4): waits for event 1, which no earlier "
            "command signals");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.commands[0]->wait = {0}; }),
            "command 0 (all_gather): waits for event 0, which no earlier "
            "command signals");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.commands[1]->signal = 0; }),
            "command 1 (launch double4): signals event 0, which an earlier "
            "command signals");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.num_streams = 65; }),
            "the program has 65 streams and 2 events; 64 and 1048576 are "
            "possible");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.num_events = 1 << 21; }),
            "the program has 1 streams and 2097152 events; 64 and 1048576 are "
            "possible");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.stream_names = {"a", "b"};
            }),
            "the program names 2 streams and has 1");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.commands[2]->release = {2}; }),
            "command 2 (call matmul): releases w, which holds parameter w");
}

TEST(Program, Grids) {
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.grid = {2, 2};
            }),
            "the grid has 4 ranks, the program 2");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.grid = {2, 0};
            }),
            "the grid has 0 ranks, the program 2");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.grid = std::vector<uint32_t>(9, 1u << 31);
            }),
            "the grid has 4294967295 ranks, the program 2");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.grid = {1, 2}; }), "");
  // One shard: the replicas hold all rows.
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.grid = {2, 1};
            }),
            "parameter w: 2 rows on each of 1 ranks do not hold its 3 rows");
  // Sharded over all axes, they do.
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.grid = {2, 1};
              p.parameters[0]->shards = 2;
            }),
            "");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.commands[0]->axes = {1}; }),
            "command 0 (all_gather): axis 1 does not exist: the grid has 1");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.grid = {1, 2};
              p.commands[0]->axes = {1, 0};
            }),
            "command 0 (all_gather): its axes do not ascend (1, 0)");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) {
              p.grid = {1, 2};
              p.commands[0]->axes = {0};
            }),
            "command 0 (all_gather): chunks of 4 elements on 1 ranks do not "
            "hold the 6 of w");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.commands[3]->axes = {0}; }),
            "command 3 (copy): only collectives have axes");
}

TEST(Program, Collectives) {
  auto piece = [](fb::ProgramT &p) -> fb::PieceT & {
    return *p.commands[0]->pieces[0];
  };
  EXPECT_EQ(errorAfter([&](fb::ProgramT &p) { piece(p).chunk = 2; }),
            "command 0 (all_gather): chunks of 2 elements on 2 ranks do not "
            "hold the 6 of w");
  EXPECT_EQ(errorAfter([&](fb::ProgramT &p) { piece(p).chunk = 5; }),
            "command 0 (all_gather): reads 20 bytes of w (16) and writes 40 of "
            "g (32)");
  EXPECT_EQ(errorAfter([&](fb::ProgramT &p) { piece(p).chunk = huge; }),
            "command 0 (all_gather): the size of w overflows");
  EXPECT_EQ(errorAfter([&](fb::ProgramT &p) { piece(p).elements = -1; }),
            "a collective has a negative size (-1 elements, chunk 4)");
  EXPECT_EQ(errorAfter([&](fb::ProgramT &p) { p.commands[0]->average = true; }),
            "command 0 (all_gather): an all_gather cannot average");
  EXPECT_EQ(errorAfter([](fb::ProgramT &p) { p.commands[0]->pieces.clear(); }),
            "command 0 (all_gather): has nothing to communicate");
  EXPECT_EQ(errorAfter([&](fb::ProgramT &p) {
              p.commands[3]->pieces.push_back(
                  std::make_unique<fb::PieceT>(piece(p)));
            }),
            "command 3 (copy): only collectives have pieces");
  EXPECT_EQ(
      errorAfter([&](fb::ProgramT &p) {
        p.commands[0]->pieces.push_back(std::make_unique<fb::PieceT>(piece(p)));
      }),
      "command 0 (all_gather): two tensors of the bucket share storage: g "
      "and g");
  EXPECT_EQ(errorAfter(
                [&](fb::ProgramT &p) { p.commands[0]->op = fb::Op_AllReduce; }),
            "command 0 (all_reduce): chunks of 4 elements on 2 ranks do not "
            "hold the 6 of w");
  EXPECT_EQ(errorAfter([&](fb::ProgramT &p) {
              p.commands[0]->op = fb::Op_AllReduce;
              piece(p).elements = piece(p).chunk = 4;
              p.buffers[3]->dtype = p.buffers[2]->dtype = fb::DType_I32;
              p.parameters[0]->dtype = fb::DType_I32;
            }),
            "command 0 (all_reduce): cannot reduce elements of type i32; f64, "
            "f32, f16 and bf16 are supported");
  EXPECT_EQ(
      errorAfter([&](fb::ProgramT &p) { p.buffers[3]->dtype = fb::DType_I32; }),
      "command 0 (all_gather): source w is f32, target g i32");
}

/// A shard that lies in the whole, but not at its place, would be overwritten
/// while other ranks read it.
TEST(Program, ShardsHaveTheirPlace) {
  PlanBuilder plan(2);
  uint32_t whole = plan.buffer("whole", {8});
  uint32_t shard = plan.chunkOf(whole, 4);
  plan.collective(fb::Op_AllGather, shard, whole, 8, 4);
  EXPECT_EQ(loadError(plan), "");
  plan.program.buffers[shard]->rank_stride = 0;
  EXPECT_EQ(loadError(plan),
            "command 0 (all_gather): source whole.chunk and target whole "
            "overlap, but the shard is not at its place in the whole");
}

/// What shows only when a session is made.
TEST(Program, KernelsAndTarget) {
  PlanBuilder plan = everything();
  plan.program.commands[1]->callee = "quadruple4";
  EXPECT_EQ(sessionError(plan), "the program has no kernel 'quadruple4'");
  plan.program.commands[1]->callee = "double4";
  plan.program.kernels.resize(10);
  EXPECT_EQ(sessionError(plan), "the kernels are not an ELF object (10 bytes)");
  plan.program.kernels.assign(100, 7);
  EXPECT_EQ(sessionError(plan),
            "the kernels are not a 64-bit ELF shared object");
  plan.program.kernels = kernelBytes();
  plan.program.kernels[18] = 0xF7; // e_machine
  EXPECT_NE(sessionError(plan).find("the kernels are for ELF machine 247"),
            std::string::npos);
  plan.program.kernels = kernelBytes();
  plan.program.cpu_features = {"+made-up9"};
  EXPECT_EQ(sessionError(plan),
            "the program is compiled for host:test, which has +made-up9; this "
            "machine does not: compile it here");
}

/// A file of a few bytes may not claim the machine's memory.
TEST(Program, TooMuchMemory) {
  PlanBuilder plan(2);
  plan.program.arenas[0]->bytes = uint64_t(1) << 62;
  EXPECT_NE(sessionError(plan).find("an arena of one rank needs"),
            std::string::npos);
}
