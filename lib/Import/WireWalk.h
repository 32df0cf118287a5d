//===- WireWalk.h - A model without the bytes of its weights ---*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// protobuf copies what it parses and stops at 2 GiB. This reads the outer
// levels of a model itself (protobuf's encoding:
// https://protobuf.dev/programming-guides/encoding) and gives protobuf all but
// the elements of the graph's initializers, which stay where they are.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_WIREWALK_H
#define ZERO_LIB_IMPORT_WIREWALK_H

#include "lib/Import/OnnxProto.h"

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"

#include <vector>

namespace mlir::zero::onnx_import {

/// Where the elements of a tensor lie in the file.
struct StoredData {
  /// The field that holds them: raw_data, or float_data or double_data, whose
  /// packed form has the same bytes; 0: the message itself has all of it.
  int field = 0;
  ArrayRef<char> bytes;
};

enum class WireResult {
  Done,
  /// Truncated, or no message of this kind.
  Malformed,
  /// More than protobuf takes even without the weights.
  TooLarge
};

/// Parses `bytes` into `model`. The elements of initializer i of its graph are
/// `stored[i]`, a part of `bytes`, and missing in the message. Takes time
/// linear in the part of `bytes` that is no weights; messages nest at most 100
/// deep.
WireResult walkModel(ArrayRef<char> bytes, onnx::ModelProto &model,
                     std::vector<StoredData> &stored);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_WIREWALK_H
