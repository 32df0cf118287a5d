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
// with conv=fsync. Before each measurement the page cache of all these files is
// dropped, and who is first changes from round to round: in a virtual machine
// pages that were free for long are slow to get, whoever gets them. Prints the
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

namespace {

class Bench {
public:
  Bench(const std::string &folder, uint64_t bytes, uint32_t ranks);
  void round(bool oursFirst);
  void print() const;

private:
  uint8_t *place(size_t tensor, uint32_t part, uint64_t offset) {
    return &state[(tensor << 24) + tensors[tensor].partBegin(part) + offset];
  }
  void forgetAll() const;
  void save();
  void load();
  void ddWrite();
  void ddRead();

  std::string source, target;
  fs::path folder;
  std::vector<StateTensor> tensors;
  std::vector<uint8_t> state;
  long before = 0;
  std::vector<double> saved, written, loaded, read;
};

} // namespace

Bench::Bench(const std::string &where, uint64_t bytes, uint32_t ranks)
    : source(where + "/source"), target(where + "/dd"), folder(where + "/run"),
      tensors(makeTensors(bytes, ranks)), state(tensors.size() << 24) {
  std::mt19937_64 random(1);
  for (size_t at = 0; at < state.size(); at += 8) {
    uint64_t value = random();
    std::memcpy(&state[at], &value, 8);
  }
  AtomicFile whole(source);
  whole.write(state.data(), state.size());
  whole.commit();
  before = peakKiB();
}

void Bench::forgetAll() const {
  if (fs::exists(target))
    forget(target);
  if (fs::exists(folder))
    for (const auto &entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file())
        forget(entry.path());
}

void Bench::save() {
  CheckpointFolder checkpoints(folder);
  RunFacts facts;
  saved.push_back(secondsOf([&] {
    checkpoints.save(
        facts, tensors,
        [&](size_t tensor, uint32_t part, uint64_t offset, void *data,
            size_t bytes) {
          std::memcpy(data, place(tensor, part, offset), bytes);
        },
        0);
  }));
}

void Bench::load() {
  loaded.push_back(secondsOf([&] {
    Checkpoint::open(folder).stream([&](size_t tensor, uint32_t part,
                                        uint64_t offset, const void *data,
                                        size_t bytes) {
      std::memcpy(place(tensor, part, offset), data, bytes);
    });
  }));
}

void Bench::ddWrite() {
  run("cat " + source + " >/dev/null"); // dd reads memory, as we do
  written.push_back(secondsOf([&] {
    run("dd if=" + source + " of=" + target + " bs=4M conv=fsync status=none");
  }));
}

void Bench::ddRead() {
  read.push_back(secondsOf(
      [&] { run("dd if=" + target + " of=/dev/null bs=4M status=none"); }));
}

void Bench::round(bool oursFirst) {
  for (bool ours : {oursFirst, !oursFirst}) {
    forgetAll();
    ours ? save() : ddWrite();
  }
  for (bool ours : {oursFirst, !oursFirst}) {
    forgetAll();
    ours ? load() : ddRead();
  }
  fs::remove_all(folder);
  fs::remove(target);
}

void Bench::print() const {
  double size = double(state.size()) / 1e6;
  auto line = [&](const char *what, double ours, double theirs) {
    std::printf("%-5s %8.0f MB/s   dd %8.0f MB/s   ratio %.2f\n", what,
                size / ours, size / theirs, theirs / ours);
  };
  line("save", median(saved), median(written));
  line("load", median(loaded), median(read));
  std::printf("memory beyond the state: %.1f MiB\n",
              double(peakKiB() - before) / 1024);
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
    Bench bench(argv[1], number(2, 1024) << 20, uint32_t(number(3, 4)));
    for (unsigned long i = 0, rounds = number(4, 6); i < rounds; ++i)
      bench.round(i % 2);
    bench.print();
    fs::remove(std::string(argv[1]) + "/source");
  } catch (const std::exception &error) {
    std::fprintf(stderr, "bench-checkpoint: error: %s\n", error.what());
    return 1;
  }
  return 0;
}
