//===- RecurrentActivations.h - Of LSTM, GRU and RNN ------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions that LSTM, GRU and RNN name in their attributes, with their
// numbers.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_RECURRENTACTIVATIONS_H
#define ZERO_LIB_IMPORT_RECURRENTACTIVATIONS_H

#include "lib/Import/GraphImporter.h"

namespace mlir::zero::onnx_import {

struct Activation {
  /// In lower case: their names may be written in any.
  std::string name;
  double alpha = 0, beta = 0;
};

/// The activations of the node, those of each direction together; `defaults`
/// are those of one.
FailureOr<SmallVector<Activation>> readActivations(NodeContext &c,
                                                   ArrayRef<StringRef> defaults,
                                                   int64_t directions);

/// `activation` of `x`; null after an error or if `x` is.
Value applyActivation(NodeContext &c, const Activation &activation, Value x);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_RECURRENTACTIVATIONS_H
