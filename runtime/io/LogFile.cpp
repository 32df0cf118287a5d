//===- LogFile.cpp - A file of lines that grows ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See LogFile.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/LogFile.h"

#include "runtime/io/Files.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace zrt;

void LogFile::fail(const char *what) const {
  throw IoError(path, std::string(what) + ": " + std::strerror(errno));
}

LogFile::LogFile(const std::string &path, const Keep &keep)
    : path(path),
      descriptor(::open(
          path.c_str(),
          (keep ? O_RDWR : O_WRONLY | O_TRUNC) | O_CREAT | O_CLOEXEC, 0666)) {
  if (descriptor < 0)
    fail("cannot create");
  if (!keep)
    return;
  try {
    cutAfter(keep);
  } catch (...) {
    ::close(descriptor);
    throw;
  }
}

void LogFile::cutAfter(const Keep &keep) {
  struct stat status;
  if (::fstat(descriptor, &status))
    fail("cannot read");
  if (!S_ISREG(status.st_mode))
    return;
  off_t kept = 0;
  if (status.st_size) {
    MappedFile file(path);
    std::string_view text(reinterpret_cast<const char *>(file.data()),
                          file.size());
    size_t end;
    while ((end = text.find('\n', size_t(kept))) != text.npos &&
           keep(text.substr(size_t(kept), end - size_t(kept))))
      kept = off_t(end + 1);
  }
  if (::ftruncate(descriptor, kept) ||
      ::lseek(descriptor, kept, SEEK_SET) != kept)
    fail("cannot continue");
  empty = kept == 0;
}

LogFile::~LogFile() { ::close(descriptor); }

void LogFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      fail("cannot write");
    bytes.remove_prefix(size_t(written));
  }
}
