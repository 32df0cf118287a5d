//===- StepGraphBuilder.h - From a step function to a graph -----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What makes the graph of a step; StepExtraction.cpp has the walk, compute and
// collectives, StepTransfers.cpp what goes through host memory and disk.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_SCHEDULE_STEPGRAPHBUILDER_H
#define ZERO_LIB_SCHEDULE_STEPGRAPHBUILDER_H

#include "StepUses.h"

#include "dialects/Zero/Zero.h"
#include "zero/Schedule/StepFunction.h"

#include "llvm/ADT/StringMap.h"

namespace mlir::zero {

/// Of what lies on disk, and of what is read from and written to it directly.
constexpr int64_t kDiskAlignment = 4096;

/// Bytes of one rank's part of a tensor or shard.
int64_t getHeldBytes(Operation *from, Type type, SymbolTable &symbols);

MemorySpace toSpace(Memory memory);

/// Walks a step function once.
class StepGraphBuilder {
public:
  StepGraphBuilder(FunctionOpInterface func, SymbolTable &symbols,
                   const CostModel &cost)
      : symbols(symbols), cost(cost), body(func.getFunctionBody().front()),
        uses(body) {
    step.func = func;
  }

  FailureOr<StepFunction> build();

private:
  // Buffers.
  int32_t addBuffer(int64_t bytes, MemoryKind kind, bool resident,
                    const Twine &name, MemorySpace space = MemorySpace::Device);
  void bind(Value value, int32_t buffer);
  int32_t bufferOf(Value value) const;
  bool mayOverwrite(int32_t buffer, Operation *op) const;
  void declareSymbols();
  void declareArguments();
  int32_t bufferOfSymbol(StringRef name) { return symbolBuffers.lookup(name); }
  int32_t assignedBuffer(Value value, Operation *op);

  // Tasks.
  int32_t addTask(TaskKind kind, int32_t channel, ArrayRef<Operation *> ops);
  int32_t channelOf(const Twine &name);
  void read(int32_t task, int32_t buffer);
  void write(int32_t task, int32_t buffer);
  void addCompute(Operation *root);
  int32_t resultBuffer(Operation *op, unsigned index);
  void addConstant(Operation *op);
  void addAssign(AssignOp assign);
  void addTransfer(TransferOp transfer);
  int32_t transferredBuffer(TransferOp transfer, unsigned index);
  void addOnHost(OnHostOp op);
  int32_t hostedSum(OnHostOp op, unsigned index);
  int32_t hostedBuffer(OnHostOp op, unsigned index);
  void addReshard(ReshardOp op);
  LogicalResult addCollective(Operation *op);
  int32_t gatheredBuffer(Operation *op, unsigned index, int64_t ranks);
  int32_t reducedBuffer(Operation *op, unsigned index);
  void nameTask(int32_t task, Operation *op, StringRef kind, StringRef axes);
  void findRepeated(int32_t task, Operation *op);
  std::pair<int32_t, int32_t> firstGather(int32_t task, unsigned index,
                                          Value input);
  void matchRepeated(int32_t task, int32_t earlier, ArrayRef<int32_t> order);
  void addReturn(Operation *op);
  LogicalResult add(Operation *op);

  int64_t stage() const;

  SymbolTable &symbols;
  const CostModel &cost;
  Block &body;
  StepUses uses;
  StepFunction step;
  llvm::DenseMap<Value, int32_t> buffers;
  llvm::StringMap<int32_t> symbolBuffers;
  /// By buffer: the last op that reads a value in it, as far as bound.
  std::vector<int64_t> lastReads;
  /// By buffer: the last task that reads it.
  std::vector<int32_t> lastReader;
  /// By buffer: the symbol it belongs to, or empty.
  std::vector<StringRef> symbolOf;
  /// By buffer: how often the step has written it.
  std::vector<int32_t> versions;
  llvm::StringMap<int32_t> units, bucketClasses;
  /// The first gather of a shard: its buffer and version, then task and place.
  llvm::DenseMap<std::pair<int32_t, int32_t>, std::pair<int32_t, int32_t>>
      gathered;
  /// By gathered value: the task that gathers it, and its place there.
  llvm::DenseMap<Value, std::pair<int32_t, int32_t>> gatheredAt;
  llvm::DenseMap<Operation *, int32_t> reshards; ///< their tasks
  /// What fixes the order of ops with effects that are not ours.
  int32_t effects = -1;
};

} // namespace mlir::zero

#endif // ZERO_LIB_SCHEDULE_STEPGRAPHBUILDER_H
