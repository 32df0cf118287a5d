//===- HostTensor.h - Small tensors known at import ------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The values the importer computes with: shapes, masks, position tables. They
// are small, so one wide representation serves every element type: floats are
// held as doubles and integers as int64, both rounded to the element type
// after each operation. For + - * / and sqrt on float32 this gives the same
// bits as computing in float32.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_HOSTTENSOR_H
#define ZERO_LIB_IMPORT_HOSTTENSOR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mlir::zero::onnx_import {

enum class DType : uint8_t {
  F32,
  F64,
  F16,
  BF16,
  I8,
  I16,
  I32,
  I64,
  U8,
  U16,
  U32,
  U64,
  Bool,
  F8E4M3,
  F8E5M2,
  F8E4M3FNUZ,
  F8E5M2FNUZ,
  F8E8M0
};

/// The element type with ONNX's number `dataType`, if the importer knows it.
std::optional<DType> dtypeFromOnnx(int32_t dataType);
bool isFloat(DType type);
unsigned byteSize(DType type);
/// The name in a safetensors header, e.g. "F32".
StringRef safetensorsName(DType type);
Type toType(DType type, MLIRContext *context);
/// The DType of an element type made by toType.
std::optional<DType> dtypeFromType(Type type);

/// The number of elements, or nothing when a dimension is negative or the
/// product does not fit.
std::optional<int64_t> countElements(ArrayRef<int64_t> shape);

struct HostTensor {
  DType type = DType::I64;
  SmallVector<int64_t, 4> shape;
  /// The elements: `floats` for float types, else `ints`.
  std::vector<double> floats;
  std::vector<int64_t> ints;

  HostTensor() = default;
  /// A tensor of zeros.
  HostTensor(DType type, ArrayRef<int64_t> shape);
  static HostTensor fromInts(ArrayRef<int64_t> values);

  int64_t size() const {
    return isFloat(type) ? int64_t(floats.size()) : int64_t(ints.size());
  }
  int64_t rank() const { return int64_t(shape.size()); }
  double number(int64_t i) const {
    return isFloat(type)        ? floats[i]
           : type == DType::U64 ? double(uint64_t(ints[i]))
                                : double(ints[i]);
  }

  /// Sets element `i`, rounded to the element type.
  void setFloat(int64_t i, double value);
  void setInt(int64_t i, int64_t value);
  /// Of any type; integers are cut off and saturate.
  void setNumber(int64_t i, double value);

  /// A tensor of `newShape` whose element k is this tensor's `indices[k]`.
  HostTensor take(ArrayRef<int64_t> newShape, ArrayRef<int64_t> indices) const;

  /// Reads little-endian bytes; their number must fit the shape.
  static HostTensor decode(DType type, ArrayRef<int64_t> shape,
                           ArrayRef<char> bytes);
  DenseElementsAttr toAttr(MLIRContext *context) const;
};

/// How values become floats of 8 bits, as ONNX's Cast says.
struct CastRules {
  bool saturate = true;
  /// For F8E8M0: "up", "down" or "nearest".
  std::string roundScale = "up";
};

/// `from` with another element type. A float that an integer type does not hold
/// gives the nearest bound, NaN gives 0; integers keep their low bits.
HostTensor castHost(const HostTensor &from, DType type,
                    const CastRules &rules = {});

/// A float as an integer; out of range and NaN give the nearest bound and 0.
int64_t toInteger(double value);

using HostRef = std::shared_ptr<const HostTensor>;

/// Row-major strides, in elements.
SmallVector<int64_t> stridesOf(ArrayRef<int64_t> shape);

/// The numpy broadcast of two shapes, if there is one.
std::optional<SmallVector<int64_t>> broadcastShapes(ArrayRef<int64_t> a,
                                                    ArrayRef<int64_t> b);

/// For each element of `to`, the element of `from` it repeats (numpy rules).
std::vector<int64_t> broadcastIndices(ArrayRef<int64_t> from,
                                      ArrayRef<int64_t> to);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_HOSTTENSOR_H
