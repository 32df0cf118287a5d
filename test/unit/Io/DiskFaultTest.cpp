//===- DiskFaultTest.cpp - Disks that fail --------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each call to the file system fails once: the data is right, or there is one
// clear error, and no file is left.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/DiskArena.h"

#include "FaultFileSystem.h"
#include "MemoryFileSystem.h"
#include "TestFiles.h"

using namespace zrt;
using namespace zrt::test;

namespace {

constexpr uint64_t kBlock = DiskArena::blockBytes;

/// Ways to a disk.
struct Way {
  const char *name;
  bool real, queue, unnamed, allocates;
};
const Way ways[] = {{"queue", false, true, true, true},
                    {"no queue", false, false, true, true},
                    {"old file system", false, true, false, false},
                    {"this system", true, true, true, true},
                    {"this system without queue", true, false, true, true}};

class DiskFaults : public FileTest {
protected:
  /// Writes and reads through `system`; true if the data was right.
  bool use(FileSystem &system, const std::string &path, bool queue) {
    DiskArenaOptions options;
    options.pieceBytes = 2 * kBlock;
    options.depth = 3;
    options.queue = queue;
    DiskArena arena(path, 8 * kBlock, "rank 0", options, system);
    std::vector<uint8_t> data(6 * kBlock + 100), back(data.size());
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = uint8_t(i * 7 + i / kBlock);
    arena.writeToBlockEnd(kBlock, data.data(), data.size());
    arena.write(kBlock + 10, data.data() + 10, 5); // a part of a block
    arena.read(kBlock, back.data(), back.size());
    return back == data;
  }

  /// What one fault leads to.
  enum class Outcome { Right, Wrong, Error, Killed };
  Outcome strike(const Way &way, const Fault &fault, bool &struck) {
    MemoryFileSystem memory;
    memory.makeFolder(FileSystem::noFolder, "disk");
    memory.noUnnamed = way.unnamed ? 0 : EOPNOTSUPP;
    memory.noAllocate = way.allocates ? 0 : EOPNOTSUPP;
    FileSystem &base = way.real ? FileSystem::real() : memory;
    FaultFileSystem system(base, fault);
    Outcome outcome = Outcome::Killed;
    try {
      bool right = use(system, way.real ? folder : "disk", way.queue);
      outcome = right ? Outcome::Right : Outcome::Wrong;
    } catch (const IoError &error) {
      outcome = Outcome::Error;
      message = error.what();
    } catch (const Killed &) {
    }
    struck = system.struck();
    left = way.real ? numFiles() : memory.allNames().size() - 1;
    return outcome;
  }

  /// Strikes at every call; `check` judges each outcome.
  template <typename Check>
  void everywhere(Fault fault, Check check) {
    for (const Way &way : ways) {
      int calls = 0;
      for (fault.call = 1;; ++fault.call) {
        bool struck = false;
        message.clear();
        Outcome outcome = strike(way, fault, struck);
        if (!struck)
          break;
        ++calls;
        SCOPED_TRACE(std::string(way.name) + ", call " +
                     std::to_string(fault.call) + ": " + message);
        check(way, outcome);
        if (HasFailure())
          return;
      }
      EXPECT_GT(calls, 15) << way.name;
    }
  }

  std::string message;
  size_t left = 0;
};

} // namespace

TEST_F(DiskFaults, AnErrorIsTold) {
  for (bool inResult : {false, true}) {
    Fault fault{Fault::Kind::Error, 0, EIO, false, inResult};
    int errors = 0, right = 0;
    everywhere(fault, [&](const Way &, Outcome outcome) {
      // A question for room, a queue that is not made: there is another way.
      EXPECT_TRUE(outcome == Outcome::Error || outcome == Outcome::Right);
      ++(outcome == Outcome::Error ? errors : right);
      if (outcome == Outcome::Error) {
        EXPECT_NE(message.find("Input/output error"), message.npos);
        EXPECT_EQ(message.find('\n'), message.npos);
      }
      // Its name could not be removed, or no error was told of it.
      EXPECT_LE(left,
                message.find("cannot remove its file's name") != message.npos
                    ? 1u
                    : 0u);
    });
    EXPECT_GT(errors, 50);
    EXPECT_GT(right, 5);
  }
}

TEST_F(DiskFaults, InterruptionsAndShortTransfersAreNoError) {
  for (Fault fault : {Fault{Fault::Kind::Error, 0, EINTR},
                      Fault{Fault::Kind::Error, 0, EINTR, false, true},
                      Fault{Fault::Kind::Short}})
    everywhere(fault, [&](const Way &, Outcome outcome) {
      EXPECT_EQ(outcome, Outcome::Right);
      EXPECT_EQ(left, 0u);
    });
}

/// A bit that flips on the way to the disk or back is found at the latest when
/// the data is used.
TEST_F(DiskFaults, AFlippedBitIsFound) {
  int found = 0;
  everywhere({Fault::Kind::Flip}, [&](const Way &, Outcome outcome) {
    EXPECT_NE(outcome, Outcome::Wrong);
    if (outcome == Outcome::Error) {
      ++found;
      EXPECT_NE(message.find("the bytes are not those that were written "
                             "(checksum)"),
                message.npos);
    }
  });
  EXPECT_GT(found, 40);
}

TEST_F(DiskFaults, WithoutChecksumsItIsNotFound) {
  DiskArenaOptions options;
  options.checksums = false;
  options.queue = false;
  FaultFileSystem system(FileSystem::real(), {Fault::Kind::Flip, 9});
  DiskArena arena(folder, kBlock, "rank 0", options, system);
  uint8_t data[kBlock] = {}, back[kBlock];
  while (!system.struck()) {
    arena.write(0, data, kBlock);
    arena.read(0, back, kBlock);
  }
  EXPECT_EQ(back[0], 16);
}

TEST_F(DiskFaults, DeathLeavesNothing) {
  everywhere({Fault::Kind::Kill}, [&](const Way &way, Outcome outcome) {
    // Close is called by destructors: it does not throw, and what comes after
    // it fails.
    EXPECT_NE(outcome, Outcome::Wrong);
    // Where files need a name they have it for two calls.
    EXPECT_LE(left, way.unnamed ? 0u : 1u);
  });
}

TEST_F(DiskFaults, WhatTheMessagesSay) {
  Fault fault{Fault::Kind::Error, 1, ENOSPC, /*forever=*/true, true};
  MemoryFileSystem memory;
  memory.makeFolder(FileSystem::noFolder, "disk");
  // The calls until the arena stands.
  uint64_t calls = 0;
  {
    FaultFileSystem counting(memory, {});
    DiskArena arena("disk", 8 * kBlock, "rank 0", {}, counting);
    calls = counting.calls();
  }
  auto messageOf = [&](Fault fault, auto action) -> std::string {
    FaultFileSystem system(memory, fault);
    DiskArena arena("disk", 8 * kBlock, "rank 0", {}, system);
    try {
      action(arena);
    } catch (const IoError &error) {
      return error.what();
    }
    return "";
  };
  std::vector<uint8_t> data(3 * kBlock);
  auto write = [&](DiskArena &arena) {
    arena.write(kBlock, data.data(), data.size());
  };
  auto readBack = [&](DiskArena &arena) {
    write(arena);
    arena.read(kBlock, data.data(), data.size());
  };
  const std::string advice = "; go on from the last checkpoint, with another "
                             "folder if the disk is at fault";
  fault.call = calls + 1;
  EXPECT_EQ(messageOf(fault, write),
            "disk (rank 0): cannot write 12288 bytes at byte 4096: No space "
            "left on device" +
                advice);
  fault.call = calls + 2;
  fault.error = EIO;
  EXPECT_EQ(messageOf(fault, readBack),
            "disk (rank 0): cannot read 12288 bytes at byte 4096: Input/output "
            "error" +
                advice);
  fault = {Fault::Kind::Error, calls + 2, EIO};
  EXPECT_EQ(messageOf(fault, write),
            "disk (rank 0): cannot write: waiting for the disk: Input/output "
            "error" +
                advice);
  fault = {Fault::Kind::Flip, calls + 3};
  EXPECT_EQ(messageOf(fault, readBack),
            "disk (rank 0): cannot read 4096 bytes at byte 4096: the bytes are "
            "not those that were written (checksum)" +
                advice);
  EXPECT_EQ(messageOf({},
                      [&](DiskArena &arena) {
                        arena.read(6 * kBlock, data.data(), data.size());
                      }),
            "disk (rank 0): has 32768 bytes, not 12288 at byte 24576");
  // Interrupted for ever, and never a whole block.
  EXPECT_EQ(
      messageOf({Fault::Kind::Error, calls + 1, EINTR, true, true}, write)
          .rfind("disk (rank 0): cannot write 12288 bytes at byte 4096: ", 0),
      0u);
}

/// The file was made shorter from outside.
TEST_F(DiskFaults, AFileThatEndsEarly) {
  struct Ending : MemoryFileSystem {
    int64_t readAt(Handle file, void *data, size_t bytes,
                   uint64_t offset) override {
      return offset >= 2 * kBlock
                 ? 0
                 : MemoryFileSystem::readAt(file, data, bytes, offset);
    }
  } system;
  system.makeFolder(FileSystem::noFolder, "disk");
  DiskArenaOptions options;
  options.queue = false;
  options.pieceBytes = kBlock;
  DiskArena arena("disk", 4 * kBlock, "rank 0", options, system);
  std::vector<uint8_t> data(4 * kBlock, 1);
  arena.write(0, data.data(), data.size());
  try {
    arena.read(0, data.data(), data.size());
    FAIL();
  } catch (const IoError &error) {
    EXPECT_NE(
        std::string(error.what()).find("the file ends before, at byte 8192"),
        std::string::npos)
        << error.what();
  }
}

/// After an error the arena can be used again.
TEST_F(DiskFaults, AnErrorIsNotForEver) {
  FaultFileSystem system(FileSystem::real(),
                         {Fault::Kind::Error, 12, EIO, false, true});
  DiskArena arena(folder, 8 * kBlock, "rank 0", {}, system);
  std::vector<uint8_t> data(8 * kBlock, 3), back(data.size());
  int errors = 0;
  for (int round = 0; round < 6; ++round)
    try {
      arena.write(0, data.data(), data.size());
      back.assign(back.size(), 0);
      arena.read(0, back.data(), back.size());
      EXPECT_EQ(back, data);
    } catch (const IoError &) {
      ++errors;
    }
  EXPECT_EQ(errors, 1);
}
