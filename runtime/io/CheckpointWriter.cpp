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

#include "runtime/io/Checkpoint.h"

#include "runtime/io/Files.h"
#include "runtime/io/Hash.h"
#include "runtime/io/SafeTensors.h"

#include <algorithm>
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

//===----------------------------------------------------------------------===//
// Files of ranks
//===----------------------------------------------------------------------===//

namespace {

/// A file whose hash and size are known when it is written.
class HashedFile {
public:
  HashedFile(const Folder &folder, const std::string &name)
      : file(folder.createFile(name)) {}

  void write(const void *data, size_t size) {
    file.write(data, size);
    hash.update(data, size);
    bytes += size;
  }
  void finish(Checkpoint::FileEntry &entry) {
    file.sync();
    file.close();
    entry.bytes = bytes;
    entry.hash = hash.text();
  }

private:
  File file;
  Hash hash;
  uint64_t bytes = 0;
};

class Saver {
public:
  Saver(const Folder &folder, const RunFacts &facts,
        const std::vector<StateTensor> &tensors, const ReadState &read)
      : folder(folder), facts(facts), tensors(tensors), read(read) {}

  void run();

private:
  std::vector<Checkpoint::Piece> piecesOf(uint32_t rank) const;
  void writeFile(uint32_t rank, std::vector<Checkpoint::Piece> pieces);
  void writePiece(HashedFile &file, Checkpoint::Piece &piece);

  const Folder &folder;
  const RunFacts &facts;
  const std::vector<StateTensor> &tensors;
  const ReadState &read;
  CheckpointIndex index;
  std::vector<uint8_t> bucket;
};

} // namespace

/// What a rank saves: its own parts, and rank 0 what all ranks have. Part p of
/// a tensor is on rank p.
std::vector<Checkpoint::Piece> Saver::piecesOf(uint32_t rank) const {
  std::vector<Checkpoint::Piece> pieces;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (rank < tensors[i].parts && (!rank || tensors[i].partBytes(rank)))
      pieces.push_back({i, rank, ""});
  return pieces;
}

void Saver::writePiece(HashedFile &file, Checkpoint::Piece &piece) {
  uint64_t bytes = tensors[piece.tensor].partBytes(piece.part);
  Hash hash;
  for (uint64_t at = 0; at < bytes;) {
    size_t size = size_t(std::min<uint64_t>(bytes - at, checkpointBucketBytes));
    bucket.resize(std::max(bucket.size(), size));
    read(piece.tensor, piece.part, at, bucket.data(), size);
    file.write(bucket.data(), size);
    hash.update(bucket.data(), size);
    at += size;
  }
  piece.hash = hash.text();
}

void Saver::writeFile(uint32_t rank, std::vector<Checkpoint::Piece> pieces) {
  Checkpoint::FileEntry entry;
  entry.name = checkpointFileName(rank);
  std::vector<SafeTensorsWriter::Tensor> declared;
  for (const Checkpoint::Piece &piece : pieces)
    declared.push_back({tensors[piece.tensor].name, tensors[piece.tensor].type,
                        tensors[piece.tensor].partShape(piece.part)});
  uint64_t valueBytes = 0;
  std::string header =
      SafeTensorsWriter::header(folder.pathOf(entry.name), declared,
                                {{"format", "zero-checkpoint"},
                                 {"rank", std::to_string(rank)},
                                 {"step", std::to_string(facts.step)}},
                                valueBytes);
  HashedFile file(folder, entry.name);
  file.write(header.data(), header.size());
  for (Checkpoint::Piece &piece : pieces)
    writePiece(file, piece);
  file.finish(entry);
  entry.pieces = std::move(pieces);
  index.files.push_back(std::move(entry));
}

void Saver::run() {
  index.facts = facts;
  index.tensors = tensors;
  uint32_t ranks = 0;
  for (const StateTensor &tensor : tensors)
    ranks = std::max(ranks, tensor.parts);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    std::vector<Checkpoint::Piece> pieces = piecesOf(rank);
    if (!pieces.empty())
      writeFile(rank, std::move(pieces));
  }
  File file = folder.createFile(checkpointIndexName);
  file.write(writeCheckpointIndex(index));
  file.sync();
  file.close();
  folder.sync();
}

//===----------------------------------------------------------------------===//
// CheckpointFolder
//===----------------------------------------------------------------------===//

CheckpointFolder::CheckpointFolder(const std::string &path, FileSystem &system)
    : folder(Folder::openOrMake(path, system)) {
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

/// Names of checkpoints among those of a folder, oldest first.
static std::vector<std::string> committedIn(const Folder &folder) {
  std::vector<CheckpointName> found;
  for (const std::string &name : folder.list())
    if (auto parsed = CheckpointName::parse(name))
      found.push_back(*parsed);
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (const CheckpointName &name : found)
    names.push_back(name.text());
  return names;
}

std::vector<std::string> CheckpointFolder::checkpoints() const {
  return committedIn(folder);
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

std::string CheckpointFolder::save(const RunFacts &facts,
                                   const std::vector<StateTensor> &tensors,
                                   const ReadState &read, int64_t keep) {
  CheckpointName name = {facts.step, 0};
  for (const std::string &other : checkpoints()) {
    CheckpointName taken = *CheckpointName::parse(other);
    if (taken.step == facts.step)
      name.again = taken.again + 1;
  }
  std::string saving = savingPrefix + name.text();
  try {
    Folder inner = folder.makeFolder(saving);
    Saver(inner, facts, tensors, read).run();
  } catch (...) {
    try {
      folder.removeFolder(saving);
    } catch (const IoError &) {
      // The first error is the one to report; the next run tries again.
    }
    throw;
  }
  folder.rename(saving, name.text());
  folder.sync();
  removeOld(keep);
  return name.text();
}
