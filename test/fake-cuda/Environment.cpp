//===- Environment.cpp - What FAKE_CUDA_* variables say -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/Environment.h"
#include "test/fake-cuda/Queue.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unistd.h>
#include <vector>

using namespace fake_cuda;

static std::string text(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

static uint64_t number(const char *name, uint64_t otherwise) {
  std::string value = text(name);
  if (value.empty())
    return otherwise;
  char *end = nullptr;
  unsigned long long parsed = strtoull(value.c_str(), &end, 10);
  if (*end) {
    fprintf(stderr, "fake-cuda: error: %s is '%s', no number\n", name,
            value.c_str());
    _exit(1);
  }
  return parsed;
}

static Environment readEnvironment() {
  Environment read;
  read.devices = static_cast<int>(number("FAKE_CUDA_DEVICES", 1));
  read.capability = static_cast<int>(number("FAKE_CUDA_SM", 90));
  read.memory = number("FAKE_CUDA_MEMORY", read.memory);
  read.seed = number("FAKE_CUDA_SEED", 0);
  read.log = text("FAKE_CUDA_LOG");
  read.fault = text("FAKE_CUDA_FAULT");
  read.dropWait = number("FAKE_CUDA_DROP_WAIT", 0);
  read.leaks = number("FAKE_CUDA_LEAKS", 0) != 0;
  return read;
}

const Environment &fake_cuda::environment() {
  static const Environment *read = new Environment(readEnvironment());
  return *read;
}

//===----------------------------------------------------------------------===//
// The log
//===----------------------------------------------------------------------===//

static thread_local int logDevice = -1;

void fake_cuda::setLogDevice(int device) { logDevice = device; }

static std::mutex &logMutex() {
  static std::mutex *mutex = new std::mutex;
  return *mutex;
}

static FILE *logFile() {
  static std::map<int, FILE *> *files = new std::map<int, FILE *>;
  FILE *&file = (*files)[logDevice];
  if (file)
    return file;
  // What belongs to no device is appended: processes share that file.
  std::string path = environment().log;
  if (logDevice >= 0)
    path += "." + std::to_string(logDevice);
  file = fopen(path.c_str(), logDevice >= 0 ? "w" : "a");
  if (!file) {
    fprintf(stderr, "fake-cuda: error: cannot write the log %s\n",
            path.c_str());
    _exit(1);
  }
  setvbuf(file, nullptr, _IOLBF, 0);
  return file;
}

void fake_cuda::log(const char *format, ...) {
  if (environment().log.empty())
    return;
  std::lock_guard<std::mutex> lock(logMutex());
  FILE *file = logFile();
  va_list arguments;
  va_start(arguments, format);
  vfprintf(file, format, arguments);
  va_end(arguments);
  fputc('\n', file);
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

namespace {
struct Errors {
  std::mutex mutex;
  std::string first;
  std::vector<std::string (*)()> leaks;
  std::map<std::pair<std::string, int>, uint64_t> calls;
};
} // namespace

static Errors &errors() {
  static Errors *errors = new Errors;
  return *errors;
}

void fake_cuda::fail(const std::string &message) {
  Errors &all = errors();
  std::lock_guard<std::mutex> lock(all.mutex);
  // What follows an error is often only its consequence.
  if (!all.first.empty())
    return;
  all.first = message;
  fprintf(stderr, "fake-cuda: error: %s\n", message.c_str());
}

std::string fake_cuda::stickyError() {
  Errors &all = errors();
  std::lock_guard<std::mutex> lock(all.mutex);
  return all.first;
}

void fake_cuda::addExitCheck(std::string (*leaks)()) {
  std::lock_guard<std::mutex> lock(errors().mutex);
  errors().leaks.push_back(leaks);
}

std::string fake_cuda::injectedFault(const char *function) {
  const std::string &fault = environment().fault;
  if (fault.empty())
    return "";
  size_t colon = fault.find(':');
  if (fault.substr(0, colon) != function)
    return "";
  Errors &all = errors();
  std::lock_guard<std::mutex> lock(all.mutex);
  uint64_t call = ++all.calls[{function, logDevice}];
  std::string rest = colon == std::string::npos ? "1" : fault.substr(colon + 1);
  colon = rest.find(':');
  if (call != strtoull(rest.c_str(), nullptr, 10))
    return "";
  return colon == std::string::npos ? "error" : rest.substr(colon + 1);
}

namespace {
/// Its destructor runs when the process ends as it should.
struct AtExit {
  ~AtExit() {
    std::string leaks;
    for (auto *check : errors().leaks) {
      std::string more = environment().leaks ? check() : "";
      if (!more.empty())
        leaks += (leaks.empty() ? "" : ", ") + more;
    }
    if (!leaks.empty())
      fail("at the end of the process there are still " + leaks);
    if (stickyError().empty())
      return;
    fflush(nullptr);
    _exit(1);
  }
} atExit;
} // namespace
