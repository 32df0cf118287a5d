//===- KernelHarness.h - Compile and call kernels in tests ------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parses a module with kernels, compiles it for this machine, loads the shared
// object from memory and calls a kernel as the runtime does.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_LOWERING_KERNELHARNESS_H
#define ZERO_TEST_UNIT_LOWERING_KERNELHARNESS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace zero_test {

using Shape = std::vector<int64_t>;

int64_t countElements(const Shape &shape);

/// "4x1xf32" inside tensor<...>: the MLIR type of `shape`.
std::string tensorType(const Shape &shape, const std::string &element = "f32");

/// `text` with every %NAME% of `values` replaced.
std::string
substitute(std::string text,
           const std::vector<std::pair<std::string, std::string>> &values);

/// Pseudo-random numbers between `low` and `high`, the same on every run.
std::vector<float> randomFloats(int64_t count, float low = -2, float high = 2,
                                uint32_t seed = 1);

/// Compiled kernels, loaded into this process.
class Kernels {
public:
  /// Compiles all kernels of `text` for the processor `cpu`; where that fails
  /// `error()` says why.
  explicit Kernels(const std::string &text, const std::string &cpu = "native");
  ~Kernels();
  Kernels(const Kernels &) = delete;
  Kernels &operator=(const Kernels &) = delete;

  bool isValid() const { return library != nullptr; }

  /// The address of a kernel.
  void *find(const std::string &name) const;

  /// Calls `void name(void **buffers)`.
  void run(const std::string &name, std::vector<void *> buffers) const;

  /// How many steps of the kernel parts may share; 0: it runs as a whole.
  int64_t split(const std::string &name) const;

  /// Calls `void name(void **buffers, int64_t begin, int64_t end)`.
  void run(const std::string &name, std::vector<void *> buffers, int64_t begin,
           int64_t end) const;

  /// The shared object.
  const std::string &bytes() const { return sharedObject; }

  /// The message of the first error, for tests of errors.
  const std::string &error() const { return message; }

private:
  void load();

  mlir::MLIRContext context;
  std::string message;
  std::string sharedObject;
  std::map<std::string, int64_t> splits;
  void *library = nullptr;
  int descriptor = -1;
};

/// Fails the test where `actual` and `expected` differ by more than
/// `tolerance` times 1 + |expected|; not a number equals itself.
void expectClose(const std::vector<float> &actual,
                 const std::vector<float> &expected, double tolerance = 1e-6);
void expectClose(const std::vector<double> &actual,
                 const std::vector<double> &expected, double tolerance = 1e-12);

} // namespace zero_test

#endif // ZERO_TEST_UNIT_LOWERING_KERNELHARNESS_H
