//===- NcclCalls.cpp - Collective calls, and groups of them ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/Environment.h"
#include "test/fake-cuda/NcclCollective.h"
#include "test/fake-cuda/NcclComm.h"

#include <cstring>

using namespace fake_cuda;

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

namespace {
/// Operations of one rank on one communicator, one after the other.
class Exchange {
public:
  Exchange(MemberPtr member, std::vector<Operation> operations)
      : member(std::move(member)), operations(std::move(operations)) {}

  /// For the engine: true when all is done.
  bool poll(std::string &error);

private:
  bool publish(std::string &error);
  bool collect(std::string &error);
  std::string mismatch() const;

  MemberPtr member;
  std::vector<Operation> operations;
  size_t index = 0;
  uint64_t number = 0; ///< of the operation in the communicator; 0: not begun
};
} // namespace

static bool allReached(const std::atomic<uint64_t> *counters, int size,
                       uint64_t number) {
  for (int rank = 0; rank < size; ++rank)
    if (counters[rank].load(std::memory_order_acquire) < number)
      return false;
  return true;
}

/// Shows the rank's data once all have read those of the operation before.
bool Exchange::publish(std::string &error) {
  Board &board = member->board();
  if (number)
    return true;
  if (!allReached(board.finished, member->size, member->operations))
    return false;
  const Operation &operation = operations[index];
  uint64_t bytes = sendBytes(operation.call, member->rank, member->size);
  char *slot = member->room->slot(member->communicator, member->rank);
  if (!slot || bytes > kSlotBytes) {
    error = "no room for " + std::to_string(bytes) + " bytes";
    return false;
  }
  if (bytes)
    std::memcpy(slot, hostAddress(operation.send), bytes);
  board.calls[member->rank] = operation.call;
  number = ++member->operations;
  board.published[member->rank].store(number, std::memory_order_release);
  return true;
}

/// How the ranks' calls differ; "".
std::string Exchange::mismatch() const {
  const Call *calls = member->board().calls;
  for (int rank = 1; rank < member->size; ++rank)
    if (std::memcmp(&calls[0], &calls[rank], sizeof(Call)) != 0)
      return "operation " + std::to_string(number) + " of communicator " +
             std::to_string(member->number) + " differs: rank 0 calls " +
             callText(calls[0]) + ", rank " + std::to_string(rank) + " " +
             callText(calls[rank]);
  return "";
}

bool Exchange::collect(std::string &error) {
  Board &board = member->board();
  if (!allReached(board.published, member->size, number))
    return false;
  error = mismatch();
  if (!error.empty())
    return false;
  const Operation &operation = operations[index];
  std::vector<const char *> sent;
  for (int rank = 0; rank < member->size; ++rank)
    sent.push_back(member->room->slot(member->communicator, rank));
  if (receiveBytes(operation.call, member->rank, member->size))
    computeResult(operation.call, member->rank, sent,
                  hostAddress(operation.receive));
  board.finished[member->rank].store(number, std::memory_order_release);
  number = 0;
  ++index;
  return true;
}

bool Exchange::poll(std::string &error) {
  while (index < operations.size() && !member->aborted)
    if (!publish(error) || !collect(error))
      return false;
  return true;
}

static void addAccess(std::vector<Access> &accesses, Address address,
                      uint64_t bytes, bool write) {
  if (bytes)
    accesses.push_back({address, bytes, write});
}

static Work makeWork(const MemberPtr &member,
                     const std::vector<Operation> &operations, bool hangs) {
  Work work;
  work.name = operations.size() == 1
                  ? callText(operations[0].call)
                  : "a group of " + std::to_string(operations.size()) +
                        " calls, first " + callText(operations[0].call);
  for (const Operation &operation : operations) {
    addAccess(work.accesses, operation.send,
              sendBytes(operation.call, member->rank, member->size), false);
    addAccess(work.accesses, operation.receive,
              receiveBytes(operation.call, member->rank, member->size), true);
  }
  // Each launch of a graph exchanges anew.
  auto current = std::make_shared<std::unique_ptr<Exchange>>();
  work.run = [current, member, operations] {
    *current = std::make_unique<Exchange>(member, operations);
    return std::string();
  };
  work.poll = [current, member, hangs](std::string &error) {
    return hangs ? member->aborted.load() : (*current)->poll(error);
  };
  return work;
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

namespace {
struct Batch {
  MemberPtr member;
  CUstream stream;
  std::vector<Operation> operations;
  bool hangs;
};
struct Group {
  int depth = 0;
  std::vector<Batch> batches;
  ncclResult_t failed = ncclSuccess;
};
} // namespace

static thread_local Group group;

static ncclResult_t submit(const Batch &batch) {
  ++batch.member->calls;
  CUresult result = enqueue(
      batch.stream, makeWork(batch.member, batch.operations, batch.hangs));
  return result == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
}

static void addToGroup(const Batch &batch) {
  for (Batch &other : group.batches)
    if (other.member == batch.member && other.stream == batch.stream) {
      other.operations.push_back(batch.operations[0]);
      other.hangs |= batch.hangs;
      return;
    }
  group.batches.push_back(batch);
}

FAKE_EXPORT ncclResult_t ncclGroupStart() {
  log("ncclGroupStart()");
  ++group.depth;
  return ncclSuccess;
}

FAKE_EXPORT ncclResult_t ncclGroupEnd() {
  log("ncclGroupEnd()");
  if (group.depth == 0)
    return refuseNccl(ncclInvalidUsage, "ncclGroupEnd",
                      "there was no ncclGroupStart");
  if (--group.depth > 0)
    return ncclSuccess;
  Group ended;
  std::swap(ended, group);
  if (ended.failed != ncclSuccess)
    return ended.failed;
  for (const Batch &batch : ended.batches)
    if (ncclResult_t result = submit(batch))
      return result;
  return ncclSuccess;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Whether the two buffers overlap without being in place.
static bool overlaps(const Operation &operation, const Member &member) {
  uint64_t sends = sendBytes(operation.call, member.rank, member.size);
  uint64_t receives = receiveBytes(operation.call, member.rank, member.size);
  if (!sends || !receives || operation.send >= operation.receive + receives ||
      operation.receive >= operation.send + sends)
    return false;
  uint64_t part =
      operation.call.count * typeBytes(operation.call.type) * member.rank;
  if (operation.call.op == int32_t(Collective::AllGather))
    return operation.send != operation.receive + part;
  if (operation.call.op == int32_t(Collective::ReduceScatter))
    return operation.receive != operation.send + part;
  return operation.send != operation.receive;
}

/// What is wrong with a call by itself; "".
static std::string wrongCall(const Operation &operation, const Member &member,
                             CUstream stream) {
  const Call &call = operation.call;
  if (call.type < 0 || call.type >= ncclFloat8e4m3)
    return "unknown data type";
  if (call.reduction >= ncclNumOps)
    return "unknown reduction";
  if (call.root >= member.size)
    return "there is no rank " + std::to_string(call.root);
  if (deviceOf(stream) != member.device)
    return "the stream is not of the communicator's device";
  if ((operation.send | operation.receive) % typeBytes(call.type))
    return "an address is no multiple of the element's size";
  if (overlaps(operation, member))
    return "the buffers overlap, but not in place";
  return "";
}

static void logCall(const Operation &operation, const Member &member,
                    CUstream stream) {
  log("%s, comm %u, %s, %s -> %s", callText(operation.call).c_str(),
      member.number, streamName(stream).c_str(),
      addressName(operation.send).c_str(),
      addressName(operation.receive).c_str());
}

static ncclResult_t inGroup(ncclResult_t result) {
  if (group.depth > 0 && result != ncclSuccess)
    group.failed = result;
  return result;
}

static ncclResult_t call(const char *function, const Operation &operation,
                         ncclComm_t handle, cudaStream_t stream) {
  ncclResult_t result = ncclSuccess;
  MemberPtr member = readyMember(handle, function, result);
  if (!member)
    return inGroup(result);
  logCall(operation, *member, stream);
  std::string kind;
  result = injectedNccl(function, kind);
  if (result == ncclSuccess && kind == "async")
    member->asyncError = ncclRemoteError;
  if (result != ncclSuccess)
    return inGroup(result);
  std::string wrong = wrongCall(operation, *member, stream);
  if (!wrong.empty())
    return inGroup(refuseNccl(ncclInvalidArgument, function, wrong));
  if (!stickyError().empty())
    return inGroup(ncclUnhandledCudaError);
  if (operation.call.count == 0)
    return ncclSuccess;
  Batch batch = {
      member, stream, {operation}, kind == "hang" || kind == "async"};
  if (group.depth == 0)
    return submit(batch);
  addToGroup(batch);
  return ncclSuccess;
}

static Operation operation(Collective op, const void *send, void *receive,
                           size_t count, ncclDataType_t type, int reduction,
                           int root) {
  return {{int32_t(op), type, reduction, root, count},
          reinterpret_cast<Address>(send),
          reinterpret_cast<Address>(receive)};
}

FAKE_EXPORT ncclResult_t ncclAllGather(const void *send, void *receive,
                                       size_t count, ncclDataType_t type,
                                       ncclComm_t comm, cudaStream_t stream) {
  return call(
      "ncclAllGather",
      operation(Collective::AllGather, send, receive, count, type, -1, -1),
      comm, stream);
}

FAKE_EXPORT ncclResult_t ncclAllReduce(const void *send, void *receive,
                                       size_t count, ncclDataType_t type,
                                       ncclRedOp_t reduction, ncclComm_t comm,
                                       cudaStream_t stream) {
  return call("ncclAllReduce",
              operation(Collective::AllReduce, send, receive, count, type,
                        reduction, -1),
              comm, stream);
}

FAKE_EXPORT ncclResult_t ncclReduceScatter(const void *send, void *receive,
                                           size_t count, ncclDataType_t type,
                                           ncclRedOp_t reduction,
                                           ncclComm_t comm,
                                           cudaStream_t stream) {
  return call("ncclReduceScatter",
              operation(Collective::ReduceScatter, send, receive, count, type,
                        reduction, -1),
              comm, stream);
}

FAKE_EXPORT ncclResult_t ncclReduce(const void *send, void *receive,
                                    size_t count, ncclDataType_t type,
                                    ncclRedOp_t reduction, int root,
                                    ncclComm_t comm, cudaStream_t stream) {
  return call("ncclReduce",
              operation(Collective::Reduce, send, receive, count, type,
                        reduction, root),
              comm, stream);
}

FAKE_EXPORT ncclResult_t ncclBroadcast(const void *send, void *receive,
                                       size_t count, ncclDataType_t type,
                                       int root, ncclComm_t comm,
                                       cudaStream_t stream) {
  return call(
      "ncclBroadcast",
      operation(Collective::Broadcast, send, receive, count, type, -1, root),
      comm, stream);
}

FAKE_EXPORT ncclResult_t ncclBcast(void *data, size_t count,
                                   ncclDataType_t type, int root,
                                   ncclComm_t comm, cudaStream_t stream) {
  return ncclBroadcast(data, data, count, type, root, comm, stream);
}
