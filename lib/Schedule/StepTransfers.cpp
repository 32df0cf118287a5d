//===- StepTransfers.cpp - What a step does outside the device ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies between memory spaces and compute of the host's processor, as tasks.
//
//===----------------------------------------------------------------------===//

#include "StepGraphBuilder.h"

#include "zero/Schedule/OpWork.h"
#include "zero/Transforms/StepUtils.h"

using namespace mlir;
using namespace mlir::zero;

static constexpr int32_t kNone = -1;

/// Where a transferred value goes: into the state that it becomes, or into a
/// buffer of its own that holds what the source held.
int32_t StepGraphBuilder::transferredBuffer(TransferOp transfer,
                                            unsigned index) {
  Value result = transfer.getResult(index);
  if (int32_t assigned = assignedBuffer(result, transfer); assigned != kNone)
    return assigned;
  int32_t source = bufferOf(transfer.getInputs()[index]);
  MemoryKind kind = MemoryKind::Activation;
  std::string name = "a scalar";
  if (source != kNone) {
    kind = step.graph.buffers[source].kind;
    name = step.bufferNames[source];
  }
  if (kind == MemoryKind::Input || kind == MemoryKind::Constant)
    kind = MemoryKind::Activation;
  return addBuffer(getHeldBytes(transfer, result.getType(), symbols), kind,
                   /*resident=*/false,
                   name + " in " + stringifyMemory(transfer.getTo()) +
                       " memory",
                   toSpace(transfer.getTo()));
}

static TaskKind getTaskKind(TransferOp transfer) {
  if (transfer.getFrom() == Memory::Disk)
    return TaskKind::DiskRead;
  if (transfer.getTo() == Memory::Disk)
    return TaskKind::DiskWrite;
  return transfer.getTo() == Memory::Device ? TaskKind::CopyIn
                                            : TaskKind::CopyOut;
}

namespace {
/// What a copy's channel and the copy itself are called.
struct TransferWords {
  StringRef channel, label;
};
} // namespace

static TransferWords getWords(TaskKind kind) {
  switch (kind) {
  case TaskKind::CopyIn:
    return {"to_device", "copy to the device"};
  case TaskKind::CopyOut:
    return {"to_host", "copy to the host"};
  case TaskKind::DiskRead:
    return {"disk_read", "read from disk"};
  default:
    return {"disk_write", "write to disk"};
  }
}

/// A copy between memory spaces.
void StepGraphBuilder::addTransfer(TransferOp transfer) {
  TaskKind kind = getTaskKind(transfer);
  TransferWords words = getWords(kind);
  int32_t task =
      addTask(kind, channelOf(words.channel), transfer.getOperation());
  bool direct = kind == TaskKind::DiskRead || kind == TaskKind::DiskWrite;
  int64_t bytes = 0;
  for (unsigned i = 0; i < transfer.getNumResults(); ++i) {
    Value input = transfer.getInputs()[i];
    int32_t source = bufferOf(input), target = transferredBuffer(transfer, i);
    bytes += getHeldBytes(transfer, input.getType(), symbols);
    for (int32_t buffer : {source, target})
      if (direct && buffer != kNone) {
        int64_t &size = step.graph.buffers[buffer].bytes;
        size = llvm::alignTo(size, kDiskAlignment);
      }
    read(task, source);
    write(task, target);
    step.results[task].push_back(transfer.getResult(i));
    bind(transfer.getResult(i), target);
  }
  nameTask(task, transfer, words.label, "");
  StepTask &data = step.graph.tasks[task];
  data.seconds = cost.copy(kind, bytes);
  data.latency = cost.copyLatency(kind);
}

/// The accumulator that result `index` is the new sum of, or its window in host
/// memory; kNone where it is something else.
int32_t StepGraphBuilder::hostedSum(OnHostOp op, unsigned index) {
  Operation *add = op.getYield().getValues()[index].getDefiningOp();
  if (!add || !getSummedAccumulator(add, symbols))
    return kNone;
  for (Value operand : add->getOperands()) {
    auto argument = dyn_cast<BlockArgument>(operand);
    if (argument && getReadAccumulator(operand, symbols))
      return bufferOf(op.getInputs()[argument.getArgNumber()]);
  }
  return kNone;
}

/// Where a result of the host's compute goes: as on the device, into what it
/// replaces.
int32_t StepGraphBuilder::hostedBuffer(OnHostOp op, unsigned index) {
  Value result = op.getResult(index);
  int32_t target = assignedBuffer(result, op);
  if (target != kNone)
    return target;
  int32_t sum = hostedSum(op, index);
  if (sum != kNone && mayOverwrite(sum, op))
    return sum;
  Value yielded = op.getYield().getValues()[index];
  if (auto update = yielded.getDefiningOp<OptimizerUpdate>()) {
    unsigned number = cast<OpResult>(yielded).getResultNumber();
    Value replaced = update.getReplacedOperand(number).get();
    auto argument = dyn_cast<BlockArgument>(replaced);
    if (argument && argument.getOwner() == &op.getBody().front())
      target = bufferOf(op.getInputs()[argument.getArgNumber()]);
  }
  if (target != kNone && mayOverwrite(target, op) &&
      !step.graph.buffers[target].resident)
    return target;
  return addBuffer(getTensorBytes(result.getType()), MemoryKind::Parameter,
                   /*resident=*/false, "a result of the host",
                   MemorySpace::Host);
}

/// The whole body is one pass over its operands and results.
void StepGraphBuilder::addOnHost(OnHostOp op) {
  int32_t task =
      addTask(TaskKind::HostCompute, channelOf("host"), op.getOperation());
  OpWork work;
  for (Value input : op.getInputs()) {
    read(task, bufferOf(input));
    work.bytes += getTensorBytes(input.getType());
  }
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    int32_t buffer = hostedBuffer(op, i);
    write(task, buffer);
    work.bytes += getTensorBytes(result.getType());
    step.results[task].push_back(result);
    bind(result, buffer);
  }
  for (Operation &part : op.getBody().front().without_terminator()) {
    OpWork partWork = getOpWork(&part);
    work.flops += partWork.flops;
    work.transcendentals += partWork.transcendentals;
  }
  nameTask(task, op, "compute on the host", "");
  StepTask &data = step.graph.tasks[task];
  data.seconds = cost.hostCompute(work);
  // Each is a task of its own.
  data.bucketClass = -1 - task;
}
