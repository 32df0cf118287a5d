//===- RematStep.cpp - A step function as a remat graph -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A node is an op of the forward pass that computes something from data; views
// belong to what they are views of. Parameters, inputs and constants are there
// all the time.
//
//===----------------------------------------------------------------------===//

#include "RematStep.h"
#include "StepUses.h"

#include "zero/Schedule/OpWork.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::zero;

static constexpr int64_t kAlignment = 64;

namespace {
class RematBuilder {
public:
  RematBuilder(StepPhases phases, SymbolTable &symbols, const CostModel &cost,
               int64_t stage)
      : symbols(symbols), cost(cost), stage(stage),
        body(phases.func.getFunctionBody().front()), uses(body) {
    step.phases = std::move(phases);
  }

  RematStep build();

private:
  bool isForward(Operation *op) const {
    return step.phases.forward.contains(op);
  }
  Value storageOf(Value value) const;
  int32_t nodeOf(Value value) const;
  void noteParameters(Operation *op);
  bool isNode(Operation *op) const;
  void addNode(Operation *op, int32_t at);
  void addUses(Operation *op, int32_t at);
  void addOthers(Operation *op, int32_t at);
  void joinForward();
  int64_t heldBytes(Operation *op) const;

  SymbolTable &symbols;
  const CostModel &cost;
  int64_t stage;
  Block &body;
  StepUses uses;
  RematStep step;
  /// Values made of parameters and constants only, and the unit of one of the
  /// parameters.
  llvm::DenseMap<Value, StringRef> parameters;
  llvm::DenseSet<Value> buffers; ///< what is read of buffers
  llvm::DenseMap<Operation *, int32_t> positions;
  std::vector<SmallVector<Operation *, 1>> forwardReaders; ///< by node
  StringRef unit;                                          ///< the last one
};
} // namespace

/// What `value` is a view of.
Value RematBuilder::storageOf(Value value) const {
  Operation *op = value.getDefiningOp();
  while (op && op->getBlock() == &body && uses.isView(op)) {
    value = op->getOperand(0);
    op = value.getDefiningOp();
  }
  return value;
}

int32_t RematBuilder::nodeOf(Value value) const {
  auto it = step.nodes.find(storageOf(value).getDefiningOp());
  return it == step.nodes.end() ? -1 : it->second;
}

/// Whether the results are made of parameters and constants only.
void RematBuilder::noteParameters(Operation *op) {
  StringRef from;
  if (auto read = dyn_cast<ReadOp>(op)) {
    auto param = symbols.lookup<ParamOp>(read.getSymbol());
    if (param && param.getBuffer())
      buffers.insert(read.getValue());
    from = param ? param.getUnit().value_or(param.getSymName()) : "";
  }
  for (Value value : getUsedValues(op)) {
    auto it = parameters.find(value);
    if (it == parameters.end())
      return;
    from = it->second.empty() ? from : it->second;
  }
  for (Value result : op->getResults())
    parameters[result] = from;
}

/// Whether a value only leaves the step or becomes state, where the update
/// happens in place.
static bool onlyLeaves(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<AssignOp>(user) || user->hasTrait<OpTrait::IsTerminator>();
  });
}

/// Bytes of the results that are held for others.
int64_t RematBuilder::heldBytes(Operation *op) const {
  int64_t bytes = 0;
  for (Value result : op->getResults())
    if (!onlyLeaves(result))
      bytes += llvm::alignTo(getTensorBytes(result.getType()), kAlignment);
  return bytes;
}

bool RematBuilder::isNode(Operation *op) const {
  return isForward(op) && op->getNumResults() != 0 &&
         op->getNumOperands() != 0 && !uses.isView(op) &&
         !isa<ZeroDialect>(op->getDialect()) &&
         !op->hasTrait<OpTrait::IsTerminator>();
}

void RematBuilder::addNode(Operation *op, int32_t at) {
  RematNode node;
  node.step = node.lastForward = at;
  node.bytes = heldBytes(op);
  OpWork work = getOpWork(op);
  node.seconds = cost.compute(work);
  bool readsParameter = false;
  node.pinned = !isMemoryEffectFree(op);
  for (Value value : getUsedValues(op)) {
    StringRef from = parameters.lookup(value);
    readsParameter |= parameters.contains(value);
    unit = from.empty() ? unit : from;
    node.pinned |= buffers.contains(storageOf(value));
  }
  node.product = work.cls == OpWork::Matmul && readsParameter;
  if (step.layers.empty() || step.layers.back() != unit)
    step.layers.push_back(unit.str());
  node.layer = step.layers.size() - 1;
  step.nodes[op] = step.ops.size();
  step.ops.push_back(op);
  step.graph.nodes.push_back(std::move(node));
  forwardReaders.emplace_back();
}

/// Tells the nodes that `op` reads of it.
void RematBuilder::addUses(Operation *op, int32_t at) {
  if (isForward(op) && uses.isView(op))
    return;
  bool leaves = isa<AssignOp>(op) || op->hasTrait<OpTrait::IsTerminator>();
  auto self = step.nodes.find(op);
  for (Value value : getUsedValues(op)) {
    int32_t number = nodeOf(value);
    if (number < 0 || (leaves && onlyLeaves(value)))
      continue;
    RematNode &node = step.graph.nodes[number];
    bool direct = value.getDefiningOp() == step.ops[number];
    bool joins = direct && mayJoinKernel(step.ops[number], op);
    if (!isForward(op) && !leaves) {
      if (node.uses.empty() || node.uses.back().by != at)
        node.uses.push_back({at, joins});
      continue;
    }
    node.lastForward = std::max(node.lastForward, at);
    if (!llvm::is_contained(forwardReaders[number], op))
      forwardReaders[number].push_back(op);
    if (self == step.nodes.end())
      continue;
    auto &operands = step.graph.nodes[self->second].operands;
    if (llvm::none_of(operands, [&](RematUse use) { return use.by == number; }))
      operands.push_back({number, joins});
  }
}

/// Values of the backward pass and what is computed of parameters only in it.
void RematBuilder::addOthers(Operation *op, int32_t at) {
  if (isForward(op) || step.phases.updates.contains(op) || uses.isView(op) ||
      uses.isPart(op) || isa<ZeroDialect>(op->getDialect()) ||
      op->getNumOperands() == 0)
    return;
  for (Value result : op->getResults()) {
    if (onlyLeaves(result))
      continue;
    bool leaves = stage >= 2 && step.phases.gradients.contains(result);
    int32_t last = leaves ? at : std::max<int64_t>(at, uses.lastRead(result));
    step.graph.others.push_back(
        {at, last,
         int64_t(llvm::alignTo(getTensorBytes(result.getType()), kAlignment))});
  }
}

/// Which nodes the kernel of their only reader computes.
void RematBuilder::joinForward() {
  for (auto [number, readers] : llvm::enumerate(forwardReaders)) {
    RematNode &node = step.graph.nodes[number];
    node.joinsForward =
        readers.size() == 1 &&
        llvm::is_contained(step.ops[number]->getUsers(), readers[0]) &&
        mayJoinKernel(step.ops[number], readers[0]);
    llvm::sort(node.operands,
               [](RematUse a, RematUse b) { return a.by < b.by; });
  }
}

RematStep RematBuilder::build() {
  for (Operation &op : body) {
    int32_t at = step.steps.size();
    step.steps.push_back(&op);
    noteParameters(&op);
    if (isNode(&op))
      addNode(&op, at);
    addUses(&op, at);
    addOthers(&op, at);
  }
  step.graph.numSteps = step.steps.size();
  joinForward();
  return std::move(step);
}

RematStep zero::buildRematStep(StepPhases phases, SymbolTable &symbols,
                               const CostModel &cost, int64_t stage) {
  return RematBuilder(std::move(phases), symbols, cost, stage).build();
}

//===----------------------------------------------------------------------===//
// Back to the function
//===----------------------------------------------------------------------===//

namespace {
class RematApplier {
public:
  RematApplier(RematStep &step, const RematPoint &point)
      : step(step), point(point) {}

  void apply();

private:
  void copy(int32_t node);
  void copyViews(Operation *op, OpBuilder &builder);
  Operation *clone(Operation *op, OpBuilder &builder);
  void rewire();

  RematStep &step;
  const RematPoint &point;
  IRMapping mapping;
  SmallVector<Operation *> copies;
};
} // namespace

Operation *RematApplier::clone(Operation *op, OpBuilder &builder) {
  Operation *copy = builder.clone(*op, mapping);
  copy->setAttr(kRecomputedAttr, builder.getUnitAttr());
  copies.push_back(copy);
  return copy;
}

/// Views of what was copied; those that nobody reads go in the end.
void RematApplier::copyViews(Operation *op, OpBuilder &builder) {
  for (Operation *user : op->getUsers())
    if (step.phases.forward.contains(user) && isView(user) &&
        user->getOperand(0).getDefiningOp() == op &&
        !mapping.contains(user->getResult(0))) {
      clone(user, builder);
      copyViews(user, builder);
    }
}

/// Copies an op of the forward pass to just before its first use.
void RematApplier::copy(int32_t node) {
  OpBuilder builder(step.steps[point.place[node]]);
  clone(step.ops[node], builder);
  copyViews(step.ops[node], builder);
}

/// Lets the backward pass read the copies.
void RematApplier::rewire() {
  Block &body = step.phases.func.getFunctionBody().front();
  for (auto [value, copy] : mapping.getValueMap())
    value.replaceUsesWithIf(copy, [&](OpOperand &use) {
      Operation *user = getAncestorIn(&body, use.getOwner());
      return user && !step.phases.forward.contains(user) &&
             !isa<AssignOp>(user) && !user->hasTrait<OpTrait::IsTerminator>();
    });
}

void RematApplier::apply() {
  for (int32_t node = 0, e = step.ops.size(); node != e; ++node)
    if (point.recomputed[node])
      copy(node);
  rewire();
  for (Operation *op : llvm::reverse(copies))
    if (op->use_empty())
      op->erase();
}

void zero::applyRemat(RematStep &step, const RematPoint &point) {
  RematApplier(step, point).apply();
}
