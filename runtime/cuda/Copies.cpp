//===- Copies.cpp - Copy and fill commands --------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Copies.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Copies.h"

#include "runtime/cuda/Status.h"
#include "runtime/host/StridedCopy.h"
#include "runtime/host/Transfers.h"

#include <algorithm>
#include <cstring>
#include <optional>

using namespace zrt;
using namespace zrt::cuda;
using zrt::host::tensorName;

void SetBytes::enqueue(CUstream stream) {
  if (bytes)
    checkCuda(cuMemsetD8Async(to, value, bytes, stream), "cuMemsetD8Async");
}

void CopyBytes::enqueue(CUstream stream) {
  if (!bytes)
    return;
  switch (way) {
  case Way::WithinDevice:
    return checkCuda(cuMemcpyDtoDAsync(to, from, bytes, stream),
                     "cuMemcpyDtoDAsync");
  case Way::ToDevice:
    return checkCuda(cuMemcpyHtoDAsync(to, reinterpret_cast<const void *>(from),
                                       bytes, stream),
                     "cuMemcpyHtoDAsync");
  case Way::ToHost:
    return checkCuda(
        cuMemcpyDtoHAsync(reinterpret_cast<void *>(to), from, bytes, stream),
        "cuMemcpyDtoHAsync");
  }
}

namespace {
/// Rows of equal distances.
class CopyRows : public Work {
public:
  explicit CopyRows(const CUDA_MEMCPY2D &rows) : rows(rows) {}
  void enqueue(CUstream stream) override {
    checkCuda(cuMemcpy2DAsync(&rows, stream), "cuMemcpy2DAsync");
  }

private:
  CUDA_MEMCPY2D rows;
};

/// Any views.
class CopyByKernel : public Work {
public:
  explicit CopyByKernel(PreparedCopy copy) : copy(copy) {}
  void enqueue(CUstream stream) override { launchCopy(copy, stream); }

private:
  PreparedCopy copy;
};

/// A copy's dimension: size and strides in bytes.
struct Dim {
  uint64_t size, from, to;
};
} // namespace

/// The dimensions of a copy with what is adjacent joined; innermost last.
static std::vector<Dim> joinedDims(const View &from, const View &to,
                                   uint64_t elementBytes) {
  std::vector<Dim> dims;
  for (size_t dim = 0; dim < to.sizes.size(); ++dim) {
    Dim next{uint64_t(to.sizes[dim]), from.strides[dim] * elementBytes,
             to.strides[dim] * elementBytes};
    if (next.size == 1)
      continue;
    bool joins = !dims.empty() && dims.back().from == next.size * next.from &&
                 dims.back().to == next.size * next.to;
    if (joins)
      dims.back() = {dims.back().size * next.size, next.from, next.to};
    else
      dims.push_back(next);
  }
  return dims;
}

/// The copy as rows of equal distances, if it is that.
static std::optional<CUDA_MEMCPY2D> asRows(const Tensor &from,
                                           const Tensor &to) {
  uint64_t element = elementBytes(to.type);
  std::vector<Dim> dims = joinedDims(from.view, to.view, element);
  if (dims.size() != 2)
    return std::nullopt;
  const Dim &rows = dims[0], &row = dims[1];
  uint64_t width = row.size * element;
  if (row.from != element || row.to != element || rows.from < width ||
      rows.to < width)
    return std::nullopt;
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = from.address + from.view.offset * element;
  copy.dstDevice = to.address + to.view.offset * element;
  copy.srcPitch = rows.from;
  copy.dstPitch = rows.to;
  copy.WidthInBytes = width;
  copy.Height = rows.size;
  return copy;
}

CopyMaker::CopyMaker(const Program &program, uint32_t rank, RankMemory &memory,
                     const DeviceKernels &kernels, HostFailure &failure)
    : program(program), rank(rank), memory(memory), kernels(kernels),
      failure(failure), zero(256, "memory of the runtime's constants") {}

Tensor CopyMaker::tensor(const Operand &operand) const {
  return {memory.address(operand.buffer), operand.view,
          program.buffers[operand.buffer].dtype};
}

/// Work of the host in its own memory: a strided copy to the command's last
/// operand.
std::unique_ptr<Work> CopyMaker::onHost(size_t command, const View &from,
                                        const uint8_t *source) const {
  const Operand &target = program.commands[command].operands.back();
  const Buffer &buffer = program.buffers[target.buffer];
  StridedCopy copy(from, target.view, elementBytes(buffer.dtype));
  uint8_t *to = memory.hostAddress(target.buffer);
  std::vector<HostWork::Use> uses = {{to, buffer.bytes, true}};
  if (program.commands[command].op == fb::Op_Copy)
    uses.push_back(
        {source,
         program.buffers[program.commands[command].operands[0].buffer].bytes,
         false});
  return std::make_unique<HostWork>(
      failure, command, std::move(uses),
      [copy, source, to] { copy.run(source, to); });
}

std::unique_ptr<Work> CopyMaker::fill(size_t command) const {
  static const uint64_t zeros = 0;
  const Operand &target = program.commands[command].operands[0];
  Tensor to = tensor(target), from = to;
  from.view.offset = 0;
  std::fill(from.view.strides.begin(), from.view.strides.end(), 0);
  if (memory.spaceOf(target.buffer) == fb::Space_Host)
    return onHost(command, from.view,
                  reinterpret_cast<const uint8_t *>(&zeros));
  uint64_t element = elementBytes(to.type);
  if (isContiguous(to.view))
    return std::make_unique<SetBytes>(to.address + to.view.offset * element,
                                      *elementCount(to.view.sizes) * element,
                                      0);
  from.address = zero.address();
  return std::make_unique<CopyByKernel>(kernels.prepareCopy(from, to));
}

/// An address that no memory has, for what is on disk: a checker of accesses
/// then sees those of the disk too.
static const void *diskPlace(uint32_t rank, uint32_t arena, uint64_t offset) {
  return reinterpret_cast<const void *>(uint64_t(1) << 63 |
                                        uint64_t(rank) << 52 |
                                        uint64_t(arena) << 48 | offset);
}

std::unique_ptr<Work> CopyMaker::diskCopy(size_t command) const {
  const std::vector<Operand> &operands = program.commands[command].operands;
  bool write = memory.diskOf(operands[1].buffer) != nullptr;
  const Operand &onDisk = operands[write], &inMemory = operands[!write];
  const Buffer &buffer = program.buffers[onDisk.buffer];
  uint64_t element = elementBytes(buffer.dtype);
  uint64_t offset = buffer.begin(rank) + onDisk.view.offset * element;
  uint64_t bytes = *elementCount(onDisk.view.sizes) * element;
  // The plan gives every buffer on disk blocks of its own.
  bool toBlockEnd =
      onDisk.view.offset == 0 && bytes == *elementCount(buffer.shape) * element;
  DiskArena *disk = memory.diskOf(onDisk.buffer);
  uint8_t *data =
      memory.hostAddress(inMemory.buffer) + inMemory.view.offset * element;
  const std::string &name = tensorName(program, onDisk.buffer);
  return std::make_unique<HostWork>(
      failure, command,
      std::vector<HostWork::Use>{
          {data, bytes, !write},
          {diskPlace(rank, buffer.arena, offset), bytes, write}},
      [=, &name] {
        namingTensor(name, [&] {
          if (!write)
            disk->read(offset, data, bytes);
          else if (toBlockEnd)
            disk->writeToBlockEnd(offset, data, bytes);
          else
            disk->write(offset, data, bytes);
        });
      });
}

std::unique_ptr<Work> CopyMaker::copy(size_t command) const {
  const std::vector<Operand> &operands = program.commands[command].operands;
  fb::Space source = memory.spaceOf(operands[0].buffer);
  fb::Space target = memory.spaceOf(operands[1].buffer);
  if (source == fb::Space_Disk || target == fb::Space_Disk)
    return diskCopy(command);
  if (source == fb::Space_Host && target == fb::Space_Host)
    return onHost(command, operands[0].view,
                  memory.hostAddress(operands[0].buffer));
  Tensor from = tensor(operands[0]), to = tensor(operands[1]);
  uint64_t element = elementBytes(to.type);
  if (isContiguous(from.view) && isContiguous(to.view)) {
    Way way = source == target             ? Way::WithinDevice
              : target == fb::Space_Device ? Way::ToDevice
                                           : Way::ToHost;
    return std::make_unique<CopyBytes>(
        way, from.address + from.view.offset * element,
        to.address + to.view.offset * element,
        *elementCount(to.view.sizes) * element);
  }
  if (std::optional<CUDA_MEMCPY2D> rows = asRows(from, to))
    return std::make_unique<CopyRows>(*rows);
  return std::make_unique<CopyByKernel>(kernels.prepareCopy(from, to));
}

std::unique_ptr<Work> CopyMaker::make(size_t command) const {
  return program.commands[command].op == fb::Op_Fill ? fill(command)
                                                     : copy(command);
}
