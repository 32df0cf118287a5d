//===- Transfers.cpp - Copies between memory spaces -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Transfers.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/host/Transfers.h"

#include "runtime/core/Error.h"
#include "runtime/io/DiskArena.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <sys/resource.h>

using namespace zrt;
using namespace zrt::host;

std::optional<zrt_transfer> zrt::host::transferOf(const Program &program,
                                                  const Command &command) {
  if (command.op != fb::Op_Copy)
    return std::nullopt;
  auto spaceOf = [&](size_t operand) {
    uint32_t buffer = command.operands[operand].buffer;
    return program.arenas[program.buffers[buffer].arena].space;
  };
  fb::Space from = spaceOf(0), to = spaceOf(1);
  if (from == to)
    return std::nullopt;
  if (to == fb::Space_Disk)
    return ZRT_DISK_WRITE;
  if (from == fb::Space_Disk)
    return ZRT_DISK_READ;
  return to == fb::Space_Host ? ZRT_TO_HOST : ZRT_TO_DEVICE;
}

uint64_t zrt::host::transferBytes(const Program &program,
                                  const Command &command) {
  const Operand &target = command.operands.back();
  uint64_t elements = *elementCount(target.view.sizes);
  uint64_t moved =
      elements * elementBytes(program.buffers[target.buffer].dtype);
  uint64_t bytes = moved * program.ranks;
  // A buffer's padding includes the rest of its last block, which is not in the
  // view. Of a view of a part it is not known.
  auto paddingOf = [&](const Operand &operand) -> uint64_t {
    const Buffer &buffer = program.buffers[operand.buffer];
    uint64_t behind = (buffer.bytes - moved) * program.ranks;
    bool whole = elements == *elementCount(buffer.shape);
    return whole && buffer.paddingBytes > behind ? buffer.paddingBytes - behind
                                                 : 0;
  };
  uint64_t padding =
      std::max(paddingOf(command.operands[0]), paddingOf(target));
  return bytes - std::min(bytes, padding);
}

const std::string &zrt::host::tensorName(const Program &program,
                                         uint32_t buffer) {
  for (const Parameter &parameter : program.parameters)
    if (parameter.buffer == buffer)
      return parameter.name;
  return program.buffers[buffer].name;
}

/// A number that a file begins with, or that stands behind `key` in it.
static std::optional<uint64_t> numberIn(const std::string &path,
                                        std::string_view key = "") {
  std::ifstream file(path);
  uint64_t number = 0;
  if (key.empty())
    return file >> number ? std::optional(number) : std::nullopt;
  for (std::string word; file >> word;)
    if (word == key && file >> number)
      return number;
  return std::nullopt;
}

/// What the limit of this process's control group leaves: pages of files go
/// when memory is short. Nothing where there is no limit.
static std::optional<uint64_t> leftOfGroup() {
  std::ifstream groups("/proc/self/cgroup");
  std::string line, folder = "/sys/fs/cgroup";
  while (std::getline(groups, line))
    if (line.compare(0, 3, "0::") == 0)
      folder += line.substr(3);
  std::optional<uint64_t> limit = numberIn(folder + "/memory.max");
  if (!limit) // "max" is no number
    return std::nullopt;
  uint64_t used = numberIn(folder + "/memory.current").value_or(0);
  uint64_t files = numberIn(folder + "/memory.stat", "file").value_or(0);
  used -= std::min(used, files);
  return *limit - std::min(*limit, used);
}

/// Memory that this process may still take: what the system has, or what the
/// limit of its control group leaves.
static uint64_t availableMemory() {
  constexpr uint64_t most = std::numeric_limits<uint64_t>::max();
  std::optional<uint64_t> kilobytes =
      numberIn("/proc/meminfo", "MemAvailable:");
  return std::min(kilobytes ? *kilobytes * 1024 : most,
                  leftOfGroup().value_or(most));
}

void zrt::host::checkSpaces(const Program &program, uint32_t ranks,
                            const char *offloadPath) {
  uint64_t device = program.plannedBytes(fb::Space_Device);
  uint64_t host = program.plannedBytes(fb::Space_Host);
  uint64_t disk = program.plannedBytes(fb::Space_Disk);
  uint64_t available = availableMemory();
  // Sizes of hostile files may be of any size.
  double needed = (double(device) + double(host)) * ranks;
  if (host && needed > double(available))
    fail(ZRT_ERROR_MEMORY, "the host memory of ", ranks, " rank",
         ranks == 1 ? "" : "s", ", ", host, " bytes each, and ", device,
         " bytes of device memory each do not fit: this machine has ",
         available, " bytes available; offload less to the host, or to disk");
  if (!disk)
    return;
  if (!offloadPath || !*offloadPath)
    fail(ZRT_ERROR_ARGUMENT, "the program keeps ", disk,
         " bytes a rank on disk: name a folder for them");
  rlimit limit = {};
  if (!getrlimit(RLIMIT_FSIZE, &limit) && disk > limit.rlim_cur)
    fail(ZRT_ERROR_IO, offloadPath, ": the disk space of a rank needs ", disk,
         " bytes, but this process may not make files of more than ",
         limit.rlim_cur, "; raise the limit (ulimit -f), or offload less to ",
         "disk");
  uint64_t all = disk > std::numeric_limits<uint64_t>::max() / ranks
                     ? std::numeric_limits<uint64_t>::max()
                     : disk * ranks;
  checkDiskRoom(offloadPath, all,
                ranks == 1
                    ? "the disk space of the rank"
                    : "the disk spaces of " + std::to_string(ranks) + " ranks");
}
