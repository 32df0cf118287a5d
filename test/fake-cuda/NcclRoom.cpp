//===- NcclRoom.cpp - Memory that the ranks of a communicator share -------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/NcclRoom.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

using namespace fake_cuda;

namespace {
/// What the identifier holds, and the file at its beginning.
struct Identity {
  uint64_t magic;
  uint64_t secret;
  int32_t process;
  int32_t file;
};

struct Header {
  Identity identity;
  std::atomic<int32_t> communicators;
};
} // namespace

constexpr uint64_t kMagic = 0x6c63636e656b6166; // "fakenccl"
constexpr uint64_t kHeaderBytes = 4096;
constexpr uint64_t kControlBytes =
    (kHeaderBytes + sizeof(Board) * kMaxCommunicators + 4095) / 4096 * 4096;

static char *map(int file, uint64_t bytes, uint64_t offset) {
  void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_NORESERVE, file, static_cast<off_t>(offset));
  return at == MAP_FAILED ? nullptr : static_cast<char *>(at);
}

bool Room::create(ncclUniqueId &id, std::string &error) {
  int file = memfd_create("fake-nccl", MFD_CLOEXEC);
  uint64_t bytes = kControlBytes + kSlotBytes * kMaxCommunicators * kMaxRanks;
  char *at = nullptr;
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0 ||
      !(at = map(file, kHeaderBytes, 0))) {
    error = std::string("no memory to share: ") + strerror(errno);
    return false;
  }
  std::random_device random;
  Identity identity = {kMagic, (uint64_t(random()) << 32) | random(), getpid(),
                       file};
  std::memcpy(at, &identity, sizeof identity);
  munmap(at, kHeaderBytes);
  std::memset(&id, 0, sizeof id);
  std::memcpy(&id, &identity, sizeof identity);
  return true;
}

std::shared_ptr<Room> Room::open(const ncclUniqueId &id, std::string &error) {
  Identity identity;
  std::memcpy(&identity, &id, sizeof identity);
  if (identity.magic != kMagic) {
    error = "this is no identifier of ncclGetUniqueId";
    return nullptr;
  }
  std::string path = "/proc/" + std::to_string(identity.process) + "/fd/" +
                     std::to_string(identity.file);
  int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  std::shared_ptr<Room> room(new Room(file));
  if (file >= 0)
    room->control = map(file, kControlBytes, 0);
  if (!room->control ||
      std::memcmp(room->control, &identity, sizeof identity) != 0) {
    error = "the process that made the identifier is gone";
    return nullptr;
  }
  return room;
}

Room::~Room() {
  for (auto &communicator : slots)
    for (std::atomic<char *> &slot : communicator)
      if (char *at = slot.load())
        munmap(at, kSlotBytes);
  if (control)
    munmap(control, kControlBytes);
  if (file >= 0)
    close(file);
}

Board *Room::boards() {
  return reinterpret_cast<Board *>(control + kHeaderBytes);
}

int Room::newCommunicator() {
  return 1 + reinterpret_cast<Header *>(control)->communicators++;
}

char *Room::slot(int communicator, int rank) {
  std::atomic<char *> &place = slots[communicator][rank];
  char *at = place.load();
  if (at)
    return at;
  uint64_t index = uint64_t(communicator) * kMaxRanks + rank;
  at = map(file, kSlotBytes, kControlBytes + index * kSlotBytes);
  char *other = nullptr;
  if (at && !place.compare_exchange_strong(other, at)) {
    munmap(at, kSlotBytes);
    return other;
  }
  return at;
}
