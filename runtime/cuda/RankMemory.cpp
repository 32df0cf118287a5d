//===- RankMemory.cpp - One rank's memory in all spaces -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See RankMemory.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/RankMemory.h"

#include "runtime/core/Error.h"
#include "runtime/cuda/Status.h"
#include "runtime/host/Transfers.h"
#include "runtime/io/Files.h"

#include <algorithm>
#include <cstring>

using namespace zrt;
using namespace zrt::cuda;
using zrt::host::tensorName;

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// What is missing where memory does not suffice.
[[noreturn]] static void noRoom(const std::string &purpose, uint64_t bytes) {
  size_t free = 0, total = 0;
  cuMemGetInfo(&free, &total);
  fail(ZRT_ERROR_MEMORY, purpose, " does not fit on the device: it needs ",
       bytes, " bytes, ", free, " of ", total, " are free");
}

DeviceBlock::DeviceBlock(uint64_t bytes, const std::string &purpose,
                         bool forCollectives)
    : size(bytes), ofNccl(forCollectives) {
  if (!bytes)
    return;
  if (ofNccl) {
    void *pointer = nullptr;
    ncclResult_t status = ncclMemAlloc(&pointer, bytes);
    if (status == ncclUnhandledCudaError)
      noRoom(purpose, bytes);
    checkNccl(status, purpose + ": ncclMemAlloc");
    base = reinterpret_cast<CUdeviceptr>(pointer);
  } else {
    CUresult status = cuMemAlloc(&base, bytes);
    if (status == CUDA_ERROR_OUT_OF_MEMORY)
      noRoom(purpose, bytes);
    checkCuda(status, purpose + ": cuMemAlloc");
  }
  checkCuda(cuMemsetD8(base, 0, bytes), purpose + ": cuMemsetD8");
}

DeviceBlock::~DeviceBlock() {
  if (base && ofNccl)
    ncclMemFree(reinterpret_cast<void *>(base));
  else if (base)
    cuMemFree(base);
}

PinnedBlock::PinnedBlock(uint64_t bytes, const std::string &purpose) {
  if (!bytes)
    return;
  void *pointer = nullptr;
  CUresult status = cuMemHostAlloc(&pointer, bytes, CU_MEMHOSTALLOC_PORTABLE);
  if (status == CUDA_ERROR_OUT_OF_MEMORY)
    fail(ZRT_ERROR_MEMORY, purpose, ": ", bytes,
         " bytes of pinned memory cannot be had; offload less to the host, or "
         "to disk");
  checkCuda(status, purpose + ": cuMemHostAlloc");
  base = static_cast<uint8_t *>(pointer);
  std::memset(base, 0, bytes);
}

PinnedBlock::~PinnedBlock() {
  if (base)
    cuMemFreeHost(base);
}

//===----------------------------------------------------------------------===//
// Arenas
//===----------------------------------------------------------------------===//

RankMemory::RankMemory(const Program &program, uint32_t rank,
                       const std::string &offloadPath, bool forCollectives)
    : program(program), rank(rank), touchedEnd(program.arenas.size(), 0) {
  std::string who = " of rank " + std::to_string(rank);
  for (const Arena &arena : program.arenas) {
    devices.emplace_back();
    hosts.emplace_back();
    disks.emplace_back();
    if (arena.space == fb::Space_Device)
      devices.back() =
          DeviceBlock(arena.bytes, "the device memory" + who, forCollectives);
    else if (arena.space == fb::Space_Host)
      hosts.back() = PinnedBlock(arena.bytes, "the host memory" + who);
    else
      disks.back() = std::make_unique<DiskArena>(offloadPath, arena.bytes,
                                                 "disk space" + who);
  }
  unwritten = zrt::findUnwritten(program, rank);
}

fb::Space RankMemory::spaceOf(uint32_t buffer) const {
  return program.arenas[program.buffers[buffer].arena].space;
}

DiskArena *RankMemory::diskOf(uint32_t buffer) const {
  return disks[program.buffers[buffer].arena].get();
}

uint8_t *RankMemory::hostAddress(uint32_t buffer) const {
  const Buffer &info = program.buffers[buffer];
  return hosts[info.arena].data() + info.begin(rank);
}

CUdeviceptr RankMemory::address(uint32_t buffer) const {
  const Buffer &info = program.buffers[buffer];
  if (spaceOf(buffer) == fb::Space_Host)
    return reinterpret_cast<CUdeviceptr>(hostAddress(buffer));
  return devices[info.arena].address() + info.begin(rank);
}

std::string RankMemory::diskAccess() const {
  for (const std::unique_ptr<DiskArena> &disk : disks)
    if (disk)
      return disk->access();
  return "";
}

//===----------------------------------------------------------------------===//
// Contents
//===----------------------------------------------------------------------===//

void RankMemory::read(uint32_t buffer, uint64_t offset, void *data,
                      uint64_t bytes) const {
  if (!bytes)
    return;
  if (DiskArena *disk = diskOf(buffer))
    return namingTensor(tensorName(program, buffer), [&] {
      disk->read(program.buffers[buffer].begin(rank) + offset, data, bytes);
    });
  if (spaceOf(buffer) == fb::Space_Host)
    std::memcpy(data, hostAddress(buffer) + offset, bytes);
  else
    checkCuda(cuMemcpyDtoH(data, address(buffer) + offset, bytes),
              "cuMemcpyDtoH of " + tensorName(program, buffer));
}

void RankMemory::write(uint32_t buffer, uint64_t offset, const void *data,
                       uint64_t bytes) {
  if (!bytes)
    return;
  if (DiskArena *disk = diskOf(buffer))
    return namingTensor(tensorName(program, buffer), [&] {
      disk->write(program.buffers[buffer].begin(rank) + offset, data, bytes);
    });
  if (spaceOf(buffer) == fb::Space_Host)
    std::memcpy(hostAddress(buffer) + offset, data, bytes);
  else
    checkCuda(cuMemcpyHtoD(address(buffer) + offset, data, bytes),
              "cuMemcpyHtoD of " + tensorName(program, buffer));
}

void RankMemory::clearFrom(uint32_t buffer, uint64_t offset) {
  const Buffer &info = program.buffers[buffer];
  uint64_t bytes = info.bytes - offset;
  if (!bytes)
    return;
  if (DiskArena *disk = diskOf(buffer))
    return namingTensor(tensorName(program, buffer), [&] {
      disk->fill(info.begin(rank) + offset, bytes, 0);
    });
  if (spaceOf(buffer) == fb::Space_Host)
    std::memset(hostAddress(buffer) + offset, 0, bytes);
  else
    checkCuda(cuMemsetD8(address(buffer) + offset, 0, bytes),
              "cuMemsetD8 of " + tensorName(program, buffer));
}

//===----------------------------------------------------------------------===//
// What is touched, and what is not
//===----------------------------------------------------------------------===//

void RankMemory::touch(uint32_t buffer) {
  const Buffer &info = program.buffers[buffer];
  uint64_t &end = touchedEnd[info.arena];
  end = std::max(end, info.end(rank));
}

void RankMemory::poison(const Hole &hole) {
  uint64_t bytes = hole.end - hole.begin;
  switch (program.arenas[hole.arena].space) {
  case fb::Space_Disk:
    return disks[hole.arena]->fill(hole.begin, bytes, kPoisonByte);
  case fb::Space_Host:
    std::memset(hosts[hole.arena].data() + hole.begin, kPoisonByte, bytes);
    return;
  default:
    checkCuda(cuMemsetD8(devices[hole.arena].address() + hole.begin,
                         kPoisonByte, bytes),
              "cuMemsetD8");
  }
}

void RankMemory::poisonUnwritten() {
  for (const Hole &hole : unwritten)
    poison(hole);
}
