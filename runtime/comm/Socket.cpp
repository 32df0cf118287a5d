//===- Socket.cpp - TCP sockets -------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Socket.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Socket.h"
#include "runtime/core/Error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace zrt;

using Clock = std::chrono::steady_clock;

void Socket::close() {
  if (descriptor >= 0)
    ::close(descriptor);
  descriptor = -1;
}

void zrt::prepareSocket(const Socket &socket) {
  int yes = 1;
  fcntl(socket.get(), F_SETFL, fcntl(socket.get(), F_GETFL) | O_NONBLOCK);
  fcntl(socket.get(), F_SETFD, FD_CLOEXEC);
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

/// Listens on one family of addresses; a closed socket and errno on failure.
static Socket tryListen(int family, uint16_t port, bool loopbackOnly) {
  Socket made(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made.isOpen())
    return made;
  int yes = 1, no = 0;
  setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_storage storage = {};
  socklen_t size = sizeof(sockaddr_in);
  if (family == AF_INET6) {
    setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    auto *address = reinterpret_cast<sockaddr_in6 *>(&storage);
    *address = {AF_INET6, htons(port), 0, in6addr_any, 0};
    size = sizeof(sockaddr_in6);
  } else {
    auto *address = reinterpret_cast<sockaddr_in *>(&storage);
    address->sin_family = AF_INET;
    address->sin_port = htons(port);
    address->sin_addr.s_addr =
        htonl(loopbackOnly ? INADDR_LOOPBACK : INADDR_ANY);
  }
  if (bind(made.get(), reinterpret_cast<sockaddr *>(&storage), size) ||
      listen(made.get(), SOMAXCONN)) {
    int reason = errno;
    made.close();
    errno = reason;
    return made;
  }
  prepareSocket(made);
  return made;
}

Socket zrt::listenOn(uint16_t port, bool loopbackOnly) {
  // IPv6 sockets take IPv4 too, where the machine has IPv6 at all.
  Socket made;
  if (!loopbackOnly)
    made = tryListen(AF_INET6, port, false);
  if (!made.isOpen() && (loopbackOnly || errno != EADDRINUSE))
    made = tryListen(AF_INET, port, loopbackOnly);
  if (made.isOpen())
    return made;
  std::string reason = std::strerror(errno);
  fail(ZRT_ERROR_IO, "process 0 cannot listen on port ", port, ": ", reason,
       errno == EADDRINUSE ? "; give --master-port (MASTER_PORT) another" : "");
}

uint16_t zrt::portOf(const Socket &listener) {
  sockaddr_storage storage = {};
  socklen_t size = sizeof(storage);
  getsockname(listener.get(), reinterpret_cast<sockaddr *>(&storage), &size);
  return ntohs(storage.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6 *>(&storage)->sin6_port
                   : reinterpret_cast<sockaddr_in *>(&storage)->sin_port);
}

Socket zrt::acceptFrom(const Socket &listener) {
  Socket accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (accepted.isOpen())
    prepareSocket(accepted);
  return accepted;
}

/// A port that nobody listens on can be the one that the system gives to the
/// connection itself.
static bool isConnectedToItself(const Socket &socket) {
  sockaddr_storage here = {}, there = {};
  socklen_t hereSize = sizeof(here), thereSize = sizeof(there);
  getsockname(socket.get(), reinterpret_cast<sockaddr *>(&here), &hereSize);
  getpeername(socket.get(), reinterpret_cast<sockaddr *>(&there), &thereSize);
  return hereSize == thereSize && !std::memcmp(&here, &there, hereSize);
}

/// One attempt; `reason` says why the result is closed.
static Socket tryConnect(const addrinfo &to, int milliseconds,
                         std::string &reason) {
  Socket made(socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int error = 0;
  if (!made.isOpen()) {
    error = errno;
  } else {
    prepareSocket(made);
    error = connect(made.get(), to.ai_addr, to.ai_addrlen) ? errno : 0;
  }
  if (error == EINPROGRESS) {
    pollfd waits = {made.get(), POLLOUT, 0};
    socklen_t size = sizeof(error);
    error = ETIMEDOUT;
    if (poll(&waits, 1, milliseconds) > 0)
      getsockopt(made.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (!error && isConnectedToItself(made))
    error = ECONNREFUSED;
  if (!error)
    return made;
  reason = std::strerror(error);
  return Socket();
}

/// The addresses of a name, or why it has none.
static std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>
resolve(const std::string &address, uint16_t port, std::string &reason) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  int failed = getaddrinfo(address.c_str(), std::to_string(port).c_str(),
                           &hints, &found);
  if (failed) {
    reason = gai_strerror(failed);
    found = nullptr;
  }
  return {found, &freeaddrinfo};
}

Socket zrt::connectTo(const std::string &address, uint16_t port,
                      double seconds) {
  auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(seconds));
  std::string reason = "no address";
  auto pause = std::chrono::milliseconds(10);
  do {
    auto addresses = resolve(address, port, reason);
    for (addrinfo *to = addresses.get(); to; to = to->ai_next) {
      Socket made = tryConnect(*to, 2000, reason);
      if (made.isOpen())
        return made;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(500));
  } while (Clock::now() < end);
  fail(ZRT_ERROR_IO, "process 0 is not at ", address, ":", port, " (", reason,
       ", tried for ", seconds,
       " s); is it running, and do --master-addr and "
       "--master-port (MASTER_ADDR, MASTER_PORT) say where?");
}

static Moved moved(long bytes) {
  if (bytes >= 0)
    return {bytes, ""};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
    return {};
  return {-1, std::strerror(errno)};
}

Moved zrt::readSome(const Socket &socket, char *data, size_t bytes) {
  return moved(recv(socket.get(), data, bytes, 0));
}

Moved zrt::writeSome(const Socket &socket, const char *data, size_t bytes) {
  return moved(send(socket.get(), data, bytes, MSG_NOSIGNAL));
}
