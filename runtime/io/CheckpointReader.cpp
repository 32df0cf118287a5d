//===- CheckpointReader.cpp - Loading a checkpoint ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each file is read once, front to back: its header against the index, its
// values to the caller, all of it into the hashes.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/CheckpointThreads.h"

#include "runtime/io/Files.h"
#include "runtime/io/Hash.h"
#include "runtime/io/Json.h"
#include "runtime/io/SafeTensors.h"

#include <algorithm>
#include <array>

using namespace zrt;

/// A million tensors have an index of this size.
static constexpr uint64_t maxIndexBytes = uint64_t(1) << 30;

bool Checkpoint::anyIn(const std::string &path, FileSystem &system) {
  if (!Folder::exists(path, system))
    return false;
  Folder folder = Folder::open(path, system);
  return isCheckpoint(folder) || !committedIn(folder).empty();
}

/// A renamed checkpoint would be taken for a newer one, or go on elsewhere.
static Checkpoint named(Checkpoint checkpoint, const std::string &path) {
  auto name = CheckpointName::parse(path.substr(path.rfind('/') + 1));
  if (name && name->step != checkpoint.facts().step)
    throw IoError(path, "is the checkpoint after step " +
                            std::to_string(checkpoint.facts().step) +
                            "; give it the name that it was saved under");
  return checkpoint;
}

Checkpoint Checkpoint::open(const std::string &path, FileSystem &system) {
  Folder folder = Folder::open(path, system);
  if (isCheckpoint(folder))
    return named(Checkpoint(std::move(folder)), path);
  std::vector<CheckpointName> found = committedIn(folder);
  if (found.empty())
    throw IoError(path, CheckpointName::parse(path.substr(path.rfind('/') + 1))
                            ? "index.json: is missing: the checkpoint is "
                              "damaged"
                            : "has no checkpoint: neither index.json nor a "
                              "folder like step-00000010");
  std::string newest = found.back().text();
  try {
    return named(Checkpoint(folder.openFolder(newest)),
                 folder.pathOf(newest));
  } catch (const IoError &error) {
    if (found.size() == 1)
      throw;
    std::string older = folder.pathOf(found[found.size() - 2].text());
    throw IoError(error.what(), "the newest checkpoint is not taken; to go "
                                "back, name an older one: " +
                                    older);
  }
}

Checkpoint::Checkpoint(Folder opened) : folder(std::move(opened)) {
  File file = folder.openFile(checkpointIndexName);
  CheckpointIndex index =
      readCheckpointIndex(file.path(), readAll(file, maxIndexBytes));
  runFacts = std::move(index.facts);
  stateTensors = std::move(index.tensors);
  files = std::move(index.files);
  checkFiles();
}

void Checkpoint::checkFiles() const {
  for (const FileEntry &entry : files) {
    File file = folder.openFile(entry.name);
    uint64_t size = file.size();
    if (size != entry.bytes)
      throw IoError(file.path(), "has " + std::to_string(size) +
                                     " bytes, the index says " +
                                     std::to_string(entry.bytes));
  }
}

uint64_t Checkpoint::bytes() const {
  uint64_t sum = 0;
  for (const FileEntry &entry : files)
    sum += entry.bytes;
  return sum;
}

std::string Checkpoint::describe(const Piece &piece) const {
  const StateTensor &tensor = stateTensors[piece.tensor];
  std::string text = "tensor " + jsonQuote(tensor.name);
  if (tensor.layout == StateLayout::Rows)
    text += " rows " + std::to_string(tensor.firstRow(piece.part)) + " to " +
            std::to_string(tensor.firstRow(piece.part) +
                           tensor.numRows(piece.part));
  return text;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The files of a checkpoint front to back, read ahead by threads. Which bytes
/// come in one chunk follows from the index, so that an element is never cut.
class zrt::ChunkReader {
public:
  ChunkReader(const Folder &folder, unsigned threads)
      : folder(folder), threads(threads) {}

  /// Announces the next bytes of a file: not to be cut, or where chunks end.
  void announce(const std::string &file, uint64_t bytes);
  /// Some of the next `bytes`; says how many. Valid until the next call.
  const uint8_t *next(uint64_t bytes, size_t &size);

private:
  struct Read {
    const std::string *file;
    uint64_t offset;
    size_t bytes;
  };
  void start();

  const Folder &folder;
  std::vector<Read> reads;
  size_t started = 0, current = 0, used = 0, lane = 0;
  std::shared_ptr<File> file;
  const std::string *fileName = nullptr;
  std::array<IoChunk, checkpointChunks> chunks;
  IoThreads threads; // last: they end before what they use
};

void ChunkReader::announce(const std::string &name, uint64_t bytes) {
  bool same = !reads.empty() && reads.back().file == &name;
  uint64_t at = same ? reads.back().offset + reads.back().bytes : 0;
  if (same && bytes <= checkpointChunkBytes - reads.back().bytes) {
    reads.back().bytes += size_t(bytes);
    return;
  }
  for (uint64_t end = at + bytes; at < end;) {
    size_t size = size_t(std::min<uint64_t>(end - at, checkpointChunkBytes));
    reads.push_back({&name, at, size});
    at += size;
  }
}

/// The next read begins, in the chunk that is free.
void ChunkReader::start() {
  const Read &read = reads[started];
  if (fileName != read.file) {
    file = std::make_shared<File>(folder.openFile(*read.file));
    file->expectSequential();
    fileName = read.file;
    ++lane;
  }
  IoChunk &chunk = chunks[started % chunks.size()];
  chunk.bytes.resize(std::max(chunk.bytes.size(), read.bytes));
  // A file has one reader: only so does the system read ahead well.
  chunk.busy =
      threads.start(lane, [file = file, data = chunk.bytes.data(), read] {
        file->readAt(read.offset, data, read.bytes);
      });
  ++started;
}

const uint8_t *ChunkReader::next(uint64_t bytes, size_t &size) {
  if (current < reads.size() && started > current &&
      used == reads[current].bytes) {
    ++current;
    used = 0;
  }
  size_t ahead = threads.count() ? chunks.size() : 1;
  while (started < std::min(current + ahead, reads.size()))
    start();
  IoChunk &chunk = chunks[current % chunks.size()];
  chunk.wait();
  size = size_t(std::min<uint64_t>(bytes, reads[current].bytes - used));
  used += size;
  return &chunk.bytes[used - size];
}

/// The rest of the file are its pieces, which the index knows.
uint64_t Checkpoint::headerBytes(const FileEntry &entry) const {
  uint64_t bytes = entry.bytes;
  for (const Piece &piece : entry.pieces) {
    uint64_t part = stateTensors[piece.tensor].partBytes(piece.part);
    if (part > bytes)
      throw IoError(folder.pathOf(entry.name),
                    "has " + std::to_string(entry.bytes) +
                        " bytes, too few for the tensors that the index says "
                        "are in it");
    bytes -= part;
  }
  if (bytes > maxSafeTensorsHeaderBytes)
    throw IoError(folder.pathOf(entry.name),
                  "has " + std::to_string(bytes) +
                      " bytes that are of no tensor of the index");
  return bytes;
}

void Checkpoint::stream(const Deliver &deliver, unsigned threads) const {
  ChunkReader reader(folder, threads);
  for (const FileEntry &entry : files) {
    reader.announce(entry.name, headerBytes(entry));
    for (const Piece &piece : entry.pieces)
      reader.announce(entry.name,
                      stateTensors[piece.tensor].partBytes(piece.part));
  }
  for (const FileEntry &entry : files)
    streamFile(entry, reader, deliver);
}

SafeTensorsHeader Checkpoint::streamHeader(const FileEntry &entry,
                                           ChunkReader &reader) const {
  std::string text;
  for (uint64_t missing = headerBytes(entry); missing;) {
    size_t size;
    const uint8_t *data = reader.next(missing, size);
    text.append(reinterpret_cast<const char *>(data), size);
    missing -= size;
  }
  std::string path = folder.pathOf(entry.name);
  Hash hash;
  hash.update(text);
  if (hash.text() != entry.headerHash)
    throw IoError(path, "is damaged: its header has the hash " + hash.text() +
                            ", the index says " + entry.headerHash);
  SafeTensorsHeader header = parseSafeTensorsHeader(path, text, entry.bytes);
  if (header.infos.size() != entry.pieces.size())
    throw IoError(path, "has " + std::to_string(header.infos.size()) +
                            " tensors, the index says " +
                            std::to_string(entry.pieces.size()));
  return header;
}

/// The header says of a piece what the index says.
void Checkpoint::checkPiece(const std::string &path, const Piece &piece,
                            const SafeTensorsHeader &header,
                            uint64_t begin) const {
  const StateTensor &tensor = stateTensors[piece.tensor];
  auto info = header.infos.find(tensor.name);
  if (info == header.infos.end())
    throw IoError(path, "lacks " + describe(piece));
  std::vector<int64_t> shape = tensor.partShape(piece.part);
  if (info->second.type != tensor.type || info->second.shape != shape)
    throw IoError(path,
                  describe(piece) + " is " +
                      zrt::describe(info->second.type, info->second.shape) +
                      ", the index says " + zrt::describe(tensor.type, shape));
  if (header.offsets.at(tensor.name) != begin)
    throw IoError(path,
                  describe(piece) + " is not where the index's order has it");
}

void Checkpoint::streamFile(const FileEntry &entry, ChunkReader &reader,
                            const Deliver &deliver) const {
  std::string path = folder.pathOf(entry.name);
  SafeTensorsHeader header = streamHeader(entry, reader);
  uint64_t begin = headerBytes(entry);
  for (const Piece &piece : entry.pieces) {
    checkPiece(path, piece, header, begin);
    uint64_t bytes = stateTensors[piece.tensor].partBytes(piece.part);
    Hash hash;
    for (uint64_t done = 0; done < bytes;) {
      size_t size;
      const uint8_t *data = reader.next(bytes - done, size);
      hash.update(data, size);
      deliver(piece.tensor, piece.part, done, data, size);
      done += size;
    }
    if (hash.text() != piece.hash)
      throw IoError(path, "is damaged: " + describe(piece) + " has the hash " +
                              hash.text() + ", the index says " + piece.hash);
    begin += bytes;
  }
}
