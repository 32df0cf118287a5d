//===- KernelLibrary.h - The machine code of a program --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loads the kernels of a program, an ELF shared object inside the file, and
// finds them by name.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_KERNELLIBRARY_H
#define ZERO_RT_CORE_KERNELLIBRARY_H

#include <string>
#include <string_view>

namespace zrt {

/// A kernel: buffers in the order of the command's operands.
using Kernel = void (*)(void **buffers);

/// An ELF shared object that lives in memory.
class KernelLibrary {
public:
  /// Loads the object; throws Error. Empty bytes are a library of no kernels.
  explicit KernelLibrary(std::string_view elf);
  ~KernelLibrary();
  KernelLibrary(const KernelLibrary &) = delete;
  KernelLibrary &operator=(const KernelLibrary &) = delete;

  /// Address of a kernel; throws Error if there is none of that name.
  Kernel find(const std::string &name) const;

private:
  void *handle = nullptr;
  int file = -1;
};

} // namespace zrt

#endif // ZERO_RT_CORE_KERNELLIBRARY_H
