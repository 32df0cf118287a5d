//===- NcclCollective.cpp - What a collective does with its data ----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums are taken in the order of the ranks, of bf16 and f16 in f32 and rounded
// once: NCCL's order is its own, so results may differ from its in rounding.
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/NcclCollective.h"
#include "runtime/core/NarrowFloat.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

using namespace fake_cuda;

namespace {
struct TypeInfo {
  const char *name;
  uint64_t bytes;
};
} // namespace

static const TypeInfo types[ncclNumTypes] = {
    {"int8", 1},    {"uint8", 1},    {"int32", 4},      {"uint32", 4},
    {"int64", 8},   {"uint64", 8},   {"float16", 2},    {"float32", 4},
    {"float64", 8}, {"bfloat16", 2}, {"float8e4m3", 1}, {"float8e5m2", 1}};

uint64_t fake_cuda::typeBytes(int32_t type) { return types[type].bytes; }

static const char *opName(int32_t op) {
  switch (static_cast<Collective>(op)) {
  case Collective::AllGather:
    return "ncclAllGather";
  case Collective::AllReduce:
    return "ncclAllReduce";
  case Collective::Broadcast:
    return "ncclBroadcast";
  case Collective::Reduce:
    return "ncclReduce";
  case Collective::ReduceScatter:
    return "ncclReduceScatter";
  }
  return "an unknown operation";
}

std::string fake_cuda::callText(const Call &call) {
  static const char *const reductions[] = {"sum", "prod", "max", "min", "avg"};
  std::string text = std::string(opName(call.op)) + " of " +
                     std::to_string(call.count) + " " + types[call.type].name;
  if (call.reduction >= 0)
    text += std::string(", ") + reductions[call.reduction];
  if (call.root >= 0)
    text += ", root " + std::to_string(call.root);
  return text;
}

uint64_t fake_cuda::sendBytes(const Call &call, int rank, int size) {
  uint64_t bytes = call.count * typeBytes(call.type);
  if (call.op == int32_t(Collective::ReduceScatter))
    return bytes * size;
  if (call.op == int32_t(Collective::Broadcast))
    return rank == call.root ? bytes : 0;
  return bytes;
}

uint64_t fake_cuda::receiveBytes(const Call &call, int rank, int size) {
  uint64_t bytes = call.count * typeBytes(call.type);
  if (call.op == int32_t(Collective::AllGather))
    return bytes * size;
  if (call.op == int32_t(Collective::Reduce))
    return rank == call.root ? bytes : 0;
  return bytes;
}

/// An element as it is added up, and back.
template <typename T>
static T widen(T value) {
  return value;
}
static float widen(zrt::BFloat16 value) { return value.widen(); }
static float widen(zrt::Half value) { return value.widen(); }

template <typename T, typename Value>
static T narrow(Value value) {
  if constexpr (std::is_arithmetic_v<T>)
    return value;
  else
    return T::round(value);
}

template <typename Value>
static Value combine(int32_t reduction, Value left, Value right) {
  switch (reduction) {
  case ncclProd:
    return left * right;
  case ncclMax:
    return std::max(left, right);
  case ncclMin:
    return std::min(left, right);
  default:
    return left + right;
  }
}

/// Elements [first, first + count) of what all sent.
template <typename Stored>
static void reduce(const Call &call, uint64_t first,
                   const std::vector<const char *> &sent, char *result) {
  auto element = [&](size_t rank, uint64_t index) {
    Stored stored;
    std::memcpy(&stored, sent[rank] + (first + index) * sizeof stored,
                sizeof stored);
    return widen(stored);
  };
  for (uint64_t i = 0; i < call.count; ++i) {
    auto value = element(0, i);
    for (size_t rank = 1; rank < sent.size(); ++rank)
      value = combine(call.reduction, value, element(rank, i));
    if (call.reduction == ncclAvg)
      value = value / static_cast<decltype(value)>(sent.size());
    Stored stored = narrow<Stored>(value);
    std::memcpy(result + i * sizeof stored, &stored, sizeof stored);
  }
}

static void reduceTyped(const Call &call, uint64_t first,
                        const std::vector<const char *> &sent, char *result) {
  switch (call.type) {
  case ncclInt8:
    return reduce<int8_t>(call, first, sent, result);
  case ncclUint8:
    return reduce<uint8_t>(call, first, sent, result);
  case ncclInt32:
    return reduce<int32_t>(call, first, sent, result);
  case ncclUint32:
    return reduce<uint32_t>(call, first, sent, result);
  case ncclInt64:
    return reduce<int64_t>(call, first, sent, result);
  case ncclUint64:
    return reduce<uint64_t>(call, first, sent, result);
  case ncclFloat16:
    return reduce<zrt::Half>(call, first, sent, result);
  case ncclFloat32:
    return reduce<float>(call, first, sent, result);
  case ncclFloat64:
    return reduce<double>(call, first, sent, result);
  default:
    return reduce<zrt::BFloat16>(call, first, sent, result);
  }
}

void fake_cuda::computeResult(const Call &call, int rank,
                              const std::vector<const char *> &sent,
                              char *result) {
  uint64_t bytes = call.count * typeBytes(call.type);
  switch (static_cast<Collective>(call.op)) {
  case Collective::AllGather:
    for (size_t from = 0; from < sent.size(); ++from)
      std::memcpy(result + from * bytes, sent[from], bytes);
    return;
  case Collective::Broadcast:
    std::memcpy(result, sent[call.root], bytes);
    return;
  case Collective::Reduce:
    if (rank == call.root)
      reduceTyped(call, 0, sent, result);
    return;
  case Collective::AllReduce:
    return reduceTyped(call, 0, sent, result);
  case Collective::ReduceScatter:
    return reduceTyped(call, rank * call.count, sent, result);
  }
}
