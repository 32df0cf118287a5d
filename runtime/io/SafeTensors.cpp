//===- SafeTensors.cpp - Reader of safetensors ----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The header is parsed event by event: the parser sees each key, so that
// duplicates are found (a JSON tree would keep one of them), and nothing grows
// with the depth of hostile input.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/SafeTensors.h"

#include "runtime/io/Json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

using namespace zrt;

/// The limit of the reference implementation, which keeps a hostile length
/// from being believed.
static constexpr uint64_t maxHeaderBytes = maxSafeTensorsHeaderBytes - 8;
/// Deepest JSON nesting; the reference's parser has the same limit.
static constexpr size_t maxDepth = 128;

namespace {

struct Entry {
  std::string name;
  std::optional<DataType> type;
  std::optional<std::vector<int64_t>> shape;
  std::optional<std::vector<int64_t>> offsets;
};

/// Receives the parser's events; returning false stops it with `error` set.
class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
public:
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
  std::string error;

  bool null() override {
    // The reference takes "__metadata__": null for none.
    return (depth() == 1 && inMetadata) || scalar("null");
  }
  bool boolean(bool) override { return scalar("a boolean"); }
  bool number_integer(number_integer_t) override {
    return scalar("a negative number");
  }
  bool number_float(number_float_t, const string_t &text) override {
    return scalar("the number " + text);
  }
  bool binary(binary_t &) override { return scalar("binary"); }
  bool number_unsigned(number_unsigned_t value) override;
  bool string(string_t &value) override;
  bool start_object(std::size_t) override;
  bool key(string_t &value) override;
  bool end_object() override {
    keys.pop_back();
    stack.pop_back();
    return true;
  }
  bool start_array(std::size_t) override;
  bool end_array() override {
    stack.pop_back();
    return true;
  }
  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &) override {
    return fail("is not JSON (byte " + std::to_string(position) + ")");
  }

private:
  size_t depth() const { return stack.size(); }
  bool fail(const std::string &message) {
    if (error.empty())
      error = "safetensors header " + message;
    return false;
  }
  std::string where() const {
    std::string text = depth() ? "entry " + jsonQuote(currentKey) : "top level";
    if (depth() > 1 && !inMetadata)
      text =
          "tensor " + jsonQuote(entries.back().name) + ": " + jsonQuote(field);
    return text;
  }
  /// A value that has no place in the format, unless an unknown field of a
  /// tensor ignores it.
  bool scalar(const std::string &what) {
    if (ignoring())
      return true;
    return fail("has " + what + " in " + where());
  }
  bool inTensor() const { return depth() >= 2 && !inMetadata; }
  bool ignoring() const {
    return inTensor() && field != "dtype" && field != "shape" &&
           field != "data_offsets";
  }
  bool push(char kind) {
    if (depth() >= maxDepth)
      return fail("is nested deeper than " + std::to_string(maxDepth));
    stack.push_back(kind);
    return true;
  }

  std::string stack;                       // '{' or '[' of each open container
  std::vector<std::set<std::string>> keys; // of each open object
  std::string currentKey, field;
  bool inMetadata = false;
};

} // namespace

bool HeaderEvents::start_object(std::size_t) {
  if (depth() == 1 && stack[0] == '{') {
    if (!inMetadata)
      entries.push_back({currentKey, {}, {}, {}});
  } else if (depth() >= 1 && !ignoring()) {
    return fail("has an object in " + where());
  }
  keys.emplace_back();
  return push('{');
}

bool HeaderEvents::start_array(std::size_t) {
  bool list = depth() == 2 && inTensor() &&
              (field == "shape" || field == "data_offsets");
  if (!list && !ignoring())
    return fail(depth() ? "has an array in " + where() : "is not an object");
  if (list)
    (field == "shape" ? entries.back().shape : entries.back().offsets)
        .emplace();
  return push('[');
}

bool HeaderEvents::key(string_t &value) {
  if (!keys.back().insert(value).second)
    return fail("has the key " + jsonQuote(value) + " twice");
  if (depth() == 1) {
    currentKey = value;
    inMetadata = value == "__metadata__";
  } else if (depth() == 2) {
    field = value;
  }
  if (inMetadata && depth() == 2)
    metadata[value];
  return true;
}

bool HeaderEvents::number_unsigned(number_unsigned_t value) {
  bool list = depth() == 3 && inTensor() && stack[2] == '[' && !ignoring();
  if (!list)
    return scalar("the number " + std::to_string(value));
  if (value > uint64_t(INT64_MAX))
    return fail("has the number " + std::to_string(value) +
                ", which is too large, in " + where());
  (field == "shape" ? entries.back().shape : entries.back().offsets)
      ->push_back(int64_t(value));
  return true;
}

bool HeaderEvents::string(string_t &value) {
  if (inMetadata && depth() == 2) {
    metadata[field] = value;
    return true;
  }
  if (depth() != 2 || !inTensor() || field != "dtype")
    return scalar("the string " + jsonQuote(value));
  entries.back().type = dataTypeNamed(value);
  if (!entries.back().type)
    return fail("has the unknown dtype " + jsonQuote(value) + " for tensor " +
                jsonQuote(entries.back().name));
  return true;
}

/// The header's length; the file has `size` bytes, of which `start` are the
/// first.
static uint64_t headerLength(const std::string &path, const uint8_t *start,
                             uint64_t size) {
  if (size < 8)
    throw IoError(path, "is not a safetensors file: " + std::to_string(size) +
                            " bytes, at least 8 are needed");
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | start[i];
  if (length > maxHeaderBytes)
    throw IoError(path, "is not a safetensors file: header length " +
                            std::to_string(length) + " is over " +
                            std::to_string(maxHeaderBytes));
  if (length > size - 8)
    throw IoError(path, "is truncated: the safetensors header has " +
                            std::to_string(length) + " bytes, the file " +
                            std::to_string(size - 8) + " after the length");
  return length;
}

static HeaderEvents parseHeader(const std::string &path,
                                std::string_view text) {
  if (!isUtf8(text))
    throw IoError(path, "safetensors header is not UTF-8");
  // Also keeps out a byte order mark, which the JSON parser would skip.
  size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos || text[first] != '{')
    throw IoError(path, "safetensors header is not a JSON object");
  HeaderEvents events;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &events))
    throw IoError(path, events.error.empty() ? "safetensors header is not JSON"
                                             : events.error);
  return events;
}

static TensorInfo checkEntry(const std::string &path, const Entry &entry) {
  std::string tensor = "tensor " + jsonQuote(entry.name);
  if (!entry.type || !entry.shape || !entry.offsets)
    throw IoError(path, tensor + " lacks " +
                            (!entry.type    ? "dtype"
                             : !entry.shape ? "shape"
                                            : "data_offsets"));
  if (entry.offsets->size() != 2)
    throw IoError(path, tensor + " has " +
                            std::to_string(entry.offsets->size()) +
                            " data_offsets, expected 2");
  std::string what = tensor + " (" + describe(*entry.type, *entry.shape) + ")";
  auto bytes = tensorBytes(*entry.type, *entry.shape);
  if (!bytes)
    throw IoError(path, what + " has a size that overflows or is no whole "
                               "number of bytes");
  int64_t begin = (*entry.offsets)[0], end = (*entry.offsets)[1];
  if (begin > end)
    throw IoError(path, what + " ends before it begins: data_offsets [" +
                            std::to_string(begin) + ", " + std::to_string(end) +
                            "]");
  if (uint64_t(end - begin) != *bytes)
    throw IoError(path, what + " needs " + std::to_string(*bytes) +
                            " bytes, its data_offsets give " +
                            std::to_string(end - begin));
  return {*entry.type, *entry.shape, *bytes};
}

/// `text` is the JSON of a file that has `available` bytes after it.
static SafeTensorsHeader checkedHeader(const std::string &path,
                                       std::string_view text,
                                       uint64_t available) {
  HeaderEvents events = parseHeader(path, text);
  SafeTensorsHeader header;
  header.metadata = std::move(events.metadata);
  for (const Entry &entry : events.entries)
    header.infos.emplace(entry.name, checkEntry(path, entry));

  // The values must be covered exactly, each byte by one tensor.
  std::sort(
      events.entries.begin(), events.entries.end(),
      [](const Entry &a, const Entry &b) { return *a.offsets < *b.offsets; });
  uint64_t next = 0;
  for (const Entry &entry : events.entries) {
    uint64_t begin = uint64_t((*entry.offsets)[0]);
    if (begin != next)
      throw IoError(path, "tensor " + jsonQuote(entry.name) +
                              (begin < next ? " overlaps another one"
                                            : " leaves a hole before it") +
                              ": begins at byte " + std::to_string(begin) +
                              ", expected " + std::to_string(next));
    header.offsets[entry.name] = 8 + text.size() + begin;
    next = uint64_t((*entry.offsets)[1]);
  }
  if (next != available)
    throw IoError(
        path,
        std::string(next > available ? "is truncated" : "has trailing bytes") +
            ": the tensors have " + std::to_string(next) + " bytes, the file " +
            std::to_string(available) + " after the header");
  return header;
}

SafeTensorsHeader zrt::readSafeTensorsHeader(File &file) {
  uint64_t size = file.size();
  uint8_t start[8] = {};
  if (size >= 8)
    file.readAt(0, start, 8);
  uint64_t length = headerLength(file.path(), start, size);
  std::string text(length, '\0');
  file.readAt(8, text.data(), length);
  return checkedHeader(file.path(), text, size - 8 - length);
}

SafeTensorsHeader zrt::parseSafeTensorsHeader(const std::string &path,
                                              std::string_view start,
                                              uint64_t fileBytes) {
  uint64_t length =
      headerLength(path, reinterpret_cast<const uint8_t *>(start.data()),
                   start.size() < 8 ? start.size() : fileBytes);
  if (length != start.size() - 8)
    throw IoError(path, "has a safetensors header of " +
                            std::to_string(length) + " bytes, expected " +
                            std::to_string(start.size() - 8));
  return checkedHeader(path, start.substr(8), fileBytes - start.size());
}

SafeTensorsFile::SafeTensorsFile(std::unique_ptr<MappedFile> mapped)
    : TensorFile(mapped->path()), file(std::move(mapped)) {
  uint64_t length = headerLength(filePath, file->data(), file->size());
  std::string_view text(reinterpret_cast<const char *>(file->data()) + 8,
                        length);
  SafeTensorsHeader header =
      checkedHeader(filePath, text, file->size() - 8 - length);
  infos = std::move(header.infos);
  offsets = std::move(header.offsets);
  metadataStrings = std::move(header.metadata);
}

const uint8_t *SafeTensorsFile::data(std::string_view name) {
  auto it = offsets.find(name);
  if (it == offsets.end())
    unknownTensor(name);
  return file->data() + it->second;
}
