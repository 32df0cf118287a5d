//===- TcpGroupThread.cpp - The thread of a TcpGroup ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves bytes, takes frames, and notices who is lost.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/TcpGroup.h"

#include <algorithm>
#include <poll.h>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>

using namespace zrt;
using namespace std::chrono_literals;

static constexpr auto tick = 100ms;
static constexpr auto aliveEvery = 500ms;
static constexpr auto strangerPatience = 10s;
/// A thread that did not run for so long has not heard others either.
static constexpr auto sleptLong = 3s;

void TcpGroup::threadMain() {
  Clock::time_point end;
  for (;;) {
    pollOnce();
    callAbort();
    std::lock_guard<std::mutex> lock(mutex);
    end = Clock::now() + lastWords();
    if (ending)
      break;
  }
  // What a peer has sent and nobody reads would destroy the last words to it.
  for (const std::unique_ptr<Peer> &peer : peers)
    if (peer && peer->socket.isOpen())
      shutdown(peer->socket.get(), SHUT_WR);
  for (const std::unique_ptr<Peer> &peer : peers) {
    char buffer[4096];
    while (peer && peer->socket.isOpen() && Clock::now() < end) {
      Moved some = readSome(peer->socket, buffer, sizeof(buffer));
      if (some.bytes == 0 || !some.problem.empty())
        break;
      pollfd waits = {peer->socket.get(), POLLIN, 0};
      if (some.bytes < 0)
        poll(&waits, 1, 50);
    }
  }
}

void TcpGroup::pollOnce() {
  std::vector<pollfd> waits;
  std::vector<Peer *> of;
  {
    std::lock_guard<std::mutex> lock(mutex);
    waits.push_back({wakeSocket.get(), POLLIN, 0});
    if (options.listener.isOpen() && strangers.size() < maxStrangers)
      waits.push_back({options.listener.get(), POLLIN, 0});
    size_t first = waits.size();
    for (const auto *list : {&peers, &strangers})
      for (const std::unique_ptr<Peer> &peer : *list)
        if (peer && peer->socket.isOpen()) {
          of.push_back(peer.get());
          short events = POLLIN;
          if (!peer->outbox.empty())
            events |= POLLOUT;
          waits.push_back({peer->socket.get(), events, 0});
        }
    of.insert(of.begin(), first, nullptr);
  }
  poll(waits.data(), waits.size(),
       int(std::chrono::milliseconds(tick).count()));
  std::lock_guard<std::mutex> lock(mutex);
  uint64_t woken;
  while (read(wakeSocket.get(), &woken, sizeof(woken)) > 0)
    continue;
  for (size_t i = 0; i < waits.size(); ++i) {
    if (!of[i] || !of[i]->socket.isOpen())
      continue;
    if (waits[i].revents & (POLLIN | POLLERR | POLLHUP))
      readFrom(*of[i]);
    if (of[i]->socket.isOpen())
      flush(*of[i]);
  }
  if (options.listener.isOpen())
    acceptStrangers();
  endStrangers();
  checkSilence();
  sayAlive();
}

void TcpGroup::acceptStrangers() {
  while (strangers.size() < maxStrangers) {
    auto stranger = std::make_unique<Peer>();
    stranger->socket = acceptFrom(options.listener);
    if (!stranger->socket.isOpen())
      return;
    strangers.push_back(std::move(stranger));
  }
}

void TcpGroup::flush(Peer &peer) {
  while (!peer.outbox.empty()) {
    const std::string &bytes = *peer.outbox.front();
    Moved some = writeSome(peer.socket, bytes.data() + peer.sent,
                           bytes.size() - peer.sent);
    if (some.bytes < 0)
      return; // full, or broken: reading will say so
    peer.sent += size_t(some.bytes);
    if (peer.sent < bytes.size())
      continue;
    peer.outbox.pop_front();
    peer.sent = 0;
  }
  changed.notify_all();
}

void TcpGroup::readFrom(Peer &peer) {
  static constexpr size_t size = size_t(256) << 10;
  static thread_local std::unique_ptr<char[]> buffer(new char[size]);
  // Not for ever: others have a word too.
  for (int round = 0; round < 16; ++round) {
    Moved some = readSome(peer.socket, buffer.get(), size);
    if (some.bytes > 0) {
      peer.lastHeard = Clock::now();
      peer.reader.add(buffer.get(), size_t(some.bytes));
      takeFrames(peer);
      if (!peer.socket.isOpen())
        return;
      continue;
    }
    if (some.bytes == 0)
      lose(peer, "its connection closed");
    else if (!some.problem.empty())
      lose(peer, "its connection broke: " + some.problem);
    return;
  }
}

void TcpGroup::takeFrames(Peer &peer) {
  bool valid = true;
  while (peer.socket.isOpen()) {
    std::optional<Frame> frame = peer.reader.next(valid);
    if (!valid)
      return lose(peer, "it sent bytes that are no message of zero-run");
    if (!frame)
      return;
    take(peer, std::move(*frame));
  }
}

/// A connection ends. A stranger's is no matter of the run.
void TcpGroup::lose(Peer &peer, const std::string &how) {
  peer.socket.close();
  peer.outbox.clear();
  changed.notify_all();
  if (!peer.rank || peer.left)
    return;
  // After a failure process 0 has spoken, and may go.
  if (*peer.rank == 0 && !decided) {
    zeroLost = true;
    if (reported) // which it may not have heard
      return decide(reported->rank, reported->text);
  }
  std::string text =
      "rank " + std::to_string(*peer.rank) + " was lost (" + how + ")";
  if (!complete)
    text += " before all processes were there";
  if (!peer.place.empty())
    text += " in " + peer.place;
  std::string more = describe ? describe(*peer.rank) : "";
  if (!more.empty())
    text += ", " + more;
  decide(*peer.rank, text);
}

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

void TcpGroup::take(Peer &peer, Frame frame) {
  if (!peer.rank) {
    if (frame.kind != FrameKind::Hello)
      return peer.socket.close();
    return takeHello(peer, frame.payload);
  }
  PayloadReader reader(frame.payload);
  switch (frame.kind) {
  case FrameKind::Hello:
    return;
  case FrameKind::Welcome:
    return takeWelcome(frame.payload);
  case FrameKind::Gather:
  case FrameKind::Broadcast:
  case FrameKind::Gathered: {
    uint64_t number = reader.number().value_or(0);
    std::string bytes;
    if (frame.kind == FrameKind::Gather)
      bytes = reader.text().value_or("");
    else if (frame.payload.size() >= 8)
      bytes = frame.payload.substr(8);
    peer.received.push_back({frame.kind, number, std::move(bytes)});
    return changed.notify_all();
  }
  case FrameKind::Failure: {
    uint64_t rank = reader.number().value_or(*peer.rank);
    return decide(options.rank ? uint32_t(rank) : *peer.rank,
                  reader.text().value_or("failed"));
  }
  case FrameKind::Alive:
    peer.place = frame.payload;
    return;
  case FrameKind::Bye:
    peer.left = true;
    return;
  }
}

/// A process comes to process 0. What contradicts is a failure of the run: the
/// others would wait for the right one in vain.
void TcpGroup::takeHello(Peer &peer, const std::string &payload) {
  PayloadReader reader(payload);
  std::optional<uint64_t> rank = reader.number(), size = reader.number();
  std::optional<std::string> name = reader.text();
  if (!name || !reader.atEnd())
    return peer.socket.close();
  std::string who = "a process came as rank " + std::to_string(*rank) + " of " +
                    std::to_string(*size);
  std::string here = ", to process 0 of " + std::to_string(options.size);
  if (*size != options.size)
    return refuse(peer, who + here +
                            ": give all the same --world-size "
                            "(WORLD_SIZE)");
  if (*rank == 0 || *rank >= options.size)
    return refuse(peer, who + here + ": there is no such rank to take");
  if (peers[*rank - 1])
    return refuse(peer, who + here + ": another one has that rank");
  peer.rank = uint32_t(*rank);
  peer.reader.setLimit(peerLimit);
  machines[*rank] = *name;
  for (std::unique_ptr<Peer> &stranger : strangers)
    if (stranger.get() == &peer)
      peers[*rank - 1] = std::move(stranger);
  for (const std::unique_ptr<Peer> &known : peers)
    if (!known)
      return;
  welcomeAll();
}

void TcpGroup::refuse(Peer &peer, const std::string &why) {
  decide(0, why);
  // It is none of the run's, but is told why.
  send(peer, FrameKind::Failure, PayloadWriter().number(0).text(why).bytes);
}

void TcpGroup::welcomeAll() {
  PayloadWriter all;
  for (const std::string &name : machines)
    all.text(name);
  options.listener.close();
  setMachines(machines);
  sendAll(FrameKind::Welcome, all.bytes);
}

void TcpGroup::takeWelcome(const std::string &payload) {
  PayloadReader reader(payload);
  for (std::string &name : machines)
    name = reader.text().value_or("");
  setMachines(machines);
}

void TcpGroup::setMachines(const std::vector<std::string> &names) {
  uint32_t here = 0, before = 0;
  for (uint32_t rank = 0; rank < options.size; ++rank) {
    bool same = names[rank] == machine;
    here += same;
    before += same && rank < options.rank;
  }
  isOneMachine = here == options.size;
  if (!options.localSize) {
    options.localSize = here;
    options.localRank = before;
  }
  complete = true;
  changed.notify_all();
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

/// Removes strangers who are gone, or say nothing.
void TcpGroup::endStrangers() {
  auto gone = [&](const std::unique_ptr<Peer> &stranger) {
    return !stranger || !stranger->socket.isOpen() || complete ||
           Clock::now() - stranger->lastHeard > strangerPatience;
  };
  strangers.erase(std::remove_if(strangers.begin(), strangers.end(), gone),
                  strangers.end());
}

void TcpGroup::sayAlive() {
  auto now = Clock::now();
  if (!complete || (!placeChanged && now - lastAlive < aliveEvery))
    return;
  lastAlive = now;
  placeChanged = false;
  for (const std::unique_ptr<Peer> &peer : peers)
    // What is still to be sent says it too.
    if (peer && peer->socket.isOpen() && peer->outbox.empty() && !peer->left) {
      send(*peer, FrameKind::Alive, place);
      flush(*peer);
    }
}

void TcpGroup::checkSilence() {
  auto now = Clock::now();
  bool slept = now - lastTick > sleptLong;
  lastTick = now;
  std::chrono::duration<double> limit(options.silenceSeconds);
  for (const std::unique_ptr<Peer> &peer : peers) {
    if (!peer || !peer->socket.isOpen() || peer->left)
      continue;
    if (slept || !complete)
      peer->lastHeard = now;
    if (now - peer->lastHeard > limit) {
      std::ostringstream how;
      how << "no sign of life for " << options.silenceSeconds << " s";
      lose(*peer, how.str());
    }
  }
}

void TcpGroup::callAbort() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!abortDue)
      return;
  }
  std::lock_guard<std::mutex> lock(abortMutex);
  if (abort && !aborted) {
    aborted = true;
    abort();
  }
}
