//===- InputValues.cpp - Inputs that are constants ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value that is given for an input makes it what an initializer is: known at
// import. The value has to be one that the input could have.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Bindings.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

bool zero::onnx_import::fitsDeclared(ArrayRef<int64_t> shape,
                                     const onnx::TypeProto_Tensor &declared) {
  if (!declared.has_shape())
    return true;
  const auto &dims = declared.shape().dim();
  if (int64_t(shape.size()) != dims.size())
    return false;
  for (auto [size, dim] : llvm::zip(shape, dims))
    if (dim.has_dim_value() && dim.dim_value() != size)
      return false;
  return true;
}

FailureOr<Binding> GraphImporter::givenTensor(StringRef name,
                                              const onnx::TypeProto &inputType,
                                              const zero::InputValue &value) {
  auto error = [&] {
    return emitError(fileLoc) << "--value " << printable(name) << ": ";
  };
  const onnx::TypeProto_Tensor &declared = inputType.tensor_type();
  std::optional<DType> type = dtypeFromOnnx(declared.elem_type());
  if (!inputType.has_tensor_type() || !type)
    return error() << "the input is not a tensor of a supported type";
  if (value.type.empty())
    return error() << "a tensor needs a file; only an optional or a sequence "
                      "is given without one";
  if (value.type != safetensorsName(*type))
    return error() << "the file has " << value.type << ", the input is "
                   << safetensorsName(*type);
  if (!fitsDeclared(value.shape, declared))
    return error() << "the file's tensor has the shape ["
                   << ArrayRef<int64_t>(value.shape)
                   << "], which is not the input's";
  std::optional<int64_t> elements = countElements(value.shape);
  if (!elements || *elements > maxHostElements ||
      uint64_t(*elements) * byteSize(*type) != value.bytes.size())
    return error() << "more than " << maxHostElements
                   << " elements, or bytes that do not fit the shape";
  return Binding(HostTensor::decode(*type, value.shape, value.bytes));
}

LogicalResult GraphImporter::bindValue(const onnx::ValueInfoProto &input,
                                       const zero::InputValue &value) {
  if (value.type.empty() && input.type().has_optional_type()) {
    mainScope.bindings[input.name()] = Binding::none();
    return success();
  }
  FailureOr<Binding> tensor =
      givenTensor(input.name(), givenType(input), value);
  if (failed(tensor))
    return failure();
  mainScope.bindings[input.name()] = *tensor;
  return success();
}

LogicalResult GraphImporter::bindSequence(const onnx::ValueInfoProto &input) {
  const onnx::TypeProto &type = givenType(input).sequence_type().elem_type();
  if (auto value = options.values.find(input.name());
      value != options.values.end()) {
    if (!value->second.type.empty())
      return emitError(fileLoc)
             << "--value " << printable(input.name())
             << ": the input is a sequence, whose tensors are given with "
                "--value "
             << printable(input.name()) << ".0=FILE and so on";
    mainScope.bindings[input.name()] =
        input.type().has_optional_type() ? Binding::none() : Binding::list({});
    return success();
  }
  std::vector<Binding> elements;
  while (true) {
    std::string name = input.name() + "." + std::to_string(elements.size());
    auto value = options.values.find(name);
    if (value == options.values.end())
      break;
    FailureOr<Binding> tensor = givenTensor(name, type, value->second);
    if (failed(tensor))
      return failure();
    elements.push_back(*tensor);
  }
  if (elements.empty())
    return emitError(fileLoc)
           << "input '" << printable(input.name())
           << "' is a sequence, whose tensors must be known at import: give "
              "them with --value "
           << printable(input.name()) << ".0=FILE and so on";
  mainScope.bindings[input.name()] = Binding::list(std::move(elements));
  return success();
}
