//===- Session.h - A program and its ranks on GPUs --------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ranks of this process: all of the program, each on a device of its own,
// or in a group the one of the process's number. What belongs to ranks of other
// processes is read by broadcasts through NCCL.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CUDA_SESSION_H
#define ZERO_RT_CUDA_SESSION_H

#include "runtime/comm/Group.h"
#include "runtime/core/Backend.h"
#include "runtime/core/KernelLibrary.h"
#include "runtime/cuda/Rank.h"
#include "runtime/cuda/RankThreads.h"

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace zrt::cuda {

/// What is sent at a time of what another process holds.
constexpr uint64_t stagingPiece = 16 << 20;

class Session : public Backend {
public:
  /// Throws Error or IoError.
  Session(std::shared_ptr<const Program> loaded,
          const zrt_session_options &options);
  ~Session() override;

  void setParameter(uint32_t index, const void *data, uint64_t bytes) override;
  void getParameter(uint32_t index, void *data, uint64_t bytes) const override;
  void readChunk(uint32_t index, uint32_t rank, uint64_t offset, void *data,
                 uint64_t bytes) const override;
  void readLocalChunk(uint32_t index, uint32_t rank, uint64_t offset,
                      void *data, uint64_t bytes) const override;
  void writeChunk(uint32_t index, uint32_t rank, uint64_t offset,
                  const void *data, uint64_t bytes) override;
  void setInput(uint32_t index, int rank, const void *data,
                uint64_t bytes) override;
  void readOutput(uint32_t index, double *values,
                  uint64_t count) const override;
  void readOutputOfRank(uint32_t index, uint32_t rank, void *data,
                        uint64_t bytes) const override;
  void accumulate() override;
  void step() override;
  const std::string &diskAccess() const override { return disk; }
  zrt_counters counters() const override;
  void resetCounters() override;
  void commandMs(uint32_t rank, double *ms, uint64_t count) const override;
  void spans(uint32_t rank, zrt_span *spans, uint64_t count) const override;

private:
  void makeRanks(const zrt_session_options &options);
  void connectRanks();
  void freeStaging() noexcept;
  /// Calls `body` on all ranks' threads. Where one throws, the others are
  /// ended; throws the first one's error, with rank and command.
  void onRanks(const std::function<void(uint32_t place)> &body) const;
  void recordFailure(uint32_t rank, const std::exception_ptr &thrown) const;
  [[noreturn]] void failWithPeer() const;
  std::string rankText(uint32_t rank) const;
  std::string commandText(size_t index) const;

  /// The rank if it is of this process, else null.
  Rank *localRank(uint32_t rank) const;
  void checkRank(const std::string &what, uint32_t rank) const;
  /// Bytes of a rank's buffer; in a group collective, and then in all
  /// processes.
  void fetch(uint32_t rank, uint32_t buffer, uint64_t offset, void *data,
             uint64_t bytes) const;
  std::vector<uint8_t> contents(uint32_t rank, uint32_t buffer,
                                uint64_t bytes) const;
  template <typename T>
  void averageRanks(const Parameter &parameter, T *out) const;
  void fillInitialValues();
  void clearParameter(uint32_t index);
  void checkChunk(uint32_t index, uint32_t rank, uint64_t offset,
                  uint64_t bytes) const;
  void checkInputsSet(Part part) const;
  void run(Part part);

  void checkState() const;
  void checkZeros(const std::string &what, const std::string &when,
                  uint32_t buffer, uint32_t rank, uint64_t from) const;
  void checkReplicas(const std::string &what, uint32_t buffer, uint64_t bytes,
                     uint32_t shards) const;
  void checkRoom(uint64_t count) const;
  const Rank &timedRank(uint32_t rank, uint64_t count) const;

  std::shared_ptr<const Program> program;
  zrt_group *const group; // null: all ranks are here
  const bool check;
  RankOptions rankOptions;
  KernelLibrary hostKernels;
  mutable Cancel cancel;
  std::atomic<bool> peerFailed{false};
  uint32_t firstRank = 0;                   // of this process
  std::vector<std::unique_ptr<Rank>> ranks; // of this process, ascending
  std::unique_ptr<RankThreads> threads;
  mutable std::mutex failureMutex;
  mutable std::exception_ptr failure; // the first of the ranks here
  DeviceBlock staging;                // for what other processes hold
  std::string disk;                   // how it is reached
  std::vector<bool> parameterSet;
  std::vector<bool> inputSet;            // [input * ranks here + rank here]
  uint64_t steps = 0, accumulations = 0; // since the counters were reset
  double stepMs = 0;
  bool everStepped = false;
  uint32_t accumulated = 0;     // micro-batches of the step to come
  int64_t microBatchesTime = 0; // of the last step's, in nanoseconds
  std::string error;            // the first; stays
};

} // namespace zrt::cuda

#endif // ZERO_RT_CUDA_SESSION_H
