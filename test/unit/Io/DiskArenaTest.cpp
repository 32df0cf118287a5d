//===- DiskArenaTest.cpp - Memory that lies in a file ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is written comes back, whatever its place and alignment and by whatever
// way the system offers; the file is private and has no name. Faults are in
// DiskFaultTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/DiskArena.h"

#include "MemoryFileSystem.h"
#include "TestFiles.h"

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <random>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace zrt;
using namespace zrt::test;

namespace {

constexpr uint64_t kBlock = DiskArena::blockBytes;

class DiskArenas : public FileTest {
protected:
  /// The message that `action` gives, with FOLDER for the folder's path.
  template <typename Action>
  std::string messageOf(Action action) {
    try {
      action();
    } catch (const IoError &error) {
      std::string text = error.what();
      for (size_t at; (at = text.find(folder)) != text.npos;)
        text.replace(at, folder.size(), "FOLDER");
      return text;
    }
    return "";
  }
};

/// Memory that is `shift` bytes behind a block's begin.
class Block {
public:
  explicit Block(uint64_t bytes, uint64_t shift = 0)
      : memory(static_cast<uint8_t *>(std::aligned_alloc(
            kBlock, (bytes + shift + kBlock) / kBlock * kBlock))),
        shift(shift) {}
  ~Block() { std::free(memory); }
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;
  uint8_t *data() { return memory + shift; }

private:
  uint8_t *memory;
  uint64_t shift;
};

/// Writes, fills and reads at places that look random, and compares with the
/// same in memory.
void compareWithMemory(DiskArena &arena, unsigned seed, int rounds) {
  std::mt19937 random(seed);
  std::vector<uint8_t> model(arena.bytes(), 0);
  for (int round = 0; round < rounds; ++round) {
    bool blocks = random() % 2; // as a plan does it
    uint64_t offset = random() % (arena.bytes() + 1);
    if (blocks)
      offset = offset / kBlock * kBlock;
    uint64_t bytes = random() % (arena.bytes() - offset + 1);
    if (random() % 3 == 0)
      bytes = std::min<uint64_t>(bytes, random() % 100);
    Block block(bytes, blocks ? 0 : random() % 100);
    auto same = [&](uint64_t from, uint64_t length) {
      Block back(length, random() % 2 ? 0 : 4);
      std::memset(back.data(), 99, length);
      arena.read(from, back.data(), length);
      ASSERT_EQ(std::memcmp(back.data(), &model[from], length), 0)
          << length << " bytes at " << from << " in round " << round;
    };
    if (random() % 4 == 0) {
      uint8_t value = random() % 2 ? 0xFF : 0;
      arena.fill(offset, bytes, value);
      std::fill_n(model.begin() + offset, bytes, value);
    } else {
      std::generate_n(block.data(), bytes, std::ref(random));
      bool toEnd = blocks && random() % 2;
      (arena.*(toEnd ? &DiskArena::writeToBlockEnd
                     : static_cast<void (DiskArena::*)(uint64_t, const void *,
                                                       uint64_t)>(
                           &DiskArena::write)))(offset, block.data(), bytes);
      std::copy_n(block.data(), bytes, model.begin() + offset);
      uint64_t end = offset + bytes,
               blockEnd = (end + kBlock - 1) / kBlock * kBlock;
      if (toEnd)
        std::fill_n(model.begin() + end, blockEnd - end, 0);
    }
    same(offset, bytes);
    same(0, model.size());
  }
}

DiskArenaOptions smallPieces() {
  DiskArenaOptions options;
  options.pieceBytes = 2 * kBlock;
  options.depth = 3;
  return options;
}

} // namespace

TEST_F(DiskArenas, WhatIsWrittenComesBack) {
  for (bool direct : {false, true})
    for (bool queue : {false, true})
      for (bool checksums : {false, true}) {
        DiskArenaOptions options = smallPieces();
        options.direct = direct;
        options.queue = queue;
        options.checksums = checksums;
        DiskArena arena(folder, 20 * kBlock, "test", options);
        compareWithMemory(arena, 7, 40);
      }
}

/// Many pieces, which a queue may finish in any order.
TEST_F(DiskArenas, LargeOnes) {
  DiskArena arena(folder, 20 << 20, "test");
  std::mt19937 random(3);
  Block data(arena.bytes()), back(arena.bytes());
  std::generate_n(data.data(), arena.bytes(), std::ref(random));
  arena.write(0, data.data(), arena.bytes());
  arena.read(0, back.data(), arena.bytes());
  EXPECT_EQ(std::memcmp(data.data(), back.data(), arena.bytes()), 0);
}

TEST_F(DiskArenas, EveryKindOfFileSystem) {
  for (int lacks = 0; lacks < 16; ++lacks) {
    MemoryFileSystem system;
    system.makeFolder(FileSystem::noFolder, "disk");
    system.noUnnamed = lacks & 1 ? EOPNOTSUPP : 0;
    system.noDirect = lacks & 2 ? EINVAL : 0;
    system.noAllocate = lacks & 4 ? EOPNOTSUPP : 0;
    system.noQueue = lacks & 8 ? EPERM : 0;
    DiskArena arena("disk", 12 * kBlock - 5, "test", smallPieces(), system);
    EXPECT_EQ(arena.bytes(), 12 * kBlock);
    EXPECT_EQ(system.allNames(), std::vector<std::string>{"disk"});
    EXPECT_EQ(arena.access(),
              std::string(lacks & 8 ? "pread and pwrite (io_uring: Operation "
                                      "not permitted)"
                                    : "io_uring") +
                  (lacks & 2 ? ", page cache (O_DIRECT: Invalid argument)"
                             : ", O_DIRECT"));
    compareWithMemory(arena, lacks, 25);
  }
}

/// A taken name is no reason to fail.
TEST_F(DiskArenas, NamesThatAreTaken) {
  MemoryFileSystem system;
  system.makeFolder(FileSystem::noFolder, "disk");
  std::string first = "disk/.zero-offload-" + std::to_string(getpid()) + "-0";
  system.createFile(FileSystem::noFolder, first);
  system.noUnnamed = EOPNOTSUPP;
  DiskArena arena("disk", kBlock, "test", {}, system);
  EXPECT_EQ(system.allNames(), (std::vector<std::string>{"disk", first}));
}

TEST_F(DiskArenas, ReadAndWriteAtOnce) {
  DiskArena arena(folder, 64 * kBlock, "test", smallPieces());
  Block ones(32 * kBlock), back(32 * kBlock);
  std::memset(ones.data(), 1, 32 * kBlock);
  arena.write(0, ones.data(), 32 * kBlock);
  std::thread writer([&] {
    for (int round = 0; round < 50; ++round)
      arena.write(32 * kBlock, ones.data(), 32 * kBlock);
  });
  for (int round = 0; round < 50; ++round) {
    std::memset(back.data(), 0, 32 * kBlock);
    arena.read(0, back.data(), 32 * kBlock);
    ASSERT_EQ(std::memcmp(back.data(), ones.data(), 32 * kBlock), 0);
  }
  writer.join();
}

TEST_F(DiskArenas, PrivateAndWithoutAName) {
  DiskArena arena(folder, kBlock, "test");
  EXPECT_EQ(numFiles(), 0u);
  int found = 0;
  for (const auto &entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code none;
    std::string target = std::filesystem::read_symlink(entry, none).string();
    struct stat info;
    if (target.rfind(folder + "/", 0) != 0 || stat(entry.path().c_str(), &info))
      continue;
    ++found;
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    EXPECT_EQ(info.st_nlink, 0u);
    EXPECT_GE(uint64_t(info.st_blocks) * 512, kBlock);
  }
  EXPECT_EQ(found, 1);
}

TEST_F(DiskArenas, NothingIsLeftWhenTheProcessIsKilled) {
  pid_t child = fork();
  if (child == 0) {
    DiskArena arena(folder, 8 * kBlock, "test");
    std::vector<uint8_t> data(8 * kBlock, 1);
    arena.write(0, data.data(), data.size());
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(numFiles(), 0u);
}

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

TEST_F(DiskArenas, FoldersThatCannotBeUsed) {
  auto make = [&](const std::string &path) {
    return messageOf([&] { DiskArena arena(path, kBlock, "rank 3"); });
  };
  EXPECT_EQ(make(in("none")), "FOLDER/none: cannot offload to disk there: No "
                              "such file or directory; name a folder that "
                              "exists");
  EXPECT_EQ(make(put("file", "")), "FOLDER/file: cannot offload to disk there: "
                                   "Not a directory; name a folder that "
                                   "exists");
  // No user may make files there.
  std::string message = make("/proc/self");
  EXPECT_EQ(message.rfind("/proc/self (rank 3): cannot create a file: ", 0), 0u)
      << message;
  EXPECT_NE(message.find("; name a folder that you may write to"),
            message.npos);
  std::filesystem::permissions(folder, std::filesystem::perms::owner_read |
                                           std::filesystem::perms::owner_exec);
  if (geteuid() != 0) {
    EXPECT_EQ(make(folder), "FOLDER (rank 3): cannot create a file: Permission "
                            "denied; name a folder that you may write to");
  }
}

TEST_F(DiskArenas, NoRoom) {
  MemoryFileSystem system;
  system.makeFolder(FileSystem::noFolder, "disk");
  system.room = 3 * kBlock;
  EXPECT_EQ(
      messageOf([&] { DiskArena("disk", 4 * kBlock, "rank 0", {}, system); }),
      "disk: rank 0 needs 16384 bytes, but only 12288 are free; make room "
      "there, name another folder, or offload less to disk");
  EXPECT_EQ(
      messageOf([&] { checkDiskRoom("disk", 5 * kBlock, "2 ranks", system); }),
      "disk: 2 ranks need 20480 bytes, but only 12288 are free; make "
      "room there, name another folder, or offload less to disk");
  checkDiskRoom("disk", 3 * kBlock, "2 ranks", system);
  // Someone else takes the room between the question and the file.
  struct Racing : MemoryFileSystem {
    int64_t freeBytes(Handle, uint64_t &result) override {
      result = asked++ ? 5 : 1 << 30;
      return 0;
    }
    int asked = 0;
  } racing;
  racing.makeFolder(FileSystem::noFolder, "disk");
  racing.room = 0;
  EXPECT_EQ(
      messageOf([&] { DiskArena("disk", 4 * kBlock, "rank 0", {}, racing); }),
      "disk (rank 0): it needs 16384 bytes, but only 5 are free; make room "
      "there, name another folder, or offload less to disk");
}

/// A real one, in memory, as it is on most systems.
TEST_F(DiskArenas, AFullFileSystem) {
  if (!Folder::exists("/dev/shm"))
    GTEST_SKIP() << "no /dev/shm";
  std::string message = messageOf(
      [&] { DiskArena arena("/dev/shm", uint64_t(1) << 45, "rank 0"); });
  EXPECT_EQ(message.rfind("/dev/shm: rank 0 needs 35184372088832 bytes, but "
                          "only ",
                          0),
            0u)
      << message;
}

/// The file system of memory has no O_DIRECT before Linux 6.6.
TEST_F(DiskArenas, InMemory) {
  if (!Folder::exists("/dev/shm"))
    GTEST_SKIP() << "no /dev/shm";
  DiskArena arena("/dev/shm", 20 * kBlock, "test", smallPieces());
  compareWithMemory(arena, 5, 40);
}

/// Lets the kernel refuse io_uring as containers do, in this process and for
/// good.
static bool refuseQueues(uint32_t error) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program = {4, code};
  return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
         !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

TEST_F(DiskArenas, TheKernelRefusesIoUring) {
  for (int error : {EPERM, ENOSYS}) {
    pid_t child = fork();
    if (child == 0) {
      if (!refuseQueues(error))
        _exit(2);
      DiskArena arena(folder, 20 * kBlock, "test", smallPieces());
      compareWithMemory(arena, 9, 10);
      std::string expected =
          std::string("pread and pwrite (io_uring: ") + strerror(error) + ")";
      _exit(arena.access().rfind(expected, 0) == 0 && !HasFailure() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
      GTEST_SKIP() << "no seccomp here";
    EXPECT_EQ(status, 0);
  }
}
