//===- Collectives.cpp - Collective commands ------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensors of a bucket go out as one group of calls. Then the padding of
// each target becomes zeros. In a group of one rank nothing is sent.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/cuda/Communicators.h"
#include "runtime/cuda/Copies.h"
#include "runtime/cuda/Status.h"

#include <algorithm>

using namespace zrt;
using namespace zrt::cuda;

static ncclDataType_t typeOf(fb::DType type) {
  switch (type) {
  case fb::DType_F32:
    return ncclFloat32;
  case fb::DType_F64:
    return ncclFloat64;
  case fb::DType_F16:
    return ncclFloat16;
  case fb::DType_BF16:
    return ncclBfloat16;
  case fb::DType_I64:
    return ncclInt64;
  case fb::DType_I32:
    return ncclInt32;
  default: // gathered, never reduced
    return elementBytes(type) == 2 ? ncclBfloat16 : ncclUint8;
  }
}

namespace zrt::cuda {
/// A collective of several ranks.
class CollectiveWork : public Work {
public:
  struct Tensor {
    const void *from;
    char *to;
    uint64_t elements, chunk, elementBytes;
    ncclDataType_t type;
  };
  CollectiveWork(const Communicators &all, const Command &command,
                 ncclComm_t communicator, uint64_t position, uint64_t size,
                 std::vector<Tensor> tensors)
      : all(all), op(command.op),
        reduction(command.average ? ncclAvg : ncclSum),
        communicator(communicator), position(position), size(size),
        tensors(std::move(tensors)) {}
  void enqueue(CUstream stream) override;

private:
  void send(const Tensor &tensor, CUstream stream);
  void reduceParts(const Tensor &tensor, CUstream stream);
  void clearPadding(const Tensor &tensor, CUstream stream);
  uint64_t heldBy(const Tensor &tensor, uint64_t rank) const {
    uint64_t begin = std::min(tensor.elements, rank * tensor.chunk);
    return std::min(tensor.chunk, tensor.elements - begin);
  }

  const Communicators &all;
  const fb::Op op;
  const ncclRedOp_t reduction;
  const ncclComm_t communicator;
  const uint64_t position, size; // in the group
  std::vector<Tensor> tensors;
};
} // namespace zrt::cuda

/// Shards of different lengths: one reduction for each.
void CollectiveWork::reduceParts(const Tensor &tensor, CUstream stream) {
  for (uint64_t root = 0; root < size; ++root) {
    uint64_t held = heldBy(tensor, root);
    uint64_t offset = root * tensor.chunk * tensor.elementBytes;
    if (held)
      checkNccl(ncclReduce(static_cast<const char *>(tensor.from) + offset,
                           root == position ? tensor.to : nullptr, held,
                           tensor.type, reduction, int(root), communicator,
                           stream),
                "ncclReduce", communicator);
  }
}

void CollectiveWork::send(const Tensor &tensor, CUstream stream) {
  if (op == fb::Op_AllGather)
    return checkNccl(ncclAllGather(tensor.from, tensor.to, tensor.chunk,
                                   tensor.type, communicator, stream),
                     "ncclAllGather", communicator);
  if (op == fb::Op_AllReduce)
    return checkNccl(ncclAllReduce(tensor.from, tensor.to, tensor.elements,
                                   tensor.type, reduction, communicator,
                                   stream),
                     "ncclAllReduce", communicator);
  if (tensor.elements != size * tensor.chunk)
    return reduceParts(tensor, stream);
  checkNccl(ncclReduceScatter(tensor.from, tensor.to, tensor.chunk, tensor.type,
                              reduction, communicator, stream),
            "ncclReduceScatter", communicator);
}

void CollectiveWork::clearPadding(const Tensor &tensor, CUstream stream) {
  uint64_t begin = tensor.elements, end = begin;
  if (op == fb::Op_AllGather) {
    end = size * tensor.chunk;
  } else if (op == fb::Op_ReduceScatter) {
    begin = heldBy(tensor, position);
    end = tensor.chunk;
  }
  if (begin < end)
    checkCuda(cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(
                                  tensor.to + begin * tensor.elementBytes),
                              0, (end - begin) * tensor.elementBytes, stream),
              "cuMemsetD8Async");
}

void CollectiveWork::enqueue(CUstream stream) {
  checkNccl(ncclGroupStart(), "ncclGroupStart");
  try {
    for (const Tensor &tensor : tensors)
      if (tensor.chunk)
        send(tensor, stream);
  } catch (...) {
    ncclGroupEnd(); // the first error is the one to tell
    throw;
  }
  checkNccl(ncclGroupEnd(), "ncclGroupEnd", communicator);
  all.settle(communicator, opName(op));
  for (const Tensor &tensor : tensors)
    clearPadding(tensor, stream);
}

namespace {
/// A collective of one rank: copies, where it is not in place.
class LocalCollective : public Work {
public:
  explicit LocalCollective(std::vector<std::unique_ptr<Work>> steps)
      : steps(std::move(steps)) {}
  void enqueue(CUstream stream) override {
    for (const std::unique_ptr<Work> &step : steps)
      step->enqueue(stream);
  }

private:
  std::vector<std::unique_ptr<Work>> steps;
};
} // namespace

static std::unique_ptr<Work> makeLocal(const Program &program,
                                       const Command &command,
                                       const RankMemory &memory) {
  std::vector<std::unique_ptr<Work>> steps;
  for (const Piece &piece : command.pieces) {
    uint64_t element = elementBytes(program.buffers[piece.source].dtype);
    CUdeviceptr from = memory.address(piece.source);
    CUdeviceptr to = memory.address(piece.target);
    uint64_t held = piece.elements * element;
    if (from != to)
      steps.push_back(
          std::make_unique<CopyBytes>(Way::WithinDevice, from, to, held));
    if (piece.chunk > piece.elements)
      steps.push_back(std::make_unique<SetBytes>(
          to + held, (piece.chunk - piece.elements) * element, 0));
  }
  return std::make_unique<LocalCollective>(std::move(steps));
}

std::unique_ptr<Work> Communicators::make(const Command &command,
                                          const RankMemory &memory) {
  uint64_t size = program.grid.groupSize(command.axes), position = 0;
  if (size == 1)
    return makeLocal(program, command, memory);
  for (const std::vector<uint32_t> &group : program.grid.groups(command.axes)) {
    auto place = std::find(group.begin(), group.end(), rank);
    if (place != group.end())
      position = uint64_t(place - group.begin());
  }
  std::vector<CollectiveWork::Tensor> tensors;
  for (const Piece &piece : command.pieces) {
    fb::DType type = program.buffers[piece.source].dtype;
    uint64_t bytes = elementBytes(type), chunk = piece.chunk;
    uint64_t elements = piece.elements;
    ncclDataType_t as = typeOf(type);
    tensors.push_back(
        {reinterpret_cast<const void *>(memory.address(piece.source)),
         reinterpret_cast<char *>(memory.address(piece.target)), elements,
         chunk, bytes, as});
  }
  return std::make_unique<CollectiveWork>(*this, command,
                                          byUse[{command.stream, command.axes}],
                                          position, size, std::move(tensors));
}
