//===- Checkpoint.h - State of a run on disk --------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A checkpoint is a folder: a safetensors file for each rank that holds
// something, and an index with the logical tensors, where their rows are, and a
// hash of every piece and header. It is written under a name that no reader
// looks at, synced, and renamed: it exists as a whole or not at all. State
// streams through a bucket; the tensors are never in memory as a whole.
//
//   DIR/step-00000012/index.json
//                     rank-00000.safetensors ...
//   DIR/.saving-step-00000014/       a save that runs, or was killed
//   DIR/.removing-step-00000008/     one that is being removed
//
// docs/checkpoints.md describes the format and what is promised.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_CHECKPOINT_H
#define ZERO_RUNTIME_IO_CHECKPOINT_H

#include "runtime/io/DataType.h"
#include "runtime/io/FileSystem.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace zrt {

/// How a tensor lies on the ranks.
enum class StateLayout {
  Whole,  ///< the same on all ranks: saved once
  Rows,   ///< cut into parts of `chunkRows` rows of dim 0, the last ones
          ///< shorter or empty
  PerRank ///< each rank has a value of its own, of the whole shape
};

/// One tensor of the state. The layout is that of the run that saves it; a run
/// that loads it may have another.
struct StateTensor {
  std::string name;
  /// "trained", "frozen", "state" or "buffer".
  std::string role;
  /// Of a state: its parameter; empty for state of the step itself.
  std::string of;
  /// Further names of the same tensor.
  std::vector<std::string> tied;
  DataType type = DataType::F32;
  std::vector<int64_t> shape;
  StateLayout layout = StateLayout::Whole;
  /// Whole: 1. Rows: ranks that hold a part. PerRank: ranks.
  uint32_t parts = 1;
  int64_t chunkRows = 0;

  uint64_t bytes() const;
  /// Rows of dim 0 in a part; {0, 1} stands for the whole of a scalar.
  int64_t firstRow(uint32_t part) const;
  int64_t numRows(uint32_t part) const;
  uint64_t rowBytes() const;
  /// Where a part begins in the logical tensor, and its size.
  uint64_t partBegin(uint32_t part) const;
  uint64_t partBytes(uint32_t part) const;
  /// What a file of one part holds of it.
  std::vector<int64_t> partShape(uint32_t part) const;
};

/// What a checkpoint says about the run.
struct RunFacts {
  std::string model, optimizer, precision;
  uint32_t ranks = 1, stage = 0;
  std::vector<uint32_t> grid;
  int64_t microBatches = 1;
  /// Steps that are done, and samples of the data that they used.
  int64_t step = 0, samples = 0;
  std::optional<int64_t> seed;
};

/// Bytes [offset, offset + bytes) of a part of a tensor, out of the running
/// program.
using ReadState = std::function<void(
    size_t tensor, uint32_t part, uint64_t offset, void *data, size_t bytes)>;

/// Largest piece of state in memory at once; a multiple of all element sizes.
constexpr size_t checkpointBucketBytes = size_t(4) << 20;

/// Threads that transfer beside the caller's, which copies and hashes: while
/// one waits for the disk, another one has the next file. With 0 the caller
/// does all, each call after the other in one order.
constexpr unsigned checkpointThreads = 2;

struct CheckpointIndex;

/// The folder that the checkpoints of a run are in.
class CheckpointFolder {
public:
  /// Makes it if it is missing, locks it against other runs and removes what
  /// killed ones have left. Throws IoError.
  explicit CheckpointFolder(const std::string &path,
                            FileSystem &system = FileSystem::real(),
                            unsigned threads = checkpointThreads);

  /// Committed checkpoints, oldest first.
  std::vector<std::string> checkpoints() const;

  /// Writes one and commits it; then all but the newest `keep` go (0: none).
  /// An old one is never touched before. Throws IoError; then what was written
  /// is removed, if that can be done. Returns its name.
  std::string save(const RunFacts &facts,
                   const std::vector<StateTensor> &tensors,
                   const ReadState &read, int64_t keep);

  // The same in three steps, where each process of a run writes the file of its
  // rank: one begins the checkpoint, all write, and when all have, the one
  // commits it, with the files of all.

  /// Its name.
  std::string begin(int64_t step);
  void commit(const std::string &name, const CheckpointIndex &index,
              int64_t keep);
  /// It will not be committed: what was written goes, if that can be done.
  void abandon(const std::string &name);

  const std::string &path() const { return folder.path(); }

private:
  void removeLeftovers();
  void removeOld(int64_t keep);

  Folder folder;
  unsigned threads;
};

class ChunkReader;
struct SafeTensorsHeader;

/// A committed checkpoint, its index read and checked: every file is there with
/// its size. What its files hold is checked as it streams.
class Checkpoint {
public:
  /// `path` is a checkpoint, or a folder of them whose newest is taken: if that
  /// one is damaged, the error names an older one. Throws IoError.
  static Checkpoint open(const std::string &path,
                         FileSystem &system = FileSystem::real());
  /// True if the folder `path` has a checkpoint or is one.
  static bool anyIn(const std::string &path,
                    FileSystem &system = FileSystem::real());

  const std::string &path() const { return folder.path(); }
  const RunFacts &facts() const { return runFacts; }
  const std::vector<StateTensor> &tensors() const { return stateTensors; }
  /// Bytes of all its files.
  uint64_t bytes() const;

  using Deliver =
      std::function<void(size_t tensor, uint32_t part, uint64_t offset,
                         const void *data, size_t bytes)>;
  /// Streams all values once, part by part, in pieces of at most a bucket that
  /// end at elements. Throws IoError for damaged bytes: what was delivered
  /// before is then not to be used.
  void stream(const Deliver &deliver,
              unsigned threads = checkpointThreads) const;

  /// A part of a tensor, and the file of it.
  struct Piece {
    size_t tensor;
    uint32_t part;
    std::string hash;
  };
  struct FileEntry {
    std::string name;
    uint64_t bytes;
    /// Of what is before the values: with those of the pieces, all bytes have
    /// one.
    std::string headerHash;
    std::vector<Piece> pieces; // in the order of the file
  };

private:
  explicit Checkpoint(Folder opened);
  static Checkpoint openNewest(const std::string &path, FileSystem &system);
  void checkFiles() const;
  uint64_t headerBytes(const FileEntry &entry) const;
  SafeTensorsHeader streamHeader(const FileEntry &entry,
                                 ChunkReader &reader) const;
  void checkPiece(const std::string &path, const Piece &piece,
                  const SafeTensorsHeader &header, uint64_t begin) const;
  void streamFile(const FileEntry &entry, ChunkReader &reader,
                  const Deliver &deliver) const;
  std::string describe(const Piece &piece) const;

  Folder folder;
  RunFacts runFacts;
  std::vector<StateTensor> stateTensors;
  std::vector<FileEntry> files;
};

/// The name of a committed checkpoint: its step, and how often that step was
/// saved before.
struct CheckpointName {
  int64_t step;
  int64_t again;

  static std::optional<CheckpointName> parse(const std::string &name);
  std::string text() const;
  bool operator<(const CheckpointName &other) const {
    return step != other.step ? step < other.step : again < other.again;
  }
};

/// Checkpoints among what a folder holds, oldest first.
std::vector<CheckpointName> committedIn(const Folder &folder);
/// Whether a folder is a checkpoint itself.
bool isCheckpoint(const Folder &folder);

//===----------------------------------------------------------------------===//
// The index (CheckpointIndex.cpp)
//===----------------------------------------------------------------------===//

struct CheckpointIndex {
  RunFacts facts;
  std::vector<StateTensor> tensors;
  std::vector<Checkpoint::FileEntry> files;
};

/// The file of one rank, in the checkpoint `name` of `folder` that another
/// process has begun; none where the rank holds nothing. Throws IoError.
std::vector<Checkpoint::FileEntry> writeCheckpointFiles(
    const std::string &folder, const std::string &name, uint32_t rank,
    int64_t step, const std::vector<StateTensor> &tensors,
    const ReadState &read, FileSystem &system = FileSystem::real(),
    unsigned threads = checkpointThreads);

constexpr const char *checkpointIndexName = "index.json";

/// "rank-00003.safetensors".
std::string checkpointFileName(uint32_t rank);

/// The JSON text; its last line holds the hash of those before.
std::string writeCheckpointIndex(const CheckpointIndex &index);

/// Reads it back; nothing that it says is believed unchecked. `path` is for
/// messages. Throws IoError.
CheckpointIndex readCheckpointIndex(const std::string &path,
                                    const std::string &text);

} // namespace zrt

#endif // ZERO_RUNTIME_IO_CHECKPOINT_H
