//===- FolderGuard.cpp - Who opens a file outside is stopped --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// /proc/self/fd says which file a descriptor is of, whatever its name was.
//
//===----------------------------------------------------------------------===//

#include "FolderGuard.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static std::string allowed;
static uint64_t opened;

void zero_fuzz::guardFolder(const std::string &folder) { allowed = folder; }
uint64_t zero_fuzz::openedFiles() { return opened; }

static int checked(int fd) {
  if (fd < 0 || allowed.empty())
    return fd;
  ++opened;
  char target[4096];
  std::string link = "/proc/self/fd/" + std::to_string(fd);
  ssize_t size = readlink(link.c_str(), target, sizeof(target));
  std::string path(target, size > 0 ? size_t(size) : 0);
  if (path != allowed && path.compare(0, allowed.size() + 1, allowed + "/")) {
    fprintf(stderr, "opened '%s', outside of the model's folder\n",
            path.c_str());
    abort();
  }
  return fd;
}

extern "C" {
int __real_open(const char *path, int flags, ...);
int __real_openat(int dir, const char *path, int flags, ...);
long __real_syscall(long number, ...);

int __wrap_open(const char *path, int flags, ...) {
  return checked(__real_open(path, flags, 0600));
}
int __wrap_openat(int dir, const char *path, int flags, ...) {
  return checked(__real_openat(dir, path, flags, 0600));
}
long __wrap_syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long),
       d = va_arg(list, long);
  va_end(list);
  long result = __real_syscall(number, a, b, c, d);
  return number == SYS_openat2 ? checked(int(result)) : result;
}
}
