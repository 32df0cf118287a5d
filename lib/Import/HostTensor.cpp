//===- HostTensor.cpp - Small tensors known at import ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Element types, decoding and conversion to attributes.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/HostTensor.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APSInt.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace mlir::zero::onnx_import;

namespace {

struct DTypeInfo {
  DType type;
  int32_t onnx;
  unsigned bytes;
  bool isFloat;
  const char *safetensors;
};

// Numbers of onnx.TensorProto.DataType.
constexpr DTypeInfo dtypes[] = {
    {DType::F32, 1, 4, true, "F32"},
    {DType::F64, 11, 8, true, "F64"},
    {DType::F16, 10, 2, true, "F16"},
    {DType::BF16, 16, 2, true, "BF16"},
    {DType::I8, 3, 1, false, "I8"},
    {DType::I16, 5, 2, false, "I16"},
    {DType::I32, 6, 4, false, "I32"},
    {DType::I64, 7, 8, false, "I64"},
    {DType::U8, 2, 1, false, "U8"},
    {DType::U16, 4, 2, false, "U16"},
    {DType::U32, 12, 4, false, "U32"},
    {DType::U64, 13, 8, false, "U64"},
    {DType::Bool, 9, 1, false, "BOOL"},
    {DType::F8E4M3, 17, 1, true, "F8_E4M3"},
    {DType::F8E5M2, 19, 1, true, "F8_E5M2"},
    {DType::F8E4M3FNUZ, 18, 1, true, "F8_E4M3FNUZ"},
    {DType::F8E5M2FNUZ, 20, 1, true, "F8_E5M2FNUZ"},
    {DType::F8E8M0, 24, 1, true, "F8_E8M0"},
};

} // namespace

static const DTypeInfo &infoOf(DType type) { return dtypes[unsigned(type)]; }

std::optional<DType> zero::onnx_import::dtypeFromOnnx(int32_t dataType) {
  for (const DTypeInfo &info : dtypes)
    if (info.onnx == dataType)
      return info.type;
  return std::nullopt;
}

bool zero::onnx_import::isFloat(DType type) { return infoOf(type).isFloat; }
unsigned zero::onnx_import::byteSize(DType type) { return infoOf(type).bytes; }
StringRef zero::onnx_import::safetensorsName(DType type) {
  return infoOf(type).safetensors;
}

Type zero::onnx_import::toType(DType type, MLIRContext *context) {
  Builder b(context);
  switch (type) {
  case DType::F32:
    return b.getF32Type();
  case DType::F64:
    return b.getF64Type();
  case DType::F16:
    return b.getF16Type();
  case DType::BF16:
    return b.getBF16Type();
  case DType::F8E4M3:
    return Float8E4M3FNType::get(context);
  case DType::F8E5M2:
    return Float8E5M2Type::get(context);
  case DType::F8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case DType::F8E5M2FNUZ:
    return Float8E5M2FNUZType::get(context);
  case DType::F8E8M0:
    return Float8E8M0FNUType::get(context);
  case DType::Bool:
    return b.getI1Type();
  case DType::U8:
  case DType::U16:
  case DType::U32:
  case DType::U64:
    return IntegerType::get(context, 8 * byteSize(type), IntegerType::Unsigned);
  default:
    return b.getIntegerType(8 * byteSize(type));
  }
}

std::optional<DType> zero::onnx_import::dtypeFromType(Type type) {
  for (const DTypeInfo &info : dtypes)
    if (toType(info.type, type.getContext()) == type)
      return info.type;
  return std::nullopt;
}

std::optional<int64_t>
zero::onnx_import::countElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  bool overflow = false, empty = false;
  for (int64_t dim : shape) {
    if (dim < 0)
      return std::nullopt;
    empty |= dim == 0;
    overflow |=
        __builtin_mul_overflow(count, std::max<int64_t>(dim, 1), &count);
  }
  if (overflow)
    return std::nullopt;
  return empty ? 0 : count;
}

/// The format of a float type.
static const llvm::fltSemantics &semanticsOf(DType type) {
  switch (type) {
  case DType::F16:
    return llvm::APFloat::IEEEhalf();
  case DType::BF16:
    return llvm::APFloat::BFloat();
  case DType::F32:
    return llvm::APFloat::IEEEsingle();
  case DType::F8E4M3:
    return llvm::APFloat::Float8E4M3FN();
  case DType::F8E5M2:
    return llvm::APFloat::Float8E5M2();
  case DType::F8E4M3FNUZ:
    return llvm::APFloat::Float8E4M3FNUZ();
  case DType::F8E5M2FNUZ:
    return llvm::APFloat::Float8E5M2FNUZ();
  case DType::F8E8M0:
    return llvm::APFloat::Float8E8M0FNU();
  default:
    return llvm::APFloat::IEEEdouble();
  }
}

/// A power of two of F8E8M0, which has neither sign nor zero.
static double toScale(double value, const CastRules &rules) {
  double least = 0x1p-127, most = 0x1p127;
  bool fits = value >= least && value <= most;
  if (std::isnan(value) || (!fits && !rules.saturate))
    return std::numeric_limits<double>::quiet_NaN();
  if (!fits)
    return value > most ? most : least;
  int exponent;
  // In [0.5, 1); the power below is half of that above.
  double fraction = std::frexp(value, &exponent);
  bool up = rules.roundScale == "up"     ? fraction > 0.5
            : rules.roundScale == "down" ? false
                                         : fraction >= 0.75;
  return std::min(std::ldexp(1.0, exponent - (up ? 0 : 1)), most);
}

/// `value` rounded, ties to even, to `digits` binary digits and exponents of
/// `least` to `most`: APFloat's result in a third of its time.
static double roundToDigits(double value, int digits, int least, int most) {
  if (value == 0 || !std::isfinite(value))
    return value;
  int exponent = std::max(std::ilogb(value), least);
  double unit = std::ldexp(1.0, exponent - digits + 1);
  // Exact but for the rounding: units are powers of two.
  double rounded = std::nearbyint(value / unit) * unit;
  if (std::fabs(rounded) >= std::ldexp(1.0, most + 1))
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  return rounded;
}

/// `value` rounded to a float type narrower than double.
static double roundTo(DType type, double value) {
  if (type == DType::F32)
    return double(float(value));
  if (type == DType::F64)
    return value;
  if (type == DType::F16)
    return roundToDigits(value, 11, -14, 15);
  if (type == DType::BF16)
    return roundToDigits(value, 8, -126, 127);
  if (type == DType::F8E8M0)
    return toScale(value, {/*saturate=*/false, "nearest"});
  llvm::APFloat f(value);
  bool lost;
  f.convert(semanticsOf(type), llvm::APFloat::rmNearestTiesToEven, &lost);
  return f.convertToDouble();
}

/// `value` wrapped to the width of an integer type.
static int64_t wrapTo(DType type, int64_t value) {
  switch (type) {
  case DType::Bool:
    return value != 0;
  case DType::I8:
    return int8_t(value);
  case DType::I16:
    return int16_t(value);
  case DType::I32:
    return int32_t(value);
  case DType::U8:
    return uint8_t(value);
  case DType::U16:
    return uint16_t(value);
  case DType::U32:
    return uint32_t(value);
  default:
    return value;
  }
}

HostTensor::HostTensor(DType type, ArrayRef<int64_t> shape)
    : type(type), shape(shape.begin(), shape.end()) {
  size_t count = countElements(shape).value_or(0);
  if (isFloat(type))
    floats.resize(count);
  else
    ints.resize(count);
}

HostTensor HostTensor::fromInts(ArrayRef<int64_t> values) {
  HostTensor result(DType::I64, {int64_t(values.size())});
  result.ints.assign(values.begin(), values.end());
  return result;
}

void HostTensor::setFloat(int64_t i, double value) {
  floats[i] = roundTo(type, value);
}
void HostTensor::setInt(int64_t i, int64_t value) {
  ints[i] = wrapTo(type, value);
}

void HostTensor::setNumber(int64_t i, double value) {
  isFloat(type) ? setFloat(i, value) : setInt(i, toInteger(value));
}

HostTensor HostTensor::take(ArrayRef<int64_t> newShape,
                            ArrayRef<int64_t> indices) const {
  HostTensor result(type, newShape);
  const int64_t *from = indices.data();
  if (isFloat(type))
    for (double &value : result.floats)
      value = floats[*from++];
  else
    for (int64_t &value : result.ints)
      value = ints[*from++];
  return result;
}

template <typename T>
static T load(const char *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

static double decodeFloat(DType type, const char *at) {
  if (type == DType::F32)
    return load<float>(at);
  if (type == DType::F64)
    return load<double>(at);
  llvm::APInt bits = byteSize(type) == 1 ? llvm::APInt(8, load<uint8_t>(at))
                                         : llvm::APInt(16, load<uint16_t>(at));
  return llvm::APFloat(semanticsOf(type), bits).convertToDouble();
}

static int64_t decodeInt(DType type, const char *at) {
  switch (byteSize(type)) {
  case 1:
    return load<uint8_t>(at);
  case 2:
    return load<uint16_t>(at);
  case 4:
    return load<uint32_t>(at);
  default:
    return load<int64_t>(at);
  }
}

HostTensor HostTensor::decode(DType type, ArrayRef<int64_t> shape,
                              ArrayRef<char> bytes) {
  HostTensor result(type, shape);
  unsigned width = byteSize(type);
  for (int64_t i = 0, e = result.size(); i < e; ++i) {
    if (isFloat(type))
      result.floats[i] = decodeFloat(type, bytes.data() + i * width);
    else
      result.setInt(i, decodeInt(type, bytes.data() + i * width));
  }
  return result;
}

DenseElementsAttr HostTensor::toAttr(MLIRContext *context) const {
  Type element = toType(type, context);
  auto tensorType = RankedTensorType::get(shape, element);
  // The usual types without a number of MLIR's for each element.
  if (type == DType::F32)
    return DenseElementsAttr::get(
        tensorType,
        ArrayRef<float>(std::vector<float>(floats.begin(), floats.end())));
  if (type == DType::F64)
    return DenseElementsAttr::get(tensorType, ArrayRef<double>(floats));
  if (type == DType::I64)
    return DenseElementsAttr::get(tensorType, ArrayRef<int64_t>(ints));
  if (type == DType::I32)
    return DenseElementsAttr::get(
        tensorType,
        ArrayRef<int32_t>(std::vector<int32_t>(ints.begin(), ints.end())));
  if (auto floatType = dyn_cast<FloatType>(element)) {
    SmallVector<llvm::APFloat> values;
    values.reserve(floats.size());
    for (double v : floats) {
      llvm::APFloat f(v);
      bool lost;
      f.convert(floatType.getFloatSemantics(),
                llvm::APFloat::rmNearestTiesToEven, &lost);
      values.push_back(f);
    }
    return DenseElementsAttr::get(tensorType, values);
  }
  SmallVector<llvm::APInt> values;
  values.reserve(ints.size());
  unsigned width = element.getIntOrFloatBitWidth();
  for (int64_t v : ints)
    values.push_back(llvm::APInt(64, uint64_t(v)).trunc(width));
  return DenseElementsAttr::get(tensorType, values);
}

int64_t zero::onnx_import::toInteger(double value) {
  if (std::isnan(value))
    return 0;
  if (value >= 0x1p63)
    return std::numeric_limits<int64_t>::max();
  if (value < -0x1p63)
    return std::numeric_limits<int64_t>::min();
  return int64_t(value);
}

/// A float as an integer of `type`.
static int64_t toIntegerOf(DType type, double value) {
  if (type == DType::Bool)
    return value != 0;
  unsigned bits = 8 * byteSize(type);
  bool isSigned = type <= DType::I64;
  llvm::APSInt result(bits, /*isUnsigned=*/!isSigned);
  bool exact;
  // Saturates, and NaN gives 0.
  llvm::APFloat(value).convertToInteger(result, llvm::APFloat::rmTowardZero,
                                        &exact);
  return isSigned ? result.getSExtValue() : int64_t(result.getZExtValue());
}

static double toTinyFloat(DType type, double value, const CastRules &rules) {
  if (type == DType::F8E8M0)
    return toScale(value, rules);
  double rounded = roundTo(type, value);
  if (std::isfinite(rounded) || std::isnan(value) || !rules.saturate)
    return rounded;
  return llvm::APFloat::getLargest(semanticsOf(type), value < 0)
      .convertToDouble();
}

HostTensor zero::onnx_import::castHost(const HostTensor &from, DType type,
                                       const CastRules &rules) {
  HostTensor result(type, from.shape);
  for (int64_t i = 0; i < from.size(); ++i) {
    if (isFloat(type))
      result.setFloat(i, byteSize(type) == 1
                             ? toTinyFloat(type, from.number(i), rules)
                             : from.number(i));
    else if (isFloat(from.type))
      result.ints[i] = toIntegerOf(type, from.floats[i]);
    else
      result.setInt(i, from.ints[i]);
  }
  return result;
}

SmallVector<int64_t> zero::onnx_import::stridesOf(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t d = int64_t(shape.size()) - 2; d >= 0; --d)
    strides[d] = strides[d + 1] * shape[d + 1];
  return strides;
}

std::optional<SmallVector<int64_t>>
zero::onnx_import::broadcastShapes(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  SmallVector<int64_t> result(std::max(a.size(), b.size()));
  for (size_t i = 1; i <= result.size(); ++i) {
    int64_t x = i <= a.size() ? a[a.size() - i] : 1;
    int64_t y = i <= b.size() ? b[b.size() - i] : 1;
    if (x != y && x != 1 && y != 1)
      return std::nullopt;
    result[result.size() - i] = x == 1 ? y : x;
  }
  return result;
}

std::vector<int64_t> zero::onnx_import::broadcastIndices(ArrayRef<int64_t> from,
                                                         ArrayRef<int64_t> to) {
  std::vector<int64_t> indices(countElements(to).value_or(0));
  SmallVector<int64_t> strides = stridesOf(from), place(to.size(), 0);
  strides.insert(strides.begin(), to.size() - from.size(), 0);
  for (auto [d, size] : llvm::enumerate(from))
    if (size == 1)
      strides[to.size() - from.size() + d] = 0;
  int64_t at = 0;
  for (int64_t &index : indices) {
    index = at;
    // Counts up, the last dimension first.
    for (size_t d = to.size(); d-- > 0;) {
      at += strides[d];
      if (++place[d] < to[d])
        break;
      at -= strides[d] * place[d];
      place[d] = 0;
    }
  }
  return indices;
}
