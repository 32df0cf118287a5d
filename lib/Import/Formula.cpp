//===- Formula.cpp - Operators composed of others -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Formula.h.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Formula.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

Value Formula::cast(Value x, Type to) {
  if (!x || typeOf(x).getElementType() == to)
    return x;
  return c.emit<train::CastOp>(x, c.b.getNamedAttr("to", TypeAttr::get(to)));
}

Value Formula::power(Value x, double p) {
  if (p == 2)
    return mul(x, x);
  Value magnitude = abs(x);
  return p == 1 ? magnitude : pow(magnitude, p);
}

Value Formula::root(Value s, double p) {
  if (!s || p == 1)
    return s;
  Value isZero = equal(s, 0);
  Value safe = where(isZero, c.scalar(s, 1), s);
  Value y = p == 2 ? sqrt(safe) : pow(safe, 1 / p);
  return where(isZero, c.scalar(s, 0), y);
}

Value Formula::perChannel(Value vector, int64_t rank) {
  if (!vector)
    return {};
  if (typeOf(vector).getRank() != 1 || rank < 2) {
    (void)c.fail("expects a vector with one element per channel");
    return {};
  }
  SmallVector<int64_t> shape(rank, 1);
  shape[1] = shapeOf(vector)[0];
  return c.reshape(vector, shape);
}
