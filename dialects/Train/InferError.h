//===- InferError.h - Errors of type inference ------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How the type inference of the train dialect reports what does not fit: the
// same wording as an error of the operation, although there is none yet.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_INFERERROR_H
#define ZERO_DIALECTS_TRAIN_INFERERROR_H

#include "dialects/Train/Train.h"

namespace mlir::train {

/// Reports an error of the operation `name`; silent without a location.
struct InferError {
  InferError(std::optional<Location> loc, StringRef name)
      : loc(loc), name(name) {}

  template <typename... Args>
  LogicalResult operator()(Args &&...args) const {
    return emitOptionalError(loc, "'", name, "' op ",
                             std::forward<Args>(args)...);
  }

  std::optional<Location> loc;
  StringRef name;
};

inline RankedTensorType getTensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

inline ArrayRef<int64_t> shapeOf(Value value) {
  return getTensorType(value).getShape();
}

/// "[8, 10]", for messages.
std::string formatShape(ArrayRef<int64_t> shape);

/// Fails unless `value` has this shape; `what` names it in the message.
LogicalResult requireShape(InferError error, StringRef what, Value value,
                           ArrayRef<int64_t> shape);

/// Fails where a size or an offset of the result exceeds 64 bits.
inline LogicalResult failTooLarge(InferError error) {
  return error("result is too large, its sizes exceed 64 bits");
}

/// Fails unless `0 <= axis < rank`.
LogicalResult requireAxis(InferError error, int64_t axis, int64_t rank);

} // namespace mlir::train

#endif // ZERO_DIALECTS_TRAIN_INFERERROR_H
