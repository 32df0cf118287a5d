//===- MpiTest.cpp - Tests of the transport over MPI ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs ProcessMain.cpp under mpirun.
//
//===----------------------------------------------------------------------===//

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace {
/// A port that nobody listens at.
int freePort() {
  int made = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(address);
  bind(made, reinterpret_cast<sockaddr *>(&address), bytes);
  getsockname(made, reinterpret_cast<sockaddr *>(&address), &bytes);
  close(made);
  return ntohs(address.sin_port);
}

/// What so many processes print, which end well or not.
std::string run(int processes, const std::string &what, bool well = true) {
  std::string command =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
      "LD_LIBRARY_PATH=" ZERO_TEST_LIBRARIES " timeout 120 " ZERO_TEST_MPIEXEC
      " --oversubscribe -quiet -np " +
      std::to_string(processes) + " " ZERO_TEST_PROCESS " " +
      std::to_string(freePort()) + " " + what + " 2>&1";
  FILE *output = popen(command.c_str(), "r");
  std::string text;
  char piece[256];
  while (output && fgets(piece, sizeof(piece), output))
    text += piece;
  int status = output ? pclose(output) : -1;
  EXPECT_EQ(WEXITSTATUS(status) == 0, well) << text;
  return text;
}
} // namespace

TEST(Mpi, CollectivesHaveTheBitsOfThreads) {
  EXPECT_EQ(run(1, "bits"), "3 programs have the bits of threads\n");
  EXPECT_EQ(run(2, "bits"), "3 programs have the bits of threads\n");
  EXPECT_EQ(run(4, "bits"), "9 programs have the bits of threads\n");
  EXPECT_EQ(run(6, "bits"), "2 programs have the bits of threads\n");
}

/// Shared memory among processes that mpirun has started.
TEST(Mpi, SharedMemory) {
  EXPECT_EQ(run(4, "bits shm"), "9 programs have the bits of threads\n");
}

TEST(Mpi, LateRank) {
  std::string text = run(3, "late", /*well=*/false);
  EXPECT_TRUE(text == "rank 0, command 0 (all_reduce) from fc1: rank 1 has not "
                      "come within 0.2 s\n" ||
              text == "rank 2, command 0 (all_reduce) from fc1: rank 1 has not "
                      "come within 0.2 s\n")
      << text;
}
