//===- Graph.cpp - A part of the program as one launch --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Graph.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Graph.h"

#include "runtime/cuda/Status.h"

using namespace zrt;
using namespace zrt::cuda;

CUevent Graph::makeEvent() {
  CUevent event = nullptr;
  checkCuda(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  events.push_back(event);
  return event;
}

void Graph::capture(CUstream first, const std::vector<CUstream> &others,
                    const std::function<void()> &enqueue) {
  // NCCL's threads and those of other ranks go on with calls that other modes
  // forbid.
  checkCuda(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_RELAXED),
            "cuStreamBeginCapture");
  try {
    CUevent fork = makeEvent();
    checkCuda(cuEventRecord(fork, first), "cuEventRecord");
    for (CUstream other : others)
      checkCuda(cuStreamWaitEvent(other, fork, 0), "cuStreamWaitEvent");
    enqueue();
    for (CUstream other : others) {
      CUevent join = makeEvent();
      checkCuda(cuEventRecord(join, other), "cuEventRecord");
      checkCuda(cuStreamWaitEvent(first, join, 0), "cuStreamWaitEvent");
    }
  } catch (...) {
    cuStreamEndCapture(first, &graph); // the first error is the one to tell
    throw;
  }
  checkCuda(cuStreamEndCapture(first, &graph), "cuStreamEndCapture");
  checkCuda(cuGraphInstantiate(&executable, graph, 0), "cuGraphInstantiate");
}

Graph::Graph(CUstream first, const std::vector<CUstream> &others,
             const std::function<void()> &enqueue) {
  try {
    capture(first, others, enqueue);
    done = makeEvent();
  } catch (...) {
    destroy();
    throw;
  }
}

Graph::~Graph() { destroy(); }

void Graph::destroy() {
  if (executable)
    cuGraphExecDestroy(executable);
  if (graph)
    cuGraphDestroy(graph);
  for (CUevent event : events)
    cuEventDestroy(event);
}

void Graph::launch(CUstream stream) {
  checkCuda(cuGraphLaunch(executable, stream), "cuGraphLaunch");
  checkCuda(cuEventRecord(done, stream), "cuEventRecord");
}

bool Graph::isDone() const {
  CUresult status = cuEventQuery(done);
  if (status == CUDA_ERROR_NOT_READY)
    return false;
  checkCuda(status, "the device failed");
  return true;
}
