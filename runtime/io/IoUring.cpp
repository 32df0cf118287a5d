//===- IoUring.cpp - Transfers through io_uring ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See IoUring.h. One call each, with nothing added, as in PosixFileSystem.cpp:
// what has to be repeated is for the caller.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/IoUring.h"

#include <cerrno>
#include <liburing.h>

using namespace zrt;

namespace {

class IoUring final : public TransferQueue {
public:
  int64_t init(unsigned depth) {
    int64_t result = io_uring_queue_init(depth, &ring, 0);
    open = result >= 0;
    return open ? checkOperations() : result;
  }
  ~IoUring() override {
    uint64_t tag;
    int64_t result;
    // The kernel still reads and writes the memory of what is under way.
    while (open && underWay) {
      int64_t waited = finish(tag, result);
      if (waited < 0 && waited != -EINTR)
        break;
    }
    if (open)
      io_uring_queue_exit(&ring);
  }

  int64_t begin(const Transfer &transfer) override {
    if (!prepared) {
      io_uring_sqe *entry = io_uring_get_sqe(&ring);
      if (!entry)
        return -EBUSY;
      if (transfer.write)
        io_uring_prep_write(entry, transfer.file, transfer.data,
                            unsigned(transfer.bytes), transfer.offset);
      else
        io_uring_prep_read(entry, transfer.file, transfer.data,
                           unsigned(transfer.bytes), transfer.offset);
      io_uring_sqe_set_data64(entry, transfer.tag);
    }
    // What the system did not take stays in the ring for the next call.
    int64_t taken = io_uring_submit(&ring);
    prepared = taken < 1;
    if (taken == 0)
      return -EAGAIN;
    underWay += prepared ? 0 : 1;
    return taken < 0 ? taken : 0;
  }

  int64_t finish(uint64_t &tag, int64_t &result) override {
    io_uring_cqe *entry = nullptr;
    if (int waited = io_uring_wait_cqe(&ring, &entry))
      return waited;
    tag = io_uring_cqe_get_data64(entry);
    result = entry->res;
    io_uring_cqe_seen(&ring, entry);
    --underWay;
    return 0;
  }

private:
  /// Systems before 5.6 have a queue, but not these operations.
  int64_t checkOperations() {
    io_uring_probe *probe = io_uring_get_probe_ring(&ring);
    bool known = probe && io_uring_opcode_supported(probe, IORING_OP_READ) &&
                 io_uring_opcode_supported(probe, IORING_OP_WRITE);
    if (probe)
      io_uring_free_probe(probe);
    return known ? 0 : -ENOSYS;
  }

  io_uring ring = {};
  bool open = false;
  bool prepared = false; // the last entry was not taken
  unsigned underWay = 0;
};

} // namespace

int64_t zrt::makeIoUring(unsigned depth,
                         std::unique_ptr<TransferQueue> &result) {
  auto queue = std::make_unique<IoUring>();
  int64_t made = queue->init(depth);
  if (made >= 0)
    result = std::move(queue);
  return made < 0 ? made : 0;
}
