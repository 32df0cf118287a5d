//===- TrainScan.cpp - The loop over steps --------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What makes a train.scan valid, its result types, its cost and what can be
// left out of it.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/InferError.h"
#include "dialects/Train/ScanBuilder.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::train;

/// The types of the carried values, and those that are stacked with an axis for
/// the steps.
static void addResultTypes(TypeRange carried, int64_t steps, YieldOp yield,
                           SmallVectorImpl<Type> &types) {
  llvm::append_range(types, carried);
  for (Value value : yield.getValues().drop_front(carried.size())) {
    SmallVector<int64_t> shape{steps};
    llvm::append_range(shape, shapeOf(value));
    types.push_back(
        RankedTensorType::get(shape, getTensorType(value).getElementType()));
  }
}

void ScanOp::build(OpBuilder &builder, OperationState &state, ValueRange inits,
                   ValueRange scanned, ValueRange captured, int64_t steps,
                   bool reverse, std::unique_ptr<Region> body) {
  state.addOperands(inits);
  state.addOperands(scanned);
  state.addOperands(captured);
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.setSteps(builder.getI64IntegerAttr(steps));
  if (reverse)
    properties.setReverse(builder.getUnitAttr());
  llvm::copy(ArrayRef<int32_t>{static_cast<int32_t>(inits.size()),
                               static_cast<int32_t>(scanned.size()),
                               static_cast<int32_t>(captured.size())},
             properties.operandSegmentSizes.begin());
  state.addRegion(std::move(body));
  auto yield = cast<YieldOp>(state.regions[0]->front().getTerminator());
  addResultTypes(inits.getTypes(), steps, yield, state.types);
}

LogicalResult ScanOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location> loc,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  TypeRange carried = adaptor.getInits().getTypes();
  Region &body = adaptor.getBodyRegion();
  auto yield = body.empty() || body.front().empty()
                   ? YieldOp()
                   : dyn_cast<YieldOp>(body.front().back());
  if (!yield || yield.getNumOperands() < carried.size())
    return emitOptionalError(
        loc, "'train.scan' op has a body that does not yield all of its ",
        carried.size(), " carried values");
  addResultTypes(carried, adaptor.getSteps(), yield, types);
  return success();
}

YieldOp ScanOp::getYield() { return cast<YieldOp>(getBody()->getTerminator()); }

OperandRange ScanOp::getYieldedCarried() {
  return getYield().getValues().take_front(getInits().size());
}

OperandRange ScanOp::getYieldedStacked() {
  return getYield().getValues().drop_front(getInits().size());
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

LogicalResult ScanOp::verify() {
  int64_t steps = getSteps();
  if (steps < 1)
    return emitOpError() << "has " << steps << " steps, expected at least 1";
  SmallVector<Type> expected(getInits().getTypes());
  for (Value tensor : getScanned()) {
    ArrayRef<int64_t> shape = shapeOf(tensor);
    if (shape.empty() || shape.front() != steps)
      return emitOpError() << "has " << steps << " steps, but is over a "
                           << tensor.getType();
    expected.push_back(RankedTensorType::get(
        shape.drop_front(), getTensorType(tensor).getElementType()));
  }
  llvm::append_range(expected, getCaptured().getTypes());
  Block &body = *getBody();
  if (body.getNumArguments() != expected.size())
    return emitOpError() << "has a body with " << body.getNumArguments()
                         << " arguments, expected " << expected.size();
  for (auto [argument, type] : llvm::zip_equal(body.getArguments(), expected))
    if (argument.getType() != type)
      return emitOpError() << "has a body whose argument "
                           << argument.getArgNumber() << " is a "
                           << argument.getType() << ", expected " << type;
  return success();
}

LogicalResult ScanOp::verifyRegions() {
  for (auto [i, value, init] : llvm::enumerate(getYieldedCarried(), getInits()))
    if (value.getType() != init.getType())
      return emitOpError() << "carries a " << init.getType() << " as its value "
                           << i << ", but yields a " << value.getType();
  for (Operation &op : getBody()->without_terminator())
    if (!isPure(&op))
      return op.emitOpError("has effects, which the body of a train.scan "
                            "cannot have");
  return success();
}

//===----------------------------------------------------------------------===//
// Cost and unused parts
//===----------------------------------------------------------------------===//

/// The body in each step. What a step makes stays in the cache; what is the
/// same in all steps is read in each.
zero::Work ScanOp::getWork() {
  zero::Work work;
  for (Operation &op : getBody()->without_terminator())
    if (auto cost = dyn_cast<zero::Cost>(op)) {
      zero::Work part = cost.getWork();
      work.flops += getSteps() * part.flops;
      work.transcendentals += getSteps() * part.transcendentals;
    }
  work.bytes = zero::getOperandAndResultBytes(*this);
  for (Value value : getCaptured())
    work.bytes += (getSteps() - 1) * zero::getTensorBytes(value.getType());
  return work;
}

namespace {
struct EraseUnusedParts : OpRewritePattern<ScanOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ScanOp op, PatternRewriter &b) const override {
    return success(eraseUnusedParts(b, op));
  }
};
} // namespace

void ScanOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                         MLIRContext *context) {
  patterns.add<EraseUnusedParts>(context);
}
