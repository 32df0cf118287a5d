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

std::string SafeTensorsWriter::header(
    const std::string &path, const std::vector<Tensor> &tensors,
    const std::map<std::string, std::string> &metadata, uint64_t &valueBytes) {
  std::string text = "{";
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto &[key, value] : metadata)
      text += (text.back() == '{' ? "" : ",") + jsonQuote(key) + ":" +
              jsonQuote(value);
    text += "}";
  }
  std::set<std::string> seen;
  valueBytes = 0;
  for (const Tensor &tensor : tensors) {
    checkName(path, tensor.name, seen);
    auto bytes = tensorBytes(tensor.type, tensor.shape);
    if (!bytes || __builtin_add_overflow(valueBytes, *bytes, &bytes.value()))
      throw IoError(path, "tensor " + jsonQuote(tensor.name) + " is too large");
    text += (text == "{" ? "" : ",") + jsonQuote(tensor.name) +
            ":{\"dtype\":" + jsonQuote(zrt::name(tensor.type)) +
            ",\"shape\":" + shapeList(tensor.shape) + ",\"data_offsets\":[" +
            std::to_string(valueBytes) + "," + std::to_string(*bytes) + "]}";
    valueBytes = *bytes;
  }
  text += "}";
  // Spaces align the values, as the reference writer does.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (int i = 0; i < 8; ++i)
    length[i] = char(uint64_t(text.size()) >> (8 * i));
  return length + text;
}

SafeTensorsWriter::SafeTensorsWriter(
    const std::string &path, const std::vector<Tensor> &tensors,
    const std::map<std::string, std::string> &metadata, FileSystem &system)
    : file(path, system) {
  file.write(header(path, tensors, metadata, missing));
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
