//===- OffloadStep.cpp - a step some of which lives elsewhere -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the updates of a partitioned step, and builds transfers.
//
//===----------------------------------------------------------------------===//

#include "OffloadStep.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::zero;

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

/// Whether `op` may be remade on the host as part of an update of tensors of
/// shape `shape`: elementwise ops, constants, and what takes a scalar out of
/// its tensor.
static bool belongsToUpdate(Operation *op, ArrayRef<int64_t> shape,
                            SymbolTable &symbols) {
  if (!isMemoryEffectFree(op) || getSummedAccumulator(op, symbols))
    return false;
  if (op->getNumOperands() == 0)
    return op->getNumResults() == 1 && op->getNumRegions() == 0;
  auto extract = dyn_cast<tensor::ExtractOp>(op);
  return isa<OptimizerUpdate>(op) || isElementwiseOn(op, shape) ||
         (extract && extract.getIndices().empty());
}

/// The bucket of reductions that `value`, a gradient or a sum of gradients over
/// micro-batches, comes from; null for other values.
static Operation *getReduction(Value value, SymbolTable &symbols) {
  Operation *op = value.getDefiningOp();
  if (!op || isa<AllReduceOp, ReduceScatterOp>(op))
    return op;
  if (!getSummedAccumulator(op, symbols))
    return nullptr;
  for (Value operand : op->getOperands())
    if (isa_and_nonnull<AllReduceOp, ReduceScatterOp>(operand.getDefiningOp()))
      return operand.getDefiningOp();
  return nullptr;
}

static void findSlice(LocalUpdate &update, SymbolTable &symbols) {
  SmallVector<Value> worklist(update.values);
  llvm::DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    ArrayRef<int64_t> shape =
        cast<RankedTensorType>(update.values.front().getType()).getShape();
    Operation *op = value.getDefiningOp();
    if (op && belongsToUpdate(op, shape, symbols)) {
      update.ops.insert(op);
      SetVector<Value> used = getUsedValues(op);
      worklist.append(used.rbegin(), used.rend());
      continue;
    }
    update.inputs.insert(value);
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || type.getShape() != shape || update.reduction)
      continue;
    update.reduction = getReduction(value, symbols);
    update.ofSum =
        update.reduction && value.getDefiningOp() != update.reduction;
  }
}

/// The value that this rank computes for an assignment.
static Value getLocalValue(AssignOp assign) {
  auto result = dyn_cast<OpResult>(assign.getValue());
  auto gather =
      result ? dyn_cast<AllGatherOp>(result.getOwner()) : AllGatherOp();
  if (gather && !gathersState(gather))
    return gather.getInputs()[result.getResultNumber()];
  return assign.getValue();
}

static ParamOp getUpdatedParam(AssignOp assign, SymbolTable &symbols) {
  auto param = symbols.lookup<ParamOp>(assign.getSymbol());
  auto state = symbols.lookup<StateOp>(assign.getSymbol());
  if (state && (state.getAccumulator() || !state.getParam()))
    return {};
  if (state)
    param = symbols.lookup<ParamOp>(*state.getParam());
  bool counts = param && param.isTrained() &&
                getLogicalType(param.getType()).getRank() > 0;
  return counts ? param : ParamOp();
}

/// Additions to accumulators of tensors that have a dimension.
static void collectSums(OffloadStep &step, SymbolTable &symbols) {
  for (Operation &op : *step.body) {
    StateOp state = getSummedAccumulator(&op, symbols);
    if (!state || !state.getParam() || op.getNumResults() != 1 ||
        state.getLogicalType().getRank() == 0)
      continue;
    for (auto assign : step.body->getOps<AssignOp>())
      if (assign.getSymbol() == state.getSymName())
        step.sums.push_back({state, &op, assign});
  }
}

static void collectUpdates(OffloadStep &step, SymbolTable &symbols) {
  llvm::MapVector<Operation *, LocalUpdate> byParam;
  for (auto assign : step.body->getOps<AssignOp>()) {
    ParamOp param = getUpdatedParam(assign, symbols);
    if (!param)
      continue;
    LocalUpdate &update = byParam[param];
    update.param = param;
    update.assigns.push_back(assign);
    update.values.push_back(getLocalValue(assign));
  }
  for (auto &[op, update] : byParam) {
    findSlice(update, symbols);
    step.updates.push_back(std::move(update));
  }
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

static LogicalResult checkInput(ModuleOp module) {
  if (!module->hasAttr(kStageAttr))
    return emitError(module.getLoc(), "is not partitioned, so there is nothing "
                                      "to offload; run zero-partition first");
  WalkResult scheduled = module.walk([](Operation *op) {
    return isa<WaitOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (scheduled.wasInterrupted() || module->hasAttr(kPlannedPeakAttr))
    return emitError(module.getLoc(), "is already scheduled; zero-offload "
                                      "stands before zero-schedule");
  WalkResult moved = module.walk([](Operation *op) {
    return isa<TransferOp, OnHostOp>(op) ? WalkResult::interrupt()
                                         : WalkResult::advance();
  });
  if (moved.wasInterrupted())
    return emitError(module.getLoc(), "is already offloaded; give all rules to "
                                      "one zero-offload");
  return success();
}

/// All reads of a symbol become one, which stands before its assignment.
static LogicalResult collectReads(OffloadStep &step) {
  llvm::DenseSet<Attribute> assigned;
  for (Operation &op : llvm::make_early_inc_range(*step.body)) {
    if (auto assign = dyn_cast<AssignOp>(op))
      assigned.insert(assign.getSymbolAttr().getAttr());
    auto read = dyn_cast<ReadOp>(op);
    if (!read)
      continue;
    StringAttr name = read.getSymbolAttr().getAttr();
    if (assigned.contains(name))
      return read.emitOpError() << "reads " << read.getSymbolAttr()
                                << " after it is assigned; zero-offload takes "
                                   "steps that read first";
    auto [entry, isNew] = step.reads.insert({name, read});
    if (isNew)
      continue;
    read.replaceAllUsesWith(entry->second.getValue());
    read.erase();
  }
  return success();
}

/// Fails where state is read or assigned elsewhere than in the one block of a
/// function.
static LogicalResult checkStep(FunctionOpInterface func) {
  WalkResult nested = func.walk([&](Operation *op) {
    bool inside = !func.getFunctionBody().hasOneBlock() ||
                  op->getBlock() != &func.getFunctionBody().front();
    return isa<ReadOp, AssignOp>(op) && inside ? WalkResult::interrupt()
                                               : WalkResult::advance();
  });
  if (nested.wasInterrupted())
    return func.emitOpError("uses state in regions or several blocks; "
                            "zero-offload takes step functions of one block");
  return success();
}

static LogicalResult checkUpdate(const LocalUpdate &update) {
  for (Value input : update.inputs)
    if (!isa<RankedTensorType, ShardedType>(input.getType()))
      return update.assigns.front()->emitOpError()
             << "is computed from a value of type " << input.getType()
             << "; zero-offload takes updates of tensors";
  return success();
}

LogicalResult zero::analyzeOffload(OffloadModule &info) {
  if (failed(checkInput(info.module)))
    return failure();
  auto grids = info.module.getOps<shard::GridOp>();
  if (grids.empty())
    return emitError(info.module.getLoc(),
                     "has no shard.grid; run zero-annotate first");
  info.grid = FlatSymbolRefAttr::get(*grids.begin());
  for (auto func : info.module.getOps<FunctionOpInterface>()) {
    if (failed(checkStep(func)))
      return failure();
    if (!func.getFunctionBody().hasOneBlock())
      continue;
    OffloadStep step;
    step.func = func;
    step.body = &func.getFunctionBody().front();
    if (failed(collectReads(step)))
      return failure();
    collectUpdates(step, info.symbols);
    for (const LocalUpdate &update : step.updates)
      if (failed(checkUpdate(update)))
        return failure();
    collectSums(step, info.symbols);
    info.steps.push_back(std::move(step));
  }
  return success();
}

static Type withMemory(OffloadModule &info, Type type, Memory memory) {
  if (auto sharded = dyn_cast<ShardedType>(type))
    return sharded.withMemory(memory);
  return ShardedType::get(cast<RankedTensorType>(type), info.grid, /*dim=*/0,
                          memory, /*axes=*/ArrayRef<int64_t>{});
}

/// Lets what is known of the updates follow a replaced value.
static void replaceInUpdates(OffloadStep &step, Value from, Value to) {
  for (LocalUpdate &update : step.updates) {
    SmallVector<Value> inputs = update.inputs.takeVector();
    llvm::replace(inputs, from, to);
    update.inputs.insert(inputs.begin(), inputs.end());
    llvm::replace(update.values, from, to);
  }
}

void zero::setSymbolMemory(OffloadModule &info, Operation *symbol,
                           Memory memory) {
  auto attr = symbol->getAttrOfType<TypeAttr>("type");
  Type type = withMemory(info, attr.getValue(), memory);
  symbol->setAttr("type", TypeAttr::get(type));
  StringAttr name = SymbolTable::getSymbolName(symbol);
  for (OffloadStep &step : info.steps) {
    ReadOp read = step.reads.lookup(name);
    if (!read)
      continue;
    Type before = read.getType();
    read.getValue().setType(type);
    if (isa<ShardedType>(before))
      continue;
    OpBuilder builder(read->getContext());
    builder.setInsertionPointAfter(read);
    auto view = LocalOp::create(builder, read.getLoc(), before, read.getValue(),
                                info.grid, builder.getDenseI64ArrayAttr({}),
                                builder.getI64IntegerAttr(0));
    read.getValue().replaceAllUsesExcept(view.getResult(), view);
    replaceInUpdates(step, read.getValue(), view.getResult());
  }
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

static SmallVector<Value> moveOnce(OpBuilder &builder, Location loc,
                                   ArrayRef<Value> values, Memory from,
                                   Memory to) {
  SmallVector<Type> types;
  for (Value value : values) {
    auto sharded = dyn_cast<ShardedType>(value.getType());
    types.push_back(sharded ? sharded.withMemory(to) : value.getType());
  }
  auto transfer = TransferOp::create(builder, loc, types, values, from, to);
  return llvm::to_vector_of<Value>(transfer.getResults());
}

SmallVector<Value> zero::moveValues(OpBuilder &builder, Location loc,
                                    ArrayRef<Value> values, Memory from,
                                    Memory to) {
  SmallVector<Value> moved(values);
  if (values.empty() || from == to)
    return moved;
  if (from != Memory::Host && to != Memory::Host)
    moved = moveOnce(builder, loc, moved, std::exchange(from, Memory::Host),
                     Memory::Host);
  return moveOnce(builder, loc, moved, from, to);
}

/// The state that `value` views all that a rank holds of; null where it is less
/// or something else.
static ReadOp getWholeRead(Value value) {
  auto local = value.getDefiningOp<LocalOp>();
  auto read = local ? local.getSource().getDefiningOp<ReadOp>() : ReadOp();
  return read && isa<ShardedType>(read.getType()) ? read : ReadOp();
}

SmallVector<Value> zero::moveAll(OpBuilder &builder, Location loc,
                                 ArrayRef<Value> values, Memory to) {
  IRMapping mapping;
  for (Memory from : {Memory::Disk, Memory::Host, Memory::Device}) {
    if (from == to)
      continue;
    llvm::SetVector<Value> sources;
    for (Value value : values) {
      if (getMemory(value) != from)
        continue;
      // Cheap to view again; on the device it is a part of a kernel's operand.
      ReadOp read = from == Memory::Device ? ReadOp() : getWholeRead(value);
      sources.insert(read ? read.getValue() : value);
    }
    SmallVector<Value> moved =
        moveValues(builder, loc, sources.getArrayRef(), from, to);
    for (auto [source, copy] : llvm::zip_equal(sources, moved))
      mapping.map(source, copy);
  }
  SmallVector<Value> copies;
  for (Value value : values) {
    if (getMemory(value) != to && !mapping.contains(value))
      builder.clone(*value.getDefiningOp(), mapping);
    copies.push_back(getMemory(value) == to ? value : mapping.lookup(value));
  }
  return copies;
}

void zero::setBehind(OpBuilder &builder, Block *body, ArrayRef<Value> values) {
  Operation *last = nullptr;
  for (Value value : values) {
    Operation *op = value.getDefiningOp();
    if (op && (!last || last->isBeforeInBlock(op)))
      last = op;
  }
  last ? builder.setInsertionPointAfter(last)
       : builder.setInsertionPointToStart(body);
}

void zero::placeViews(OpBuilder &builder, Value value) {
  Operation *op = value.getDefiningOp();
  Block *body = builder.getInsertionBlock();
  bool atEnd = builder.getInsertionPoint() == body->end();
  if (!isa_and_nonnull<LocalOp, ReadOp>(op) || atEnd ||
      op->isBeforeInBlock(&*builder.getInsertionPoint()))
    return;
  for (Value operand : op->getOperands())
    placeViews(builder, operand);
  if (&*builder.getInsertionPoint() == op)
    builder.setInsertionPointAfter(op);
  else
    op->moveBefore(&*builder.getInsertionPoint());
}

OnHostOp zero::createOnHost(OpBuilder &builder, Location loc,
                            ArrayRef<Value> originals, ArrayRef<Value> operands,
                            TypeRange results, IRMapping &mapping) {
  auto host = OnHostOp::create(builder, loc, results, operands);
  Block &body = host.getBody().emplaceBlock();
  for (auto [original, operand] : llvm::zip_equal(originals, operands))
    mapping.map(original,
                body.addArgument(operand.getType(), operand.getLoc()));
  return host;
}

Memory zero::getSymbolMemory(Operation *symbol) {
  Type type = symbol->getAttrOfType<TypeAttr>("type").getValue();
  auto sharded = dyn_cast<ShardedType>(type);
  return sharded ? sharded.getMem() : Memory::Device;
}

void zero::eraseDead(Block &body, llvm::DenseSet<Operation *> ops) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body))) {
    if (!ops.contains(&op) || !op.use_empty())
      continue;
    for (Value operand : getUsedValues(&op)) {
      Operation *def = operand.getDefiningOp();
      if (def && (isa<LocalOp, ReadOp>(def) ||
                  (def->getNumOperands() == 0 && isMemoryEffectFree(def))))
        ops.insert(def);
    }
    op.erase();
  }
}

void zero::moveUsersBehind(Operation *op) {
  llvm::SetVector<Operation *> users;
  for (Operation *user : op->getUsers())
    if (Operation *inBlock = op->getBlock()->findAncestorOpInBlock(*user))
      if (inBlock->isBeforeInBlock(op))
        users.insert(inBlock);
  SmallVector<Operation *> order = users.takeVector();
  llvm::sort(order,
             [](Operation *a, Operation *b) { return b->isBeforeInBlock(a); });
  for (Operation *user : order) {
    user->moveAfter(op);
    moveUsersBehind(user);
  }
}

ReadOp zero::getReadBehind(Value value) {
  while (auto local = value.getDefiningOp<LocalOp>())
    value = local.getSource();
  return value.getDefiningOp<ReadOp>();
}
