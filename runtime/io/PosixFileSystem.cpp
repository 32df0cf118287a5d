//===- PosixFileSystem.cpp - The system's own calls -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One call each, with nothing added: what has to be repeated or continued is
// for File and Folder.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/FileSystem.h"
#include "runtime/io/IoUring.h"

#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

using namespace zrt;

namespace {

int64_t answer(int64_t result) { return result < 0 ? -errno : result; }

class PosixFileSystem final : public FileSystem {
  static_assert(noFolder == AT_FDCWD, "a path from where the process is");

  /// Below a folder a link is not followed; a path is the user's own.
  static int64_t open(Handle in, const std::string &name, int flags) {
    int links = in == noFolder ? 0 : O_NOFOLLOW;
    return answer(::openat(in, name.c_str(), flags | links | O_CLOEXEC, 0666));
  }

public:
  int64_t openFolder(Handle in, const std::string &name) override {
    return open(in, name, O_RDONLY | O_DIRECTORY);
  }
  int64_t openFile(Handle in, const std::string &name) override {
    // Without O_NONBLOCK the open of a named pipe would wait for a writer.
    return open(in, name, O_RDONLY | O_NONBLOCK);
  }
  int64_t createFile(Handle in, const std::string &name) override {
    return open(in, name, O_WRONLY | O_CREAT | O_EXCL);
  }
  int64_t createScratch(Handle in, const std::string &name,
                        bool direct) override {
    int how = name.empty() ? O_TMPFILE : O_CREAT | O_EXCL;
    int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (direct ? O_DIRECT : 0);
    int64_t file = answer(
        ::openat(in, name.empty() ? "." : name.c_str(), how | flags, 0600));
    // What systems say that do not know O_TMPFILE.
    return name.empty() && file == -EISDIR ? -EOPNOTSUPP : file;
  }
  int64_t close(Handle handle) override { return answer(::close(handle)); }
  int64_t status(Handle handle, FileStatus &result) override {
    struct stat info;
    if (::fstat(handle, &info))
      return -errno;
    result.kind = S_ISREG(info.st_mode)   ? FileStatus::Kind::File
                  : S_ISDIR(info.st_mode) ? FileStatus::Kind::Folder
                                          : FileStatus::Kind::Other;
    result.bytes = uint64_t(info.st_size);
    return 0;
  }
  int64_t lock(Handle handle) override {
    return answer(::flock(handle, LOCK_EX | LOCK_NB));
  }

  int64_t readAt(Handle file, void *data, size_t bytes,
                 uint64_t offset) override {
    return answer(::pread(file, data, bytes, off_t(offset)));
  }
  int64_t writeAt(Handle file, const void *data, size_t bytes,
                  uint64_t offset) override {
    return answer(::pwrite(file, data, bytes, off_t(offset)));
  }
  int64_t sync(Handle handle) override { return answer(::fsync(handle)); }
  int64_t allocate(Handle file, uint64_t bytes) override {
    return bytes ? answer(::fallocate(file, 0, 0, off_t(bytes))) : 0;
  }
  int64_t freeBytes(Handle folder, uint64_t &result) override {
    struct statvfs info;
    if (::fstatvfs(folder, &info))
      return -errno;
    result = uint64_t(info.f_bavail) * info.f_frsize;
    return 0;
  }
  int64_t makeQueue(unsigned depth,
                    std::unique_ptr<TransferQueue> &result) override {
    return makeIoUring(depth, result);
  }
  int64_t startSync(Handle file, uint64_t offset, uint64_t bytes) override {
    return answer(::sync_file_range(file, off_t(offset), off_t(bytes),
                                    SYNC_FILE_RANGE_WRITE));
  }
  int64_t expectSequential(Handle file) override {
    return -::posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
  }

  int64_t makeFolder(Handle in, const std::string &name) override {
    return answer(::mkdirat(in, name.c_str(), 0777));
  }
  int64_t rename(Handle in, const std::string &from,
                 const std::string &to) override {
    return answer(::renameat(in, from.c_str(), in, to.c_str()));
  }
  int64_t removeFile(Handle in, const std::string &name) override {
    return answer(::unlinkat(in, name.c_str(), 0));
  }
  int64_t removeFolder(Handle in, const std::string &name) override {
    return answer(::unlinkat(in, name.c_str(), AT_REMOVEDIR));
  }
  int64_t list(Handle folder, std::vector<std::string> &names) override;
};

int64_t PosixFileSystem::list(Handle folder, std::vector<std::string> &names) {
  // A handle of its own: closedir closes it, and the position starts anew.
  int own = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *stream = own < 0 ? nullptr : ::fdopendir(own);
  if (!stream) {
    int error = errno;
    if (own >= 0)
      ::close(own);
    return -error;
  }
  errno = 0;
  while (const dirent *entry = ::readdir(stream)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..")
      names.push_back(std::move(name));
    errno = 0;
  }
  int error = errno;
  ::closedir(stream);
  return -error;
}

} // namespace

FileSystem &FileSystem::real() {
  static PosixFileSystem system;
  return system;
}
