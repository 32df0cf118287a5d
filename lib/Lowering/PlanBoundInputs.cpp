//===- PlanBoundInputs.cpp - Ranges of token and label inputs -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Follows integer inputs to the gathers and losses that use them.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "zero/Lowering/Passes.h"

#include "llvm/ADT/TypeSwitch.h"
#include <limits>

namespace mlir::zero {
#define GEN_PASS_DEF_PLANBOUNDINPUTS
#include "zero/Lowering/Passes.h.inc"
} // namespace mlir::zero

using namespace mlir;
using namespace mlir::zero;

namespace {
/// Integers that all uses seen so far accept.
constexpr llvm::StringLiteral kBounds = "zero.bounds";

struct Bounds {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
  std::optional<int64_t> ignore;
  bool known = false, isIndex = false;

  void limit(int64_t lowest, int64_t highest) {
    if (highest < lowest)
      return; // of a dimension of size 0, which no element names
    min = std::max(min, lowest);
    max = std::min(max, highest);
    known = true;
  }
};
} // namespace

static int64_t axisSize(Value tensor, int64_t axis) {
  return cast<ShapedType>(tensor.getType()).getDimSize(axis);
}

/// Of elements that may have bounds: not of booleans.
static bool isOfIntegers(Value tensor) {
  Type element = cast<ShapedType>(tensor.getType()).getElementType();
  return element.isInteger() && !element.isInteger(1);
}

/// Narrows `bounds` by the uses of `value`, through ops that only move
/// integers around. What arithmetic does to them is not followed.
static void followUses(Value value, Bounds &bounds) {
  for (OpOperand &use : value.getUses())
    TypeSwitch<Operation *>(use.getOwner())
        .Case([&](train::GatherOp op) {
          int64_t size = axisSize(op.getData(), op.getAxis());
          if (use.get() != op.getIndices()) {
            followUses(op.getResult(), bounds);
          } else {
            bounds.limit(-size, size - 1);
            bounds.isIndex = true;
          }
        })
        .Case([&](train::CrossEntropyOp op) {
          bounds.limit(0, axisSize(op.getLogits(), op.getAxis()) - 1);
          bounds.ignore = op.getIgnoreIndex();
        })
        .Case([&](train::CastOp op) {
          if (isOfIntegers(op.getResult()))
            followUses(op.getResult(), bounds);
        })
        .Case<train::ReshapeOp, train::SliceOp, train::ConcatOp,
              train::TransposeOp, train::BroadcastOp>(
            [&](auto op) { followUses(op.getResult(), bounds); });
}

namespace {
struct PlanBoundInputsPass
    : mlir::zero::impl::PlanBoundInputsBase<PlanBoundInputsPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    Builder builder(func.getContext());
    for (BlockArgument arg : func.getArguments()) {
      unsigned i = arg.getArgNumber();
      if (!func.getArgAttr(i, kInputAttr) || !isa<ShapedType>(arg.getType()) ||
          !isOfIntegers(arg))
        continue;
      Bounds bounds;
      // What the importer knows of an operator that it took apart.
      if (auto told = func.getArgAttrOfType<DenseI64ArrayAttr>(i, kBounds))
        bounds.limit(told[0], told[1]);
      followUses(arg, bounds);
      if (!bounds.known)
        continue;
      func.setArgAttr(i, kBounds,
                      builder.getDenseI64ArrayAttr({bounds.min, bounds.max}));
      // Tokens that are also labels must be valid indices everywhere.
      if (bounds.isIndex)
        func.removeArgAttr(i, "zero.ignore");
      else if (bounds.ignore)
        func.setArgAttr(i, "zero.ignore",
                        builder.getI64IntegerAttr(*bounds.ignore));
    }
  }
};
} // namespace
