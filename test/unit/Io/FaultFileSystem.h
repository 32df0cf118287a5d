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
#include <functional>
#include <mutex>

namespace zrt::test {

/// Thrown in place of the death of the process. All later calls do nothing.
struct Killed {};

struct Fault {
  enum class Kind {
    None,
    Kill,  ///< before the call
    Error, ///< the call does nothing and answers -error
    Short  ///< a transfer does half, at least a byte
  };
  Kind kind = Kind::None;
  /// Calls are counted from 1.
  uint64_t call = 0;
  int error = 0;
  /// All calls from then on.
  bool forever = false;
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
    return transfer(bytes, [&](size_t part) {
      return base.readAt(file, data, part, offset);
    });
  }
  int64_t writeAt(Handle file, const void *data, size_t bytes,
                  uint64_t offset) override {
    return transfer(bytes, [&](size_t part) {
      return base.writeAt(file, data, part, offset);
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
  bool strikes() {
    ++count;
    bool now = fault.kind != Fault::Kind::None &&
               (count == fault.call || (fault.forever && count > fault.call));
    happened |= now;
    return now;
  }
  template <typename Call>
  int64_t call(Call body) {
    return transfer(0, [&](size_t) { return body(); });
  }
  template <typename Call>
  int64_t transfer(size_t bytes, Call body) {
    std::lock_guard<std::mutex> lock(mutex);
    if (dead)
      return -EIO;
    if (!strikes())
      return body(bytes);
    switch (fault.kind) {
    case Fault::Kind::Error:
      return -fault.error;
    case Fault::Kind::Short:
      return body(std::max<size_t>(bytes / 2, std::min<size_t>(bytes, 1)));
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

} // namespace zrt::test

#endif // ZERO_TEST_UNIT_IO_FAULTFILESYSTEM_H
