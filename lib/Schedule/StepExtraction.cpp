//===- StepExtraction.cpp - From a step function to a graph ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decides, for every value of a step, which buffer it is in, and for every op,
// whether it is a task, a part of one, or nothing that takes time.
//
//===----------------------------------------------------------------------===//

#include "StepGraphBuilder.h"

#include "zero/Schedule/OpWork.h"
#include "zero/Transforms/StepUtils.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "llvm/Support/InterleavedRange.h"

using namespace mlir;
using namespace mlir::zero;

static constexpr int64_t kAlignment = 64;
static constexpr int32_t kNone = -1;

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

int32_t StepGraphBuilder::addBuffer(int64_t bytes, MemoryKind kind,
                                    bool resident, const Twine &name,
                                    MemorySpace space) {
  StepBuffer buffer;
  buffer.bytes = llvm::alignTo(
      bytes, space == MemorySpace::Disk ? kDiskAlignment : kAlignment);
  buffer.kind = kind;
  buffer.resident = resident;
  buffer.space = space;
  step.graph.buffers.push_back(buffer);
  step.bufferNames.push_back(name.str());
  lastReads.push_back(-1);
  lastReader.push_back(kNone);
  symbolOf.push_back("");
  versions.push_back(0);
  return step.graph.buffers.size() - 1;
}

void StepGraphBuilder::bind(Value value, int32_t buffer) {
  buffers[value] = buffer;
  if (buffer != kNone)
    lastReads[buffer] = std::max(lastReads[buffer], uses.lastRead(value));
}

int32_t StepGraphBuilder::bufferOf(Value value) const {
  auto it = buffers.find(value);
  return it == buffers.end() ? kNone : it->second;
}

/// Whether nobody reads what is in `buffer` after `op`.
bool StepGraphBuilder::mayOverwrite(int32_t buffer, Operation *op) const {
  int64_t at = uses.position(op);
  if (lastReads[buffer] > at)
    return false;
  return symbolOf[buffer].empty() || uses.readOfSymbol(symbolOf[buffer]) <= at;
}

int64_t zero::getHeldBytes(Operation *from, Type type, SymbolTable &symbols) {
  auto sharded = dyn_cast<ShardedType>(type);
  if (!sharded)
    return getTensorBytes(type);
  auto grid = symbols.lookup<shard::GridOp>(sharded.getGrid().getValue());
  FailureOr<int64_t> ranks = failure();
  if (grid)
    ranks = getRanks(grid, sharded.getAxes());
  return getTensorBytes(sharded.getLocalType(ranks.value_or(1)));
}

MemorySpace zero::toSpace(Memory memory) {
  switch (memory) {
  case Memory::Device:
    return MemorySpace::Device;
  case Memory::Host:
    return MemorySpace::Host;
  case Memory::Disk:
    return MemorySpace::Disk;
  }
  llvm_unreachable("no memory");
}

void StepGraphBuilder::declareSymbols() {
  for (Operation &op : *cast<ModuleOp>(symbols.getOp()).getBody()) {
    auto param = dyn_cast<ParamOp>(op);
    auto state = dyn_cast<StateOp>(op);
    if (!param && !state)
      continue;
    MemoryKind kind = MemoryKind::OptimizerState;
    if (param)
      kind = param.getBuffer() ? MemoryKind::Persistent : MemoryKind::Parameter;
    else if (!state.getParam())
      kind = MemoryKind::Persistent;
    else if (state.getAccumulator())
      kind = MemoryKind::Gradient;
    StringRef name = param ? param.getSymName() : state.getSymName();
    Type type = param ? param.getType() : state.getType();
    auto sharded = dyn_cast<ShardedType>(type);
    int32_t buffer =
        addBuffer(getHeldBytes(&op, type, symbols), kind,
                  /*resident=*/true, "'" + name + "'",
                  toSpace(sharded ? sharded.getMem() : Memory::Device));
    symbolBuffers[name] = buffer;
    symbolOf[buffer] = name;
  }
}

void StepGraphBuilder::declareArguments() {
  for (BlockArgument arg : body.getArguments()) {
    unsigned number = arg.getArgNumber();
    std::string name = "argument " + std::to_string(number);
    if (auto attr = step.func.getArgAttrOfType<StringAttr>(number, kInputAttr))
      name = "input '" + attr.str() + "'";
    bind(arg, addBuffer(getTensorBytes(arg.getType()), MemoryKind::Input,
                        /*resident=*/true, name));
  }
}

/// The storage of the symbol that `value` becomes, if `op` may write it there.
int32_t StepGraphBuilder::assignedBuffer(Value value, Operation *op) {
  for (Operation *user : value.getUsers()) {
    auto assign = dyn_cast<AssignOp>(user);
    if (!assign)
      continue;
    auto it = symbolBuffers.find(assign.getSymbol());
    if (it != symbolBuffers.end() && mayOverwrite(it->second, op) &&
        step.graph.buffers[it->second].space == toSpace(getMemory(value)))
      return it->second;
  }
  return kNone;
}

int64_t StepGraphBuilder::stage() const {
  auto attr = symbols.getOp()->getAttrOfType<IntegerAttr>(kStageAttr);
  return attr ? attr.getInt() : 0;
}

//===----------------------------------------------------------------------===//
// Compute
//===----------------------------------------------------------------------===//

int32_t StepGraphBuilder::addTask(TaskKind kind, int32_t channel,
                                  ArrayRef<Operation *> ops) {
  StepTask &task = step.graph.tasks.emplace_back();
  task.kind = kind;
  task.channel = channel;
  step.ops.emplace_back(ops.begin(), ops.end());
  step.results.emplace_back();
  return step.graph.tasks.size() - 1;
}

void StepGraphBuilder::read(int32_t task, int32_t buffer) {
  if (buffer == kNone || lastReader[buffer] == task)
    return;
  lastReader[buffer] = task;
  step.graph.tasks[task].reads.push_back(buffer);
}

void StepGraphBuilder::write(int32_t task, int32_t buffer) {
  step.graph.tasks[task].writes.push_back(buffer);
  ++versions[buffer];
}

/// Where result `index` of a compute op goes: into what it replaces, or into a
/// buffer of its own.
int32_t StepGraphBuilder::resultBuffer(Operation *op, unsigned index) {
  Value result = op->getResult(index);
  int32_t target = kNone;
  if (auto update = dyn_cast<OptimizerUpdate>(op))
    target = bufferOf(update.getReplacedOperand(index).get());
  else if (auto style = dyn_cast<DestinationStyleOpInterface>(op))
    target = bufferOf(style.getDpsInitOperand(index)->get());
  else if (StateOp accumulator = getSummedAccumulator(op, symbols))
    target = bufferOfSymbol(accumulator.getSymName());
  if (int32_t assigned = assignedBuffer(result, op); assigned != kNone)
    target = assigned;
  if (target != kNone && mayOverwrite(target, op) &&
      step.graph.buffers[target].bytes >= getTensorBytes(result.getType()) &&
      step.graph.buffers[target].kind != MemoryKind::Input &&
      step.graph.buffers[target].kind != MemoryKind::Constant)
    return target;
  return addBuffer(getTensorBytes(result.getType()), MemoryKind::Activation,
                   /*resident=*/false,
                   "the result of " + op->getName().getStringRef());
}

/// Constants and what else is there without work: tensor.empty.
static bool isConstant(Operation *op) {
  return op->getNumOperands() == 0 && op->getNumRegions() == 0 &&
         isMemoryEffectFree(op);
}

/// A splat is made where it is used.
void StepGraphBuilder::addConstant(Operation *op) {
  DenseElementsAttr value;
  if (matchPattern(op, m_Constant(&value)) && !value.isSplat())
    bind(op->getResult(0),
         addBuffer(getTensorBytes(value.getType()), MemoryKind::Constant,
                   /*resident=*/true, "a constant"));
}

/// A kernel or library call: `root` and the elementwise ops that only it uses.
void StepGraphBuilder::addCompute(Operation *root) {
  SmallVector<Operation *> ops = uses.takePartsOf(root);
  ops.push_back(root);
  int32_t task = addTask(TaskKind::Compute, /*channel=*/0, ops);
  OpWork work = getOpWork(root);
  for (Operation *op : ops) {
    for (Value value : getUsedValues(op))
      read(task, bufferOf(value));
    if (op == root)
      continue;
    OpWork part = getOpWork(op);
    work.flops += part.flops;
    work.transcendentals += part.transcendentals;
    // A value inside of a kernel is neither written nor read back.
    int64_t inner = getTensorBytes(op->getResult(0).getType());
    work.bytes += part.bytes - 2 * inner;
  }
  work.bytes = std::max(work.bytes, 0.0);
  bool effectful = !isMemoryEffectFree(root);
  if (effectful && effects == kNone)
    effects = addBuffer(0, MemoryKind::Activation, false, "effects");
  if (effectful)
    read(task, effects), write(task, effects);
  for (unsigned i = 0; i < root->getNumResults(); ++i) {
    int32_t buffer = resultBuffer(root, i);
    write(task, buffer);
    bind(root->getResult(i), buffer);
  }
  step.graph.tasks[task].seconds = cost.compute(work);
  step.graph.tasks[task].label = root->getName().getStringRef().str();
}

/// Nothing where the value is in place already, else a copy.
void StepGraphBuilder::addAssign(AssignOp assign) {
  int32_t source = bufferOf(assign.getValue());
  int32_t target = bufferOfSymbol(assign.getSymbol());
  if (source == target)
    return;
  int32_t task =
      addTask(TaskKind::Compute, /*channel=*/0, assign.getOperation());
  OpWork work;
  work.bytes = 2 * getHeldBytes(assign, assign.getValue().getType(), symbols);
  step.graph.tasks[task].seconds =
      step.graph.buffers[target].space == MemorySpace::Device
          ? cost.compute(work)
          : cost.hostCompute(work);
  step.graph.tasks[task].label = "copy to " + assign.getSymbol().str();
  read(task, source);
  write(task, target);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

int32_t StepGraphBuilder::channelOf(const Twine &name) {
  std::string text = name.str();
  auto &channels = step.graph.channels;
  size_t number = llvm::find(channels, text) - channels.begin();
  if (number == channels.size())
    channels.push_back(text);
  return number;
}

namespace {
/// The ranks that take part in a collective.
struct Participants {
  int64_t ranks = 1;
  RankGroup group;
  std::string axes;
  std::string suffix; ///< of the channel: the axes, where not the shard axis
};
} // namespace

/// Ranks of axes in a row lie `stride` apart: the sizes of the axes after them.
static FailureOr<Participants>
getParticipants(Operation *op, SymbolTable &symbols, const CostModel &cost) {
  auto name = op->getAttrOfType<FlatSymbolRefAttr>("grid");
  auto axesAttr = op->getAttrOfType<DenseI64ArrayAttr>("axes");
  SmallVector<int64_t> axes = {0};
  if (axesAttr)
    axes = llvm::to_vector(axesAttr.asArrayRef());
  auto grid = symbols.lookup<shard::GridOp>(name.getValue());
  FailureOr<int64_t> ranks = failure();
  if (grid)
    ranks = getRanks(grid, axes);
  // no test: the verifier of the op has looked at the grid.
  if (failed(ranks))
    return op->emitOpError()
           << "is over " << name << ", which is not a grid of static size";
  Participants result;
  result.ranks = *ranks;
  int64_t stride = 1;
  for (int64_t axis = grid.getRank() - 1; axis > axes.back(); --axis)
    stride *= grid.getShape()[axis];
  result.group = cost.group(*ranks, stride);
  for (int64_t axis : axes)
    result.axes += "." + std::to_string(axis);
  bool isShardAxis = axes.size() == 1 && axes[0] == grid.getRank() - 1;
  if (!isShardAxis && static_cast<int64_t>(axes.size()) != grid.getRank())
    result.suffix = result.axes;
  return result;
}

/// A gathered tensor lies in whole chunks.
int32_t StepGraphBuilder::gatheredBuffer(Operation *op, unsigned index,
                                         int64_t ranks) {
  Value result = op->getResult(index);
  if (int32_t assigned = assignedBuffer(result, op); assigned != kNone)
    return assigned;
  auto type = cast<RankedTensorType>(result.getType());
  int64_t rows = type.getRank() ? type.getDimSize(0) : 1;
  int64_t bytes = getTensorBytes(type);
  std::string name = "the gathered tensor";
  Value state = getStateBehind(op->getOperand(index));
  if (auto read = state.getDefiningOp<ReadOp>())
    name = "'" + read.getSymbol().str() + "', gathered";
  return addBuffer(rows ? bytes / rows * getPaddedRows(rows, ranks) : bytes,
                   MemoryKind::Gathered, /*resident=*/false, name);
}

/// Sums over the ranks take the place of what is summed where they may.
int32_t StepGraphBuilder::reducedBuffer(Operation *op, unsigned index) {
  Value input = op->getOperand(index), result = op->getResult(index);
  int32_t source = bufferOf(input);
  bool isTensor = cast<RankedTensorType>(input.getType()).getRank() > 0;
  bool scatters = isa<ReduceScatterOp>(op);
  if (source != kNone && isTensor && (!scatters || stage() == 1) &&
      step.graph.buffers[source].kind == MemoryKind::Activation)
    step.graph.buffers[source].kind = MemoryKind::Gradient;
  // The sum over micro-batches is needed no more, it becomes zero.
  auto state =
      source == kNone ? StateOp() : symbols.lookup<StateOp>(symbolOf[source]);
  bool isSum = state && state.getAccumulator();
  if (!scatters && source != kNone &&
      (isSum || !step.graph.buffers[source].resident) &&
      mayOverwrite(source, op))
    return source;
  bool isAdded = llvm::all_of(result.getUsers(), [&](Operation *user) {
    return getSummedAccumulator(user, symbols);
  });
  MemoryKind kind = isTensor && stage() != 1 && !isAdded
                        ? MemoryKind::Gradient
                        : MemoryKind::Activation;
  return addBuffer(getTensorBytes(result.getType()), kind, /*resident=*/false,
                   "a reduced gradient");
}

/// Label, unit and what may share a bucket.
void StepGraphBuilder::nameTask(int32_t number, Operation *op, StringRef kind,
                                StringRef axes) {
  StepTask &task = step.graph.tasks[number];
  StringRef unit;
  if (op->getNumOperands() && op->getNumResults())
    unit = getUnitOf(op, symbols);
  if (!unit.empty())
    task.unit = units.try_emplace(unit, units.size()).first->second;
  task.label = (kind + (unit.empty() ? "" : " of '" + unit + "'")).str();
  std::string key = (kind + axes).str();
  if (op->hasAttr("average"))
    key += " average";
  llvm::SmallSetVector<Type, 2> elements;
  for (Type type : op->getOperandTypes())
    elements.insert(getLogicalType(type).getElementType());
  llvm::raw_string_ostream(key) << llvm::interleaved(elements);
  task.bucketClass =
      bucketClasses.try_emplace(key, bucketClasses.size()).first->second;
}

static TaskKind getTaskKind(Operation *op) {
  if (isa<AllGatherOp>(op))
    return TaskKind::AllGather;
  return isa<ReduceScatterOp>(op) ? TaskKind::ReduceScatter
                                  : TaskKind::AllReduce;
}

LogicalResult StepGraphBuilder::addCollective(Operation *op) {
  FailureOr<Participants> who = getParticipants(op, symbols, cost);
  if (failed(who))
    return failure();
  TaskKind kind = getTaskKind(op);
  int32_t channel =
      channelOf(op->getName().stripDialect() + Twine(who->suffix));
  int32_t task = addTask(kind, channel, op);
  for (Value input : op->getOperands())
    read(task, bufferOf(input));
  for (unsigned i = 0; i < op->getNumResults(); ++i) {
    int32_t buffer = kind == TaskKind::AllGather
                         ? gatheredBuffer(op, i, who->ranks)
                         : reducedBuffer(op, i);
    write(task, buffer);
    step.results[task].push_back(op->getResult(i));
    gatheredAt[op->getResult(i)] = {task, i};
    bind(op->getResult(i), buffer);
  }
  int64_t bytes = getWholeBytes(op);
  StepTask &data = step.graph.tasks[task];
  data.seconds = cost.collective(kind, bytes, who->group);
  data.latency = cost.collectiveLatency(kind, who->group);
  data.sentBytes = ringBytes(kind, bytes, who->ranks);
  nameTask(task, op, op->getName().stripDialect(), who->axes);
  if (gathersState(op))
    findRepeated(task, op);
  return success();
}

/// The first gather of what operand `index` of `task` gathers, and its place
/// there: `task` itself, where it is the first. What a chunk holds is what it
/// was cut from, whatever the state holds by now.
std::pair<int32_t, int32_t>
StepGraphBuilder::firstGather(int32_t task, unsigned index, Value input) {
  std::pair<int32_t, int32_t> own(task, index);
  if (auto reshard = input.getDefiningOp<ReshardOp>()) {
    unsigned number = cast<OpResult>(input).getResultNumber();
    auto it = gatheredAt.find(reshard.getInputs()[number]);
    return it == gatheredAt.end() ? own : it->second;
  }
  int32_t shard = bufferOf(input);
  return gathered.try_emplace({shard, versions[shard]}, own).first->second;
}

/// Finds the gather that has gathered all of these shards before.
void StepGraphBuilder::findRepeated(int32_t task, Operation *op) {
  int32_t earlier = kNone;
  bool same = true;
  SmallVector<int32_t> order;
  for (auto [i, input] : llvm::enumerate(op->getOperands())) {
    auto [other, place] = firstGather(task, i, input);
    same &= other != task && (earlier == kNone || other == earlier);
    earlier = other;
    order.push_back(place);
  }
  if (same)
    matchRepeated(task, earlier, order);
  // A chunk that nothing else uses goes with its gather.
  Operation *def = op->getOperand(0).getDefiningOp();
  bool only = llvm::all_of(op->getOperands(), [&](Value input) {
    return input.getDefiningOp() == def;
  });
  auto it = reshards.find(def);
  if (it != reshards.end() && only && step.graph.tasks[task].repeats >= 0 &&
      llvm::all_of(def->getUsers(), [&](Operation *user) {
        return user == op || isa<ReleaseOp>(user);
      }))
    step.graph.tasks[it->second].serves = task;
}

/// Puts the buffers of `task` at the places of those of `earlier` that hold the
/// same; `order` are the places. Where `earlier` has more, nothing is written.
void StepGraphBuilder::matchRepeated(int32_t number, int32_t earlier,
                                     ArrayRef<int32_t> order) {
  size_t count = step.graph.tasks[earlier].writes.size();
  SmallVector<int32_t, 4> writes(count, kNone);
  SmallVector<Value, 2> results(count);
  for (auto [i, place] : llvm::enumerate(order)) {
    if (writes[place] != kNone)
      return;
    writes[place] = step.graph.tasks[number].writes[i];
    results[place] = step.results[number][i];
  }
  for (int32_t &buffer : writes)
    if (buffer == kNone)
      buffer = addBuffer(0, MemoryKind::Gathered, /*resident=*/false, "");
  step.graph.tasks[number].writes = std::move(writes);
  step.graph.tasks[number].repeats = earlier;
  step.results[number] = std::move(results);
}

/// A copy, since what it is cut from may go.
void StepGraphBuilder::addReshard(ReshardOp op) {
  int32_t task = addTask(TaskKind::Compute, /*channel=*/0, op.getOperation());
  OpWork work;
  for (auto [input, result] : llvm::zip(op.getInputs(), op.getResults())) {
    read(task, bufferOf(input));
    int64_t bytes = getTensorBytes(result.getType());
    work.bytes += 2 * bytes;
    std::string name = "a chunk of a gathered tensor";
    Value state = getStateBehind(input);
    if (auto read = state.getDefiningOp<ReadOp>())
      name = "a chunk of '" + read.getSymbol().str() + "'";
    int32_t buffer =
        addBuffer(bytes, MemoryKind::Gathered, /*resident=*/false, name);
    write(task, buffer);
    bind(result, buffer);
  }
  step.graph.tasks[task].seconds = cost.compute(work);
  step.graph.tasks[task].label = "reshard";
  reshards[op] = task;
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

/// The end reads what outlives the step, and comes after everything.
void StepGraphBuilder::addReturn(Operation *op) {
  int32_t numTasks = step.graph.tasks.size();
  int32_t task = addTask(TaskKind::Compute, /*channel=*/0, op);
  step.graph.tasks[task].label = "return";
  for (Value value : op->getOperands())
    read(task, bufferOf(value));
  std::vector<bool> isRead(step.graph.buffers.size());
  for (const StepTask &other : step.graph.tasks)
    for (int32_t buffer : other.reads)
      isRead[buffer] = true;
  for (int32_t other = 0; other < numTasks; ++other) {
    auto &writes = step.graph.tasks[other].writes;
    if (llvm::any_of(writes, [&](int32_t buffer) {
          return isRead[buffer] && !step.graph.buffers[buffer].resident;
        }))
      continue;
    // The state is there anyway; what nobody reads need not be kept.
    int32_t done = kNone;
    for (int32_t buffer : writes)
      if (step.graph.buffers[buffer].resident)
        done = buffer;
    if (done == kNone)
      write(other, done = addBuffer(0, MemoryKind::Activation, false, ""));
    step.graph.tasks[task].reads.push_back(done);
  }
}

LogicalResult StepGraphBuilder::add(Operation *op) {
  if (auto read = dyn_cast<ReadOp>(op)) {
    bind(read.getValue(), bufferOfSymbol(read.getSymbol()));
  } else if (auto local = dyn_cast<LocalOp>(op)) {
    bind(local.getResult(), bufferOf(local.getSource()));
  } else if (auto assign = dyn_cast<AssignOp>(op)) {
    addAssign(assign);
  } else if (isa<AllGatherOp, ReduceScatterOp, AllReduceOp>(op)) {
    return addCollective(op);
  } else if (auto transfer = dyn_cast<TransferOp>(op)) {
    addTransfer(transfer);
  } else if (auto host = dyn_cast<OnHostOp>(op)) {
    addOnHost(host);
  } else if (auto reshard = dyn_cast<ReshardOp>(op)) {
    addReshard(reshard);
  } else if (op->hasTrait<OpTrait::IsTerminator>()) {
    addReturn(op);
  } else if (uses.isView(op)) {
    for (Value result : op->getResults())
      bind(result, bufferOf(op->getOperand(0)));
  } else if (isConstant(op)) {
    addConstant(op);
  } else if (!isa<ReleaseOp>(op) && !uses.isPart(op)) {
    addCompute(op);
  }
  return success();
}

FailureOr<StepFunction> StepGraphBuilder::build() {
  declareSymbols();
  declareArguments();
  for (Operation &op : body)
    if (failed(add(&op)))
      return failure();
  return std::move(step);
}

FailureOr<StepFunction> zero::buildStepGraph(FunctionOpInterface func,
                                             SymbolTable &symbols,
                                             const CostModel &cost) {
  return StepGraphBuilder(func, symbols, cost).build();
}

void zero::makeSynchronous(Block &body) {
  for (auto wait : llvm::make_early_inc_range(body.getOps<WaitOp>())) {
    Operation *start = wait.getFuture().getDefiningOp();
    if (!start || !wait.getFuture().hasOneUse())
      continue;
    OpBuilder builder(wait);
    StringRef name = start->getName().getStringRef();
    name.consume_back("_start");
    OperationState state(start->getLoc(), name);
    state.addOperands(start->getOperands());
    state.addTypes(wait.getResultTypes());
    state.addAttributes(start->getAttrs());
    for (Region &region : start->getRegions())
      state.addRegion()->takeBody(region);
    Operation *joined = builder.create(state);
    wait.replaceAllUsesWith(joined->getResults());
    wait.erase();
    start->erase();
  }
}
