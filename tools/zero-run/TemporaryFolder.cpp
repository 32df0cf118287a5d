//===- TemporaryFolder.cpp - A folder that does not stay ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The signal handler may only use async-signal-safe calls: it knows the path
// through a plain pointer, and lists the folder with the system call that
// readdir wraps.
//
//===----------------------------------------------------------------------===//

#include "TemporaryFolder.h"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <stdexcept>
#include <sys/syscall.h>
#include <unistd.h>

using namespace zero_tools;

static const char *volatile removedFolder = nullptr;

namespace {
/// The kernel's record of an entry, linux_dirent64.
struct FolderEntry {
  uint64_t inode;
  int64_t next;
  uint16_t size;
  uint8_t type;
  char name[1];
};
} // namespace

static void removeFiles(int folder) {
  alignas(uint64_t) char buffer[4096];
  long bytes;
  while ((bytes = syscall(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0)
    for (long at = 0; at < bytes;) {
      auto *entry = reinterpret_cast<FolderEntry *>(buffer + at);
      unlinkat(folder, entry->name, 0); // fails for "." and ".."
      at += entry->size;
    }
}

static void removeAll() {
  const char *path = removedFolder;
  if (!path)
    return;
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    removeFiles(folder);
    close(folder);
  }
  rmdir(path);
}

/// SA_RESETHAND has restored the default action: the signal ends the process
/// as it would have done.
static void removeAndDie(int signal) {
  removeAll();
  raise(signal);
}

static void removeAtSignals() {
  struct sigaction action = {};
  action.sa_handler = removeAndDie;
  action.sa_flags = SA_RESETHAND | SA_NODEFER;
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS,
                     SIGFPE, SIGILL, SIGPIPE}) {
    struct sigaction old;
    // What the caller ignores (nohup) stays ignored, and a sanitizer's report
    // of a crash stays.
    if (!sigaction(signal, nullptr, &old) && old.sa_handler == SIG_DFL)
      sigaction(signal, &action, nullptr);
  }
}

TemporaryFolder::TemporaryFolder() {
  const char *root = std::getenv("TMPDIR");
  folder = std::string(root && *root ? root : "/tmp") + "/zero-run-XXXXXX";
  if (!mkdtemp(folder.data()))
    throw std::runtime_error(
        folder + ": cannot create temporary folder: " + std::strerror(errno));
  removedFolder = folder.c_str();
  removeAtSignals();
}

TemporaryFolder::TemporaryFolder(const std::string &path) : folder(path) {
  removedFolder = folder.c_str();
  removeAtSignals();
}

std::string TemporaryFolder::disown() {
  removedFolder = nullptr;
  return std::move(folder);
}

void TemporaryFolder::removeNow() { removeAll(); }

TemporaryFolder::~TemporaryFolder() {
  if (removedFolder != folder.c_str())
    return; // disowned; there may be another one by now
  removeAll();
  removedFolder = nullptr;
}
