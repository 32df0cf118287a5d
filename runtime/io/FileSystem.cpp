//===- FileSystem.cpp - Files and folders that finish or throw ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is the same for every file system: whole transfers, repeated calls,
// messages. The system's own calls are in PosixFileSystem.cpp.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/FileSystem.h"

#include "runtime/io/Files.h"
#include "runtime/io/Json.h"
#include "runtime/io/Retry.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

using namespace zrt;

FileSystem::~FileSystem() = default;
TransferQueue::~TransferQueue() = default;

bool zrt::isPlainName(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find('/') == name.npos && name.find('\0') == name.npos;
}

//===----------------------------------------------------------------------===//
// File
//===----------------------------------------------------------------------===//

File::File(File &&other) noexcept
    : system(other.system), handle(std::exchange(other.handle, -1)),
      filePath(std::move(other.filePath)), end(other.end) {}

File File::open(const std::string &path, FileSystem &system) {
  int64_t handle =
      retrying([&] { return system.openFile(FileSystem::noFolder, path); });
  if (handle < 0)
    throw IoError(path, errorText("cannot open", handle));
  return {system, FileSystem::Handle(handle), path};
}

File::~File() {
  if (handle >= 0)
    system->close(handle);
}

void File::fail(const char *what, int64_t error) const {
  throw IoError(filePath, errorText(what, error));
}

void File::write(const void *data, size_t bytes) {
  writeAt(end, data, bytes);
  end += bytes;
}

void File::writeAt(uint64_t offset, const void *data, size_t bytes) {
  const char *next = static_cast<const char *>(data);
  while (bytes) {
    int64_t done =
        retrying([&] { return system->writeAt(handle, next, bytes, offset); });
    if (done <= 0) // a write of nothing would go on for ever
      fail("cannot write", done ? done : -EIO);
    next += done;
    bytes -= size_t(done);
    offset += uint64_t(done);
  }
}

void File::startSync(uint64_t offset, uint64_t bytes) {
  int64_t result =
      retrying([&] { return system->startSync(handle, offset, bytes); });
  // Not every kind of file system can be asked.
  if (result < 0 && result != -EINVAL && result != -ENOSYS &&
      result != -ESPIPE && result != -EOPNOTSUPP)
    fail("cannot write", result);
}

void File::expectSequential() { system->expectSequential(handle); }

void File::readAt(uint64_t offset, void *data, size_t bytes) {
  char *next = static_cast<char *>(data);
  while (bytes) {
    int64_t done =
        retrying([&] { return system->readAt(handle, next, bytes, offset); });
    if (done < 0)
      fail("cannot read", done);
    if (!done)
      throw IoError(filePath, "is truncated: ends at byte " +
                                  std::to_string(offset) + ", " +
                                  std::to_string(bytes) + " bytes early");
    next += done;
    bytes -= size_t(done);
    offset += uint64_t(done);
  }
}

uint64_t File::size() {
  FileStatus status;
  int64_t result = retrying([&] { return system->status(handle, status); });
  if (result < 0)
    fail("cannot read", result);
  if (status.kind != FileStatus::Kind::File)
    throw IoError(filePath, status.kind == FileStatus::Kind::Folder
                                ? "is a folder, not a file"
                                : "not a regular file");
  return status.bytes;
}

void File::sync() {
  // A failed sync is never tried again: the system may have dropped the pages
  // and would then report success.
  int64_t result = retrying([&] { return system->sync(handle); });
  if (result < 0)
    fail("cannot sync", result);
}

void File::close() {
  // The handle is gone in any case.
  int64_t result = system->close(std::exchange(handle, -1));
  if (result < 0 && result != -EINTR)
    fail("cannot close", result);
}

std::string zrt::readAll(File &file, uint64_t limit) {
  uint64_t size = file.size();
  if (size > limit)
    throw IoError(file.path(), "has " + std::to_string(size) +
                                   " bytes, at most " + std::to_string(limit) +
                                   " are expected");
  std::string text(size, '\0');
  file.readAt(0, text.data(), text.size());
  return text;
}

//===----------------------------------------------------------------------===//
// Folder
//===----------------------------------------------------------------------===//

Folder::Folder(Folder &&other) noexcept
    : system(other.system), handle(std::exchange(other.handle, -1)),
      folderPath(std::move(other.folderPath)) {}

Folder::~Folder() {
  if (handle >= 0)
    system->close(handle);
}

std::string Folder::pathOf(const std::string &name) const {
  return (folderPath.back() == '/' ? folderPath : folderPath + "/") + name;
}

void Folder::fail(const std::string &name, const char *what,
                  int64_t error) const {
  std::string text = errorText(what, error);
  // ELOOP and, where a folder is expected, ENOTDIR are what a link gives.
  if (error == -ELOOP)
    text = std::string(what) + ": is a symbolic link, which is not followed";
  throw IoError(name.empty() ? folderPath : pathOf(name), text);
}

const std::string &Folder::checked(const std::string &name) const {
  if (!isPlainName(name))
    throw IoError(folderPath, "the name " + jsonQuote(name) +
                                  " is not that of a file in this folder");
  return name;
}

Folder Folder::open(const std::string &path, FileSystem &system) {
  int64_t handle =
      retrying([&] { return system.openFolder(FileSystem::noFolder, path); });
  if (handle < 0)
    throw IoError(path, errorText("cannot open", handle));
  return {system, FileSystem::Handle(handle), path};
}

Folder Folder::openOrMake(const std::string &path, FileSystem &system) {
  int64_t made =
      retrying([&] { return system.makeFolder(FileSystem::noFolder, path); });
  if (made < 0 && made != -EEXIST)
    throw IoError(path, errorText("cannot create", made));
  if (made >= 0) {
    std::string name = path;
    while (name.size() > 1 && name.back() == '/')
      name.pop_back();
    size_t slash = name.rfind('/');
    open(slash == name.npos ? "." : name.substr(0, slash ? slash : 1), system)
        .sync();
  }
  return open(path, system);
}

bool Folder::exists(const std::string &path, FileSystem &system) {
  int64_t handle =
      retrying([&] { return system.openFolder(FileSystem::noFolder, path); });
  if (handle >= 0)
    system.close(FileSystem::Handle(handle));
  return handle >= 0;
}

Folder Folder::openFolder(const std::string &name) const {
  int64_t opened =
      retrying([&] { return system->openFolder(handle, checked(name)); });
  if (opened < 0)
    fail(name, "cannot open", opened);
  return {*system, FileSystem::Handle(opened), pathOf(name)};
}

Folder Folder::makeFolder(const std::string &name) const {
  int64_t result =
      retrying([&] { return system->makeFolder(handle, checked(name)); });
  if (result < 0)
    fail(name, "cannot create", result);
  return openFolder(name);
}

File Folder::openFile(const std::string &name) const {
  int64_t opened =
      retrying([&] { return system->openFile(handle, checked(name)); });
  if (opened < 0)
    fail(name, "cannot open", opened);
  return {*system, FileSystem::Handle(opened), pathOf(name)};
}

File Folder::createFile(const std::string &name) const {
  int64_t created =
      retrying([&] { return system->createFile(handle, checked(name)); });
  if (created < 0)
    fail(name, "cannot create", created);
  return {*system, FileSystem::Handle(created), pathOf(name)};
}

std::vector<std::string> Folder::list() const {
  std::vector<std::string> names;
  int64_t result = retrying([&] {
    names.clear();
    return system->list(handle, names);
  });
  if (result < 0)
    fail("", "cannot list", result);
  std::sort(names.begin(), names.end());
  return names;
}

void Folder::rename(const std::string &from, const std::string &to) const {
  int64_t result = retrying(
      [&] { return system->rename(handle, checked(from), checked(to)); });
  if (result < 0)
    fail(from, ("cannot rename to " + to).c_str(), result);
}

void Folder::removeFile(const std::string &name) const {
  int64_t result =
      retrying([&] { return system->removeFile(handle, checked(name)); });
  if (result < 0)
    fail(name, "cannot remove", result);
}

void Folder::removeFolder(const std::string &name) const {
  {
    Folder inner = openFolder(name);
    for (const std::string &entry : inner.list())
      inner.removeFile(entry);
  }
  int64_t result =
      retrying([&] { return system->removeFolder(handle, checked(name)); });
  if (result < 0)
    fail(name, "cannot remove", result);
}

void Folder::sync() const {
  int64_t result = retrying([&] { return system->sync(handle); });
  // Some file systems cannot sync folders and say EINVAL.
  if (result < 0 && result != -EINVAL)
    fail("", "cannot sync folder", result);
}

bool Folder::lock() const {
  int64_t result = retrying([&] { return system->lock(handle); });
  // A file system without locks cannot protect from a second run.
  return result != -EWOULDBLOCK;
}
