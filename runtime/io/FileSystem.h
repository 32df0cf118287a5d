//===- FileSystem.h - The calls that files are made of ----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One interface under everything that has to survive a crash. FileSystem has
// the calls one by one, so that a test can make each of them fail; File and
// Folder are what other code uses: they finish short transfers, repeat
// interrupted calls and throw IoError.
//
// A file is named by a folder that is open and a plain name in it. No name that
// comes out of a file can thereby reach outside of its folder, whatever it says
// and whoever exchanges folders meanwhile: links are not followed.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_FILESYSTEM_H
#define ZERO_RUNTIME_IO_FILESYSTEM_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace zrt {

struct FileStatus {
  enum class Kind { File, Folder, Other };
  Kind kind = Kind::Other;
  uint64_t bytes = 0;
};

/// A read or write of a part of a file that goes on beside others.
struct Transfer {
  bool write = false;
  int file = -1;
  void *data = nullptr; // only read where `write`
  size_t bytes = 0;
  uint64_t offset = 0;
  uint64_t tag = 0; // the caller's
};

/// Transfers under way. One thread at a time.
class TransferQueue {
public:
  /// Waits until none is under way: their memory is then the caller's again.
  virtual ~TransferQueue();

  /// Begins one: 0, or a negated errno. At most the queue's depth at a time.
  virtual int64_t begin(const Transfer &transfer) = 0;
  /// Waits for any: 0 with its tag and what readAt or writeAt would return, or
  /// a negated errno where the waiting fails.
  virtual int64_t finish(uint64_t &tag, int64_t &result) = 0;
};

/// The calls of POSIX. Each returns a number of at least 0, or a negated errno;
/// -EINTR and less than what was asked for are lawful answers.
class FileSystem {
public:
  using Handle = int;
  /// As the `in` of a name: a path from where the process is, links followed.
  static constexpr Handle noFolder = -100;

  virtual ~FileSystem();

  /// The system's own.
  static FileSystem &real();

  // Handles. Without links at the name's end, except below noFolder.
  virtual int64_t openFolder(Handle in, const std::string &name) = 0;
  virtual int64_t openFile(Handle in, const std::string &name) = 0;
  /// A new file: -EEXIST if the name is taken.
  virtual int64_t createFile(Handle in, const std::string &name) = 0;
  /// A file for reading and writing that no other user may open. With an empty
  /// name it has none and ends with its last handle; -EOPNOTSUPP where the
  /// folder's file system has no such files. `direct`: past the page cache, in
  /// whole blocks from aligned memory; -EINVAL where it cannot.
  virtual int64_t createScratch(Handle in, const std::string &name,
                                bool direct) = 0;
  virtual int64_t close(Handle handle) = 0;
  virtual int64_t status(Handle handle, FileStatus &result) = 0;
  /// Held until the handle is closed or the process ends; -EWOULDBLOCK if
  /// another handle has it.
  virtual int64_t lock(Handle handle) = 0;

  // Contents. Bytes of a file, entries of a folder are on disk after sync.
  virtual int64_t readAt(Handle file, void *data, size_t bytes,
                         uint64_t offset) = 0;
  virtual int64_t writeAt(Handle file, const void *data, size_t bytes,
                          uint64_t offset) = 0;
  virtual int64_t sync(Handle handle) = 0;
  /// The file has the first `bytes` bytes, zeros, and the disk has room for
  /// them; -EOPNOTSUPP where the file system cannot promise that.
  virtual int64_t allocate(Handle file, uint64_t bytes) = 0;
  /// Of the file system of a folder, for this user.
  virtual int64_t freeBytes(Handle folder, uint64_t &result) = 0;
  /// For `depth` transfers at a time; -ENOSYS or -EPERM where the system has
  /// none or does not let this process have it.
  virtual int64_t makeQueue(unsigned depth,
                            std::unique_ptr<TransferQueue> &result) = 0;

  // Hints, which promise nothing: the disk starts now on bytes that sync would
  // wait for; a file will be read front to back.
  virtual int64_t startSync(Handle file, uint64_t offset, uint64_t bytes) = 0;
  virtual int64_t expectSequential(Handle file) = 0;

  // Names.
  virtual int64_t makeFolder(Handle in, const std::string &name) = 0;
  virtual int64_t rename(Handle in, const std::string &from,
                         const std::string &to) = 0;
  virtual int64_t removeFile(Handle in, const std::string &name) = 0;
  /// An empty one.
  virtual int64_t removeFolder(Handle in, const std::string &name) = 0;
  virtual int64_t list(Handle folder, std::vector<std::string> &names) = 0;
};

/// True for what can only be a name in a folder: not empty, at most 255 bytes,
/// no '/', no NUL, neither "." nor "..".
bool isPlainName(std::string_view name);

/// An open file. Closes itself.
class File {
public:
  File(FileSystem &system, FileSystem::Handle handle, std::string path)
      : system(&system), handle(handle), filePath(std::move(path)) {}
  /// A file that the user names, to be read: links in `path` are followed.
  static File open(const std::string &path,
                   FileSystem &system = FileSystem::real());
  File(File &&other) noexcept;
  File &operator=(File &&) = delete;
  ~File();

  /// For messages.
  const std::string &path() const { return filePath; }
  FileSystem::Handle descriptor() const { return handle; }

  /// Appends. All of it, or throws IoError.
  void write(const void *data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// All of it, or throws IoError. Does not change where write() goes on; calls
  /// may come from several threads.
  void writeAt(uint64_t offset, const void *data, size_t bytes);
  /// All of it, or throws IoError, also at the end of the file.
  void readAt(uint64_t offset, void *data, size_t bytes);
  /// The disk may begin to write what is in the cache. Throws IoError where
  /// that fails, but not where it cannot be asked for.
  void startSync(uint64_t offset, uint64_t bytes);
  /// It will be read front to back. That this does not help is no error.
  void expectSequential();
  /// Of a regular file; throws IoError for anything else.
  uint64_t size();
  /// Its contents are on disk.
  void sync();
  /// Reports what the destructor would swallow.
  void close();

private:
  [[noreturn]] void fail(const char *what, int64_t error) const;

  FileSystem *system;
  FileSystem::Handle handle; // -1: none
  std::string filePath;
  uint64_t end = 0; // where write() goes on
};

/// An open folder. All names are plain; throws IoError for others.
class Folder {
public:
  /// A folder that the user names: links in `path` are followed.
  static Folder open(const std::string &path,
                     FileSystem &system = FileSystem::real());
  /// Makes it where it is missing, so that it is there after a power failure.
  static Folder openOrMake(const std::string &path,
                           FileSystem &system = FileSystem::real());
  /// True if `path` is a folder.
  static bool exists(const std::string &path,
                     FileSystem &system = FileSystem::real());

  Folder(Folder &&other) noexcept;
  Folder &operator=(Folder &&) = delete;
  ~Folder();

  const std::string &path() const { return folderPath; }
  std::string pathOf(const std::string &name) const;

  Folder openFolder(const std::string &name) const;
  Folder makeFolder(const std::string &name) const;
  File openFile(const std::string &name) const;
  File createFile(const std::string &name) const;
  /// Sorted.
  std::vector<std::string> list() const;
  void rename(const std::string &from, const std::string &to) const;
  void removeFile(const std::string &name) const;
  /// A folder with the files in it; one that holds folders is refused.
  void removeFolder(const std::string &name) const;
  /// Its entries are on disk.
  void sync() const;
  /// False if another process or object has the lock.
  bool lock() const;

private:
  Folder(FileSystem &system, FileSystem::Handle handle, std::string path)
      : system(&system), handle(handle), folderPath(std::move(path)) {}
  [[noreturn]] void fail(const std::string &name, const char *what,
                         int64_t error) const;
  const std::string &checked(const std::string &name) const;

  FileSystem *system;
  FileSystem::Handle handle; // -1: none
  std::string folderPath;
};

/// Reads a whole small file; throws IoError if it has more than `limit` bytes.
std::string readAll(File &file, uint64_t limit);

} // namespace zrt

#endif // ZERO_RUNTIME_IO_FILESYSTEM_H
