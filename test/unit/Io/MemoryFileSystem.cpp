//===- MemoryFileSystem.cpp - A disk that can lose power ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The calls on nodes in memory, and what a reboot makes of them.
//
//===----------------------------------------------------------------------===//

#include "MemoryFileSystem.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

using namespace zrt;
using namespace zrt::test;

int64_t MemoryFileSystem::open(const std::shared_ptr<Node> &node) {
  handles[next] = node;
  return next++;
}

std::shared_ptr<MemoryFileSystem::Node>
MemoryFileSystem::at(Handle handle) const {
  auto found = handles.find(handle);
  return found == handles.end() ? nullptr : found->second;
}

std::shared_ptr<MemoryFileSystem::Node>
MemoryFileSystem::find(const Node &folder, const std::string &name) {
  auto found = folder.entries.find(name);
  return found == folder.entries.end() ? nullptr : found->second;
}

std::shared_ptr<MemoryFileSystem::Node>
MemoryFileSystem::folderOf(Handle in, std::string &name) const {
  std::shared_ptr<Node> folder = in == noFolder ? root : at(in);
  for (size_t slash; folder && (slash = name.find('/')) != name.npos;) {
    std::shared_ptr<Node> inner = find(*folder, name.substr(0, slash));
    folder = inner && inner->folder ? inner : nullptr;
    name.erase(0, slash + 1);
  }
  return folder;
}

int64_t MemoryFileSystem::openFolder(Handle in, const std::string &path) {
  std::lock_guard<std::mutex> guard(mutex);
  std::string name = path;
  std::shared_ptr<Node> folder = folderOf(in, name);
  if (folder && (name == "." || name.empty()))
    return open(folder);
  std::shared_ptr<Node> node = folder ? find(*folder, name) : nullptr;
  if (!node)
    return -ENOENT;
  return node->folder ? open(node) : -ENOTDIR;
}

int64_t MemoryFileSystem::openFile(Handle in, const std::string &path) {
  std::lock_guard<std::mutex> guard(mutex);
  std::string name = path;
  std::shared_ptr<Node> folder = folderOf(in, name);
  std::shared_ptr<Node> node = folder ? find(*folder, name) : nullptr;
  return node ? open(node) : -ENOENT;
}

int64_t MemoryFileSystem::createFile(Handle in, const std::string &path) {
  std::lock_guard<std::mutex> guard(mutex);
  std::string name = path;
  std::shared_ptr<Node> folder = folderOf(in, name);
  if (!folder)
    return -ENOENT;
  if (find(*folder, name))
    return -EEXIST;
  auto node = std::make_shared<Node>(false);
  folder->entries[name] = node;
  folder->history.push_back(folder->entries);
  return open(node);
}

int64_t MemoryFileSystem::createScratch(Handle in, const std::string &name,
                                        bool direct) {
  if (direct && noDirect)
    return -noDirect;
  if (name.empty() && noUnnamed)
    return -noUnnamed;
  if (!name.empty())
    return createFile(in, name);
  std::lock_guard<std::mutex> guard(mutex);
  return open(std::make_shared<Node>(false));
}

int64_t MemoryFileSystem::allocate(Handle file, uint64_t bytes) {
  std::lock_guard<std::mutex> guard(mutex);
  std::shared_ptr<Node> node = at(file);
  if (!node || noAllocate)
    return node ? -noAllocate : -EBADF;
  if (bytes > room)
    return -ENOSPC;
  node->bytes.resize(bytes);
  return 0;
}

int64_t MemoryFileSystem::freeBytes(Handle, uint64_t &result) {
  result = room;
  return 0;
}

namespace {
/// Finishes what began last first.
class ReversedQueue : public TransferQueue {
public:
  explicit ReversedQueue(FileSystem &system) : system(system) {}
  int64_t begin(const Transfer &transfer) override {
    underWay.push_back(transfer);
    return 0;
  }
  int64_t finish(uint64_t &tag, int64_t &result) override {
    if (underWay.empty())
      return -EDEADLK;
    Transfer last = underWay.back();
    underWay.pop_back();
    tag = last.tag;
    result = last.write
                 ? system.writeAt(last.file, last.data, last.bytes, last.offset)
                 : system.readAt(last.file, last.data, last.bytes, last.offset);
    return 0;
  }

private:
  FileSystem &system;
  std::vector<Transfer> underWay;
};
} // namespace

int64_t MemoryFileSystem::makeQueue(unsigned,
                                    std::unique_ptr<TransferQueue> &result) {
  if (noQueue)
    return -noQueue;
  result = std::make_unique<ReversedQueue>(*this);
  return 0;
}

/// Nothing may rely on what a hint does.
int64_t MemoryFileSystem::startSync(Handle file, uint64_t, uint64_t) {
  std::lock_guard<std::mutex> guard(mutex);
  return at(file) ? 0 : -EBADF;
}

int64_t MemoryFileSystem::expectSequential(Handle file) {
  std::lock_guard<std::mutex> guard(mutex);
  return at(file) ? 0 : -EBADF;
}

int64_t MemoryFileSystem::makeFolder(Handle in, const std::string &path) {
  std::lock_guard<std::mutex> guard(mutex);
  std::string name = path;
  std::shared_ptr<Node> folder = folderOf(in, name);
  if (!folder)
    return -ENOENT;
  if (find(*folder, name))
    return -EEXIST;
  folder->entries[name] = std::make_shared<Node>(true);
  folder->history.push_back(folder->entries);
  return 0;
}

int64_t MemoryFileSystem::close(Handle handle) {
  std::lock_guard<std::mutex> guard(mutex);
  locked.erase(handle);
  return handles.erase(handle) ? 0 : -EBADF;
}

int64_t MemoryFileSystem::status(Handle handle, FileStatus &result) {
  std::lock_guard<std::mutex> guard(mutex);
  std::shared_ptr<Node> node = at(handle);
  if (!node)
    return -EBADF;
  result.kind =
      node->folder ? FileStatus::Kind::Folder : FileStatus::Kind::File;
  result.bytes = node->bytes.size();
  return 0;
}

int64_t MemoryFileSystem::lock(Handle handle) {
  std::lock_guard<std::mutex> guard(mutex);
  std::shared_ptr<Node> node = at(handle);
  for (const auto &[other, owned] : locked)
    if (owned == node.get() && other != handle)
      return -EWOULDBLOCK;
  locked[handle] = node.get();
  return 0;
}

int64_t MemoryFileSystem::readAt(Handle file, void *data, size_t bytes,
                                 uint64_t offset) {
  std::lock_guard<std::mutex> guard(mutex);
  std::shared_ptr<Node> node = at(file);
  if (!node)
    return -EBADF;
  if (node->folder)
    return -EISDIR;
  if (offset >= node->bytes.size())
    return 0;
  bytes = std::min(bytes, size_t(node->bytes.size() - offset));
  std::memcpy(data, node->bytes.data() + offset, bytes);
  return int64_t(bytes);
}

int64_t MemoryFileSystem::writeAt(Handle file, const void *data, size_t bytes,
                                  uint64_t offset) {
  std::lock_guard<std::mutex> guard(mutex);
  std::shared_ptr<Node> node = at(file);
  if (!node)
    return -EBADF;
  node->bytes.resize(std::max(node->bytes.size(), size_t(offset + bytes)));
  std::memcpy(node->bytes.data() + offset, data, bytes);
  return int64_t(bytes);
}

int64_t MemoryFileSystem::sync(Handle handle) {
  std::lock_guard<std::mutex> guard(mutex);
  std::shared_ptr<Node> node = at(handle);
  if (!node)
    return -EBADF;
  if (node->folder && !ignoreFolderSync)
    node->history = {node->entries};
  if (!node->folder && !ignoreFileSync)
    node->durableBytes = node->bytes;
  return 0;
}

int64_t MemoryFileSystem::rename(Handle in, const std::string &from,
                                 const std::string &to) {
  std::lock_guard<std::mutex> guard(mutex);
  std::string name = from, target = to;
  std::shared_ptr<Node> folder = folderOf(in, name);
  if (!folder || folderOf(in, target) != folder || !find(*folder, name))
    return -ENOENT;
  std::shared_ptr<Node> other = find(*folder, target);
  if (other && other->folder && !other->entries.empty())
    return -ENOTEMPTY;
  folder->entries[target] = folder->entries[name];
  folder->entries.erase(name);
  folder->history.push_back(folder->entries);
  return 0;
}

int64_t MemoryFileSystem::removeFile(Handle in, const std::string &path) {
  std::lock_guard<std::mutex> guard(mutex);
  std::string name = path;
  std::shared_ptr<Node> folder = folderOf(in, name);
  std::shared_ptr<Node> node = folder ? find(*folder, name) : nullptr;
  if (!node)
    return -ENOENT;
  if (node->folder)
    return -EISDIR;
  folder->entries.erase(name);
  folder->history.push_back(folder->entries);
  return 0;
}

int64_t MemoryFileSystem::removeFolder(Handle in, const std::string &path) {
  std::lock_guard<std::mutex> guard(mutex);
  std::string name = path;
  std::shared_ptr<Node> folder = folderOf(in, name);
  std::shared_ptr<Node> node = folder ? find(*folder, name) : nullptr;
  if (!node || !node->folder)
    return node ? -ENOTDIR : -ENOENT;
  if (!node->entries.empty())
    return -ENOTEMPTY;
  folder->entries.erase(name);
  folder->history.push_back(folder->entries);
  return 0;
}

int64_t MemoryFileSystem::list(Handle handle, std::vector<std::string> &names) {
  std::lock_guard<std::mutex> guard(mutex);
  std::shared_ptr<Node> node = at(handle);
  if (!node || !node->folder)
    return node ? -ENOTDIR : -EBADF;
  for (const auto &[name, entry] : node->entries)
    names.push_back(name);
  return 0;
}

/// What is on disk after the power failure becomes what there is.
void MemoryFileSystem::settle(Node &node, Loss loss) {
  if (!node.folder) {
    if (loss == Loss::Names)
      node.durableBytes = node.bytes;
    // Files here only grow.
    size_t synced = node.durableBytes.size();
    if (loss == Loss::Random && random() % 2)
      node.durableBytes = node.bytes.substr(
          0, synced + random() % (node.bytes.size() - synced + 1));
    node.bytes = node.durableBytes;
    return;
  }
  size_t last = node.history.size() - 1;
  size_t kept = loss == Loss::Bytes    ? last
                : loss == Loss::Random ? random() % (last + 1)
                                       : 0;
  node.entries = Entries(node.history[kept]);
  node.history = {node.entries};
  for (auto &[name, entry] : node.entries)
    settle(*entry, loss);
}

void MemoryFileSystem::collect(const Node &folder, const std::string &prefix,
                               std::vector<std::string> &names) {
  for (const auto &[name, entry] : folder.entries) {
    names.push_back(prefix + name);
    if (entry->folder)
      collect(*entry, prefix + name + "/", names);
  }
}
