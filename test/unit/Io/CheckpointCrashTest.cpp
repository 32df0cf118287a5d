//===- CheckpointCrashTest.cpp - Every call of a save, made to fail -------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A run saves step 1, then step 2 in its place (--keep 1), and something
// happens at the n-th call, for every n. Afterwards the old or the new
// checkpoint loads with all its values. The counts are printed. Without threads
// call n is the same each time; with them each test runs once more.
//
//===----------------------------------------------------------------------===//

#include "CheckpointRun.h"
#include "FaultFileSystem.h"
#include "MemoryFileSystem.h"
#include "TestFiles.h"

#include <sys/wait.h>
#include <unistd.h>

using namespace zrt;
using namespace zrt::test;

namespace {

/// What was found after so many faults.
struct Counts {
  int points = 0, none = 0, old = 0, fresh = 0, errors = 0;
  std::string lastError;

  void add(int64_t found) {
    ++points;
    ++(found == 0 ? none : found == 1 ? old : fresh);
  }
  void print(const char *what) const {
    std::printf("%s: %d points, %d old and %d new checkpoints loaded, %d "
                "errors reported\n",
                what, points, old, fresh, errors);
  }
};

/// Saves steps up to `last`, with the fault in the last save.
void saveUpTo(int64_t last, FileSystem &base, FileSystem &faulty,
              unsigned threads) {
  if (last == 2) {
    CheckpointFolder folder("run", base);
    saveKnown(folder, 1, /*keep=*/1);
  }
  CheckpointFolder folder("run", faulty, threads);
  saveKnown(folder, last, /*keep=*/1);
}

/// Kills at every call of the save of step `last`, and takes the power away.
Counts killEverywhere(int64_t last, Loss loss, unsigned seed,
                      unsigned threads = 0, bool fileLie = false,
                      bool folderLie = false) {
  Counts counts;
  for (uint64_t call = 1;; ++call) {
    MemoryFileSystem disk;
    disk.ignoreFileSync = fileLie;
    disk.ignoreFolderSync = folderLie;
    FaultFileSystem faulty(disk, {Fault::Kind::Kill, call});
    bool ended = false;
    try {
      saveUpTo(last, disk, faulty, threads);
      ended = !faulty.struck();
    } catch (const Killed &) {
    } catch (const IoError &) {
    }
    disk.reboot(loss, seed + unsigned(call));
    int64_t found = -1;
    try {
      found = newestStep("run", disk);
    } catch (const IoError &error) {
      ++counts.errors;
      counts.lastError = error.what();
    }
    if (found >= 0)
      counts.add(found);
    if (found >= 0 && last == 2 && !found)
      ++counts.errors;
    // What is left over goes, and the next save works.
    if (found >= 0) {
      {
        CheckpointFolder folder("run", disk);
        saveKnown(folder, 3, /*keep=*/1);
      }
      EXPECT_EQ(newestStep("run", disk), 3);
      for (const std::string &name : disk.allNames())
        EXPECT_TRUE(name == "run" || name.rfind("run/step-00000003", 0) == 0)
            << name << " is left over";
    }
    if (ended) {
      if (found >= 0 && !fileLie && !folderLie) {
        EXPECT_EQ(found, last) << "a save that returned is on disk";
      }
      return counts;
    }
  }
}

TEST(CheckpointCrash, KilledBeforeEveryCallOfTheFirstSave) {
  Counts all;
  for (Loss loss : {Loss::All, Loss::Bytes, Loss::Names, Loss::Random})
    for (unsigned seed = 0; seed < (loss == Loss::Random ? 20 : 1); ++seed) {
      Counts counts = killEverywhere(1, loss, seed * 1000);
      EXPECT_GT(counts.points, 30);
      EXPECT_GT(counts.none, 0);
      EXPECT_GT(counts.old, 0);
      EXPECT_EQ(counts.errors, 0) << counts.lastError;
      all.points += counts.points;
      all.none += counts.none;
      all.old += counts.old;
    }
  std::printf("killed in the first save, then no power: %d points, %d new "
              "checkpoints loaded, %d without any yet\n",
              all.points, all.old, all.none);
}

TEST(CheckpointCrash, KilledBeforeEveryCallOfTheNextSave) {
  Counts all;
  for (Loss loss : {Loss::All, Loss::Bytes, Loss::Names, Loss::Random})
    for (unsigned seed = 0; seed < (loss == Loss::Random ? 20 : 1); ++seed) {
      Counts counts = killEverywhere(2, loss, seed * 1000);
      EXPECT_GT(counts.points, 40);
      EXPECT_GT(counts.old, 0);
      EXPECT_GT(counts.fresh, 0);
      EXPECT_EQ(counts.errors, 0) << counts.lastError;
      all.points += counts.points;
      all.old += counts.old;
      all.fresh += counts.fresh;
    }
  all.print("killed in the second save, then no power");
}

/// The calls of a thread and of the others in any order.
TEST(CheckpointCrash, KilledBeforeEveryCallOfThreads) {
  Counts all;
  for (int64_t last : {1, 2})
    for (Loss loss : {Loss::All, Loss::Bytes, Loss::Names, Loss::Random})
      for (unsigned seed = 0; seed < 5; ++seed) {
        Counts counts = killEverywhere(last, loss, seed * 1000, /*threads=*/2);
        EXPECT_GT(counts.points, 30);
        EXPECT_EQ(counts.errors, 0) << counts.lastError;
        all.points += counts.points;
        all.none += counts.none;
        all.old += counts.old;
        all.fresh += counts.fresh;
      }
  all.print("killed in a save by threads, then no power");
}

/// The tests above can fail: without syncs checkpoints are lost.
TEST(CheckpointCrash, MissingSyncsWouldBeSeen) {
  Counts noFileSync = killEverywhere(2, Loss::Bytes, 0, 0, true, false);
  Counts noFolderSync = killEverywhere(2, Loss::All, 0, 0, false, true);
  EXPECT_GT(noFileSync.errors, 0);
  EXPECT_GT(noFolderSync.errors, 0);
}

/// The same with a process that dies and the system's own files.
TEST_F(FileTest, CheckpointSurvivesTheDeathOfAProcess) {
  Counts counts;
  bool ended = false;
  for (uint64_t call = 1; !ended; ++call) {
    std::string path = in("run" + std::to_string(call));
    {
      CheckpointFolder folder(path);
      saveKnown(folder, 1, 1);
    }
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (!child) {
      FaultFileSystem faulty(FileSystem::real(), {Fault::Kind::Kill, call});
      faulty.onKill = [] { _exit(1); };
      CheckpointFolder folder(path, faulty, /*threads=*/0);
      saveKnown(folder, 2, 1);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    ended = WEXITSTATUS(status) == 0;
    int64_t found = newestStep(path, FileSystem::real());
    counts.add(found);
    EXPECT_TRUE(found == 2 || (found == 1 && !ended));
  }
  EXPECT_EQ(counts.none, 0);
  EXPECT_GT(counts.old, 0);
  EXPECT_GT(counts.fresh, 1);
  counts.print("process killed in the second save");
}

/// The error that the save reports, "" if it reports none.
std::string failAt(MemoryFileSystem &disk, FaultFileSystem &faulty,
                   unsigned threads) {
  try {
    saveUpTo(2, disk, faulty, threads);
  } catch (const IoError &error) {
    return error.what();
  }
  return "";
}

void failEverywhere(const char *what, Fault fault, bool harmless,
                    unsigned threads = 0) {
  Counts counts;
  for (fault.call = 1;; ++fault.call) {
    MemoryFileSystem disk;
    FaultFileSystem faulty(disk, fault);
    std::string error = failAt(disk, faulty, threads);
    if (!faulty.struck())
      break;
    counts.errors += !error.empty();
    EXPECT_EQ(error.find('\n'), error.npos);
    if (harmless) {
      EXPECT_EQ(error, "") << "call " << fault.call;
    }
    // An error once is cleaned up after; one for ever by the next run.
    std::set<std::string> hidden;
    for (const std::string &name : disk.allNames())
      if (name.find("/.saving") != name.npos && !fault.forever)
        hidden.insert(name);
    EXPECT_TRUE(hidden.empty() || !error.empty()) << *hidden.begin();
    disk.reboot(Loss::All);
    int64_t found = newestStep("run", disk);
    counts.add(found);
    if (error.empty())
      EXPECT_EQ(found, 2) << "call " << fault.call;
    else
      EXPECT_TRUE(found == 1 || found == 2) << "call " << fault.call;
    CheckpointFolder folder("run", disk);
    for (const std::string &name : disk.allNames())
      EXPECT_EQ(name.find("/.saving"), name.npos) << name << " is left over";
  }
  EXPECT_GT(counts.points, 40);
  if (!harmless) {
    EXPECT_GT(counts.errors, 0);
    EXPECT_GT(counts.old, 0);
  }
  counts.print(what);
}

TEST(CheckpointCrash, FullDisk) {
  failEverywhere("ENOSPC once", {Fault::Kind::Error, 0, ENOSPC, false}, false);
  failEverywhere("ENOSPC from then on", {Fault::Kind::Error, 0, ENOSPC, true},
                 false);
}

TEST(CheckpointCrash, BrokenDisk) {
  failEverywhere("EIO once", {Fault::Kind::Error, 0, EIO, false}, false);
  failEverywhere("EIO from then on", {Fault::Kind::Error, 0, EIO, true}, false);
}

/// Once is harmless; for ever is an error and no endless loop.
TEST(CheckpointCrash, Interruptions) {
  failEverywhere("EINTR once", {Fault::Kind::Error, 0, EINTR, false}, true);
  failEverywhere("EINTR from then on", {Fault::Kind::Error, 0, EINTR, true},
                 false);
}

TEST(CheckpointCrash, ShortTransfers) {
  failEverywhere("short once", {Fault::Kind::Short, 0, 0, false}, true);
  failEverywhere("short from then on", {Fault::Kind::Short, 0, 0, true}, true);
}

/// An error of a thread is that of the save.
TEST(CheckpointCrash, FaultsOfThreads) {
  for (bool forever : {false, true}) {
    failEverywhere("ENOSPC, threads", {Fault::Kind::Error, 0, ENOSPC, forever},
                   false, 2);
    failEverywhere("EIO, threads", {Fault::Kind::Error, 0, EIO, forever}, false,
                   2);
    failEverywhere("EINTR, threads", {Fault::Kind::Error, 0, EINTR, forever},
                   !forever, 2);
    failEverywhere("short, threads", {Fault::Kind::Short, 0, 0, forever}, true,
                   2);
  }
}

/// The same for loading.
TEST(CheckpointCrash, EveryCallOfALoadFails) {
  MemoryFileSystem disk;
  {
    CheckpointFolder folder("run", disk);
    saveKnown(folder, 1);
  }
  for (unsigned threads : {0, 2})
    for (int error : {EIO, EINTR, 0})
      for (bool forever : {false, true}) {
        int points = 0, errors = 0;
        for (uint64_t call = 1;; ++call) {
          Fault::Kind kind = error ? Fault::Kind::Error : Fault::Kind::Short;
          FaultFileSystem faulty(disk, {kind, call, error, forever});
          try {
            EXPECT_EQ(loadKnown(Checkpoint::open("run", faulty), threads), 1);
          } catch (const IoError &failed) {
            ++errors;
            EXPECT_NE(std::string(failed.what()).find("run"),
                      std::string::npos);
          }
          if (!faulty.struck())
            break;
          ++points;
        }
        std::printf("load, %s %s: %d points, %d errors reported\n",
                    error ? std::strerror(error) : "short transfer",
                    forever ? "from then on" : "once", points, errors);
        EXPECT_GT(points, 20);
        bool harmless = !error || (error == EINTR && !forever);
        EXPECT_EQ(errors > 0, !harmless);
      }
}

} // namespace
