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

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace zrt;

void LogFile::fail(const char *what) const {
  throw IoError(path, std::string(what) + ": " + std::strerror(errno));
}

LogFile::LogFile(const std::string &path, const Sort &sort, const Warn &warn)
    : path(path),
      descriptor(::open(
          path.c_str(),
          (sort ? O_RDWR : O_WRONLY | O_TRUNC) | O_CREAT | O_CLOEXEC, 0666)) {
  if (descriptor < 0)
    fail("cannot create");
  if (!sort)
    return;
  try {
    cutAtLater(sort, warn);
  } catch (...) {
    ::close(descriptor);
    throw;
  }
}

namespace {
/// What stays of a file that is continued.
struct Kept {
  size_t bytes = 0, unreadable = 0, firstUnreadable = 0;
};
} // namespace

static Kept keptOf(std::string_view text, const LogFile::Sort &sort) {
  Kept kept;
  for (size_t number = 1; kept.bytes < text.size(); ++number) {
    size_t end = std::min(text.find('\n', kept.bytes), text.size());
    LogFile::Line line = sort(text.substr(kept.bytes, end - kept.bytes));
    if (line == LogFile::Line::Later)
      break;
    if (line == LogFile::Line::Unreadable && !kept.unreadable++)
      kept.firstUnreadable = number;
    kept.bytes = std::min(end + 1, text.size());
  }
  return kept;
}

void LogFile::cutAtLater(const Sort &sort, const Warn &warn) {
  struct stat status;
  if (::fstat(descriptor, &status))
    fail("cannot read");
  if (!S_ISREG(status.st_mode))
    return;
  Kept kept;
  bool open = false; // the last line has no newline
  if (status.st_size) {
    MappedFile file(path);
    std::string_view text(reinterpret_cast<const char *>(file.data()),
                          file.size());
    kept = keptOf(text, sort);
    open = kept.bytes && text[kept.bytes - 1] != '\n';
  }
  if (::ftruncate(descriptor, off_t(kept.bytes)) ||
      ::lseek(descriptor, off_t(kept.bytes), SEEK_SET) != off_t(kept.bytes))
    fail("cannot continue");
  empty = !kept.bytes;
  if (open)
    write("\n");
  if (kept.unreadable && warn)
    warn(path + ": line " + std::to_string(kept.firstUnreadable) +
         ", the first of " + std::to_string(kept.unreadable) +
         ", is none that such a run writes; it stays");
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
