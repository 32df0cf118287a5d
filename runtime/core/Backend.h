//===- Backend.h - What executes a program --------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A session of zero-rt.h, whatever executes it: threads on the host, or GPUs.
// The functions are those of zero-rt.h, with its contracts; they throw Error or
// IoError. A session has the program's ranks; those of this process are local.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_BACKEND_H
#define ZERO_RT_CORE_BACKEND_H

#include "runtime/core/Program.h"
#include "zero-rt/zero-rt.h"

#include <memory>
#include <string>

namespace zrt {

class Backend {
public:
  virtual ~Backend() = default;

  virtual void setParameter(uint32_t index, const void *data,
                            uint64_t bytes) = 0;
  virtual void getParameter(uint32_t index, void *data,
                            uint64_t bytes) const = 0;
  virtual void readChunk(uint32_t index, uint32_t rank, uint64_t offset,
                         void *data, uint64_t bytes) const = 0;
  /// Where all ranks are local, the two are the same.
  virtual void readLocalChunk(uint32_t index, uint32_t rank, uint64_t offset,
                              void *data, uint64_t bytes) const {
    readChunk(index, rank, offset, data, bytes);
  }
  virtual void writeChunk(uint32_t index, uint32_t rank, uint64_t offset,
                          const void *data, uint64_t bytes) = 0;
  virtual void setInput(uint32_t index, int rank, const void *data,
                        uint64_t bytes) = 0;
  virtual void readOutput(uint32_t index, double *values,
                          uint64_t count) const = 0;
  virtual void readOutputOfRank(uint32_t index, uint32_t rank, void *data,
                                uint64_t bytes) const = 0;
  virtual void accumulate() = 0;
  virtual void step() = 0;

  /// How the disk is reached; empty: the program keeps nothing there.
  virtual const std::string &diskAccess() const = 0;

  virtual zrt_counters counters() const = 0;
  virtual void resetCounters() = 0;
  virtual void commandMs(uint32_t rank, double *ms, uint64_t count) const = 0;
  virtual void spans(uint32_t rank, zrt_span *spans, uint64_t count) const = 0;
};

/// What the library of a backend exports under `kMakeBackend`. Throws Error or
/// IoError.
using MakeBackend = Backend *(std::shared_ptr<const Program> program,
                              const zrt_session_options &options);
constexpr const char *kMakeBackend = "zrt_make_backend";

/// What it exports under `kGetDevices`: the accelerators of this machine.
using GetDevices = uint32_t(zrt_device_info *devices, uint32_t room);
constexpr const char *kGetDevices = "zrt_get_backend_devices";

} // namespace zrt

#endif // ZERO_RT_CORE_BACKEND_H
