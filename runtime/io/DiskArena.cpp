//===- DiskArena.cpp - Memory that lies in a file -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See DiskArena.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/DiskArena.h"

#include "runtime/io/DiskLane.h"
#include "runtime/io/Files.h"
#include "runtime/io/Retry.h"

#include <algorithm>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace zrt;

// What a block is known to hold. Other marks are checksums.
static constexpr uint64_t allZeros = 0, allOnes = 1, firstChecksum = 2;

static uint64_t checksumOf(const uint8_t *block) {
  return std::max<uint64_t>(XXH3_64bits(block, DiskArena::blockBytes),
                            firstChecksum);
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

namespace {
/// An open folder.
struct OpenFolder {
  OpenFolder(const std::string &path, FileSystem &system) : system(system) {
    handle =
        retrying([&] { return system.openFolder(FileSystem::noFolder, path); });
    if (handle < 0)
      throw IoError(path, errorText("cannot offload to disk there", handle) +
                              "; name a folder that exists");
  }
  ~OpenFolder() { system.close(get()); }
  FileSystem::Handle get() const { return FileSystem::Handle(handle); }

  FileSystem &system;
  int64_t handle;
};
} // namespace

[[noreturn]] static void failRoom(const std::string &path, uint64_t bytes,
                                  const std::string &what, uint64_t free) {
  throw IoError(path, what + (what.back() == 's' ? " need " : " needs ") +
                          std::to_string(bytes) + " bytes, but only " +
                          std::to_string(free) +
                          " are free; make room there, name another folder, or "
                          "offload less to disk");
}

static void checkRoom(FileSystem &system, FileSystem::Handle folder,
                      const std::string &path, uint64_t bytes,
                      const std::string &what) {
  uint64_t free = 0;
  int64_t answer = retrying([&] { return system.freeBytes(folder, free); });
  // A file system that cannot say it will say so when room is asked for.
  if (answer >= 0 && free < bytes)
    failRoom(path, bytes, what, free);
}

void zrt::checkDiskRoom(const std::string &path, uint64_t bytes,
                        const std::string &what, FileSystem &system) {
  OpenFolder folder(path, system);
  checkRoom(system, folder.get(), path, bytes, what);
}

DiskArena::DiskArena(const std::string &path, uint64_t bytes,
                     const std::string &what, const DiskArenaOptions &options,
                     FileSystem &system)
    : system(system), options(options), name(path + " (" + what + ")"),
      arenaBytes((bytes + blockBytes - 1) / blockBytes * blockBytes) {
  OpenFolder folder(path, system);
  try {
    open(folder.get(), system);
    checkRoom(system, folder.get(), path, arenaBytes, what);
    makeRoom(folder.get());
  } catch (...) {
    if (file >= 0)
      system.close(file);
    throw;
  }
}

DiskArena::~DiskArena() {
  reader.reset(); // waits for what is under way
  writer.reset();
  system.close(file);
}

/// Opens a file without a name, or one that loses its name at once.
void DiskArena::open(FileSystem::Handle folder, FileSystem &system) {
  auto tryOpen = [&](const std::string &as) {
    int64_t made = -EINVAL;
    notDirect = "not asked for";
    if (options.direct) {
      made = retrying([&] { return system.createScratch(folder, as, true); });
      notDirect = made < 0 ? std::strerror(int(-made)) : "";
    }
    if (made == -EINVAL)
      made = retrying([&] { return system.createScratch(folder, as, false); });
    return made;
  };
  int64_t made = tryOpen("");
  for (int attempt = 0; made == -EOPNOTSUPP || made == -EEXIST; ++attempt) {
    if (attempt == 1000)
      break;
    std::string as = ".zero-offload-" + std::to_string(::getpid()) + "-" +
                     std::to_string(attempt);
    made = tryOpen(as);
    if (made < 0)
      continue;
    file = FileSystem::Handle(made);
    int64_t removed = retrying([&] { return system.removeFile(folder, as); });
    if (removed < 0)
      throw IoError(name, errorText("cannot remove its file's name", removed));
  }
  if (made < 0)
    throw IoError(name, errorText("cannot create a file", made) +
                            "; name a folder that you may write to");
  file = FileSystem::Handle(made);
}

void DiskArena::makeRoom(FileSystem::Handle folder) {
  int64_t made = retrying([&] { return system.allocate(file, arenaBytes); });
  if (made == -ENOSPC || made == -EDQUOT) {
    uint64_t free = 0;
    system.freeBytes(folder, free);
    failRoom(name, arenaBytes, "it", free);
  }
  if (made < 0 && made != -EOPNOTSUPP)
    throw IoError(name, "cannot take " + std::to_string(arenaBytes) +
                            " bytes: " + std::strerror(int(-made)));
  reader = std::make_unique<Lane>(system, options, /*write=*/false);
  writer = std::make_unique<Lane>(system, options, /*write=*/true);
  notQueued = reader->refusal().empty() ? writer->refusal() : reader->refusal();
  marks.assign(arenaBytes / blockBytes, allZeros);
  if (made == -EOPNOTSUPP)
    writeZeros();
}

/// Takes room on file systems that give none before it is written to.
void DiskArena::writeZeros() {
  std::vector<uint8_t> zeros(std::min<uint64_t>(arenaBytes, 16 << 20));
  for (uint64_t at = 0; at < arenaBytes; at += zeros.size())
    write(at, zeros.data(), std::min<uint64_t>(zeros.size(), arenaBytes - at));
}

std::string DiskArena::access() const {
  std::string text = "io_uring";
  if (!notQueued.empty())
    text = "pread and pwrite (io_uring: " + notQueued + ")";
  return text + (notDirect.empty()
                     ? ", O_DIRECT"
                     : ", page cache (O_DIRECT: " + notDirect + ")");
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

void DiskArena::fail(const char *verb, uint64_t offset, uint64_t bytes,
                     const std::string &reason) const {
  std::string text = std::string("cannot ") + verb;
  if (bytes)
    text += " " + std::to_string(bytes) + " bytes at byte " +
            std::to_string(offset);
  throw IoError(name, text + ": " + reason +
                          "; go on from the last checkpoint, with another "
                          "folder if the disk is at fault");
}

void DiskArena::check(uint64_t offset, uint64_t bytes) const {
  if (offset > arenaBytes || bytes > arenaBytes - offset)
    throw IoError(name, "has " + std::to_string(arenaBytes) + " bytes, not " +
                            std::to_string(bytes) + " at byte " +
                            std::to_string(offset));
}

/// The piece that begins at byte `offset` of the file: up to `limit` bytes of
/// whole blocks, or a part of one block.
static void cutPiece(uint64_t offset, uint64_t bytes, uint64_t limit,
                     uint64_t &skip, uint64_t &used) {
  constexpr uint64_t block = DiskArena::blockBytes;
  skip = offset % block;
  used = std::min(bytes,
                  skip || bytes < block ? block - skip : bytes / block * block);
  used = std::min(used, limit);
}

void DiskArena::read(uint64_t offset, void *data, uint64_t bytes) {
  check(offset, bytes);
  auto *to = static_cast<uint8_t *>(data);
  Lane::Steps steps;
  steps.next = [&](Piece &piece) {
    while (bytes) {
      uint64_t limit = options.pieceBytes, mark = marks[offset / blockBytes];
      bool known = mark < firstChecksum;
      cutPiece(offset, bytes, known ? blockBytes : limit, piece.skip,
               piece.used);
      // Up to a block that need not be read.
      for (uint64_t at = blockBytes; !known && at < piece.used;
           at += blockBytes)
        if (marks[(offset + at) / blockBytes] < firstChecksum)
          piece.used = at;
      piece.offset = offset - piece.skip;
      piece.bytes = std::max(piece.used, blockBytes);
      piece.user = to;
      offset += piece.used;
      to += piece.used;
      bytes -= piece.used;
      if (!known)
        return true;
      std::memset(piece.user, mark == allOnes ? 0xFF : 0, piece.used);
    }
    return false;
  };
  steps.after = [&](const Piece &piece, uint8_t *memory) {
    for (uint64_t at = 0; options.checksums && at < piece.bytes;
         at += blockBytes)
      if (checksumOf(memory + at) != marks[(piece.offset + at) / blockBytes])
        fail("read", piece.offset + at, blockBytes,
             "the bytes are not those that were written (checksum)");
    if (!piece.isPlain())
      std::memcpy(piece.user, memory + piece.skip, piece.used);
  };
  steps.fail = [&](const Piece &piece, const std::string &reason) {
    fail("read", piece.offset, piece.bytes, reason);
  };
  reader->run(file, steps);
}

void DiskArena::write(uint64_t offset, const void *data, uint64_t bytes) {
  write(offset, data, bytes, /*toEnd=*/false);
}

void DiskArena::writeToBlockEnd(uint64_t offset, const void *data,
                                uint64_t bytes) {
  write(offset, data, bytes, /*toEnd=*/true);
}

void DiskArena::write(uint64_t offset, const void *data, uint64_t bytes,
                      bool toEnd) {
  check(offset, bytes);
  // Never written through.
  auto *from = static_cast<uint8_t *>(const_cast<void *>(data));
  Lane::Steps steps;
  steps.next = [&](Piece &piece) {
    cutPiece(offset, bytes, options.pieceBytes, piece.skip, piece.used);
    piece.offset = offset - piece.skip;
    piece.bytes = std::max(piece.used, blockBytes);
    piece.user = from;
    offset += piece.used;
    from += piece.used;
    bytes -= piece.used;
    return piece.used != 0;
  };
  steps.before = [&](const Piece &piece, uint8_t *memory) {
    if (!piece.isPlain()) {
      if (piece.used < piece.bytes && toEnd && !piece.skip)
        std::memset(memory + piece.used, 0, piece.bytes - piece.used);
      else if (piece.used < piece.bytes)
        read(piece.offset, memory, piece.bytes);
      std::memcpy(memory + piece.skip, piece.user, piece.used);
    }
    for (uint64_t at = 0; at < piece.bytes; at += blockBytes)
      marks[(piece.offset + at) / blockBytes] =
          options.checksums ? checksumOf(memory + at) : firstChecksum;
  };
  steps.fail = [&](const Piece &piece, const std::string &reason) {
    fail("write", piece.offset, piece.bytes, reason);
  };
  writer->run(file, steps);
}

void DiskArena::fill(uint64_t offset, uint64_t bytes, uint8_t value) {
  check(offset, bytes);
  while (bytes) {
    uint64_t skip, used;
    cutPiece(offset, bytes, UINT64_MAX, skip, used);
    if (skip == 0 && used % blockBytes == 0)
      std::fill_n(marks.begin() + offset / blockBytes, used / blockBytes,
                  value ? allOnes : allZeros);
    else
      write(offset, std::vector<uint8_t>(used, value).data(), used);
    offset += used;
    bytes -= used;
  }
}
