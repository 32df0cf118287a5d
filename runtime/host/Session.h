//===- Session.h - A program and its ranks on the host --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank is one thread for each stream that has commands; they live as long as
// the session. Between steps they sleep and the caller's thread may touch all
// memory; the mutex orders the two.
//
// In a group the session has one rank, that of its process; what concerns
// others goes through the transport. Failures of other processes come from the
// group and end all waits.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_HOST_SESSION_H
#define ZERO_RT_HOST_SESSION_H

#include "runtime/comm/Barrier.h"
#include "runtime/comm/Transport.h"
#include "runtime/core/Backend.h"
#include "runtime/core/KernelLibrary.h"
#include "runtime/core/Memory.h"
#include "runtime/core/Program.h"
#include "runtime/host/FiniteCheck.h"
#include "runtime/host/LibraryCall.h"
#include "runtime/host/Rank.h"
#include "zero-rt/zero-rt.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace zrt::host {

class Session : public Backend {
public:
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

  /// How the disk is reached; empty: the program keeps nothing there.
  const std::string &diskAccess() const override { return disk; }

  zrt_counters counters() const override;
  void resetCounters() override;
  void commandMs(uint32_t rank, double *ms, uint64_t count) const override;
  void spans(uint32_t rank, zrt_span *spans, uint64_t count) const override;

private:
  void prepareCalls(uint32_t threadCount);
  std::vector<uint32_t> usedStreams() const;
  void makeCollectives(uint32_t threadCount);
  uint8_t *addressOf(uint32_t rank, uint32_t buffer) const;
  std::vector<CollectivePiece>
  piecesOf(const Command &command, const std::vector<uint32_t> &group) const;
  std::deque<Barrier> &barriersOf(const Command &command, uint32_t threadCount);
  void joinGroup(RankOptions &rankOptions);
  std::unique_ptr<CollectiveCall>
  makeCollective(const Command &command, const std::vector<uint32_t> &group,
                 uint32_t number, uint32_t threadCount);
  void startThreads(const std::vector<uint32_t> &streams,
                    uint32_t libraryThreads);
  void fillInitialValues();
  void clearParameter(uint32_t index);
  void checkChunk(uint32_t index, uint32_t rank, uint64_t offset,
                  uint64_t bytes) const;
  void checkInputsSet(Part part) const;
  void run(Part part);
  void checkState() const;
  bool isSkipped() const;
  void checkPadding(const Parameter &parameter) const;
  void checkZero(const Parameter &parameter) const;
  uint64_t firstNonZero(const Rank &rank, uint32_t buffer, uint64_t from) const;
  void checkReplicas(const std::string &what, uint32_t buffer, uint64_t bytes,
                     uint32_t shards) const;
  Rank *localRank(uint32_t rank) const;
  const Rank &rankAt(uint32_t rank) const;
  template <typename Body>
  void exchange(Body body) const;
  std::vector<std::string> allGather(const std::string &own) const;
  void readHeld(uint32_t buffer, uint32_t rank, uint64_t offset, uint8_t *to,
                uint64_t bytes) const;
  template <typename T>
  void averageRanks(const Parameter &parameter, T *out) const;
  std::vector<double> numbersOf(const Output &output) const;
  std::vector<std::string> hashesOf(uint32_t buffer, uint64_t bytes) const;
  void checkRoom(uint64_t count) const;
  void endThreads();
  void runStream(uint32_t rank, uint32_t stream);
  void threadMain(uint32_t rank, uint32_t stream, uint32_t libraryThreads);
  void recordError(const std::string &message);
  void abortWaits();
  [[noreturn]] void failWithPeer() const;

  std::shared_ptr<const Program> program;
  zrt_group *const group; // null: all ranks are here
  std::unique_ptr<Transport> transport;
  bool check, poison;
  std::string disk; // how it is reached
  KernelLibrary kernels;
  dnnl::engine engine;
  /// A communicator: the groups' barriers of the collectives of one stream over
  /// the same axes.
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, std::deque<Barrier>>
      barriers;
  /// By command; empty where the command is no call.
  std::vector<std::shared_ptr<const LibraryCall>> calls;
  uint64_t scratchBytes = 0;
  /// By command; empty where the command is no collective.
  std::vector<std::unique_ptr<GroupedCollective>> collectives;
  std::vector<std::unique_ptr<Rank>> ranks; // of this process
  std::unique_ptr<FiniteCheck> finite;      // null: not asked for
  std::vector<bool> parameterSet;
  std::vector<bool> inputSet; // [input * ranks of this process + rank]
  uint64_t steps = 0, accumulations = 0; // since the counters were reset
  double stepMs = 0;
  bool everStepped = false;
  uint32_t accumulated = 0;     // micro-batches of the step to come
  int64_t microBatchesTime = 0; // of the last step's, in nanoseconds

  // The caller starts a part of the program by its number and waits until no
  // rank runs.
  std::mutex mutex;
  std::condition_variable partBegins, partEnds;
  uint64_t partNumber = 0;
  Part part = Part::Step;
  Clock::time_point partBegin;
  uint32_t running = 0;
  bool ending = false;
  std::string error; // the first; stays
  std::atomic<bool> peerFailed{false};
  std::vector<std::thread> threads;
};

} // namespace zrt::host

#endif // ZERO_RT_HOST_SESSION_H
