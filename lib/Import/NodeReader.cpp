//===- NodeReader.cpp - Checked access to an ONNX node --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lookup by name; a node has few attributes.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/NodeReader.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;
using onnx::AttributeProto;

InFlightDiagnostic NodeReader::error() {
  InFlightDiagnostic diagnostic = emitError(loc);
  // One error a node is enough: what follows comes from the default that a
  // getter returned instead.
  if (bad)
    diagnostic.abandon();
  bad = true;
  diagnostic << op() << ": ";
  return diagnostic;
}

const AttributeProto *NodeReader::find(StringRef name) const {
  for (const AttributeProto &attr : proto.attribute()) {
    if (StringRef(attr.name()) != name)
      continue;
    // One that the call leaves out is as if it were not written here.
    return call && !attr.ref_attr_name().empty()
               ? call->lookup(attr.ref_attr_name())
               : &attr;
  }
  return nullptr;
}

const AttributeProto *NodeReader::get(StringRef name,
                                      AttributeProto::AttributeType type) {
  const AttributeProto *attr = find(name);
  if (!attr || attr->type() == type)
    return attr;
  error() << "attribute '" << name << "' has type "
          << AttributeProto_AttributeType_Name(attr->type()) << ", expected "
          << AttributeProto_AttributeType_Name(type);
  return nullptr;
}

int64_t NodeReader::intAttr(StringRef name, int64_t fallback) {
  const AttributeProto *attr = get(name, AttributeProto::INT);
  return attr ? attr->i() : fallback;
}

double NodeReader::floatAttr(StringRef name, double fallback) {
  const AttributeProto *attr = get(name, AttributeProto::FLOAT);
  return attr ? double(attr->f()) : fallback;
}

std::string NodeReader::stringAttr(StringRef name, StringRef fallback) {
  const AttributeProto *attr = get(name, AttributeProto::STRING);
  return attr ? attr->s() : fallback.str();
}

SmallVector<int64_t> NodeReader::intsAttr(StringRef name,
                                          ArrayRef<int64_t> fallback) {
  const AttributeProto *attr = get(name, AttributeProto::INTS);
  if (!attr)
    return SmallVector<int64_t>(fallback);
  return SmallVector<int64_t>(attr->ints().begin(), attr->ints().end());
}

SmallVector<double> NodeReader::floatsAttr(StringRef name) {
  const AttributeProto *attr = get(name, AttributeProto::FLOATS);
  if (!attr)
    return {};
  return SmallVector<double>(attr->floats().begin(), attr->floats().end());
}

const onnx::TensorProto *NodeReader::tensorAttr(StringRef name) {
  const AttributeProto *attr = get(name, AttributeProto::TENSOR);
  return attr ? &attr->t() : nullptr;
}

const onnx::GraphProto *NodeReader::graphAttr(StringRef name) {
  const AttributeProto *attr = get(name, AttributeProto::GRAPH);
  if (!attr && !failed())
    error() << "has no attribute '" << name << "'";
  return attr ? &attr->g() : nullptr;
}

int64_t NodeReader::axis(int64_t value, int64_t rank) {
  if (value >= -rank && value < rank)
    return value < 0 ? value + rank : value;
  error() << "axis " << value << " is out of range for rank " << rank;
  return 0;
}

SmallVector<int64_t> NodeReader::axes(ArrayRef<int64_t> values, int64_t rank) {
  SmallVector<int64_t> result;
  for (int64_t value : values) {
    int64_t normal = axis(value, rank);
    if (failed())
      return {};
    if (llvm::is_contained(result, normal)) {
      error() << "axis " << normal << " is named twice";
      return {};
    }
    result.push_back(normal);
  }
  return result;
}
