//===- CheckpointIndex.cpp - The index of a checkpoint --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// JSON out and in. The text is written by hand, one tensor and one file a line,
// so that two indexes can be compared line by line.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Checkpoint.h"

#include "runtime/io/Files.h"
#include "runtime/io/Hash.h"
#include "runtime/io/Json.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

using namespace zrt;
using Json = nlohmann::ordered_json;

static constexpr const char *formatName = "zero-checkpoint";
static constexpr int64_t formatVersion = 2;
static constexpr const char *layoutNames[] = {"whole", "rows", "per_rank"};
static constexpr const char *roleNames[] = {"trained", "frozen", "state",
                                            "buffer"};
/// Before and after the hash in the last line.
static constexpr std::string_view trailerBegin = "\"index_hash\": \"";
static constexpr std::string_view trailerEnd = "\"}\n";

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

uint64_t StateTensor::bytes() const {
  return tensorBytes(type, shape).value_or(0);
}

int64_t StateTensor::firstRow(uint32_t part) const {
  if (layout != StateLayout::Rows)
    return 0;
  return std::min(shape[0], int64_t(part) * chunkRows);
}

int64_t StateTensor::numRows(uint32_t part) const {
  if (layout != StateLayout::Rows)
    return shape.empty() ? 1 : shape[0];
  return std::min(shape[0] - firstRow(part), chunkRows);
}

uint64_t StateTensor::rowBytes() const {
  if (shape.empty())
    return bytes();
  return shape[0] ? bytes() / uint64_t(shape[0]) : 0;
}

uint64_t StateTensor::partBegin(uint32_t part) const {
  return uint64_t(firstRow(part)) * rowBytes();
}

uint64_t StateTensor::partBytes(uint32_t part) const {
  return uint64_t(numRows(part)) * rowBytes();
}

std::vector<int64_t> StateTensor::partShape(uint32_t part) const {
  std::vector<int64_t> result = shape;
  if (layout == StateLayout::Rows)
    result[0] = numRows(part);
  return result;
}

std::string zrt::checkpointFileName(uint32_t rank) {
  char name[32];
  std::snprintf(name, sizeof(name), "rank-%05u.safetensors", rank);
  return name;
}

//===----------------------------------------------------------------------===//
// Out
//===----------------------------------------------------------------------===//

static std::string factsText(const RunFacts &facts) {
  Json plan = {{"model", facts.model},
               {"optimizer", facts.optimizer},
               {"precision", facts.precision},
               {"ranks", facts.ranks},
               {"stage", facts.stage},
               {"grid", facts.grid},
               {"micro_batches", facts.microBatches}};
  std::string text =
      "\"step\": " + std::to_string(facts.step) +
      ",\n\"samples\": " + std::to_string(facts.samples) +
      ",\n\"seed\": " + (facts.seed ? std::to_string(*facts.seed) : "null") +
      ",\n\"plan\": " + plan.dump();
  return text;
}

static Json tensorJson(const StateTensor &tensor) {
  Json json = {{"name", tensor.name},
               {"role", tensor.role},
               {"dtype", std::string(name(tensor.type))},
               {"shape", tensor.shape},
               {"layout", layoutNames[size_t(tensor.layout)]}};
  if (!tensor.of.empty())
    json["of"] = tensor.of;
  if (!tensor.tied.empty())
    json["tied"] = tensor.tied;
  if (tensor.layout != StateLayout::Whole)
    json["parts"] = tensor.parts;
  if (tensor.layout == StateLayout::Rows)
    json["chunk_rows"] = tensor.chunkRows;
  return json;
}

static Json pieceJson(const StateTensor &tensor,
                      const Checkpoint::Piece &piece) {
  Json json = {{"tensor", tensor.name}, {"hash", piece.hash}};
  if (tensor.layout != StateLayout::Whole)
    json["part"] = piece.part;
  if (tensor.layout == StateLayout::Rows)
    json["rows"] = {tensor.firstRow(piece.part),
                    tensor.firstRow(piece.part) + tensor.numRows(piece.part)};
  return json;
}

std::string zrt::writeCheckpointIndex(const CheckpointIndex &index) {
  std::string text = std::string("{\"format\": \"") + formatName +
                     "\",\n\"version\": " + std::to_string(formatVersion) +
                     ",\n" + factsText(index.facts) + ",\n\"tensors\": [";
  for (const StateTensor &tensor : index.tensors)
    text += (text.back() == '[' ? "\n" : ",\n") + tensorJson(tensor).dump();
  text += "],\n\"files\": [";
  for (const Checkpoint::FileEntry &file : index.files) {
    text += text.back() == '[' ? "\n" : ",\n";
    text += "{\"name\": " + jsonQuote(file.name) +
            ", \"bytes\": " + std::to_string(file.bytes) +
            ", \"header_hash\": \"" + file.headerHash + "\", \"pieces\": [";
    for (const Checkpoint::Piece &piece : file.pieces)
      text += (text.back() == '[' ? "\n  " : ",\n  ") +
              pieceJson(index.tensors[piece.tensor], piece).dump();
    text += "]}";
  }
  text += "],\n";
  Hash hash;
  hash.update(text);
  return (text += trailerBegin) + hash.text() + std::string(trailerEnd);
}

//===----------------------------------------------------------------------===//
// In
//===----------------------------------------------------------------------===//

namespace {

/// A value of the index and where it stands, for messages.
class Value {
public:
  Value(const std::string &path, const Json &json, std::string where)
      : path(path), json(json), where(std::move(where)) {}

  [[noreturn]] void fail(const std::string &what) const {
    throw IoError(path, "the index is inconsistent: " + where + " " + what);
  }
  bool has(const char *key) const {
    return json.is_object() && json.contains(key) && !json[key].is_null();
  }
  Value at(const char *key) const {
    if (!has(key))
      fail(std::string("lacks \"") + key + "\"");
    return {path, json[key], where + "." + key};
  }
  std::vector<Value> list(const char *key) const {
    Value array = at(key);
    if (!array.json.is_array())
      array.fail("is not a list");
    std::vector<Value> values;
    for (size_t i = 0; i < array.json.size(); ++i)
      values.emplace_back(path, array.json[i],
                          array.where + "[" + std::to_string(i) + "]");
    return values;
  }
  std::string text() const {
    if (!json.is_string())
      fail("is not a string");
    return json.get<std::string>();
  }
  /// An integer in [low, high].
  int64_t number(int64_t low, int64_t high = INT64_MAX) const {
    bool large =
        json.is_number_unsigned() && json.get<uint64_t>() > uint64_t(INT64_MAX);
    if (!json.is_number_integer() || large)
      fail("is not an integer");
    int64_t value = json.get<int64_t>();
    if (value < low || value > high)
      fail("is " + std::to_string(value) + ", outside [" + std::to_string(low) +
           ", " + std::to_string(high) + "]");
    return value;
  }
  /// The place of a string among `names`.
  template <typename Names>
  size_t oneOf(const Names &names) const {
    std::string value = text();
    auto found = std::find(std::begin(names), std::end(names), value);
    if (found == std::end(names))
      fail("is the unknown " + jsonQuote(value));
    return size_t(found - std::begin(names));
  }

private:
  const std::string &path;
  const Json &json;
  std::string where;
};

} // namespace

/// Ranks that a file can speak of: more than there are machines for.
static constexpr int64_t maxRanks = 1 << 20;

static RunFacts factsOf(const Value &root) {
  RunFacts facts;
  facts.step = root.at("step").number(0);
  facts.samples = root.at("samples").number(0);
  if (root.has("seed"))
    facts.seed = root.at("seed").number(0);
  Value plan = root.at("plan");
  facts.model = plan.at("model").text();
  facts.optimizer = plan.at("optimizer").text();
  facts.precision = plan.at("precision").text();
  facts.ranks = uint32_t(plan.at("ranks").number(1, maxRanks));
  facts.stage = uint32_t(plan.at("stage").number(0, 3));
  for (const Value &size : plan.list("grid"))
    facts.grid.push_back(uint32_t(size.number(1, maxRanks)));
  facts.microBatches = plan.at("micro_batches").number(1);
  return facts;
}

static StateTensor tensorOf(const Value &value) {
  StateTensor tensor;
  tensor.name = value.at("name").text();
  tensor.role = roleNames[value.at("role").oneOf(roleNames)];
  if (value.has("of"))
    tensor.of = value.at("of").text();
  if (value.has("tied"))
    for (const Value &other : value.list("tied"))
      tensor.tied.push_back(other.text());
  auto type = dataTypeNamed(value.at("dtype").text());
  if (!type || *type > DataType::F8E5M2FNUZ)
    value.at("dtype").fail("is no element type of a plan");
  tensor.type = *type;
  for (const Value &dim : value.list("shape"))
    tensor.shape.push_back(dim.number(0));
  if (!tensorBytes(tensor.type, tensor.shape))
    value.at("shape").fail("overflows");
  tensor.layout = StateLayout(value.at("layout").oneOf(layoutNames));
  if (tensor.layout != StateLayout::Whole)
    tensor.parts = uint32_t(value.at("parts").number(1, maxRanks));
  if (tensor.layout != StateLayout::Rows)
    return tensor;
  if (tensor.shape.empty())
    value.at("layout").fail("cuts a scalar");
  // The parts cover all rows, so that no hole can stay unseen.
  tensor.chunkRows = value.at("chunk_rows").number(0, INT64_MAX / maxRanks);
  if (tensor.chunkRows * int64_t(tensor.parts) < tensor.shape[0])
    value.at("chunk_rows").fail("leaves rows out");
  return tensor;
}

/// The index without its last line, which holds the hash of it.
static std::string_view checkedText(const std::string &path,
                                    const std::string &text) {
  size_t trailer = trailerBegin.size() + Hash::textSize + trailerEnd.size();
  std::string_view all = text;
  if (all.size() < trailer)
    throw IoError(path, "is truncated: " + std::to_string(text.size()) +
                            " bytes are no index of a checkpoint");
  std::string_view body = all.substr(0, all.size() - trailer);
  std::string_view last = all.substr(body.size());
  Hash hash;
  hash.update(body);
  std::string expected =
      std::string(trailerBegin) + hash.text() + std::string(trailerEnd);
  if (last != expected)
    throw IoError(path, "the index is damaged: its last line does not hold "
                        "the hash of the lines before, " +
                            hash.text());
  return all;
}

/// The rows are said for readers; here they follow from the part.
static void checkRows(const Value &piece, const StateTensor &tensor,
                      uint32_t part) {
  int64_t first = tensor.firstRow(part);
  int64_t end = first + tensor.numRows(part);
  std::vector<Value> rows = piece.list("rows");
  if (rows.size() != 2 || rows[0].number(0) != first ||
      rows[1].number(0) != end)
    piece.at("rows").fail("is not [" + std::to_string(first) + ", " +
                          std::to_string(end) + "], the rows of part " +
                          std::to_string(part));
}

static std::vector<Checkpoint::FileEntry>
filesOf(const Value &root, const std::vector<StateTensor> &tensors) {
  std::map<std::string, size_t> byName;
  for (size_t i = 0; i < tensors.size(); ++i)
    byName[tensors[i].name] = i;
  std::set<std::pair<size_t, uint32_t>> seen;
  std::set<std::string> names;
  std::vector<Checkpoint::FileEntry> files;
  for (const Value &value : root.list("files")) {
    Checkpoint::FileEntry file;
    file.name = value.at("name").text();
    if (!isPlainName(file.name) || !names.insert(file.name).second)
      value.at("name").fail("is " + jsonQuote(file.name) +
                            ", which is not the plain name of another file");
    file.bytes = uint64_t(value.at("bytes").number(0));
    file.headerHash = value.at("header_hash").text();
    for (const Value &piece : value.list("pieces")) {
      auto found = byName.find(piece.at("tensor").text());
      if (found == byName.end())
        piece.at("tensor").fail("is not in the list of tensors");
      const StateTensor &tensor = tensors[found->second];
      uint32_t part = 0;
      if (tensor.layout != StateLayout::Whole)
        part = uint32_t(piece.at("part").number(0, tensor.parts - 1));
      if (!seen.insert({found->second, part}).second)
        piece.fail("is there twice");
      if (tensor.layout == StateLayout::Rows)
        checkRows(piece, tensor, part);
      file.pieces.push_back({found->second, part, piece.at("hash").text()});
    }
    files.push_back(std::move(file));
  }
  // Empty parts are the last ones.
  for (size_t i = 0; i < tensors.size(); ++i)
    for (uint32_t part = 0;
         part < tensors[i].parts && tensors[i].partBytes(part); ++part)
      if (!seen.count({i, part}))
        root.fail("has no piece for part " + std::to_string(part) +
                  " of tensor " + jsonQuote(tensors[i].name));
  return files;
}

CheckpointIndex zrt::readCheckpointIndex(const std::string &path,
                                         const std::string &text) {
  std::string_view all = checkedText(path, text);
  Json json = Json::parse(all.begin(), all.end(), nullptr, false);
  Value root(path, json, "the index");
  if (json.is_discarded())
    throw IoError(path, "the index is not JSON");
  if (root.at("format").text() != formatName)
    root.at("format").fail("is not \"zero-checkpoint\"");
  int64_t version = root.at("version").number(0);
  if (version != formatVersion)
    throw IoError(path, "has format version " + std::to_string(version) +
                            ", this program reads version " +
                            std::to_string(formatVersion));
  CheckpointIndex index;
  index.facts = factsOf(root);
  std::set<std::string> names;
  for (const Value &value : root.list("tensors")) {
    index.tensors.push_back(tensorOf(value));
    if (!names.insert(index.tensors.back().name).second)
      value.at("name").fail("is there twice");
  }
  index.files = filesOf(root, index.tensors);
  return index;
}
