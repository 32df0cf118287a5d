//===- CheckpointWriter.cpp - Saving a checkpoint -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order of the calls is the promise:
//
//   write and sync each file -> sync the new folder (its names)
//     -> rename it (the commit) -> sync the parent (the rename)
//     -> rename an old one away -> sync the parent -> remove its files
//
// Whatever stops the process or the machine in between, the names that a reader
// looks at are only those of whole checkpoints.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/CheckpointThreads.h"

#include "runtime/io/Files.h"
#include "runtime/io/Hash.h"
#include "runtime/io/SafeTensors.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

using namespace zrt;

static constexpr const char *savingPrefix = ".saving-";
static constexpr const char *removingPrefix = ".removing-";

static bool startsWith(const std::string &text, const char *start) {
  return !text.compare(0, std::strlen(start), start);
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::optional<CheckpointName> CheckpointName::parse(const std::string &name) {
  CheckpointName result = {0, 0};
  auto digits = [&](size_t begin, size_t end, int64_t &value) {
    if (begin >= end || end - begin > 18)
      return false;
    for (size_t i = begin; i < end; ++i) {
      if (name[i] < '0' || name[i] > '9')
        return false;
      value = value * 10 + (name[i] - '0');
    }
    return true;
  };
  if (!startsWith(name, "step-"))
    return std::nullopt;
  size_t dot = std::min(name.find('.'), name.size());
  if (!digits(5, dot, result.step) ||
      (dot < name.size() && !digits(dot + 1, name.size(), result.again)))
    return std::nullopt;
  // One text for one name.
  if (result.text() != name)
    return std::nullopt;
  return result;
}

std::string CheckpointName::text() const {
  char name[64];
  std::snprintf(name, sizeof(name), "step-%08lld",
                static_cast<long long>(step));
  return again ? name + ("." + std::to_string(again)) : name;
}

std::vector<CheckpointName> zrt::committedIn(const Folder &folder) {
  std::vector<CheckpointName> found;
  for (const std::string &name : folder.list())
    if (auto parsed = CheckpointName::parse(name))
      found.push_back(*parsed);
  std::sort(found.begin(), found.end());
  return found;
}

bool zrt::isCheckpoint(const Folder &folder) {
  std::vector<std::string> names = folder.list();
  return std::binary_search(names.begin(), names.end(), checkpointIndexName);
}

//===----------------------------------------------------------------------===//
// Files of ranks
//===----------------------------------------------------------------------===//

namespace {

/// Files that threads write, chunk by chunk; a thread that waits for the disk
/// leaves the next file to another one.
class ChunkWriter {
public:
  explicit ChunkWriter(unsigned threads) : threads(threads) {}

  void open(File created);
  /// Where some of the next `bytes` go; says how many.
  uint8_t *room(uint64_t bytes, size_t &size);
  void filled(size_t size) { used += size; }
  /// The file's last byte is there. Returns its size.
  uint64_t close();
  /// All files are on disk.
  void finish();

private:
  void flush();

  std::array<IoChunk, checkpointChunks> chunks;
  size_t chunk = 0, used = 0; // the one that is filled
  std::shared_ptr<File> file;
  uint64_t begin = 0, started = 0; // of the chunk; of what startSync() had
  size_t lane = 0;
  std::vector<std::future<void>> closing;
  IoThreads threads; // last: they end before what they use
};

class Saver {
public:
  Saver(const Folder &folder, int64_t step,
        const std::vector<StateTensor> &tensors, const ReadState &read,
        unsigned threads)
      : folder(folder), step(step), tensors(tensors), read(read),
        writer(threads) {}

  /// The files of all ranks, or of one.
  std::vector<Checkpoint::FileEntry> run(std::optional<uint32_t> only);

private:
  std::vector<Checkpoint::Piece> piecesOf(uint32_t rank) const;
  void writeFile(uint32_t rank, std::vector<Checkpoint::Piece> pieces);
  void writeHeader(Checkpoint::FileEntry &entry, uint32_t rank);
  void writePiece(Checkpoint::Piece &piece);

  const Folder &folder;
  int64_t step;
  const std::vector<StateTensor> &tensors;
  const ReadState &read;
  std::vector<Checkpoint::FileEntry> files;
  ChunkWriter writer;
};

} // namespace

void ChunkWriter::open(File created) {
  file = std::make_shared<File>(std::move(created));
  begin = started = 0;
}

uint8_t *ChunkWriter::room(uint64_t bytes, size_t &size) {
  if (used == checkpointChunkBytes)
    flush();
  std::vector<uint8_t> &space = chunks[chunk].bytes;
  if (!used)
    chunks[chunk].wait();
  size = size_t(std::min<uint64_t>(bytes, checkpointChunkBytes - used));
  space.resize(std::max(space.size(), used + size));
  return &space[used];
}

void ChunkWriter::flush() {
  if (!used)
    return;
  IoChunk &full = chunks[chunk];
  full.busy = threads.start(
      lane, [file = file, data = full.bytes.data(), bytes = used, at = begin] {
        file->writeAt(at, data, bytes);
        file->startSync(at, bytes);
      });
  begin += used;
  used = 0;
  chunk = (chunk + 1) % chunks.size();
}

uint64_t ChunkWriter::close() {
  flush();
  closing.push_back(threads.start(lane++, [file = std::move(file)] {
    file->sync();
    file->close();
  }));
  return begin;
}

void ChunkWriter::finish() {
  for (IoChunk &each : chunks)
    each.wait();
  for (std::future<void> &each : closing)
    if (each.valid())
      each.get();
}

/// What a rank saves: its own parts, and rank 0 what all ranks have. Part p of
/// a tensor is on rank p.
std::vector<Checkpoint::Piece> Saver::piecesOf(uint32_t rank) const {
  std::vector<Checkpoint::Piece> pieces;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (rank < tensors[i].parts && (!rank || tensors[i].partBytes(rank)))
      pieces.push_back({i, rank, ""});
  return pieces;
}

void Saver::writePiece(Checkpoint::Piece &piece) {
  uint64_t bytes = tensors[piece.tensor].partBytes(piece.part);
  Hash hash;
  for (uint64_t at = 0; at < bytes;) {
    size_t size;
    uint8_t *data = writer.room(bytes - at, size);
    read(piece.tensor, piece.part, at, data, size);
    hash.update(data, size);
    writer.filled(size);
    at += size;
  }
  piece.hash = hash.text();
}

void Saver::writeHeader(Checkpoint::FileEntry &entry, uint32_t rank) {
  std::vector<SafeTensorsWriter::Tensor> declared;
  for (const Checkpoint::Piece &piece : entry.pieces)
    declared.push_back({tensors[piece.tensor].name, tensors[piece.tensor].type,
                        tensors[piece.tensor].partShape(piece.part)});
  uint64_t valueBytes = 0;
  std::string header =
      SafeTensorsWriter::header(folder.pathOf(entry.name), declared,
                                {{"format", "zero-checkpoint"},
                                 {"rank", std::to_string(rank)},
                                 {"step", std::to_string(step)}},
                                valueBytes);
  Hash hash;
  hash.update(header);
  entry.headerHash = hash.text();
  for (size_t at = 0; at < header.size();) {
    size_t size;
    uint8_t *data = writer.room(header.size() - at, size);
    std::memcpy(data, &header[at], size);
    writer.filled(size);
    at += size;
  }
}

void Saver::writeFile(uint32_t rank, std::vector<Checkpoint::Piece> pieces) {
  Checkpoint::FileEntry entry;
  entry.name = checkpointFileName(rank);
  entry.pieces = std::move(pieces);
  writer.open(folder.createFile(entry.name));
  writeHeader(entry, rank);
  for (Checkpoint::Piece &piece : entry.pieces)
    writePiece(piece);
  entry.bytes = writer.close();
  files.push_back(std::move(entry));
}

std::vector<Checkpoint::FileEntry> Saver::run(std::optional<uint32_t> only) {
  uint32_t ranks = 0;
  for (const StateTensor &tensor : tensors)
    ranks = std::max(ranks, tensor.parts);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (only && *only != rank)
      continue;
    std::vector<Checkpoint::Piece> pieces = piecesOf(rank);
    if (!pieces.empty())
      writeFile(rank, std::move(pieces));
  }
  writer.finish();
  return std::move(files);
}

std::vector<Checkpoint::FileEntry> zrt::writeCheckpointFiles(
    const std::string &folder, const std::string &name, uint32_t rank,
    int64_t step, const std::vector<StateTensor> &tensors,
    const ReadState &read, FileSystem &system, unsigned threads) {
  Folder inner = Folder::open(folder, system).openFolder(savingPrefix + name);
  std::vector<Checkpoint::FileEntry> files =
      Saver(inner, step, tensors, read, threads).run(rank);
  inner.sync();
  return files;
}

//===----------------------------------------------------------------------===//
// CheckpointFolder
//===----------------------------------------------------------------------===//

CheckpointFolder::CheckpointFolder(const std::string &path, FileSystem &system,
                                   unsigned threads)
    : folder(Folder::openOrMake(path, system)), threads(threads) {
  if (isCheckpoint(folder))
    throw IoError(path, "is a checkpoint; name the folder that it is in");
  if (!folder.lock())
    throw IoError(path, "another run saves its checkpoints here; give each "
                        "run a folder of its own");
  removeLeftovers();
}

void CheckpointFolder::removeLeftovers() {
  for (const std::string &name : folder.list())
    if (startsWith(name, savingPrefix) || startsWith(name, removingPrefix))
      folder.removeFolder(name);
}

std::vector<std::string> CheckpointFolder::checkpoints() const {
  std::vector<std::string> names;
  for (const CheckpointName &name : committedIn(folder))
    names.push_back(name.text());
  return names;
}

void CheckpointFolder::removeOld(int64_t keep) {
  std::vector<std::string> names = checkpoints();
  for (size_t i = 0; keep > 0 && i + size_t(keep) < names.size(); ++i) {
    std::string removed = removingPrefix + names[i];
    folder.rename(names[i], removed);
    // Otherwise a power failure could bring the name back without its files.
    folder.sync();
    folder.removeFolder(removed);
  }
}

std::string CheckpointFolder::begin(int64_t step) {
  CheckpointName name = {step, 0};
  for (const std::string &other : checkpoints()) {
    CheckpointName taken = *CheckpointName::parse(other);
    if (taken.step == step)
      name.again = taken.again + 1;
  }
  folder.makeFolder(savingPrefix + name.text());
  return name.text();
}

void CheckpointFolder::abandon(const std::string &name) {
  try {
    folder.removeFolder(savingPrefix + name);
  } catch (const IoError &) {
    // Another error is the one to report; the next run tries again.
  }
}

void CheckpointFolder::commit(const std::string &name,
                              const CheckpointIndex &index, int64_t keep) {
  std::string saving = savingPrefix + name;
  try {
    Folder inner = folder.openFolder(saving);
    File file = inner.createFile(checkpointIndexName);
    file.write(writeCheckpointIndex(index));
    file.sync();
    file.close();
    inner.sync();
  } catch (...) {
    abandon(name);
    throw;
  }
  folder.rename(saving, name);
  folder.sync();
  removeOld(keep);
}

std::string CheckpointFolder::save(const RunFacts &facts,
                                   const std::vector<StateTensor> &tensors,
                                   const ReadState &read, int64_t keep) {
  std::string name = begin(facts.step);
  CheckpointIndex index = {facts, tensors, {}};
  try {
    Folder inner = folder.openFolder(savingPrefix + name);
    index.files = Saver(inner, facts.step, tensors, read, threads).run({});
  } catch (...) {
    abandon(name);
    throw;
  }
  commit(name, index, keep);
  return name;
}
