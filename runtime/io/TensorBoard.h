//===- TensorBoard.h - Event files of TensorBoard ---------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scalars as TensorBoard reads them. A file is a sequence of records
//
//   uint64 length | uint32 crc of the length | bytes | uint32 crc of the bytes
//
// little endian, each crc a masked CRC-32C (tensorflow/core/lib/io/record_
// writer.h); the bytes are an Event in protocol buffers' encoding
// (tensorflow/core/util/event.proto), of which these fields are written:
//
//   Event   { double wall_time = 1; int64 step = 2; string file_version = 3;
//             Summary summary = 5; SessionLog session_log = 7; }
//   Summary { repeated Value value = 1; }
//   Value   { string tag = 1; float simple_value = 2; }
//   SessionLog { SessionStatus status = 1; }             (1: START)
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_TENSORBOARD_H
#define ZERO_RUNTIME_IO_TENSORBOARD_H

#include "runtime/io/LogFile.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zrt {

/// CRC-32C (Castagnoli) of RFC 3720, and as a record holds it.
uint32_t crc32c(std::string_view bytes);
uint32_t maskedCrc32c(std::string_view bytes);

/// `bytes` as a record.
std::string tensorBoardRecord(std::string_view bytes);

using Scalars = std::vector<std::pair<std::string, double>>;

/// The bytes of an event with the values of a step. `wallTime` is in seconds
/// since 1970.
std::string tensorBoardEvent(double wallTime, int64_t step,
                             const Scalars &values);

class TensorBoardFile {
public:
  /// Creates events.out.tfevents.<seconds>.<host>.<process>.0 in `folder`,
  /// which exists. With `resumedAt` of at least 0 TensorBoard forgets what
  /// other files of the folder say of later steps. Throws IoError.
  TensorBoardFile(const std::string &folder, int64_t resumedAt);

  /// Throws IoError.
  void write(int64_t step, const Scalars &values);

private:
  LogFile file;
};

} // namespace zrt

#endif // ZERO_RUNTIME_IO_TENSORBOARD_H
