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

#include "lib/Import/Wire.h"

#include <climits>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>

using namespace mlir;
using namespace mlir::zero::onnx_import;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::TensorProto;

namespace {
/// Gives runs of neighboring fields to protobuf.
class RunMerger {
public:
  RunMerger(google::protobuf::MessageLite &message, int depth)
      : message(message), depth(depth) {}
  void add(StringRef field);
  /// Merges what was added so far.
  void flush();
  WireResult result = WireResult::Done;

private:
  google::protobuf::MessageLite &message;
  int depth;
  StringRef run;
};
} // namespace

static bool isBytes(const WireField &field, int number) {
  return field.number == uint64_t(number) && field.type == WireField::Bytes;
}

void RunMerger::add(StringRef field) {
  if (run.end() != field.begin())
    flush();
  run = run.empty() ? field : StringRef(run.begin(), run.size() + field.size());
}

void RunMerger::flush() {
  StringRef bytes = std::exchange(run, {});
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
static int findStored(StringRef tensor) {
  unsigned floats = 0, doubles = 0;
  bool raw = false;
  for (WireField field; !tensor.empty() && takeField(tensor, field);) {
    raw |= isBytes(field, TensorProto::kRawDataFieldNumber);
    // Single elements may stand beside packed ones: those count as two.
    unsigned count = field.type == WireField::Bytes ? 1 : 2;
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

static WireResult walkTensor(StringRef bytes, TensorProto &tensor,
                             StoredData &stored) {
  stored.field = findStored(bytes);
  RunMerger merger(tensor, 2);
  for (WireField field; !bytes.empty();) {
    if (!takeField(bytes, field))
      return WireResult::Malformed;
    if (stored.field && isBytes(field, stored.field))
      stored.bytes = {field.content.data(), field.content.size()};
    else
      merger.add(field.all);
  }
  merger.flush();
  return merger.result;
}

static WireResult walkGraph(StringRef bytes, GraphProto &graph,
                            std::vector<StoredData> &stored) {
  RunMerger merger(graph, 1);
  for (WireField field; !bytes.empty();) {
    if (!takeField(bytes, field))
      return WireResult::Malformed;
    if (!isBytes(field, GraphProto::kInitializerFieldNumber)) {
      merger.add(field.all);
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

WireResult zero::onnx_import::walkModel(ArrayRef<char> file, ModelProto &model,
                                        std::vector<StoredData> &stored) {
  StringRef bytes(file.data(), file.size());
  google::protobuf::LogSilencer quiet;
  RunMerger merger(model, 0);
  for (WireField field; !bytes.empty();) {
    if (!takeField(bytes, field))
      return WireResult::Malformed;
    if (!isBytes(field, ModelProto::kGraphFieldNumber)) {
      merger.add(field.all);
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
