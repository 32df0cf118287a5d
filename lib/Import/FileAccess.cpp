//===- FileAccess.cpp - Opening files that a model names ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// openat2 does the resolution in one step where the kernel has it; elsewhere
// the path is walked one component at a time with O_NOFOLLOW.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/FileAccess.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#endif

using namespace mlir;
using namespace mlir::zero::onnx_import;

namespace {

/// Closes a descriptor at the end of a scope.
struct Descriptor {
  int fd = -1;
  Descriptor() = default;
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(Descriptor &&other) : fd(std::exchange(other.fd, -1)) {}
  Descriptor &operator=(Descriptor &&other) {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Descriptor() {
    if (fd >= 0)
      close(fd);
  }
};

} // namespace

// O_NONBLOCK: opening a FIFO must not wait for a writer.
static constexpr int readFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

// Some exporters write a file for each tensor; a process has about a thousand
// descriptors.
static constexpr size_t maxOpenFiles = 256;

static llvm::Error fail(const llvm::Twine &message) {
  return llvm::createStringError(message);
}

MappedFile::~MappedFile() {
  if (size)
    munmap(const_cast<char *>(data), size);
  Descriptor closing(fd);
}

void MappedFile::read(ArrayRef<char> part, char *to) const {
  // The system maps whole large pages at a touch.
  if (fd < 0 ||
      pread(fd, to, part.size(), part.data() - data) != ssize_t(part.size()))
    std::memcpy(to, part.data(), part.size());
}

void MappedFile::release(ArrayRef<char> part) const {
  size_t page = sysconf(_SC_PAGESIZE);
  size_t begin = llvm::alignTo(part.data() - data, page);
  size_t end = part.end() == data + size
                   ? llvm::alignTo(size, page)
                   : llvm::alignDown(part.end() - data, page);
  if (begin < end)
    madvise(const_cast<char *>(data) + begin, end - begin, MADV_DONTNEED);
}

/// Maps an opened file after checking that it is a regular one; keeps it open
/// if `keep`.
static llvm::Expected<FileRef> mapDescriptor(Descriptor file, bool single,
                                             bool keep) {
  int fd = file.fd;
  struct stat info;
  if (fstat(fd, &info))
    return fail(strerror(errno));
  if (!S_ISREG(info.st_mode))
    return fail("is not a regular file");
  if (single && info.st_nlink > 1)
    return fail("has more than one hard link");
  size_t size = info.st_size;
  if (!size)
    return std::make_shared<MappedFile>("", 0, -1);
  void *data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED)
    return fail(llvm::Twine("cannot be mapped: ") + strerror(errno));
  return std::make_shared<MappedFile>(static_cast<const char *>(data), size,
                                      keep ? std::exchange(file.fd, -1) : -1);
}

llvm::Expected<FileRef> zero::onnx_import::mapFile(StringRef path) {
  Descriptor file(open(path.str().c_str(), readFlags));
  if (file.fd < 0)
    return fail(llvm::Twine("cannot be opened: ") + strerror(errno));
  return mapDescriptor(std::move(file), /*single=*/false, /*keep=*/true);
}

int zero::onnx_import::walkBeneath(int dir, StringRef name) {
  SmallVector<StringRef> parts;
  name.split(parts, '/', -1, /*KeepEmpty=*/false);
  Descriptor at;
  for (auto [i, part] : llvm::enumerate(parts)) {
    int flags = readFlags | O_NOFOLLOW;
    if (i + 1 < parts.size())
      flags |= O_DIRECTORY;
    at = Descriptor(openat(i ? at.fd : dir, part.str().c_str(), flags));
    if (at.fd < 0)
      return -1;
  }
  return std::exchange(at.fd, -1);
}

static Descriptor openBeneath(int dir, StringRef name) {
#if defined(SYS_openat2) && defined(RESOLVE_BENEATH)
  struct open_how how = {};
  how.flags = readFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  int fd = syscall(SYS_openat2, dir, name.str().c_str(), &how, sizeof(how));
  // EPERM: some sandboxes refuse system calls that they do not know.
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
    return Descriptor(fd);
#endif
  return Descriptor(walkBeneath(dir, name));
}

/// Refuses names that could not be right on any file system.
static llvm::Error checkName(StringRef name) {
  if (name.empty())
    return fail("has an empty location");
  if (name.contains('\0'))
    return fail("has a NUL character in its location");
  if (name.starts_with("/"))
    return fail("is an absolute path; it must be relative to the model");
  SmallVector<StringRef> parts;
  name.split(parts, '/');
  if (llvm::is_contained(parts, ".."))
    return fail("has '..' in its path; it must stay in the model's folder");
  return llvm::Error::success();
}

ExternalFiles::ExternalFiles(StringRef modelPath)
    : folder(llvm::sys::path::parent_path(modelPath)) {
  if (folder.empty())
    folder = ".";
}

ExternalFiles::~ExternalFiles() { Descriptor closing(dir); }

llvm::Expected<FileRef> ExternalFiles::get(StringRef name) {
  if (llvm::Error error = checkName(name))
    return std::move(error);
  FileRef &entry = files[name];
  if (entry)
    return entry;
  if (dir < 0)
    dir = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0)
    return fail(llvm::Twine("cannot be looked up in ") + folder + ": " +
                strerror(errno));
  Descriptor file = openBeneath(dir, name);
  if (file.fd < 0) {
    if (errno == ELOOP || errno == EXDEV)
      return fail("is reached through a symbolic link or leaves the model's "
                  "folder");
    return fail(errno == ENOENT ? llvm::Twine("does not exist")
                                : llvm::Twine(strerror(errno)));
  }
  llvm::Expected<FileRef> mapped = mapDescriptor(
      std::move(file), /*single=*/true, files.size() <= maxOpenFiles);
  if (mapped)
    entry = *mapped;
  return mapped;
}
