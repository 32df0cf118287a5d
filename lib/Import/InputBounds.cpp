//===- InputBounds.cpp - What integers of an input are valid --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Import/InputBounds.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <algorithm>

using namespace mlir;

/// The input whose elements `value` holds, or nothing. Booleans made of it do
/// not tell its elements.
static BlockArgument findInput(Value value) {
  while (true) {
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    if (!element.isInteger() || element.isInteger(1))
      return {};
    Operation *op = value.getDefiningOp();
    if (!op)
      return cast<BlockArgument>(value);
    if (!isa<train::ReshapeOp, train::TransposeOp, train::CastOp>(op))
      return {};
    value = op->getOperand(0);
  }
}

void zero::onnx_import::boundInput(Value value, int64_t lowest, int64_t highest,
                                   std::optional<int64_t> ignored) {
  // Nothing names an element of a dimension of size 0.
  BlockArgument input =
      value && lowest <= highest ? findInput(value) : BlockArgument();
  auto function =
      input ? dyn_cast_or_null<func::FuncOp>(input.getOwner()->getParentOp())
            : func::FuncOp();
  if (!function)
    return;
  unsigned i = input.getArgNumber();
  if (auto known =
          function.getArgAttrOfType<DenseI64ArrayAttr>(i, "zero.bounds")) {
    lowest = std::max(lowest, known[0]);
    highest = std::min(highest, known[1]);
  }
  Builder b(function.getContext());
  function.setArgAttr(i, "zero.bounds",
                      b.getDenseI64ArrayAttr({lowest, highest}));
  if (ignored)
    function.setArgAttr(i, "zero.ignore", b.getI64IntegerAttr(*ignored));
}
