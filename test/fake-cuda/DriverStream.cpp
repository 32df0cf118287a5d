//===- DriverStream.cpp - Streams, events and host functions --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/Driver.h"
#include "test/fake-cuda/DriverGraph.h"
#include "test/fake-cuda/Environment.h"

#include <algorithm>
#include <atomic>

using namespace fake_cuda;

static CUresult result() {
  return stickyError().empty() ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

static CUstream makeStream(CUcontext context, unsigned number, unsigned flags,
                           int priority) {
  auto stream = new CUstream_st();
  stream->context = context;
  stream->number = number;
  stream->flags = flags;
  stream->priority = priority;
  stream->entity = Engine::get().newEntity();
  return stream;
}

static std::mutex &streamsMutex() {
  static std::mutex *mutex = new std::mutex;
  return *mutex;
}

/// Numbers of a device's handles, from 1: the same in every run.
static unsigned nextNumber(const char *kind, int device) {
  static auto *numbers = new std::map<std::pair<std::string, int>, unsigned>;
  std::lock_guard<std::mutex> lock(streamsMutex());
  return ++(*numbers)[{kind, device}];
}

CUstream fake_cuda::streamOf(CUstream handle) {
  if (handle == CU_STREAM_PER_THREAD)
    return nullptr;
  if (handle && handle != CU_STREAM_LEGACY)
    return streams().has(handle) ? handle : nullptr;
  CUcontext context = currentContext();
  if (!context)
    return nullptr;
  std::lock_guard<std::mutex> lock(streamsMutex());
  if (!context->defaultStream)
    context->defaultStream = makeStream(context, 0, CU_STREAM_DEFAULT, 0);
  return context->defaultStream;
}

std::string fake_cuda::streamName(CUstream handle) {
  CUstream stream = streamOf(handle);
  return stream ? "stream " + std::to_string(stream->number) : "unknown stream";
}

std::string fake_cuda::eventText(CUevent event) {
  return events().has(event) ? "event " + std::to_string(event->number)
                             : "unknown event";
}

int fake_cuda::deviceOf(CUstream handle) {
  CUstream stream = streamOf(handle);
  return stream ? stream->context->device : -1;
}

std::vector<CUstream> fake_cuda::blockingStreams(CUcontext context) {
  std::vector<CUstream> found;
  for (CUstream stream : streams().all())
    if (stream->context == context && !(stream->flags & CU_STREAM_NON_BLOCKING))
      found.push_back(stream);
  return found;
}

static CUresult createStream(const char *function, CUstream *stream,
                             unsigned flags, int priority) {
  if (CUresult error = enter(function, Needs::Context,
                             std::to_string(flags) + ", priority " +
                                 std::to_string(priority)))
    return error;
  CUcontext context = currentContext();
  *stream = makeStream(context, nextNumber("stream", context->device), flags,
                       priority);
  streams().add(*stream);
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  return createStream("cuStreamCreate", stream, flags, 0);
}

FAKE_EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream,
                                                unsigned flags, int priority) {
  return createStream("cuStreamCreateWithPriority", stream, flags, priority);
}

FAKE_EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  if (CUresult error =
          enter("cuStreamDestroy", Needs::Context, streamName(stream)))
    return error;
  if (!streams().remove(stream))
    return refuse(CUDA_ERROR_INVALID_HANDLE, "cuStreamDestroy",
                  "no such stream");
  // Work that is under way goes on: it does not need the stream.
  delete stream;
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuStreamGetPriority(CUstream handle, int *priority) {
  CUstream stream = streamOf(handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuStreamGetCtx(CUstream handle, CUcontext *context) {
  CUstream stream = streamOf(handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  *context = stream->context;
  return CUDA_SUCCESS;
}

static void append(std::vector<NodePtr> &nodes, const NodePtr &node) {
  if (node && std::find(nodes.begin(), nodes.end(), node) == nodes.end())
    nodes.push_back(node);
}

static void appendFrontier(std::vector<NodePtr> &nodes, CUstream stream) {
  append(nodes, stream->last);
  for (const NodePtr &event : stream->events)
    append(nodes, event);
}

std::vector<NodePtr> fake_cuda::frontier(CUstream stream) {
  if (stream->capture)
    return stream->captured;
  std::vector<NodePtr> nodes;
  appendFrontier(nodes, stream);
  CUcontext context = stream->context;
  if (stream == context->defaultStream)
    for (CUstream other : blockingStreams(context))
      appendFrontier(nodes, other);
  else if (context->defaultStream && !(stream->flags & CU_STREAM_NON_BLOCKING))
    appendFrontier(nodes, context->defaultStream);
  return nodes;
}

CUresult fake_cuda::put(CUstream stream, const NodePtr &node,
                        const char *function) {
  node->device = stream->context->device;
  node->entity = stream->entity;
  node->place = "stream " + std::to_string(stream->number);
  if (node->work.name.empty())
    node->work.name = function;
  for (const NodePtr &before : frontier(stream))
    append(node->before, before);
  node->dropped = std::move(stream->dropped);
  stream->dropped = nullptr;
  if (stream->capture) {
    stream->capture->nodes.push_back(node);
    stream->captured = {node};
    return CUDA_SUCCESS;
  }
  if (stream == stream->context->defaultStream)
    for (CUstream other : blockingStreams(stream->context))
      if (other->capture)
        return refuse(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, function,
                      "the default stream is used while " + streamName(other) +
                          " captures");
  stream->events.clear();
  stream->last = node;
  Engine::get().submit(node);
  return CUDA_SUCCESS;
}

CUresult fake_cuda::enqueue(CUstream handle, Work work) {
  std::string name = work.name;
  CUstream stream = streamOf(handle);
  if (!stream)
    return refuse(CUDA_ERROR_INVALID_HANDLE, name.c_str(), "no such stream");
  auto node = std::make_shared<Node>();
  node->work = std::move(work);
  return put(stream, node, name.c_str());
}

//===----------------------------------------------------------------------===//
// Waiting for streams
//===----------------------------------------------------------------------===//

FAKE_EXPORT CUresult cuStreamSynchronize(CUstream handle) {
  if (CUresult error =
          enter("cuStreamSynchronize", Needs::Context, streamName(handle)))
    return error;
  CUstream stream = streamOf(handle);
  if (!stream)
    return refuse(CUDA_ERROR_INVALID_HANDLE, "cuStreamSynchronize",
                  "no such stream");
  if (CUresult error = refuseInCapture("cuStreamSynchronize"))
    return error;
  for (const NodePtr &node : frontier(stream))
    Engine::get().wait(node);
  return result();
}

static CUresult queryAll(const std::vector<NodePtr> &nodes) {
  bool done = true;
  for (const NodePtr &node : nodes)
    done = Engine::get().query(node) && done;
  return done ? result() : CUDA_ERROR_NOT_READY;
}

// Asked for again and again: not in the log, whose lines do not depend on time.
FAKE_EXPORT CUresult cuStreamQuery(CUstream handle) {
  CUstream stream = streamOf(handle);
  if (!stream)
    return refuse(CUDA_ERROR_INVALID_HANDLE, "cuStreamQuery", "no such stream");
  if (CUresult error = refuseInCapture("cuStreamQuery"))
    return error;
  if (CUresult error = result())
    return error;
  return queryAll(frontier(stream));
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

FAKE_EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags) {
  if (CUresult error =
          enter("cuEventCreate", Needs::Context, std::to_string(flags)))
    return error;
  CUcontext context = currentContext();
  *event = new CUevent_st();
  (*event)->context = context;
  (*event)->number = nextNumber("event", context->device);
  (*event)->flags = flags;
  events().add(*event);
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  if (CUresult error =
          enter("cuEventDestroy", Needs::Context, eventText(event)))
    return error;
  if (!events().remove(event))
    return refuse(CUDA_ERROR_INVALID_HANDLE, "cuEventDestroy", "no such event");
  delete event;
  return CUDA_SUCCESS;
}

static CUresult recordEvent(const char *function, CUevent event,
                            CUstream handle) {
  if (CUresult error = enter(function, Needs::Context,
                             eventText(event) + ", " + streamName(handle)))
    return error;
  CUstream stream = streamOf(handle);
  if (!stream || !events().has(event))
    return refuse(CUDA_ERROR_INVALID_HANDLE, function,
                  "no such stream or event");
  if (stream->context != event->context)
    return refuse(CUDA_ERROR_INVALID_HANDLE, function,
                  "the event and the stream are of different devices");
  event->recorded = true;
  event->capture = stream->capture;
  event->work = frontier(stream);
  if (stream->capture)
    return CUDA_SUCCESS;
  auto node = std::make_shared<Node>();
  if (CUresult error = put(stream, node, function))
    return error;
  event->work = {node};
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  return recordEvent("cuEventRecord", event, stream);
}

FAKE_EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream stream,
                                            unsigned flags) {
  if (flags != CU_EVENT_RECORD_DEFAULT)
    return refuse(CUDA_ERROR_NOT_SUPPORTED, "cuEventRecordWithFlags",
                  "only CU_EVENT_RECORD_DEFAULT is known");
  return recordEvent("cuEventRecordWithFlags", event, stream);
}

/// Whether the event can be waited for by the host.
static CUresult checkEvent(const char *function, CUevent event) {
  if (!events().has(event))
    return refuse(CUDA_ERROR_INVALID_HANDLE, function, "no such event");
  if (CUresult error = refuseInCapture(function))
    return error;
  if (event->capture)
    return refuse(CUDA_ERROR_INVALID_HANDLE, function,
                  eventText(event) + " was recorded in a capture");
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuEventSynchronize(CUevent event) {
  if (CUresult error =
          enter("cuEventSynchronize", Needs::Context, eventText(event)))
    return error;
  if (CUresult error = checkEvent("cuEventSynchronize", event))
    return error;
  for (const NodePtr &node : event->work)
    Engine::get().wait(node);
  return result();
}

FAKE_EXPORT CUresult cuEventQuery(CUevent event) {
  if (CUresult error = checkEvent("cuEventQuery", event))
    return error;
  if (CUresult error = result())
    return error;
  return queryAll(event->work);
}

FAKE_EXPORT CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent begin,
                                           CUevent end) {
  const char *function = "cuEventElapsedTime";
  for (CUevent event : {begin, end}) {
    if (CUresult error = checkEvent(function, event))
      return error;
    if (!event->recorded || (event->flags & CU_EVENT_DISABLE_TIMING))
      return refuse(CUDA_ERROR_INVALID_HANDLE, function,
                    eventText(event) +
                        " was never recorded, or made without timing");
    if (CUresult error = queryAll(event->work))
      return error;
  }
  std::chrono::duration<float, std::milli> passed =
      end->work[0]->finished - begin->work[0]->finished;
  *milliseconds = passed.count();
  return CUDA_SUCCESS;
}

/// Counts the waits of a device: whether this one is to be left out.
static bool isDropped(int device) {
  if (environment().dropWait == 0)
    return false;
  static auto *counts = new std::map<int, uint64_t>;
  std::lock_guard<std::mutex> lock(streamsMutex());
  return ++(*counts)[device] == environment().dropWait;
}

/// A stream that waits for captured work joins the capture.
static CUresult joinCapture(CUstream stream, CUevent event, bool drop) {
  const char *function = "cuStreamWaitEvent";
  if (!event->capture)
    return refuse(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, function,
                  streamName(stream) + " captures, but " + eventText(event) +
                      " was recorded outside of the capture");
  if (stream->capture && stream->capture != event->capture)
    return refuse(CUDA_ERROR_STREAM_CAPTURE_MERGE, function,
                  "two captures would become one");
  if (!isGoingOn(event->capture))
    return refuse(CUDA_ERROR_CAPTURED_EVENT, function,
                  eventText(event) + " is of a capture that has ended");
  stream->capture = event->capture;
  stream->capture->streams.insert(stream);
  for (const NodePtr &node : event->work)
    if (!drop)
      append(stream->captured, node);
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuStreamWaitEvent(CUstream handle, CUevent event,
                                       unsigned) {
  const char *function = "cuStreamWaitEvent";
  if (CUresult error = enter(function, Needs::Context,
                             streamName(handle) + ", " + eventText(event)))
    return error;
  CUstream stream = streamOf(handle);
  if (!stream || !events().has(event))
    return refuse(CUDA_ERROR_INVALID_HANDLE, function,
                  "no such stream or event");
  // The driver would do nothing: whoever waits meant something else.
  if (!event->recorded)
    return refuse(CUDA_ERROR_INVALID_HANDLE, function,
                  eventText(event) + " was never recorded");
  bool drop = isDropped(stream->context->device);
  if (drop && !event->work.empty())
    stream->dropped = event->work[0];
  if (stream->capture || event->capture)
    return joinCapture(stream, event, drop);
  for (const NodePtr &node : event->work)
    if (!drop)
      append(stream->events, node);
  return CUDA_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Host functions
//===----------------------------------------------------------------------===//

FAKE_EXPORT CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function,
                                      void *data) {
  if (CUresult error =
          enter("cuLaunchHostFunc", Needs::Context, streamName(handle)))
    return error;
  CUstream stream = streamOf(handle);
  if (!stream || !function)
    return refuse(CUDA_ERROR_INVALID_HANDLE, "cuLaunchHostFunc",
                  "no such stream, or no function");
  auto node = std::make_shared<Node>();
  node->isHostFunction = true;
  node->work.name = "host function";
  node->work.run = [function, data] {
    function(data);
    return std::string();
  };
  return put(stream, node, "cuLaunchHostFunc");
}
