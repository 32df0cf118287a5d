//===- StepUses.cpp - Who reads what last -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One pass backwards over the block: users come before what they use.
//
//===----------------------------------------------------------------------===//

#include "StepUses.h"

#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "zero/Schedule/OpWork.h"
#include "zero/Transforms/StepUtils.h"

using namespace mlir;
using namespace mlir::zero;

/// More ops than this make no faster kernel.
static constexpr size_t kMaxParts = 48;

/// One result, each element of it a function of elements of the operands.
static bool isElementwise(Operation *op) {
  if (op->getNumResults() != 1 || !isMemoryEffectFree(op) ||
      !isa<RankedTensorType>(op->getResult(0).getType()))
    return false;
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return generic.getNumParallelLoops() == generic.getNumLoops();
  return op->getNumRegions() == 0 &&
         (op->hasTrait<OpTrait::Elementwise>() ||
          op->hasTrait<train::BroadcastElementwise>());
}

/// Whether a kernel computes `op`, so that it may compute operands as well.
static bool isKernel(Operation *op) {
  return !isa<ZeroDialect>(op->getDialect()) &&
         !op->hasTrait<OpTrait::IsTerminator>() && isMemoryEffectFree(op) &&
         !isa<OptimizerUpdate, ElementSum>(op) &&
         getOpWork(op).cls == OpWork::Kernel;
}

static int64_t countElements(Operation *op) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  return type ? type.getNumElements() : 0;
}

/// The only op of `body` that uses the results of `op`, or null.
static Operation *getOnlyUser(Block &body, Operation *op) {
  Operation *only = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *inBody = getAncestorIn(&body, user);
    if (!inBody || (only && only != inBody))
      return nullptr;
    only = inBody;
  }
  return only;
}

bool zero::mayJoinKernel(Operation *op, Operation *user) {
  if (!isElementwise(op) || llvm::any_of(op->getOperands(), [](Value value) {
        return isa_and_nonnull<ReadOp, LocalOp>(value.getDefiningOp());
      }))
    return false;
  return isKernel(user) && !zero::isView(user) &&
         (!isElementwise(user) || countElements(user) == countElements(op));
}

/// Makes `op` a part of the kernel of its only user, where it is one.
void StepUses::joinKernel(Operation *op) {
  Operation *user = getOnlyUser(body, op);
  if (!user || !mayJoinKernel(op, user))
    return;
  Operation *root = roots.lookup(user);
  if (!root)
    root = user;
  SmallVector<Operation *> &list = parts[root];
  if (list.size() >= kMaxParts)
    return;
  list.push_back(op);
  roots[op] = root;
  positions[op] = positions[root];
}

void StepUses::recordReads(Operation *op) {
  if (isa<ReleaseOp>(op))
    return;
  if (auto read = dyn_cast<ReadOp>(op))
    symbolReads.try_emplace(read.getSymbol(), positions[op]);
  bool passesOn = isa<LocalOp>(op) || views.contains(op);
  int64_t at = passesOn ? -1 : positions[op];
  if (passesOn)
    for (Value result : op->getResults())
      at = std::max(at, lastRead(result));
  for (Value value : getUsedValues(op)) {
    int64_t &last = lastReads.try_emplace(value, -1).first->second;
    last = std::max(last, at);
  }
}

StepUses::StepUses(Block &body) : body(body) {
  int64_t next = 0;
  for (Operation &op : body)
    positions[&op] = next++;
  for (Operation &op : llvm::reverse(body)) {
    if (!isa<ZeroDialect>(op.getDialect()) && zero::isView(&op))
      views.insert(&op);
    else
      joinKernel(&op);
    recordReads(&op);
  }
}

int64_t StepUses::lastRead(Value value) const {
  auto it = lastReads.find(value);
  return it == lastReads.end() ? -1 : it->second;
}

int64_t StepUses::readOfSymbol(StringRef symbol) const {
  auto it = symbolReads.find(symbol);
  return it == symbolReads.end() ? -1 : it->second;
}

SmallVector<Operation *> StepUses::takePartsOf(Operation *root) {
  auto it = parts.find(root);
  if (it == parts.end())
    return {};
  SmallVector<Operation *> list = std::move(it->second);
  std::reverse(list.begin(), list.end());
  return list;
}
