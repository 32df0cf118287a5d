//===- Exchange.cpp - Messages between the ranks of a group ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Exchange.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/mpi/Exchange.h"

#include <algorithm>

using namespace zrt;
using namespace zrt::mpi;

/// Starts what may be under way; whether there was something.
static bool post(MPI_Comm communicator, int tag, Lane &lane) {
  size_t end = std::min(lane.slices->size(), lane.finished + laneDepth);
  if (lane.allowed)
    end = std::min(end, lane.allowed());
  bool any = lane.posted < end;
  for (; lane.posted < end; ++lane.posted) {
    const Slice &slice = (*lane.slices)[lane.posted];
    uint8_t *place = lane.place(lane.posted);
    MPI_Request *request = &lane.requests[lane.posted % laneDepth];
    int bytes = int(slice.bytes), peer = int(lane.peer);
    if (lane.sends)
      check(MPI_Isend(place, bytes, MPI_BYTE, peer, tag, communicator, request),
            "send");
    else
      check(MPI_Irecv(place, bytes, MPI_BYTE, peer, tag, communicator, request),
            "receive");
  }
  return any;
}

/// Finishes what has arrived, in order; whether there was something.
static bool finish(Lane &lane) {
  bool any = false;
  while (lane.finished < lane.posted) {
    int arrived = 0;
    check(MPI_Test(&lane.requests[lane.finished % laneDepth], &arrived,
                   MPI_STATUS_IGNORE),
          "test");
    if (!arrived)
      break;
    size_t slice = lane.finished++;
    if (lane.done)
      lane.done(slice);
    any = true;
  }
  return any;
}

std::vector<uint32_t>
zrt::mpi::exchange(MPI_Comm communicator, int tag, std::vector<Lane> &lanes,
                   Waiting waiting, const std::function<void()> &meanwhile) {
  for (Lane &lane : lanes) {
    lane.posted = lane.finished = 0;
    post(communicator, tag, lane);
  }
  if (meanwhile)
    meanwhile();
  while (true) {
    bool any = false, all = true;
    for (Lane &lane : lanes) {
      any |= post(communicator, tag, lane);
      any |= finish(lane);
      all &= lane.isDone();
    }
    if (all)
      return {};
    if (any)
      waiting.progress();
    else if (!waiting.pause())
      break;
  }
  std::vector<uint32_t> late;
  for (const Lane &lane : lanes)
    if (!lane.isDone() &&
        std::find(late.begin(), late.end(), lane.peer) == late.end())
      late.push_back(lane.peer);
  std::sort(late.begin(), late.end());
  return late;
}
