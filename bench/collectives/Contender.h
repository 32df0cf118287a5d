//===- Contender.h - Ways to run a collective -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What bench-collectives compares: each runs the same collective on the same
// numbers.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_BENCH_COLLECTIVES_CONTENDER_H
#define ZERO_BENCH_COLLECTIVES_CONTENDER_H

#include "runtime/comm/Collective.h"
#include "runtime/comm/Group.h"
#include "runtime/core/Program.h"

#include <memory>
#include <string>
#include <vector>

namespace zrt::bench {

/// A collective on one tensor of f32: `elements` is that of the whole, a
/// multiple of the ranks.
struct Problem {
  fb::Op op;
  uint64_t elements;
  uint32_t ranks;

  uint64_t chunk() const { return elements / ranks; }
  uint64_t sourceElements() const {
    return op == fb::Op_AllGather ? chunk() : elements;
  }
  uint64_t targetElements() const {
    return op == fb::Op_ReduceScatter ? chunk() : elements;
  }
};

class Contender {
public:
  explicit Contender(std::string name) : name(std::move(name)) {}
  virtual ~Contender() = default;

  /// Collective: makes what the runs of a problem need.
  virtual void prepare(const Problem &problem) = 0;
  /// Collective: runs it so many times.
  virtual void run(uint32_t times) = 0;
  /// Of this rank.
  virtual float *source() = 0;
  virtual float *target() = 0;

  const std::string name;
};

/// Most bytes of one tensor.
constexpr uint64_t mostBytes = 64 << 20;

/// Ranks that are threads of process 0; the others do nothing.
std::unique_ptr<Contender> makeThreads(zrt_group &group);
/// The transports of the runtime: "shm" and "mpi".
std::unique_ptr<Contender> makeTransportContender(zrt_group &group,
                                                  const std::string &transport);
/// MPI's own functions.
std::unique_ptr<Contender> makeMpi();
/// gloo over TCP on this machine; null: built without it.
std::unique_ptr<Contender> makeGloo(zrt_group &group);

} // namespace zrt::bench

#endif // ZERO_BENCH_COLLECTIVES_CONTENDER_H
