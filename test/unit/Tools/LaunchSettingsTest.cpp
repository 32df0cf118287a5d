//===- LaunchSettingsTest.cpp - Which process this is ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A table of environments, and the rank that each one means or the error.
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/LaunchSettings.h"

#include "gtest/gtest.h"
#include <map>

using namespace zero_tools;

using Variables = std::map<std::string, std::string>;

static Environment environmentOf(const Variables &variables) {
  return [variables](const std::string &name) -> std::optional<std::string> {
    auto found = variables.find(name);
    if (found == variables.end() || found->second.empty())
      return std::nullopt;
    return found->second;
  };
}

/// The settings as one text, or the error.
static std::string meaning(const Variables &variables,
                           const LaunchFlags &flags = {}) {
  try {
    LaunchSettings settings = launchSettings(flags, environmentOf(variables));
    if (settings.size == 1)
      return "alone";
    return std::to_string(settings.rank) + "/" + std::to_string(settings.size) +
           " local " + std::to_string(settings.localRank) + "/" +
           std::to_string(settings.localSize) + " at " + settings.address +
           ":" + std::to_string(settings.port) + " by " + settings.source;
  } catch (const std::runtime_error &error) {
    return error.what();
  }
}

static const Variables torchrun = {{"RANK", "5"},
                                   {"WORLD_SIZE", "8"},
                                   {"LOCAL_RANK", "1"},
                                   {"LOCAL_WORLD_SIZE", "4"},
                                   {"MASTER_ADDR", "node1"},
                                   {"MASTER_PORT", "29400"}};
static const Variables openMpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                                  {"OMPI_COMM_WORLD_SIZE", "4"},
                                  {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
static const Variables pmi = {{"PMI_RANK", "1"},
                              {"PMI_SIZE", "2"},
                              {"MPI_LOCALRANKID", "1"},
                              {"MPI_LOCALNRANKS", "2"}};
static const Variables mvapich = {{"MV2_COMM_WORLD_RANK", "3"},
                                  {"MV2_COMM_WORLD_SIZE", "6"},
                                  {"MV2_COMM_WORLD_LOCAL_RANK", "3"},
                                  {"MV2_COMM_WORLD_LOCAL_SIZE", "6"}};
static const Variables slurmStep = {
    {"SLURM_JOB_ID", "77"},   {"SLURM_STEP_ID", "0"},
    {"SLURM_PROCID", "1"},    {"SLURM_STEP_NUM_TASKS", "2"},
    {"SLURM_NTASKS", "2"},    {"SLURM_LOCALID", "0"},
    {"MASTER_PORT", "29401"}, {"SLURM_STEP_NODELIST", "n[001-015],h2"}};

/// `first` with the variables of `second`, and without those that are "".
static Variables with(Variables first, const Variables &second) {
  for (const auto &[name, value] : second)
    first[name] = value;
  return first;
}

TEST(LaunchSettings, EachLauncher) {
  EXPECT_EQ(meaning({}), "alone");
  EXPECT_EQ(meaning(torchrun), "5/8 local 1/4 at node1:29400 by torchrun");
  EXPECT_EQ(meaning(openMpi), "2/4 local 2/4 at 127.0.0.1:29500 by Open MPI");
  EXPECT_EQ(meaning(pmi), "1/2 local 1/2 at 127.0.0.1:29500 by PMI");
  EXPECT_EQ(meaning(mvapich), "3/6 local 3/6 at 127.0.0.1:29500 by MVAPICH");
  EXPECT_EQ(meaning(slurmStep), "1/2 local 0/1 at n001:29401 by SLURM step");
}

TEST(LaunchSettings, Precedence) {
  Variables all = with(with(pmi, mvapich), slurmStep);
  EXPECT_EQ(meaning(all), "1/2 local 1/2 at 127.0.0.1:29401 by PMI");
  all = with(all, openMpi);
  EXPECT_EQ(meaning(all), "2/4 local 2/4 at 127.0.0.1:29401 by Open MPI");
  // torchrun that srun has started, one a machine.
  all = with(with(all, torchrun), {{"TORCHELASTIC_RUN_ID", "none"}});
  EXPECT_EQ(meaning(all), "5/8 local 1/4 at node1:29400 by torchrun");
  LaunchFlags flags;
  flags.rank = 0;
  flags.worldSize = 3;
  EXPECT_EQ(meaning(all, flags),
            "0/3 local 0/0 at node1:29400 by --rank and --world-size");
  flags.localRank = 2;
  flags.masterAddress = "::1";
  flags.masterPort = 7;
  EXPECT_EQ(meaning(all, flags),
            "0/3 local 2/3 at ::1:7 by --rank and --world-size");
}

TEST(LaunchSettings, OnlyStepsOfSlurm) {
  // salloc and sbatch give the variables to a shell, which is one process.
  EXPECT_EQ(meaning(with(slurmStep, {{"SLURM_STEP_ID", ""}})), "alone");
  EXPECT_EQ(meaning(with(slurmStep, {{"SLURM_STEP_ID", "4294967290"}})),
            "alone");
  EXPECT_EQ(meaning(with(slurmStep, {{"SLURM_STEP_ID", "4294967291"}})),
            "alone");
  EXPECT_EQ(
      meaning(with(slurmStep, {{"SLURM_STEP_ID", ""}, {"SLURM_STEPID", "3"}})),
      "1/2 local 0/1 at n001:29401 by SLURM step");
  // srun of one process.
  EXPECT_EQ(meaning(with(slurmStep, {{"SLURM_STEP_NUM_TASKS", "1"},
                                     {"SLURM_PROCID", "0"}})),
            "alone");
  EXPECT_EQ(meaning(with(slurmStep, {{"SLURM_STEP_NUM_TASKS", ""}})),
            "1/2 local 0/1 at n001:29401 by SLURM step");
}

TEST(LaunchSettings, PortsOfJobs) {
  // The same for all processes of a job, another one for another job.
  Variables job = with(slurmStep, {{"MASTER_PORT", ""}});
  std::string first = meaning(job);
  EXPECT_EQ(first, "1/2 local 0/1 at n001:64853 by SLURM step");
  EXPECT_NE(meaning(with(job, {{"SLURM_JOB_ID", "78"}})), first);
  EXPECT_NE(meaning(with(openMpi, {{"PMIX_NAMESPACE", "123"}})),
            meaning(with(openMpi, {{"PMIX_NAMESPACE", "124"}})));
  // torchrun itself listens on the port.
  EXPECT_NE(meaning(with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}})),
            meaning(torchrun));
  EXPECT_EQ(
      meaning(with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})),
      meaning(torchrun));
}

TEST(LaunchSettings, PartialSets) {
  EXPECT_EQ(meaning({{"RANK", "1"}, {"MASTER_ADDR", "h"}}),
            "RANK=1, MASTER_ADDR=h of torchrun's variables are set, and "
            "WORLD_SIZE, LOCAL_RANK, MASTER_PORT are not: set all of them or "
            "none");
  EXPECT_EQ(meaning(with(torchrun, {{"MASTER_PORT", ""}})),
            "RANK=5, WORLD_SIZE=8, LOCAL_RANK=1, MASTER_ADDR=node1 of "
            "torchrun's variables are set, and MASTER_PORT are not: set all of "
            "them or none");
  EXPECT_EQ(meaning({{"OMPI_COMM_WORLD_RANK", "1"}}),
            "OMPI_COMM_WORLD_RANK=1 is set (Open MPI) and OMPI_COMM_WORLD_SIZE "
            "is not");
  EXPECT_EQ(meaning({{"PMI_SIZE", "4"}}),
            "PMI_SIZE=4 is set (PMI) and PMI_RANK is not");
  // Address and port are anybody's.
  EXPECT_EQ(meaning({{"MASTER_ADDR", "h"}, {"MASTER_PORT", "7"}}), "alone");
  EXPECT_EQ(meaning(with(openMpi, {{"MASTER_ADDR", "h"}})),
            "2/4 local 2/4 at h:29500 by Open MPI");
  // What a script has copied says the same.
  EXPECT_EQ(meaning(with(openMpi, {{"RANK", "2"}, {"LOCAL_RANK", "2"}})),
            "2/4 local 2/4 at 127.0.0.1:29500 by Open MPI");
}

TEST(LaunchSettings, Contradictions) {
  EXPECT_EQ(meaning(with(openMpi, {{"WORLD_SIZE", "8"}})),
            "WORLD_SIZE=8 (torchrun) contradicts OMPI_COMM_WORLD_SIZE=4 (Open "
            "MPI): unset one of them");
  // A set that the shell still has from another run.
  EXPECT_EQ(meaning(with(torchrun, openMpi)),
            "RANK=5 WORLD_SIZE=8 (torchrun) contradicts OMPI_COMM_WORLD_RANK=2 "
            "OMPI_COMM_WORLD_SIZE=4 (Open MPI): unset the variables of one of "
            "them");
  LaunchFlags flags;
  flags.worldSize = 8;
  EXPECT_EQ(meaning(openMpi, flags),
            "--world-size 8 contradicts OMPI_COMM_WORLD_SIZE=4 (Open MPI); "
            "--rank and --world-size together take the place of it");
  flags.worldSize = 4;
  EXPECT_EQ(meaning(openMpi, flags),
            "2/4 local 2/4 at 127.0.0.1:29500 by Open MPI");
  EXPECT_EQ(meaning({}, flags), "--world-size is given and --rank is not, nor "
                                "does the environment say it");
  flags = {};
  flags.localRank = 1;
  EXPECT_EQ(meaning({}, flags),
            "--local-rank is given, but neither flags nor environment say that "
            "there are other processes");
}

TEST(LaunchSettings, BadNumbers) {
  EXPECT_EQ(meaning(with(torchrun, {{"RANK", "x"}})),
            "RANK='x': expected a whole number");
  EXPECT_EQ(meaning(with(torchrun, {{"RANK", "-1"}})),
            "RANK='-1': expected a whole number");
  EXPECT_EQ(meaning(with(torchrun, {{"WORLD_SIZE", "99999999999"}})),
            "WORLD_SIZE='99999999999': expected a whole number");
  EXPECT_EQ(meaning(with(torchrun, {{"RANK", "8"}})),
            "RANK=8 and WORLD_SIZE=8: ranks go from 0 to 7");
  EXPECT_EQ(meaning(with(torchrun, {{"LOCAL_RANK", "4"}})),
            "LOCAL_RANK=4 and LOCAL_WORLD_SIZE=4: ranks go from 0 to 3");
  EXPECT_EQ(meaning(with(torchrun, {{"WORLD_SIZE", "0"}})),
            "WORLD_SIZE=0: there has to be a process");
  EXPECT_EQ(meaning(with(torchrun, {{"MASTER_PORT", "70000"}})),
            "MASTER_PORT=70000: expected a port from 1 to 65535");
}

TEST(LaunchSettings, ProcessZeroHasToBeKnown) {
  EXPECT_EQ(meaning(with(openMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}})),
            "where is process 0? OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 "
            "(Open MPI) does not say that all processes are on one machine: "
            "give --master-addr or MASTER_ADDR");
}

/// The first host of a list, or the error.
static std::string first(const std::string &list) {
  try {
    return firstHost("L", list);
  } catch (const std::runtime_error &error) {
    return error.what();
  }
}

TEST(LaunchSettings, HostLists) {
  EXPECT_EQ(first("h1"), "h1");
  EXPECT_EQ(first("h1,h2"), "h1");
  EXPECT_EQ(first("n[001-015],h2"), "n001");
  EXPECT_EQ(first("n[7,9-11]"), "n7");
  EXPECT_EQ(first("rack[2-3]-n[05,06].lan,x"), "rack2-n05.lan");
  for (const char *bad : {"", ",h", "n[", "n[]", "n[1", "n]", "n[,2]", "[-3]"})
    EXPECT_EQ(first(bad), "L='" + std::string(bad) + "': is no list of hosts");
}
