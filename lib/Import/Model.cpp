//===- Model.cpp - Reading and checking an ONNX file ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing in a model file is trusted: sizes are compared with the bytes that
// are there before anything is allocated, so memory stays bounded by the size
// of the files.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Model.h"
#include "lib/Import/TrainingForms.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

using namespace mlir;
using namespace mlir::zero::onnx_import;

// The range of the default operator set whose semantics the importer knows.
static constexpr int64_t minOpset = 1, maxOpset = 28;

std::string zero::onnx_import::printable(StringRef name) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::printEscapedString(name.take_front(200), os);
  return text + (name.size() > 200 ? "..." : "");
}

const TensorData *Model::initializer(StringRef name) const {
  auto it = initializerIndex.find(name);
  return it == initializerIndex.end() ? nullptr : &initializers[it->second];
}

int64_t Model::opsetOf(StringRef domain) const {
  if (domain.empty() || domain == "ai.onnx")
    return opset;
  for (const auto &import : proto.opset_import())
    if (import.domain() == domain)
      return import.version();
  return 0;
}

Location zero::onnx_import::nodeLoc(const Model &model, int index,
                                    MLIRContext *context) {
  Location file = FileLineColLoc::get(context, model.path, index + 1, 1);
  const std::string &name = model.graph().node(index).name();
  return name.empty() ? file
                      : Location(NameLoc::get(
                            StringAttr::get(context, printable(name)), file));
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// Appends the low `width` bytes of each element of a typed field.
template <typename Field>
static void appendElements(const Field &field, unsigned width,
                           std::vector<char> &out) {
  for (auto value : field) {
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    out.insert(out.end(), bytes, bytes + width);
  }
}

/// Collects the typed field that stores elements of `type` (onnx.proto3 says
/// which); other fields must not be there.
static void readTypedField(const onnx::TensorProto &proto, DType type,
                           std::vector<char> &out) {
  switch (type) {
  case DType::F32:
    return appendElements(proto.float_data(), 4, out);
  case DType::F64:
    return appendElements(proto.double_data(), 8, out);
  case DType::I64:
    return appendElements(proto.int64_data(), 8, out);
  case DType::U32:
  case DType::U64:
    return appendElements(proto.uint64_data(), byteSize(type), out);
  default:
    return appendElements(proto.int32_data(), byteSize(type), out);
  }
}

/// Whether there is more than one place for the elements.
static bool isStoredTwice(const onnx::TensorProto &proto,
                          const StoredData &stored) {
  bool external = proto.data_location() == onnx::TensorProto::EXTERNAL;
  int places = external + (stored.field != 0) + proto.has_raw_data();
  for (int count :
       {proto.float_data_size(), proto.double_data_size(),
        proto.int32_data_size(), proto.int64_data_size(),
        proto.uint64_data_size(), proto.string_data_size()})
    places += count != 0;
  return places > 1;
}

/// Whether `field` holds elements of `type`.
static bool fieldFits(int field, DType type) {
  if (field == onnx::TensorProto::kFloatDataFieldNumber)
    return type == DType::F32;
  if (field == onnx::TensorProto::kDoubleDataFieldNumber)
    return type == DType::F64;
  return true;
}

static bool parseUnsigned(StringRef text, uint64_t &value) {
  return !text.empty() && !text.getAsInteger(10, value);
}

/// Finds the bytes of a tensor stored outside of the model.
static LogicalResult readExternal(const onnx::TensorProto &proto,
                                  uint64_t byteCount, ExternalFiles &files,
                                  TensorData &tensor, ErrorFn error) {
  llvm::StringMap<std::string> entries;
  for (const auto &entry : proto.external_data()) {
    // One that is not known could say that the bytes are to be read otherwise.
    if (!llvm::is_contained(
            {"location", "offset", "length", "checksum", "basepath"},
            entry.key()))
      return error() << "has the unknown external data entry '"
                     << printable(entry.key()) << "'";
    if (!entries.try_emplace(entry.key(), entry.value()).second)
      return error() << "has two external data entries '"
                     << printable(entry.key()) << "'";
  }
  if (!entries.count("location"))
    return error() << "has external data without a location";
  uint64_t offset = 0, length = byteCount;
  for (auto [key, value] : {std::pair("offset", &offset), {"length", &length}})
    if (entries.count(key) && !parseUnsigned(entries[key], *value))
      return error() << "has external data with the bad " << key << " '"
                     << printable(entries[key]) << "'";
  if (length != byteCount)
    return error() << "has external data of " << length
                   << " bytes, but its type and shape need " << byteCount;
  StringRef location = entries["location"];
  llvm::Expected<FileRef> file = files.get(location);
  if (!file)
    return error() << "external data file '" << printable(location) << "' "
                   << llvm::toString(file.takeError());
  ArrayRef<char> all = (*file)->bytes();
  if (offset > all.size() || length > all.size() - offset)
    return error() << "external data at offset " << offset << ", length "
                   << length << " lies beyond the end of '"
                   << printable(location) << "' (" << all.size() << " bytes)";
  tensor.file = *file;
  tensor.bytes = all.slice(offset, length);
  return success();
}

static LogicalResult readShape(const onnx::TensorProto &proto,
                               TensorData &tensor, uint64_t &byteCount,
                               ErrorFn error) {
  if (proto.has_segment())
    return error() << "is stored in segments, which is not supported";
  std::optional<DType> type = dtypeFromOnnx(proto.data_type());
  if (!type)
    return error() << "has element type "
                   << onnx::TensorProto_DataType_Name(
                          onnx::TensorProto_DataType(proto.data_type()))
                   << " (" << proto.data_type() << "), which is not supported";
  tensor.type = *type;
  tensor.shape.assign(proto.dims().begin(), proto.dims().end());
  for (int64_t dim : tensor.shape)
    if (dim < 0)
      return error() << "has the negative dimension " << dim;
  std::optional<int64_t> count = countElements(tensor.shape);
  if (!count ||
      __builtin_mul_overflow(uint64_t(*count), byteSize(*type), &byteCount))
    return error() << "has a shape with more elements than can be counted";
  return success();
}

FailureOr<TensorData>
zero::onnx_import::readTensor(const onnx::TensorProto &proto,
                              ExternalFiles &files, ErrorFn error,
                              const StoredData &stored) {
  TensorData tensor;
  tensor.name = proto.name();
  auto tensorError = [&] {
    return error() << "tensor '" << printable(proto.name()) << "' ";
  };
  uint64_t byteCount = 0;
  if (failed(readShape(proto, tensor, byteCount, tensorError)))
    return failure();
  if (isStoredTwice(proto, stored))
    return tensorError() << "stores its elements in more than one place";
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    if (failed(readExternal(proto, byteCount, files, tensor, tensorError)))
      return failure();
    return tensor;
  }
  if (stored.field) {
    if (fieldFits(stored.field, tensor.type))
      tensor.bytes = stored.bytes;
  } else if (proto.has_raw_data()) {
    tensor.bytes = ArrayRef(proto.raw_data().data(), proto.raw_data().size());
  } else {
    tensor.owned = std::make_shared<std::vector<char>>();
    readTypedField(proto, tensor.type, *tensor.owned);
    tensor.bytes = *tensor.owned;
  }
  if (tensor.bytes.size() != byteCount)
    return tensorError() << "has " << tensor.bytes.size()
                         << " bytes of data, but its type and shape need "
                         << byteCount;
  return tensor;
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

static LogicalResult parseModel(Model &model, std::vector<StoredData> &stored,
                                ErrorFn error) {
  ArrayRef<char> bytes = model.file->bytes();
  if (bytes.empty())
    return error() << "is empty, not an ONNX model";
  WireResult result = walkModel(bytes, model.proto, stored);
  if (result == WireResult::TooLarge)
    return error() << "has more than 2 GiB besides its weights";
  if (result == WireResult::Malformed)
    return error() << "is not an ONNX model: it is truncated or in another "
                      "format";
  if (model.proto.ir_version() <= 0 || !model.proto.has_graph())
    return error() << "is not an ONNX model: it has no "
                   << (model.proto.has_graph() ? "IR version" : "graph");
  return success();
}

static LogicalResult checkVersions(Model &model, ErrorFn error) {
  if (model.proto.ir_version() > onnx::IR_VERSION)
    return error() << "has IR version " << model.proto.ir_version()
                   << "; this build knows up to " << int(onnx::IR_VERSION);
  bool found = false;
  for (const auto &import : model.proto.opset_import()) {
    if (!import.domain().empty() && import.domain() != "ai.onnx")
      continue;
    found = true;
    model.opset = import.version();
  }
  // A model of other operators alone needs none.
  bool needed = llvm::any_of(model.graph().node(), [](const auto &node) {
    return node.domain().empty() || node.domain() == "ai.onnx";
  });
  if (!found && (needed || !model.proto.opset_import_size()))
    return error() << "imports no version of the default operator set";
  if (!found)
    model.opset = minOpset;
  if (model.opset < minOpset || model.opset > maxOpset)
    return error() << "uses opset " << model.opset << "; supported are "
                   << minOpset << " to " << maxOpset;
  return success();
}

/// A name that becomes part of the IR and of the weights file.
static LogicalResult checkName(StringRef kind, StringRef name, ErrorFn error) {
  if (name.empty())
    return error() << "has an " << kind << " without a name";
  if (!llvm::json::isUTF8(name))
    return error() << "has an " << kind << " whose name is not UTF-8: '"
                   << printable(name) << "'";
  if (name.contains('\0'))
    return error() << "has an " << kind << " with a NUL character in its name '"
                   << printable(name) << "'";
  return success();
}

static LogicalResult readInitializers(Model &model,
                                      ArrayRef<StoredData> stored,
                                      ErrorFn error) {
  if (model.graph().sparse_initializer_size())
    return error() << "has sparse initializers, which are not supported";
  ExternalFiles files(model.path);
  for (auto [proto, data] :
       llvm::zip_equal(model.graph().initializer(), stored)) {
    if (failed(checkName("initializer", proto.name(), error)))
      return failure();
    unsigned index = model.initializers.size();
    if (!model.initializerIndex.try_emplace(proto.name(), index).second)
      return error() << "has two initializers named '"
                     << printable(proto.name()) << "'";
    FailureOr<TensorData> tensor = readTensor(proto, files, error, data);
    if (failed(tensor))
      return failure();
    if (data.field && !tensor->file)
      tensor->file = model.file;
    model.initializers.push_back(std::move(*tensor));
  }
  return success();
}

/// Checks that each name is made once, before its uses: then the graph is
/// acyclic, too.
static LogicalResult checkNames(Model &model, MLIRContext *context,
                                ErrorFn error) {
  const onnx::GraphProto &graph = model.graph();
  llvm::StringMap<int> madeBy; // -1: a graph input or initializer
  for (const TensorData &tensor : model.initializers)
    madeBy[tensor.name] = -1;
  llvm::StringSet<> inputs;
  for (const auto &input : graph.input()) {
    if (failed(checkName("input", input.name(), error)))
      return failure();
    if (!inputs.insert(input.name()).second)
      return error() << "has two inputs named '" << printable(input.name())
                     << "'";
    madeBy[input.name()] = -1;
  }
  for (int i = 0; i < graph.node_size(); ++i)
    for (const std::string &name : graph.node(i).output())
      if (!name.empty() && !madeBy.try_emplace(name, i).second)
        return emitError(nodeLoc(model, i, context))
               << "makes the value '" << printable(name)
               << "', which is already made elsewhere";
  for (int i = 0; i < graph.node_size(); ++i)
    for (const std::string &name : graph.node(i).input()) {
      if (name.empty())
        continue;
      ++model.uses[name];
      auto it = madeBy.find(name);
      if (it == madeBy.end())
        return emitError(nodeLoc(model, i, context))
               << "uses the value '" << printable(name)
               << "', which nothing in the graph makes";
      if (it->second >= i)
        return emitError(nodeLoc(model, i, context))
               << "uses the value '" << printable(name) << "', which only "
               << (it->second == i ? "this node itself" : "a later node")
               << " makes: the graph has a cycle or is not sorted";
    }
  for (const auto &output : graph.output()) {
    if (failed(checkName("output", output.name(), error)))
      return failure();
    ++model.uses[output.name()];
    if (!madeBy.count(output.name()))
      return error() << "has the output '" << printable(output.name())
                     << "', which nothing in the graph makes";
  }
  return success();
}

static bool hasAlgorithm(const onnx::ModelProto &model) {
  return llvm::any_of(model.training_info(), [](const auto &info) {
    return info.algorithm().node_size() != 0;
  });
}

FailureOr<std::unique_ptr<Model>>
zero::onnx_import::loadModel(StringRef path, MLIRContext *context,
                             bool withTraining) {
  auto error = [&] {
    return emitError(FileLineColLoc::get(context, path, 0, 0));
  };
  auto model = std::make_unique<Model>();
  model->path = path.str();
  llvm::Expected<FileRef> file = mapFile(path);
  if (!file) {
    error() << llvm::toString(file.takeError());
    return failure();
  }
  model->file = *file;
  std::vector<StoredData> stored;
  if (failed(parseModel(*model, stored, error)))
    return failure();
  if (withTraining && hasAlgorithm(model->proto) &&
      failed(joinAlgorithm(*model, stored, error)))
    return failure();
  if (failed(checkVersions(*model, error)) ||
      failed(readInitializers(*model, stored, error)) ||
      failed(checkNames(*model, context, error)))
    return failure();
  return model;
}
