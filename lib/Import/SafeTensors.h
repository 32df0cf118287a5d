//===- SafeTensors.h - Writing weights -------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Streams tensors into a safetensors file: eight bytes of header length, a
// JSON header, then the bytes of all tensors without holes.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_SAFETENSORS_H
#define ZERO_LIB_IMPORT_SAFETENSORS_H

#include "lib/Import/FileAccess.h"
#include "lib/Import/HostTensor.h"

#include "llvm/Support/Error.h"

namespace mlir::zero::onnx_import {

struct NamedTensor {
  std::string name;
  DType type;
  ArrayRef<int64_t> shape;
  ArrayRef<char> bytes;
  /// The file that `bytes` are a part of, or null.
  FileRef file;
};

/// Writes `tensors` to `path`, through a temporary file beside it, so that
/// the file is either the old or the whole new one. What comes from files is
/// copied by the kernel, and their holes become holes: the resident set does
/// not grow with the weights.
llvm::Error writeSafeTensors(StringRef path, std::vector<NamedTensor> tensors);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_SAFETENSORS_H
