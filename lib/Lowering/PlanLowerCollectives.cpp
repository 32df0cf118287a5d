//===- PlanLowerCollectives.cpp - Collectives of the step to commands -----===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A collective that is done when it returns is a command of the compute stream.
// One with a future runs on the stream of its kind, and its results have their
// buffers from the start on.
//
//===----------------------------------------------------------------------===//

#include "MovedValues.h"
#include "StepLowering.h"

#include "zero/Transforms/StepUtils.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::zero;

/// Elements of one row of dimension 0.
static int64_t rowElements(ShapedType type) {
  return ShapedType::getNumElements(type.getShape().drop_front());
}

//===----------------------------------------------------------------------===//
// What the op says
//===----------------------------------------------------------------------===//

/// Sets operands and results; the results of a start are those of its wait.
static LogicalResult setValues(Collective &collective) {
  Operation *op = collective.op;
  collective.inputs = op->getOperands();
  FailureOr<ResultRange> outputs = getFinalResults(op);
  if (failed(outputs))
    return failure();
  collective.outputs = *outputs;
  if (isStart(op))
    collective.future = op->getResult(0);
  return success();
}

static FailureOr<Collective> readCollective(Operation *op,
                                            ArrayRef<int64_t> grid) {
  Collective result;
  result.op = op;
  auto read = [&](auto op, Collective::Kind kind) {
    result.kind = kind;
    result.axes = llvm::to_vector(op.getAxes());
    result.dim = op.getDim();
  };
  TypeSwitch<Operation *>(op)
      .Case<AllGatherOp, AllGatherStartOp>(
          [&](auto op) { read(op, Collective::AllGather); })
      .Case<ReduceScatterOp, ReduceScatterStartOp>([&](auto op) {
        read(op, Collective::ReduceScatter);
        result.average = op.getAverage();
      })
      .Case<AllReduceOp, AllReduceStartOp>([&](auto op) {
        read(op, Collective::AllReduce);
        result.average = op.getAverage();
      });
  if (failed(setValues(result)))
    return failure();
  llvm::sort(result.axes);
  for (int64_t axis : result.axes)
    result.ranks *= grid[axis];
  return result;
}

static LogicalResult verifyCollective(const Collective &collective) {
  if (collective.kind != Collective::AllReduce && collective.dim != 0)
    return collective.op->emitOpError() << "cuts dimension " << collective.dim
                                        << "; the plan takes dimension 0";
  return success();
}

/// "all_gather", or "all_reduce.0" where it leaves out the shard axis.
static std::string channelName(const Collective &collective,
                               ArrayRef<int64_t> grid) {
  static constexpr StringLiteral names[] = {"all_gather", "reduce_scatter",
                                            "all_reduce"};
  std::string name = names[collective.kind].str();
  int64_t last = grid.size() - 1;
  if (collective.axes.size() == grid.size() ||
      ArrayRef<int64_t>(collective.axes) == ArrayRef<int64_t>(last))
    return name;
  for (int64_t axis : collective.axes)
    name += "." + std::to_string(axis);
  return name;
}

//===----------------------------------------------------------------------===//
// Labels
//===----------------------------------------------------------------------===//

StringRef zero::findSymbol(Value value) {
  value = getUnmoved(value);
  if (value.getDefiningOp<ReshardOp>())
    return findSymbol(getStateBehind(value));
  auto read = value.getDefiningOp<ReadOp>();
  return read ? read.getSymbol() : StringRef();
}

/// The parameter that `user` updates in place; empty if it updates none.
std::string StepLowering::findUpdated(Operation *user) {
  auto dispatch = dyn_cast<plan::DispatchOp>(user);
  if (!dispatch)
    return "";
  for (int64_t tied : dispatch.getTied()) {
    Storage *storage =
        tied < 0 ? nullptr
                 : symbols.lookup(findSymbol(dispatch.getInputs()[tied]));
    if (!storage)
      continue;
    if (storage->buffer.getKind() == plan::Kind::Parameter)
      return storage->symbol;
    // A master copy, or the sum that the gradient is added to.
    auto state = module.lookupSymbol<StateOp>(storage->symbol);
    if (state && state.getParam())
      return state.getParam()->str();
  }
  return "";
}

/// The parameter whose update `value`, a gradient, flows into; its name if
/// few steps lead there.
std::string StepLowering::findParameter(Value value) {
  constexpr size_t kMaxSteps = 32;
  SmallVector<Value> reached = {value};
  for (size_t i = 0; i < std::min(reached.size(), kMaxSteps); ++i)
    for (OpOperand &use : reached[i].getUses()) {
      Operation *user = use.getOwner();
      if (std::string name = findUpdated(user); !name.empty())
        return name;
      if (Value moved = getMoved(use)) {
        reached.push_back(moved);
        continue;
      }
      for (Value result : user->getResults())
        if (result.getType() == value.getType())
          reached.push_back(result);
      if (auto start = dyn_cast<AllReduceStartOp>(user))
        for (Operation *wait : start.getFuture().getUsers())
          llvm::append_range(reached, wait->getResults());
    }
  return "";
}

/// Whether `value`, a reduced gradient, is added to an accumulator and then
/// needed no more.
bool StepLowering::isOnlyAdded(Value value) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    if (Value moved = getMoved(use))
      return isOnlyAdded(moved);
    auto dispatch = dyn_cast<plan::DispatchOp>(use.getOwner());
    return dispatch && llvm::any_of(dispatch.getInputs(), [&](Value input) {
             auto state = module.lookupSymbol<StateOp>(findSymbol(input));
             return state && state.getAccumulator();
           });
  });
}

/// The parameters in the bucket.
std::string StepLowering::describe(const Collective &collective) {
  constexpr size_t kMaxNames = 3;
  SmallVector<std::string> names;
  for (auto [input, output] :
       llvm::zip_equal(collective.inputs, collective.outputs)) {
    std::string name = collective.kind == Collective::AllGather
                           ? placeOf(input).storage->symbol
                           : findParameter(output);
    if (input.getDefiningOp<ReshardOp>())
      name = findSymbol(input).str();
    if (!name.empty() && !llvm::is_contained(names, name))
      names.push_back(std::move(name));
  }
  size_t more = names.size() > kMaxNames ? names.size() - kMaxNames : 0;
  names.resize(names.size() - more);
  std::string text = llvm::join(names, ", ");
  return more ? text + " and " + std::to_string(more) + " more" : text;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

void StepLowering::add(Bucket &bucket, const Place &source, const Place &target,
                       int64_t elements, int64_t chunk) {
  Location loc = step.getLoc();
  bucket.sources.push_back(memory.materialize(loc, source));
  bucket.targets.push_back(memory.materialize(loc, target));
  bucket.elements.push_back(elements);
  bucket.chunks.push_back(chunk);
}

void StepLowering::placeGather(const Collective &collective, Bucket &bucket) {
  for (auto [input, output] :
       llvm::zip_equal(collective.inputs, collective.outputs)) {
    auto whole = cast<ShapedType>(output.getType());
    int64_t chunk = getChunkRows(whole.getDimSize(0), collective.ranks) *
                    rowElements(whole);
    Place place;
    place.layout = StridedLayout::contiguous(whole.getShape());
    place.storage = assignedStorage(output, collective.op);
    // One that only passes through to where parameters are is not released.
    bool passes = llvm::all_of(output.getUsers(),
                               llvm::IsaPred<TransferOp, TransferStartOp>);
    if (!place.storage)
      place.storage =
          memory.create(collective.op->getLoc(), whole,
                        passes ? plan::Kind::Parameter : plan::Kind::Gathered);
    memory.reserve(place.storage, chunk * collective.ranks, ranks);
    add(bucket, placeOf(input), place, whole.getNumElements(), chunk);
    memory.bind(output, place);
  }
}

void StepLowering::placeReduceScatter(const Collective &collective,
                                      Bucket &bucket) {
  for (auto [input, output] :
       llvm::zip_equal(collective.inputs, collective.outputs)) {
    auto whole = cast<ShapedType>(input.getType());
    auto local = cast<ShapedType>(output.getType());
    // Stage 1 holds whole gradients until here; later stages hold shards.
    if (stage == 1)
      markGradient(input);
    bool isKept = stage != 1 && !isOnlyAdded(output);
    Place place = fresh(collective.op->getLoc(), local,
                        isKept ? plan::Kind::Gradient : plan::Kind::Activation);
    place.storage->buffer.setPadding(
        (local.getNumElements() * collective.ranks - whole.getNumElements()) *
        (ranks / collective.ranks) *
        plan::elementBytes(whole.getElementType()));
    add(bucket, placeOf(input), place, whole.getNumElements(),
        local.getNumElements());
    memory.bind(output, place);
  }
}

/// In place where nobody else reads the terms: not even while it runs.
void StepLowering::placeAllReduce(const Collective &collective,
                                  Bucket &bucket) {
  for (auto [input, output] :
       llvm::zip_equal(collective.inputs, collective.outputs)) {
    auto type = cast<RankedTensorType>(input.getType());
    Place source = placeOf(input), target = source;
    plan::Kind kind = source.storage->buffer.getKind();
    bool inPlace =
        kind == plan::Kind::Activation || kind == plan::Kind::Gradient;
    if (!inPlace || !memory.mayOverwrite(source.storage, collective.op))
      target = fresh(collective.op->getLoc(), type, plan::Kind::Activation);
    add(bucket, source, target, type.getNumElements(), type.getNumElements());
    memory.bind(output, target);
  }
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

plan::CommandOpInterface StepLowering::emit(const Collective &collective,
                                            const Bucket &bucket) {
  bool isAll = collective.axes.size() == grid.size();
  auto axes = isAll ? DenseI64ArrayAttr()
                    : commands.getDenseI64ArrayAttr(collective.axes);
  std::string text = describe(collective);
  auto label = text.empty() ? StringAttr() : commands.getStringAttr(text);
  auto create = [&](auto type) {
    using OpTy = decltype(type);
    return plan::CommandOpInterface(OpTy::create(
        commands, collective.op->getLoc(), bucket.sources, bucket.targets,
        collective.average, bucket.elements, bucket.chunks, axes, label,
        StringAttr(), ValueRange(), Value()));
  };
  switch (collective.kind) {
  case Collective::AllGather:
    return create(plan::AllGatherOp());
  case Collective::ReduceScatter:
    return create(plan::ReduceScatterOp());
  case Collective::AllReduce:
    break;
  }
  return create(plan::AllReduceOp());
}

LogicalResult StepLowering::lowerCollective(Operation *op) {
  FailureOr<Collective> collective = readCollective(op, grid);
  if (failed(collective) || failed(verifyCollective(*collective)))
    return failure();
  Bucket bucket;
  if (collective->kind == Collective::AllGather)
    placeGather(*collective, bucket);
  else if (collective->kind == Collective::ReduceScatter)
    placeReduceScatter(*collective, bucket);
  else
    placeAllReduce(*collective, bucket);
  plan::CommandOpInterface command = emit(*collective, bucket);
  if (!collective->future) {
    order.compute(command);
    return success();
  }
  order.start(command, channelName(*collective, grid));
  inFlight[collective->future] = command;
  return success();
}

/// The results were bound at the start.
LogicalResult StepLowering::lowerWait(WaitOp op) {
  if (plan::CommandOpInterface last = inFlight.lookup(op.getFuture()))
    order.wait(last);
  return success();
}
