//===- OffloadActivations.cpp - what forward keeps for backward -----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds what the backward pass reads of the forward pass, names it, and moves
// it out and in.
//
//===----------------------------------------------------------------------===//

#include "OffloadStep.h"

#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::zero;

//===----------------------------------------------------------------------===//
// The forward pass
//===----------------------------------------------------------------------===//

/// What results of the step, buffers and each rank's own sums are made of.
static SmallVector<Value> getRoots(OffloadStep &step, SymbolTable &symbols) {
  SmallVector<Value> roots(step.body->getTerminator()->getOperands());
  for (auto assign : step.body->getOps<AssignOp>()) {
    auto param = symbols.lookup<ParamOp>(assign.getSymbol());
    if ((param && param.getBuffer()) ||
        isOwnSum(symbols.lookup<StateOp>(assign.getSymbol())))
      roots.push_back(assign.getValue());
  }
  return roots;
}

/// All ops of the body that `value` depends on; false where gradients are
/// among them.
static bool collectProducers(Block *body, Value value,
                             llvm::DenseSet<Operation *> &ops) {
  SmallVector<Value> worklist = {value};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val().getDefiningOp();
    if (!op || op->getBlock() != body || !ops.insert(op).second)
      continue;
    if (isa<AllReduceOp, ReduceScatterOp, ElementSum, OptimizerUpdate>(op))
      return false;
    llvm::append_range(worklist, getUsedValues(op));
  }
  return true;
}

llvm::DenseSet<Operation *> zero::findForwardOps(OffloadStep &step,
                                                 SymbolTable &symbols) {
  llvm::DenseSet<Operation *> forward;
  for (Value root : getRoots(step, symbols)) {
    llvm::DenseSet<Operation *> producers;
    if (collectProducers(step.body, root, producers))
      forward.insert(producers.begin(), producers.end());
  }
  if (llvm::any_of(forward, [](Operation *op) {
        return !isa<ReadOp, LocalOp>(op) && op->getNumOperands() != 0;
      }))
    return forward;
  for (Operation &op : *step.body) {
    if (isa<AllReduceOp, ReduceScatterOp>(op) ||
        getSummedAccumulator(&op, symbols))
      break;
    forward.insert(&op);
  }
  return forward;
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

namespace {
class ActivationFinder {
public:
  ActivationFinder(OffloadStep &step, SymbolTable &symbols)
      : step(step), symbols(symbols), forward(findForwardOps(step, symbols)) {}

  std::vector<Activation> run();

private:
  StringRef getUnit(Operation *op);
  bool counts(Value value);
  bool findUses(Activation &activation);

  OffloadStep &step;
  SymbolTable &symbols;
  llvm::DenseSet<Operation *> forward;
};
} // namespace

/// The value that `value` is another layout of; null where it is computed.
static Value getLaidOut(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto view = dyn_cast_or_null<ViewLikeOpInterface>(op))
    return view.getViewSource();
  return op && op->hasTrait<CostNothing>() && op->getNumOperands()
             ? op->getOperand(0)
             : Value();
}

/// `value` and the layouts of it that `ops` make.
static llvm::SetVector<Value>
getLayouts(Value value, const llvm::DenseSet<Operation *> &ops) {
  llvm::SetVector<Value> layouts;
  layouts.insert(value);
  for (size_t i = 0; i < layouts.size(); ++i) {
    SmallVector<Operation *> users(layouts[i].getUsers());
    for (Operation *user : llvm::reverse(users))
      if (ops.contains(user) && user->getNumResults() == 1 &&
          getLaidOut(user->getResult(0)) == layouts[i])
        layouts.insert(user->getResult(0));
  }
  return layouts;
}

/// The layer of a parameter that `op` reads, itself or gathered; else empty.
StringRef ActivationFinder::getUnit(Operation *op) {
  for (Value operand : op->getOperands()) {
    auto read = getStateBehind(lookThrough(operand)).getDefiningOp<ReadOp>();
    auto param = read ? symbols.lookup<ParamOp>(read.getSymbol()) : ParamOp();
    if (param)
      return param.getUnit().value_or("");
  }
  return "";
}

/// Whether `value` is computed by the forward pass: no state, no constant, no
/// view of something else.
bool ActivationFinder::counts(Value value) {
  Operation *op = value.getDefiningOp();
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getRank() == 0 || op->getNumOperands() == 0 ||
      isa<ReadOp, LocalOp, AllGatherOp, ReshardOp, TransferOp, OnHostOp>(op))
    return false;
  return !getLaidOut(value);
}

/// Collects the uses of a value and of its layouts, by the passes; false where
/// the backward pass has none, or does not come last.
bool ActivationFinder::findUses(Activation &activation) {
  activation.lastForward = activation.value.getDefiningOp();
  for (Value layout : getLayouts(activation.value, forward)) {
    for (OpOperand &use : layout.getUses()) {
      Operation *user = getAncestorIn(step.body, use.getOwner());
      if (user == step.body->getTerminator() || user != use.getOwner())
        return false;
      if (!forward.contains(user))
        activation.uses.push_back(&use);
      else if (activation.lastForward->isBeforeInBlock(user))
        activation.lastForward = user;
    }
  }
  llvm::sort(activation.uses, [](OpOperand *a, OpOperand *b) {
    if (a->getOwner() == b->getOwner())
      return a->getOperandNumber() < b->getOperandNumber();
    return a->getOwner()->isBeforeInBlock(b->getOwner());
  });
  return !activation.uses.empty() && activation.lastForward->isBeforeInBlock(
                                         activation.uses.front()->getOwner());
}

std::vector<Activation> ActivationFinder::run() {
  std::vector<Activation> activations;
  llvm::StringMap<int64_t> taken;
  StringRef unit;
  for (Operation &op : *step.body) {
    if (!forward.contains(&op) || isa<ReadOp, LocalOp, AllGatherOp>(op))
      continue;
    if (StringRef own = getUnit(&op); !own.empty())
      unit = own;
    StringRef kind = op.getName().stripDialect();
    std::string base = unit.empty() ? kind.str() : (unit + "." + kind).str();
    for (Value result : op.getResults()) {
      if (!counts(result))
        continue;
      int64_t number = taken[base]++;
      Activation activation;
      activation.name = number ? base + "." + std::to_string(number) : base;
      activation.unit = unit.str();
      activation.value = result;
      if (findUses(activation))
        activations.push_back(std::move(activation));
    }
  }
  return activations;
}

std::vector<Activation> zero::findActivations(OffloadStep &step,
                                              SymbolTable &symbols) {
  return ActivationFinder(step, symbols).run();
}

/// What `value` is in terms of `mapping`: layouts are made again.
static Value layOutAgain(OpBuilder &builder, Value value, IRMapping &mapping) {
  if (Value mapped = mapping.lookupOrNull(value))
    return mapped;
  layOutAgain(builder, getLaidOut(value), mapping);
  return builder.clone(*value.getDefiningOp(), mapping)->getResult(0);
}

/// Copies a value out after its last use in forward and in before the first in
/// backward.
static void moveActivation(Activation &activation, Memory memory) {
  Location loc = activation.value.getLoc();
  OpBuilder builder(activation.value.getContext());
  builder.setInsertionPointAfter(activation.lastForward);
  SmallVector<Value> kept =
      moveValues(builder, loc, activation.value, Memory::Device, memory);
  builder.setInsertionPoint(activation.uses.front()->getOwner());
  SmallVector<Value> back =
      moveValues(builder, loc, kept, memory, Memory::Device);
  IRMapping mapping;
  mapping.map(activation.value, back.front());
  for (OpOperand *use : activation.uses)
    use->set(layOutAgain(builder, use->get(), mapping));
}

void zero::moveActivations(OffloadModule &info, OffloadStep &step) {
  if (info.activations.empty())
    return;
  for (Activation &activation : findActivations(step, info.symbols)) {
    auto it = info.activations.find(activation.name);
    if (it != info.activations.end())
      moveActivation(activation, it->second);
  }
}
