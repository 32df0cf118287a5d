//===- SafeTensorsWriter.cpp - Writer of safetensors ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Streams a safetensors file into an atomic file.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Json.h"
#include "runtime/io/SafeTensors.h"

#include <set>

using namespace zrt;

static std::string shapeList(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t dim : shape)
    text += (text.empty() ? "" : ",") + std::to_string(dim);
  return "[" + text + "]";
}

static void checkName(const std::string &path, const std::string &name,
                      std::set<std::string> &seen) {
  if (!isUtf8(name))
    throw IoError(path, "tensor name " + jsonQuote(name) + " is not UTF-8");
  if (name == "__metadata__" || !seen.insert(name).second)
    throw IoError(path,
                  "tensor name " + jsonQuote(name) +
                      (seen.count(name) ? " is used twice" : " is reserved"));
}

SafeTensorsWriter::SafeTensorsWriter(
    const std::string &path, const std::vector<Tensor> &tensors,
    const std::map<std::string, std::string> &metadata)
    : file(path) {
  std::string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (const auto &[key, value] : metadata)
      header += (header.back() == '{' ? "" : ",") + jsonQuote(key) + ":" +
                jsonQuote(value);
    header += "}";
  }
  std::set<std::string> seen;
  for (const Tensor &tensor : tensors) {
    checkName(path, tensor.name, seen);
    auto bytes = tensorBytes(tensor.type, tensor.shape);
    if (!bytes || __builtin_add_overflow(missing, *bytes, &bytes.value()))
      throw IoError(path, "tensor " + jsonQuote(tensor.name) + " is too large");
    header += (header == "{" ? "" : ",") + jsonQuote(tensor.name) +
              ":{\"dtype\":" + jsonQuote(zrt::name(tensor.type)) +
              ",\"shape\":" + shapeList(tensor.shape) + ",\"data_offsets\":[" +
              std::to_string(missing) + "," + std::to_string(*bytes) + "]}";
    missing = *bytes;
  }
  header += "}";
  // Spaces align the values, as the reference writer does.
  header.resize((header.size() + 7) / 8 * 8, ' ');
  uint8_t length[8];
  for (int i = 0; i < 8; ++i)
    length[i] = uint8_t(uint64_t(header.size()) >> (8 * i));
  file.write(length, sizeof(length));
  file.write(header);
}

void SafeTensorsWriter::write(const void *data, size_t size) {
  if (size > missing)
    throw IoError(file.path(), "more values are written than were declared");
  file.write(data, size);
  missing -= size;
}

void SafeTensorsWriter::commit() {
  if (missing)
    throw IoError(file.path(), std::to_string(missing) +
                                   " bytes of values were not written");
  file.commit();
}
