//===- MemoryFileSystem.h - A disk that can lose power ----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file system in memory that knows what a real one may forget: the bytes of a
// file and the entries of a folder that were not synced. Entries of one folder
// reach the disk in their order, as with a journal; nothing else is promised.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_IO_MEMORYFILESYSTEM_H
#define ZERO_TEST_UNIT_IO_MEMORYFILESYSTEM_H

#include "runtime/io/FileSystem.h"

#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>

namespace zrt::test {

/// What a power failure leaves of that which was not synced.
enum class Loss {
  All,   ///< nothing of it is on disk
  Bytes, ///< all names are, but no bytes of files
  Names, ///< all bytes of files are, but no names
  Random ///< some of the names' changes, and some bytes
};

class MemoryFileSystem : public FileSystem {
public:
  MemoryFileSystem() : root(std::make_shared<Node>(true)) {}

  /// Power fails and comes back: no handle survives.
  void reboot(Loss loss, unsigned seed = 0) {
    random.seed(seed);
    handles.clear();
    locked.clear();
    settle(*root, loss);
  }

  /// Names below the folder at the top, "dir/file", sorted.
  std::vector<std::string> allNames() const {
    std::vector<std::string> names;
    collect(*root, "", names);
    return names;
  }

  int64_t openFolder(Handle in, const std::string &name) override;
  int64_t openFile(Handle in, const std::string &name) override;
  int64_t createFile(Handle in, const std::string &name) override;
  int64_t createScratch(Handle in, const std::string &name,
                        bool direct) override;
  int64_t close(Handle handle) override;
  int64_t status(Handle handle, FileStatus &result) override;
  int64_t lock(Handle handle) override;
  int64_t readAt(Handle file, void *data, size_t bytes,
                 uint64_t offset) override;
  int64_t writeAt(Handle file, const void *data, size_t bytes,
                  uint64_t offset) override;
  int64_t sync(Handle handle) override;
  int64_t allocate(Handle file, uint64_t bytes) override;
  int64_t freeBytes(Handle folder, uint64_t &result) override;
  int64_t makeQueue(unsigned depth,
                    std::unique_ptr<TransferQueue> &result) override;
  int64_t startSync(Handle file, uint64_t offset, uint64_t bytes) override;
  int64_t expectSequential(Handle file) override;
  int64_t makeFolder(Handle in, const std::string &name) override;
  int64_t rename(Handle in, const std::string &from,
                 const std::string &to) override;
  int64_t removeFile(Handle in, const std::string &name) override;
  int64_t removeFolder(Handle in, const std::string &name) override;
  int64_t list(Handle folder, std::vector<std::string> &names) override;

  /// What it cannot do: 0 or the error that it answers.
  int noUnnamed = 0, noDirect = 0, noAllocate = 0, noQueue = 0;
  /// Room for scratch files.
  uint64_t room = UINT64_MAX;

  /// Lies that a test must be able to catch.
  bool ignoreFileSync = false, ignoreFolderSync = false;

private:
  struct Node;
  using Entries = std::map<std::string, std::shared_ptr<Node>>;
  struct Node {
    explicit Node(bool folder) : folder(folder) {}
    bool folder;
    std::string bytes, durableBytes;
    Entries entries;
    /// What may be on disk: first what surely is, then after each change.
    std::vector<Entries> history = {{}};
  };

  int64_t open(const std::shared_ptr<Node> &node);
  std::shared_ptr<Node> at(Handle handle) const;
  /// The folder of a name, which becomes its last part.
  std::shared_ptr<Node> folderOf(Handle in, std::string &name) const;
  static std::shared_ptr<Node> find(const Node &folder,
                                    const std::string &name);
  void settle(Node &node, Loss loss);
  static void collect(const Node &folder, const std::string &prefix,
                      std::vector<std::string> &names);

  std::mutex mutex; // calls come from several threads
  std::shared_ptr<Node> root;
  std::map<Handle, std::shared_ptr<Node>> handles;
  std::map<Handle, const Node *> locked;
  Handle next = 3;
  std::mt19937 random;
};

} // namespace zrt::test

#endif // ZERO_TEST_UNIT_IO_MEMORYFILESYSTEM_H
