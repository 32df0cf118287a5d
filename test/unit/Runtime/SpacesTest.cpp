//===- SpacesTest.cpp - Device, host and disk -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs whose state lies in host memory or on disk: data, counters, checks
// and refusals.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

#include <fcntl.h>
#include <filesystem>
#include <limits>
#include <sys/resource.h>
#include <unistd.h>

using namespace zrt;
using namespace zrt::test;

namespace {

class Spaces : public ::testing::Test {
protected:
  Spaces() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "zero-rt-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~Spaces() override {
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    std::filesystem::remove_all(folder);
  }

  zrt_session_options options(bool checked = true) const {
    zrt_session_options result = {};
    result.check = result.poison = checked;
    result.offload_path = folder.c_str();
    return result;
  }

  std::string folder;
};

/// A bucket of four floats of state on disk, updated on the host from a
/// gradient of the device, and its new value on the device: all on streams of
/// their own, as a compiled step does it.
struct Offloaded {
  PlanBuilder plan;
  uint32_t x, onDisk, hostState, hostGradient, result;

  explicit Offloaded(uint32_t ranks, bool sharded = true) : plan(ranks) {
    plan.program.stream_names = {"compute",   "to_host",    "to_device",
                                 "disk_read", "disk_write", "host"};
    plan.streams(5, 5);
    x = plan.input("x", {4});
    result = plan.buffer("result", {4});
    plan.in(fb::Space_Disk);
    int64_t rows = sharded ? 4 * int64_t(ranks) : 4;
    fb::ParameterT &state =
        plan.parameter("m", {rows}, sharded, fb::Init_Zeros);
    state.role = fb::ParamRole_State;
    onDisk = state.buffer;
    plan.in(fb::Space_Host);
    hostGradient = plan.buffer("g", {4});
    hostState = plan.buffer("m.host", {4});
    plan.in(fb::Space_Device);
    copy(x, hostGradient, 1, {}, 0);
    copy(onDisk, hostState, 3, {}, 1);
    fb::CommandT &update =
        plan.launch("add4", {hostState, hostGradient, hostState});
    update.host = true;
    update.writes = {2};
    place(update, 5, {0, 1}, 2);
    copy(hostState, onDisk, 4, {2}, 3);
    copy(hostState, result, 2, {2}, 4);
    fb::CommandT &wait = plan.launch("double4", {result, result});
    place(wait, 0, {3, 4});
    plan.output(result, fb::AcrossRanks_Mean);
  }

  void copy(uint32_t from, uint32_t to, uint32_t stream,
            std::vector<uint32_t> wait, int32_t signal) {
    fb::CommandT &added = plan.command(fb::Op_Copy);
    plan.operand(added, from);
    plan.operand(added, to);
    place(added, stream, std::move(wait), signal);
  }
};

std::vector<float> parameterOf(Running &running, uint32_t index, size_t count) {
  std::vector<float> values(count);
  Status failed = running.session.getParameter(index, values.data(), count * 4);
  EXPECT_FALSE(failed) << failed.message();
  return values;
}

std::string stepError(Running &running) {
  Status failed = running.session.step();
  return failed.message();
}

/// Changes a byte of the only file in `folder` that this process has open.
void flipByte(const std::string &folder, off_t offset) {
  int flipped = 0;
  for (const auto &entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code none;
    std::string target = std::filesystem::read_symlink(entry, none).string();
    if (target.rfind(folder + "/", 0) != 0)
      continue;
    int file = open(entry.path().c_str(), O_RDWR);
    char byte = 0;
    ASSERT_EQ(pread(file, &byte, 1, offset), 1);
    byte ^= 1;
    ASSERT_EQ(pwrite(file, &byte, 1, offset), 1);
    fsync(file);
    close(file);
    ++flipped;
  }
  ASSERT_EQ(flipped, 1);
}

} // namespace

TEST_F(Spaces, StateOnDiskIsUpdatedOnTheHost) {
  for (uint32_t ranks : {1, 2, 3}) {
    Offloaded made(ranks);
    Running running(made.plan, options());
    for (int step = 1; step <= 3; ++step) {
      for (uint32_t rank = 0; rank < ranks; ++rank)
        running.set("x", int(rank), std::vector<float>(4, float(rank + 1)));
      running.step();
      for (uint32_t rank = 0; rank < ranks; ++rank)
        EXPECT_EQ(running.get(0, rank),
                  std::vector<float>(4, float(2 * step * (rank + 1))));
    }
    std::vector<float> state = parameterOf(running, 0, 4 * ranks);
    for (size_t i = 0; i < state.size(); ++i)
      EXPECT_EQ(state[i], 3.0f * float(i / 4 + 1));
  }
}

TEST_F(Spaces, Counters) {
  Offloaded made(2);
  Running running(made.plan, options());
  for (int step = 0; step < 3; ++step) {
    running.set("x", ZRT_ALL_RANKS, std::vector<float>(4, 1));
    running.step();
  }
  zrt_counters counters = running.session.counters();
  // 16 bytes on 2 ranks in 3 steps, not the 4096 of a block.
  for (int way : {ZRT_TO_HOST, ZRT_TO_DEVICE, ZRT_DISK_READ, ZRT_DISK_WRITE})
    EXPECT_EQ(counters.transfer_bytes_all_ranks[way], 96u) << way;
  EXPECT_GT(counters.transfer_ms, 0);
  EXPECT_GT(counters.host_ms, 0);
  EXPECT_EQ(counters.peak_bytes[ZRT_HOST], 8192u);
  EXPECT_EQ(counters.peak_bytes[ZRT_DISK], 4096u);
  EXPECT_EQ(zrt_program_planned_bytes(running.program.get(), ZRT_DISK), 4096u);
  EXPECT_EQ(running.program.parameter(0).space, ZRT_DISK);
  std::vector<int> ways, onHost;
  for (uint32_t index = 0; index < 6; ++index) {
    zrt_command_info info = running.program.command(index);
    ways.push_back(info.transfer);
    onHost.push_back(info.host);
    EXPECT_EQ(info.transfer_bytes_all_ranks, info.transfer < 0 ? 0u : 32u);
  }
  EXPECT_EQ(ways, (std::vector<int>{ZRT_TO_HOST, ZRT_DISK_READ, -1,
                                    ZRT_DISK_WRITE, ZRT_TO_DEVICE, -1}));
  EXPECT_EQ(onHost, (std::vector<int>{0, 0, 1, 0, 0, 0}));
  std::vector<zrt_span> spans;
  ASSERT_FALSE(running.session.spans(0, spans));
  EXPECT_GE(spans[3].start_ms, spans[2].end_ms);
}

/// State lies there for the whole step, the host's copies as long as they are
/// used.
TEST_F(Spaces, MemoryBySpace) {
  Offloaded made(1);
  Running running(made.plan, options());
  auto bytesOf = [&](zrt_space space, zrt_kind kind) {
    std::vector<zrt_memory> memory;
    EXPECT_FALSE(running.program.memoryOf(space, memory));
    std::vector<uint64_t> bytes;
    for (const zrt_memory &at : memory)
      bytes.push_back(at.bytes[kind]);
    return bytes;
  };
  EXPECT_EQ(bytesOf(ZRT_DISK, ZRT_KIND_PARAMETER),
            std::vector<uint64_t>(6, 4096));
  EXPECT_EQ(bytesOf(ZRT_HOST, ZRT_KIND_ACTIVATION)[0], 4096u);
  EXPECT_EQ(bytesOf(ZRT_HOST, ZRT_KIND_ACTIVATION)[2], 8192u);
  zrt_memory one;
  EXPECT_EQ(zrt_program_memory_of(running.program.get(), ZRT_DISK, &one, 1),
            ZRT_ERROR_ARGUMENT);
}

/// The last shards are shorter; what they lack is not moved for the model.
TEST_F(Spaces, PaddingOfShardsIsNotCounted) {
  PlanBuilder plan(2);
  plan.in(fb::Space_Disk);
  uint32_t onDisk = plan.parameter("w", {3}, true, fb::Init_Ones).buffer;
  plan.program.buffers[onDisk]->padding_bytes += 4;
  plan.in(fb::Space_Host);
  uint32_t host = plan.buffer("w.host", {2});
  fb::CommandT &copy = plan.command(fb::Op_Copy);
  plan.operand(copy, onDisk);
  plan.operand(copy, host);
  Running running(plan, options());
  running.step();
  zrt_counters counters = running.session.counters();
  EXPECT_EQ(counters.transfer_bytes_all_ranks[ZRT_DISK_READ], 12u);
}

/// Parameters in every space: whole and in chunks, with padding, also where a
/// rank holds nothing.
TEST_F(Spaces, DataInAndOut) {
  for (fb::Space space : {fb::Space_Host, fb::Space_Disk})
    for (uint32_t ranks : {1, 2, 5})
      for (int64_t rows : {1, 3, 700}) {
        PlanBuilder plan(ranks);
        plan.in(space);
        plan.parameter("w", {rows, 3}, true);
        plan.parameter("v", {rows, 3}, false);
        Running running(plan, options());
        std::vector<float> data = numbers(7, rows * 3);
        for (uint32_t index : {0, 1}) {
          Status failed =
              running.session.setParameter(index, data.data(), data.size() * 4);
          ASSERT_FALSE(failed) << failed.message();
          EXPECT_EQ(parameterOf(running, index, rows * 3), data);
        }
        running.step(); // checks padding and replicas
        // The first row, and another that crosses blocks.
        float row[3] = {1, 2, 3}, back[3];
        ASSERT_FALSE(running.session.writeChunk(0, 0, 0, row, 12));
        ASSERT_FALSE(running.session.readChunk(0, 0, 0, back, 12));
        EXPECT_EQ(std::memcmp(row, back, 12), 0);
        std::copy_n(row, 3, data.begin());
        if (rows == 700 && ranks == 1) {
          ASSERT_FALSE(running.session.writeChunk(0, 0, 4092, row, 12));
          std::copy_n(row, 3, data.begin() + 1023);
        }
        EXPECT_EQ(parameterOf(running, 0, rows * 3), data);
      }
}

TEST_F(Spaces, FirstChunkClearsTheRest) {
  PlanBuilder plan(2);
  plan.in(fb::Space_Disk);
  plan.parameter("w", {3000}, true);
  Running running(plan, options());
  float value = 5;
  ASSERT_FALSE(running.session.writeChunk(0, 1, 4, &value, 4));
  std::vector<float> all = parameterOf(running, 0, 3000);
  EXPECT_EQ(all[1501], 5);
  EXPECT_EQ(std::count(all.begin(), all.end(), 0.0f), 2999);
}

TEST_F(Spaces, MeansOverRanksOfBuffersOnDisk) {
  PlanBuilder plan(2);
  plan.in(fb::Space_Disk);
  plan.parameter("mean", {2}, false, fb::Init_Ones).role = fb::ParamRole_Buffer;
  Running running(plan, options());
  float values[2] = {3, 4};
  ASSERT_FALSE(running.session.writeChunk(0, 1, 0, values, 8));
  EXPECT_EQ(parameterOf(running, 0, 2), (std::vector<float>{2, 2.5}));
}

/// Sums over micro-batches in host memory.
TEST_F(Spaces, MicroBatches) {
  PlanBuilder plan(2);
  plan.streams(2, 4);
  uint32_t x = plan.input("x", {4}), total = plan.buffer("total", {4});
  plan.in(fb::Space_Host);
  fb::ParameterT &parameter = plan.parameter("sum", {4}, false, fb::Init_Zeros);
  parameter.role = fb::ParamRole_Accumulator;
  uint32_t sum = parameter.buffer, down = plan.buffer("down", {4});
  for (int part = 0; part < 2; ++part) {
    fb::CommandT &copy = plan.command(fb::Op_Copy);
    plan.operand(copy, x);
    plan.operand(copy, down);
    place(copy, 1, {}, part * 2);
    fb::CommandT &add = plan.launch("add4", {down, sum, sum});
    add.host = true;
    place(add, 2, {uint32_t(part * 2)}, part * 2 + 1);
  }
  fb::CommandT &up = plan.command(fb::Op_Copy);
  plan.operand(up, sum);
  plan.operand(up, total);
  place(up, 0, {3});
  fb::CommandT &fill = plan.command(fb::Op_Fill);
  plan.operand(fill, sum);
  plan.output(total);
  plan.program.micro_batches = 3;
  plan.program.micro_commands = 2;
  Running running(plan, options());
  for (int step = 0; step < 2; ++step) {
    for (float value : {1.0f, 10.0f}) {
      running.set("x", ZRT_ALL_RANKS, std::vector<float>(4, value));
      Status failed = running.session.accumulate();
      ASSERT_FALSE(failed) << failed.message();
    }
    running.set("x", ZRT_ALL_RANKS, std::vector<float>(4, 100));
    running.step();
    EXPECT_EQ(running.get(0, 1), std::vector<float>(4, 111));
  }
  zrt_counters counters = running.session.counters();
  EXPECT_EQ(counters.transfer_bytes_all_ranks[ZRT_TO_HOST], 6u * 32);
  EXPECT_EQ(counters.transfer_bytes_all_ranks[ZRT_TO_DEVICE], 2u * 32);
}

//===----------------------------------------------------------------------===//
// Finding errors
//===----------------------------------------------------------------------===//

/// What a plan reads before it is written, or after its release, is NaN in
/// every space.
TEST_F(Spaces, Poison) {
  for (bool released : {false, true}) {
    PlanBuilder plan(1);
    uint32_t x = plan.input("x", {4}), result = plan.buffer("result", {4});
    plan.in(fb::Space_Disk);
    uint32_t gone = plan.buffer("gone", {4});
    plan.in(fb::Space_Host);
    uint32_t host = plan.buffer("host", {4});
    auto copy = [&](uint32_t from, uint32_t to) -> fb::CommandT & {
      fb::CommandT &added = plan.command(fb::Op_Copy);
      plan.operand(added, from);
      plan.operand(added, to);
      return added;
    };
    copy(x, host);
    if (released)
      copy(host, gone).release = {gone};
    copy(gone, host);
    copy(host, result);
    plan.output(result);
    Running running(plan, options());
    running.set("x", 0, std::vector<float>(4, 1));
    running.step();
    EXPECT_NE(running.get(0)[0], running.get(0)[0]) << "not NaN";
    Running trusting(plan, options(false));
    trusting.set("x", 0, std::vector<float>(4, 1));
    trusting.step();
    EXPECT_EQ(trusting.get(0)[0], released ? 1.0f : 0.0f);
  }
}

TEST_F(Spaces, ChecksReachTheDisk) {
  // A replicated state that each rank updates with another number.
  Offloaded made(2, /*sharded=*/false);
  Running running(made.plan, options());
  running.set("x", 0, std::vector<float>(4, 1));
  running.set("x", 1, std::vector<float>(4, 2));
  EXPECT_EQ(stepError(running),
            "check: parameter m differs between rank 0 and 1");
  // An accumulator that is not zero afterwards.
  Offloaded adding(1);
  adding.plan.program.parameters[0]->role = fb::ParamRole_Accumulator;
  Running other(adding.plan, options());
  other.set("x", 0, std::vector<float>(4, 1));
  EXPECT_EQ(stepError(other), "check: accumulator m on rank 0 is not zero "
                              "after the step (byte 2)");
}

TEST_F(Spaces, NotFinite) {
  zrt_session_options finite = options(false);
  finite.check_finite = 1;
  float infinity = std::numeric_limits<float>::infinity();
  {
    Offloaded made(1);
    Running running(made.plan, finite);
    running.set("x", 0, std::vector<float>(4, 1));
    ASSERT_FALSE(running.session.writeChunk(0, 0, 8, &infinity, 4));
    EXPECT_EQ(stepError(running),
              "rank 0, before the first command: \"m\" (f32[4]) has inf at "
              "[2]; 1 of its 4 elements are not finite");
  }
  Offloaded made(1);
  Running running(made.plan, finite);
  running.set("x", 0, std::vector<float>{1, infinity, 1, 1});
  std::string message = stepError(running);
  EXPECT_NE(message.find("\"x\" (f32[4]) has inf at [1]"), message.npos)
      << message;
}

/// Something writes what is on its way to the host: it takes a while to look
/// at all of it, and longer to write.
#if !ZERO_TEST_UNDER_TSAN
TEST_F(Spaces, CheckFindsSourcesThatAreWritten) {
  PlanBuilder plan(1);
  plan.streams(1, 0);
  uint32_t big = plan.buffer("big", {1 << 20});
  plan.in(fb::Space_Host);
  uint32_t host = plan.buffer("host", {1 << 20});
  fb::CommandT &copy = plan.command(fb::Op_Copy);
  plan.operand(copy, big);
  plan.operand(copy, host);
  place(copy, 1, {});
  for (int i = 0; i < 1000; ++i)
    plan.launch("add_one4", {big});
  zrt_session_options check = {};
  check.check = 1;
  Running running(plan, check);
  EXPECT_EQ(stepError(running), "rank 0, command 0 (copy): what it reads was "
                                "written while it ran");
}
#endif

TEST_F(Spaces, AFlippedByteIsNamed) {
  Offloaded made(1);
  Running running(made.plan, options(false));
  running.set("x", 0, std::vector<float>(4, 1));
  running.step();
  flipByte(folder, 17);
  running.set("x", 0, std::vector<float>(4, 1));
  std::string disk =
      "tensor m: " + folder +
      " (disk space of rank 0): cannot read 4096 bytes at byte 0: the bytes "
      "are not those that were written (checksum); go on from the last "
      "checkpoint, with another folder if the disk is at fault";
  EXPECT_EQ(stepError(running), "rank 0, command 1 (copy): " + disk);
  EXPECT_EQ(stepError(running),
            "an earlier step failed: rank 0, command 1 (copy): " + disk);
  float values[4];
  Status failed = running.session.getParameter(0, values, 16);
  EXPECT_EQ(failed.code(), ZRT_ERROR_IO);
  EXPECT_EQ(failed.message(), disk);
}

/// Not all ranks fail; the others are stopped.
TEST_F(Spaces, AFailureElsewhere) {
  Offloaded made(3);
  fb::CommandT &refuse = made.plan.launch("refuse_negative", {made.x});
  place(refuse, 0, {});
  Running running(made.plan, options(false));
  for (int rank = 0; rank < 3; ++rank)
    running.set("x", rank, std::vector<float>(4, rank == 1 ? -1 : 1));
  EXPECT_EQ(stepError(running), "rank 1, command 6 (launch refuse_negative): "
                                "the element is negative");
}

//===----------------------------------------------------------------------===//
// Sessions
//===----------------------------------------------------------------------===//

TEST_F(Spaces, TwoSessionsInOneFolder) {
  Offloaded made(2);
  Running first(made.plan, options()), second(made.plan, options());
  for (int step = 1; step <= 2; ++step) {
    first.set("x", ZRT_ALL_RANKS, std::vector<float>(4, 1));
    second.set("x", ZRT_ALL_RANKS, std::vector<float>(4, 10));
    first.step();
    second.step();
    EXPECT_EQ(first.get(0), std::vector<float>(4, float(2 * step)));
    EXPECT_EQ(second.get(0), std::vector<float>(4, float(20 * step)));
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  }
}

TEST_F(Spaces, DiskAccess) {
  Offloaded made(1);
  Running running(made.plan, options());
  std::string access = running.session.diskAccess();
  EXPECT_TRUE(access.rfind("io_uring", 0) == 0 ||
              access.rfind("pread and pwrite (io_uring: ", 0) == 0)
      << access;
  Running without(PlanBuilder(1));
  EXPECT_EQ(without.session.diskAccess(), "");
  EXPECT_STREQ(zrt_session_disk_access(nullptr), "");
}

TEST_F(Spaces, Refusals) {
  Offloaded made(2);
  zrt_session_options none = {};
  EXPECT_EQ(sessionError(made.plan, none), "the program keeps 4096 bytes a "
                                           "rank on disk: name a folder for "
                                           "them");
  none.offload_path = "";
  EXPECT_EQ(sessionError(made.plan, none), "the program keeps 4096 bytes a "
                                           "rank on disk: name a folder for "
                                           "them");
  std::string missing = folder + "/none";
  none.offload_path = missing.c_str();
  EXPECT_EQ(sessionError(made.plan, none),
            missing + ": cannot offload to disk there: No such file or "
                      "directory; name a folder that exists");
  // More than any disk has, and more than fits a number.
  for (uint64_t bytes : {uint64_t(1) << 50, uint64_t(1) << 63}) {
    made.plan.program.arenas[1]->bytes = bytes;
    std::string message = sessionError(made.plan, options());
    EXPECT_EQ(message.rfind(folder + ": the disk spaces of 2 ranks need ", 0),
              0u)
        << message;
    EXPECT_NE(message.find(" bytes, but only "), message.npos) << message;
  }
}

TEST_F(Spaces, FilesThatMayNotBeThatLarge) {
  Offloaded made(2);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = {4095, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message = sessionError(made.plan, options());
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(message, folder + ": the disk space of a rank needs 4096 bytes, "
                              "but this process may not make files of more "
                              "than 4095; raise the limit (ulimit -f), or "
                              "offload less to disk");
}

TEST_F(Spaces, HostMemoryThatDoesNotFit) {
  for (uint64_t bytes : {uint64_t(1) << 45, ~uint64_t(0) << 12}) {
    Offloaded made(2);
    made.plan.program.arenas[2]->bytes = bytes;
    std::string message = sessionError(made.plan, options());
    EXPECT_EQ(message.rfind("the host memory of 2 ranks, " +
                                std::to_string(bytes) + " bytes each, and ",
                            0),
              0u)
        << message;
    EXPECT_NE(message.find(" bytes available; offload less to the host, or to "
                           "disk"),
              message.npos)
        << message;
  }
}
