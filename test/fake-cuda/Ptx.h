//===- Ptx.h - Interpreter of PTX -----------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs kernels from their PTX, warp by warp: 32 lanes at a time, with barriers,
// shuffles and shared memory. Errors are one line each, with the kernel and the
// line of the PTX.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_PTX_H
#define ZERO_TEST_FAKECUDA_PTX_H

#include "test/fake-cuda/Memory.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fake_cuda {

struct Dim {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
};

/// An entry of a module. Launches of one function may run side by side.
class Function {
public:
  struct Parameter {
    uint32_t offset; ///< in the block of parameters
    uint32_t bytes;
  };

  virtual ~Function() = default;

  virtual const std::string &name() const = 0;
  virtual const std::vector<Parameter> &parameters() const = 0;
  virtual uint32_t staticSharedBytes() const = 0;
  virtual uint32_t localBytes() const = 0; ///< of a thread
  /// Of .maxntid, as a product; 1024 where it does not stand.
  virtual uint32_t maxThreads() const = 0;

  /// Runs all blocks. `block` is the block of parameters, `dynamicShared` the
  /// bytes of dynamic shared memory. All global loads and stores go through
  /// `recorder`. Returns "", or what went wrong: an access out of bounds, a data
  /// race inside a block, threads that never reach a barrier, a trap.
  virtual std::string launch(Dim gridDim, Dim blockDim, uint32_t dynamicShared,
                             const char *block,
                             AccessRecorder &recorder) const = 0;
};

class Module {
public:
  virtual ~Module() = default;

  /// Reads PTX for a device of compute capability `sm` (90 for 9.0). Variables
  /// at module level lie in memory of the device (`allocate`). Null: `error`
  /// has one line.
  static std::unique_ptr<Module> parse(std::string_view text, int device,
                                       int sm, std::string &error);

  /// Null if the module has no such entry. Lives as long as the module.
  virtual const Function *function(std::string_view name) const = 0;
  /// A variable; false if the module has none of the name.
  virtual bool variable(std::string_view name, Window &window) const = 0;
};

} // namespace fake_cuda

#endif // ZERO_TEST_FAKECUDA_PTX_H
