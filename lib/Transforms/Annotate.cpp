//===- Annotate.cpp - zero-annotate ---------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the grid and names the unit of every parameter.
//
//===----------------------------------------------------------------------===//

#include "dialects/Zero/Zero.h"
#include "zero/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::zero {
#define GEN_PASS_DEF_ZEROANNOTATEPASS
#include "zero/Transforms/Passes.h.inc"
} // namespace mlir::zero

#define DEBUG_TYPE "zero-annotate"

using namespace mlir;
using namespace mlir::zero;

/// "h.0.attn.weight" -> "h.0", "fc1.bias" -> "fc1", "scale" -> "scale".
static StringRef getUnitOfName(StringRef name) {
  size_t begin = 0;
  while (begin < name.size()) {
    size_t end = std::min(name.find('.', begin), name.size());
    StringRef part = name.slice(begin, end);
    if (!part.empty() &&
        llvm::all_of(part, [](char c) { return llvm::isDigit(c); }) &&
        end != name.size())
      return name.take_front(end);
    begin = end + 1;
  }
  StringRef prefix = name.rsplit('.').first;
  return prefix.empty() ? name : prefix;
}

namespace {
class AnnotatePass : public zero::impl::ZeroAnnotatePassBase<AnnotatePass> {
public:
  using ZeroAnnotatePassBase::ZeroAnnotatePassBase;
  void runOnOperation() override;

private:
  FailureOr<SmallVector<int64_t>> getRequestedShape();
  LogicalResult declareGrid();
};
} // namespace

/// The shape that the options ask for; empty where they do not.
FailureOr<SmallVector<int64_t>> AnnotatePass::getRequestedShape() {
  SmallVector<int64_t> shape(grid.begin(), grid.end());
  if (ranks != kUnsetRanks && !shape.empty())
    return emitError(getOperation().getLoc(),
                     "is given a number of ranks and a grid; give one of them");
  if (ranks != kUnsetRanks)
    shape.push_back(ranks);
  for (int64_t size : shape)
    if (size < 1)
      return emitError(getOperation().getLoc())
             << "expects at least 1 rank, got " << size;
  return shape;
}

LogicalResult AnnotatePass::declareGrid() {
  ModuleOp module = getOperation();
  FailureOr<SmallVector<int64_t>> shape = getRequestedShape();
  if (failed(shape))
    return failure();
  auto grids = module.getOps<shard::GridOp>();
  if (!grids.empty()) {
    shard::GridOp existing = *grids.begin();
    if (!shape->empty() && ArrayRef<int64_t>(*shape) != existing.getShape())
      return existing.emitOpError()
             << "has shape [" << existing.getShape() << "], but ["
             << ArrayRef<int64_t>(*shape)
             << "] is asked for; remove the grid or the option";
    return success();
  }
  if (shape->empty()) {
    emitRemark(module.getLoc())
        << "no grid and no number of ranks given, using " << kDefaultRanks
        << " ranks";
    shape->push_back(kDefaultRanks);
  }
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  shard::GridOp::create(builder, module.getLoc(),
                        shape->size() == 2 ? kGrid2DName : kGridName, *shape);
  return success();
}

void AnnotatePass::runOnOperation() {
  if (failed(declareGrid()))
    return signalPassFailure();
  for (auto param : getOperation().getOps<ParamOp>())
    if (!param.getUnit()) {
      param.setUnit(getUnitOfName(param.getSymName()));
      ++numUnits;
    }
}
