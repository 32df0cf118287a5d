//===- ProgramCheck.cpp - Consistency of a program ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What FlatBuffers' verifier cannot know: that indices are in range, buffers
// inside their arenas, views inside their buffers, collectives cover their
// tensors, and waits have an earlier signal. Each violation is an Error that
// names the table entry.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/DeviceCheck.h"
#include "runtime/core/Error.h"
#include "runtime/core/Program.h"

#include <algorithm>
#include <set>
#include <tuple>

using namespace zrt;

namespace {
/// Ranks are threads, so a plan for more is not for this runtime.
constexpr uint32_t maxRanks = 1024;
/// So is each stream of a rank.
constexpr uint32_t maxStreams = 64;
/// Each rank has its own.
constexpr uint32_t maxEvents = 1 << 20;
/// What the tensor library can address.
constexpr size_t maxDims = 12;
/// A disk is read and written past the system's cache in blocks of this size.
constexpr uint32_t diskBlock = 4096;

const char *spaceName(fb::Space space) {
  return space == fb::Space_Device ? "device"
         : space == fb::Space_Host ? "host"
                                   : "disk";
}

class Checker {
public:
  explicit Checker(Program &program) : program(program) {}
  void run();

private:
  void checkArena(size_t index);
  void checkShards(uint32_t shards);
  void checkBuffer(const Buffer &buffer);
  void checkParameter(Parameter &parameter);
  void measureParameter(Parameter &parameter, const Buffer &buffer);
  void checkInput(Input &input);
  void checkOutput(Output &output);
  void checkConstant(const Constant &constant);
  void checkCommand(size_t index);
  void checkMicroBatches();
  void checkEvents(const Command &command);
  void checkOperand(const Command &command, size_t index);
  void checkLaunch(const Command &command);
  void checkCopy(const Command &command);
  void checkSpaces(const Command &command);
  void checkCopySpaces(const Command &command);
  void checkCollective(const Command &command);
  void checkPieceBounds(const Command &command, const Piece &piece);
  void checkInPlace(const Command &command);
  void checkPiecesDisjoint(const Command &command);
  void checkAxes(const Command &command);
  void checkRelease(const Command &command);

  template <typename... Parts>
  [[noreturn]] void bad(const Parts &...parts) {
    fail(ZRT_ERROR_FORMAT, where, parts...);
  }
  /// The buffer of an index from the file.
  const Buffer &bufferAt(uint32_t index) {
    if (index >= program.buffers.size())
      bad("buffer ", index, " does not exist: the program has ",
          program.buffers.size());
    return program.buffers[index];
  }
  fb::Space spaceOf(const Buffer &buffer) {
    return program.arenas[buffer.arena].space;
  }
  /// `buffer` must be in `space`, where `who` works.
  void requireSpace(const Buffer &buffer, fb::Space space, const char *who) {
    if (spaceOf(buffer) != space)
      bad("takes ", buffer.name, ", which is in ", spaceName(spaceOf(buffer)),
          " memory; ", who, " works in ", spaceName(space), " memory");
  }
  /// A command or the world outside reads or writes `buffer` in memory.
  void requireMemory(const Buffer &buffer) {
    if (spaceOf(buffer) == fb::Space_Disk)
      bad("takes ", buffer.name,
          ", which is on disk; a disk is only copied from and to");
  }
  /// Bytes of a shape of elements, which must be inside `buffer`.
  uint64_t bytesInside(const std::vector<int64_t> &shape, fb::DType dtype,
                       const Buffer &buffer);

  Program &program;
  std::string where; // the table entry being checked: "input x: "
  std::set<uint32_t> signaled, ended; // `ended`: before the last micro-batch
};
} // namespace

uint64_t Checker::bytesInside(const std::vector<int64_t> &shape,
                              fb::DType dtype, const Buffer &buffer) {
  if (dtype != buffer.dtype)
    bad("has type ", dtypeName(dtype), " but its buffer ", buffer.name, " has ",
        dtypeName(buffer.dtype));
  std::optional<uint64_t> count = elementCount(shape);
  std::optional<uint64_t> bytes =
      count ? checkedMul(*count, elementBytes(dtype)) : count;
  if (!bytes)
    bad("its shape is negative or overflows");
  if (*bytes > buffer.bytes)
    bad("needs ", *bytes, " bytes but its buffer ", buffer.name, " has ",
        buffer.bytes);
  return *bytes;
}

void Checker::checkArena(size_t index) {
  const Arena &arena = program.arenas[index];
  where = "arena " + std::to_string(index) + ": ";
  if (arena.space > fb::Space_MAX)
    bad("unknown memory space ", int(arena.space));
  bool powerOfTwo = (arena.alignment & (arena.alignment - 1)) == 0;
  if (arena.alignment == 0 || !powerOfTwo || arena.alignment > 4096)
    bad("alignment ", arena.alignment, " is not a power of two up to 4096");
  if (arena.space == fb::Space_Disk && arena.alignment != diskBlock)
    bad("alignment ", arena.alignment, " of a disk; expected its blocks', ",
        diskBlock);
}

void Checker::checkShards(uint32_t shards) {
  if (!program.grid.hasShards(shards))
    bad("has ", shards, " shards; expected ", program.grid.shards(),
        ", the grid's last axis, or all ", program.ranks, " ranks");
}

void Checker::checkBuffer(const Buffer &buffer) {
  where = "buffer " + buffer.name + ": ";
  if (buffer.arena >= program.arenas.size())
    bad("arena ", buffer.arena, " does not exist: the program has ",
        program.arenas.size());
  uint64_t element = elementBytes(buffer.dtype);
  if (!element)
    bad("unknown element type ", int(buffer.dtype));
  if (buffer.kind > fb::Kind_MAX)
    bad("unknown kind ", int(buffer.kind));
  if (buffer.offset % element || buffer.rankStride % element)
    bad("is not aligned to its elements (offset ", buffer.offset,
        ", rank stride ", buffer.rankStride, ")");
  // A rank's part of a buffer, which is only read, begins where it may.
  if (spaceOf(buffer) == fb::Space_Disk && !buffer.rankStride &&
      buffer.offset % diskBlock)
    bad("begins inside a block of the disk (offset ", buffer.offset,
        "; blocks have ", diskBlock, " bytes)");
  checkShards(buffer.shards);
  std::optional<uint64_t> end =
      checkedMul(buffer.rankStride, buffer.shards - 1);
  end = end ? checkedAdd(*end, buffer.offset) : end;
  end = end ? checkedAdd(*end, buffer.bytes) : end;
  uint64_t size = program.arenas[buffer.arena].bytes;
  if (!end || *end > size)
    bad("ends outside its arena (offset ", buffer.offset, ", ", buffer.bytes,
        " bytes, rank stride ", buffer.rankStride, "; the arena has ", size,
        " bytes)");
  bytesInside(buffer.shape, buffer.dtype, buffer);
  std::optional<uint64_t> all = checkedMul(buffer.bytes, program.ranks);
  if (!all || buffer.paddingBytes > *all)
    bad("has more padding (", buffer.paddingBytes, " bytes on all ranks) than ",
        buffer.bytes, " bytes a rank");
}

void Checker::checkParameter(Parameter &parameter) {
  where = "parameter " + parameter.name + ": ";
  const Buffer &buffer = bufferAt(parameter.buffer);
  if (parameter.role > fb::ParamRole_MAX || parameter.init > fb::Init_MAX)
    bad("unknown role ", int(parameter.role), " or init ", int(parameter.init));
  if (parameter.sharded && parameter.role == fb::ParamRole_Buffer)
    bad("is a buffer of each rank and cannot be sharded");
  if (parameter.role == fb::ParamRole_Accumulator &&
      parameter.init != fb::Init_Zeros)
    bad("is an accumulator and does not start as zeros");
  for (const std::string &name : parameter.tied)
    parameter.tiedNames.push_back(name.c_str());
  measureParameter(parameter, buffer);
  if (parameter.init == fb::Init_Value &&
      parameter.initBytes != parameter.bytes)
    bad("has ", parameter.bytes, " bytes but its value ", parameter.initBytes);
}

/// Sets the sizes of what the ranks hold together, which must be in `buffer`.
void Checker::measureParameter(Parameter &parameter, const Buffer &buffer) {
  if (!parameter.sharded) {
    parameter.bytes = bytesInside(parameter.shape, parameter.dtype, buffer);
    parameter.rowBytes = parameter.bytes;
    return;
  }
  if (parameter.shape.empty() || parameter.shape[0] < 0)
    bad("a sharded parameter needs a first dimension");
  std::vector<int64_t> local = parameter.shape;
  local[0] = 1;
  parameter.rowBytes = bytesInside(local, parameter.dtype, buffer);
  local[0] = parameter.chunkRows;
  bytesInside(local, parameter.dtype, buffer);
  checkShards(parameter.shards);
  std::optional<uint64_t> held =
      checkedMul(parameter.chunkRows, parameter.shards);
  if (!held || *held < uint64_t(parameter.shape[0]))
    bad(parameter.chunkRows, " rows on each of ", parameter.shards,
        " ranks do not hold its ", parameter.shape[0], " rows");
  std::optional<uint64_t> bytes =
      checkedMul(parameter.shape[0], parameter.rowBytes);
  if (!bytes || !checkedMul(*held, parameter.rowBytes))
    bad("its size overflows");
  parameter.bytes = *bytes;
}

void Checker::checkInput(Input &input) {
  where = "input " + input.name + ": ";
  if (input.role > fb::InputRole_MAX)
    bad("unknown role ", int(input.role));
  const Buffer &buffer = bufferAt(input.buffer);
  input.bytes = bytesInside(input.shape, input.dtype, buffer);
  requireMemory(buffer);
  if ((input.hasRange || input.hasIgnore) && isFloat(input.dtype))
    bad("a range is only for integers, not ", dtypeName(input.dtype));
}

void Checker::checkOutput(Output &output) {
  where = "output " + output.name + ": ";
  if (output.across > fb::AcrossRanks_MAX)
    bad("unknown rule across ranks ", int(output.across));
  const Buffer &buffer = bufferAt(output.buffer);
  requireMemory(buffer);
  output.elements = *elementCount(buffer.shape);
}

void Checker::checkConstant(const Constant &constant) {
  where = "constant: ";
  const Buffer &buffer = bufferAt(constant.buffer);
  requireMemory(buffer);
  if (constant.bytes > buffer.bytes)
    bad("has ", constant.bytes, " bytes but its buffer ", buffer.name, " has ",
        buffer.bytes);
}

void Checker::checkOperand(const Command &command, size_t index) {
  const Operand &operand = command.operands[index];
  const Buffer &buffer = bufferAt(operand.buffer);
  const View &view = operand.view;
  if (view.sizes.size() != view.strides.size())
    bad("operand ", index, " has ", view.sizes.size(), " sizes but ",
        view.strides.size(), " strides");
  if (view.sizes.size() > maxDims)
    bad("operand ", index, " has ", view.sizes.size(),
        " dimensions; the most is ", maxDims);
  std::optional<uint64_t> extent = viewExtent(view);
  std::optional<uint64_t> bytes =
      extent ? checkedMul(*extent, elementBytes(buffer.dtype)) : extent;
  std::optional<uint64_t> count = elementCount(view.sizes);
  if (!bytes || !count || *count > uint64_t(INT64_MAX) / 8)
    bad("operand ", index, " has a negative or overflowing size");
  if (*bytes > buffer.bytes)
    bad("operand ", index, " reaches to byte ", *bytes, " of buffer ",
        buffer.name, ", which has ", buffer.bytes);
}

void Checker::checkLaunch(const Command &command) {
  if (command.callee.empty())
    bad("has no kernel name");
  for (size_t index = 0; index < command.operands.size(); ++index)
    if (!isContiguous(command.operands[index].view))
      bad("operand ", index, " is strided; kernels take contiguous buffers");
  for (uint32_t index : command.writes)
    if (index >= command.operands.size())
      bad("writes operand ", index, " of ", command.operands.size());
}

void Checker::checkCopy(const Command &command) {
  bool copy = command.op == fb::Op_Copy;
  size_t expected = copy ? 2 : 1;
  if (command.operands.size() != expected)
    bad("has ", command.operands.size(), " operands instead of ", expected);
  const View &to = command.operands.back().view;
  if (overlapsItself(to))
    bad("writes an element more than once");
  if (!copy)
    return;
  const View &from = command.operands[0].view;
  fb::DType fromType = bufferAt(command.operands[0].buffer).dtype;
  fb::DType toType = bufferAt(command.operands[1].buffer).dtype;
  if (fromType != toType)
    bad("copies ", dtypeName(fromType), " to ", dtypeName(toType));
  bool sameCount = elementCount(from.sizes) == elementCount(to.sizes);
  bool flat = isContiguous(from) && isContiguous(to);
  if (!sameCount || (!flat && from.sizes != to.sizes))
    bad("copies between different shapes");
}

/// Spaces are device, host, disk: a transfer is one step along that line.
void Checker::checkCopySpaces(const Command &command) {
  const Buffer &from = bufferAt(command.operands[0].buffer);
  const Buffer &to = bufferAt(command.operands[1].buffer);
  bool onDisk =
      spaceOf(from) == fb::Space_Disk || spaceOf(to) == fb::Space_Disk;
  if (!onDisk)
    return;
  if (spaceOf(from) != fb::Space_Host && spaceOf(to) != fb::Space_Host)
    bad("copies ", from.name, " in ", spaceName(spaceOf(from)), " memory to ",
        to.name, " in ", spaceName(spaceOf(to)),
        " memory; a disk is copied from and to host memory only");
  for (const Operand &operand : command.operands)
    if (!isContiguous(operand.view))
      bad("copies a strided view from or to a disk");
  if (spaceOf(to) == fb::Space_Disk && to.rankStride)
    bad("writes a rank's part of ", to.name,
        ", which is on disk; what is written there are whole buffers");
}

/// Elements of the smallest tensor that a launch writes; of the largest that it
/// uses where it does not say.
static int64_t leastWritten(const Command &command) {
  int64_t least = INT64_MAX, most = 0;
  for (const Operand &operand : command.operands) {
    int64_t elements = 1; // checked not to overflow with the view
    for (int64_t size : operand.view.sizes)
      elements *= size;
    most = std::max(most, elements);
    if (std::find(command.writes.begin(), command.writes.end(),
                  &operand - command.operands.data()) != command.writes.end())
      least = std::min(least, elements);
  }
  return command.writes.empty() ? most : least;
}

/// Each processor computes in its own memory.
void Checker::checkSpaces(const Command &command) {
  bool launch = command.op == fb::Op_Launch;
  if (command.host && !launch)
    bad("is for the host's processor, which only launches kernels");
  if (command.split && (!launch || command.split < 0))
    bad("runs in ", command.split,
        " parts; only kernels are cut, into 0 or more");
  if (command.split > leastWritten(command))
    bad("runs in ", command.split, " parts, but writes ", leastWritten(command),
        " elements");
  if (command.op == fb::Op_Copy)
    return checkCopySpaces(command);
  for (const Operand &operand : command.operands) {
    const Buffer &buffer = bufferAt(operand.buffer);
    if (command.op == fb::Op_Fill)
      requireMemory(buffer);
    else if (command.host)
      requireSpace(buffer, fb::Space_Host, "the host's processor");
    else
      requireSpace(buffer, fb::Space_Device, "the device");
  }
  for (const Piece &piece : command.pieces) {
    requireSpace(bufferAt(piece.source), fb::Space_Device, "a collective");
    requireSpace(bufferAt(piece.target), fb::Space_Device, "a collective");
  }
}

void Checker::checkPieceBounds(const Command &command, const Piece &piece) {
  const Buffer &source = bufferAt(piece.source);
  const Buffer &target = bufferAt(piece.target);
  if (source.dtype != target.dtype)
    bad("source ", source.name, " is ", dtypeName(source.dtype), ", target ",
        target.name, " ", dtypeName(target.dtype));
  uint64_t element = elementBytes(source.dtype);
  uint32_t group = program.grid.groupSize(command.axes);
  std::optional<uint64_t> chunk = checkedMul(piece.chunk, element);
  std::optional<uint64_t> padded = chunk ? checkedMul(*chunk, group) : chunk;
  std::optional<uint64_t> whole = checkedMul(piece.elements, element);
  if (!padded || !whole)
    bad("the size of ", source.name, " overflows");
  if (command.op == fb::Op_AllReduce ? *chunk != *whole : *padded < *whole)
    bad("chunks of ", piece.chunk, " elements on ", group,
        " ranks do not hold the ", piece.elements, " of ", source.name);
  uint64_t read = command.op == fb::Op_AllGather ? *chunk : *whole;
  uint64_t written = command.op == fb::Op_AllGather ? *padded : *chunk;
  if (read > source.bytes || written > target.bytes)
    bad("reads ", read, " bytes of ", source.name, " (", source.bytes,
        ") and writes ", written, " of ", target.name, " (", target.bytes, ")");
  bool reduces = command.op != fb::Op_AllGather;
  if (reduces && !isFloat(source.dtype))
    bad("cannot reduce elements of type ", dtypeName(source.dtype),
        "; f64, f32, f16 and bf16 are supported");
}

/// Source and target of one piece may share storage only where no rank then
/// overwrites what another still reads: all_reduce exactly in place, and the
/// others with the shard at its own place in the whole.
void Checker::checkInPlace(const Command &command) {
  for (const Piece &piece : command.pieces) {
    const Buffer &source = bufferAt(piece.source);
    const Buffer &target = bufferAt(piece.target);
    if (source.arena != target.arena)
      continue;
    uint64_t chunk = piece.chunk * elementBytes(source.dtype);
    for (const std::vector<uint32_t> &group : program.grid.groups(command.axes))
      for (uint32_t position = 0; position < group.size(); ++position) {
        uint32_t rank = group[position];
        bool overlap = source.begin(rank) < target.end(rank) &&
                       target.begin(rank) < source.end(rank);
        uint64_t from = source.begin(rank), to = target.begin(rank);
        if (command.op == fb::Op_AllGather)
          to += position * chunk;
        else if (command.op == fb::Op_ReduceScatter)
          from += position * chunk;
        if (overlap && from != to)
          bad("source ", source.name, " and target ", target.name,
              " overlap, but the shard is not at its place in the whole");
      }
  }
}

/// Ranks work on a bucket's pieces in their own time, so what one piece writes
/// no other may touch.
void Checker::checkPiecesDisjoint(const Command &command) {
  struct Use {
    uint32_t arena;
    uint64_t begin, end; // over all ranks
    const Piece *piece;
    bool written;
  };
  std::vector<Use> uses;
  for (const Piece &piece : command.pieces)
    for (bool written : {false, true}) {
      const Buffer &buffer = bufferAt(written ? piece.target : piece.source);
      uses.push_back({buffer.arena, buffer.begin(0),
                      buffer.end(buffer.shards - 1), &piece, written});
    }
  std::sort(uses.begin(), uses.end(), [](const Use &a, const Use &b) {
    return std::tie(a.arena, a.begin) < std::tie(b.arena, b.begin);
  });
  for (size_t i = 0; i < uses.size(); ++i)
    for (size_t j = i + 1; j < uses.size(); ++j) {
      const Use &a = uses[i], &b = uses[j];
      if (a.arena != b.arena || b.begin >= a.end)
        break;
      if (a.piece != b.piece && (a.written || b.written))
        bad("two tensors of the bucket share storage: ",
            bufferAt(a.piece->target).name, " and ",
            bufferAt(b.piece->target).name);
    }
}

void Checker::checkAxes(const Command &command) {
  for (size_t i = 0; i < command.axes.size(); ++i) {
    if (command.axes[i] >= program.grid.axes())
      bad("axis ", command.axes[i], " does not exist: the grid has ",
          program.grid.axes());
    if (i && command.axes[i] <= command.axes[i - 1])
      bad("its axes do not ascend (", command.axes[i - 1], ", ",
          command.axes[i], ")");
  }
}

void Checker::checkCollective(const Command &command) {
  if (command.pieces.empty())
    bad("has nothing to communicate");
  checkAxes(command);
  if (command.op == fb::Op_AllGather && command.average)
    bad("an all_gather cannot average");
  for (const Piece &piece : command.pieces)
    checkPieceBounds(command, piece);
  checkInPlace(command);
  checkPiecesDisjoint(command);
}

/// Where the commands of a micro-batch end, all streams are done: no event
/// reaches further.
void Checker::checkMicroBatches() {
  where = "";
  size_t count = program.commands.size();
  if (program.microBatches < 1)
    bad("the program has no micro-batch");
  if (program.microCommands > count)
    bad("the program has ", program.microCommands,
        " commands for a micro-batch, but ", count, " commands");
  if ((program.microBatches > 1) != (program.microCommands > 0))
    bad("the program has ", program.microBatches, " micro-batches and ",
        program.microCommands, " commands for the ones before the last");
}

void Checker::checkEvents(const Command &command) {
  if (command.stream >= program.numStreams)
    bad("stream ", command.stream, " does not exist: the program has ",
        program.numStreams);
  for (uint32_t event : command.wait)
    if (ended.count(event))
      bad("waits for event ", event,
          ", which a command of the micro-batches before signals");
    else if (!signaled.count(event))
      bad("waits for event ", event, ", which no earlier command signals");
  if (command.signal >= 0) {
    if (uint32_t(command.signal) >= program.numEvents)
      bad("event ", command.signal, " does not exist: the program has ",
          program.numEvents);
    if (!signaled.insert(command.signal).second)
      bad("signals event ", command.signal,
          ", which an earlier command signals");
  }
}

void Checker::checkRelease(const Command &command) {
  for (uint32_t index : command.release) {
    const Buffer &released = bufferAt(index);
    for (const Parameter &parameter : program.parameters) {
      const Buffer &held = program.buffers[parameter.buffer];
      if (held.arena == released.arena && held.begin(0) < released.end(0) &&
          released.begin(0) < held.end(0))
        bad("releases ", released.name, ", which holds parameter ",
            parameter.name);
    }
  }
}

void Checker::checkCommand(size_t index) {
  const Command &command = program.commands[index];
  where = "command " + std::to_string(index) + " (" + opName(command.op) +
          (command.callee.empty() ? "" : " " + command.callee) + "): ";
  if (command.op > fb::Op_MAX)
    bad("unknown operation ", int(command.op));
  checkEvents(command);
  for (size_t operand = 0; operand < command.operands.size(); ++operand)
    checkOperand(command, operand);
  if (command.isCollective())
    checkCollective(command);
  else if (!command.pieces.empty())
    bad("only collectives have pieces");
  else if (!command.axes.empty())
    bad("only collectives have axes");
  else if (command.op == fb::Op_Launch)
    checkLaunch(command);
  else if (command.op != fb::Op_Call)
    checkCopy(command);
  checkSpaces(command);
  checkRelease(command);
}

void Checker::run() {
  if (program.ranks < 1 || program.ranks > maxRanks)
    bad("the program is for ", program.ranks, " ranks; 1 to ", maxRanks,
        " are possible");
  if (program.numStreams > maxStreams || program.numEvents > maxEvents)
    bad("the program has ", program.numStreams, " streams and ",
        program.numEvents, " events; ", maxStreams, " and ", maxEvents,
        " are possible");
  for (size_t index = 0; index < program.arenas.size(); ++index)
    checkArena(index);
  for (const Buffer &buffer : program.buffers)
    checkBuffer(buffer);
  for (Parameter &parameter : program.parameters)
    checkParameter(parameter);
  for (Input &input : program.inputs)
    checkInput(input);
  for (Output &output : program.outputs)
    checkOutput(output);
  for (const Constant &constant : program.constants)
    checkConstant(constant);
  checkMicroBatches();
  for (size_t index = 0; index < program.commands.size(); ++index) {
    if (index == program.microCommands)
      ended = signaled;
    checkCommand(index);
  }
  checkDeviceCode(program);
}

void zrt::checkProgram(Program &program) { Checker(program).run(); }
