//===- OrtCheckpoint.cpp - onnxruntime's training checkpoints -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reader of the few tables that hold parameters and states. No parameter and
// no state may be listed twice and no bytes be those of two tensors, so that
// time and memory are linear in the size of the file.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/OrtCheckpoint.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

namespace {
/// Numbers of fields, in the order of the schema.
enum : unsigned {
  kCheckpointModule = 1,
  kCheckpointOptimizers = 2,
  kModuleTrained = 0,
  kModuleFrozen = 1,
  kGroupStep = 1,
  kGroupStates = 3,
  kStateParam = 0,
  kStateMoments = 1,
  kTensorName = 0,
  kTensorDims = 2,
  kTensorType = 3,
  kTensorRaw = 4
};

/// A FlatBuffer. Positions count from its beginning; all reads are checked, and
/// nothing stands for what is not there or lies outside.
class Buffer {
public:
  explicit Buffer(ArrayRef<char> bytes) : bytes(bytes) {}

  template <typename T>
  std::optional<T> read(uint64_t at) const {
    if (at > bytes.size() || bytes.size() - at < sizeof(T))
      return std::nullopt;
    return llvm::support::endian::read<T, llvm::endianness::little>(
        bytes.data() + at);
  }
  /// Where the offset at `at` points.
  std::optional<uint64_t> follow(uint64_t at) const {
    auto offset = read<uint32_t>(at);
    if (!offset || !*offset || *offset > bytes.size() - at)
      return std::nullopt;
    return at + *offset;
  }
  /// Where field `number` of the table at `table` is.
  std::optional<uint64_t> field(uint64_t table, unsigned number) const;
  /// The elements of the vector at `at`, each of `width` bytes.
  std::optional<ArrayRef<char>> vector(uint64_t at, uint64_t width) const;

private:
  ArrayRef<char> bytes;
};

class CheckpointReader {
public:
  CheckpointReader(OrtCheckpoint &checkpoint, ErrorFn error)
      : checkpoint(checkpoint), buffer(checkpoint.file->bytes()), error(error) {
  }

  LogicalResult read();

private:
  LogicalResult readTensors(uint64_t module, unsigned field,
                            std::vector<TensorData> &tensors);
  LogicalResult readTensor(uint64_t table, TensorData &tensor);
  LogicalResult forEach(uint64_t table, unsigned number, const Twine &what,
                        function_ref<LogicalResult(uint64_t)> read);
  LogicalResult readGroup(uint64_t group);
  LogicalResult readState(uint64_t table, OrtState &state);
  std::optional<std::string> readName(uint64_t table, unsigned field);
  LogicalResult malformed(const Twine &what) {
    return error() << "is not a training checkpoint of onnxruntime: " << what;
  }

  OrtCheckpoint &checkpoint;
  Buffer buffer;
  ErrorFn error;
  llvm::StringSet<> names, stateNames;
  /// Bytes of the tensors so far: so much of the file, if none overlap.
  uint64_t taken = 0;
};
} // namespace

std::optional<uint64_t> Buffer::field(uint64_t table, unsigned number) const {
  auto back = read<int32_t>(table);
  // The table of offsets may lie before or behind.
  if (!back || int64_t(table) - *back < 0)
    return std::nullopt;
  uint64_t offsets = uint64_t(int64_t(table) - *back);
  auto size = read<uint16_t>(offsets);
  uint64_t entry = 4 + 2 * uint64_t(number);
  if (!size || *size < entry + 2)
    return std::nullopt;
  auto offset = read<uint16_t>(offsets + entry);
  if (!offset || !*offset)
    return std::nullopt;
  return table + *offset;
}

std::optional<ArrayRef<char>> Buffer::vector(uint64_t at,
                                             uint64_t width) const {
  auto count = read<uint32_t>(at);
  if (!count || (bytes.size() - at - 4) / width < *count)
    return std::nullopt;
  return bytes.slice(at + 4, *count * width);
}

/// The content of vector field `number`, empty where the table has none.
static std::optional<ArrayRef<char>> vectorOf(const Buffer &buffer,
                                              uint64_t table, unsigned number,
                                              uint64_t width) {
  auto field = buffer.field(table, number);
  if (!field)
    return ArrayRef<char>();
  auto at = buffer.follow(*field);
  return at ? buffer.vector(*at, width) : std::nullopt;
}

std::optional<std::string> CheckpointReader::readName(uint64_t table,
                                                      unsigned field) {
  auto name = vectorOf(buffer, table, field, 1);
  if (!name || name->empty())
    return std::nullopt;
  taken += name->size();
  std::string text(name->data(), name->size());
  bool isText = llvm::json::isUTF8(text) && !StringRef(text).contains('\0');
  return isText ? std::optional(std::move(text)) : std::nullopt;
}

LogicalResult CheckpointReader::readTensor(uint64_t table, TensorData &tensor) {
  auto nameBytes = vectorOf(buffer, table, kTensorName, 1);
  auto dims = vectorOf(buffer, table, kTensorDims, 8);
  auto raw = vectorOf(buffer, table, kTensorRaw, 1);
  if (!nameBytes || !dims || !raw)
    return malformed("a tensor lies beyond its end");
  std::optional<std::string> name = readName(table, kTensorName);
  taken += dims->size() + raw->size();
  if (taken > checkpoint.file->bytes().size())
    return malformed("its tensors overlap");
  if (!name)
    return malformed("a tensor has no name that is text");
  tensor.name = std::move(*name);
  auto typeAt = buffer.field(table, kTensorType);
  std::optional<DType> type =
      dtypeFromOnnx(typeAt ? buffer.read<int32_t>(*typeAt).value_or(0) : 0);
  if (!type)
    return error() << "has the tensor '" << printable(tensor.name)
                   << "' of an element type that is not supported";
  tensor.type = *type;
  for (size_t at = 0; at < dims->size(); at += 8)
    tensor.shape.push_back(
        llvm::support::endian::read<int64_t, llvm::endianness::little>(
            dims->data() + at));
  std::optional<int64_t> count = countElements(tensor.shape);
  uint64_t bytes = 0;
  if (!count ||
      __builtin_mul_overflow(uint64_t(*count), byteSize(*type), &bytes) ||
      bytes != raw->size())
    return error() << "has " << raw->size() << " bytes for the tensor '"
                   << printable(tensor.name)
                   << "', which do not fit its type and shape; weights beside "
                      "the checkpoint are not supported";
  tensor.bytes = *raw;
  tensor.file = checkpoint.file;
  return success();
}

/// Calls `read` with the place of each table that vector field `number` lists.
/// Errors call each a `what`.
LogicalResult
CheckpointReader::forEach(uint64_t table, unsigned number, const Twine &what,
                          function_ref<LogicalResult(uint64_t)> read) {
  auto entries = vectorOf(buffer, table, number, 4);
  if (!entries)
    return malformed("its list of " + what + "s lies beyond its end");
  uint64_t first = entries->data() - checkpoint.file->bytes().data();
  for (uint64_t i = 0; i < entries->size(); i += 4) {
    auto entry = buffer.follow(first + i);
    if (!entry)
      return malformed("a " + what + " lies beyond its end");
    if (failed(read(*entry)))
      return failure();
  }
  return success();
}

LogicalResult CheckpointReader::readTensors(uint64_t module, unsigned field,
                                            std::vector<TensorData> &tensors) {
  return forEach(module, field, "parameter", [&](uint64_t table) {
    TensorData &tensor = tensors.emplace_back();
    if (failed(readTensor(table, tensor)))
      return failure();
    if (!names.insert(tensor.name).second)
      return LogicalResult(error() << "has two tensors named '"
                                   << printable(tensor.name) << "'");
    return success();
  });
}

LogicalResult CheckpointReader::readState(uint64_t table, OrtState &state) {
  std::optional<std::string> param = readName(table, kStateParam);
  if (taken > checkpoint.file->bytes().size())
    return malformed("its names overlap");
  if (!param)
    return malformed("a state has no name that is text");
  state.param = std::move(*param);
  if (!stateNames.insert(state.param).second)
    return error() << "has two states of '" << printable(state.param) << "'";
  return forEach(table, kStateMoments, "moment", [&](uint64_t moment) {
    return readTensor(moment, state.moments.emplace_back());
  });
}

/// The states of a group of parameters, all of which have had as many steps.
LogicalResult CheckpointReader::readGroup(uint64_t group) {
  auto at = buffer.field(group, kGroupStep);
  int64_t steps = at ? buffer.read<int64_t>(*at).value_or(-1) : 0;
  if (steps < 0)
    return malformed("a group of its optimizer has no number of steps");
  if (!checkpoint.states.empty() && steps != checkpoint.steps)
    return error() << "has groups of parameters after " << checkpoint.steps
                   << " and after " << steps << " steps";
  checkpoint.steps = steps;
  return forEach(group, kGroupStates, "state", [&](uint64_t table) {
    return readState(table, checkpoint.states.emplace_back());
  });
}

LogicalResult CheckpointReader::read() {
  ArrayRef<char> bytes = checkpoint.file->bytes();
  if (bytes.size() < 8 || StringRef(bytes.data() + 4, 4) != "ODTC")
    return malformed("it does not begin as one");
  auto root = buffer.follow(0);
  auto field = root ? buffer.field(*root, kCheckpointModule) : std::nullopt;
  auto module = field ? buffer.follow(*field) : std::nullopt;
  if (!module)
    return malformed("it has no state of a model");
  if (failed(readTensors(*module, kModuleTrained, checkpoint.trained)) ||
      failed(readTensors(*module, kModuleFrozen, checkpoint.frozen)))
    return failure();
  return forEach(*root, kCheckpointOptimizers, "group",
                 [&](uint64_t group) { return readGroup(group); });
}

FailureOr<OrtCheckpoint> zero::onnx_import::readOrtCheckpoint(StringRef path,
                                                              ErrorFn error) {
  llvm::Expected<FileRef> file = mapFile(path);
  if (!file) {
    error() << llvm::toString(file.takeError());
    return failure();
  }
  OrtCheckpoint checkpoint;
  checkpoint.file = *file;
  if (failed(CheckpointReader(checkpoint, error).read()))
    return failure();
  return checkpoint;
}
