//===- Program.h - A loaded program ---------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tables of a .zplan file as plain structs. A Program that exists has
// passed both checks: FlatBuffers' verifier (the bytes are well formed) and
// checkProgram (indices, bounds and shapes are consistent), so the executor
// needs no further ones.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_PROGRAM_H
#define ZERO_RT_CORE_PROGRAM_H

#include "runtime/core/Grid.h"
#include "runtime/core/Layout.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace zrt {

struct Arena {
  fb::Space space;
  uint64_t bytes; // of one rank
  uint32_t alignment;
  uint64_t lowerBound = 0;  // most bytes alive at one time
  int64_t budgetBytes = -1; // what the plan was made for; -1: no limit
};

/// Address on a rank: its arena + offset + rank % shards * rankStride.
struct Buffer {
  std::string name;
  uint32_t arena;
  uint64_t offset;
  uint64_t bytes;
  uint64_t rankStride;
  fb::DType dtype;
  std::vector<int64_t> shape;
  fb::Kind kind;
  uint64_t paddingBytes; // of all ranks together
  uint32_t shards;       // at least 1

  uint64_t begin(uint32_t rank) const {
    return offset + rank % shards * rankStride;
  }
  uint64_t end(uint32_t rank) const { return begin(rank) + bytes; }
};

struct Parameter {
  std::string name;
  fb::ParamRole role;
  uint32_t buffer;
  fb::DType dtype;
  std::vector<int64_t> shape; // logical
  bool sharded;
  int64_t chunkRows;
  fb::Init init;
  std::string initFile, initTensor, of;
  const uint8_t *initValue; // the logical tensor
  uint64_t initBytes;
  std::vector<std::string> tied;
  std::vector<const char *> tiedNames; // of `tied`, for the C interface
  uint64_t bytes;                      // of the logical tensor
  uint64_t rowBytes;                   // of one row of dim 0
  uint32_t gathers = 0;                // of its storage in a step
  uint32_t shards = 1;                 // parts that the ranks hold, in turn

  uint32_t shardOf(uint32_t rank) const { return rank % shards; }

  /// Bytes of the logical tensor in a shard, and where they begin.
  uint64_t shardBegin(uint32_t shard) const;
  uint64_t shardBytes(uint32_t shard) const;
};

struct Input {
  std::string name;
  fb::InputRole role;
  uint32_t buffer;
  fb::DType dtype;
  std::vector<int64_t> shape;
  bool hasRange, hasIgnore;
  int64_t min, max, ignore;
  uint64_t bytes;
};

struct Output {
  std::string name;
  uint32_t buffer;
  fb::AcrossRanks across;
  uint64_t elements;
};

struct Constant {
  uint32_t buffer;
  const uint8_t *data;
  uint64_t bytes;
};

struct Operand {
  uint32_t buffer;
  View view;
};

struct Attr {
  std::string name;
  std::vector<int64_t> ints;
  std::vector<double> floats;
};

struct Piece {
  uint32_t source, target;
  uint64_t elements, chunk;
};

struct Command {
  fb::Op op;
  std::string callee;
  std::vector<Operand> operands;
  std::vector<Attr> attrs;
  std::vector<Piece> pieces;
  bool average;
  uint32_t stream;
  std::vector<uint32_t> wait;
  int32_t signal;
  std::string location, label;
  std::vector<uint32_t> release;
  std::vector<uint32_t> writes;        // of a launch: operands; empty: any
  std::vector<uint32_t> axes;          // of the grid; empty: all
  bool host;                           // a launch on the host's processor
  int64_t split;                       // of a launch in parts: [0, split)
  double plannedStart, plannedSeconds; // -1: not simulated

  /// The attribute's integers; empty if absent.
  std::vector<int64_t> ints(std::string_view name) const;
  bool isCollective() const {
    return op == fb::Op_AllGather || op == fb::Op_ReduceScatter ||
           op == fb::Op_AllReduce;
  }
};

/// A launch of one function of the device code.
struct DeviceLaunch {
  std::string entry;
  std::vector<uint32_t> grid, block; // x, y, z
  uint32_t sharedBytes;              // dynamic shared memory of a block
  std::vector<int32_t> arguments;    // operands of the command; -1: scratch
};

/// What a launch on the device does, in a row.
struct DeviceKernel {
  std::string name; // the command's callee
  std::vector<DeviceLaunch> launches;
  uint64_t scratchBytes;
};

/// "launch", "all_gather", ...
const char *opName(fb::Op op);

struct Program {
  std::string bytes; // the file: constants and kernels point into it
  std::string name, optimizer, target;
  uint32_t ranks, stage, numStreams, numEvents;
  Grid grid;
  std::vector<std::string> streamNames; // numStreams
  std::vector<Arena> arenas;
  std::vector<Buffer> buffers;
  std::vector<Parameter> parameters;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<Constant> constants;
  std::vector<Command> commands;
  std::vector<std::string> cpuFeatures;
  std::string_view kernels;    // of the host, an ELF shared object
  std::string_view deviceCode; // PTX; empty: the target is the host
  std::vector<DeviceKernel> deviceKernels;
  int64_t samplesPerRank;
  double flopsPerRank;
  uint64_t windowBytes;
  double plannedSeconds; // of a step; -1: not simulated
  int64_t budgetBytes;   // -1: no limit
  uint64_t lowerBound;   // most bytes alive at once in the device arena
  uint32_t microBatches; // of a step
  size_t microCommands;  // the first so many, of one micro-batch but the last

  /// How often a step runs a command.
  uint32_t timesPerStep(size_t command) const {
    return command < microCommands ? microBatches - 1 : 1;
  }

  /// Reads and checks a program; throws Error.
  static std::shared_ptr<const Program> fromBytes(std::string bytes);
  static std::shared_ptr<const Program> fromFile(const std::string &path);

  uint64_t plannedBytes(fb::Space space) const;
  /// Storage of one rank under buffers of a kind, and the padding in that of
  /// all ranks. Copies of parameters and state that come and go do not count.
  uint64_t kindBytes(fb::Kind kind, uint64_t &padding) const;
  /// Bytes that a rank sends for a collective in the ring model, times the
  /// number of ranks: exact. The same for padding, not in the first.
  uint64_t sentBytesTimesRanks(const Command &command) const;
  uint64_t sentPaddingTimesRanks(const Command &command) const;
};

/// Second half of loading: everything an executor relies on. Throws Error.
void checkProgram(Program &program);

} // namespace zrt

#endif // ZERO_RT_CORE_PROGRAM_H
