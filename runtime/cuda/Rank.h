//===- Rank.h - One rank of a session, on a GPU -----------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stream of the plan is a stream of the device, an event of the plan an event
// behind the command that signals it. One thread enqueues the commands in the
// program's order, which is the same on all ranks, and then looks from time to
// time how far the streams have come.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CUDA_RANK_H
#define ZERO_RT_CUDA_RANK_H

#include "runtime/core/KernelLibrary.h"
#include "runtime/cuda/Communicators.h"
#include "runtime/cuda/Copies.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Graph.h"
#include "runtime/cuda/HostWork.h"
#include "runtime/cuda/LibraryCall.h"
#include "runtime/cuda/RankMemory.h"
#include "runtime/cuda/StreamTimes.h"
#include "runtime/host/HostThreads.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace zrt::cuda {

/// A part of the program that runs as one.
enum class Part {
  MicroBatch, ///< the commands of one of the micro-batches before the last
  Step        ///< the others
};

/// What a session says about its ranks.
struct RankOptions {
  std::string offloadPath; ///< folder of the disk arenas
  uint32_t hostThreads = 1;
  bool poison = false, graph = false;
  /// Communicators even for a program that sends nothing.
  bool inGroup = false;
  /// Of collectives: they fail after max(minimum, factor * planned).
  double timeoutFactor = 100, timeoutMinSeconds = 30;
};

/// All functions are for the rank's thread, except where its context is made
/// current and no part runs.
class Rank {
public:
  /// Takes the device and the memory. Throws Error or IoError.
  Rank(const Program &program, uint32_t rank, int device,
       const RankOptions &options, const Cancel &cancel);
  ~Rank();
  Rank(const Rank &) = delete;
  Rank &operator=(const Rank &) = delete;

  void use() const { device.use(); }
  uint32_t number() const { return rank; }
  RankMemory &memory() { return arenas; }
  const RankMemory &memory() const { return arenas; }

  /// Makes the communicators; on all ranks at the same time.
  void connect(const ncclUniqueId &id);
  /// Prepares all commands. `hostKernels` are those of launches on the host.
  void bind(const KernelLibrary &hostKernels);

  /// Runs a part of the program to its end. Throws CommandError, or Aborted
  /// once `cancel` is set.
  void run(Part part);
  /// Ends collectives that wait for ranks that are lost.
  void abort() noexcept;
  /// Brings `bytes` bytes of rank `root` to the same place in device memory of
  /// all; on all ranks. Throws Error, or Aborted.
  void broadcast(CUdeviceptr data, uint64_t bytes, uint32_t root);

  const StreamTimes &times() const { return *streamTimes; }
  void resetTimes() { streamTimes->reset(); }
  /// Scratch memory of library calls and kernels, in bytes.
  uint64_t workspaceBytes() const { return workspaces; }

private:
  struct Stream {
    CUstream stream = nullptr;
    bool used[2] = {false, false}; // by Part
    uint64_t workspaceBytes = 0;   // most of a call
    DeviceBlock scratch;           // of kernels
    DeviceBlock workspace;         // of calls
  };
  void makeStreams();
  void takeScratch();
  void takeWorkspaces();
  std::unique_ptr<Work> makeWork(size_t index, const KernelLibrary &host);
  std::unique_ptr<Work> makeLaunch(const Command &command);
  std::unique_ptr<Work> makeHostLaunch(size_t index, const KernelLibrary &host);
  std::unique_ptr<Work> makeCall(const Command &command);
  std::unique_ptr<Work> makePoison(size_t index, uint32_t buffer);
  CUdeviceptr address(const Operand &operand) const;

  std::pair<size_t, size_t> range(Part part) const;
  void enqueue(Part part, bool timed);
  void enqueueCommand(size_t index, bool timed);
  void capture(Part part);
  void runTimed(Part part);
  void runGraph(Part part);
  void checkOthers() const;
  double limitOf(double plannedSeconds) const;
  void touchAll(Part part);

  const Program &program;
  const uint32_t rank;
  const RankOptions options;
  const Cancel &cancel;
  Device device;
  struct Current { // makes the context current before the members below
    explicit Current(const Device &device) { device.use(); }
  } current;
  RankMemory arenas;
  Libraries libraries;
  std::unique_ptr<Module> module;
  std::unique_ptr<Communicators> communicators;
  std::unique_ptr<host::HostThreads> hostThreads;
  std::unique_ptr<CopyMaker> copies;
  HostFailure hostFailure;
  std::vector<Stream> streams;
  std::map<std::string, const DeviceKernel *> kernels;
  // By command.
  std::vector<std::unique_ptr<Work>> works;
  std::vector<std::vector<std::unique_ptr<Work>>> poisons; // of its releases
  std::vector<std::string> names;                          // for profilers
  std::vector<size_t> signaler; // by event: its command
  std::unique_ptr<StreamTimes> streamTimes;
  std::unique_ptr<Graph> graphs[2];   // by Part
  bool ranBefore[2] = {false, false}; // likewise
  size_t position = 0;                // the command being enqueued
  uint64_t workspaces = 0;
};

} // namespace zrt::cuda

#endif // ZERO_RT_CUDA_RANK_H
