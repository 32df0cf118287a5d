//===- LaunchSettings.h - Which process this is -----------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which rank of how many processes this one is, and where process 0 is: from
// flags, or from the variables that launchers set. The first of these that is
// there decides:
//
//   --rank and --world-size
//   torchrun   RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT, all of them
//   Open MPI   OMPI_COMM_WORLD_RANK, _SIZE
//   PMI        PMI_RANK, PMI_SIZE (MPICH, Intel MPI)
//   MVAPICH    MV2_COMM_WORLD_RANK, _SIZE
//   SLURM      SLURM_PROCID, SLURM_NTASKS, in a step
//
// A set that is not complete, or that contradicts another one, is an error that
// names both: a wrong guess would train several models in silence.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_LAUNCHSETTINGS_H
#define ZERO_TOOLS_ZERO_RUN_LAUNCHSETTINGS_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace zero_tools {

/// What the command line says about processes.
struct LaunchFlags {
  std::optional<int64_t> processes, rank, worldSize, localRank, masterPort;
  std::string masterAddress;
};

struct LaunchSettings {
  uint32_t rank = 0, size = 1;
  /// Among the processes of this machine; size 0: not known.
  uint32_t localRank = 0, localSize = 0;
  /// Where process 0 listens.
  std::string address = "127.0.0.1";
  uint16_t port = 0;
  /// Who says so, for messages: "Open MPI", "--world-size", ...
  std::string source;
};

/// The value of a variable; nothing where it is not set or empty.
using Environment =
    std::function<std::optional<std::string>(const std::string &)>;

/// That of this process.
std::optional<std::string> environmentVariable(const std::string &name);

/// Throws std::runtime_error. Size 1: this process is alone.
LaunchSettings launchSettings(const LaunchFlags &flags,
                              const Environment &environment);

/// The first host of a list like "n[001-015,20],h2". Throws std::runtime_error
/// with `name` in front.
std::string firstHost(const std::string &name, const std::string &list);

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_LAUNCHSETTINGS_H
