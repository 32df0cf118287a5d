//===- Socket.h - TCP sockets ---------------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Non-blocking TCP sockets that close themselves.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_COMM_SOCKET_H
#define ZERO_RT_COMM_SOCKET_H

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace zrt {

/// A file descriptor.
class Socket {
public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor(descriptor) {}
  Socket(Socket &&other) : descriptor(std::exchange(other.descriptor, -1)) {}
  Socket &operator=(Socket &&other) {
    std::swap(descriptor, other.descriptor);
    return *this;
  }
  ~Socket() { close(); }

  int get() const { return descriptor; }
  bool isOpen() const { return descriptor >= 0; }
  void close();

private:
  int descriptor = -1;
};

/// Listens on all addresses of this machine, or only the loopback ones; port 0
/// takes a free one. Throws Error.
Socket listenOn(uint16_t port, bool loopbackOnly);
uint16_t portOf(const Socket &listener);

/// The next connection that waits, or a closed socket.
Socket acceptFrom(const Socket &listener);

/// Tries until somebody listens at `address`:`port`; throws Error when that has
/// taken `seconds`.
Socket connectTo(const std::string &address, uint16_t port, double seconds);

/// Non-blocking, without delays of small messages, closed by exec.
void prepareSocket(const Socket &socket);

/// What has been read or written; -1: nothing for now; 0 of a read: the other
/// side has closed. `problem` says what failed, if something did.
struct Moved {
  long bytes = -1;
  std::string problem;
};
Moved readSome(const Socket &socket, char *data, size_t bytes);
Moved writeSome(const Socket &socket, const char *data, size_t bytes);

} // namespace zrt

#endif // ZERO_RT_COMM_SOCKET_H
