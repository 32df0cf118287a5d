//===- TensorBoard.cpp - Event files of TensorBoard -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The few fields of the few messages, encoded by hand: the runtime does without
// protocol buffers.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/TensorBoard.h"

#include <array>
#include <chrono>
#include <cstring>
#include <unistd.h>

using namespace zrt;

static constexpr std::array<uint32_t, 256> crcTable() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit)
      value = value >> 1 ^ (value & 1 ? 0x82F63B78u : 0);
    table[byte] = value;
  }
  return table;
}

uint32_t zrt::crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> table = crcTable();
  uint32_t crc = ~0u;
  for (char byte : bytes)
    crc = crc >> 8 ^ table[(crc ^ uint8_t(byte)) & 255];
  return ~crc;
}

uint32_t zrt::maskedCrc32c(std::string_view bytes) {
  uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

static std::string littleEndian(uint64_t value, unsigned bytes) {
  std::string text;
  for (unsigned i = 0; i < bytes; ++i)
    text += char(value >> (8 * i));
  return text;
}

std::string zrt::tensorBoardRecord(std::string_view bytes) {
  std::string length = littleEndian(bytes.size(), 8);
  return length + littleEndian(maskedCrc32c(length), 4) + std::string(bytes) +
         littleEndian(maskedCrc32c(bytes), 4);
}

// Fields of protocol buffers: a key of number and kind, then the value.

static std::string varint(uint64_t value) {
  std::string text;
  for (; value > 127; value >>= 7)
    text += char(value | 128);
  return text + char(value);
}

static std::string key(unsigned field, unsigned kind) {
  return varint(field << 3 | kind);
}

static std::string integerField(unsigned field, int64_t value) {
  return key(field, 0) + varint(uint64_t(value));
}

static std::string doubleField(unsigned field, double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return key(field, 1) + littleEndian(bits, 8);
}

static std::string bytesField(unsigned field, std::string_view value) {
  return key(field, 2) + varint(value.size()) + std::string(value);
}

static std::string floatField(unsigned field, float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return key(field, 5) + littleEndian(bits, 4);
}

std::string zrt::tensorBoardEvent(double wallTime, int64_t step,
                                  const Scalars &values) {
  std::string summary;
  for (const auto &[tag, value] : values)
    summary += bytesField(1, bytesField(1, tag) + floatField(2, float(value)));
  return doubleField(1, wallTime) + integerField(2, step) +
         bytesField(5, summary);
}

static double now() {
  using Seconds = std::chrono::duration<double>;
  return Seconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// TensorBoard finds event files by their names and sorts them by time.
static std::string eventFileName() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  for (char &c : host)
    if (c == '/')
      c = '-';
  return "events.out.tfevents." + std::to_string(int64_t(now())) + "." + host +
         "." + std::to_string(getpid()) + ".0";
}

TensorBoardFile::TensorBoardFile(const std::string &folder, int64_t resumedAt)
    : file(folder + "/" + eventFileName()) {
  file.write(tensorBoardRecord(doubleField(1, now()) +
                               bytesField(3, "brain.Event:2")));
  constexpr int64_t start = 1;
  if (resumedAt >= 0)
    file.write(tensorBoardRecord(doubleField(1, now()) +
                                 integerField(2, resumedAt + 1) +
                                 bytesField(7, integerField(1, start))));
}

void TensorBoardFile::write(int64_t step, const Scalars &values) {
  file.write(tensorBoardRecord(tensorBoardEvent(now(), step, values)));
}
