//===- JoinPads.cpp - Sums of padded tensors as concatenations ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   add(add(pad(q), pad(k)), pad(v))        concat(q, k, v)
//
//   | q 0 0 | + | 0 k 0 | + | 0 0 v |   =   | q k v |
//
// The sum reads and writes the whole tensor five times, the concatenation once.
//
//===----------------------------------------------------------------------===//

#include "JoinPads.h"
#include "dialects/Train/Train.h"

using namespace mlir;
using namespace mlir::zero;

/// Collects the pads that `value` is a sum of; false if it is anything else.
static bool collectPads(Value value, SmallVectorImpl<train::PadOp> &pads,
                        bool isRoot = false) {
  if (!isRoot && !value.hasOneUse())
    return false;
  if (auto pad = value.getDefiningOp<train::PadOp>()) {
    pads.push_back(pad);
    return true;
  }
  auto add = value.getDefiningOp<train::AddOp>();
  return add && add.getLhs().getType() == add.getRhs().getType() &&
         collectPads(add.getLhs(), pads) && collectPads(add.getRhs(), pads);
}

/// The only dimension that `pads` pad, or nothing; without interior padding.
static std::optional<int64_t> findAxis(ArrayRef<train::PadOp> pads) {
  std::optional<int64_t> axis;
  for (train::PadOp pad : pads)
    for (size_t dim = 0; dim < pad.getLow().size(); ++dim) {
      if (pad.getInterior()[dim] != 0)
        return std::nullopt;
      if (pad.getLow()[dim] == 0 && pad.getHigh()[dim] == 0)
        continue;
      if (axis && *axis != static_cast<int64_t>(dim))
        return std::nullopt;
      axis = dim;
    }
  return axis;
}

static void joinSum(train::AddOp sum) {
  if (sum->use_empty())
    return;
  SmallVector<train::PadOp> pads;
  if (!collectPads(sum.getResult(), pads, /*isRoot=*/true))
    return;
  std::optional<int64_t> axis = findAxis(pads);
  if (!axis)
    return;
  llvm::sort(pads, [&](train::PadOp lhs, train::PadOp rhs) {
    return lhs.getLow()[*axis] < rhs.getLow()[*axis];
  });
  int64_t end = 0;
  SmallVector<Value> parts;
  for (train::PadOp pad : pads) {
    if (pad.getLow()[*axis] != end)
      return;
    parts.push_back(pad.getInput());
    end += cast<ShapedType>(pad.getInput().getType()).getDimSize(*axis);
  }
  if (end != cast<ShapedType>(sum.getType()).getDimSize(*axis))
    return;
  OpBuilder b(sum);
  sum.replaceAllUsesWith(
      train::ConcatOp::create(b, sum.getLoc(), parts, *axis).getResult());
}

void zero::joinPads(Block &block) {
  for (auto sum :
       llvm::make_early_inc_range(llvm::reverse(block.getOps<train::AddOp>())))
    joinSum(sum);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isa<train::AddOp, train::PadOp>(op) && op.use_empty())
      op.erase();
}
