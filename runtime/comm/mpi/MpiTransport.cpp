//===- MpiTransport.cpp - Data in messages of MPI -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See MpiTransport.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/mpi/MpiTransport.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace zrt;
using namespace zrt::mpi;

/// Most bytes of one message between steps.
static constexpr uint64_t messageBytes = 64 << 20;

/// Without a launcher MPI makes every process a world of its own.
static void checkLaunched(uint32_t size) {
  for (const char *variable :
       {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_SIZE"})
    if (std::getenv(variable))
      return;
  if (size > 1)
    fail(ZRT_ERROR_ARGUMENT,
         "the transport mpi needs processes that mpirun or srun has started; "
         "use --transport shm on one machine");
}

/// Enters MPI, which a process can do once.
static void enterMpi() {
  int entered = 0, level = 0;
  MPI_Initialized(&entered);
  if (!entered)
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level),
          "start");
  check(MPI_Query_thread(&level), "threads");
  if (level < MPI_THREAD_MULTIPLE)
    fail(ZRT_ERROR_ARGUMENT,
         "this MPI cannot be used by several threads "
         "(MPI_THREAD_MULTIPLE), which transport mpi needs");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

/// Leaves MPI, which waits for all processes: only after success.
static void leaveMpi(const ProcessGroup &processes) {
  int left = 0;
  MPI_Finalized(&left);
  if (!left && processes.failure().empty())
    MPI_Finalize();
}

MpiTransport::MpiTransport(zrt_group &group, const Program &program)
    : group(group), processes(*group.processes), program(program) {
  checkLaunched(processes.size());
  enterMpi();
  if (!group.library)
    group.library = std::shared_ptr<void>(
        this, [processes = &this->processes](void *) { leaveMpi(*processes); });
  int size = 0;
  check(MPI_Comm_size(MPI_COMM_WORLD, &size), "size");
  if (uint32_t(size) != processes.size())
    fail(ZRT_ERROR_ARGUMENT, "MPI has ", size, " processes, the run has ",
         processes.size(), ": start all with one mpirun or srun");
  // Nobody waits inside MPI for one that does not come.
  processes.barrier();
  check(MPI_Comm_split(MPI_COMM_WORLD, 0, int(processes.rank()), &all),
        "communicator");
}

MpiTransport::~MpiTransport() {
  if (aborted)
    return; // messages are under way
  for (auto &[key, communicator] : communicators)
    MPI_Comm_free(&communicator->handle);
  MPI_Comm_free(&all);
}

std::unique_ptr<CollectiveCall>
MpiTransport::makeCollective(CollectiveRequest request) {
  const Command &command = request.command;
  std::shared_ptr<Communicator> &communicator =
      communicators[{command.stream, command.axes}];
  if (!communicator) {
    communicator = std::make_shared<Communicator>();
    check(MPI_Comm_split(all, int(request.number), int(processes.rank()),
                         &communicator->handle),
          "communicator");
  }
  auto own =
      std::find(request.group.begin(), request.group.end(), processes.rank());
  return std::make_unique<MpiCollective>(
      command.op, command.average, std::move(request.pieces),
      uint32_t(own - request.group.begin()), request.group, communicator,
      aborted, limitOf(group, command.plannedSeconds),
      processes.localSize() * program.numStreams);
}

//===----------------------------------------------------------------------===//
// Data between steps
//===----------------------------------------------------------------------===//

/// Waits for messages from or to `ranks`, one each.
void MpiTransport::await(std::vector<MPI_Request> &requests,
                         const std::vector<uint32_t> &ranks) {
  Waiting waiting(aborted, limitOf(group, program.plannedSeconds),
                  processes.localSize());
  for (size_t next = 0; next < requests.size();) {
    int arrived = 0;
    check(MPI_Test(&requests[next], &arrived, MPI_STATUS_IGNORE), "test");
    if (arrived) {
      waiting.progress();
      ++next;
    } else if (!waiting.pause()) {
      throw Late(
          lateText("rank " + std::to_string(ranks[next]), waiting.patience()));
    }
  }
}

void MpiTransport::allGather(const void *data, uint64_t bytes, void *to) {
  auto *own = const_cast<void *>(data); // MPI does not write what it sends
  std::vector<MPI_Request> requests;
  std::vector<uint32_t> ranks;
  for (uint64_t done = 0; done < bytes; done += messageBytes) {
    int count = int(std::min(messageBytes, bytes - done));
    requests.clear();
    ranks.clear();
    for (uint32_t rank = 0; rank < processes.size(); ++rank) {
      uint8_t *place = static_cast<uint8_t *>(to) + rank * bytes + done;
      uint8_t *from = static_cast<uint8_t *>(own) + done;
      if (rank == processes.rank()) {
        std::memcpy(place, from, size_t(count));
        continue;
      }
      ranks.insert(ranks.end(), 2, rank);
      check(MPI_Irecv(place, count, MPI_BYTE, int(rank), 0, all,
                      &requests.emplace_back()),
            "receive");
      check(MPI_Isend(from, count, MPI_BYTE, int(rank), 0, all,
                      &requests.emplace_back()),
            "send");
    }
    await(requests, ranks);
  }
}

void MpiTransport::toFirst(uint32_t from, void *data, uint64_t bytes) {
  uint32_t rank = processes.rank();
  if (from == 0 || (rank != 0 && rank != from))
    return;
  for (uint64_t done = 0; done < bytes; done += messageBytes) {
    auto *place = static_cast<uint8_t *>(data) + done;
    int count = int(std::min(messageBytes, bytes - done));
    std::vector<MPI_Request> requests(1);
    if (rank == 0)
      check(MPI_Irecv(place, count, MPI_BYTE, int(from), 0, all, &requests[0]),
            "receive");
    else
      check(MPI_Isend(place, count, MPI_BYTE, 0, 0, all, &requests[0]), "send");
    await(requests, {rank == 0 ? from : 0});
  }
}

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

extern "C" __attribute__((visibility("default"))) Transport *
zrt_make_transport(zrt_group &group, const Program &program) {
  return new MpiTransport(group, program);
}
