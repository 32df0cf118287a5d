//===- Export.cpp - Trained weights back into an ONNX file ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file is walked field by field. All fields are kept as they are but those
// of initializers with new values and of tensors whose data lie in other files,
// which move into the new model's own.
//
//===----------------------------------------------------------------------===//

#include "zero/Import/Export.h"

#include "lib/Import/ExportFile.h"
#include "lib/Import/Parameters.h"
#include "lib/Import/Wire.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::zero;
using namespace mlir::zero::onnx_import;

namespace {
/// The messages that can hold tensors, and which fields of theirs hold what
/// (onnx.proto3).
enum class Message {
  Model,
  Graph,
  Node,
  Attribute,
  Tensor,
  Sparse,
  Function,
  Training,
  Other
};

/// Numbers of fields.
enum : uint64_t {
  kGraphNode = 1,
  kGraphInitializer = 5,
  kGraphInput = 11,
  kTensorDims = 1,
  kTensorType = 2,
  kTensorName = 8,
  kTensorRaw = 9,
  kTensorExternal = 13,
  kTensorLocation = 14
};

class Exporter {
public:
  Exporter(const Model &model, Parameters &parameters,
           const ExportOptions &options, const WeightLookup &weights,
           Location loc)
      : model(model), parameters(parameters), options(options),
        weights(weights), loc(loc), files(model.path) {}

  LogicalResult run();

private:
  LogicalResult chooseValues();
  LogicalResult choose(const Param &param);
  LogicalResult chooseInputs();
  std::optional<WeightTensor> findWeight(const Param &param);
  LogicalResult addValue(StringRef name, DType type, ArrayRef<int64_t> shape,
                         bool transposed, const WeightTensor &tensor);

  LogicalResult rewrite(Message kind, StringRef bytes, unsigned depth,
                        Rope &out);
  LogicalResult rewriteField(Message kind, const WireField &field,
                             unsigned depth, Rope &out);
  LogicalResult rewriteTensor(StringRef bytes, bool initializer, Rope &out);
  LogicalResult addExternal(StringRef bytes, const NewValue *value, Rope &out);
  void addInitializers(Rope &out);
  bool isDropped(Message kind, const WireField &field) const;
  LogicalResult writeFiles(const Rope &content);
  std::string dataPath() const { return options.outputPath + ".data"; }

  InFlightDiagnostic error() { return emitError(loc); }

  const Model &model;
  Parameters &parameters;
  const ExportOptions &options;
  const WeightLookup &weights;
  Location loc;
  ExternalFiles files;
  std::deque<NewValue> values;
  llvm::StringMap<const NewValue *> newValues;
  /// Names of initializers that the model has not, in order: parameters that an
  /// exporter had merged with others, and inputs that have become initializers.
  std::vector<std::string> added;
  llvm::StringSet<> merged, inputs;
  /// What the new model has beside it.
  Rope data;
  size_t missing = 0, found = 0;
  std::string firstMissing;
};
} // namespace

static Message childOf(Message kind, uint64_t number) {
  struct Child {
    Message kind;
    uint64_t number;
    Message child;
  };
  static constexpr Child children[] = {
      {Message::Model, 7, Message::Graph},
      {Message::Model, 20, Message::Training},
      {Message::Model, 25, Message::Function},
      {Message::Training, 1, Message::Graph},
      {Message::Training, 2, Message::Graph},
      {Message::Function, 7, Message::Node},
      {Message::Function, 11, Message::Attribute},
      {Message::Graph, kGraphNode, Message::Node},
      {Message::Graph, kGraphInitializer, Message::Tensor},
      {Message::Graph, 15, Message::Sparse},
      {Message::Sparse, 1, Message::Tensor},
      {Message::Sparse, 2, Message::Tensor},
      {Message::Node, 5, Message::Attribute},
      {Message::Attribute, 5, Message::Tensor},
      {Message::Attribute, 6, Message::Graph},
      {Message::Attribute, 10, Message::Tensor},
      {Message::Attribute, 11, Message::Graph},
      {Message::Attribute, 22, Message::Sparse},
      {Message::Attribute, 23, Message::Sparse}};
  for (const Child &child : children)
    if (child.kind == kind && child.number == number)
      return child.child;
  return Message::Other;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static std::optional<DType> typeNamed(StringRef name) {
  for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8,
                     DType::I16, DType::I32, DType::I64, DType::U8, DType::U16,
                     DType::U32, DType::U64, DType::Bool})
    if (safetensorsName(type) == name)
      return type;
  return std::nullopt;
}

static std::string describe(StringRef type, ArrayRef<int64_t> shape) {
  std::string text = type.str() + "[";
  for (auto [i, dim] : llvm::enumerate(shape))
    text += (i ? "x" : "") + std::to_string(dim);
  return text + "]";
}

LogicalResult Exporter::addValue(StringRef name, DType type,
                                 ArrayRef<int64_t> shape, bool transposed,
                                 const WeightTensor &tensor) {
  SmallVector<int64_t> expected(shape);
  if (transposed)
    std::reverse(expected.begin(), expected.end());
  std::optional<DType> from = typeNamed(tensor.elementType);
  bool converts = from && (*from == type || (isFloat(*from) && isFloat(type)));
  if (!converts || ArrayRef<int64_t>(tensor.shape) != ArrayRef(expected))
    return error() << "the weights of '" << printable(name) << "' are "
                   << describe(tensor.elementType, tensor.shape)
                   << ", the model has "
                   << describe(safetensorsName(type), expected)
                   << "; give weights of this model";
  NewValue value;
  value.from = *from;
  value.to = type;
  value.shape.assign(shape.begin(), shape.end());
  value.transposed = transposed;
  value.bytes = tensor.bytes;
  values.push_back(value);
  newValues[name] = &values.back();
  ++found;
  return success();
}

/// By the parameter's name, else by another name of it.
std::optional<WeightTensor> Exporter::findWeight(const Param &param) {
  std::optional<WeightTensor> tensor = weights(param.name);
  for (const std::string &name : param.tied)
    if (!tensor)
      tensor = weights(name);
  return tensor;
}

LogicalResult Exporter::choose(const Param &param) {
  const Param &source = param.copyOf ? *param.copyOf : param;
  std::optional<WeightTensor> tensor = findWeight(source);
  bool isState = param.role != Role::Constant;
  if (!tensor) {
    if (param.role == Role::Trained && !missing++)
      firstMissing = param.value;
    return success();
  }
  // A constant that only shares its name with one is left alone.
  const TensorData &old = *param.data;
  if (!isState && (!isFloat(old.type) || ArrayRef<int64_t>(old.shape) !=
                                             ArrayRef<int64_t>(tensor->shape)))
    return success();
  if (param.value != old.name) {
    merged.insert(param.value);
    added.push_back(param.value);
  }
  return addValue(param.value, old.type, old.shape, param.transposed, *tensor);
}

/// Weights of onnxruntime's training artifacts are inputs of their graphs.
LogicalResult Exporter::chooseInputs() {
  for (const auto &input : model.graph().input()) {
    if (model.initializer(input.name()))
      continue;
    std::optional<WeightTensor> tensor = weights(input.name());
    std::optional<DType> type =
        dtypeFromOnnx(input.type().tensor_type().elem_type());
    if (!tensor || !type)
      continue;
    inputs.insert(input.name());
    added.push_back(input.name());
    if (failed(addValue(input.name(), *type, tensor->shape,
                        /*transposed=*/false, *tensor)))
      return failure();
  }
  return success();
}

LogicalResult Exporter::chooseValues() {
  for (const std::unique_ptr<Param> &param : parameters.all())
    if (failed(choose(*param)))
      return failure();
  if (failed(chooseInputs()))
    return failure();
  if (!found)
    return error() << "the weights have no tensor with the name of one of the "
                      "model's parameters";
  if (missing)
    emitWarning(loc) << "the weights lack " << missing
                     << " of the model's parameters, which keep their values, "
                        "first '"
                     << printable(firstMissing) << "'";
  return success();
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// The text of field `number`, or "".
static StringRef textOf(StringRef message, uint64_t number) {
  WireField field;
  StringRef text;
  while (!message.empty() && takeField(message, field))
    if (field.number == number && field.type == WireField::Bytes)
      text = field.content;
  return text;
}

static bool isExternal(StringRef tensor) {
  WireField field;
  bool external = false;
  while (!tensor.empty() && takeField(tensor, field))
    if (field.number == kTensorLocation && field.type == WireField::Varint)
      external = field.value == onnx::TensorProto::EXTERNAL;
  return external;
}

/// Whether a tensor's field says where its elements are, or has them.
static bool holdsElements(uint64_t number) {
  return (number >= 4 && number <= 7) ||
         (number >= kTensorRaw && number <= 11) || number == kTensorExternal ||
         number == kTensorLocation;
}

/// What stays of a tensor when its elements are replaced.
static void addDescription(StringRef tensor, Rope &out) {
  WireField field;
  while (!tensor.empty() && takeField(tensor, field))
    if (!holdsElements(field.number))
      out.add(field.all);
}

static void addEntry(StringRef key, const std::string &value, Rope &out) {
  out.addText(encodeBytes(kTensorExternal,
                          encodeBytes(1, key) + encodeBytes(2, value)));
}

/// Moves the elements into the new model's own file.
LogicalResult Exporter::addExternal(StringRef bytes, const NewValue *value,
                                    Rope &out) {
  onnx::TensorProto proto;
  if (!proto.ParseFromArray(bytes.data(), int(bytes.size())))
    return error() << "is not an ONNX model: a tensor cannot be read";
  uint64_t size = 0;
  // Where tensors are large, mapping them asks for whole pages.
  auto place = [&](uint64_t length) {
    data.align(length >= (1 << 20) ? 4096 : 64);
    size = length;
    return data.size();
  };
  uint64_t offset;
  if (value) {
    offset = place(value->size());
    data.add(value);
  } else {
    FailureOr<TensorData> tensor =
        readTensor(proto, files, [&] { return error(); });
    if (failed(tensor))
      return failure();
    offset = place(tensor->bytes.size());
    data.add(StringRef(tensor->bytes.data(), tensor->bytes.size()));
  }
  addDescription(bytes, out);
  addEntry("location", llvm::sys::path::filename(dataPath()).str(), out);
  addEntry("offset", std::to_string(offset), out);
  addEntry("length", std::to_string(size), out);
  out.addText(encodeNumber(kTensorLocation, onnx::TensorProto::EXTERNAL));
  return success();
}

LogicalResult Exporter::rewriteTensor(StringRef bytes, bool initializer,
                                      Rope &out) {
  const NewValue *value =
      initializer ? newValues.lookup(textOf(bytes, kTensorName)) : nullptr;
  if (isExternal(bytes))
    return addExternal(bytes, value, out);
  if (!value) {
    out.add(bytes);
    return success();
  }
  addDescription(bytes, out);
  Rope raw;
  raw.add(value);
  out.addField(kTensorRaw, std::move(raw));
  return success();
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

static uint64_t onnxNumber(DType type) {
  uint64_t number = 1;
  while (dtypeFromOnnx(int32_t(number)) != type)
    ++number;
  return number;
}

/// Initializers that the model did not have.
void Exporter::addInitializers(Rope &out) {
  for (const std::string &name : added) {
    const NewValue *value = newValues.lookup(name);
    Rope tensor, raw;
    for (int64_t dim : value->shape)
      tensor.addText(encodeNumber(kTensorDims, uint64_t(dim)));
    tensor.addText(encodeNumber(kTensorType, onnxNumber(value->to)));
    tensor.addText(encodeBytes(kTensorName, name));
    raw.add(value);
    tensor.addField(kTensorRaw, std::move(raw));
    out.addField(kGraphInitializer, std::move(tensor));
  }
}

/// Whether a field of the model's graph stands for what an initializer is now.
bool Exporter::isDropped(Message kind, const WireField &field) const {
  if (kind != Message::Graph || field.type != WireField::Bytes)
    return false;
  if (field.number == kGraphInput)
    return inputs.contains(textOf(field.content, 1));
  return field.number == kGraphNode && textOf(field.content, 4) == "Identity" &&
         merged.contains(textOf(field.content, 2));
}

LogicalResult Exporter::rewriteField(Message kind, const WireField &field,
                                     unsigned depth, Rope &out) {
  bool top = depth == 1;
  if (top && isDropped(kind, field))
    return success();
  Message child = field.type == WireField::Bytes ? childOf(kind, field.number)
                                                 : Message::Other;
  if (child == Message::Other) {
    out.add(field.all);
    return success();
  }
  Rope content;
  LogicalResult done =
      child == Message::Tensor
          ? rewriteTensor(field.content, top && kind == Message::Graph, content)
          : rewrite(child, field.content, depth + 1, content);
  if (failed(done))
    return failure();
  // What was not changed keeps its bytes, whatever its encoding.
  if (content.isPlain(field.content))
    out.add(field.all);
  else
    out.addField(field.number, std::move(content));
  return success();
}

LogicalResult Exporter::rewrite(Message kind, StringRef bytes, unsigned depth,
                                Rope &out) {
  if (depth > 100)
    return error() << "nests messages deeper than 100, which is not supported";
  StringRef rest = bytes;
  WireField field;
  while (!rest.empty()) {
    if (!takeField(rest, field))
      return error() << "is not an ONNX model: it is truncated or in another "
                        "format";
    if (failed(rewriteField(kind, field, depth, out)))
      return failure();
  }
  if (depth == 1 && kind == Message::Graph)
    addInitializers(out);
  return success();
}

//===----------------------------------------------------------------------===//
// The whole file
//===----------------------------------------------------------------------===//

LogicalResult Exporter::writeFiles(const Rope &content) {
  std::vector<std::pair<std::string, const Rope *>> outputs;
  if (data.size())
    outputs.emplace_back(dataPath(), &data);
  outputs.emplace_back(options.outputPath, &content);
  for (const auto &[path, rope] : outputs)
    if (llvm::sys::fs::equivalent(path, options.modelPath))
      return error() << "'" << path
                     << "' is the model that is exported; write to another "
                        "file";
  if (llvm::Error failed = replaceFiles(outputs))
    return error() << "cannot write " << llvm::toString(std::move(failed));
  return success();
}

LogicalResult Exporter::run() {
  if (failed(chooseValues()))
    return failure();
  ArrayRef<char> bytes = model.file->bytes();
  Rope content;
  if (failed(rewrite(Message::Model, StringRef(bytes.data(), bytes.size()),
                     /*depth=*/0, content)))
    return failure();
  return writeFiles(content);
}

LogicalResult zero::exportOnnx(MLIRContext &context,
                               const ExportOptions &options,
                               const WeightLookup &weights) {
  Location loc = FileLineColLoc::get(&context, options.modelPath, 0, 0);
  FailureOr<std::unique_ptr<Model>> model =
      loadModel(options.modelPath, &context);
  if (failed(model))
    return failure();
  FailureOr<std::unique_ptr<Parameters>> parameters = failure();
  {
    // The import has said what there is to remark on.
    ScopedDiagnosticHandler quiet(&context, [](Diagnostic &diagnostic) {
      return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
    });
    parameters = Parameters::decide(**model, options.import, &context);
  }
  if (failed(parameters))
    return failure();
  return Exporter(**model, **parameters, options, weights, loc).run();
}
