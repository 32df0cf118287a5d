//===- InputValues.cpp - --value NAME=FILE --------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See InputValues.h.
//
//===----------------------------------------------------------------------===//

#include "InputValues.h"

#include "runtime/io/Files.h"
#include "runtime/io/Json.h"
#include "runtime/io/TensorFile.h"

using namespace zero_tools;

std::map<std::string, mlir::zero::InputValue>
zero_tools::readValues(const std::map<std::string, std::string> &files) {
  std::map<std::string, mlir::zero::InputValue> values;
  for (const auto &[name, path] : files) {
    if (path.empty()) {
      values[name] = {};
      continue;
    }
    std::unique_ptr<zrt::TensorFile> file = zrt::openTensorFile(path);
    const zrt::TensorInfo *tensor = file->find(name);
    if (!tensor)
      throw zrt::IoError(path, "has no tensor " + zrt::jsonQuote(name) +
                                   ", which --value is for");
    const char *data = reinterpret_cast<const char *>(file->data(name));
    values[name] = {std::string(zrt::name(tensor->type)), tensor->shape,
                    std::string(data, tensor->bytes)};
  }
  return values;
}
