//===- bench-disk.cpp - The disk arena beside dd and fio ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   bench-disk FOLDER [MIB] [ROUNDS]
//
// Writes and reads MIB mebibytes in tensors of 16 MiB through disk arenas, in
// turn with dd and fio (where it is installed) of the same bytes past the page
// cache in the same folder. All files are overwritten, not grown, as in every
// step of a training but the first. Who is first changes from round to round.
// Prints medians in MB/s and their ratio to dd's.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/DiskArena.h"
#include "runtime/io/Files.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <sstream>

using namespace zrt;
namespace fs = std::filesystem;

/// Someone who writes or reads all bytes and says how fast, in bytes a second.
struct Contender {
  Contender(std::string name, std::function<double(bool write)> run)
      : name(std::move(name)), run(std::move(run)) {}

  std::string name;
  std::function<double(bool write)> run;
  std::vector<double> rates[2]; // read, write
};

template <typename Body>
static double secondsOf(Body body) {
  auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

static std::string outputOf(const std::string &command) {
  std::string text;
  char part[4096];
  FILE *pipe = popen(command.c_str(), "r");
  while (pipe && std::fgets(part, sizeof(part), pipe))
    text += part;
  if (!pipe || pclose(pipe) != 0)
    throw std::runtime_error("failed: " + command);
  return text;
}

/// By its own clock, without the start of a process.
static Contender dd(const std::string &file, uint64_t bytes) {
  return {"dd bs=4M direct", [=](bool write) {
            std::string ends = write ? "if=/dev/zero conv=notrunc oflag=direct "
                                       "of=" +
                                           file
                                     : "of=/dev/null iflag=direct if=" + file;
            std::string text =
                outputOf("LC_ALL=C dd bs=4M " + ends +
                         " count=" + std::to_string(bytes >> 22) + " 2>&1");
            const std::string copied = "copied, ";
            return double(bytes) /
                   std::atof(text.c_str() + text.find(copied) + copied.size());
          }};
}

/// As the arena asks the disk: 1 MiB, 8 under way.
static Contender fio(const std::string &file, uint64_t bytes) {
  return {"fio io_uring bs=1M depth 8", [=](bool write) {
            std::string text =
                outputOf("fio --name=bench --filename=" + file +
                         " --size=" + std::to_string(bytes) +
                         " --rw=" + (write ? "write" : "read") +
                         " --bs=1M --iodepth=8 --ioengine=io_uring --direct=1 "
                         "--minimal --terse-version=3 2>/dev/null");
            std::istringstream fields(text);
            std::string field;
            // The bandwidths of reads and writes, in KiB/s.
            for (int i = 0; i <= (write ? 47 : 6); ++i)
              std::getline(fields, field, ';');
            return std::atof(field.c_str()) * 1024;
          }};
}

/// The pattern that all arenas hold.
static std::shared_ptr<uint8_t> makeTensor(uint64_t bytes) {
  std::shared_ptr<uint8_t> data(
      static_cast<uint8_t *>(std::aligned_alloc(DiskArena::blockBytes, bytes)),
      std::free);
  std::mt19937_64 random(1);
  for (uint64_t at = 0; at < bytes; at += 8)
    reinterpret_cast<uint64_t *>(data.get() + at)[0] = random();
  return data;
}

static Contender arena(const std::string &name, const std::string &folder,
                       uint64_t bytes, const DiskArenaOptions &options) {
  constexpr uint64_t tensorBytes = 16 << 20;
  auto space = std::make_shared<DiskArena>(folder, bytes, name, options);
  std::shared_ptr<uint8_t> data = makeTensor(tensorBytes);
  return {name + ": " + space->access(), [=](bool write) {
            return double(bytes) / secondsOf([&] {
                     for (uint64_t at = 0; at < bytes; at += tensorBytes)
                       if (write)
                         space->write(at, data.get(), tensorBytes);
                       else
                         space->read(at, data.get(), tensorBytes);
                   });
          }};
}

static double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

static void print(const std::vector<Contender> &all) {
  double ddWrite = median(all[0].rates[1]), ddRead = median(all[0].rates[0]);
  std::printf("| | write MB/s | ratio to dd | read MB/s | ratio to dd |\n"
              "|---|---:|---:|---:|---:|\n");
  for (const Contender &each : all) {
    double write = median(each.rates[1]), read = median(each.rates[0]);
    std::printf("| %s | %.0f | %.2f | %.0f | %.2f |\n", each.name.c_str(),
                write / 1e6, write / ddWrite, read / 1e6, read / ddRead);
  }
}

static void run(const std::string &folder, uint64_t bytes, int rounds) {
  std::string file = (fs::path(folder) / "bench-disk.tmp").string();
  std::vector<Contender> all = {dd(file, bytes)};
  if (std::system("fio --version >/dev/null 2>&1") == 0)
    all.push_back(fio(file, bytes));
  DiskArenaOptions options;
  all.push_back(arena("arena", folder, bytes, options));
  options.checksums = false;
  all.push_back(arena("arena without checksums", folder, bytes, options));
  options.checksums = true;
  options.queue = false;
  all.push_back(arena("arena", folder, bytes, options));
  for (Contender &each : all)
    each.run(/*write=*/true); // from now on it is an overwrite
  for (int round = 0; round < rounds; ++round)
    for (bool write : {true, false})
      for (size_t i = 0; i < all.size(); ++i) {
        Contender &each = all[(i + size_t(round)) % all.size()];
        each.rates[write].push_back(each.run(write));
      }
  fs::remove(file);
  print(all);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench-disk FOLDER [MIB] [ROUNDS]\n");
    return 2;
  }
  uint64_t mebibytes = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 512;
  int rounds = argc > 3 ? std::atoi(argv[3]) : 6;
  if (mebibytes == 0 || mebibytes % 16 != 0 || rounds < 1) {
    std::fprintf(stderr, "MIB is a multiple of 16, ROUNDS at least 1\n");
    return 2;
  }
  try {
    run(argv[1], mebibytes << 20, rounds);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
