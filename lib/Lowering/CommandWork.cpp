//===- CommandWork.cpp - What a command has to do -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Work, label and seconds of one command of a program.
//
//===----------------------------------------------------------------------===//

#include "zero/Lowering/PlanTimeline.h"

#include "dialects/Train/Train.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "zero/Schedule/OpWork.h"
#include "zero/Transforms/PlanOrder.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::zero;

static MemRefType typeOf(Value buffer) {
  return cast<MemRefType>(buffer.getType());
}

/// Bytes of the elements that a view touches: a repeated one counts once.
static double bytesOf(Value buffer) {
  MemRefType type = typeOf(buffer);
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  (void)type.getStridesAndOffset(strides, offset);
  double bytes = plan::elementBytes(type.getElementType());
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), strides))
    bytes *= stride == 0 ? 1 : size;
  return bytes;
}

static StringRef typeName(Type type) {
  if (type.isBF16())
    return "bf16";
  if (type.isF16())
    return "f16";
  return type.isF64() ? "f64" : "f32";
}

//===----------------------------------------------------------------------===//
// Library calls
//===----------------------------------------------------------------------===//

/// Elements of one entry of dimension 0.
static int64_t perRow(MemRefType type) {
  return ShapedType::getNumElements(type.getShape().drop_front());
}

/// A product: (... x m x k) * (... x k x n).
static void setMatmul(plan::CallOp call, OpWork &work) {
  ArrayRef<int64_t> lhs = typeOf(call.getBuffers().front()).getShape();
  ArrayRef<int64_t> result = typeOf(call.getBuffers().back()).getShape();
  work.k = lhs.back();
  work.n = result.back();
  work.m = result.size() > 1 ? result[result.size() - 2] : 1;
  work.batch = ShapedType::getNumElements(result) / (work.m * work.n);
}

/// A convolution as the product that it is: positions x channels out, over
/// channels in times the window. Its gradients have the same size.
static void setConvolution(plan::CallOp call, OpWork &work) {
  MemRefType first = typeOf(call.getBuffers()[0]);
  MemRefType second = typeOf(call.getBuffers()[1]);
  MemRefType last = typeOf(call.getBuffers().back());
  StringRef callee = call.getCallee();
  // The tensor over output positions, and the weights.
  MemRefType output = callee == "conv" ? last : first;
  MemRefType weights = callee == "conv_grad_weight" ? last : second;
  work.batch = 1;
  work.n = output.getRank() > 1 ? output.getDimSize(1) : 1;
  work.m = work.n ? output.getNumElements() / work.n : 0;
  work.k = perRow(weights);
}

/// Operations of a number that dropout draws, as the op has them.
static constexpr double kDrawFlops = 100;

/// Attention as a product of queries and keys: each pair that sees each other
/// takes so many multiply-adds.
static void setAttention(plan::CallOp call, OpWork &work) {
  bool isGrad = call.getCallee() == "attention_grad";
  auto shapeOf = [&](int64_t i) {
    return typeOf(call.getBuffers()[i + isGrad]).getShape();
  };
  ArrayRef<int64_t> query = shapeOf(0);
  work.batch = query[0] * query[1];
  work.m = query[2];
  work.n = shapeOf(1)[2];
  work.k = isGrad ? 3 * query[3] + 2 * shapeOf(2)[3] : query[3] + shapeOf(2)[3];
  double pairs = 1.0 * work.m * work.n;
  if (call->hasAttr("causal")) {
    double rising = std::min(work.m, work.n);
    pairs = rising * (rising + 1) / 2 + (work.m - rising) * work.n;
  }
  work.transcendentals = work.batch * pairs;
  double drawn = call->hasAttr("ratio") ? kDrawFlops : 0;
  work.flops = work.transcendentals * (2 * work.k + drawn);
}

static OpWork workOf(plan::CallOp call) {
  OpWork work;
  work.cls = OpWork::Matmul;
  for (Value buffer : call.getBuffers())
    work.bytes += bytesOf(buffer);
  work.type = typeName(typeOf(call.getBuffers().front()).getElementType());
  if (typeOf(call.getBuffers().back()).getNumElements() == 0)
    return work;
  if (call.getCallee().starts_with("attention")) {
    setAttention(call, work);
    return work;
  }
  if (call.getCallee() == "matmul")
    setMatmul(call, work);
  else
    setConvolution(call, work);
  work.flops = 2.0 * work.batch * work.m * work.n * work.k;
  return work;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Bytes that the kernel reads of a table that it only looks rows up in.
static std::optional<double> lookedUpBytes(Value argument) {
  double bytes = 0;
  for (OpOperand &use : argument.getUses()) {
    auto lookup = dyn_cast<train::GatherOp>(use.getOwner());
    if (!lookup || use.getOperandNumber() != 0)
      return std::nullopt;
    bytes += plan::sizeInBytes(cast<ShapedType>(lookup.getResult().getType()));
  }
  return bytes;
}

static OpWork workOf(plan::LaunchOp launch) {
  OpWork work;
  auto kernel = SymbolTable::lookupNearestSymbolFrom<FunctionOpInterface>(
      launch, launch.getCalleeAttr());
  bool hasBody = kernel && !kernel.isExternal();
  Block *body = hasBody ? &kernel.getFunctionBody().front() : nullptr;
  SmallVector<Value> written = launch.getWrittenBuffers();
  for (auto [i, buffer] : llvm::enumerate(launch.getBuffers())) {
    double bytes = bytesOf(buffer);
    bool isInput = body && i < body->getNumArguments();
    if (isInput)
      if (std::optional<double> rows = lookedUpBytes(body->getArgument(i)))
        bytes = std::min(bytes, *rows);
    bool inPlace = isInput && llvm::is_contained(written, buffer);
    work.bytes += inPlace ? 2 * bytes : bytes;
  }
  if (body)
    for (Operation &op : body->without_terminator()) {
      OpWork part = getOpWork(&op);
      work.flops += part.flops;
      work.transcendentals += part.transcendentals;
    }
  return work;
}

OpWork mlir::zero::getCommandWork(plan::CommandOpInterface command) {
  return TypeSwitch<Operation *, OpWork>(command)
      .Case<plan::LaunchOp, plan::CallOp>([](auto op) { return workOf(op); })
      .Case<plan::CopyOp, plan::FillOp>([](auto op) {
        OpWork work;
        work.bytes = bytesOf(op.getTarget()) *
                     (isa<plan::CopyOp>(op.getOperation()) ? 2 : 1);
        return work;
      })
      .Default([](Operation *) { return OpWork(); });
}

//===----------------------------------------------------------------------===//
// Labels and seconds
//===----------------------------------------------------------------------===//

/// The node of the model that `location` names, if any.
static std::string nodeName(Location location) {
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (std::string text = nodeName(part); !text.empty())
        return text;
  return "";
}

std::string mlir::zero::getCommandLabel(plan::CommandOpInterface command) {
  std::string what, of;
  if (auto launch = dyn_cast<plan::LaunchOp>(*command))
    what = launch.getCallee().str();
  else if (auto call = dyn_cast<plan::CallOp>(*command))
    what = call.getCallee().str();
  else
    what = command->getName().stripDialect().str();
  if (auto copy = dyn_cast<plan::CopyOp>(*command))
    of = copy.getLabel().value_or("").str();
  if (auto collective = dyn_cast<plan::CollectiveOpInterface>(*command))
    of = collective.getBucketLabel().str();
  else if (of.empty())
    of = nodeName(command->getLoc());
  return of.empty() ? what : what + " " + of;
}

static plan::Space spaceOf(Value buffer) {
  return getUnderlyingBuffer(buffer).getSpace();
}

/// What a copy between two spaces is; within host memory the host does it.
static TaskKind kindOfCopy(plan::Space from, plan::Space to) {
  if (from == plan::Space::Disk)
    return TaskKind::DiskRead;
  if (to == plan::Space::Disk)
    return TaskKind::DiskWrite;
  if (from == to)
    return to == plan::Space::Host ? TaskKind::HostCompute : TaskKind::Compute;
  return to == plan::Space::Device ? TaskKind::CopyIn : TaskKind::CopyOut;
}

TaskKind mlir::zero::getCommandKind(plan::CommandOpInterface command) {
  return TypeSwitch<Operation *, TaskKind>(command)
      .Case([](plan::AllGatherOp) { return TaskKind::AllGather; })
      .Case([](plan::ReduceScatterOp) { return TaskKind::ReduceScatter; })
      .Case([](plan::AllReduceOp) { return TaskKind::AllReduce; })
      .Case([](plan::CopyOp op) {
        return kindOfCopy(spaceOf(op.getSource()), spaceOf(op.getTarget()));
      })
      .Case([](plan::FillOp op) {
        return spaceOf(op.getTarget()) == plan::Space::Device
                   ? TaskKind::Compute
                   : TaskKind::HostCompute;
      })
      .Case([](plan::LaunchOp op) {
        return op.getHost() ? TaskKind::HostCompute : TaskKind::Compute;
      })
      .Default([](Operation *) { return TaskKind::Compute; });
}

/// How many ranks take part, and how they lie on the nodes.
static RankGroup groupOf(plan::CollectiveOpInterface collective,
                         const CostModel &cost) {
  auto program = cast<plan::ProgramOp>(collective->getParentOp());
  ArrayRef<int64_t> axes = collective.getSpannedAxes();
  SmallVector<int64_t> grid = program.getGridShape();
  int64_t stride = 1;
  if (!axes.empty())
    for (int64_t axis = axes.back() + 1, e = grid.size(); axis < e; ++axis)
      stride *= grid[axis];
  return cost.group(program.getGroupSize(axes), stride);
}

int64_t mlir::zero::getWholeBytes(plan::CollectiveOpInterface collective) {
  int64_t bytes = 0;
  for (auto [source, elements] : llvm::zip_equal(collective.getSourceBuffers(),
                                                 collective.getWholeElements()))
    bytes += elements * plan::elementBytes(typeOf(source).getElementType());
  return bytes;
}

int64_t mlir::zero::getSentBytes(plan::CommandOpInterface command) {
  if (auto copy = dyn_cast<plan::CopyOp>(*command);
      copy && spaceOf(copy.getSource()) != spaceOf(copy.getTarget()))
    return bytesOf(copy.getTarget());
  auto collective = dyn_cast<plan::CollectiveOpInterface>(*command);
  if (!collective)
    return 0;
  auto program = cast<plan::ProgramOp>(command->getParentOp());
  return ringBytes(getCommandKind(command), getWholeBytes(collective),
                   program.getGroupSize(collective.getSpannedAxes()));
}

double mlir::zero::predictSeconds(plan::CommandOpInterface command,
                                  const CostModel &cost) {
  TaskKind kind = getCommandKind(command);
  if (auto collective = dyn_cast<plan::CollectiveOpInterface>(*command))
    return cost.collective(kind, getWholeBytes(collective),
                           groupOf(collective, cost));
  if (kind == TaskKind::HostCompute)
    return cost.hostCompute(getCommandWork(command));
  if (kind != TaskKind::Compute)
    return cost.copy(kind, bytesOf(cast<plan::CopyOp>(*command).getTarget()));
  return isa<plan::ReleaseOp>(*command) ? 0
                                        : cost.compute(getCommandWork(command));
}

double mlir::zero::countModelFlops(plan::CommandOpInterface command) {
  OpWork work = getCommandWork(command);
  if (work.cls != OpWork::Matmul)
    return 0;
  auto call = cast<plan::CallOp>(command.getOperation());
  if (!call.getCallee().starts_with("attention"))
    return work.flops;
  int64_t scores = typeOf(call.getBuffers()[1]).getShape().back();
  bool isGrad = call.getCallee() == "attention_grad";
  return 2.0 * work.batch * work.m * work.n * (work.k - isGrad * scores);
}
