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

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace zrt;

MappedFile::MappedFile(const std::string &path) : filePath(path) {
  // Without O_NONBLOCK the open of a named pipe would wait for a writer.
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    throw IoError(path, std::string("cannot open: ") + std::strerror(errno));
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
  close(fd);
  if (error)
    throw IoError(path, error == EINVAL ? "not a regular file"
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

AtomicFile::AtomicFile(const std::string &path) : finalPath(path) {
  struct stat info;
  bool special = !stat(path.c_str(), &info) && !S_ISREG(info.st_mode);
  if (!special)
    temporaryPath = path + ".tmp-XXXXXX";
  descriptor = special ? open(path.c_str(), O_WRONLY | O_CLOEXEC)
                       : mkostemp(temporaryPath.data(), O_CLOEXEC);
  if (descriptor < 0)
    throw IoError(path, std::string("cannot create: ") + std::strerror(errno));
  if (special)
    return;
  // mkostemp makes a private file; the result is as open(2) would make it.
  mode_t mask = umask(0);
  umask(mask);
  fchmod(descriptor, 0666 & ~mask);
}

AtomicFile::~AtomicFile() {
  if (descriptor < 0)
    return;
  close(descriptor);
  if (!temporaryPath.empty())
    unlink(temporaryPath.c_str());
}

void AtomicFile::fail(const char *what) const {
  throw IoError(finalPath, std::string(what) + ": " + std::strerror(errno));
}

void AtomicFile::write(const void *data, size_t size) {
  const char *next = static_cast<const char *>(data);
  while (size) {
    ssize_t written = ::write(descriptor, next, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      fail("cannot write");
    next += written;
    size -= size_t(written);
  }
}

/// The rename is durable only once the folder is on disk too.
static void syncFolderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  std::string folder =
      slash == std::string::npos ? "." : path.substr(0, slash ? slash : 1);
  int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return; // a folder that may be written but not read: nothing to sync with
  int failed = fsync(fd);
  int error = errno;
  close(fd);
  // Some file systems cannot sync folders and say EINVAL.
  if (failed && error != EINVAL)
    throw IoError(path,
                  std::string("cannot sync folder: ") + std::strerror(error));
}

void AtomicFile::commit() {
  if (temporaryPath.empty()) {
    int failed = close(descriptor);
    descriptor = -1;
    if (failed)
      fail("cannot write");
    return;
  }
  if (fsync(descriptor))
    fail("cannot sync");
  if (rename(temporaryPath.c_str(), finalPath.c_str()))
    fail("cannot rename");
  close(descriptor);
  descriptor = -1;
  syncFolderOf(finalPath);
}
