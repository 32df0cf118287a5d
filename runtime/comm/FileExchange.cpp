//===- FileExchange.cpp - Open files from process to process --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each process listens at an abstract address that it draws by chance and tells
// the others through the group. All connect to all; a connection carries the
// file of the one that listens. A connection is there as soon as the other side
// listens, so no process waits for another to be at the same place.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/FileExchange.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

using namespace zrt;

namespace {
constexpr size_t nameBytes = 16;

/// An abstract address: a zero byte, a prefix and what was drawn.
struct Address {
  explicit Address(const std::string &name) {
    std::string text = std::string(1, '\0') + "zero-rt-" + name;
    value.sun_family = AF_UNIX;
    std::memcpy(value.sun_path, text.data(), text.size());
    bytes = socklen_t(offsetof(sockaddr_un, sun_path) + text.size());
  }
  const sockaddr *get() const {
    return reinterpret_cast<const sockaddr *>(&value);
  }

  sockaddr_un value = {};
  socklen_t bytes;
};
} // namespace

[[noreturn]] static void failWithCode(const char *what) {
  fail(ZRT_ERROR_EXECUTION, "shared memory: ", what, ": ",
       std::strerror(errno));
}

static Socket newSocket() {
  Socket made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!made.isOpen())
    failWithCode("cannot make a socket");
  return made;
}

static std::string drawName() {
  uint8_t drawn[nameBytes];
  if (getrandom(drawn, sizeof(drawn), 0) != ssize_t(sizeof(drawn)))
    failWithCode("no random numbers");
  std::string name;
  for (uint8_t byte : drawn) {
    name += "0123456789abcdef"[byte >> 4];
    name += "0123456789abcdef"[byte & 15];
  }
  return name;
}

static Socket listenAt(const std::string &name, uint32_t processes) {
  Socket listener = newSocket();
  Address address(name);
  if (bind(listener.get(), address.get(), address.bytes) ||
      listen(listener.get(), int(processes)))
    failWithCode("cannot listen");
  return listener;
}

static Socket connectAt(const std::string &name) {
  Socket made = newSocket();
  Address address(name);
  if (connect(made.get(), address.get(), address.bytes))
    failWithCode("cannot connect to another process of this machine (is it in "
                 "another container? then use the transport mpi)");
  return made;
}

/// Waits until there is something to read, as long as no process has failed.
static void awaitInput(ProcessGroup &processes, const Socket &socket) {
  pollfd wanted = {socket.get(), POLLIN, 0};
  while (poll(&wanted, 1, /*milliseconds=*/100) <= 0) {
    std::string failure = processes.failure();
    if (!failure.empty())
      throw PeerFailed(failure);
  }
}

/// Whether the other end belongs to this user.
static bool isOwn(const Socket &socket) {
  ucred other = {};
  socklen_t bytes = sizeof(other);
  return !getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &other, &bytes) &&
         other.uid == geteuid();
}

namespace {
/// A message of one byte with room for a file beside it.
struct Message {
  Message() {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
  }

  char byte = 0;
  iovec part = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header = {};
};
} // namespace

static void sendFile(const Socket &to, int file) {
  Message message;
  cmsghdr *control = CMSG_FIRSTHDR(&message.header);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(control), &file, sizeof(int));
  if (sendmsg(to.get(), &message.header, MSG_NOSIGNAL) != 1)
    failWithCode("cannot hand over a file");
}

static Socket receiveFile(const Socket &from) {
  Message message;
  if (recvmsg(from.get(), &message.header, MSG_CMSG_CLOEXEC) != 1)
    failWithCode("cannot receive a file");
  cmsghdr *control = CMSG_FIRSTHDR(&message.header);
  if (!control || control->cmsg_type != SCM_RIGHTS)
    fail(ZRT_ERROR_EXECUTION, "shared memory: a message without a file");
  int file = -1;
  std::memcpy(&file, CMSG_DATA(control), sizeof(int));
  return Socket(file);
}

static std::vector<Socket> exchange(ProcessGroup &processes, int file) {
  uint32_t size = processes.size();
  std::string name = drawName();
  Socket listener = listenAt(name, size);
  std::vector<std::string> names = processes.allGather(name);
  std::vector<Socket> connections;
  for (uint32_t rank = 0; rank < size; ++rank)
    connections.push_back(rank == processes.rank() ? Socket()
                                                   : connectAt(names[rank]));
  for (uint32_t given = 0; given + 1 < size;) {
    awaitInput(processes, listener);
    Socket other(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!other.isOpen() || !isOwn(other))
      continue;
    sendFile(other, file);
    ++given;
  }
  std::vector<Socket> files(size);
  for (uint32_t rank = 0; rank < size; ++rank)
    if (connections[rank].isOpen()) {
      awaitInput(processes, connections[rank]);
      files[rank] = receiveFile(connections[rank]);
    }
  return files;
}

std::vector<Socket> zrt::exchangeFiles(ProcessGroup &processes, int file) {
  try {
    return exchange(processes, file);
  } catch (const PeerFailed &) {
    throw;
  } catch (const Error &) {
    // Of a process that is gone the group knows more, a moment later.
    for (int looks = 0; looks < 40; ++looks) {
      std::string failure = processes.failure();
      if (!failure.empty())
        throw PeerFailed(failure);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    throw;
  }
}
