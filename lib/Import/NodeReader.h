//===- NodeReader.h - Checked access to an ONNX node -----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attributes with their types checked. A getter that finds a wrong type emits
// an error, remembers it and returns the default, so that handlers stay short;
// whoever runs a handler asks failed() afterwards.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_NODEREADER_H
#define ZERO_LIB_IMPORT_NODEREADER_H

#include "lib/Import/OnnxProto.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::zero::onnx_import {

/// What the attributes of a function stand for in a call of it.
using CallAttributes = llvm::StringMap<const onnx::AttributeProto *>;

class NodeReader {
public:
  /// `call` is set for nodes of a function's body: their attributes may refer
  /// to those of the call.
  NodeReader(const onnx::NodeProto &proto, Location loc, int64_t opset,
             const CallAttributes *call = nullptr)
      : proto(proto), loc(loc), opset(opset), call(call) {}

  StringRef op() const { return proto.op_type(); }
  StringRef domain() const { return proto.domain(); }
  bool isOfDefaultDomain() const {
    return proto.domain().empty() || proto.domain() == "ai.onnx";
  }
  Location location() const { return loc; }
  /// The version of the operator set the node's semantics come from.
  int64_t version() const { return opset; }
  const onnx::NodeProto &message() const { return proto; }

  bool hasAttr(StringRef name) const { return find(name); }
  int64_t intAttr(StringRef name, int64_t fallback);
  double floatAttr(StringRef name, double fallback);
  std::string stringAttr(StringRef name, StringRef fallback);
  SmallVector<int64_t> intsAttr(StringRef name,
                                ArrayRef<int64_t> fallback = {});
  SmallVector<double> floatsAttr(StringRef name);
  /// The tensor attribute `name`, or null.
  const onnx::TensorProto *tensorAttr(StringRef name);
  /// The graph attribute `name`; null after an error.
  const onnx::GraphProto *graphAttr(StringRef name);
  /// The attribute `name` of whatever type, references resolved, or null.
  const onnx::AttributeProto *find(StringRef name) const;

  /// Adds the rank to a negative axis; an error when it is out of range.
  int64_t axis(int64_t value, int64_t rank);
  /// The same for each of a list, which must not name an axis twice.
  SmallVector<int64_t> axes(ArrayRef<int64_t> values, int64_t rank);

  /// Starts an error about this node: "Op: ...".
  InFlightDiagnostic error();
  bool failed() const { return bad; }
  /// An error about this node was emitted elsewhere: there is no second one.
  void setFailed() { bad = true; }
  /// The node is imported again, in another way.
  void startAgain() { bad = false; }

private:
  /// The attribute if it is there and of type `type`.
  const onnx::AttributeProto *get(StringRef name,
                                  onnx::AttributeProto::AttributeType type);

  const onnx::NodeProto &proto;
  Location loc;
  int64_t opset;
  const CallAttributes *call;
  bool bad = false;
};

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_NODEREADER_H
