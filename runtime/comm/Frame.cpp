//===- Frame.cpp - Messages of the control plane --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Frame.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Frame.h"

#include <algorithm>

using namespace zrt;

static constexpr std::string_view magic = "ZRT1";
static constexpr size_t headerBytes = 4 + 4 + 8;

static void putNumber(std::string &bytes, uint64_t value, int width) {
  for (int i = 0; i < width; ++i)
    bytes.push_back(char(value >> (8 * i)));
}

static uint64_t takeNumber(std::string_view bytes, int width) {
  uint64_t value = 0;
  for (int i = 0; i < width; ++i)
    value |= uint64_t(uint8_t(bytes[size_t(i)])) << (8 * i);
  return value;
}

std::string zrt::encodeFrame(FrameKind kind, std::string_view payload) {
  std::string bytes(magic);
  bytes.reserve(headerBytes + payload.size());
  putNumber(bytes, uint32_t(kind), 4);
  putNumber(bytes, payload.size(), 8);
  return bytes.append(payload);
}

std::optional<Frame> FrameReader::next(bool &valid) {
  std::string_view bytes = pending;
  // A stranger is known by its first bytes, however few they are.
  size_t seen = std::min(bytes.size(), magic.size());
  valid = bytes.substr(0, seen) == magic.substr(0, seen);
  if (!valid || bytes.size() < headerBytes)
    return std::nullopt;
  uint64_t kind = takeNumber(bytes.substr(4), 4);
  uint64_t size = takeNumber(bytes.substr(8), 8);
  valid = kind < numFrameKinds && size <= limit;
  if (!valid || bytes.size() - headerBytes < size)
    return std::nullopt;
  Frame frame = {FrameKind(kind),
                 std::string(bytes.substr(headerBytes, size_t(size)))};
  pending.erase(0, headerBytes + size_t(size));
  return frame;
}

PayloadWriter &PayloadWriter::number(uint64_t value) {
  putNumber(bytes, value, 8);
  return *this;
}

PayloadWriter &PayloadWriter::text(std::string_view value) {
  putNumber(bytes, value.size(), 8);
  bytes.append(value);
  return *this;
}

std::optional<uint64_t> PayloadReader::number() {
  if (rest.size() < 8)
    return std::nullopt;
  uint64_t value = takeNumber(rest, 8);
  rest.remove_prefix(8);
  return value;
}

std::optional<std::string> PayloadReader::text() {
  std::optional<uint64_t> size = number();
  if (!size || *size > rest.size())
    return std::nullopt;
  std::string value(rest.substr(0, size_t(*size)));
  rest.remove_prefix(size_t(*size));
  return value;
}
