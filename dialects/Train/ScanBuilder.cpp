//===- ScanBuilder.cpp - Making and changing train.scan -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See ScanBuilder.h.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/ScanBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::train;

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

ScanBuilder::ScanBuilder(OpBuilder &builder, Location loc, int64_t steps,
                         bool reverse)
    : builder(builder), outside(builder.saveInsertionPoint()), loc(loc),
      steps(steps), reverse(reverse), region(std::make_unique<Region>()),
      body(&region->emplaceBlock()) {
  builder.setInsertionPointToEnd(body);
}

Value ScanBuilder::addCarried(Value init) {
  inits.push_back(init);
  return body->insertArgument(inits.size() - 1, init.getType(), loc);
}

Value ScanBuilder::addCarriedZero(Type type) {
  OpBuilder::InsertionGuard guard(builder);
  builder.restoreInsertionPoint(outside);
  auto zero = builder.getZeroAttr(cast<RankedTensorType>(type));
  return addCarried(arith::ConstantOp::create(builder, loc, zero));
}

Value ScanBuilder::addScanned(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  scanned.push_back(tensor);
  return body->addArgument(RankedTensorType::get(type.getShape().drop_front(),
                                                 type.getElementType()),
                           loc);
}

/// Moves what depends on no argument of the body out of it, except for what
/// costs less where it is used.
void ScanBuilder::hoistInvariants() {
  for (Operation &op : llvm::make_early_inc_range(*body)) {
    if (op.getNumOperands() == 0 || op.hasTrait<OpTrait::IsTerminator>() ||
        isa<BroadcastOp>(op) || !isPure(&op) ||
        !llvm::all_of(op.getOperands(),
                      [&](Value value) { return isOutside(value); }))
      continue;
    op.remove();
    builder.insert(&op);
  }
}

static bool isCopied(Operation *op) {
  DenseElementsAttr value;
  return op && matchPattern(op, m_Constant(&value)) && value.isSplat();
}

/// Gives the body all that it uses from outside; what become operands.
SmallVector<Value> ScanBuilder::isolate() {
  llvm::MapVector<Value, Value> inside;
  OpBuilder copies(builder.getContext());
  copies.setInsertionPointToStart(body);
  SmallVector<Value> captured;
  auto take = [&](Value value) -> Value {
    if (isCopied(value.getDefiningOp()))
      return copies.clone(*value.getDefiningOp())->getResult(0);
    captured.push_back(value);
    return body->addArgument(value.getType(), loc);
  };
  for (Operation &op : *body)
    for (OpOperand &operand : op.getOpOperands()) {
      if (!isOutside(operand.get()))
        continue;
      auto [entry, isNew] = inside.insert({operand.get(), Value()});
      if (isNew)
        entry->second = take(operand.get());
      operand.set(entry->second);
    }
  return captured;
}

ScanOp ScanBuilder::finish(ValueRange carried, ValueRange stacked) {
  SmallVector<Value> yielded(carried);
  llvm::append_range(yielded, stacked);
  YieldOp::create(builder, loc, yielded);
  builder.restoreInsertionPoint(outside);
  hoistInvariants();
  outside = builder.saveInsertionPoint();
  SmallVector<Value> captured = isolate();
  return ScanOp::create(builder, loc, inits, scanned, captured, steps, reverse,
                        std::move(region));
}

//===----------------------------------------------------------------------===//
// Changing
//===----------------------------------------------------------------------===//

static std::unique_ptr<Region> cloneBody(ScanOp op, IRMapping &map) {
  auto region = std::make_unique<Region>();
  op.getBodyRegion().cloneInto(region.get(), map);
  return region;
}

SmallVector<Value> mlir::train::stackValues(OpBuilder &builder, ScanOp op,
                                            ArrayRef<Value> values) {
  SmallVector<Value> stacked(op.getYieldedStacked());
  size_t before = stacked.size();
  for (Value value : values)
    if (!llvm::is_contained(stacked, value))
      stacked.push_back(value);
  SmallVector<unsigned> places;
  for (Value value : values)
    places.push_back(llvm::find(stacked, value) - stacked.begin());
  if (stacked.size() != before) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(op);
    IRMapping map;
    std::unique_ptr<Region> region = cloneBody(op, map);
    for (Value value : ArrayRef(stacked).drop_front(before))
      region->front().getTerminator()->insertOperands(
          region->front().getTerminator()->getNumOperands(), map.lookup(value));
    auto more = ScanOp::create(builder, op.getLoc(), op.getInits(),
                               op.getScanned(), op.getCaptured(), op.getSteps(),
                               op.getReverse(), std::move(region));
    op->replaceAllUsesWith(more.getResults().take_front(op->getNumResults()));
    op = more;
  }
  return llvm::map_to_vector(
      places, [&](unsigned place) -> Value { return op.getStacked()[place]; });
}

namespace {
/// What of a scan somebody needs.
class UsedParts {
public:
  explicit UsedParts(ScanOp op);
  bool isAll() const { return all; }
  bool has(Value value) const { return values.contains(value); }
  bool has(Operation *op) const {
    return llvm::any_of(op->getResults(), [&](Value v) { return has(v); });
  }

  /// Of carried values and of stacked ones.
  SmallVector<bool> carried, stacked;

private:
  void need(Value value);

  ScanOp op;
  DenseSet<Value> values;
  bool all = true;
};
} // namespace

/// Marks `value` of the body and what it depends on, in earlier steps, too.
void UsedParts::need(Value value) {
  SmallVector<Value> worklist{value};
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!values.insert(next).second)
      continue;
    if (Operation *producer = next.getDefiningOp()) {
      llvm::append_range(worklist, producer->getOperands());
      continue;
    }
    unsigned number = cast<BlockArgument>(next).getArgNumber();
    if (number < carried.size()) {
      carried[number] = true;
      worklist.push_back(op.getYieldedCarried()[number]);
    }
  }
}

UsedParts::UsedParts(ScanOp op)
    : carried(op.getInits().size()), stacked(op.getStacked().size()), op(op) {
  for (auto [i, result] : llvm::enumerate(op.getFinals()))
    if (!result.use_empty()) {
      carried[i] = true;
      need(op.getYieldedCarried()[i]);
    }
  for (auto [i, result] : llvm::enumerate(op.getStacked()))
    if (!result.use_empty()) {
      stacked[i] = true;
      need(op.getYieldedStacked()[i]);
    }
  auto isSet = [](bool flag) { return flag; };
  all = llvm::all_of(carried, isSet) && llvm::all_of(stacked, isSet);
  for (BlockArgument argument :
       op.getBody()->getArguments().drop_front(carried.size()))
    all &= has(argument);
  for (Operation &inner : op.getBody()->without_terminator())
    all &= has(&inner);
}

bool mlir::train::eraseUnusedParts(RewriterBase &rewriter, ScanOp op) {
  UsedParts used(op);
  if (used.isAll())
    return false;
  Block &old = *op.getBody();
  SmallVector<Value> operands[3], yielded, kept;
  llvm::BitVector dropped(old.getNumArguments());
  for (auto [argument, operand] :
       llvm::zip_equal(old.getArguments(), op.getOperands())) {
    unsigned number = argument.getArgNumber();
    bool isCarried = number < used.carried.size();
    bool isScanned =
        !isCarried && number < used.carried.size() + op.getScanned().size();
    dropped[number] = !(isCarried ? used.carried[number] : used.has(argument));
    if (!dropped[number])
      operands[isCarried ? 0 : isScanned ? 1 : 2].push_back(operand);
  }
  for (auto [i, value] : llvm::enumerate(op.getYield().getValues()))
    if (i < used.carried.size() ? used.carried[i]
                                : used.stacked[i - used.carried.size()]) {
      yielded.push_back(value);
      kept.push_back(op.getResult(i));
    }
  op.getYield().getValuesMutable().assign(yielded);
  for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(old)))
    if (!inner.hasTrait<OpTrait::IsTerminator>() && !used.has(&inner))
      rewriter.eraseOp(&inner);
  old.eraseArguments(dropped);
  auto region = std::make_unique<Region>();
  region->takeBody(op.getBodyRegion());
  rewriter.setInsertionPoint(op);
  auto less = ScanOp::create(rewriter, op.getLoc(), operands[0], operands[1],
                             operands[2], op.getSteps(), op.getReverse(),
                             std::move(region));
  less->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  for (auto [before, after] : llvm::zip_equal(kept, less.getResults()))
    rewriter.replaceAllUsesWith(before, after);
  rewriter.eraseOp(op);
  return true;
}
