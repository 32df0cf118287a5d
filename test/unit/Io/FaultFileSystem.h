//===- FaultFileSystem.h - Calls that fail on purpose -----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes calls on to another file system until the n-th, which it makes fail,
// transfer too little, or kill the process. A test counts n up until a whole
// run needs fewer calls.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_IO_FAULTFILESYSTEM_H
#define ZERO_TEST_UNIT_IO_FAULTFILESYSTEM_H

#include "runtime/io/FileSystem.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace zrt::test {

/// Thrown in place of the death of the process. All later calls do nothing.
struct Killed {};

struct Fault {
  enum class Kind {
    None,
    Kill,  ///< before the call
    Error, ///< the call does nothing and answers -error
    Short, ///< a transfer does half, at least a byte
    Flip   ///< a transfer changes a bit on the way
  };
  Kind kind = Kind::None;
  /// Calls are counted from 1.
  uint64_t call = 0;
  int error = 0;
  /// All calls from then on.
  bool forever = false;
  /// Of a transfer in a queue: its beginning succeeds and its result fails;
  /// waiting is no call.
  bool inResult = false;
};

class FaultFileSystem : public FileSystem {
public:
  FaultFileSystem(FileSystem &base, Fault fault) : base(base), fault(fault) {}

  /// Calls so far.
  uint64_t calls() const { return count; }
  /// The fault has happened.
  bool struck() const { return happened; }
  /// In place of throwing Killed.
  std::function<void()> onKill;

  int64_t openFolder(Handle in, const std::string &name) override {
    return call([&] { return base.openFolder(in, name); });
  }
  int64_t openFile(Handle in, const std::string &name) override {
    return call([&] { return base.openFile(in, name); });
  }
  int64_t createFile(Handle in, const std::string &name) override {
    return call([&] { return base.createFile(in, name); });
  }
  int64_t createScratch(Handle in, const std::string &name,
                        bool direct) override {
    return call([&] { return base.createScratch(in, name, direct); });
  }
  int64_t allocate(Handle file, uint64_t bytes) override {
    return call([&] { return base.allocate(file, bytes); });
  }
  int64_t freeBytes(Handle folder, uint64_t &result) override {
    return call([&] { return base.freeBytes(folder, result); });
  }
  int64_t makeQueue(unsigned depth,
                    std::unique_ptr<TransferQueue> &result) override;
  int64_t close(Handle handle) override {
    // Called by destructors: does not throw. Whatever it answers, the handle is
    // closed.
    std::lock_guard<std::mutex> lock(mutex);
    bool strike = !dead && strikes();
    if (strike && fault.kind == Fault::Kind::Kill)
      die();
    if (dead)
      return -EIO;
    int64_t result = base.close(handle);
    return strike && fault.kind == Fault::Kind::Error ? -fault.error : result;
  }
  int64_t status(Handle handle, FileStatus &result) override {
    return call([&] { return base.status(handle, result); });
  }
  int64_t lock(Handle handle) override {
    return call([&] { return base.lock(handle); });
  }
  int64_t readAt(Handle file, void *data, size_t bytes,
                 uint64_t offset) override {
    return transfer(bytes, [&](size_t part, bool flip) {
      int64_t done = base.readAt(file, data, part, offset);
      if (flip && done > 0)
        static_cast<char *>(data)[0] ^= 16;
      return done;
    });
  }
  int64_t writeAt(Handle file, const void *data, size_t bytes,
                  uint64_t offset) override {
    return transfer(bytes, [&](size_t part, bool flip) {
      if (!flip)
        return base.writeAt(file, data, part, offset);
      return base.writeAt(file, flipped(data, part).get(), part, offset);
    });
  }
  int64_t sync(Handle handle) override {
    return call([&] { return base.sync(handle); });
  }
  int64_t startSync(Handle file, uint64_t offset, uint64_t bytes) override {
    return call([&] { return base.startSync(file, offset, bytes); });
  }
  int64_t expectSequential(Handle file) override {
    return call([&] { return base.expectSequential(file); });
  }
  int64_t makeFolder(Handle in, const std::string &name) override {
    return call([&] { return base.makeFolder(in, name); });
  }
  int64_t rename(Handle in, const std::string &from,
                 const std::string &to) override {
    return call([&] { return base.rename(in, from, to); });
  }
  int64_t removeFile(Handle in, const std::string &name) override {
    return call([&] { return base.removeFile(in, name); });
  }
  int64_t removeFolder(Handle in, const std::string &name) override {
    return call([&] { return base.removeFolder(in, name); });
  }
  int64_t list(Handle folder, std::vector<std::string> &names) override {
    return call([&] { return base.list(folder, names); });
  }

private:
  class Queue;
  /// A copy with a changed bit, aligned as a disk may ask for.
  static std::shared_ptr<char> flipped(const void *data, size_t bytes) {
    std::shared_ptr<char> copy(
        static_cast<char *>(std::aligned_alloc(
            4096, std::max<size_t>((bytes + 4095) / 4096, 1) * 4096)),
        std::free);
    std::copy_n(static_cast<const char *>(data), bytes, copy.get());
    copy.get()[0] ^= 16;
    return copy;
  }

  bool strikes() {
    ++count;
    bool now = fault.kind != Fault::Kind::None &&
               (count == fault.call || (fault.forever && count > fault.call));
    happened |= now;
    return now;
  }
  template <typename Call>
  int64_t call(Call body) {
    return transfer(0, [&](size_t, bool) { return body(); });
  }
  template <typename Call>
  int64_t transfer(size_t bytes, Call body) {
    std::lock_guard<std::mutex> lock(mutex);
    if (dead)
      return -EIO;
    if (!strikes())
      return body(bytes, false);
    switch (fault.kind) {
    case Fault::Kind::Error:
      return -fault.error;
    case Fault::Kind::Short:
      return body(std::max<size_t>(bytes / 2, std::min<size_t>(bytes, 1)),
                  false);
    case Fault::Kind::Flip:
      return body(bytes, true);
    default:
      break;
    }
    die();
    throw Killed();
  }
  void die() {
    dead = true;
    if (onKill)
      onKill();
  }

  FileSystem &base;
  std::mutex mutex; // one call after the other, whoever makes it
  Fault fault;
  uint64_t count = 0;
  bool happened = false, dead = false;
};

/// A beginning and a finish are a call each.
class FaultFileSystem::Queue : public TransferQueue {
public:
  Queue(FaultFileSystem &system, std::unique_ptr<TransferQueue> base)
      : system(system), base(std::move(base)) {}

  int64_t begin(const Transfer &transfer) override {
    Entry &entry = entries[transfer.tag];
    entry = {transfer, {}, 0, false};
    if (system.fault.inResult && system.fault.kind == Fault::Kind::Error) {
      int64_t answer = system.call([] { return int64_t(0); });
      if (answer == -system.fault.error)
        entry.failure = answer;
      return base->begin(transfer);
    }
    return system.transfer(transfer.bytes, [&](size_t part, bool flip) {
      Transfer passed = transfer;
      passed.bytes = part;
      entry.flip = flip;
      if (flip && transfer.write) {
        entry.copy = flipped(transfer.data, part);
        passed.data = entry.copy.get();
      }
      return base->begin(passed);
    });
  }
  int64_t finish(uint64_t &tag, int64_t &result) override {
    auto body = [&] {
      int64_t answer = base->finish(tag, result);
      Entry &entry = entries[tag];
      if (entry.failure)
        result = entry.failure;
      if (entry.flip && !entry.transfer.write && result > 0)
        static_cast<char *>(entry.transfer.data)[0] ^= 16;
      return answer;
    };
    return system.fault.inResult ? body() : system.call(body);
  }

private:
  struct Entry {
    Transfer transfer;
    std::shared_ptr<char> copy; // what is written in place of its data
    int64_t failure = 0;
    bool flip = false;
  };
  FaultFileSystem &system;
  std::map<uint64_t, Entry> entries; // by tag
  std::unique_ptr<TransferQueue> base;
};

inline int64_t
FaultFileSystem::makeQueue(unsigned depth,
                           std::unique_ptr<TransferQueue> &result) {
  std::unique_ptr<TransferQueue> queue;
  int64_t made = call([&] { return base.makeQueue(depth, queue); });
  if (made >= 0)
    result = std::make_unique<Queue>(*this, std::move(queue));
  return made;
}

} // namespace zrt::test

#endif // ZERO_TEST_UNIT_IO_FAULTFILESYSTEM_H
