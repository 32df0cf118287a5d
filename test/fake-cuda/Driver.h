//===- Driver.h - What the handles of the driver stand for ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_DRIVER_H
#define ZERO_TEST_FAKECUDA_DRIVER_H

#include "test/fake-cuda/Engine.h"
#include "test/fake-cuda/Ptx.h"
#include "test/fake-cuda/Registry.h"

#include <cuda.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace fake_cuda {

/// A graph that is being recorded: the nodes that later work may come after.
struct Capture {
  CUstream origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::vector<NodePtr> nodes; ///< in the order of the calls
  std::set<CUstream> streams; ///< that have joined it
  std::string broken;         ///< why it cannot become a graph
};

using CapturePtr = std::shared_ptr<Capture>;

} // namespace fake_cuda

struct CUctx_st {
  int device;
  int users = 0;
  CUstream defaultStream = nullptr;
};

struct CUstream_st {
  CUcontext context;
  unsigned number;
  unsigned flags;
  int priority;
  uint32_t entity;
  fake_cuda::NodePtr last;                ///< work so far
  std::vector<fake_cuda::NodePtr> events; ///< that the next work waits for
  fake_cuda::NodePtr dropped;
  fake_cuda::CapturePtr capture;
  /// While it captures: all that the next work comes after.
  std::vector<fake_cuda::NodePtr> captured;
};

struct CUevent_st {
  CUcontext context;
  unsigned number;
  unsigned flags;
  bool recorded = false;
  std::vector<fake_cuda::NodePtr> work;
  fake_cuda::CapturePtr capture; ///< recorded while that was going on
};

struct CUfunc_st {
  CUmodule module;
  const fake_cuda::Function *function;
  int maxDynamicShared;
};

struct CUmod_st {
  CUcontext context;
  std::unique_ptr<fake_cuda::Module> module;
  std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
};

struct CUgraph_st {
  std::vector<fake_cuda::NodePtr> nodes; ///< each after those it comes after
};

struct CUgraphExec_st {
  CUcontext context;
  std::vector<fake_cuda::NodePtr> nodes;
  std::map<uint32_t, uint32_t> branches; ///< entity of a stream -> of a branch
  fake_cuda::NodePtr lastLaunch;
};

namespace fake_cuda {

/// Handles that are alive: those of others are refused.
template <typename Handle>
class Handles {
public:
  void add(Handle handle) {
    std::lock_guard<std::mutex> lock(mutex);
    live.insert(handle);
  }
  bool has(Handle handle) const {
    std::lock_guard<std::mutex> lock(mutex);
    return live.count(handle);
  }
  bool remove(Handle handle) {
    std::lock_guard<std::mutex> lock(mutex);
    return live.erase(handle);
  }
  size_t size() const {
    std::lock_guard<std::mutex> lock(mutex);
    return live.size();
  }
  std::vector<Handle> all() const {
    std::lock_guard<std::mutex> lock(mutex);
    return {live.begin(), live.end()};
  }

private:
  mutable std::mutex mutex;
  std::set<Handle> live;
};

Handles<CUstream> &streams();
Handles<CUevent> &events();
Handles<CUmodule> &modules();
Handles<CUgraph> &graphs();
Handles<CUgraphExec> &graphExecs();
/// Streams of a context that wait for the default stream.
std::vector<CUstream> blockingStreams(CUcontext context);

/// What a call needs: an initialized driver, and a current context.
enum class Needs { Nothing, Driver, Context };

/// Begins every call: writes the log, injects faults, refuses what cannot be.
CUresult enter(const char *function, Needs needs, const std::string &arguments);

/// An error of this call only: printed, and returned.
CUresult refuse(CUresult code, const char *function, const std::string &why);

CUcontext currentContext();
CUcontext contextOf(int device);
/// The context's default stream for null; null if there is no such stream.
CUstream streamOf(CUstream handle);

/// Puts a node on a stream, or into the graph that the stream captures. Sets
/// its device, place and order.
CUresult put(CUstream stream, const NodePtr &node, const char *function);
/// What work on the stream would come after now.
std::vector<NodePtr> frontier(CUstream stream);

std::string eventText(CUevent event);

} // namespace fake_cuda

#endif // ZERO_TEST_FAKECUDA_DRIVER_H
