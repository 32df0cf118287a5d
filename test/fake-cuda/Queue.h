//===- Queue.h - Work on the fake devices' streams ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How the fakes of libraries (NCCL, cuBLASLt, cuDNN) put work on a stream.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_QUEUE_H
#define ZERO_TEST_FAKECUDA_QUEUE_H

#include "test/fake-cuda/Memory.h"

#include <cuda.h>

#include <functional>
#include <string>
#include <vector>

namespace fake_cuda {

/// What work reads or writes. Strided operands: one range a row, or all of it
/// where nothing else lies between.
struct Access {
  Address address;
  uint64_t bytes;
  bool write;
};

struct Work {
  std::string name; ///< for messages and the log: "cublasLtMatmul"
  std::vector<Access> accesses;
  /// Does it, on the device's worker. Returns "" or what went wrong. Called
  /// once for each launch where the work was captured into a graph. The
  /// accesses have been checked before. Only `find`,
  /// `hostAddress` and `noteAccess` of this library may be called from it.
  std::function<std::string()> run;
  /// Of work that waits for other devices: called again and again after `run`,
  /// with other work in between, until it returns true or sets an error.
  std::function<bool(std::string &error)> poll = nullptr;
};

/// An access that is only known while the work runs. Returns "" or the error,
/// which `run` should hand on.
std::string noteAccess(const Access &access);

/// Puts work on a stream (null: the default stream of the current context).
/// Accesses are checked when it runs. Every error is also printed.
CUresult enqueue(CUstream stream, Work work);

/// Where the process reads and writes a device address; nullptr where there is
/// no memory. For use inside Work::run.
char *hostAddress(Address address);

/// Device of a stream (null: of the current context); -1: no such stream.
int deviceOf(CUstream stream);

/// Names for the log, the same in every run: "stream 1", "memory 0+64".
std::string streamName(CUstream stream);
std::string addressName(Address address);

/// Writes one line to FAKE_CUDA_LOG, as every call of the API does.
void log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/// Prints "fake-cuda: error: …" and makes the process's later calls of the
/// driver fail (a sticky error).
void fail(const std::string &message);

/// The fault to inject at this call, from FAKE_CUDA_FAULT=NAME:N[:KIND]: "" or
/// KIND, by default "error". Counts the calls by name and device.
std::string injectedFault(const char *function);

} // namespace fake_cuda

#endif // ZERO_TEST_FAKECUDA_QUEUE_H
