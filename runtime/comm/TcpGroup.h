//===- TcpGroup.h - Processes that are connected by TCP -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A star: each process has one connection, to process 0, which passes on what
// all have to know. A thread of each process moves the bytes, says every now
// and then that the process lives, and notices who does not any more.
//
// The first failure wins, and process 0 decides which one that is. A connection
// that ends without a Bye is a failure: rank 2 was lost.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_TCPGROUP_H
#define ZERO_RT_COMM_TCPGROUP_H

#include "runtime/comm/Frame.h"
#include "runtime/comm/ProcessGroup.h"
#include "runtime/comm/Socket.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace zrt {

struct TcpGroupOptions {
  uint32_t rank = 0, size = 1;
  /// Size 0: to be found out.
  uint32_t localRank = 0, localSize = 0;
  std::string address = "127.0.0.1";
  uint16_t port = 0;
  /// Process 0: listens already; closed: process 0 listens on `port`.
  Socket listener;
  double connectSeconds = 60;
  /// A process that says nothing for so long is lost.
  double silenceSeconds = 65;
};

class TcpGroup final : public ProcessGroup {
public:
  /// Collective: returns when all processes are there. Throws Error, or
  /// PeerFailed where another process says why.
  static std::unique_ptr<TcpGroup> create(TcpGroupOptions options);
  /// Says Bye, if the run has not failed, and what is still to be sent.
  ~TcpGroup() override;

  uint32_t rank() const override { return options.rank; }
  uint32_t size() const override { return options.size; }
  uint32_t localRank() const override { return options.localRank; }
  uint32_t localSize() const override { return options.localSize; }
  bool oneMachine() const override { return isOneMachine; }

  std::vector<std::string> allGather(const std::string &bytes) override;
  std::string broadcast(const std::string &bytes) override;
  void barrier() override { allGather(""); }

  void setPlace(const std::string &place) override;
  void
  describePlaces(std::function<std::string(uint32_t rank)> function) override;
  void reportFailure(const std::string &what) override;
  void onPeerFailure(std::function<void()> abort) override;
  std::string failure() const override;
  int64_t failedRank() const override;
  bool printsFailure() override;

private:
  using Clock = std::chrono::steady_clock;
  using Bytes = std::shared_ptr<const std::string>;

  struct Failure {
    uint32_t rank;
    std::string text;
  };
  /// What came of a collective, in order.
  struct Received {
    FrameKind kind;
    uint64_t number;
    std::string bytes;
  };
  /// The other end of a connection; of a stranger the rank is not known yet.
  struct Peer {
    Socket socket;
    FrameReader reader{strangerLimit};
    std::deque<Bytes> outbox;
    size_t sent = 0; // of the first
    std::deque<Received> received;
    Clock::time_point lastHeard = Clock::now();
    std::string place;
    std::optional<uint32_t> rank;
    bool left = false; // said Bye
  };

  static constexpr uint64_t strangerLimit = 4096;
  static constexpr uint64_t peerLimit = uint64_t(1) << 36;
  static constexpr size_t maxStrangers = 64;

  explicit TcpGroup(TcpGroupOptions options);
  void begin();
  void awaitAll();
  [[noreturn]] void giveUp();

  // On the thread, with the mutex held (TcpGroupThread.cpp).
  void threadMain();
  void pollOnce();
  void acceptStrangers();
  void flush(Peer &peer);
  void readFrom(Peer &peer);
  void takeFrames(Peer &peer);
  void take(Peer &peer, Frame frame);
  void takeHello(Peer &peer, const std::string &payload);
  void takeWelcome(const std::string &payload);
  void refuse(Peer &peer, const std::string &why);
  void welcomeAll();
  void setMachines(const std::vector<std::string> &machines);
  void lose(Peer &peer, const std::string &how);
  void endStrangers();
  void sayAlive();
  void checkSilence();
  void callAbort();

  // With the mutex held.
  void decide(uint32_t rank, const std::string &text);
  void send(Peer &peer, FrameKind kind, std::string_view payload);
  void sendAll(FrameKind kind, std::string_view payload);
  void wake();
  void throwIfFailed() const;
  bool allSent() const;
  std::chrono::milliseconds lastWords() const;
  Received awaitFrom(std::unique_lock<std::mutex> &lock, Peer &peer,
                     FrameKind kind);

  TcpGroupOptions options;
  bool isOneMachine = false;
  std::string machine; // of this process

  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  /// Process 0: of all others, by rank - 1; empty where not come yet. Others:
  /// process 0.
  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<std::unique_ptr<Peer>> strangers;
  std::vector<std::string> machines; // by rank
  bool complete = false;             // all are there
  uint64_t collectives = 0;
  std::optional<Failure> decided, reported;
  bool zeroLost = false;
  std::string place;
  std::function<std::string(uint32_t rank)> describe; // see describePlaces
  bool placeChanged = false, ending = false;
  Clock::time_point lastAlive{}, lastTick = Clock::now();

  std::mutex abortMutex; // held while `abort` runs
  std::function<void()> abort;
  bool abortDue = false, aborted = false;

  Socket wakeSocket; // an eventfd
  std::thread thread;
};

} // namespace zrt

#endif // ZERO_RT_COMM_TCPGROUP_H
