//===- DriverCopy.cpp - Copies and fills ----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/DriverGraph.h"
#include "test/fake-cuda/Environment.h"

#include <cstring>

using namespace fake_cuda;

static Address address(const void *pointer) {
  return reinterpret_cast<Address>(pointer);
}

/// Puts it on a stream of the current context.
static CUresult submitWork(const char *function, CUstream handle, Work work,
                           bool wait) {
  CUstream stream = streamOf(handle);
  if (!stream)
    return refuse(CUDA_ERROR_INVALID_HANDLE, function, "no such stream");
  if (stream->context != currentContext())
    return refuse(CUDA_ERROR_INVALID_CONTEXT, function,
                  "the stream is of another device than the current context");
  if (wait)
    if (CUresult error = refuseInCapture(function))
      return error;
  auto node = std::make_shared<Node>();
  node->work = std::move(work);
  if (CUresult error = put(stream, node, function))
    return error;
  if (!wait)
    return CUDA_SUCCESS;
  Engine::get().wait(node);
  return stickyError().empty() ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

namespace {
enum class Side { Host, Device, Any };

struct Copy {
  const char *function;
  Address to, from;
  Side toSide, fromSide;
  size_t bytes;
  CUstream stream;
  bool wait;
  // Rows of `bytes`, this far apart.
  size_t rows = 1, toPitch = 0, fromPitch = 0;
};
} // namespace

/// Why an operand is not what the call says; "".
static std::string wrongSide(const char *which, Address at, Side side,
                             bool wait) {
  AllocationPtr allocation = Registry::get().around(at);
  if (side == Side::Host && !allocation && !wait)
    return std::string(which) + " is host memory that is not pinned: the copy "
                                "would not be asynchronous";
  bool device = allocation && allocation->device != kHost;
  if (side == Side::Host && device)
    return std::string(which) + " is device memory, not of the host";
  if (side != Side::Host && !allocation)
    return std::string(which) + " is not allocated on the device" +
           (side == Side::Any ? " and not pinned" : "");
  return "";
}

/// Where the process reads or writes it; host memory need not be pinned.
static char *data(Address at) {
  char *found = hostAddress(at);
  return found ? found : reinterpret_cast<char *>(at);
}

static Work copyWork(const Copy &copy) {
  Work work;
  work.name = copy.function;
  // What is not pinned is nothing that streams could race for.
  bool toKnown = Registry::get().around(copy.to) != nullptr;
  bool fromKnown = Registry::get().around(copy.from) != nullptr;
  for (size_t row = 0; row < copy.rows; ++row) {
    if (fromKnown)
      work.accesses.push_back(
          {copy.from + row * copy.fromPitch, copy.bytes, false});
    if (toKnown)
      work.accesses.push_back({copy.to + row * copy.toPitch, copy.bytes, true});
  }
  work.run = [copy] {
    char *to = data(copy.to);
    const char *from = data(copy.from);
    for (size_t row = 0; row < copy.rows; ++row)
      std::memcpy(to + row * copy.toPitch, from + row * copy.fromPitch,
                  copy.bytes);
    return std::string();
  };
  return work;
}

static CUresult runCopy(const Copy &copy) {
  std::string text = addressName(copy.to) + ", " + addressName(copy.from) +
                     ", " + std::to_string(copy.bytes);
  if (copy.rows != 1)
    text += " x " + std::to_string(copy.rows);
  if (!copy.wait)
    text += ", " + streamName(copy.stream);
  if (CUresult error = enter(copy.function, Needs::Context, text))
    return error;
  if (copy.bytes == 0 || copy.rows == 0)
    return CUDA_SUCCESS;
  std::string wrong = wrongSide("target", copy.to, copy.toSide, copy.wait);
  if (wrong.empty())
    wrong = wrongSide("source", copy.from, copy.fromSide, copy.wait);
  if (wrong.empty() && copy.rows == 1 && copy.to < copy.from + copy.bytes &&
      copy.from < copy.to + copy.bytes)
    wrong = "source and target overlap";
  if (!wrong.empty())
    return refuse(CUDA_ERROR_INVALID_VALUE, copy.function, wrong);
  return submitWork(copy.function, copy.stream, copyWork(copy), copy.wait);
}

FAKE_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from,
                                     size_t bytes) {
  return runCopy({"cuMemcpyHtoD", to, address(from), Side::Device, Side::Host,
                  bytes, nullptr, true});
}

FAKE_EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
  return runCopy({"cuMemcpyDtoH", address(to), from, Side::Host, Side::Device,
                  bytes, nullptr, true});
}

FAKE_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from,
                                     size_t bytes) {
  return runCopy({"cuMemcpyDtoD", to, from, Side::Device, Side::Device, bytes,
                  nullptr, true});
}

FAKE_EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return runCopy(
      {"cuMemcpy", to, from, Side::Any, Side::Any, bytes, nullptr, true});
}

FAKE_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from,
                                          size_t bytes, CUstream stream) {
  return runCopy({"cuMemcpyHtoDAsync", to, address(from), Side::Device,
                  Side::Host, bytes, stream, false});
}

FAKE_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from,
                                          size_t bytes, CUstream stream) {
  return runCopy({"cuMemcpyDtoHAsync", address(to), from, Side::Host,
                  Side::Device, bytes, stream, false});
}

FAKE_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from,
                                          size_t bytes, CUstream stream) {
  return runCopy({"cuMemcpyDtoDAsync", to, from, Side::Device, Side::Device,
                  bytes, stream, false});
}

FAKE_EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from,
                                   size_t bytes, CUstream stream) {
  return runCopy(
      {"cuMemcpyAsync", to, from, Side::Any, Side::Any, bytes, stream, false});
}

static CUresult copyRows(const char *function, const CUDA_MEMCPY2D *rows,
                         CUstream stream, bool wait) {
  auto side = [](CUmemorytype type) {
    return type == CU_MEMORYTYPE_HOST     ? Side::Host
           : type == CU_MEMORYTYPE_DEVICE ? Side::Device
                                          : Side::Any;
  };
  auto place = [](CUmemorytype type, const void *host, CUdeviceptr device,
                  size_t x, size_t y, size_t pitch) {
    Address base = type == CU_MEMORYTYPE_HOST ? address(host) : device;
    return base + y * pitch + x;
  };
  Copy copy = {function,
               place(rows->dstMemoryType, rows->dstHost, rows->dstDevice,
                     rows->dstXInBytes, rows->dstY, rows->dstPitch),
               place(rows->srcMemoryType, rows->srcHost, rows->srcDevice,
                     rows->srcXInBytes, rows->srcY, rows->srcPitch),
               side(rows->dstMemoryType),
               side(rows->srcMemoryType),
               rows->WidthInBytes,
               stream,
               wait,
               rows->Height,
               rows->dstPitch,
               rows->srcPitch};
  if (rows->Height > 1 && (rows->dstPitch < rows->WidthInBytes ||
                           rows->srcPitch < rows->WidthInBytes))
    return refuse(CUDA_ERROR_INVALID_VALUE, function,
                  "a row is longer than its pitch");
  return runCopy(copy);
}

FAKE_EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *rows,
                                        CUstream stream) {
  return copyRows("cuMemcpy2DAsync", rows, stream, false);
}

FAKE_EXPORT CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *rows) {
  return copyRows("cuMemcpy2D", rows, nullptr, true);
}

//===----------------------------------------------------------------------===//
// Fills
//===----------------------------------------------------------------------===//

template <typename T>
static CUresult fill(const char *function, CUdeviceptr to, T value,
                     size_t count, CUstream stream, bool wait) {
  std::string text = addressName(to) + ", " + std::to_string(value) + ", " +
                     std::to_string(count);
  if (!wait)
    text += ", " + streamName(stream);
  if (CUresult error = enter(function, Needs::Context, text))
    return error;
  if (count == 0)
    return CUDA_SUCCESS;
  if (to % sizeof(T) != 0)
    return refuse(CUDA_ERROR_INVALID_VALUE, function,
                  "the address is no multiple of the element's size");
  if (!Registry::get().around(to))
    return refuse(CUDA_ERROR_INVALID_VALUE, function,
                  "the target is not allocated on the device");
  Work work{function, {{to, count * sizeof(T), true}}, [to, value, count] {
              T *target = reinterpret_cast<T *>(hostAddress(to));
              std::fill_n(target, count, value);
              return std::string();
            }};
  return submitWork(function, stream, std::move(work), wait);
}

FAKE_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value,
                                   size_t count) {
  return fill("cuMemsetD8", to, value, count, nullptr, true);
}

FAKE_EXPORT CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value,
                                    size_t count) {
  return fill("cuMemsetD16", to, value, count, nullptr, true);
}

FAKE_EXPORT CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value,
                                    size_t count) {
  return fill("cuMemsetD32", to, value, count, nullptr, true);
}

FAKE_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value,
                                     size_t count, CUstream stream) {
  return fill("cuMemsetD8Async", to, value, count, stream, false);
}

FAKE_EXPORT CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value,
                                      size_t count, CUstream stream) {
  return fill("cuMemsetD16Async", to, value, count, stream, false);
}

FAKE_EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value,
                                      size_t count, CUstream stream) {
  return fill("cuMemsetD32Async", to, value, count, stream, false);
}
