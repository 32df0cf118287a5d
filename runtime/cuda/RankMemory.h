//===- RankMemory.h - One rank's memory in all spaces -----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arenas are allocated when a session begins: on the device, in pinned memory
// of the host, which the device reaches under the same addresses, and on disk.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CUDA_RANKMEMORY_H
#define ZERO_RT_CUDA_RANKMEMORY_H

#include "runtime/core/Program.h"
#include "runtime/core/ProgramMemory.h"
#include "runtime/io/DiskArena.h"
#include "runtime/io/Files.h"

#include <cuda.h>

#include <memory>
#include <string>
#include <vector>

namespace zrt::cuda {

/// Device memory, freed with this.
class DeviceBlock {
public:
  DeviceBlock() = default;
  /// Zeros; none for 0 bytes. `forCollectives`: of the kind that NCCL is
  /// fastest with. Throws Error that begins with `purpose`.
  DeviceBlock(uint64_t bytes, const std::string &purpose,
              bool forCollectives = false);
  ~DeviceBlock();
  DeviceBlock(DeviceBlock &&other) noexcept { swap(other); }
  DeviceBlock &operator=(DeviceBlock &&other) noexcept {
    swap(other);
    return *this;
  }

  CUdeviceptr address() const { return base; }
  uint64_t bytes() const { return size; }

private:
  void swap(DeviceBlock &other) {
    std::swap(base, other.base);
    std::swap(size, other.size);
    std::swap(ofNccl, other.ofNccl);
  }
  CUdeviceptr base = 0;
  uint64_t size = 0;
  bool ofNccl = false;
};

/// Pinned memory of the host, freed with this.
class PinnedBlock {
public:
  PinnedBlock() = default;
  /// Zeros. Throws Error that begins with `purpose`.
  PinnedBlock(uint64_t bytes, const std::string &purpose);
  ~PinnedBlock();
  PinnedBlock(PinnedBlock &&other) noexcept { std::swap(base, other.base); }
  PinnedBlock &operator=(PinnedBlock &&other) noexcept {
    std::swap(base, other.base);
    return *this;
  }

  uint8_t *data() const { return base; }

private:
  uint8_t *base = nullptr;
};

/// The context of the rank's device is current wherever this is used, and no
/// stream runs.
class RankMemory {
public:
  /// Throws Error or IoError where there is no room.
  RankMemory(const Program &program, uint32_t rank,
             const std::string &offloadPath, bool forCollectives);

  fb::Space spaceOf(uint32_t buffer) const;
  /// Of a buffer that is not on disk: for the device, and in pinned memory for
  /// the host as well.
  CUdeviceptr address(uint32_t buffer) const;
  uint8_t *hostAddress(uint32_t buffer) const;
  DiskArena *diskOf(uint32_t buffer) const;
  /// How the disk is reached; empty: the program has no disk arena.
  std::string diskAccess() const;
  const std::vector<DeviceBlock> &deviceArenas() const { return devices; }

  // Buffers in any space. Throw Error or IoError.
  void read(uint32_t buffer, uint64_t offset, void *data, uint64_t bytes) const;
  void write(uint32_t buffer, uint64_t offset, const void *data,
             uint64_t bytes);
  /// The bytes from `offset` to the buffer's end become zeros.
  void clearFrom(uint32_t buffer, uint64_t offset);
  /// Fills all memory that no parameter, constant or input holds with NaN.
  void poisonUnwritten();

  /// Counts the bytes of a buffer as touched.
  void touch(uint32_t buffer);
  /// Highest byte touched, by arena.
  const std::vector<uint64_t> &touched() const { return touchedEnd; }

private:
  void poison(const Hole &hole);

  const Program &program;
  const uint32_t rank;
  // By arena; empty where it is in another space.
  std::vector<DeviceBlock> devices;
  std::vector<PinnedBlock> hosts;
  std::vector<std::unique_ptr<DiskArena>> disks;
  std::vector<uint64_t> touchedEnd;
  std::vector<Hole> unwritten;
};

/// Every byte of this value makes a NaN of each floating type, and -1.
constexpr int kPoisonByte = 0xFF;

/// Calls `body`; an error of the disk then says which tensor it is about.
template <typename Body>
void namingTensor(const std::string &name, Body body) {
  try {
    body();
  } catch (const IoError &error) {
    throw IoError("tensor " + name, error.what());
  }
}

} // namespace zrt::cuda

#endif // ZERO_RT_CUDA_RANKMEMORY_H
