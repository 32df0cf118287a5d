//===- DriverGraph.cpp - Captures and graphs ------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/DriverGraph.h"
#include "test/fake-cuda/Environment.h"

#include <algorithm>

using namespace fake_cuda;

namespace {
struct Captures {
  std::mutex mutex;
  std::set<CapturePtr> all;
};
} // namespace

static Captures &captures() {
  static Captures *captures = new Captures;
  return *captures;
}

static thread_local std::vector<CapturePtr> capturesOfThread;

bool fake_cuda::isGoingOn(const CapturePtr &capture) {
  std::lock_guard<std::mutex> lock(captures().mutex);
  return captures().all.count(capture);
}

CUresult fake_cuda::refuseInCapture(const char *function) {
  std::lock_guard<std::mutex> lock(captures().mutex);
  for (const CapturePtr &capture : captures().all) {
    bool ours = std::find(capturesOfThread.begin(), capturesOfThread.end(),
                          capture) != capturesOfThread.end();
    if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
        (capture->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && !ours))
      continue;
    capture->broken = std::string(function) + " was called meanwhile";
    return refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, function,
                  "not allowed while " + streamName(capture->origin) +
                      " captures");
  }
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Captures
//===----------------------------------------------------------------------===//

static const char *modeName(CUstreamCaptureMode mode) {
  return mode == CU_STREAM_CAPTURE_MODE_GLOBAL         ? "global"
         : mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ? "thread local"
                                                       : "relaxed";
}

FAKE_EXPORT CUresult cuStreamBeginCapture_v2(CUstream handle,
                                             CUstreamCaptureMode mode) {
  const char *function = "cuStreamBeginCapture";
  if (CUresult error = enter(function, Needs::Context,
                             streamName(handle) + ", " + modeName(mode)))
    return error;
  CUstream stream = streamOf(handle);
  if (!stream || stream == stream->context->defaultStream || stream->capture)
    return refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, function,
                  "the stream cannot capture, or does already");
  auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  capture->mode = mode;
  capture->streams.insert(stream);
  stream->capture = capture;
  stream->captured.clear();
  capturesOfThread.push_back(capture);
  std::lock_guard<std::mutex> lock(captures().mutex);
  captures().all.insert(capture);
  return CUDA_SUCCESS;
}

static void endCapture(const CapturePtr &capture) {
  for (CUstream stream : capture->streams) {
    if (!streams().has(stream))
      continue;
    stream->capture = nullptr;
    stream->captured.clear();
  }
  capturesOfThread.erase(
      std::remove(capturesOfThread.begin(), capturesOfThread.end(), capture),
      capturesOfThread.end());
  std::lock_guard<std::mutex> lock(captures().mutex);
  captures().all.erase(capture);
}

/// The work of other streams that the origin does not come after: its place;
/// "".
static std::string unjoined(const Capture &capture,
                            const std::vector<NodePtr> &last) {
  std::set<const Node *> joined;
  std::vector<NodePtr> open = last;
  while (!open.empty()) {
    NodePtr node = open.back();
    open.pop_back();
    if (joined.insert(node.get()).second)
      open.insert(open.end(), node->before.begin(), node->before.end());
  }
  for (const NodePtr &node : capture.nodes)
    if (!joined.count(node.get()))
      return node->work.name + " on " + node->place;
  return "";
}

FAKE_EXPORT CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  const char *function = "cuStreamEndCapture";
  *graph = nullptr;
  if (CUresult error = enter(function, Needs::Context, streamName(handle)))
    return error;
  CUstream stream = streamOf(handle);
  if (!stream || !stream->capture || stream->capture->origin != stream)
    return refuse(CUDA_ERROR_ILLEGAL_STATE, function,
                  "the stream has not begun a capture");
  CapturePtr capture = stream->capture;
  std::vector<NodePtr> last = stream->captured;
  endCapture(capture);
  if (!capture->broken.empty())
    return refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, function,
                  capture->broken);
  std::string left = unjoined(*capture, last);
  if (!left.empty())
    return refuse(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, function,
                  left + " is not joined to the stream that began the capture");
  *graph = new CUgraph_st{capture->nodes};
  graphs().add(*graph);
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuStreamIsCapturing(CUstream handle,
                                         CUstreamCaptureStatus *status) {
  CUstream stream = streamOf(handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  *status = !stream->capture ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream->capture->broken.empty()
                ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult
cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  static thread_local CUstreamCaptureMode current =
      CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::swap(*mode, current);
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

FAKE_EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *,
                                     size_t *count) {
  if (!graphs().has(graph))
    return CUDA_ERROR_INVALID_HANDLE;
  *count = graph->nodes.size();
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  if (CUresult error = enter("cuGraphDestroy", Needs::Driver, ""))
    return error;
  if (!graphs().remove(graph))
    return refuse(CUDA_ERROR_INVALID_HANDLE, "cuGraphDestroy", "no such graph");
  delete graph;
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *made,
                                                 CUgraph graph,
                                                 unsigned long long) {
  if (CUresult error = enter("cuGraphInstantiate", Needs::Context, ""))
    return error;
  if (!graphs().has(graph))
    return refuse(CUDA_ERROR_INVALID_HANDLE, "cuGraphInstantiate",
                  "no such graph");
  *made = new CUgraphExec_st();
  (*made)->context = currentContext();
  (*made)->nodes = graph->nodes;
  for (const NodePtr &node : graph->nodes)
    (*made)->branches.emplace(node->entity, 0);
  for (auto &branch : (*made)->branches)
    branch.second = Engine::get().newEntity();
  graphExecs().add(*made);
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuGraphInstantiateWithParams(
    CUgraphExec *made, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
  params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return cuGraphInstantiateWithFlags(made, graph, params->flags);
}

FAKE_EXPORT CUresult cuGraphUpload(CUgraphExec exec, CUstream) {
  if (CUresult error = enter("cuGraphUpload", Needs::Context, ""))
    return error;
  return graphExecs().has(exec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

FAKE_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec) {
  if (CUresult error = enter("cuGraphExecDestroy", Needs::Driver, ""))
    return error;
  if (!graphExecs().remove(exec))
    return refuse(CUDA_ERROR_INVALID_HANDLE, "cuGraphExecDestroy",
                  "no such graph");
  delete exec;
  return CUDA_SUCCESS;
}

/// One launch: each node again, between `start` and the node that is returned.
static NodePtr launchNodes(CUgraphExec exec, const NodePtr &start) {
  std::map<const Node *, NodePtr> copies;
  auto end = std::make_shared<Node>();
  for (const NodePtr &node : exec->nodes) {
    auto copy = std::make_shared<Node>();
    copy->device = node->device;
    copy->entity = exec->branches[node->entity];
    copy->place = node->place + " in a graph";
    copy->work = node->work;
    copy->isHostFunction = node->isHostFunction;
    copy->before = {start};
    for (const NodePtr &before : node->before)
      copy->before.push_back(copies[before.get()]);
    if (node->dropped)
      copy->dropped = copies[node->dropped.get()];
    copies[node.get()] = copy;
    end->before.push_back(copy);
    Engine::get().submit(copy);
  }
  return end;
}

FAKE_EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle) {
  const char *function = "cuGraphLaunch";
  if (CUresult error = enter(function, Needs::Context, streamName(handle)))
    return error;
  CUstream stream = streamOf(handle);
  if (!stream || !graphExecs().has(exec))
    return refuse(CUDA_ERROR_INVALID_HANDLE, function,
                  "no such stream or graph");
  if (stream->capture)
    return refuse(CUDA_ERROR_NOT_SUPPORTED, function,
                  "a graph in a graph is not known here");
  auto start = std::make_shared<Node>();
  // Launches of one executable graph never overlap.
  if (exec->lastLaunch)
    start->before.push_back(exec->lastLaunch);
  start->work.name = "start of cuGraphLaunch";
  if (CUresult error = put(stream, start, function))
    return error;
  NodePtr end = launchNodes(exec, start);
  end->work.name = "end of cuGraphLaunch";
  exec->lastLaunch = end;
  return put(stream, end, function);
}
