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
  bool known = false;

  void limit(int64_t size) { limit(0, size - 1); }
  void limit(int64_t lowest, int64_t highest) {
    min = std::max(min, lowest);
    max = std::min(max, highest);
    known = true;
  }
};
} // namespace

static int64_t axisSize(Value tensor, int64_t axis) {
  return cast<ShapedType>(tensor.getType()).getDimSize(axis);
}

/// Narrows `bounds` by the uses of `value`, through ops that only move
/// integers around. What arithmetic does to them is not followed.
static void followUses(Value value, Bounds &bounds) {
  for (OpOperand &use : value.getUses())
    TypeSwitch<Operation *>(use.getOwner())
        .Case([&](train::GatherOp op) {
          if (use.get() == op.getIndices())
            bounds.limit(axisSize(op.getData(), op.getAxis()));
          else
            followUses(op.getResult(), bounds);
        })
        .Case([&](train::CrossEntropyOp op) {
          bounds.limit(axisSize(op.getLogits(), op.getAxis()));
          bounds.ignore = op.getIgnoreIndex();
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
      auto type = dyn_cast<ShapedType>(arg.getType());
      if (!func.getArgAttr(i, kInputAttr) || !type ||
          !type.getElementType().isInteger())
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
      if (bounds.ignore && llvm::none_of(arg.getUsers(), [](Operation *user) {
            return isa<train::GatherOp>(user);
          }))
        func.setArgAttr(i, "zero.ignore",
                        builder.getI64IntegerAttr(*bounds.ignore));
    }
  }
};
} // namespace
