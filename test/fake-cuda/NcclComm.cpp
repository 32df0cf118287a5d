//===- NcclComm.cpp - Communicators ---------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/NcclComm.h"
#include "test/fake-cuda/Environment.h"
#include "test/fake-cuda/Queue.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

using namespace fake_cuda;

namespace {
enum class Stage { Splitting, Joining, Ready, Finalizing, Finalized };
} // namespace

struct ncclComm {
  MemberPtr member;
  bool blocking = true;
  Stage stage = Stage::Joining;
  std::string failure;
  // Of a split.
  MemberPtr parent;
  int split = 0;
  // As a parent.
  int splits = 0;
  std::set<ncclComm_t> children; ///< that are not there yet
  std::map<void *, std::pair<Address, uint64_t>> registered;
};

namespace {
struct Communicators {
  std::recursive_mutex mutex;
  std::set<ncclComm_t> live;
  std::map<int, unsigned> numbers; ///< by device
};
} // namespace

static Communicators &communicators() {
  static Communicators *all = new Communicators;
  return *all;
}

using Lock = std::lock_guard<std::recursive_mutex>;

static std::string leakedCommunicators() {
  Lock lock(communicators().mutex);
  size_t count = communicators().live.size();
  return count
             ? std::to_string(count) + " communicator" + (count == 1 ? "" : "s")
             : "";
}

std::string fake_cuda::memberText(const Member &member) {
  return "rank " + std::to_string(member.rank) + " of communicator " +
         std::to_string(member.number);
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

static thread_local std::string lastError;

ncclResult_t fake_cuda::refuseNccl(ncclResult_t code, const char *function,
                                   const std::string &why) {
  lastError = std::string(function) + ": " + why;
  fprintf(stderr, "fake-cuda: error: %s\n", lastError.c_str());
  return code;
}

ncclResult_t fake_cuda::injectedNccl(const char *function, std::string &kind) {
  kind = injectedFault(function);
  if (kind != "error")
    return ncclSuccess;
  lastError = std::string(function) + ": an error was injected";
  return ncclSystemError;
}

FAKE_EXPORT const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSuccess:
    return "no error";
  case ncclUnhandledCudaError:
    return "unhandled cuda error";
  case ncclSystemError:
    return "unhandled system error";
  case ncclInternalError:
    return "internal error";
  case ncclInvalidArgument:
    return "invalid argument";
  case ncclInvalidUsage:
    return "invalid usage";
  case ncclRemoteError:
    return "remote process exited or there was a network error";
  case ncclInProgress:
    return "NCCL operation in progress";
  default:
    return "unknown result code";
  }
}

FAKE_EXPORT const char *ncclGetLastError(ncclComm_t) {
  return lastError.c_str();
}

FAKE_EXPORT ncclResult_t ncclGetVersion(int *version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

static bool isLive(ncclComm_t handle) {
  Lock lock(communicators().mutex);
  return communicators().live.count(handle);
}

static ncclResult_t noSuch(const char *function) {
  return refuseNccl(ncclInvalidArgument, function, "no such communicator");
}

//===----------------------------------------------------------------------===//
// What a communicator waits for
//===----------------------------------------------------------------------===//

template <typename Value>
static bool allHave(const std::atomic<Value> *values, int size) {
  return std::all_of(
      values, values + size,
      [](const std::atomic<Value> &value) { return value != 0; });
}

static void join(Member &member) {
  member.board().joined[member.rank] = 1 + member.size;
}

/// Whether all are there; ranks that expect other numbers of ranks never meet.
static bool allJoined(ncclComm &handle) {
  Member &member = *handle.member;
  Board &board = member.board();
  for (int rank = 0; rank < kMaxRanks; ++rank) {
    uint64_t expects = board.joined[rank];
    if (expects && expects != 1 + uint64_t(member.size))
      handle.failure = "rank " + std::to_string(rank) + " expects " +
                       std::to_string(expects - 1) + " ranks, rank " +
                       std::to_string(member.rank) + " " +
                       std::to_string(member.size);
  }
  return allHave(board.joined, member.size);
}

namespace {
struct Place {
  int color, key, rank;
};
} // namespace

/// Places of those with the color, in the order of the new ranks.
static std::vector<Place> placesOf(const SplitEntry *entries, int size,
                                   int color) {
  std::vector<Place> places;
  for (int rank = 0; rank < size; ++rank)
    if (entries[rank].color == color)
      places.push_back({color, entries[rank].key, rank});
  std::stable_sort(
      places.begin(), places.end(),
      [](const Place &a, const Place &b) { return a.key < b.key; });
  return places;
}

/// A split goes on: the first of each color gets a communicator for all of it.
static bool splitDone(ncclComm &handle) {
  Member &parent = *handle.parent, &member = *handle.member;
  SplitEntry *entries = parent.board().splits[handle.split];
  for (int rank = 0; rank < parent.size; ++rank)
    if (!entries[rank].said)
      return false;
  int color = entries[parent.rank].color;
  std::vector<Place> places = placesOf(entries, parent.size, color);
  SplitEntry &first = entries[places[0].rank];
  if (places[0].rank == parent.rank && !first.room)
    first.room = 1 + member.room->newCommunicator();
  if (!first.room)
    return false;
  if (first.room > kMaxCommunicators) {
    handle.failure = "more communicators than this fake has room for";
    return false;
  }
  member.communicator = first.room - 1;
  member.size = static_cast<int>(places.size());
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i].rank == parent.rank)
      member.rank = static_cast<int>(i);
  join(member);
  return true;
}

/// Brings a communicator forward; returns whether it is where it shall be.
static bool advance(ncclComm &handle) {
  Lock lock(communicators().mutex);
  if (handle.stage == Stage::Splitting && splitDone(handle))
    handle.stage = Stage::Joining;
  if (handle.stage == Stage::Joining && allJoined(handle))
    handle.stage = Stage::Ready;
  if (handle.stage == Stage::Finalizing &&
      allHave(handle.member->board().finalized, handle.member->size))
    handle.stage = Stage::Finalized;
  for (auto child = handle.children.begin(); child != handle.children.end();) {
    bool done = !communicators().live.count(*child) || advance(**child);
    child = done ? handle.children.erase(child) : std::next(child);
  }
  return handle.children.empty() &&
         (handle.stage == Stage::Ready || handle.stage == Stage::Finalized);
}

static ncclResult_t waitFor(ncclComm &handle, const char *function) {
  if (!handle.blocking)
    return advance(handle) ? ncclSuccess : ncclInProgress;
  while (!advance(handle) && handle.failure.empty())
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  return handle.failure.empty()
             ? ncclSuccess
             : refuseNccl(ncclInvalidArgument, function, handle.failure);
}

FAKE_EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t handle,
                                               ncclResult_t *state) {
  if (!isLive(handle))
    return noSuch("ncclCommGetAsyncError");
  bool done = advance(*handle);
  int injected = handle->member->asyncError;
  if (!handle->failure.empty())
    injected = refuseNccl(ncclInvalidArgument, "ncclCommInitRankConfig",
                          handle->failure);
  *state = injected != ncclSuccess ? static_cast<ncclResult_t>(injected)
           : done                  ? ncclSuccess
                                   : ncclInProgress;
  return ncclSuccess;
}

MemberPtr fake_cuda::readyMember(ncclComm_t handle, const char *function,
                                 ncclResult_t &result) {
  if (!isLive(handle)) {
    result = noSuch(function);
    return nullptr;
  }
  if (!advance(*handle) || handle->stage != Stage::Ready) {
    result = refuseNccl(ncclInvalidUsage, function,
                        "the communicator is not ready, or was finalized");
    return nullptr;
  }
  return handle->member;
}

//===----------------------------------------------------------------------===//
// Beginning
//===----------------------------------------------------------------------===//

FAKE_EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  std::string kind, error;
  if (ncclResult_t result = injectedNccl("ncclGetUniqueId", kind))
    return result;
  log("ncclGetUniqueId()");
  return Room::create(*id, error)
             ? ncclSuccess
             : refuseNccl(ncclSystemError, "ncclGetUniqueId", error);
}

static bool isBlocking(const ncclConfig_t *config, bool otherwise) {
  return config && config->blocking != NCCL_CONFIG_UNDEF_INT
             ? config->blocking != 0
             : otherwise;
}

/// Why a configuration is none; "".
static std::string wrongConfig(const ncclConfig_t *config) {
  return !config || config->magic == 0xcafebeef
             ? ""
             : "the configuration was not made by NCCL_CONFIG_INITIALIZER";
}

static ncclComm_t addHandle(const MemberPtr &member, bool blocking) {
  Communicators &all = communicators();
  Lock lock(all.mutex);
  if (all.numbers.empty())
    addExitCheck(leakedCommunicators);
  member->number = ++all.numbers[member->device];
  ncclComm_t handle = new ncclComm();
  handle->member = member;
  handle->blocking = blocking;
  all.live.insert(handle);
  return handle;
}

FAKE_EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t *made, int size,
                                                ncclUniqueId id, int rank,
                                                ncclConfig_t *config) {
  const char *function = "ncclCommInitRankConfig";
  log("%s(%d ranks, rank %d, %s)", function, size, rank,
      isBlocking(config, true) ? "blocking" : "not blocking");
  *made = nullptr;
  std::string kind, error = wrongConfig(config);
  if (ncclResult_t result = injectedNccl(function, kind))
    return result;
  auto member = std::make_shared<Member>();
  if (error.empty() &&
      (size < 1 || size > kMaxRanks || rank < 0 || rank >= size))
    error = "rank " + std::to_string(rank) + " of " + std::to_string(size);
  if (error.empty() && cuCtxGetDevice(&member->device) != CUDA_SUCCESS)
    error = "no context is current in this thread";
  if (error.empty())
    member->room = Room::open(id, error);
  if (error.empty() && member->room->board(0).joined[rank])
    error = "rank " + std::to_string(rank) + " is there twice";
  if (!error.empty())
    return refuseNccl(ncclInvalidArgument, function, error);
  member->rank = rank;
  member->size = size;
  *made = addHandle(member, isBlocking(config, true));
  if (kind != "hang")
    join(*member);
  return waitFor(**made, function);
}

FAKE_EXPORT ncclResult_t ncclCommInitRank(ncclComm_t *made, int size,
                                          ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(made, size, id, rank, nullptr);
}

FAKE_EXPORT ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key,
                                       ncclComm_t *made, ncclConfig_t *config) {
  const char *function = "ncclCommSplit";
  *made = nullptr;
  ncclResult_t result = ncclSuccess;
  MemberPtr parent = readyMember(handle, function, result);
  if (!parent)
    return result;
  log("%s(comm %u, color %d, key %d)", function, parent->number, color, key);
  std::string kind, error = wrongConfig(config);
  if (ncclResult_t injected = injectedNccl(function, kind))
    return injected;
  if (handle->splits == kMaxSplits)
    error = "more splits than this fake has room for";
  if (!error.empty())
    return refuseNccl(ncclInvalidArgument, function, error);
  SplitEntry &entry = parent->board().splits[handle->splits][parent->rank];
  entry.color = color;
  entry.key = key;
  if (kind != "hang")
    entry.said = 1;
  int split = handle->splits++;
  if (color == NCCL_SPLIT_NOCOLOR)
    return ncclSuccess;
  auto member = std::make_shared<Member>();
  member->room = parent->room;
  member->communicator = -1;
  member->device = parent->device;
  *made = addHandle(member, isBlocking(config, handle->blocking));
  (*made)->stage = Stage::Splitting;
  (*made)->parent = parent;
  (*made)->split = split;
  handle->children.insert(*made);
  return waitFor(**made, function);
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

FAKE_EXPORT ncclResult_t ncclCommCount(const ncclComm_t handle, int *count) {
  ncclResult_t result = ncclSuccess;
  if (MemberPtr member = readyMember(handle, "ncclCommCount", result))
    *count = member->size;
  return result;
}

FAKE_EXPORT ncclResult_t ncclCommUserRank(const ncclComm_t handle, int *rank) {
  ncclResult_t result = ncclSuccess;
  if (MemberPtr member = readyMember(handle, "ncclCommUserRank", result))
    *rank = member->rank;
  return result;
}

FAKE_EXPORT ncclResult_t ncclCommCuDevice(const ncclComm_t handle,
                                          int *device) {
  ncclResult_t result = ncclSuccess;
  if (MemberPtr member = readyMember(handle, "ncclCommCuDevice", result))
    *device = member->device;
  return result;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

FAKE_EXPORT ncclResult_t ncclMemAlloc(void **pointer, size_t bytes) {
  log("ncclMemAlloc(%zu)", bytes);
  std::string kind;
  if (ncclResult_t result = injectedNccl("ncclMemAlloc", kind))
    return result;
  int device = 0;
  if (cuCtxGetDevice(&device) != CUDA_SUCCESS)
    return refuseNccl(ncclUnhandledCudaError, "ncclMemAlloc",
                      "no context is current in this thread");
  Window window =
      kind == "memory" ? Window() : allocate(device, bytes, "ncclMemAlloc");
  if (!window.data) {
    lastError = "ncclMemAlloc: out of memory";
    return ncclUnhandledCudaError;
  }
  *pointer = reinterpret_cast<void *>(window.begin);
  return ncclSuccess;
}

FAKE_EXPORT ncclResult_t ncclMemFree(void *pointer) {
  log("ncclMemFree()");
  if (!pointer)
    return ncclSuccess;
  if (cuCtxSynchronize() != CUDA_SUCCESS)
    return ncclUnhandledCudaError;
  Address address = reinterpret_cast<Address>(pointer);
  if (!release(address, "ncclMemAlloc"))
    return refuseNccl(ncclInvalidArgument, "ncclMemFree",
                      "ncclMemAlloc has not returned this address, or it was "
                      "freed");
  return ncclSuccess;
}

FAKE_EXPORT ncclResult_t ncclCommRegister(const ncclComm_t handle,
                                          void *pointer, size_t bytes,
                                          void **registration) {
  const char *function = "ncclCommRegister";
  ncclResult_t result = ncclSuccess;
  MemberPtr member = readyMember(handle, function, result);
  if (!member)
    return result;
  log("%s(comm %u, %zu)", function, member->number, bytes);
  Address address = reinterpret_cast<Address>(pointer);
  Window window;
  std::string error;
  if (!find(member->device, address, bytes, window, error))
    return refuseNccl(ncclInvalidArgument, function, error);
  *registration = new char();
  Lock lock(communicators().mutex);
  handle->registered[*registration] = {address, bytes};
  return ncclSuccess;
}

FAKE_EXPORT ncclResult_t ncclCommDeregister(const ncclComm_t handle,
                                            void *registration) {
  const char *function = "ncclCommDeregister";
  if (!isLive(handle))
    return noSuch(function);
  log("%s(comm %u)", function, handle->member->number);
  Lock lock(communicators().mutex);
  if (!handle->registered.erase(registration))
    return refuseNccl(ncclInvalidArgument, function, "no such registration");
  delete static_cast<char *>(registration);
  return ncclSuccess;
}

//===----------------------------------------------------------------------===//
// Ending
//===----------------------------------------------------------------------===//

FAKE_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  const char *function = "ncclCommFinalize";
  ncclResult_t result = ncclSuccess;
  MemberPtr member = readyMember(handle, function, result);
  if (!member)
    return result;
  log("%s(comm %u)", function, member->number);
  std::string kind;
  if (ncclResult_t injected = injectedNccl(function, kind))
    return injected;
  handle->stage = Stage::Finalizing;
  if (kind != "hang")
    member->board().finalized[member->rank] = 1;
  return waitFor(*handle, function);
}

static void forget(ncclComm_t handle) {
  Lock lock(communicators().mutex);
  communicators().live.erase(handle);
  for (auto &entry : handle->registered)
    delete static_cast<char *>(entry.first);
  delete handle;
}

FAKE_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  if (!isLive(handle))
    return noSuch("ncclCommDestroy");
  log("ncclCommDestroy(comm %u)", handle->member->number);
  forget(handle);
  return ncclSuccess;
}

FAKE_EXPORT ncclResult_t ncclCommAbort(ncclComm_t handle) {
  if (!isLive(handle))
    return noSuch("ncclCommAbort");
  log("ncclCommAbort(comm %u)", handle->member->number);
  handle->member->aborted = true;
  forget(handle);
  return ncclSuccess;
}
