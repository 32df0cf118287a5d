//===- bench-checkpoint.cpp - Saving and loading beside dd ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   bench-checkpoint FOLDER [MIB] [RANKS] [ROUNDS]
//
// State of MIB mebibytes on RANKS ranks is saved (files and folders synced) and
// loaded (every hash compared) in FOLDER, in turn with dd of the same bytes
// with conv=fsync; the page cache is dropped before each read. Prints the
// medians, their ratio, and how far the peak of memory is above the state.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Checkpoint.h"
#include "runtime/io/Files.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <sys/resource.h>
#include <unistd.h>

using namespace zrt;
namespace fs = std::filesystem;

/// A state of a model's shape: matrices cut by rows, and their moments.
static std::vector<StateTensor> makeTensors(uint64_t bytes, uint32_t ranks) {
  std::vector<StateTensor> tensors;
  for (uint64_t at = 0; at < bytes; at += uint64_t(16) << 20) {
    StateTensor tensor;
    tensor.name = "layer." + std::to_string(tensors.size()) + ".weight";
    tensor.role = "trained";
    tensor.shape = {2048, 2048};
    tensor.layout = StateLayout::Rows;
    tensor.parts = ranks;
    tensor.chunkRows = (2048 + ranks - 1) / ranks;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

template <typename Body>
static double secondsOf(Body body) {
  auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// What is in memory of a file is dropped: the next read is the disk's.
static void forget(const fs::path &path) {
  int file = open(path.c_str(), O_RDONLY);
  fsync(file);
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  close(file);
}

static void run(const std::string &command) {
  if (std::system(command.c_str()))
    throw std::runtime_error("failed: " + command);
}

static double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

static long peakKiB() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

static void measure(const std::string &folder, uint64_t mib, uint32_t ranks,
                    int rounds) {
  std::vector<StateTensor> tensors = makeTensors(mib << 20, ranks);
  std::vector<uint8_t> state(tensors.size() << 24);
  std::mt19937_64 random(1);
  for (size_t at = 0; at < state.size(); at += 8) {
    uint64_t value = random();
    std::memcpy(&state[at], &value, 8);
  }
  auto place = [&](size_t tensor, uint32_t part, uint64_t offset) {
    return &state[(tensor << 24) + tensors[tensor].partBegin(part) + offset];
  };
  std::string source = folder + "/source", target = folder + "/dd";
  AtomicFile whole(source);
  whole.write(state.data(), state.size());
  whole.commit();
  long before = peakKiB();
  std::vector<double> save, write, load, read;
  for (int round = 0; round < rounds; ++round) {
    run("cat " + source + " >/dev/null"); // dd reads memory, as we do
    write.push_back(secondsOf([&] {
      run("dd if=" + source + " of=" + target +
          " bs=4M conv=fsync status=none");
    }));
    fs::path run1 = folder + "/run";
    {
      CheckpointFolder checkpoints(run1);
      RunFacts facts;
      save.push_back(secondsOf([&] {
        checkpoints.save(
            facts, tensors,
            [&](size_t tensor, uint32_t part, uint64_t offset, void *data,
                size_t bytes) {
              std::memcpy(data, place(tensor, part, offset), bytes);
            },
            0);
      }));
    }
    forget(target);
    for (const auto &entry : fs::recursive_directory_iterator(run1))
      if (entry.is_regular_file())
        forget(entry.path());
    read.push_back(secondsOf(
        [&] { run("dd if=" + target + " of=/dev/null bs=4M status=none"); }));
    load.push_back(secondsOf([&] {
      Checkpoint::open(run1).stream([&](size_t tensor, uint32_t part,
                                        uint64_t offset, const void *data,
                                        size_t bytes) {
        std::memcpy(place(tensor, part, offset), data, bytes);
      });
    }));
    fs::remove_all(run1);
    fs::remove(target);
  }
  fs::remove(source);
  double size = double(state.size()) / 1e6;
  auto print = [&](const char *what, double ours, double theirs) {
    std::printf("%-5s %8.0f MB/s   dd %8.0f MB/s   ratio %.2f\n", what,
                size / ours, size / theirs, theirs / ours);
  };
  print("save", median(save), median(write));
  print("load", median(load), median(read));
  std::printf("memory beyond the state: %.1f MiB (bucket: %zu MiB)\n",
              double(peakKiB() - before) / 1024, checkpointBucketBytes >> 20);
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 5) {
    std::fprintf(stderr,
                 "usage: bench-checkpoint FOLDER [MIB] [RANKS] [ROUNDS]\n");
    return 2;
  }
  auto number = [&](int index, unsigned long other) {
    return argc > index ? std::strtoul(argv[index], nullptr, 10) : other;
  };
  try {
    measure(argv[1], number(2, 1024), uint32_t(number(3, 4)),
            int(number(4, 5)));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "bench-checkpoint: error: %s\n", error.what());
    return 1;
  }
  return 0;
}
