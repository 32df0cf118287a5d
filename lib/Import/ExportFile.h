//===- ExportFile.h - Writing a changed message ----------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A message as a list of pieces: parts of the file that was read, short texts,
// and values of parameters that are converted while they are written.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_EXPORTFILE_H
#define ZERO_LIB_IMPORT_EXPORTFILE_H

#include "lib/Import/Model.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <deque>

namespace mlir::zero::onnx_import {

/// The elements of an initializer, made from a tensor of the weights.
struct NewValue {
  DType from = DType::F32, to = DType::F32;
  /// The shape of the initializer; `transposed`: that of `bytes` is its
  /// reverse.
  SmallVector<int64_t, 4> shape;
  bool transposed = false;
  ArrayRef<char> bytes;

  uint64_t size() const { return bytes.size() / byteSize(from) * byteSize(to); }
  void write(llvm::raw_ostream &os) const;
};

/// Bytes that are not in memory at once.
class Rope {
public:
  void add(StringRef bytes);
  void add(const NewValue *value);
  /// A field whose content is `content`.
  void addField(uint64_t number, Rope content);
  /// Zeros up to a multiple of `alignment`.
  void align(uint64_t alignment);

  uint64_t size() const { return total; }
  /// Whether the content is `bytes` where they lie, unchanged.
  bool isPlain(StringRef bytes) const;
  void write(llvm::raw_ostream &os) const;

  /// A text that lives as long as the rope and what it is added to.
  void addText(std::string text);

private:
  struct Piece {
    StringRef bytes;
    const NewValue *value = nullptr;
    std::shared_ptr<const std::string> text;
  };
  std::vector<Piece> pieces;
  uint64_t total = 0;
};

/// Replaces the files at `paths` by these contents, all of them written before
/// the first is replaced.
llvm::Error replaceFiles(ArrayRef<std::pair<std::string, const Rope *>> files);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_EXPORTFILE_H
