//===- PlanLowerOffload.cpp - Transfers and compute of the host -----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A transfer becomes one copy per tensor on the stream of its direction, the
// body of a zero.on_host launches on the stream "host". Without a future
// compute waits for them at once.
//
//===----------------------------------------------------------------------===//

#include "MovedValues.h"
#include "StepLowering.h"

#include "zero/Transforms/PlanOrder.h"
#include "zero/Transforms/StepUtils.h"

using namespace mlir;
using namespace mlir::zero;

//===----------------------------------------------------------------------===//
// Spaces
//===----------------------------------------------------------------------===//

static plan::Space toSpace(Memory memory) {
  switch (memory) {
  case Memory::Device:
    return plan::Space::Device;
  case Memory::Host:
    return plan::Space::Host;
  case Memory::Disk:
    break;
  }
  return plan::Space::Disk;
}

plan::Space zero::getSpace(Value value) { return toSpace(getMemory(value)); }

plan::Space zero::getSpace(Type type) {
  auto sharded = dyn_cast<ShardedType>(type);
  return sharded ? toSpace(sharded.getMem()) : plan::Space::Device;
}

static StringRef getStream(plan::Space from, plan::Space to) {
  if (from == plan::Space::Disk)
    return "disk_read";
  if (to == plan::Space::Disk)
    return "disk_write";
  return to == plan::Space::Host ? "to_host" : "to_device";
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

/// Bytes of what `place` covers that hold no element of the model, on all
/// ranks.
int64_t StepLowering::paddingOf(const Place &place) const {
  plan::BufferOp buffer = place.storage->buffer;
  MemRefType type = buffer.getBuffer().getType();
  int64_t covered = ShapedType::getNumElements(place.layout.sizes);
  if (place.rankStride) {
    int64_t parts = place.parts ? place.parts : grid.back();
    return std::max<int64_t>(covered * parts - type.getNumElements(), 0) *
           (ranks / parts) * plan::elementBytes(type.getElementType());
  }
  if (covered != type.getNumElements())
    return 0;
  int64_t slack = (buffer.getBytes() - plan::sizeInBytes(type)) * ranks;
  return std::max<int64_t>(buffer.getPadding().value_or(0) - slack, 0);
}

/// What a copy in `space` of something of `kind` is: a parameter is gathered if
/// it is used whole and released, values from outside the step are not.
static plan::Kind getKindOfCopy(plan::Kind kind, Value copy) {
  bool isReleased = llvm::any_of(copy.getUsers(), llvm::IsaPred<ReleaseOp>);
  switch (kind) {
  case plan::Kind::Parameter:
  case plan::Kind::Gathered:
    return isReleased ? plan::Kind::Gathered : plan::Kind::Parameter;
  case plan::Kind::Input:
  case plan::Kind::Constant:
  case plan::Kind::Persistent:
    return plan::Kind::Activation;
  case plan::Kind::OptimizerState:
  case plan::Kind::Gradient:
  case plan::Kind::Activation:
    break;
  }
  return kind;
}

/// The symbol that `value` is assigned to, be it after a gather.
static StringRef findReplaced(Value value) {
  StringRef symbol = getAssignedSymbol(value);
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (symbol.empty() && isa<AllGatherOp, AllGatherStartOp>(user))
      if (FailureOr<ResultRange> wholes = getFinalResults(user);
          succeeded(wholes))
        symbol = getAssignedSymbol((*wholes)[use.getOperandNumber()]);
  }
  return symbol;
}

/// The symbol whose value moves, or will be replaced by it, or the parameter
/// whose gradient it is.
std::string StepLowering::describeMoved(Value input, Value output) {
  if (StringRef symbol = findSymbol(input); !symbol.empty())
    return symbol.str();
  if (StringRef symbol = findReplaced(output); !symbol.empty())
    return symbol.str();
  bool isGradient =
      placeOf(input).storage->buffer.getKind() == plan::Kind::Gradient ||
      llvm::any_of(output.getUsers(), llvm::IsaPred<OnHostOp, OnHostStartOp>);
  if (!isGradient || cast<ShapedType>(output.getType()).getRank() == 0)
    return "";
  std::string updated = findParameter(output);
  return updated.empty() ? "" : "gradient of " + updated;
}

/// `layout` with its dimensions in the order of memory.
static StridedLayout inMemoryOrder(const StridedLayout &layout) {
  auto dims = llvm::to_vector(llvm::seq<size_t>(0, layout.sizes.size()));
  llvm::stable_sort(dims, [&](size_t lhs, size_t rhs) {
    return layout.strides[lhs] > layout.strides[rhs];
  });
  StridedLayout sorted = layout;
  for (auto [to, from] : llvm::enumerate(dims)) {
    sorted.sizes[to] = layout.sizes[from];
    sorted.strides[to] = layout.strides[from];
  }
  return sorted;
}

/// Emits the copy of one tensor of the bucket `op`.
void StepLowering::moveTo(Location loc, plan::Space space, Value input,
                          Value output, Operation *op) {
  Place from = placeOf(input);
  ShapedType type = getHeldType(output.getType());
  Place to = {assignedStorage(output, op),
              StridedLayout::contiguous(type.getShape()), 0};
  Place bound = to;
  if (!to.storage) {
    // A transposed value stays so: who reads it computes the same bits.
    StridedLayout sorted = inMemoryOrder(from.layout);
    if (!from.layout.isContiguous() && sorted.isContiguous()) {
      bound.layout.strides = from.layout.strides;
      to.layout = StridedLayout::contiguous(sorted.sizes);
      from.layout = sorted;
    }
    type = RankedTensorType::get(to.layout.sizes, type.getElementType());
    plan::Kind kind = from.storage->buffer.getKind();
    to.storage = memory.create(loc, type, getKindOfCopy(kind, output), space);
    if (int64_t padding = paddingOf(from))
      to.storage->buffer.setPadding(padding);
    bound.storage = to.storage;
  }
  std::string text = describeMoved(input, output);
  auto copy = plan::CopyOp::create(
      commands, loc, memory.materialize(loc, from), memory.materialize(loc, to),
      text.empty() ? StringAttr() : commands.getStringAttr(text), StringAttr(),
      ValueRange(), Value());
  order.start(copy, getStream(from.storage->space, space));
  memory.bind(output, bound);
}

/// The last copy of a bucket, which are on one stream, implies the others.
template <typename OpTy>
LogicalResult StepLowering::lowerTransfer(OpTy op) {
  FailureOr<ResultRange> outputs = getFinalResults(op);
  if (failed(outputs))
    return failure();
  plan::Space from = toSpace(op.getFrom()), to = toSpace(op.getTo());
  for (auto [input, output] : llvm::zip_equal(op.getInputs(), *outputs)) {
    if (placeOf(input).storage->space != from)
      return op.emitOpError()
             << "moves a value from " << plan::stringifySpace(from)
             << " memory that is in "
             << plan::stringifySpace(placeOf(input).storage->space)
             << " memory";
    moveTo(op.getLoc(), to, input, output, op);
  }
  plan::CommandOpInterface last(&commands.getBlock()->back());
  if (isStart(op))
    inFlight[op->getResult(0)] = last;
  else
    order.wait(last);
  return success();
}

template LogicalResult StepLowering::lowerTransfer(TransferOp op);
template LogicalResult StepLowering::lowerTransfer(TransferStartOp op);

/// A disk is read and written in whole blocks, best from and to memory that
/// begins at one.
void StepLowering::reserveDiskBlocks() {
  for (auto copy : commands.getBlock()->getOps<plan::CopyOp>()) {
    plan::BufferOp from = getUnderlyingBuffer(copy.getSource()),
                   to = getUnderlyingBuffer(copy.getTarget());
    if (from.getSpace() != plan::Space::Disk &&
        to.getSpace() != plan::Space::Disk)
      continue;
    StepMemory::reserveBlocks(from, ranks);
    StepMemory::reserveBlocks(to, ranks);
  }
}

//===----------------------------------------------------------------------===//
// Compute of the host
//===----------------------------------------------------------------------===//

/// The storage of the symbol that `result`, of a kernel on the host, is
/// assigned to, if it may be written there directly.
Storage *StepLowering::yieldedStorage(Value result, plan::DispatchOp op) {
  for (OpOperand &use : result.getUses())
    if (isa<YieldOp>(use.getOwner()))
      if (Storage *storage = assignedStorage(getMoved(use), op))
        return storage;
  return nullptr;
}

/// Compute waits for what the host does.
void StepLowering::endOnHost() {
  onHost = false;
  if (lastOnHost)
    order.wait(lastOnHost);
  lastOnHost = {};
}

LogicalResult StepLowering::lowerOnHost(Operation *op) {
  FailureOr<ResultRange> outputs = getFinalResults(op);
  if (failed(outputs))
    return failure();
  Block &body = op->getRegion(0).front();
  for (auto [input, argument] :
       llvm::zip_equal(op->getOperands(), body.getArguments())) {
    const Place place = placeOf(input);
    if (place.storage->space != plan::Space::Host)
      return op->emitOpError() << "computes with a value in "
                               << plan::stringifySpace(place.storage->space)
                               << " memory; a zero.transfer to host memory has "
                                  "to come before";
    memory.bind(argument, place);
  }
  onHost = true;
  for (Operation &each : body.without_terminator())
    if (failed(lower(&each)))
      return failure();
  for (auto [yielded, output] :
       llvm::zip_equal(body.getTerminator()->getOperands(), *outputs))
    // Zeros that are only assigned lie nowhere.
    if (const Place *place = memory.find(yielded))
      memory.bind(output, Place(*place));
  if (isStart(op)) {
    inFlight[op->getResult(0)] = lastOnHost;
    lastOnHost = {};
  }
  endOnHost();
  return success();
}
