//===- HuggingFace.cpp - Weights as Hugging Face has them -----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The split is that of huggingface_hub's split_torch_state_dict_into_shards,
// the text of the index that of its json.dumps(..., indent=2, sort_keys=True).
//
//===----------------------------------------------------------------------===//

#include "runtime/io/HuggingFace.h"

#include "runtime/io/Json.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

using namespace zrt;

static constexpr const char *singleName = "model.safetensors";
static constexpr const char *indexName = "model.safetensors.index.json";
/// As the header of a safetensors file.
static constexpr uint64_t maxIndexBytes = 100000000;

//===----------------------------------------------------------------------===//
// Out
//===----------------------------------------------------------------------===//

std::vector<std::vector<size_t>>
zrt::huggingFaceShards(const std::vector<SafeTensorsWriter::Tensor> &tensors,
                       uint64_t limit) {
  std::vector<std::vector<size_t>> shards;
  std::vector<size_t> open;
  uint64_t used = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    uint64_t bytes = tensorBytes(tensors[i].type, tensors[i].shape).value_or(0);
    if (bytes > limit) {
      shards.push_back({i});
      continue;
    }
    if (used + bytes > limit) {
      shards.push_back(std::move(open));
      open.clear();
      used = 0;
    }
    open.push_back(i);
    used += bytes;
  }
  if (!open.empty() || shards.empty())
    shards.push_back(std::move(open));
  return shards;
}

static std::string shardName(size_t number, size_t count) {
  if (count == 1)
    return singleName;
  char name[64];
  std::snprintf(name, sizeof(name), "model-%05zu-of-%05zu.safetensors", number,
                count);
  return name;
}

static bool isWeightsName(const std::string &name) {
  return name == singleName || name == indexName ||
         (!name.compare(0, 6, "model-") && name.size() > 12 &&
          !name.compare(name.size() - 12, 12, ".safetensors"));
}

std::vector<std::string> zrt::huggingFaceOutputs(const std::string &folder) {
  return {folder + "/" + singleName, folder + "/" + indexName};
}

void zrt::checkHuggingFaceFolder(const std::string &path) {
  Folder folder = Folder::openOrMake(path);
  for (const std::string &name : folder.list())
    if (isWeightsName(name))
      throw IoError(path, "has weights already (" + name +
                              "); write to another folder");
}

static void writeIndex(const std::string &folder,
                       const std::map<std::string, std::string> &files,
                       uint64_t totalBytes) {
  std::string text = "{\n  \"metadata\": {\n    \"total_size\": " +
                     std::to_string(totalBytes) + "\n  },\n  \"weight_map\": {";
  for (const auto &[tensor, file] : files)
    text += (text.back() == '{' ? "\n    " : ",\n    ") + jsonQuote(tensor) +
            ": " + jsonQuote(file);
  text += "\n  }\n}\n";
  AtomicFile index(folder + "/" + indexName);
  index.write(text);
  index.commit();
}

void zrt::writeHuggingFace(
    const std::string &folder,
    const std::vector<SafeTensorsWriter::Tensor> &tensors, uint64_t shardBytes,
    const StreamTensor &stream) {
  checkHuggingFaceFolder(folder);
  auto shards = huggingFaceShards(tensors, shardBytes);
  std::map<std::string, std::string> files;
  uint64_t totalBytes = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    std::string name = shardName(i + 1, shards.size());
    std::vector<SafeTensorsWriter::Tensor> declared;
    for (size_t tensor : shards[i]) {
      declared.push_back(tensors[tensor]);
      files[tensors[tensor].name] = name;
      totalBytes +=
          tensorBytes(tensors[tensor].type, tensors[tensor].shape).value_or(0);
    }
    SafeTensorsWriter writer(folder + "/" + name, declared, {{"format", "pt"}});
    for (size_t tensor : shards[i])
      stream(tensor, [&](const void *data, size_t bytes) {
        writer.write(data, bytes);
      });
    writer.commit();
  }
  if (shards.size() > 1)
    writeIndex(folder, files, totalBytes);
}

//===----------------------------------------------------------------------===//
// In
//===----------------------------------------------------------------------===//

namespace {

/// All files of an index as one.
class IndexedWeights : public TensorFile {
public:
  IndexedWeights(const Folder &folder, const std::string &name,
                 const std::function<void(const std::string &)> &note);

  const uint8_t *data(std::string_view name) override {
    auto found = owner.find(name);
    if (found == owner.end())
      unknownTensor(name);
    return found->second->data(name);
  }

private:
  std::map<std::string, std::unique_ptr<SafeTensorsFile>> files;
  std::map<std::string, SafeTensorsFile *, std::less<>> owner;
};

} // namespace

namespace {
struct WeightIndex {
  std::map<std::string, std::string> files; // of tensors
  std::optional<double> totalSize;          // in bytes
};
} // namespace

/// The map from tensors to files; a name that is there twice is an error.
static WeightIndex readIndex(const std::string &path, const std::string &text) {
  using Json = nlohmann::json;
  std::set<std::string> seen;
  std::string twice;
  auto watch = [&](int depth, Json::parse_event_t event, Json &value) {
    if (event == Json::parse_event_t::key && depth == 2 &&
        !seen.insert(value.get<std::string>()).second && twice.empty())
      twice = value.get<std::string>();
    return depth < 4; // nothing that is read lies deeper
  };
  Json json = isUtf8(text) ? Json::parse(text, watch, false)
                           : Json(Json::value_t::discarded);
  if (json.is_discarded() || !json.is_object())
    throw IoError(path, "is not a JSON object");
  if (!twice.empty())
    throw IoError(path, "has the key " + jsonQuote(twice) + " twice");
  auto found = json.find("weight_map");
  if (found == json.end() || !found->is_object())
    throw IoError(path, "has no \"weight_map\"");
  WeightIndex index;
  Json::json_pointer size("/metadata/total_size");
  if (json.contains(size) && json[size].is_number())
    index.totalSize = json[size].get<double>();
  for (const auto &[tensor, file] : found->items()) {
    if (!file.is_string() || !isPlainName(file.get<std::string>()))
      throw IoError(path,
                    "tensor " + jsonQuote(tensor) + " is in " +
                        jsonQuote(file.is_string() ? file.get<std::string>()
                                                   : file.dump()) +
                        ", which is not the name of a file beside it");
    index.files[tensor] = file.get<std::string>();
  }
  return index;
}

IndexedWeights::IndexedWeights(
    const Folder &folder, const std::string &name,
    const std::function<void(const std::string &)> &note)
    : TensorFile(folder.pathOf(name)) {
  File file = folder.openFile(name);
  WeightIndex index = readIndex(filePath, readAll(file, maxIndexBytes));
  uint64_t bytes = 0;
  for (const auto &[tensor, fileName] : index.files) {
    auto &file = files[fileName];
    if (!file)
      file = std::make_unique<SafeTensorsFile>(
          std::make_unique<MappedFile>(folder.openFile(fileName)));
    const TensorInfo *info = file->find(tensor);
    if (!info)
      throw IoError(file->path(), "lacks tensor " + jsonQuote(tensor) +
                                      ", which " + name + " says is in it");
    infos.emplace(tensor, *info);
    owner[tensor] = file.get();
    bytes += info->bytes;
  }
  if (note && index.totalSize && *index.totalSize != double(bytes))
    note(filePath + ": \"total_size\" is " + jsonNumber(*index.totalSize) +
         ", but the tensors it lists have " + std::to_string(bytes) +
         " bytes; see that index and files are of one save, and complete");
}

std::unique_ptr<TensorFile>
zrt::openWeights(const std::string &path,
                 const std::function<void(const std::string &)> &note) {
  if (Folder::exists(path)) {
    Folder folder = Folder::open(path);
    std::vector<std::string> names = folder.list();
    auto has = [&](const char *name) {
      return std::binary_search(names.begin(), names.end(), name);
    };
    if (has(indexName))
      return std::make_unique<IndexedWeights>(folder, indexName, note);
    if (!has(singleName))
      throw IoError(path, std::string("is a folder without ") + indexName +
                              " and " + singleName);
    return std::make_unique<SafeTensorsFile>(
        std::make_unique<MappedFile>(folder.openFile(singleName)));
  }
  if (path.size() > 5 && !path.compare(path.size() - 5, 5, ".json")) {
    size_t slash = path.rfind('/');
    std::string parent =
        slash == path.npos ? "." : path.substr(0, slash ? slash : 1);
    return std::make_unique<IndexedWeights>(
        Folder::open(parent),
        slash == path.npos ? path : path.substr(slash + 1), note);
  }
  return openTensorFile(path);
}
