//===- WireWalk.cpp - A model without the bytes of its weights ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Merging the pieces of a message in their order is the same as parsing it
// whole, so runs of fields that stay together are merged at once, uncopied.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/WireWalk.h"

#include <climits>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>

using namespace mlir;
using namespace mlir::zero::onnx_import;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::TensorProto;

namespace {

enum Wire { Varint = 0, Fixed64 = 1, Delimited = 2, Fixed32 = 5 };

/// One field of a message: its number, how it is written, all of its bytes and,
/// of a delimited one, those of its content.
struct Field {
  uint64_t number = 0;
  unsigned wire = 0;
  ArrayRef<char> whole, content;
  bool is(int n, Wire kind) const {
    return number == uint64_t(n) && wire == kind;
  }
};

/// Reads the fields of a message one after the other.
class FieldReader {
public:
  explicit FieldReader(ArrayRef<char> bytes) : rest(bytes) {}
  bool atEnd() const { return rest.empty(); }
  /// False when there is no sound field.
  bool next(Field &field);

private:
  bool readVarint(uint64_t &value);

  ArrayRef<char> rest;
};

/// Gives runs of neighboring fields to protobuf.
class RunMerger {
public:
  RunMerger(google::protobuf::MessageLite &message, int depth)
      : message(message), depth(depth) {}
  void add(ArrayRef<char> field);
  /// Merges what was added so far.
  void flush();
  WireResult result = WireResult::Done;

private:
  google::protobuf::MessageLite &message;
  int depth;
  ArrayRef<char> run;
};

} // namespace

bool FieldReader::readVarint(uint64_t &value) {
  value = 0;
  for (unsigned i = 0; i < 10 && i < rest.size(); ++i) {
    value |= uint64_t(rest[i] & 0x7f) << (7 * i);
    if (rest[i] & 0x80)
      continue;
    rest = rest.drop_front(i + 1);
    return true;
  }
  return false;
}

bool FieldReader::next(Field &field) {
  ArrayRef<char> start = rest;
  uint64_t tag, size = 0;
  if (!readVarint(tag))
    return false;
  field.number = tag >> 3;
  field.wire = tag & 7;
  if (field.wire == Varint && !readVarint(size))
    return false;
  if (field.wire == Varint)
    size = 0;
  else if (field.wire == Fixed64)
    size = 8;
  else if (field.wire == Fixed32)
    size = 4;
  else if (field.wire != Delimited || !readVarint(size))
    return false; // groups, which ONNX never had
  if (size > rest.size() || field.number == 0)
    return false;
  field.content = rest.take_front(size);
  rest = rest.drop_front(size);
  field.whole = start.drop_back(rest.size());
  return true;
}

void RunMerger::add(ArrayRef<char> field) {
  if (run.end() != field.begin())
    flush();
  run = run.empty() ? field : ArrayRef(run.begin(), field.end());
}

void RunMerger::flush() {
  ArrayRef<char> bytes = std::exchange(run, {});
  if (bytes.empty() || result != WireResult::Done)
    return;
  if (bytes.size() > INT_MAX) {
    result = WireResult::TooLarge;
    return;
  }
  google::protobuf::io::CodedInputStream stream(
      reinterpret_cast<const uint8_t *>(bytes.data()), int(bytes.size()));
  stream.SetRecursionLimit(100 - depth);
  if (!message.MergePartialFromCodedStream(&stream) ||
      !stream.ConsumedEntireMessage())
    result = WireResult::Malformed;
}

/// The field of `tensor` whose only occurrence holds elements as raw_data
/// would; 0 if there is none. A later raw_data replaces an earlier one.
static int findStored(ArrayRef<char> tensor) {
  unsigned floats = 0, doubles = 0;
  bool raw = false;
  FieldReader reader(tensor);
  for (Field field; !reader.atEnd() && reader.next(field);) {
    raw |= field.is(TensorProto::kRawDataFieldNumber, Delimited);
    // Single elements may stand beside packed ones: those count as two.
    unsigned count = field.wire == Delimited ? 1 : 2;
    if (field.number == TensorProto::kFloatDataFieldNumber)
      floats += count;
    if (field.number == TensorProto::kDoubleDataFieldNumber)
      doubles += count;
  }
  if (raw)
    return TensorProto::kRawDataFieldNumber;
  if (floats + doubles != 1)
    return 0;
  return floats ? TensorProto::kFloatDataFieldNumber
                : TensorProto::kDoubleDataFieldNumber;
}

static WireResult walkTensor(ArrayRef<char> bytes, TensorProto &tensor,
                             StoredData &stored) {
  stored.field = findStored(bytes);
  RunMerger merger(tensor, 2);
  FieldReader reader(bytes);
  for (Field field; !reader.atEnd();) {
    if (!reader.next(field))
      return WireResult::Malformed;
    if (stored.field && field.is(stored.field, Delimited))
      stored.bytes = field.content;
    else
      merger.add(field.whole);
  }
  merger.flush();
  return merger.result;
}

static WireResult walkGraph(ArrayRef<char> bytes, GraphProto &graph,
                            std::vector<StoredData> &stored) {
  RunMerger merger(graph, 1);
  FieldReader reader(bytes);
  for (Field field; !reader.atEnd();) {
    if (!reader.next(field))
      return WireResult::Malformed;
    if (!field.is(GraphProto::kInitializerFieldNumber, Delimited)) {
      merger.add(field.whole);
      continue;
    }
    WireResult result = walkTensor(field.content, *graph.add_initializer(),
                                   stored.emplace_back());
    if (result != WireResult::Done)
      return result;
  }
  merger.flush();
  return merger.result;
}

WireResult zero::onnx_import::walkModel(ArrayRef<char> bytes, ModelProto &model,
                                        std::vector<StoredData> &stored) {
  google::protobuf::LogSilencer quiet;
  RunMerger merger(model, 0);
  FieldReader reader(bytes);
  for (Field field; !reader.atEnd();) {
    if (!reader.next(field))
      return WireResult::Malformed;
    if (!field.is(ModelProto::kGraphFieldNumber, Delimited)) {
      merger.add(field.whole);
      continue;
    }
    WireResult result =
        walkGraph(field.content, *model.mutable_graph(), stored);
    if (result != WireResult::Done)
      return result;
  }
  merger.flush();
  return merger.result;
}
