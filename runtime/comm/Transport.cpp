//===- Transport.cpp - How data gets from process to process --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Transport.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Transport.h"

#include "runtime/comm/SharedTransport.h"
#include "runtime/core/Plugin.h"

#include <algorithm>

using namespace zrt;
using std::chrono::nanoseconds;

std::string zrt::commandText(const Program &program, size_t index) {
  const Command &command = program.commands[index];
  std::string text = "command " + std::to_string(index) + " (" +
                     opName(command.op) +
                     (command.callee.empty() ? "" : " " + command.callee) + ")";
  return command.location.empty() ? text : text + " from " + command.location;
}

nanoseconds zrt::limitOf(const zrt_group &group, double plannedSeconds) {
  constexpr double most = 1e9; // what nanoseconds can say, and more than a life
  double seconds = std::min(most, group.timeoutOf(plannedSeconds));
  return nanoseconds(int64_t(seconds * 1e9));
}

std::string zrt::lateText(const std::string &who, nanoseconds limit) {
  std::ostringstream text;
  text << (who.empty() ? "another rank" : who) << " has not come within "
       << std::chrono::duration<double>(limit).count() << " s";
  return text.str();
}

static constexpr Plugin mpiPlugin = {"libzero-rt-mpi.so", "the transport mpi"};

std::unique_ptr<Transport> zrt::makeTransport(zrt_group &group,
                                              const Program &program) {
  bool oneMachine = group.processes->oneMachine();
  std::string kind = group.transport;
  if (kind == "auto")
    kind = oneMachine ? "shm" : "mpi";
  if (kind == "shm" && !oneMachine)
    fail(ZRT_ERROR_ARGUMENT, "the transport shm is for processes of one "
                             "machine; these run on several: use mpi");
  if (kind == "shm")
    return std::make_unique<SharedTransport>(group, program);
  if (kind == "mpi")
    return std::unique_ptr<Transport>(
        findInPlugin<MakeTransport>(mpiPlugin, kMakeTransport)(group, program));
  fail(ZRT_ERROR_ARGUMENT, "unknown transport \"", kind, "\"; use shm or mpi");
}
