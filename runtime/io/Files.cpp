//===- Files.cpp - Mapped files and atomic writes -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// POSIX implementation of Files.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Files.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace zrt;

MappedFile::MappedFile(const File &file) : filePath(file.path()) {
  int fd = file.descriptor();
  struct stat info;
  void *map = nullptr;
  int error = 0;
  if (fstat(fd, &info))
    error = errno;
  else if (!S_ISREG(info.st_mode))
    error = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
  else if (info.st_size > 0) {
    map = mmap(nullptr, size_t(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
      error = errno;
  }
  if (error)
    throw IoError(filePath, error == EINVAL ? "not a regular file"
                                            : std::string("cannot read: ") +
                                                  std::strerror(error));
  bytes = static_cast<const uint8_t *>(map);
  length = size_t(info.st_size);
}

MappedFile::~MappedFile() {
  if (bytes)
    munmap(const_cast<uint8_t *>(bytes), length);
}

void zrt::refuseOverwrite(const std::string &output,
                          const std::vector<std::string> &inputs) {
  struct stat written, read;
  if (output.empty() || stat(output.c_str(), &written))
    return;
  for (const std::string &input : inputs)
    if (!input.empty() && !stat(input.c_str(), &read) &&
        read.st_dev == written.st_dev && read.st_ino == written.st_ino)
      throw IoError(output, "is read by this run as " + input +
                                "; write to another file");
}

static std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash ? slash : 1);
}

static bool sameFile(const struct stat &a, const struct stat &b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// Neither path need exist yet.
static bool sameOutput(const OutputPath &a, const OutputPath &b) {
  struct stat first, second;
  bool exists = !stat(a.path.c_str(), &first);
  if (exists != !stat(b.path.c_str(), &second) || (a.folder && b.folder))
    return false;
  if (exists)
    return (S_ISREG(first.st_mode) || S_ISDIR(first.st_mode)) &&
           sameFile(first, second);
  auto name = [](const std::string &path) {
    return path.substr(path.rfind('/') + 1); // npos + 1 is 0
  };
  if (name(a.path) != name(b.path))
    return false;
  if (stat(folderOf(a.path).c_str(), &first) ||
      stat(folderOf(b.path).c_str(), &second))
    return folderOf(a.path) == folderOf(b.path);
  return sameFile(first, second);
}

void zrt::refuseSameOutput(const std::vector<OutputPath> &outputs) {
  for (const OutputPath &a : outputs)
    for (const OutputPath &b : outputs) {
      if (&a == &b)
        break;
      if (!a.path.empty() && !b.path.empty() && sameOutput(a, b))
        throw IoError(a.path, "is written by both " + b.flag + " and " +
                                  a.flag + "; give each its own file");
    }
}

void zrt::reportFileSizeLimit() { std::signal(SIGXFSZ, SIG_IGN); }

AtomicFile::AtomicFile(const std::string &path, FileSystem &system)
    : system(system), finalPath(path) {
  struct stat info;
  if (&system == &FileSystem::real() && !stat(path.c_str(), &info) &&
      !S_ISREG(info.st_mode))
    openDevice();
  else
    createTemporary();
}

void AtomicFile::openDevice() {
  device = open(finalPath.c_str(), O_WRONLY | O_CLOEXEC);
  if (device < 0)
    throw IoError(finalPath,
                  std::string("cannot create: ") + std::strerror(errno));
}

void AtomicFile::createTemporary() {
  static std::atomic<unsigned> number = 0;
  int64_t handle = -EEXIST;
  // A name may be taken by what an earlier process of this number left.
  for (int i = 0; i < 100 && (handle == -EEXIST || handle == -EINTR); ++i) {
    temporaryPath = finalPath + ".tmp-" + std::to_string(getpid()) + "-" +
                    std::to_string(number++);
    handle = system.createFile(FileSystem::noFolder, temporaryPath);
  }
  if (handle >= 0) {
    file.emplace(system, FileSystem::Handle(handle), finalPath);
    return;
  }
  temporaryPath.clear();
  throw IoError(finalPath,
                std::string("cannot create: ") + std::strerror(int(-handle)));
}

AtomicFile::~AtomicFile() {
  if (device >= 0)
    close(device);
  file.reset();
  if (!temporaryPath.empty())
    system.removeFile(FileSystem::noFolder, temporaryPath);
}

void AtomicFile::write(const void *data, size_t size) {
  if (file)
    return file->write(data, size);
  const char *next = static_cast<const char *>(data);
  while (size) {
    ssize_t written = ::write(device, next, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      throw IoError(finalPath,
                    std::string("cannot write: ") + std::strerror(errno));
    next += written;
    size -= size_t(written);
  }
}

/// The rename is durable only once the folder is on disk too.
static void syncFolderOf(const std::string &path, FileSystem &system) {
  std::string folder = folderOf(path);
  // A folder may be written but not read: then there is nothing to sync with.
  if (Folder::exists(folder, system))
    Folder::open(folder, system).sync();
}

void AtomicFile::commit() {
  if (!file) {
    int failed = close(std::exchange(device, -1));
    if (failed)
      throw IoError(finalPath,
                    std::string("cannot write: ") + std::strerror(errno));
    return;
  }
  file->sync();
  file->close();
  int64_t result =
      system.rename(FileSystem::noFolder, temporaryPath, finalPath);
  if (result < 0)
    throw IoError(finalPath,
                  std::string("cannot rename: ") + std::strerror(int(-result)));
  temporaryPath.clear();
  syncFolderOf(finalPath, system);
}
