//===- Bucket.cpp - zero-bucket -------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Merges collectives of one unit into variadic ones.
//
//===----------------------------------------------------------------------===//

#include "StepInfo.h"
#include "zero/Transforms/Passes.h"

#include "mlir/IR/Remarks.h"

namespace mlir::zero {
#define GEN_PASS_DEF_ZEROBUCKETPASS
#include "zero/Transforms/Passes.h.inc"
} // namespace mlir::zero

#define DEBUG_TYPE "zero-bucket"

using namespace mlir;
using namespace mlir::zero;

namespace {
/// Collectives that become one op.
struct Bucket {
  StringRef unit;
  SmallVector<Operation *> members;
  int64_t bytes = 0;
};

class BucketPass : public zero::impl::ZeroBucketPassBase<BucketPass> {
public:
  using ZeroBucketPassBase::ZeroBucketPassBase;
  void runOnOperation() override;

private:
  void bucketIn(Block &body, SymbolTable &symbols);
  void closeUsedBy(Operation *op);
  void add(Operation *op, StringRef unit);
  void merge(Bucket &bucket);

  SmallVector<Bucket> open;
};
} // namespace

static bool isCollective(Operation *op) {
  return isa<AllGatherOp, ReduceScatterOp, AllReduceOp>(op);
}

static bool isAssignOnly(Operation *op) {
  return !op->use_empty() &&
         llvm::all_of(op->getUsers(), llvm::IsaPred<AssignOp>);
}

/// Replaces the members by one op: gathers of state where the first stood,
/// others, which wait for their last operand, where the last did.
void BucketPass::merge(Bucket &bucket) {
  if (bucket.members.size() < 2)
    return;
  bool atFirst = gathersState(bucket.members.front());
  Operation *position =
      atFirst ? bucket.members.front() : bucket.members.back();
  SmallVector<Value> operands, results;
  SmallVector<Location> locs;
  for (Operation *member : bucket.members) {
    llvm::append_range(operands, member->getOperands());
    llvm::append_range(results, member->getResults());
    locs.push_back(member->getLoc());
  }
  OpBuilder builder(position);
  OperationState state(builder.getFusedLoc(locs), position->getName());
  state.addOperands(operands);
  state.addTypes(llvm::to_vector(ValueRange(results).getTypes()));
  state.addAttributes(position->getAttrs());
  Operation *merged = builder.create(state);
  Operation *end = merged;
  for (auto [from, to] : llvm::zip(results, merged->getResults())) {
    from.replaceAllUsesWith(to);
    for (Operation *user : to.getUsers())
      if (!atFirst && isa<AssignOp>(user) && user->isBeforeInBlock(position)) {
        user->moveAfter(end);
        end = user;
      }
  }
  remark::passed(merged->getLoc(),
                 remark::RemarkOpts::name("bucket").category("zero-bucket"))
      << ("unit '" + bucket.unit + "': " + Twine(results.size()) +
          " tensors, " + Twine(bucket.bytes) + " bytes in one " +
          merged->getName().getStringRef())
             .str();
  numMerged += bucket.members.size() - 1;
  ++numBuckets;
  for (Operation *member : bucket.members)
    member->erase();
}

/// Closes buckets that `op` ends: those with a result it uses, and gathers of
/// state, which would otherwise be hoisted across it.
void BucketPass::closeUsedBy(Operation *op) {
  SetVector<Value> used = getUsedValues(op);
  llvm::erase_if(open, [&](Bucket &bucket) {
    Operation *first = bucket.members.front();
    bool ends = llvm::any_of(bucket.members, [&](Operation *member) {
      return llvm::any_of(member->getResults(),
                          [&](Value v) { return used.contains(v); });
    });
    if (gathersState(first))
      ends |= !isa<ReadOp, AllGatherOp>(op);
    else
      ends &= !(isa<AssignOp>(op) && isa<AllGatherOp>(first));
    if (ends)
      merge(bucket);
    return ends;
  });
}

static bool areAlike(Operation *a, Operation *b) {
  return a->getName() == b->getName() && a->getAttrs() == b->getAttrs() &&
         gathersState(a) == gathersState(b);
}

void BucketPass::add(Operation *op, StringRef unit) {
  int64_t size = getWholeBytes(op);
  for (Bucket &bucket : open) {
    if (bucket.unit != unit || !areAlike(bucket.members.front(), op))
      continue;
    bool fits = bytes == 0 || gathersState(op) || bucket.bytes + size <= bytes;
    // A hoisted gather's operands must exist where the first one stands.
    if (gathersState(op))
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp())
          fits &= def->isBeforeInBlock(bucket.members.front());
    if (!fits) {
      merge(bucket);
      bucket = Bucket{unit, {}, 0};
    }
    bucket.members.push_back(op);
    bucket.bytes += size;
    return;
  }
  open.push_back({unit, {op}, size});
}

void BucketPass::bucketIn(Block &body, SymbolTable &symbols) {
  SmallVector<Operation *> ops;
  for (Operation &op : body)
    ops.push_back(&op);
  for (Operation *op : ops) {
    closeUsedBy(op);
    bool mergeable =
        isCollective(op) && op->getNumOperands() != 0 &&
        (!isa<AllGatherOp>(op) || gathersState(op) || isAssignOnly(op));
    if (mergeable)
      add(op, getUnitOf(op, symbols));
  }
  for (Bucket &bucket : open)
    merge(bucket);
  open.clear();
}

void BucketPass::runOnOperation() {
  if (bytes < 0) {
    emitError(getOperation().getLoc())
        << "expects a bucket size of at least 0, got " << bytes.getValue();
    return signalPassFailure();
  }
  SymbolTable symbols(getOperation());
  for (auto func : getOperation().getOps<FunctionOpInterface>())
    for (Block &block : func.getFunctionBody())
      bucketIn(block, symbols);
}
