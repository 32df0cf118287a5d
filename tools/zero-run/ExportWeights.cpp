//===- ExportWeights.cpp - Trained weights into an ONNX model -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See ExportWeights.h.
//
//===----------------------------------------------------------------------===//

#include "ExportWeights.h"

#include "runtime/io/HuggingFace.h"
#include "zero/Import/Export.h"

#include "mlir/IR/MLIRContext.h"

#include <stdexcept>

using namespace zero_tools;

/// A diagnostic as the text of a message.
static std::string describe(mlir::Diagnostic &diagnostic) {
  std::string line;
  llvm::raw_string_ostream os(line);
  mlir::zero::printImportDiagnostic(os, "", diagnostic);
  // ": error: TEXT" with a line break.
  size_t start = line.find(": ", 1);
  return start == line.npos ? line
                            : line.substr(start + 2, line.size() - start - 3);
}

static std::optional<mlir::zero::WeightTensor>
findTensor(zrt::TensorFile &file, llvm::StringRef name) {
  const zrt::TensorInfo *info = file.find({name.data(), name.size()});
  if (!info)
    return std::nullopt;
  mlir::zero::WeightTensor tensor;
  tensor.elementType = std::string(zrt::name(info->type));
  tensor.shape = info->shape;
  tensor.bytes = llvm::ArrayRef(
      reinterpret_cast<const char *>(file.data({name.data(), name.size()})),
      info->bytes);
  return tensor;
}

void zero_tools::exportWeights(
    const ExportRequest &request,
    const std::function<void(const std::string &)> &warn) {
  std::unique_ptr<zrt::TensorFile> file =
      zrt::openWeights(request.weights, warn);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::string error;
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &diagnostic) {
        std::string text = describe(diagnostic);
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Warning)
          warn(text);
        else if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error &&
                 error.empty())
          error = text;
      });
  mlir::zero::ExportOptions options;
  options.modelPath = request.model;
  options.outputPath = request.output;
  options.import.train = request.train;
  options.import.freeze = request.freeze;
  if (failed(
          mlir::zero::exportOnnx(context, options, [&](llvm::StringRef name) {
            return findTensor(*file, name);
          })))
    throw std::runtime_error(error);
}
