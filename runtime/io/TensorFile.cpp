//===- TensorFile.cpp - Files of named tensors ----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Choice of the reader by content, and what the readers share.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/TensorFile.h"

#include "runtime/io/Files.h"
#include "runtime/io/Npz.h"
#include "runtime/io/SafeTensors.h"

#include <cstring>

using namespace zrt;

TensorFile::~TensorFile() = default;

const TensorInfo *TensorFile::find(std::string_view name) const {
  auto it = infos.find(name);
  return it == infos.end() ? nullptr : &it->second;
}

void TensorFile::unknownTensor(std::string_view name) const {
  throw IoError(filePath, "has no tensor '" + std::string(name) + "'");
}

std::unique_ptr<TensorFile> zrt::openTensorFile(const std::string &path) {
  auto file = std::make_unique<MappedFile>(path);
  // "PK" as the low bytes of a header length would be an odd, but possible,
  // 19 kB header: a safetensors file then has '{' behind the length.
  bool zip = file->size() >= 4 && !std::memcmp(file->data(), "PK", 2) &&
             (file->data()[2] == 3 || file->data()[2] == 5) &&
             file->data()[3] == file->data()[2] + 1;
  if (zip)
    return std::make_unique<NpzFile>(std::move(file));
  return std::make_unique<SafeTensorsFile>(std::move(file));
}
