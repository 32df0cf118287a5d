//===- LibraryOperands.h - Operands of library calls ------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How a matrix product or convolution of the step is passed to the library:
// as strided views of the buffers that its operands lie in.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_LOWERING_LIBRARYOPERANDS_H
#define ZERO_LIB_LOWERING_LIBRARYOPERANDS_H

#include "StepStorage.h"

namespace mlir::zero {

/// A call of the runtime's library.
struct LibraryCall {
  StringRef callee;
  SmallVector<Place> operands; ///< the last ones are the results
  SmallVector<NamedAttribute> settings;
};

/// The call that computes `op`, for which isLibraryCall holds, into `results`.
LibraryCall describeLibraryCall(Operation *op, ArrayRef<Place> results,
                                llvm::function_ref<Place(Value)> placeOf);

} // namespace mlir::zero

#endif // ZERO_LIB_LOWERING_LIBRARYOPERANDS_H
