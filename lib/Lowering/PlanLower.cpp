//===- PlanLower.cpp - From the step function to a program ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Symbols, signature, kernels and library calls; collectives are in
// PlanLowerCollectives.cpp, transfers and compute of the host in
// PlanLowerOffload.cpp.
//
//===----------------------------------------------------------------------===//

#include "LibraryOperands.h"
#include "MovedValues.h"
#include "StepLowering.h"

#include "dialects/Train/Train.h"
#include "zero/Lowering/Passes.h"
#include "zero/Transforms/PlanOrder.h"
#include "zero/Transforms/StepUtils.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::zero {
#define GEN_PASS_DEF_PLANLOWER
#include "zero/Lowering/Passes.h.inc"
} // namespace mlir::zero

using namespace mlir;
using namespace mlir::zero;

/// A program before `step` with an empty block for declarations and one for
/// commands.
static plan::ProgramOp createProgram(func::FuncOp step,
                                     ArrayRef<int64_t> grid) {
  OpBuilder builder(step);
  auto program = plan::ProgramOp::create(
      builder, step.getLoc(), step.getName(), ShapedType::getNumElements(grid),
      grid.size() > 1 ? builder.getDenseI64ArrayAttr(grid)
                      : DenseI64ArrayAttr(),
      /*window=*/IntegerAttr(), /*budget=*/IntegerAttr(),
      /*order=*/IntegerAttr(), /*micro_batches=*/1);
  program.getBody().emplaceBlock();
  program.getBody().emplaceBlock();
  return program;
}

StepLowering::StepLowering(ModuleOp module, func::FuncOp front,
                           func::FuncOp step, ArrayRef<int64_t> grid,
                           int64_t stage)
    : module(module), front(front), step(step), grid(grid),
      ranks(ShapedType::getNumElements(grid)), stage(stage), liveness(step),
      program(createProgram(step, grid)),
      declarations(OpBuilder::atBlockEnd(&program.getBody().front())),
      commands(OpBuilder::atBlockEnd(&program.getBody().back())),
      memory(declarations, liveness), order(declarations) {}

//===----------------------------------------------------------------------===//
// Symbols and the signature
//===----------------------------------------------------------------------===//

/// In how many parts `axes` cut, if these are the last axis of the grid, all or
/// none; rank r then has part r % parts.
std::optional<int64_t> StepLowering::getParts(ArrayRef<int64_t> axes) const {
  if (axes.empty())
    return 1;
  int64_t last = grid.size() - 1;
  if (axes == ArrayRef<int64_t>(last))
    return grid.back();
  if (llvm::equal(axes, llvm::seq<int64_t>(0, grid.size())))
    return ranks;
  return std::nullopt;
}

/// The last axis is not spelled out.
IntegerAttr StepLowering::getPartsAttr(int64_t parts) {
  return parts == grid.back() ? IntegerAttr()
                              : commands.getI64IntegerAttr(parts);
}

/// What a rank holds of a value of `type`.
ShapedType StepLowering::getHeldType(Type type) const {
  auto sharded = dyn_cast<ShardedType>(type);
  return sharded
             ? ShapedType(sharded.getLocalType(*getParts(sharded.getAxes())))
             : cast<ShapedType>(type);
}

/// Declares the buffer of a symbol and what binds the name to it.
void StepLowering::declareParameter(Operation *symbol, StringRef name,
                                    Type type, plan::Kind kind,
                                    plan::ParamRole role) {
  Location loc = symbol->getLoc();
  auto shard = dyn_cast<ShardedType>(type);
  ShapedType logical = shard ? shard.getLogicalType() : cast<ShapedType>(type);
  int64_t parts = shard ? *getParts(shard.getAxes()) : 1;
  bool sharded = shard && !shard.getAxes().empty();
  ShapedType held = getHeldType(type);
  Storage *storage = memory.create(loc, held, kind, getSpace(type));
  storage->symbol = name.str();
  symbols[name] = storage;

  auto param = dyn_cast<ParamOp>(symbol);
  auto state = dyn_cast<StateOp>(symbol);
  auto declared = plan::ParameterOp::create(
      declarations, loc, name, storage->buffer.getBuffer(), role,
      state && state.getParam() ? declarations.getStringAttr(*state.getParam())
                                : StringAttr(),
      sharded ? declarations.getDenseI64ArrayAttr(logical.getShape())
              : DenseI64ArrayAttr(),
      sharded ? getPartsAttr(parts) : IntegerAttr(),
      param ? param.getInitFileAttr() : state.getInitFileAttr(),
      param ? param.getInitTensorAttr() : state.getInitTensorAttr(),
      /*ones=*/param && param.getOnes(),
      state ? state.getValueAttr() : ElementsAttr(),
      param ? param.getTiedAttr() : ArrayAttr());
  // The tensor's name is the symbol's unless it is said.
  if (state && state.getInitFile() && !state.getInitTensor())
    declared.setInitTensor(name);
  if (sharded)
    storage->buffer.setPadding(
        (held.getNumElements() * parts - logical.getNumElements()) *
        (ranks / parts) * plan::elementBytes(logical.getElementType()));
}

void StepLowering::declareParam(ParamOp param) {
  auto role = param.getBuffer()   ? plan::ParamRole::Buffer
              : param.getFrozen() ? plan::ParamRole::Frozen
                                  : plan::ParamRole::Trained;
  auto kind =
      param.getBuffer() ? plan::Kind::Persistent : plan::Kind::Parameter;
  declareParameter(param, param.getSymName(), param.getType(), kind, role);
}

void StepLowering::declareState(StateOp state) {
  bool sums = state.getAccumulator();
  plan::Kind kind = !state.getParam() ? plan::Kind::Persistent
                    : sums            ? plan::Kind::Gradient
                                      : plan::Kind::OptimizerState;
  declareParameter(state, state.getSymName(), state.getType(), kind,
                   sums ? plan::ParamRole::Accumulator
                        : plan::ParamRole::State);
}

LogicalResult StepLowering::declareSymbols() {
  for (Operation &op : *module.getBody()) {
    Type type;
    if (auto param = dyn_cast<ParamOp>(&op))
      type = param.getType();
    else if (auto state = dyn_cast<StateOp>(&op))
      type = state.getType();
    else
      continue;
    auto sharded = dyn_cast<ShardedType>(type);
    if (sharded && (sharded.getDim() != 0 || !getParts(sharded.getAxes())))
      return op.emitOpError()
             << "has type " << type << "; the plan takes shards of dimension 0 "
             << "over the last grid axis or all";
    if (auto param = dyn_cast<ParamOp>(&op))
      declareParam(param);
    else
      declareState(cast<StateOp>(&op));
  }
  return success();
}

LogicalResult StepLowering::declareInputs() {
  for (BlockArgument arg : step.getArguments())
    if (failed(declareInput(arg)))
      return failure();
  return success();
}

LogicalResult StepLowering::declareInput(BlockArgument arg) {
  unsigned i = arg.getArgNumber();
  auto input = step.getArgAttrOfType<StringAttr>(i, kInputAttr);
  auto hyper = step.getArgAttrOfType<StringAttr>(i, kHyperAttr);
  auto type = dyn_cast<RankedTensorType>(arg.getType());
  bool isFirstSample = step.getArgAttr(i, kFirstSampleAttr) != nullptr;
  if (!type || !type.hasStaticShape() || (!input && !hyper && !isFirstSample))
    return step.emitOpError()
           << "has argument " << i << " of type " << arg.getType()
           << "; the plan needs tensors of static shape with 'zero.input', "
              "'zero.hyper' or 'zero.first_sample'";
  auto role = plan::InputRole::Data;
  if (hyper && hyper.getValue() == "lr")
    role = plan::InputRole::LearningRate;
  else if (hyper && hyper.getValue() == "step")
    role = plan::InputRole::Step;
  else if (hyper && hyper.getValue() == "seed")
    role = plan::InputRole::Seed;
  else if (hyper)
    return step.emitOpError() << "has the hyperparameter '" << hyper.getValue()
                              << "'; known are 'lr', 'step' and 'seed'";
  else if (isFirstSample)
    role = plan::InputRole::FirstSample;
  StringAttr name = input   ? input
                    : hyper ? hyper
                            : StringAttr::get(step.getContext(), "first_sample");
  Storage *&storage = inputs[name];
  if (storage) {
    MemRefType held = storage->buffer.getBuffer().getType();
    if (held.getShape() != type.getShape() ||
        held.getElementType() != type.getElementType())
      return step.emitOpError()
             << "has the input " << name << " of type " << type << ", which is "
             << held << " in @" << front.getName();
    memory.bind(arg, {storage, StridedLayout::contiguous(type.getShape()), 0});
    return success();
  }
  Place place = fresh(arg.getLoc(), type, plan::Kind::Input);
  storage = place.storage;
  memory.bind(arg, place);
  plan::InputOp::create(
      declarations, arg.getLoc(), name, place.storage->buffer.getBuffer(),
      plan::InputRoleAttr::get(step.getContext(), role),
      step.getArgAttrOfType<DenseI64ArrayAttr>(i, "zero.bounds"),
      step.getArgAttrOfType<IntegerAttr>(i, "zero.ignore"));
  return success();
}

LogicalResult StepLowering::declareOutputs(func::ReturnOp ret) {
  for (auto [i, value] : llvm::enumerate(ret.getOperands())) {
    auto name = step.getResultAttrOfType<StringAttr>(i, kOutputAttr);
    if (!name)
      return step.emitOpError() << "has no 'zero.output' name on result " << i;
    auto across = step.getResultAttrOfType<StringAttr>(i, kAcrossAttr);
    std::optional<plan::AcrossRanks> combine =
        plan::symbolizeAcrossRanks(across ? across.getValue() : "same");
    if (!combine)
      return step.emitOpError() << "has 'zero.across' = " << across
                                << "; known are \"mean\", \"sum\", \"same\"";
    Value buffer = bufferOf(value, ret.getLoc());
    if (buffer.getDefiningOp<plan::ViewOp>()) {
      // An output is a whole buffer, of its own shape.
      Place own = fresh(ret.getLoc(), cast<ShapedType>(value.getType()),
                        plan::Kind::Activation);
      copy(ret.getLoc(), placeOf(value), own);
      buffer = memory.materialize(ret.getLoc(), own);
    }
    plan::OutputOp::create(commands, ret.getLoc(), name, buffer, *combine);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

const Place &StepLowering::placeOf(Value value) { return *memory.find(value); }

Value StepLowering::bufferOf(Value value, Location loc) {
  return memory.materialize(loc, placeOf(value));
}

Place StepLowering::fresh(Location loc, ShapedType type, plan::Kind kind) {
  return {memory.create(loc, type, kind,
                        onHost ? plan::Space::Host : plan::Space::Device),
          StridedLayout::contiguous(type.getShape()), 0};
}

/// `command` computes: on the device, or on the host in the body of an op.
void StepLowering::issue(plan::CommandOpInterface command) {
  if (!onHost)
    return order.compute(command);
  order.start(command, kHostStream);
  lastOnHost = command;
}

void StepLowering::copy(Location loc, const Place &from, const Place &to) {
  issue(plan::CopyOp::create(
      commands, loc, memory.materialize(loc, from), memory.materialize(loc, to),
      /*label=*/StringAttr(), StringAttr(), ValueRange(), Value()));
}

/// The storage of the symbol that `value` is assigned to, if `producer` may
/// write it there directly.
Storage *StepLowering::assignedStorage(Value value, Operation *producer) {
  for (Operation *user : value.getUsers()) {
    auto assign = dyn_cast<AssignOp>(user);
    if (!assign)
      continue;
    Storage *storage = symbols.lookup(assign.getSymbol());
    if (storage && storage->space == getSpace(value) &&
        memory.mayOverwrite(storage, producer))
      return storage;
  }
  return nullptr;
}

/// A parameter or, where that has one, its master copy.
bool StepLowering::isParameter(Value value) {
  const Place *place = memory.find(value);
  if (!place)
    return false;
  plan::Kind kind = place->storage->buffer.getKind();
  return kind == plan::Kind::Parameter || kind == plan::Kind::OptimizerState;
}

/// An activation that is kept until the update is a gradient.
void StepLowering::markGradient(Value value) {
  plan::BufferOp buffer = placeOf(value).storage->buffer;
  if (buffer.getKind() == plan::Kind::Activation &&
      buffer.getBuffer().getType().getRank() > 0)
    buffer.setKind(plan::Kind::Gradient);
}

//===----------------------------------------------------------------------===//
// Ops without a command
//===----------------------------------------------------------------------===//

/// Whether `value` is stored as it is, also by way of a host's op, and nothing
/// else.
static bool isOnlyAssigned(Value value) {
  return llvm::all_of(value.getUses(), [](OpOperand &use) {
    return isa<AssignOp>(use.getOwner()) ||
           (isa<YieldOp>(use.getOwner()) && isOnlyAssigned(getMoved(use)));
  });
}

LogicalResult StepLowering::lowerConstant(arith::ConstantOp op) {
  auto value = dyn_cast<ElementsAttr>(op.getValue());
  if (!value)
    return op.emitOpError("is not a tensor; the plan holds only tensors");
  // Zeros of the state are filled in where they are assigned.
  if (isZeroSplat(op) && isOnlyAssigned(op))
    return success();
  Storage *&storage = constants[onHost][value];
  if (!storage) {
    storage =
        fresh(op.getLoc(), value.getShapedType(), plan::Kind::Constant).storage;
    plan::ConstantOp::create(declarations, op.getLoc(),
                             storage->buffer.getBuffer(), value);
  }
  memory.bind(op.getResult(),
              {storage,
               StridedLayout::contiguous(value.getShapedType().getShape()), 0});
  return success();
}

/// A state of the step itself may leave the step as it was: in a copy.
LogicalResult StepLowering::lowerRead(ReadOp op) {
  Storage *storage = symbols.lookup(op.getSymbol());
  MemRefType type = storage->buffer.getBuffer().getType();
  Place place = {storage, StridedLayout::contiguous(type.getShape()), 0};
  auto state = module.lookupSymbol<StateOp>(op.getSymbol());
  if (state && !state.getParam() &&
      liveness.lastRead(op.getValue()) > liveness.assignment(op.getSymbol())) {
    Place own = fresh(op.getLoc(), type, plan::Kind::Activation);
    copy(op.getLoc(), place, own);
    place = own;
  }
  memory.bind(op.getValue(), place);
  return success();
}

/// A rank's part of a tensor that it holds whole: a view that starts elsewhere
/// on each rank, so the buffer must hold whole chunks.
template <typename OpTy>
FailureOr<Place> StepLowering::partOf(OpTy op, Value source, Type type) {
  Place place = placeOf(source);
  std::optional<int64_t> parts = getParts(op.getAxes());
  if (op.getDim() != 0 || !parts)
    return op.emitOpError()
           << "takes shards of dimension " << op.getDim() << " over axes ["
           << op.getAxes()
           << "]; the plan takes dimension 0 over the last axis or all";
  if (isa<ShardedType>(source.getType()) || op.getAxes().empty())
    return place;
  auto local = cast<ShapedType>(type);
  // no test: none of the views made so far is strided.
  if (!place.layout.isContiguous() || place.layout.offset != 0)
    return op.emitOpError("takes the shard of a view");
  memory.reserve(place.storage, local.getNumElements() * *parts, ranks);
  place.layout = StridedLayout::contiguous(local.getShape());
  place.rankStride = local.getNumElements();
  place.parts = *parts == grid.back() ? 0 : *parts;
  return place;
}

/// A shard at rest is its own buffer.
LogicalResult StepLowering::lowerLocal(LocalOp op) {
  FailureOr<Place> place = partOf(op, op.getSource(), op.getResult().getType());
  if (failed(place))
    return failure();
  memory.bind(op.getResult(), *place);
  return success();
}

/// A copy, since the whole tensor may go.
LogicalResult StepLowering::lowerReshard(ReshardOp op) {
  for (auto [input, result] : llvm::zip(op.getInputs(), op.getResults())) {
    FailureOr<Place> part = partOf(op, input, result.getType());
    if (failed(part))
      return failure();
    auto local = cast<ShapedType>(result.getType());
    Place own = fresh(op.getLoc(), local, plan::Kind::Gathered);
    int64_t parts = part->parts ? part->parts : grid.back();
    own.storage->buffer.setPadding(
        (local.getNumElements() * parts -
         cast<ShapedType>(input.getType()).getNumElements()) *
        (ranks / parts) * plan::elementBytes(local.getElementType()));
    copy(op.getLoc(), *part, own);
    memory.bind(result, own);
  }
  return success();
}

LogicalResult StepLowering::lowerView(Operation *op) {
  Place place = placeOf(op->getOperand(0));
  place.layout = *viewThrough(op, place.layout);
  memory.bind(op->getResult(0), place);
  return success();
}

LogicalResult StepLowering::lowerAssign(AssignOp op) {
  Storage *target = symbols.lookup(op.getSymbol());
  bool isFill = target->space != plan::Space::Disk &&
                isZeroSplat(lookThrough(op.getValue()));
  if (!isFill && placeOf(op.getValue()).storage == target)
    return success();
  if (!memory.mayOverwrite(target, op))
    return op.emitOpError() << "replaces " << op.getSymbolAttr()
                            << ", whose old value is read later in the step";
  plan::Space from =
      isFill ? target->space : placeOf(op.getValue()).storage->space;
  if (from == plan::Space::Disk && from == target->space)
    return op.emitOpError()
           << "gives " << op.getSymbolAttr()
           << " a value that went to disk before the old one is read for the "
              "last time; its zero.transfer belongs behind that read";
  if (from != target->space)
    return op.emitOpError()
           << "stores a value in " << plan::stringifySpace(from)
           << " memory in " << op.getSymbolAttr() << ", which is in "
           << plan::stringifySpace(target->space)
           << " memory; a zero.transfer has to bring it there";
  onHost = from == plan::Space::Host;
  auto type = target->buffer.getBuffer().getType();
  if (isFill)
    issue(plan::FillOp::create(commands, op.getLoc(),
                               target->buffer.getBuffer(), StringAttr(),
                               ValueRange(), Value()));
  else
    copy(op.getLoc(), placeOf(op.getValue()),
         {target, StridedLayout::contiguous(type.getShape()), 0});
  endOnHost();
  return success();
}

LogicalResult StepLowering::lowerRelease(ReleaseOp op) {
  for (Value value : op.getValues())
    plan::ReleaseOp::create(commands, op.getLoc(), bufferOf(value, op.getLoc()),
                            StringAttr(), ValueRange(), Value());
  return success();
}

//===----------------------------------------------------------------------===//
// Kernels and library calls
//===----------------------------------------------------------------------===//

/// The place of a result that overwrites an operand: the operand's own, or a
/// copy where the old value is still needed.
Place StepLowering::tie(plan::DispatchOp op, unsigned result, int64_t operand) {
  Value tied = op.getInputs()[operand];
  const Place place = placeOf(tied);
  bool aliased = false;
  for (auto [i, input] : llvm::enumerate(op.getInputs()))
    aliased |= static_cast<int64_t>(i) != operand &&
               placeOf(input).storage == place.storage;
  plan::Kind kind = place.storage->buffer.getKind();
  bool fixed = kind == plan::Kind::Input || kind == plan::Kind::Constant;
  if (!aliased && !fixed && memory.mayOverwrite(place.storage, op))
    return place;
  Place own =
      fresh(op.getLoc(), cast<ShapedType>(op.getResult(result).getType()),
            plan::Kind::Activation);
  copy(op.getLoc(), place, own);
  return own;
}

/// The place of a result that overwrites no operand. What the host makes of a
/// shard has its padding.
Place StepLowering::placeResult(plan::DispatchOp op, Value result) {
  auto type = cast<ShapedType>(result.getType());
  if (!onHost)
    return fresh(op.getLoc(), type, plan::Kind::Activation);
  if (Storage *storage = yieldedStorage(result, op))
    return {storage, StridedLayout::contiguous(type.getShape()), 0};
  Place place = fresh(op.getLoc(), type, plan::Kind::Activation);
  for (Value input : op.getInputs()) {
    auto from = cast<ShapedType>(input.getType());
    int64_t padding = from.getShape() == type.getShape()
                          ? paddingOf(placeOf(input)) /
                                plan::elementBytes(from.getElementType())
                          : 0;
    if (padding > 0)
      place.storage->buffer.setPadding(
          padding * plan::elementBytes(type.getElementType()));
  }
  return place;
}

LogicalResult StepLowering::lowerDispatch(plan::DispatchOp op) {
  SmallVector<Value> buffers;
  for (Value input : op.getInputs())
    buffers.push_back(bufferOf(input, op.getLoc()));
  SmallVector<int64_t> writes;
  SmallVector<Place> results;
  bool updates = false;
  for (auto [i, operand] : llvm::enumerate(op.getTied())) {
    if (operand < 0) {
      results.push_back(placeResult(op, op.getResult(i)));
      writes.push_back(buffers.size());
      buffers.push_back(memory.materialize(op.getLoc(), results.back()));
      continue;
    }
    updates |= isParameter(op.getInputs()[operand]);
    results.push_back(tie(op, i, operand));
    buffers[operand] = memory.materialize(op.getLoc(), results.back());
    writes.push_back(operand);
  }
  for (auto [i, input] : llvm::enumerate(op.getInputs()))
    if (updates && !llvm::is_contained(op.getTied(), static_cast<int64_t>(i)) &&
        stage != 1)
      markGradient(input);
  issue(plan::LaunchOp::create(commands, op.getLoc(), op.getKernelAttr(),
                               buffers, commands.getDenseI64ArrayAttr(writes),
                               onHost ? commands.getUnitAttr() : UnitAttr(),
                               StringAttr(), ValueRange(), Value()));
  for (auto [result, place] : llvm::zip_equal(op.getResults(), results))
    memory.bind(result, place);
  return success();
}

LogicalResult StepLowering::lowerCall(Operation *op) {
  Location loc = op->getLoc();
  SmallVector<Place> results;
  for (Value result : op->getResults()) {
    results.push_back(
        fresh(loc, cast<ShapedType>(result.getType()), plan::Kind::Activation));
    memory.bind(result, results.back());
  }
  LibraryCall library = describeLibraryCall(
      op, results, [&](Value value) { return placeOf(value); });
  SmallVector<Value> buffers;
  for (const Place &place : library.operands)
    buffers.push_back(memory.materialize(loc, place));
  SmallVector<int64_t> writes = llvm::to_vector(
      llvm::seq<int64_t>(buffers.size() - results.size(), buffers.size()));
  auto call = plan::CallOp::create(
      commands, loc, FlatSymbolRefAttr::get(op->getContext(), library.callee),
      buffers, commands.getDenseI64ArrayAttr(writes), StringAttr(),
      ValueRange(), Value());
  for (NamedAttribute setting : library.settings)
    call->setAttr(setting.getName(), setting.getValue());
  order.compute(call);
  return success();
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

LogicalResult StepLowering::lower(Operation *op) {
  if (onHost && !isa<plan::DispatchOp, arith::ConstantOp>(op) &&
      !isLayoutView(op))
    return op->emitOpError("cannot run on the host's processor, which has "
                           "kernels only");
  if (isLibraryCall(op))
    return lowerCall(op);
  if (isLayoutView(op))
    return lowerView(op);
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](arith::ConstantOp op) { return lowerConstant(op); })
      .Case([&](ReadOp op) { return lowerRead(op); })
      .Case([&](LocalOp op) { return lowerLocal(op); })
      .Case([&](ReshardOp op) { return lowerReshard(op); })
      .Case([&](AssignOp op) { return lowerAssign(op); })
      .Case([&](ReleaseOp op) { return lowerRelease(op); })
      .Case([&](plan::DispatchOp op) { return lowerDispatch(op); })
      .Case<AllGatherOp, AllGatherStartOp, ReduceScatterOp,
            ReduceScatterStartOp, AllReduceOp, AllReduceStartOp>(
          [&](auto op) { return lowerCollective(op); })
      .Case<TransferOp, TransferStartOp>(
          [&](auto op) { return lowerTransfer(op); })
      .Case<OnHostOp, OnHostStartOp>([&](auto op) { return lowerOnHost(op); })
      .Case([&](WaitOp op) { return lowerWait(op); })
      .Case([&](func::ReturnOp op) { return declareOutputs(op); })
      .Default([](Operation *op) {
        return op->emitOpError(
            "cannot be part of a plan; is it outlined as a kernel?");
      });
}

/// Joins declarations and commands, and names what the step was.
void StepLowering::finish() {
  reserveDiskBlocks();
  Block &declared = program.getBody().front(),
        &emitted = program.getBody().back();
  declared.getOperations().splice(declared.end(), emitted.getOperations());
  emitted.erase();
  if (!program.getBody().getOps<plan::CollectiveOpInterface>().empty())
    program.setOrder(fingerprintOrder(program, PlanOrder(program)));
  program->setDiscardableAttr(kStageAttr, commands.getI64IntegerAttr(stage));
  if (Attribute optimizer = module->getAttr("zero.optimizer"))
    program->setDiscardableAttr("zero.optimizer", optimizer);
}

LogicalResult StepLowering::lowerFunction(func::FuncOp function) {
  step = function;
  liveness = StepLiveness(function);
  memory.clearValues();
  if (failed(declareInputs()))
    return failure();
  for (Operation &op : step.getBody().front())
    if (failed(lower(&op)))
      return failure();
  return success();
}

LogicalResult StepLowering::run() {
  func::FuncOp last = step;
  if (failed(declareSymbols()))
    return failure();
  if (front) {
    if (failed(lowerFunction(front)))
      return failure();
    plan::MicroBatchEndOp::create(commands, front.getLoc());
    order.barrier();
    auto count = module->getAttrOfType<IntegerAttr>(kMicroBatchesAttr);
    program.setMicroBatches(count ? count.getInt() : 1);
  }
  if (failed(lowerFunction(last)))
    return failure();
  finish();
  return success();
}

/// The shape of the module's grid: one rank without a grid.
static SmallVector<int64_t> gridShape(ModuleOp module) {
  SmallVector<int64_t> shape = {1};
  for (auto grid : module.getOps<shard::GridOp>())
    shape = llvm::to_vector(grid.getShape());
  return shape;
}

namespace {
struct PlanLowerPass : mlir::zero::impl::PlanLowerBase<PlanLowerPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto step = module.lookupSymbol<func::FuncOp>("step");
    if (!step || step.isExternal() || !step.getBody().hasOneBlock()) {
      module.emitError("plan-lower: the module has no function '@step' of one "
                       "block; run train-step first");
      return signalPassFailure();
    }
    auto front = module.lookupSymbol<func::FuncOp>(kAccumulateName);
    auto stage = module->getAttrOfType<IntegerAttr>(kStageAttr);
    if (failed(StepLowering(module, front, step, gridShape(module),
                            stage ? stage.getInt() : 0)
                   .run()))
      return signalPassFailure();
    step.erase();
    if (front)
      front.erase();
    // The program says it now.
    module->removeAttr(kMicroBatchesAttr);
    for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
      if (isa<ParamOp, StateOp, shard::GridOp>(op))
        op.erase();
  }
};
} // namespace
