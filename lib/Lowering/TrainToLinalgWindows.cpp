//===- TrainToLinalgWindows.cpp - Sliding windows -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See TrainToLinalgWindows.h.
//
//===----------------------------------------------------------------------===//

#include "TrainToLinalgWindows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::zero;

Value zero::both(OpBuilder &b, Location loc, Value lhs, Value rhs) {
  return lhs ? Value(arith::AndIOp::create(b, loc, lhs, rhs)) : rhs;
}

/// low <= x < high.
static Value isBetween(OpBuilder &b, Location loc, Value x, int64_t low,
                       int64_t high) {
  Value above = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, x,
                                      constantIndex(b, loc, low));
  Value below = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x,
                                      constantIndex(b, loc, high));
  return arith::AndIOp::create(b, loc, above, below);
}

void Windows::locateDim(OpBuilder &b, Location loc, unsigned dim, Value window,
                        Value element, WindowPlace &place) const {
  int64_t size = input[dim + 2];
  int64_t before = pads[dim], after = pads[dim + kernel.size()];
  auto scaled = [&](Value x, int64_t factor) -> Value {
    return arith::MulIOp::create(b, loc, x, constantIndex(b, loc, factor));
  };
  Value position = arith::AddIOp::create(b, loc, scaled(window, strides[dim]),
                                         scaled(element, dilations[dim]));
  position =
      arith::SubIOp::create(b, loc, position, constantIndex(b, loc, before));
  // With ONNX's ceil_mode the last window may reach beyond the padding too.
  place.inside =
      both(b, loc, place.inside, isBetween(b, loc, position, 0, size));
  place.counted = both(b, loc, place.counted,
                       isBetween(b, loc, position, -before, size + after));
  Value clamped =
      arith::MinSIOp::create(b, loc, position, constantIndex(b, loc, size - 1));
  place.indices.push_back(
      arith::MaxSIOp::create(b, loc, clamped, constantIndex(b, loc, 0)));
}

WindowPlace Windows::locate(OpBuilder &b, Location loc, ValueRange window,
                            ValueRange element) const {
  WindowPlace place;
  place.indices = {window[0], window[1]};
  for (unsigned dim = 0; dim < kernel.size(); ++dim)
    locateDim(b, loc, dim, window[dim + 2], element[dim], place);
  return place;
}

WindowCover Windows::findWindow(OpBuilder &b, Location loc,
                                ArrayRef<int64_t> outputs, ValueRange indices,
                                ValueRange offset) const {
  WindowCover cover;
  cover.window = {indices[0], indices[1]};
  for (unsigned dim = 0; dim < kernel.size(); ++dim) {
    auto constant = [&](int64_t value) { return constantIndex(b, loc, value); };
    Value shift =
        arith::MulIOp::create(b, loc, offset[dim], constant(dilations[dim]));
    Value first = arith::SubIOp::create(
        b, loc,
        arith::AddIOp::create(b, loc, indices[dim + 2], constant(pads[dim])),
        shift);
    Value stride = constant(strides[dim]);
    Value rest = arith::RemSIOp::create(b, loc, first, stride);
    Value number = arith::DivSIOp::create(b, loc, first, stride);
    Value fits = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, rest,
                                       constant(0));
    Value exists = isBetween(b, loc, number, 0, outputs[dim + 2]);
    cover.valid = both(b, loc, both(b, loc, cover.valid, fits), exists);
    cover.window.push_back(number);
  }
  return cover;
}
