//===- ExportFile.cpp - Writing a changed message -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values are converted a few at a time.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/ExportFile.h"

#include "lib/Import/Wire.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::zero::onnx_import;
namespace fs = llvm::sys::fs;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static const llvm::fltSemantics &semanticsOf(DType type) {
  switch (type) {
  case DType::F64:
    return llvm::APFloat::IEEEdouble();
  case DType::F16:
    return llvm::APFloat::IEEEhalf();
  case DType::BF16:
    return llvm::APFloat::BFloat();
  default:
    return llvm::APFloat::IEEEsingle();
  }
}

/// Appends the element at `at` in another float type.
static void appendConverted(DType from, const char *at, DType to,
                            SmallVectorImpl<char> &out) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, byteSize(from));
  llvm::APFloat value(semanticsOf(from), llvm::APInt(8 * byteSize(from), bits));
  bool lost;
  value.convert(semanticsOf(to), llvm::APFloat::rmNearestTiesToEven, &lost);
  bits = value.bitcastToAPInt().getZExtValue();
  const char *bytes = reinterpret_cast<const char *>(&bits);
  out.append(bytes, bytes + byteSize(to));
}

/// Takes pages that lie in `bytes` out of the resident set: of mapped files
/// they come back when they are read, and others stay.
static void leaveMemory(StringRef bytes) {
#ifdef MADV_PAGEOUT
  uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
  uint64_t begin = llvm::alignTo(uintptr_t(bytes.begin()), page);
  uint64_t end = llvm::alignDown(uintptr_t(bytes.end()), page);
  if (begin < end)
    (void)madvise(reinterpret_cast<void *>(begin), end - begin, MADV_PAGEOUT);
#endif
}

/// Writes a part of a file at a time.
static void writeBytes(StringRef bytes, llvm::raw_ostream &os) {
  constexpr size_t most = 8 << 20;
  for (size_t at = 0; at < bytes.size(); at += most) {
    StringRef part = bytes.substr(at, most);
    os.write(part.data(), part.size());
    leaveMemory(part);
  }
}

void NewValue::write(llvm::raw_ostream &os) const {
  if (from == to && !transposed)
    return writeBytes(StringRef(bytes.data(), bytes.size()), os);
  unsigned width = byteSize(from);
  uint64_t count = bytes.size() / width;
  uint64_t rows = transposed ? shape[0] : 1, cols = rows ? count / rows : 0;
  SmallVector<char> converted;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t at = transposed ? i % cols * rows + i / cols : i;
    const char *element = bytes.data() + at * width;
    if (from == to)
      converted.append(element, element + width);
    else
      appendConverted(from, element, to, converted);
    if (converted.size() < (1 << 16) && i + 1 < count)
      continue;
    os.write(converted.data(), converted.size());
    converted.clear();
  }
}

//===----------------------------------------------------------------------===//
// Ropes
//===----------------------------------------------------------------------===//

void Rope::add(StringRef bytes) {
  if (bytes.empty())
    return;
  total += bytes.size();
  // Fields that are kept mostly follow each other in the file.
  if (!pieces.empty() && !pieces.back().text && !pieces.back().value &&
      pieces.back().bytes.end() == bytes.begin()) {
    StringRef &last = pieces.back().bytes;
    last = StringRef(last.data(), last.size() + bytes.size());
    return;
  }
  pieces.push_back({bytes, nullptr, nullptr});
}

void Rope::add(const NewValue *value) {
  total += value->size();
  pieces.push_back({{}, value, nullptr});
}

void Rope::addText(std::string text) {
  auto kept = std::make_shared<const std::string>(std::move(text));
  total += kept->size();
  pieces.push_back({*kept, nullptr, kept});
}

void Rope::addField(uint64_t number, Rope content) {
  addText(encodeKey(number, content.size()));
  total += content.size();
  pieces.insert(pieces.end(), content.pieces.begin(), content.pieces.end());
}

void Rope::align(uint64_t alignment) {
  if (uint64_t rest = total % alignment)
    addText(std::string(alignment - rest, '\0'));
}

bool Rope::isPlain(StringRef bytes) const {
  if (pieces.empty())
    return bytes.empty();
  return pieces.size() == 1 && !pieces[0].value && !pieces[0].text &&
         pieces[0].bytes.data() == bytes.data() && total == bytes.size();
}

void Rope::write(llvm::raw_ostream &os) const {
  for (const Piece &piece : pieces) {
    if (piece.value)
      piece.value->write(os);
    else
      writeBytes(piece.bytes, os);
  }
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

static llvm::Error writeTemporary(const Rope &content, fs::TempFile &file) {
  llvm::raw_fd_ostream os(file.FD, /*shouldClose=*/false);
  content.write(os);
  os.flush();
  std::error_code code = os.error();
  os.clear_error();
  if (!code && fsync(file.FD))
    code = std::error_code(errno, std::generic_category());
  return llvm::errorCodeToError(code);
}

llvm::Error zero::onnx_import::replaceFiles(
    ArrayRef<std::pair<std::string, const Rope *>> files) {
  std::vector<fs::TempFile> made;
  auto fail = [&](StringRef path, llvm::Error error) {
    for (fs::TempFile &file : made)
      error = llvm::joinErrors(std::move(error), file.discard());
    std::string text = llvm::toString(std::move(error));
    return llvm::createStringError("'" + path + "': " + text);
  };
  for (const auto &[path, content] : files) {
    llvm::Expected<fs::TempFile> file =
        fs::TempFile::create(path + ".tmp-%%%%%%");
    if (!file)
      return fail(path, file.takeError());
    made.push_back(std::move(*file));
    if (llvm::Error error = writeTemporary(*content, made.back()))
      return fail(path, std::move(error));
  }
  while (!made.empty()) {
    fs::TempFile file = std::move(made.front());
    made.erase(made.begin());
    const std::string &path = files[files.size() - made.size() - 1].first;
    if (llvm::Error error = file.keep(path))
      return fail(path, std::move(error));
  }
  return llvm::Error::success();
}
