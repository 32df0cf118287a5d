//===- GroupApi.cpp - The C interface of groups ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// zrt_group_* of zero-rt.h over ProcessGroup.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Group.h"
#include "runtime/comm/TcpGroup.h"
#include "runtime/core/LastError.h"
#include "runtime/core/Memory.h"

using namespace zrt;

template <typename Body>
static zrt_status guarded(Body body) noexcept {
  try {
    body();
    return ZRT_OK;
  } catch (const Error &error) {
    setLastError(error.what());
    return error.code();
  } catch (const std::exception &error) {
    setLastError(error.what());
    return ZRT_ERROR_EXECUTION;
  }
}

static void require(const void *pointer, const char *what) {
  if (!pointer)
    fail(ZRT_ERROR_ARGUMENT, what, " is NULL");
}

static double orDefault(double value, double absent) {
  return value > 0 ? value : absent;
}

static std::unique_ptr<zrt_group> makeGroup(const zrt_group_options &from) {
  auto group = std::make_unique<zrt_group>();
  group->transport = from.transport ? from.transport : "auto";
  group->timeoutFactor = orDefault(from.timeout_factor, 100);
  group->timeoutMinSeconds = orDefault(from.timeout_min_s, 30);
  const std::string &way = group->transport;
  if (way != "auto" && way != "shm" && way != "mpi")
    fail(ZRT_ERROR_ARGUMENT, "transport '", way,
         "': expected auto, shm or mpi");
  TcpGroupOptions options;
  options.rank = from.rank;
  options.size = from.size;
  options.localRank = from.local_rank;
  options.localSize = from.local_size;
  options.address = from.address ? from.address : "127.0.0.1";
  options.port = from.port;
  if (from.listener > 0)
    options.listener = Socket(from.listener);
  options.connectSeconds = orDefault(from.connect_timeout_s, 60);
  // A collective that is late has the better reason, so it comes first.
  options.silenceSeconds = 2 * group->timeoutMinSeconds + 5;
  group->processes = TcpGroup::create(std::move(options));
  return group;
}

zrt_status zrt_group_create(const zrt_group_options *options,
                            zrt_group **group) {
  return guarded([&] {
    require(group, "the result");
    *group = nullptr;
    require(options, "the options");
    *group = makeGroup(*options).release();
  });
}

void zrt_group_destroy(zrt_group *group) { delete group; }

zrt_status zrt_group_all_gather(zrt_group *group, const void *data,
                                size_t bytes, void *all) {
  return guarded([&] {
    require(group, "the group");
    if (bytes) {
      require(data, "the data");
      require(all, "the result");
    }
    std::vector<std::string> parts = group->processes->allGather(
        std::string(static_cast<const char *>(data), bytes));
    for (size_t rank = 0; rank < parts.size(); ++rank) {
      if (parts[rank].size() != bytes)
        fail(ZRT_ERROR_ARGUMENT, "rank ", rank, " gives ", parts[rank].size(),
             " bytes, this process ", bytes);
      copyBytes(static_cast<char *>(all) + rank * bytes, parts[rank].data(),
                bytes);
    }
  });
}

zrt_status zrt_group_broadcast(zrt_group *group, const void **data,
                               size_t *bytes) {
  return guarded([&] {
    require(group, "the group");
    require(data, "the data");
    require(bytes, "the size");
    std::string own;
    if (group->processes->rank() == 0 && *bytes)
      own.assign(static_cast<const char *>(*data), *bytes);
    group->received = group->processes->broadcast(own);
    *data = group->received.data();
    *bytes = group->received.size();
  });
}

zrt_status zrt_group_barrier(zrt_group *group) {
  return guarded([&] {
    require(group, "the group");
    group->processes->barrier();
  });
}

zrt_status zrt_group_report_failure(zrt_group *group, const char *message) {
  return guarded([&] {
    require(group, "the group");
    require(message, "the message");
    group->processes->reportFailure(message);
  });
}

const char *zrt_group_failure(zrt_group *group) {
  if (!group)
    return "";
  group->failureText = group->processes->failure();
  return group->failureText.c_str();
}

int64_t zrt_group_failed_rank(zrt_group *group) {
  return group ? group->processes->failedRank() : -1;
}

int zrt_group_prints_failure(zrt_group *group) {
  return !group || group->processes->printsFailure();
}
