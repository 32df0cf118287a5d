//===- TcpGroupTest.cpp - Processes connected by TCP ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads stand for processes: each has its own group and its own connections.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/TcpGroup.h"

#include "gtest/gtest.h"
#include <atomic>
#include <sys/socket.h>

using namespace zrt;
using namespace std::chrono_literals;

using Clock = std::chrono::steady_clock;

namespace {
/// A port that process 0 listens on already, so that no other test has it.
class Processes {
public:
  explicit Processes(uint32_t size) : size(size), listener(listenOn(0, true)) {
    port = portOf(listener);
  }

  TcpGroupOptions options(uint32_t rank) {
    TcpGroupOptions options;
    options.rank = rank;
    options.size = size;
    options.port = port;
    options.connectSeconds = 20;
    if (rank == 0)
      options.listener = std::move(listener);
    return options;
  }

  /// Runs `body` as each process.
  void asAll(const std::function<void(TcpGroup &)> &body) {
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < size; ++rank)
      threads.emplace_back([&, own = options(rank)]() mutable {
        auto group = TcpGroup::create(std::move(own));
        body(*group);
      });
    for (std::thread &thread : threads)
      thread.join();
  }

  uint32_t size;
  Socket listener;
  uint16_t port;
};
} // namespace

/// The text of the PeerFailed that `body` throws.
static std::string peerFailure(const std::function<void()> &body) {
  try {
    body();
  } catch (const PeerFailed &failed) {
    EXPECT_EQ(failed.code(), ZRT_ERROR_PEER);
    return failed.what();
  }
  return "no failure";
}

TEST(TcpGroup, GathersAndBroadcasts) {
  Processes run(4);
  run.asAll([](TcpGroup &group) {
    for (int round = 0; round < 20; ++round) {
      std::string own = std::to_string(group.rank() * 100 + uint32_t(round));
      auto all = group.allGather(own);
      ASSERT_EQ(all.size(), 4u);
      for (uint32_t rank = 0; rank < 4; ++rank)
        EXPECT_EQ(all[rank], std::to_string(rank * 100 + uint32_t(round)));
      std::string said = group.broadcast("round " + own);
      EXPECT_EQ(said, "round " + std::to_string(round));
    }
    group.barrier();
    EXPECT_EQ(group.failure(), "");
    EXPECT_EQ(group.failedRank(), -1);
  });
}

TEST(TcpGroup, KnowsTheMachine) {
  Processes run(3);
  run.asAll([](TcpGroup &group) {
    EXPECT_TRUE(group.oneMachine());
    EXPECT_EQ(group.localSize(), 3u);
    EXPECT_EQ(group.localRank(), group.rank());
  });
}

TEST(TcpGroup, OneProcessNeedsNobody) {
  TcpGroupOptions options;
  auto group = TcpGroup::create(std::move(options));
  EXPECT_EQ(group->allGather("x"), std::vector<std::string>{"x"});
  EXPECT_EQ(group->broadcast("y"), "y");
  EXPECT_EQ(group->localSize(), 1u);
}

TEST(TcpGroup, BroadcastsMegabytes) {
  Processes run(3);
  run.asAll([](TcpGroup &group) {
    std::string big(size_t(20) << 20, 'p');
    big[12345678] = 'q';
    EXPECT_EQ(group.broadcast(group.rank() ? "" : big), big);
  });
}

TEST(TcpGroup, FirstFailureWinsAndReachesAll) {
  Processes run(4);
  std::atomic<int> aborts{0}, prints{0};
  run.asAll([&](TcpGroup &group) {
    group.onPeerFailure([&] { ++aborts; });
    if (group.rank() == 2)
      group.reportFailure("step 3: the disk is full");
    std::string why = peerFailure([&] {
      for (;;)
        group.barrier();
    });
    EXPECT_EQ(why, "rank 2: step 3: the disk is full");
    // Later ones change nothing.
    if (group.rank() == 1)
      group.reportFailure("something else");
    prints += group.printsFailure();
    EXPECT_EQ(group.failure(), why);
    EXPECT_EQ(group.failedRank(), 2);
    std::this_thread::sleep_for(300ms);
    group.onPeerFailure(nullptr);
  });
  EXPECT_EQ(aborts, 3); // not in the one that failed
  EXPECT_EQ(prints, 1);
}

TEST(TcpGroup, MessagesNameTheRankOnce) {
  Processes run(2);
  run.asAll([&](TcpGroup &group) {
    if (group.rank() == 1)
      group.reportFailure("m.zplan: step 3: rank 1, layer 2: failed");
    EXPECT_EQ(peerFailure([&] {
                for (;;)
                  group.barrier();
              }),
              "m.zplan: step 3: rank 1, layer 2: failed");
  });
}

/// A process that says the right Hello and goes without a Bye once `mayGo`.
static void comeAndGo(uint16_t port, uint32_t rank, uint32_t size,
                      const std::string &place,
                      const std::function<bool()> &mayGo) {
  Socket socket = connectTo("127.0.0.1", port, 10);
  std::string bytes =
      encodeFrame(
          FrameKind::Hello,
          PayloadWriter().number(rank).number(size).text("elsewhere").bytes) +
      encodeFrame(FrameKind::Alive, place);
  EXPECT_EQ(writeSome(socket, bytes.data(), bytes.size()).bytes,
            long(bytes.size()));
  while (!mayGo())
    std::this_thread::sleep_for(1ms);
}

TEST(TcpGroup, ConnectionWithoutByeIsALostRank) {
  Processes run(3);
  std::atomic<int> ready{0};
  std::thread lost([&] {
    comeAndGo(run.port, 2, 3, "step 17", [&] { return ready == 2; });
  });
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, own = run.options(rank)]() mutable {
      auto group = TcpGroup::create(std::move(own));
      EXPECT_FALSE(group->oneMachine());
      EXPECT_EQ(group->localSize(), 2u);
      group->describePlaces(
          [](uint32_t rank) { return "at command " + std::to_string(rank); });
      ++ready;
      std::string why = peerFailure([&] { group->barrier(); });
      EXPECT_EQ(why.find("rank 2 was lost (its connection"), 0u) << why;
      EXPECT_NE(why.find(") in step 17, at command 2"), std::string::npos)
          << why;
      EXPECT_EQ(group->printsFailure(), group->rank() == 0);
    });
  for (std::thread &thread : threads)
    thread.join();
  lost.join();
}

TEST(TcpGroup, RankOneSpeaksForALostProcessZero) {
  // A process 0 that welcomes two others and is gone.
  Socket listener = listenOn(0, true);
  uint16_t port = portOf(listener);
  std::vector<std::thread> threads;
  for (uint32_t rank : {1, 2})
    threads.emplace_back([=] {
      TcpGroupOptions options;
      options.rank = rank;
      options.size = 3;
      options.port = port;
      auto group = TcpGroup::create(std::move(options));
      EXPECT_EQ(peerFailure([&] { group->barrier(); }),
                "rank 0 was lost (its connection closed)");
      EXPECT_EQ(group->printsFailure(), rank == 1);
    });
  std::string welcome = encodeFrame(
      FrameKind::Welcome, PayloadWriter().text("a").text("b").text("c").bytes);
  std::vector<Socket> accepted;
  while (accepted.size() < 2) {
    Socket next = acceptFrom(listener);
    if (!next.isOpen()) {
      std::this_thread::sleep_for(1ms);
      continue;
    }
    EXPECT_EQ(writeSome(next, welcome.data(), welcome.size()).bytes,
              long(welcome.size()));
    accepted.push_back(std::move(next));
  }
  std::this_thread::sleep_for(200ms);
  for (Socket &socket : accepted) {
    // All that has come is read: else the end would be a reset.
    char buffer[4096];
    while (readSome(socket, buffer, sizeof(buffer)).bytes > 0)
      continue;
    shutdown(socket.get(), SHUT_WR);
  }
  for (std::thread &thread : threads)
    thread.join();
}

TEST(TcpGroup, SilentRankIsLost) {
  Processes run(2);
  std::atomic<bool> over{false};
  std::thread silent([&] {
    Socket socket = connectTo("127.0.0.1", run.port, 10);
    std::string bytes = encodeFrame(
        FrameKind::Hello,
        PayloadWriter().number(1).number(2).text("elsewhere").bytes);
    writeSome(socket, bytes.data(), bytes.size());
    while (!over)
      std::this_thread::sleep_for(5ms);
  });
  TcpGroupOptions options = run.options(0);
  options.silenceSeconds = 0.3;
  auto group = TcpGroup::create(std::move(options));
  EXPECT_EQ(peerFailure([&] { group->barrier(); }),
            "rank 1 was lost (no sign of life for 0.3 s)");
  over = true;
  silent.join();
}

TEST(TcpGroup, StrangersDoNotDisturb) {
  Processes run(2);
  std::vector<Socket> strangers;
  std::string noise[] = {"GET / HTTP/1.1\r\n\r\n", "ZRT1", "",
                         encodeFrame(FrameKind::Gather, "x"),
                         encodeFrame(FrameKind::Hello, "short")};
  for (int round = 0; round < 20; ++round)
    for (const std::string &bytes : noise) {
      strangers.push_back(connectTo("127.0.0.1", run.port, 10));
      writeSome(strangers.back(), bytes.data(), bytes.size());
    }
  strangers.clear();
  run.asAll(
      [](TcpGroup &group) { EXPECT_EQ(group.allGather("x").size(), 2u); });
}

/// What process 0 of two says when a process comes with this Hello.
static std::string refusal(uint64_t rank, uint64_t size) {
  Processes run(3);
  std::thread wrong([&, port = run.port] {
    Socket socket = connectTo("127.0.0.1", port, 10);
    std::string bytes =
        encodeFrame(FrameKind::Hello,
                    PayloadWriter().number(rank).number(size).text("m").bytes);
    writeSome(socket, bytes.data(), bytes.size());
    char buffer[4096];
    while (readSome(socket, buffer, sizeof(buffer)).bytes == -1)
      std::this_thread::sleep_for(1ms);
  });
  std::string text;
  try {
    TcpGroup::create(run.options(0));
  } catch (const Error &error) {
    text = error.what();
  }
  wrong.join();
  return text;
}

TEST(TcpGroup, WrongSizeOrRankIsRefused) {
  EXPECT_EQ(refusal(1, 8),
            "a process came as rank 1 of 8, to process 0 of 3: give all the "
            "same --world-size (WORLD_SIZE)");
  EXPECT_EQ(refusal(0, 3), "a process came as rank 0 of 3, to process 0 of 3: "
                           "there is no such rank to take");
}

TEST(TcpGroup, SameRankTwiceIsRefused) {
  Processes run(3);
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int twice = 0; twice < 2; ++twice)
    threads.emplace_back([&, own = run.options(1)]() mutable {
      EXPECT_EQ(peerFailure([&] { TcpGroup::create(std::move(own)); }),
                "a process came as rank 1 of 3, to process 0 of 3: another one "
                "has that rank");
      ++failed;
    });
  EXPECT_THROW(TcpGroup::create(run.options(0)), Error);
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failed, 2);
}

TEST(TcpGroup, MissingRanksAreNamed) {
  Processes run(4);
  std::thread one([own = run.options(1)]() mutable {
    EXPECT_NE(peerFailure([&] { TcpGroup::create(std::move(own)); }),
              "no failure");
  });
  TcpGroupOptions zero = run.options(0);
  zero.connectSeconds = 0.5;
  std::string text;
  try {
    TcpGroup::create(std::move(zero));
  } catch (const Error &error) {
    text = error.what();
  }
  EXPECT_EQ(text, "2 of 4 processes came to port " + std::to_string(run.port) +
                      " of process 0 within 0.5 s; missing: rank 2, 3");
  one.join();
}

TEST(TcpGroup, NobodyListens) {
  uint16_t port = portOf(listenOn(0, true));
  TcpGroupOptions options;
  options.rank = 1;
  options.size = 2;
  options.port = port;
  options.connectSeconds = 0.2;
  std::string text;
  try {
    TcpGroup::create(std::move(options));
  } catch (const Error &error) {
    text = error.what();
  }
  EXPECT_EQ(text, "process 0 is not at 127.0.0.1:" + std::to_string(port) +
                      " (Connection refused, tried for 0.2 s); is it running, "
                      "and do --master-addr and --master-port (MASTER_ADDR, "
                      "MASTER_PORT) say where?");
}

TEST(TcpGroup, PortInUse) {
  Socket taken = listenOn(0, true);
  TcpGroupOptions options;
  options.size = 2;
  options.port = portOf(taken);
  std::string text;
  try {
    TcpGroup::create(std::move(options));
  } catch (const Error &error) {
    text = error.what();
  }
  EXPECT_EQ(text, "process 0 cannot listen on port " +
                      std::to_string(portOf(taken)) +
                      ": Address already in use; give --master-port "
                      "(MASTER_PORT) another");
}

TEST(TcpGroup, DifferentCollectivesAreNoticed) {
  Processes run(2);
  run.asAll([](TcpGroup &group) {
    EXPECT_THROW(
        {
          if (group.rank())
            group.allGather("");
          else
            group.broadcast("");
          group.barrier();
          group.barrier();
        },
        Error);
  });
}

TEST(TcpGroup, LeavingIsNoFailure) {
  Processes run(2);
  run.asAll([](TcpGroup &group) {
    group.barrier();
    if (group.rank() == 0)
      return;
    // Process 0 leaves meanwhile.
    std::this_thread::sleep_for(300ms);
    EXPECT_EQ(group.failure(), "");
    EXPECT_THROW(group.barrier(), Error);
  });
}
