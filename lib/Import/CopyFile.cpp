//===- CopyFile.cpp - Writing what lies in files --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// copy_file_range(2) shares blocks where the file system can. Where it does not
// work, pieces are written from the mapping and released again; a file that
// shrinks meanwhile is then an error of write (EFAULT), no signal.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/CopyFile.h"

#include <algorithm>
#include <cerrno>
#include <sys/stat.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::zero::onnx_import;

// Of what is written from a mapping at once.
static constexpr size_t pieceSize = size_t(8) << 20;

void FileWriter::write(ArrayRef<char> bytes) {
  while (!error && !bytes.empty()) {
    ssize_t done = pwrite(fd, bytes.data(), bytes.size(), off_t(position));
    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0) {
      error = done < 0 ? errno : EIO;
      return;
    }
    position += done;
    bytes = bytes.drop_front(done);
    endsInHole = false;
  }
}

void FileWriter::skip(size_t size) {
  position += size;
  endsInHole |= size != 0;
}

/// Copies from the front of `part`; false where the kernel cannot.
bool FileWriter::copyInKernel(const MappedFile &file, ArrayRef<char> &part) {
  off_t from = part.data() - file.bytes().data(), to = off_t(position);
  ssize_t done =
      copy_file_range(file.descriptor(), &from, fd, &to, part.size(), 0);
  if (done <= 0)
    return done < 0 && errno == EINTR;
  position += done;
  part = part.drop_front(done);
  endsInHole = false;
  return true;
}

void FileWriter::copyData(const MappedFile &file, ArrayRef<char> part) {
  bool kernel = file.descriptor() >= 0;
  while (!error && !part.empty()) {
    if (kernel && (kernel = copyInKernel(file, part)))
      continue;
    ArrayRef<char> piece = part.take_front(pieceSize);
    write(piece);
    file.release(piece);
    part = part.drop_front(piece.size());
  }
}

void FileWriter::copy(const MappedFile &file, ArrayRef<char> part) {
  off_t base = part.data() - file.bytes().data(), at = base;
  off_t end = base + off_t(part.size());
  while (!error && at < end) {
    // Without support for holes all is data.
    off_t data =
        file.descriptor() < 0 ? at : lseek(file.descriptor(), at, SEEK_DATA);
    if (data < 0)
      data = errno == ENXIO ? end : at;
    data = std::min(data, end);
    skip(data - at);
    off_t hole = data < end && file.descriptor() >= 0
                     ? lseek(file.descriptor(), data, SEEK_HOLE)
                     : end;
    hole = hole <= data ? end : std::min(hole, end);
    copyData(file, part.slice(data - base, hole - data));
    at = hole;
  }
  // What was cut off a file meanwhile must not pass for a hole.
  struct stat info;
  if (!error && file.descriptor() >= 0 &&
      (fstat(file.descriptor(), &info) || info.st_size < end))
    error = EIO;
}

llvm::Error FileWriter::finish() {
  if (!error && endsInHole && ftruncate(fd, off_t(position)))
    error = errno;
  return llvm::errorCodeToError(
      std::error_code(error, std::generic_category()));
}
