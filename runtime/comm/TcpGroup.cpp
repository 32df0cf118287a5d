//===- TcpGroup.cpp - Processes that are connected by TCP -----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What callers use; what the thread does is in TcpGroupThread.cpp.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/TcpGroup.h"

#include <fstream>
#include <sstream>
#include <sys/eventfd.h>
#include <unistd.h>

using namespace zrt;
using namespace std::chrono_literals;

/// Processes with the same text share memory and loopback addresses.
static std::string machineName() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char name[256] = {}, space[64] = {};
  gethostname(name, sizeof(name) - 1);
  if (readlink("/proc/self/ns/net", space, sizeof(space) - 1) < 0)
    space[0] = 0;
  return boot + " " + name + " " + space;
}

static bool isLoopback(const std::string &address) {
  return address == "localhost" || address == "::1" ||
         address.compare(0, 4, "127.") == 0;
}

TcpGroup::TcpGroup(TcpGroupOptions given)
    : options(std::move(given)), machine(machineName()), machines(options.size),
      wakeSocket(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wakeSocket.isOpen())
    fail(ZRT_ERROR_IO, "no eventfd can be made");
}

std::unique_ptr<TcpGroup> TcpGroup::create(TcpGroupOptions options) {
  if (!options.size || options.rank >= options.size)
    fail(ZRT_ERROR_ARGUMENT, "rank ", options.rank, " of ", options.size,
         " processes does not exist");
  std::unique_ptr<TcpGroup> group(new TcpGroup(std::move(options)));
  group->begin();
  group->awaitAll();
  return group;
}

void TcpGroup::begin() {
  if (options.rank == 0) {
    peers.resize(options.size - 1);
    machines[0] = machine;
    if (options.size == 1)
      welcomeAll();
    else if (!options.listener.isOpen())
      options.listener = listenOn(options.port, isLoopback(options.address));
    if (options.listener.isOpen())
      prepareSocket(options.listener);
  } else {
    auto zero = std::make_unique<Peer>();
    zero->socket =
        connectTo(options.address, options.port, options.connectSeconds);
    zero->rank = 0;
    zero->reader.setLimit(peerLimit);
    zero->lastHeard = Clock::now();
    peers.push_back(std::move(zero));
    send(*peers[0], FrameKind::Hello,
         PayloadWriter()
             .number(options.rank)
             .number(options.size)
             .text(machine)
             .bytes);
  }
  thread = std::thread([this] { threadMain(); });
}

/// Until all are there. The others wait longer than process 0: it knows best
/// who is missing.
void TcpGroup::awaitAll() {
  double seconds = options.connectSeconds * (options.rank ? 2 : 1);
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait_for(lock, std::chrono::duration<double>(seconds),
                   [&] { return complete || decided; });
  if (complete)
    return;
  if (!decided)
    giveUp();
  if (decided->rank == options.rank)
    throw Error(ZRT_ERROR_IO, decided->text);
  throwIfFailed();
}

void TcpGroup::giveUp() {
  std::ostringstream text;
  if (options.rank) {
    text << "process 0 at " << options.address << ":" << options.port
         << " does not begin: others are missing";
    throw Error(ZRT_ERROR_IO, text.str());
  }
  std::string missing;
  uint32_t come = 1;
  for (uint32_t rank = 1; rank < options.size; ++rank) {
    if (peers[rank - 1])
      ++come;
    else
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  }
  text << come << " of " << options.size << " processes came to port "
       << portOf(options.listener) << " of process 0 within "
       << options.connectSeconds << " s; missing: rank " << missing;
  decide(0, text.str());
  throw Error(ZRT_ERROR_IO, text.str());
}

/// How long the end of this process waits for its last words to be taken: a
/// process that has failed may be one that does not listen either.
std::chrono::milliseconds TcpGroup::lastWords() const {
  return decided || reported ? 500ms : 2000ms;
}

TcpGroup::~TcpGroup() {
  if (!thread.joinable())
    return;
  {
    std::unique_lock<std::mutex> lock(mutex);
    if (complete && !decided && !reported)
      sendAll(FrameKind::Bye, "");
    changed.wait_for(lock, lastWords(), [&] { return allSent(); });
    ending = true;
    wake();
  }
  thread.join();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

void TcpGroup::throwIfFailed() const {
  if (decided)
    throw PeerFailed(decided->text);
  if (reported)
    throw PeerFailed(reported->text);
}

/// The next part of a collective that comes from a peer.
TcpGroup::Received TcpGroup::awaitFrom(std::unique_lock<std::mutex> &lock,
                                       Peer &peer, FrameKind kind) {
  changed.wait(lock, [&] {
    return !peer.received.empty() || decided || reported ||
           !peer.socket.isOpen();
  });
  throwIfFailed();
  if (peer.received.empty())
    fail(ZRT_ERROR_EXECUTION, "rank ", *peer.rank,
         " has left the run, and this process waits for it");
  Received next = std::move(peer.received.front());
  peer.received.pop_front();
  if (next.kind == kind && next.number == collectives)
    return next;
  // A defect of the caller, which would exchange wrong bytes in silence.
  decide(options.rank, "rank " + std::to_string(options.rank) + ": rank " +
                           std::to_string(*peer.rank) +
                           " is at another collective of the processes");
  throw Error(ZRT_ERROR_EXECUTION, decided->text);
}

std::vector<std::string> TcpGroup::allGather(const std::string &bytes) {
  std::unique_lock<std::mutex> lock(mutex);
  throwIfFailed();
  ++collectives;
  std::vector<std::string> all(options.size);
  if (options.rank == 0) {
    all[0] = bytes;
    PayloadWriter answer;
    answer.number(collectives).text(bytes);
    for (uint32_t rank = 1; rank < options.size; ++rank) {
      all[rank] = awaitFrom(lock, *peers[rank - 1], FrameKind::Gather).bytes;
      answer.text(all[rank]);
    }
    sendAll(FrameKind::Gathered, answer.bytes);
    return all;
  }
  send(*peers[0], FrameKind::Gather,
       PayloadWriter().number(collectives).text(bytes).bytes);
  Received answer = awaitFrom(lock, *peers[0], FrameKind::Gathered);
  PayloadReader reader(answer.bytes);
  for (std::string &part : all)
    part = reader.text().value_or("");
  return all;
}

std::string TcpGroup::broadcast(const std::string &bytes) {
  std::unique_lock<std::mutex> lock(mutex);
  throwIfFailed();
  ++collectives;
  if (options.rank == 0) {
    sendAll(FrameKind::Broadcast,
            PayloadWriter().number(collectives).text(bytes).bytes);
    return bytes;
  }
  Received answer = awaitFrom(lock, *peers[0], FrameKind::Broadcast);
  return PayloadReader(answer.bytes).text().value_or("");
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

void TcpGroup::setPlace(const std::string &text) {
  std::lock_guard<std::mutex> lock(mutex);
  place = text;
  placeChanged = true;
}

void TcpGroup::describePlaces(
    std::function<std::string(uint32_t rank)> function) {
  std::lock_guard<std::mutex> lock(mutex);
  describe = std::move(function);
}

/// A message with its rank, once: "rank 2, ..." may stand in it already.
static std::string withRank(uint32_t rank, const std::string &text) {
  std::string name = "rank " + std::to_string(rank);
  for (const std::string &before : {std::string(), std::string(": ")})
    for (char after : {',', ':', ' '}) {
      size_t at = text.find(before + name + after);
      if (at != text.npos && (at == 0 || !before.empty()))
        return text;
    }
  return name + ": " + text;
}

void TcpGroup::reportFailure(const std::string &what) {
  std::lock_guard<std::mutex> lock(mutex);
  if (decided || reported)
    return;
  reported = {options.rank, withRank(options.rank, what)};
  if (options.rank == 0)
    decide(0, reported->text);
  else
    sendAll(FrameKind::Failure,
            PayloadWriter().number(options.rank).text(reported->text).bytes);
  changed.notify_all();
}

void TcpGroup::onPeerFailure(std::function<void()> function) {
  std::lock_guard<std::mutex> lock(abortMutex);
  abort = std::move(function);
  aborted = false;
  std::lock_guard<std::mutex> state(mutex);
  if (abortDue)
    wake();
}

std::string TcpGroup::failure() const {
  std::lock_guard<std::mutex> lock(mutex);
  return decided ? decided->text : reported ? reported->text : "";
}

int64_t TcpGroup::failedRank() const {
  std::lock_guard<std::mutex> lock(mutex);
  return decided ? decided->rank : reported ? int64_t(reported->rank) : -1;
}

bool TcpGroup::printsFailure() {
  if (options.rank == 0)
    return true;
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait_for(lock, 2s, [&] { return decided.has_value(); });
  bool zeroAnswers = decided && !zeroLost;
  return !zeroAnswers && options.rank == 1;
}

/// The first one stays. Process 0 tells all.
void TcpGroup::decide(uint32_t rank, const std::string &text) {
  if (decided)
    return;
  decided = {rank, text};
  abortDue = rank != options.rank;
  if (options.rank == 0 || rank == options.rank)
    sendAll(FrameKind::Failure, PayloadWriter().number(rank).text(text).bytes);
  changed.notify_all();
  wake();
}

//===----------------------------------------------------------------------===//
// Sending
//===----------------------------------------------------------------------===//

void TcpGroup::wake() {
  uint64_t one = 1;
  // A full counter has woken it already.
  if (write(wakeSocket.get(), &one, sizeof(one)) < 0)
    return;
}

void TcpGroup::send(Peer &peer, FrameKind kind, std::string_view payload) {
  peer.outbox.push_back(
      std::make_shared<const std::string>(encodeFrame(kind, payload)));
  wake();
}

void TcpGroup::sendAll(FrameKind kind, std::string_view payload) {
  Bytes bytes = std::make_shared<const std::string>(encodeFrame(kind, payload));
  for (const std::unique_ptr<Peer> &peer : peers)
    if (peer && peer->socket.isOpen())
      peer->outbox.push_back(bytes);
  wake();
}

bool TcpGroup::allSent() const {
  for (const auto *list : {&peers, &strangers})
    for (const std::unique_ptr<Peer> &peer : *list)
      if (peer && peer->socket.isOpen() && !peer->outbox.empty())
        return false;
  return true;
}
