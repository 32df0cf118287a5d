//===- Program.cpp - Reading a program ------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From the bytes of a .zplan file to plain structs.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Program.h"
#include "runtime/core/Error.h"
#include "runtime/core/Memory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <zlib.h>

using namespace zrt;

static std::string text(const flatbuffers::String *string) {
  return string ? string->str() : std::string();
}

/// Copies bytes: the verifier does not look at the alignment of elements.
template <typename T>
static std::vector<T> list(const flatbuffers::Vector<T> *vector) {
  std::vector<T> result(vector ? vector->size() : 0);
  if (vector)
    copyBytes(result.data(), vector->Data(), result.size() * sizeof(T));
  return result;
}

static std::vector<std::string>
strings(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>
            *vector) {
  std::vector<std::string> result;
  if (vector)
    for (const flatbuffers::String *string : *vector)
      result.push_back(text(string));
  return result;
}

/// Reads a vector of tables, each with `read`.
template <typename To, typename Table, typename Read>
static std::vector<To>
tables(const flatbuffers::Vector<flatbuffers::Offset<Table>> *vector,
       Read read) {
  std::vector<To> result;
  if (!vector)
    return result;
  result.reserve(vector->size());
  for (const Table *table : *vector)
    result.push_back(read(*table));
  return result;
}

static Buffer readBuffer(const fb::Buffer &from) {
  return {text(from.name()),
          from.arena(),
          from.offset(),
          from.bytes(),
          from.rank_stride(),
          from.dtype(),
          list<int64_t>(from.shape()),
          from.kind(),
          from.padding_bytes(),
          from.shards()};
}

static Parameter readParameter(const fb::Parameter &from) {
  Parameter to;
  to.name = text(from.name());
  to.role = from.role();
  to.buffer = from.buffer();
  to.dtype = from.dtype();
  to.shape = list<int64_t>(from.shape());
  to.sharded = from.sharded();
  to.chunkRows = from.chunk_rows();
  to.shards = from.shards();
  to.init = from.init();
  to.initFile = text(from.init_file());
  to.initTensor = text(from.init_tensor());
  to.initValue = from.init_value() ? from.init_value()->data() : nullptr;
  to.initBytes = from.init_value() ? from.init_value()->size() : 0;
  to.of = text(from.of());
  to.tied = strings(from.tied());
  to.bytes = to.rowBytes = 0;
  return to;
}

static Input readInput(const fb::Input &from) {
  return {text(from.name()),
          from.role(),
          from.buffer(),
          from.dtype(),
          list<int64_t>(from.shape()),
          from.has_range(),
          from.has_ignore(),
          from.min(),
          from.max(),
          from.ignore(),
          0};
}

static Operand readOperand(const fb::Operand &from) {
  return {from.buffer(),
          {from.offset(), list<int64_t>(from.sizes()),
           list<int64_t>(from.strides())}};
}

static Piece readPiece(const fb::Piece &from) {
  if (from.elements() < 0 || from.chunk() < 0)
    fail(ZRT_ERROR_FORMAT, "a collective has a negative size (",
         from.elements(), " elements, chunk ", from.chunk(), ")");
  return {from.source(), from.target(), uint64_t(from.elements()),
          uint64_t(from.chunk())};
}

static DeviceKernel readDeviceKernel(const fb::DeviceKernel &from) {
  return {text(from.name()),
          tables<DeviceLaunch>(from.launches(),
                               [](const fb::DeviceLaunch &launch) {
                                 return DeviceLaunch{
                                     text(launch.entry()),
                                     list<uint32_t>(launch.grid()),
                                     list<uint32_t>(launch.block()),
                                     launch.shared_bytes(),
                                     list<int32_t>(launch.arguments())};
                               }),
          from.scratch_bytes()};
}

static Command readCommand(const fb::Command &from) {
  Command to;
  to.op = from.op();
  to.callee = text(from.callee());
  to.operands = tables<Operand>(from.operands(), readOperand);
  to.attrs = tables<Attr>(from.attrs(), [](const fb::Attr &attr) {
    return Attr{text(attr.name()), list<int64_t>(attr.ints()),
                list<double>(attr.floats())};
  });
  to.pieces = tables<Piece>(from.pieces(), readPiece);
  to.average = from.average();
  to.stream = from.stream();
  to.wait = list<uint32_t>(from.wait());
  to.signal = from.signal();
  to.location = text(from.location());
  to.label = text(from.label());
  to.release = list<uint32_t>(from.release());
  to.writes = list<uint32_t>(from.writes());
  to.host = from.host();
  to.split = from.split();
  to.axes = list<uint32_t>(from.axes());
  to.plannedStart = from.planned_start();
  to.plannedSeconds = from.planned_seconds();
  return to;
}

/// Where a table names no number of shards, it is the grid's.
static void fillShards(Program &program) {
  for (Buffer &buffer : program.buffers)
    if (!buffer.shards)
      buffer.shards = program.grid.shards();
  for (Parameter &parameter : program.parameters)
    if (!parameter.shards)
      parameter.shards = program.grid.shards();
}

static void readTables(const fb::Program &from, Program &to) {
  to.arenas = tables<Arena>(from.arenas(), [](const fb::Arena &arena) {
    return Arena{arena.space(), arena.bytes(), arena.alignment(),
                 arena.lower_bound(), arena.budget()};
  });
  to.buffers = tables<Buffer>(from.buffers(), readBuffer);
  for (size_t index = 0; index < to.buffers.size(); ++index)
    if (to.buffers[index].name.empty())
      to.buffers[index].name = "#" + std::to_string(index);
  to.parameters = tables<Parameter>(from.parameters(), readParameter);
  to.inputs = tables<Input>(from.inputs(), readInput);
  to.outputs = tables<Output>(from.outputs(), [](const fb::Output &output) {
    return Output{text(output.name()), output.buffer(), output.across_ranks(),
                  0};
  });
  to.constants =
      tables<Constant>(from.constants(), [](const fb::Constant &constant) {
        const auto *data = constant.data();
        return Constant{constant.buffer(), data ? data->data() : nullptr,
                        data ? data->size() : 0};
      });
  to.commands = tables<Command>(from.commands(), readCommand);
}

/// The grid and the streams.
static void readShape(const fb::Program &from, Program &to) {
  to.ranks = from.ranks();
  std::vector<uint32_t> shape = list<uint32_t>(from.grid());
  if (shape.empty())
    shape = {to.ranks};
  uint64_t product = 1;
  for (uint32_t axis : shape)
    product = std::min<uint64_t>(product * axis, UINT32_MAX);
  if (product != to.ranks)
    fail(ZRT_ERROR_FORMAT, "the grid has ", product, " ranks, the program ",
         to.ranks);
  to.grid = Grid(std::move(shape));
  to.numStreams = std::max(1u, from.num_streams());
  to.numEvents = from.num_events();
  to.streamNames = strings(from.stream_names());
  if (to.streamNames.size() > to.numStreams)
    fail(ZRT_ERROR_FORMAT, "the program names ", to.streamNames.size(),
         " streams and has ", to.numStreams);
}

/// A parameter is gathered where an all_gather reads its storage.
static void countGathers(Program &program) {
  std::map<std::pair<uint32_t, uint64_t>, Parameter *> byAddress;
  for (Parameter &parameter : program.parameters) {
    const Buffer &held = program.buffers[parameter.buffer];
    byAddress[{held.arena, held.begin(0)}] = &parameter;
  }
  for (size_t index = 0; index < program.commands.size(); ++index) {
    const Command &command = program.commands[index];
    if (command.op != fb::Op_AllGather)
      continue;
    for (const Piece &piece : command.pieces) {
      const Buffer &source = program.buffers[piece.source];
      auto next = byAddress.upper_bound({source.arena, source.begin(0)});
      if (next == byAddress.begin())
        continue;
      Parameter &parameter = *std::prev(next)->second;
      const Buffer &held = program.buffers[parameter.buffer];
      if (held.arena == source.arena && source.begin(0) < held.end(0))
        parameter.gathers += program.timesPerStep(index);
    }
  }
}

/// A stream without a name is called by its number.
static void nameStreams(Program &program) {
  for (size_t stream = program.streamNames.size(); stream < program.numStreams;
       ++stream)
    program.streamNames.push_back(stream ? "stream " + std::to_string(stream)
                                         : "compute");
}

std::shared_ptr<const Program> Program::fromBytes(std::string bytes) {
  auto program = std::make_shared<Program>();
  program->bytes = std::move(bytes);
  const auto *data = reinterpret_cast<const uint8_t *>(program->bytes.data());
  size_t size = program->bytes.size();
  // The identifier sits behind the root offset; the verifier reads it only
  // after it checked that there is room.
  if (size < 8 || !fb::ProgramBufferHasIdentifier(data))
    fail(ZRT_ERROR_FORMAT, "not a zplan program (", size,
         " bytes without the identifier ZPLN)");
  flatbuffers::Verifier verifier(data, size, /*max_depth=*/64,
                                 /*max_tables=*/100000000);
  if (!fb::VerifyProgramBuffer(verifier))
    fail(ZRT_ERROR_FORMAT, "the program is truncated or damaged (", size,
         " bytes)");
  const fb::Program &root = *fb::GetProgram(data);
  if (root.version() != 1)
    fail(ZRT_ERROR_FORMAT, "the program has format version ", root.version(),
         "; this runtime reads version 1: compile it again");
  program->name = text(root.name());
  program->optimizer = text(root.optimizer());
  program->target = text(root.target());
  readShape(root, *program);
  program->stage = root.stage();
  program->cpuFeatures = strings(root.cpu_features());
  if (root.device_code())
    program->deviceCode = std::string_view(
        reinterpret_cast<const char *>(root.device_code()->data()),
        root.device_code()->size());
  program->deviceKernels =
      tables<DeviceKernel>(root.device_kernels(), readDeviceKernel);
  if (root.kernels())
    program->kernels =
        std::string_view(reinterpret_cast<const char *>(root.kernels()->data()),
                         root.kernels()->size());
  program->samplesPerRank = root.samples_per_rank();
  program->flopsPerRank = root.flops_per_rank();
  program->windowBytes = root.window_bytes();
  program->plannedSeconds = root.planned_step_seconds();
  program->budgetBytes = root.budget_bytes();
  program->lowerBound = root.arena_lower_bound();
  program->microBatches = root.micro_batches();
  program->microCommands = root.micro_commands();
  readTables(root, *program);
  fillShards(*program);
  checkProgram(*program);
  nameStreams(*program); // whose number is now checked
  countGathers(*program);
  return program;
}

/// A file is as it was written: a damaged one may pass all checks of its tables
/// and still hold other machine code.
static void checkSum(const std::string &bytes) {
  constexpr size_t trailer = 8;
  size_t size = bytes.size();
  if (size < trailer || bytes.compare(size - trailer, 4, "ZSUM") != 0)
    fail(ZRT_ERROR_FORMAT, "the program is truncated or damaged (", size,
         " bytes without a checksum at the end)");
  auto byte = [&](size_t i) { return uint32_t(uint8_t(bytes[size - 4 + i])); };
  uint32_t stored = byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
  auto *data = reinterpret_cast<const Bytef *>(bytes.data());
  if (crc32_z(0, data, size - trailer) != stored)
    fail(ZRT_ERROR_FORMAT,
         "the program is damaged: its checksum is another; compile it again");
}

std::shared_ptr<const Program> Program::fromFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    fail(ZRT_ERROR_IO, "cannot open ", path, ": ", std::strerror(errno));
  std::string bytes;
  std::vector<char> block(1 << 20);
  do {
    file.read(block.data(), block.size());
    bytes.append(block.data(), file.gcount());
  } while (file);
  if (file.bad())
    fail(ZRT_ERROR_IO, "cannot read ", path, ": ", std::strerror(errno));
  try {
    checkSum(bytes);
    return fromBytes(std::move(bytes));
  } catch (const Error &error) {
    fail(error.code(), path, ": ", error.what());
  }
}

uint64_t Parameter::shardBegin(uint32_t shard) const {
  return sharded ? std::min(bytes, shard * uint64_t(chunkRows) * rowBytes) : 0;
}

uint64_t Parameter::shardBytes(uint32_t shard) const {
  return sharded ? std::min(bytes - shardBegin(shard),
                            uint64_t(chunkRows) * rowBytes)
                 : bytes;
}

std::vector<int64_t> Command::ints(std::string_view name) const {
  for (const Attr &attr : attrs)
    if (attr.name == name)
      return attr.ints;
  return {};
}

const char *zrt::opName(fb::Op op) {
  static const char *const names[] = {
      "launch",     "call", "all_gather", "reduce_scatter",
      "all_reduce", "copy", "fill"};
  auto index = static_cast<size_t>(op);
  return index < std::size(names) ? names[index] : "unknown";
}

uint64_t Program::plannedBytes(fb::Space space) const {
  uint64_t bytes = 0;
  for (const Arena &arena : arenas)
    if (arena.space == space)
      bytes += arena.bytes;
  return bytes;
}

uint64_t Program::kindBytes(fb::Kind kind, uint64_t &padding) const {
  // Of state and parameters only what is at rest: copies come and go.
  bool atRest = kind == fb::Kind_Parameter || kind == fb::Kind_OptimizerState;
  std::vector<bool> held(buffers.size());
  for (const Parameter &parameter : parameters)
    held[parameter.buffer] = true;
  std::vector<const Buffer *> sorted;
  for (size_t index = 0; index < buffers.size(); ++index)
    if (buffers[index].kind == kind && (!atRest || held[index]))
      sorted.push_back(&buffers[index]);
  // By address, the longer first: a view of another buffer's storage follows
  // the buffer that holds it, and counts for nothing.
  std::sort(sorted.begin(), sorted.end(), [](const Buffer *a, const Buffer *b) {
    if (a->arena != b->arena)
      return a->arena < b->arena;
    if (a->offset != b->offset)
      return a->offset < b->offset;
    return a->bytes > b->bytes;
  });
  uint64_t bytes = 0, reach = 0;
  uint32_t arena = 0;
  padding = 0;
  for (const Buffer *buffer : sorted) {
    if (buffer->arena != arena) {
      arena = buffer->arena;
      reach = 0;
    }
    if (buffer->end(0) <= reach)
      continue;
    bytes += buffer->end(0) - std::max(reach, buffer->begin(0));
    padding += buffer->paddingBytes;
    reach = buffer->end(0);
  }
  return bytes;
}

/// Elements of a collective's tensors in bytes, and their padding besides: of
/// one rank in each group, times the ranks.
static std::pair<uint64_t, uint64_t> sizesTimesRanks(const Program &program,
                                                     const Command &command) {
  uint64_t group = program.grid.groupSize(command.axes);
  uint64_t bytes = 0, padding = 0;
  for (const Piece &piece : command.pieces) {
    const Buffer &source = program.buffers[piece.source];
    uint64_t size = elementBytes(source.dtype), whole = piece.elements * size;
    bytes += whole * program.ranks;
    if (command.op != fb::Op_AllReduce) {
      padding += (piece.chunk * group * size - whole) * program.ranks;
    } else if (whole == source.bytes) {
      // A shard that is reduced over its replicas comes with its padding.
      bytes -= source.paddingBytes;
      padding += source.paddingBytes;
    }
  }
  return {bytes, padding};
}

/// (n-1)/n of `bytes`, as a ring of n ranks sends; twice that to reduce them
/// and bring them back.
static uint64_t ring(const Command &command, uint64_t group, uint64_t bytes) {
  uint64_t sent = bytes / group * (group - 1);
  return command.op == fb::Op_AllReduce ? 2 * sent : sent;
}

uint64_t Program::sentBytesTimesRanks(const Command &command) const {
  return ring(command, grid.groupSize(command.axes),
              sizesTimesRanks(*this, command).first);
}

uint64_t Program::sentPaddingTimesRanks(const Command &command) const {
  return ring(command, grid.groupSize(command.axes),
              sizesTimesRanks(*this, command).second);
}
