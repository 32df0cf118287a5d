//===- UpdateKernels.h - The updates that are measured ----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels as the compiler makes them for a zero.on_host, and the triad of
// STREAM, a = b + s * c on f64, compiled in the same way.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_BENCH_HOST_UPDATE_UPDATEKERNELS_H
#define ZERO_BENCH_HOST_UPDATE_UPDATEKERNELS_H

#include <cstdint>
#include <string>
#include <vector>

namespace zero_bench {

/// An array that a kernel works on.
enum class Array {
  Parameter,
  Gradient,
  First,
  Second,
  Cast,
  A,
  B,
  C,
  Rate,
  Step
};

struct UpdateKernel {
  std::string name;
  std::vector<Array> operands;
  int64_t elementsPerParameter; ///< halves: of the triad's f64
  int64_t bytes;                ///< that an element's loads and stores move
  int64_t allocated; ///< that are stored without being loaded: a cache reads
                     ///< them first
};

/// All kernels, the triad first.
std::vector<UpdateKernel> getUpdateKernels();

/// Compiles them for arrays of `parameters` f32 elements and the processor
/// `cpu`; an ELF shared object. Exits with the compiler's message.
std::string compileUpdateKernels(int64_t parameters, const std::string &cpu);

} // namespace zero_bench

#endif // ZERO_BENCH_HOST_UPDATE_UPDATEKERNELS_H
