//===- Outputs.cpp - What the graph's outputs become ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Results of the function, compared with what the graph declares: a reader of
// the file and a user of the result must not see two types.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Bindings.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

// The most outputs a function gets where some of the model's are sequences.
static constexpr size_t maxSequenceOutputs = size_t(1) << 16;

//===----------------------------------------------------------------------===//
// Declared types
//===----------------------------------------------------------------------===//

/// A type as messages name it, "F32[8xbatch]".
static std::string describe(const onnx::TypeProto &type) {
  if (!type.has_tensor_type())
    return type.has_sequence_type() ? "a sequence" : "no tensor";
  const onnx::TypeProto_Tensor &tensor = type.tensor_type();
  std::optional<DType> element = dtypeFromOnnx(tensor.elem_type());
  std::string text = element
                         ? safetensorsName(*element).str()
                         : onnx::TensorProto_DataType_Name(
                               onnx::TensorProto_DataType(tensor.elem_type()));
  if (!tensor.has_shape())
    return text;
  text += "[";
  for (auto [i, dim] : llvm::enumerate(tensor.shape().dim())) {
    text += i ? "x" : "";
    text += dim.has_dim_value()       ? std::to_string(dim.dim_value())
            : dim.dim_param().empty() ? "?"
                                      : printable(dim.dim_param());
  }
  return text + "]";
}

static std::string describe(RankedTensorType type) {
  std::string text =
      safetensorsName(*dtypeFromType(type.getElementType())).str() + "[";
  for (auto [i, size] : llvm::enumerate(type.getShape()))
    text += (i ? "x" : "") + std::to_string(size);
  return text + "]";
}

static bool hasSymbolicInput(const onnx::GraphProto &graph) {
  return llvm::any_of(graph.input(), [](const auto &input) {
    return llvm::any_of(givenType(input).tensor_type().shape().dim(),
                        [](const auto &dim) { return !dim.has_dim_value(); });
  });
}

/// Exporters that are told that inputs have any size may still write the sizes
/// of their example for outputs.
LogicalResult GraphImporter::checkDeclared(StringRef name,
                                           const onnx::TypeProto &declared,
                                           RankedTensorType type) {
  if (declared.value_case() == onnx::TypeProto::VALUE_NOT_SET)
    return success();
  const onnx::TypeProto_Tensor &tensor = declared.tensor_type();
  bool sameElement =
      declared.has_tensor_type() &&
      (!tensor.elem_type() || dtypeFromOnnx(tensor.elem_type()) ==
                                  dtypeFromType(type.getElementType()));
  // The first of the two imports at another batch has seen the shape.
  bool sameShape =
      (rebatch && rebatch->makesNew()) || fitsDeclared(type.getShape(), tensor);
  if (sameElement && sameShape)
    return success();
  bool sameRank = tensor.shape().dim_size() == type.getRank();
  bool isError = !sameElement || !sameRank || !hasSymbolicInput(model.graph());
  InFlightDiagnostic diagnostic =
      isError ? emitError(fileLoc) : emitWarning(fileLoc);
  diagnostic << "output '" << printable(name) << "' is declared as "
             << describe(declared) << ", but is " << describe(type);
  return isError ? failure() : success();
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

LogicalResult GraphImporter::appendTensor(StringRef name,
                                          const onnx::TypeProto &declared,
                                          Binding &binding, Outputs &outputs) {
  // A training graph may give two parameters one new value.
  if (!outputs.names.insert(name).second && !model.training)
    return emitError(fileLoc)
           << "has two outputs named '" << printable(name) << "'";
  Value value = valueOf(binding, fileLoc);
  if (!value)
    return failure();
  // A list has all the rows that it could have, and is no output: an error of
  // its own.
  if (!rowLists.find(value) &&
      failed(checkDeclared(name, declared, typeOf(value))))
    return failure();
  outputs.values.push_back(value);
  outputs.attributes.push_back(builder.getDictionaryAttr(
      builder.getNamedAttr(kOutputAttr, builder.getStringAttr(name))));
  return success();
}

/// Appends what the output `name` gives: a tensor or, for a sequence, each of
/// its tensors, named NAME.0, NAME.1, ...
LogicalResult GraphImporter::appendOutput(StringRef name,
                                          const onnx::TypeProto &type,
                                          Binding &binding, Outputs &outputs) {
  const onnx::TypeProto &declared =
      type.has_optional_type() ? type.optional_type().elem_type() : type;
  if (!binding.sequence)
    return appendTensor(name, declared, binding, outputs);
  if (declared.value_case() != onnx::TypeProto::VALUE_NOT_SET &&
      !declared.has_sequence_type())
    return emitError(fileLoc)
           << "output '" << printable(name) << "' is declared as "
           << describe(declared) << ", but is a sequence";
  // Few nodes make long sequences.
  if (outputs.values.size() + binding.sequence->size() > maxSequenceOutputs)
    return emitError(fileLoc) << "has sequences of more than "
                              << maxSequenceOutputs << " tensors as outputs";
  for (auto [i, element] : llvm::enumerate(*binding.sequence))
    if (failed(appendTensor((name + "." + Twine(i)).str(),
                            declared.sequence_type().elem_type(), element,
                            outputs)))
      return failure();
  return success();
}
