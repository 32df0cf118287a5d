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
  bool open = true;
};

/// What the members of a bucket have in common.
using BucketKey = std::tuple<StringRef, StringRef, DictionaryAttr, Type, int>;

class BucketPass : public zero::impl::ZeroBucketPassBase<BucketPass> {
public:
  using ZeroBucketPassBase::ZeroBucketPassBase;
  void runOnOperation() override;

private:
  void bucketIn(Block &body, SymbolTable &symbols);
  void closeUsedBy(Operation *op);
  void closeGathers();
  void close(unsigned bucket);
  void add(Operation *op, StringRef unit);
  bool fits(const Bucket &bucket, Operation *op, int64_t size);
  void merge(Bucket &bucket);
  void moveBehindOperands(Operation *op);
  void moveAssigns(Operation *merged);

  std::vector<Bucket> buckets;
  llvm::DenseMap<BucketKey, unsigned> current;
  /// By result of a member of an open bucket.
  llvm::DenseMap<Value, unsigned> bucketOf;
  SmallVector<unsigned> openGathers;
  /// Positions in the block before anything was moved.
  llvm::DenseMap<Operation *, int64_t> positions;
};
} // namespace

static bool isCollective(Operation *op) {
  return isa<AllGatherOp, ReduceScatterOp, AllReduceOp>(op);
}

static bool isAssignOnly(Operation *op) {
  return !op->use_empty() &&
         llvm::all_of(op->getUsers(), llvm::IsaPred<AssignOp>);
}

/// Whether `op` sums chunks that `reduction` has made, over replicas: both
/// become buckets, one after the other.
static bool follows(Operation *op, Operation *reduction) {
  return isa<AllReduceOp>(op) && isa<ReduceScatterOp>(reduction) &&
         op->getAttr("axes") != reduction->getAttr("axes") &&
         llvm::all_of(op->getOperands(), [&](Value value) {
           return value.getDefiningOp<ReduceScatterOp>();
         });
}

/// A sum over replicas follows the bucket that makes its operands.
void BucketPass::moveBehindOperands(Operation *op) {
  for (Value operand : op->getOperands()) {
    Operation *def = operand.getDefiningOp();
    if (def && positions.lookup(def) > positions.lookup(op)) {
      op->moveAfter(def);
      positions[op] = positions[def];
    }
  }
}

/// Lets assignments that stood before the merged op follow it.
void BucketPass::moveAssigns(Operation *merged) {
  Operation *end = merged;
  for (Value result : merged->getResults())
    for (Operation *user : result.getUsers())
      if (isa<AssignOp>(user) &&
          positions.lookup(user) < positions.lookup(merged)) {
        user->moveAfter(end);
        end = user;
      }
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
  positions[merged] = positions.lookup(position);
  for (auto [from, to] : llvm::zip(results, merged->getResults()))
    from.replaceAllUsesWith(to);
  if (!atFirst)
    moveAssigns(merged);
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

/// Merges what is in a bucket; those whose results its members use come first.
void BucketPass::close(unsigned number) {
  if (!buckets[number].open)
    return;
  buckets[number].open = false;
  for (Operation *member : buckets[number].members) {
    for (Value operand : member->getOperands())
      if (auto it = bucketOf.find(operand); it != bucketOf.end())
        close(it->second);
    for (Value result : member->getResults())
      bucketOf.erase(result);
  }
  moveBehindOperands(buckets[number].members.back());
  merge(buckets[number]);
}

void BucketPass::closeGathers() {
  for (unsigned number : openGathers)
    close(number);
  openGathers.clear();
}

/// Closes buckets that `op` ends: those with a result it uses, and gathers of
/// state, which would otherwise be hoisted across it.
void BucketPass::closeUsedBy(Operation *op) {
  for (Value value : getUsedValues(op)) {
    auto it = bucketOf.find(value);
    if (it == bucketOf.end())
      continue;
    Operation *first = buckets[it->second].members.front();
    bool waits = isa<AssignOp>(op) && isa<AllGatherOp>(first);
    if (!waits && !follows(op, first))
      close(it->second);
  }
  if (!isa<ReadOp, AllGatherOp>(op))
    closeGathers();
}

bool BucketPass::fits(const Bucket &bucket, Operation *op, int64_t size) {
  if (!gathersState(op))
    return bytes == 0 || bucket.bytes + size <= bytes;
  // A hoisted gather's operands must exist where the first one stands.
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    Operation *def = operand.getDefiningOp();
    return !def ||
           positions.lookup(def) < positions.lookup(bucket.members.front());
  });
}

void BucketPass::add(Operation *op, StringRef unit) {
  int64_t size = getWholeBytes(op);
  Type element = getLogicalType(op->getOperand(0).getType()).getElementType();
  BucketKey key(unit, op->getName().getStringRef(), op->getAttrDictionary(),
                element, gathersState(op));
  auto [it, isNew] = current.try_emplace(key, buckets.size());
  if (!isNew && buckets[it->second].open &&
      !fits(buckets[it->second], op, size))
    close(it->second);
  if (isNew || !buckets[it->second].open) {
    it->second = buckets.size();
    buckets.push_back({unit, {}, 0});
    if (gathersState(op))
      openGathers.push_back(it->second);
  }
  Bucket &bucket = buckets[it->second];
  bucket.members.push_back(op);
  bucket.bytes += size;
  for (Value result : op->getResults())
    bucketOf[result] = it->second;
}

void BucketPass::bucketIn(Block &body, SymbolTable &symbols) {
  SmallVector<Operation *> ops;
  for (Operation &op : body) {
    positions[&op] = ops.size();
    ops.push_back(&op);
  }
  for (Operation *op : ops) {
    closeUsedBy(op);
    bool mergeable =
        isCollective(op) && op->getNumOperands() != 0 &&
        (!isa<AllGatherOp>(op) || gathersState(op) || isAssignOnly(op));
    if (mergeable)
      add(op, getUnitOf(op, symbols));
  }
  for (unsigned number = 0; number < buckets.size(); ++number)
    close(number);
  buckets.clear();
  current.clear();
  openGathers.clear();
  positions.clear();
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
