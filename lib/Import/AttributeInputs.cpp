//===- AttributeInputs.cpp - Attributes that became inputs ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table of such attributes.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/AttributeInputs.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

namespace {
enum class Kind { Integer, Integers, Float, Floats };

/// An attribute of an operator before operator set `until`.
struct Entry {
  StringRef op, attribute;
  Kind kind;
  unsigned input;
  int64_t until;
};
} // namespace

static constexpr Entry entries[] = {
    {"Pad", "paddings", Kind::Integers, 1, 2},
    {"Pad", "pads", Kind::Integers, 1, 11},
    {"Pad", "value", Kind::Float, 2, 11},
    {"Reshape", "shape", Kind::Integers, 1, 5},
    {"Slice", "starts", Kind::Integers, 1, 10},
    {"Slice", "ends", Kind::Integers, 2, 10},
    {"Slice", "axes", Kind::Integers, 3, 10},
    {"Split", "split", Kind::Integers, 1, 13},
    {"Squeeze", "axes", Kind::Integers, 1, 13},
    {"TopK", "k", Kind::Integer, 1, 10},
    {"Unsqueeze", "axes", Kind::Integers, 1, 13},
    {"Upsample", "scales", Kind::Floats, 1, 9},
};

static HostTensor readAttribute(NodeReader &node, const Entry &entry) {
  if (entry.kind == Kind::Integer || entry.kind == Kind::Integers)
    return HostTensor::fromInts(
        entry.kind == Kind::Integers
            ? node.intsAttr(entry.attribute)
            : SmallVector<int64_t>{node.intAttr(entry.attribute, 0)});
  SmallVector<double> values;
  if (entry.kind == Kind::Floats)
    values = node.floatsAttr(entry.attribute);
  else
    values.push_back(node.floatAttr(entry.attribute, 0));
  SmallVector<int64_t> shape;
  if (entry.kind == Kind::Floats)
    shape.push_back(values.size());
  HostTensor tensor(DType::F32, shape);
  for (auto [i, value] : llvm::enumerate(values))
    tensor.setFloat(i, value);
  return tensor;
}

void zero::onnx_import::addAttributeInputs(NodeReader &node,
                                           SmallVectorImpl<Binding *> &inputs,
                                           std::list<Binding> &made) {
  if (!node.isOfDefaultDomain())
    return;
  for (const Entry &entry : entries) {
    if (entry.op != node.op() || node.version() >= entry.until ||
        !node.hasAttr(entry.attribute))
      continue;
    if (inputs.size() <= entry.input)
      inputs.resize(entry.input + 1, nullptr);
    made.push_back(Binding(readAttribute(node, entry)));
    inputs[entry.input] = &made.back();
  }
}
