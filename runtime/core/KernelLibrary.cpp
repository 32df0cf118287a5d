//===- KernelLibrary.cpp - The machine code of a program ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See KernelLibrary.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/KernelLibrary.h"
#include "runtime/core/Error.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace zrt;

#if defined(__x86_64__)
static constexpr unsigned thisMachine = EM_X86_64;
#elif defined(__aarch64__)
static constexpr unsigned thisMachine = EM_AARCH64;
#else
static constexpr unsigned thisMachine = EM_NONE;
#endif

/// The loader trusts its input, so what is surely no library stops here.
static void checkElfHeader(std::string_view elf) {
  Elf64_Ehdr header;
  if (elf.size() < sizeof(header))
    fail(ZRT_ERROR_FORMAT, "the kernels are not an ELF object (", elf.size(),
         " bytes)");
  std::memcpy(&header, elf.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN)
    fail(ZRT_ERROR_FORMAT, "the kernels are not a 64-bit ELF shared object");
  if (header.e_machine != thisMachine)
    fail(ZRT_ERROR_TARGET, "the kernels are for ELF machine ", header.e_machine,
         ", this is ", thisMachine);
}

KernelLibrary::KernelLibrary(std::string_view elf) {
  if (elf.empty())
    return;
  checkElfHeader(elf);
  file = memfd_create("zplan-kernels", MFD_CLOEXEC);
  if (file < 0)
    fail(ZRT_ERROR_IO,
         "cannot create memory for the kernels: ", std::strerror(errno));
  for (size_t done = 0; done < elf.size();) {
    ssize_t count = write(file, elf.data() + done, elf.size() - done);
    if (count <= 0) {
      close(file);
      fail(ZRT_ERROR_IO, "cannot store the kernels: ", std::strerror(errno));
    }
    done += count;
  }
  // The file stays open while the library is loaded: the loader knows
  // libraries by path, and the path of a closed file would be used again.
  std::string path = "/proc/self/fd/" + std::to_string(file);
  handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    close(file);
    fail(ZRT_ERROR_FORMAT, "cannot load the kernels: ", dlerror());
  }
}

KernelLibrary::~KernelLibrary() {
  if (handle)
    dlclose(handle);
  if (file >= 0)
    close(file);
}

Kernel KernelLibrary::find(const std::string &name) const {
  void *address = handle ? dlsym(handle, name.c_str()) : nullptr;
  if (!address)
    fail(ZRT_ERROR_FORMAT, "the program has no kernel '", name, "'");
  return reinterpret_cast<Kernel>(address);
}
