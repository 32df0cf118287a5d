//===- CheckpointReader.cpp - Loading a checkpoint ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each file is read once, front to back: its header against the index, its
// values to the caller, both into the hashes.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Checkpoint.h"

#include "runtime/io/Files.h"
#include "runtime/io/Hash.h"
#include "runtime/io/Json.h"
#include "runtime/io/SafeTensors.h"

#include <algorithm>

using namespace zrt;

/// A million tensors have an index of this size.
static constexpr uint64_t maxIndexBytes = uint64_t(1) << 30;

static std::vector<CheckpointName> committedIn(const Folder &folder) {
  std::vector<CheckpointName> found;
  for (const std::string &name : folder.list())
    if (auto parsed = CheckpointName::parse(name))
      found.push_back(*parsed);
  std::sort(found.begin(), found.end());
  return found;
}

static bool hasIndex(const Folder &folder) {
  std::vector<std::string> names = folder.list();
  return std::binary_search(names.begin(), names.end(), checkpointIndexName);
}

bool Checkpoint::anyIn(const std::string &path, FileSystem &system) {
  if (!Folder::exists(path, system))
    return false;
  Folder folder = Folder::open(path, system);
  return hasIndex(folder) || !committedIn(folder).empty();
}

Checkpoint Checkpoint::open(const std::string &path, FileSystem &system) {
  Folder folder = Folder::open(path, system);
  if (hasIndex(folder))
    return Checkpoint(std::move(folder));
  std::vector<CheckpointName> found = committedIn(folder);
  if (found.empty())
    throw IoError(path, CheckpointName::parse(path.substr(path.rfind('/') + 1))
                            ? "index.json: is missing: the checkpoint is "
                              "damaged"
                            : "has no checkpoint: neither index.json nor a "
                              "folder like step-00000010");
  std::string newest = found.back().text();
  try {
    return Checkpoint(folder.openFolder(newest));
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

void Checkpoint::stream(const Deliver &deliver) const {
  std::vector<uint8_t> bucket;
  for (const FileEntry &entry : files)
    streamFile(entry, bucket, deliver);
}

namespace {
/// Reads a file front to back.
struct Cursor {
  File &file;
  Hash hash;
  uint64_t at = 0;

  void read(void *data, size_t bytes) {
    file.readAt(at, data, bytes);
    hash.update(data, bytes);
    at += bytes;
  }
};
} // namespace

void Checkpoint::streamFile(const FileEntry &entry,
                            std::vector<uint8_t> &bucket,
                            const Deliver &deliver) const {
  File file = folder.openFile(entry.name);
  SafeTensorsHeader header = readSafeTensorsHeader(file);
  Cursor cursor{file, {}};
  auto skipTo = [&](uint64_t end) {
    while (cursor.at < end) {
      bucket.resize(checkpointBucketBytes);
      cursor.read(bucket.data(),
                  size_t(std::min<uint64_t>(end - cursor.at, bucket.size())));
    }
  };
  if (header.infos.size() != entry.pieces.size())
    throw IoError(file.path(), "has " + std::to_string(header.infos.size()) +
                                   " tensors, the index says " +
                                   std::to_string(entry.pieces.size()));
  for (const Piece &piece : entry.pieces) {
    const StateTensor &tensor = stateTensors[piece.tensor];
    auto info = header.infos.find(tensor.name);
    if (info == header.infos.end())
      throw IoError(file.path(), "lacks " + describe(piece));
    std::vector<int64_t> shape = tensor.partShape(piece.part);
    if (info->second.type != tensor.type || info->second.shape != shape)
      throw IoError(file.path(),
                    describe(piece) + " is " +
                        zrt::describe(info->second.type, info->second.shape) +
                        ", the index says " +
                        zrt::describe(tensor.type, shape));
    uint64_t begin = header.offsets.at(tensor.name), bytes = info->second.bytes;
    if (begin < cursor.at)
      throw IoError(file.path(),
                    describe(piece) + " is not where the index's order has it");
    skipTo(begin);
    Hash hash;
    for (uint64_t done = 0; done < bytes;) {
      size_t size =
          size_t(std::min<uint64_t>(bytes - done, checkpointBucketBytes));
      bucket.resize(std::max(bucket.size(), size));
      cursor.read(bucket.data(), size);
      hash.update(bucket.data(), size);
      deliver(piece.tensor, piece.part, done, bucket.data(), size);
      done += size;
    }
    if (hash.text() != piece.hash)
      throw IoError(file.path(), "is damaged: " + describe(piece) +
                                     " has the hash " + hash.text() +
                                     ", the index says " + piece.hash);
  }
  skipTo(entry.bytes);
  if (cursor.hash.text() != entry.hash)
    throw IoError(file.path(), "is damaged: it has the hash " +
                                   cursor.hash.text() + ", the index says " +
                                   entry.hash);
}
