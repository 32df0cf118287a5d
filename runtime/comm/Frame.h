//===- Frame.h - Messages of the control plane ----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Messages between processes, as bytes of a TCP connection:
//
//   "ZRT1"  kind: u32  size: u64  payload: `size` bytes
//
// Numbers are little-endian. Nothing that comes in is believed: before a
// process has said a valid Hello its frames are short, and memory grows only
// with bytes that are there.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_FRAME_H
#define ZERO_RT_COMM_FRAME_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zrt {

enum class FrameKind : uint32_t {
  Hello,     ///< version, rank, size, machine: of a process to process 0
  Welcome,   ///< the machines of all: of process 0 to a process
  Gather,    ///< number, bytes: a process's part of an allGather
  Gathered,  ///< number, bytes of all
  Broadcast, ///< number, bytes
  Failure,   ///< rank, text
  Alive,     ///< place: sent all the time
  Bye        ///< leaves, having succeeded
};
constexpr uint32_t numFrameKinds = 8;

struct Frame {
  FrameKind kind;
  std::string payload;
};

/// The bytes of a frame.
std::string encodeFrame(FrameKind kind, std::string_view payload);

/// Frames out of a stream of bytes.
class FrameReader {
public:
  /// No payload is longer than `limit` bytes.
  explicit FrameReader(uint64_t limit) : limit(limit) {}
  void setLimit(uint64_t bytes) { limit = bytes; }

  void add(const char *data, size_t bytes) { pending.append(data, bytes); }
  /// The next frame that is there as a whole. False in `valid`: the bytes are
  /// no frames, and nothing after them can be read.
  std::optional<Frame> next(bool &valid);

private:
  uint64_t limit;
  std::string pending;
};

/// Writes the fields of a payload.
class PayloadWriter {
public:
  PayloadWriter &number(uint64_t value);
  PayloadWriter &text(std::string_view value);
  std::string bytes;
};

/// Reads them; each is empty where the payload ends too early.
class PayloadReader {
public:
  explicit PayloadReader(std::string_view payload) : rest(payload) {}
  std::optional<uint64_t> number();
  std::optional<std::string> text();
  bool atEnd() const { return rest.empty(); }

private:
  std::string_view rest;
};

} // namespace zrt

#endif // ZERO_RT_COMM_FRAME_H
