//===- SafeTensors.cpp - Writing weights ----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensors are ordered by falling element size, so that each starts aligned.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/CopyFile.h"
#include "lib/Import/SafeTensors.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;
namespace fs = llvm::sys::fs;

static std::string makeHeader(ArrayRef<NamedTensor> tensors) {
  std::string header;
  llvm::raw_string_ostream os(header);
  llvm::json::OStream json(os);
  uint64_t offset = 0;
  json.object([&] {
    json.attributeObject("__metadata__",
                         [&] { json.attribute("format", "pt"); });
    for (const NamedTensor &tensor : tensors)
      json.attributeObject(tensor.name, [&] {
        json.attribute("dtype", safetensorsName(tensor.type));
        json.attributeArray("shape", [&] {
          for (int64_t dim : tensor.shape)
            json.value(dim);
        });
        json.attributeArray("data_offsets", [&] {
          json.value(offset);
          json.value(offset += tensor.bytes.size());
        });
      });
  });
  // The data start aligned when the header's length is a multiple of eight.
  header.append((8 - header.size() % 8) % 8, ' ');
  return header;
}

static llvm::Error writeStream(llvm::raw_fd_ostream &os,
                               ArrayRef<NamedTensor> tensors) {
  std::string header = makeHeader(tensors);
  char length[8];
  llvm::support::endian::write64le(length, header.size());
  os.write(length, 8) << header;
  for (const NamedTensor &tensor : tensors)
    os.write(tensor.bytes.data(), tensor.bytes.size());
  os.flush();
  std::error_code code = os.error();
  os.clear_error();
  return llvm::errorCodeToError(code);
}

/// The same for a new, regular file.
static llvm::Error writeFile(int fd, ArrayRef<NamedTensor> tensors) {
  std::string header = makeHeader(tensors);
  char length[8];
  llvm::support::endian::write64le(length, header.size());
  FileWriter writer(fd);
  writer.write(length);
  writer.write(ArrayRef<char>(header.data(), header.size()));
  for (const NamedTensor &tensor : tensors) {
    if (tensor.file)
      writer.copy(*tensor.file, tensor.bytes);
    else
      writer.write(tensor.bytes);
  }
  return writer.finish();
}

llvm::Error
zero::onnx_import::writeSafeTensors(StringRef path,
                                    std::vector<NamedTensor> tensors) {
  llvm::stable_sort(tensors, [](const NamedTensor &a, const NamedTensor &b) {
    return byteSize(a.type) > byteSize(b.type);
  });
  // A device or a pipe is written to, never replaced.
  fs::file_status status;
  if (!fs::status(path, status) && !fs::is_regular_file(status)) {
    std::error_code code;
    llvm::raw_fd_ostream os(path, code);
    return code ? llvm::errorCodeToError(code) : writeStream(os, tensors);
  }
  llvm::Expected<fs::TempFile> temporary =
      fs::TempFile::create(path + ".tmp-%%%%%%");
  if (!temporary)
    return temporary.takeError();
  if (llvm::Error error = writeFile(temporary->FD, tensors))
    return llvm::joinErrors(std::move(error), temporary->discard());
  return temporary->keep(path);
}
