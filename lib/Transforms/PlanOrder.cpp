//===- PlanOrder.cpp - What a program's streams and events order ----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See PlanOrder.h.
//
//===----------------------------------------------------------------------===//

#include "zero/Transforms/PlanOrder.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace mlir::zero;

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

PlanOrder::PlanOrder(plan::ProgramOp program) {
  numberCommands(program);
  computeClocks();
  computeEnds();
}

void PlanOrder::numberCommands(plan::ProgramOp program) {
  llvm::StringMap<int32_t> numbers = {{plan::kComputeStream, 0}};
  streams.push_back(plan::kComputeStream);
  SmallVector<int32_t> issued = {0};
  for (Operation &each : program.getBody().front()) {
    if (isa<plan::MicroBatchEndOp>(each))
      microBatchEnd = commands.size();
    auto op = dyn_cast<plan::CommandOpInterface>(each);
    if (!op)
      continue;
    auto [entry, isNew] =
        numbers.try_emplace(op.getStreamName(), streams.size());
    if (isNew) {
      streams.push_back(op.getStreamName());
      issued.push_back(0);
    }
    int32_t &count = issued[entry->second];
    bool runs = !isa<plan::ReleaseOp>(op);
    commands.push_back({op, entry->second, runs ? count : count - 1});
    count += runs;
  }
}

void PlanOrder::computeClocks() {
  size_t n = streams.size();
  clocks.resize(commands.size() * n);
  // By stream, what is done when its next command begins; by event, when it
  // has happened.
  SmallVector<SmallVector<int32_t>> now(n, SmallVector<int32_t>(n, 0));
  llvm::DenseMap<Value, SmallVector<int32_t>> happened;
  SmallVector<int32_t> issued(n, 0);
  for (auto [position, command] : llvm::enumerate(commands)) {
    if (static_cast<int64_t>(position) == microBatchEnd)
      llvm::fill(now, issued);
    issued[command.stream] = command.index + 1;
    SmallVector<int32_t> &clock = now[command.stream];
    for (Value event : plan::CommandOpInterface(command.op).getWaitEvents())
      for (auto [stream, done] : llvm::enumerate(happened.lookup(event)))
        clock[stream] = std::max(clock[stream], done);
    llvm::copy(clock, clocks.begin() + position * n);
    clock[command.stream] = command.index + 1;
    if (Value event = plan::CommandOpInterface(command.op).getSignalEvent())
      happened[event] = clock;
  }
}

void PlanOrder::computeEnds() {
  size_t n = streams.size(), size = commands.size();
  // By position and stream: the least that any command of another stream from
  // there on knows to be done.
  std::vector<int32_t> least((size + 1) * n,
                             std::numeric_limits<int32_t>::max());
  for (size_t position = size; position-- > 0;)
    for (size_t stream = 0; stream != n; ++stream) {
      int32_t &entry = least[position * n + stream];
      entry = least[(position + 1) * n + stream];
      if (commands[position].stream != static_cast<int32_t>(stream))
        entry = std::min(entry, clocks[position * n + stream]);
    }
  ends.resize(size);
  for (size_t position = 0; position != size; ++position) {
    const PlanCommand &command = commands[position];
    size_t low = position + 1, high = size;
    while (low < high) {
      size_t middle = (low + high) / 2;
      if (least[middle * n + command.stream] > command.index)
        high = middle;
      else
        low = middle + 1;
    }
    ends[position] = low - 1;
  }
}

//===----------------------------------------------------------------------===//
// Lifetimes
//===----------------------------------------------------------------------===//

plan::BufferOp mlir::zero::getUnderlyingBuffer(Value value) {
  while (auto view = value.getDefiningOp<plan::ViewOp>())
    value = view.getSource();
  return value.getDefiningOp<plan::BufferOp>();
}

llvm::DenseSet<Operation *>
mlir::zero::findLastingBuffers(plan::ProgramOp program) {
  llvm::DenseSet<Operation *> lasting;
  // The kind does not say it: that of an accumulator is that of gradients, and
  // a parameter on disk has copies that do not last.
  for (Operation &op : program.getBody().front())
    if (isa<plan::ParameterOp, plan::InputOp, plan::ConstantOp>(op))
      lasting.insert(getUnderlyingBuffer(op.getOperand(0)));
  return lasting;
}

std::vector<PlanLifetime> mlir::zero::computeLifetimes(plan::ProgramOp program,
                                                       const PlanOrder &order) {
  std::vector<PlanLifetime> lifetimes;
  llvm::DenseMap<Operation *, size_t> numbers;
  for (auto buffer : program.getBody().getOps<plan::BufferOp>()) {
    numbers[buffer] = lifetimes.size();
    lifetimes.push_back({buffer});
  }
  auto use = [&](Value value, int64_t first, int64_t last) {
    PlanLifetime &life = lifetimes[numbers.lookup(getUnderlyingBuffer(value))];
    bool fresh = life.last < life.first;
    life.first = fresh ? first : std::min(life.first, first);
    life.last = fresh ? last : std::max(life.last, last);
  };
  for (auto [position, command] : llvm::enumerate(order.getCommands())) {
    plan::CommandOpInterface op = command.op;
    for (Value value : op.getReadBuffers())
      use(value, position, order.getEnd(position));
    for (Value value : op.getWrittenBuffers())
      use(value, position, order.getEnd(position));
  }
  int64_t past = order.getCommands().size();
  for (auto output : program.getBody().getOps<plan::OutputOp>())
    use(output.getBuffer(), past, past);
  llvm::DenseSet<Operation *> lasting = findLastingBuffers(program);
  for (PlanLifetime &life : lifetimes)
    if (lasting.contains(life.buffer)) {
      life.first = 0;
      life.last = past;
    }
  return lifetimes;
}

//===----------------------------------------------------------------------===//
// Fingerprint
//===----------------------------------------------------------------------===//

static int64_t hashOf(ArrayRef<int64_t> values) {
  ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t *>(values.data()),
                          values.size() * sizeof(int64_t));
  // A positive number reads better.
  return llvm::xxh3_64bits(bytes) >> 1;
}

int64_t mlir::zero::fingerprintOrder(plan::ProgramOp program,
                                     const PlanOrder &order) {
  llvm::DenseMap<Operation *, int64_t> numbers;
  for (auto buffer : program.getBody().getOps<plan::BufferOp>())
    numbers.try_emplace(buffer, numbers.size());
  // Streams are independent of each other, but for their clocks: a list each.
  std::vector<SmallVector<int64_t>> lists(order.getStreams().size());
  for (auto [position, command] : llvm::enumerate(order.getCommands())) {
    Operation *op = plan::CommandOpInterface(command.op);
    if (position && static_cast<int64_t>(position) == order.getMicroBatchEnd())
      for (SmallVector<int64_t> &list : lists)
        list.push_back(program.getMicroBatches());
    if (isa<plan::ReleaseOp>(op))
      continue;
    SmallVector<int64_t> &list = lists[command.stream];
    list.push_back(llvm::xxh3_64bits(op->getName().getStringRef()));
    llvm::append_range(list, order.getClock(position));
    auto collective = dyn_cast<plan::CollectiveOpInterface>(op);
    if (!collective)
      continue;
    llvm::append_range(list, collective.getSpannedAxes());
    llvm::append_range(list, collective.getWholeElements());
    llvm::append_range(list, collective.getChunkElements());
    for (Value value : collective.getSourceBuffers())
      list.push_back(numbers.lookup(getUnderlyingBuffer(value)));
    for (Value value : collective.getTargetBuffers())
      list.push_back(numbers.lookup(getUnderlyingBuffer(value)));
  }
  SmallVector<int64_t> all;
  for (auto [name, list] : llvm::zip_equal(order.getStreams(), lists)) {
    all.push_back(llvm::xxh3_64bits(name));
    all.push_back(hashOf(list));
  }
  return hashOf(all);
}
