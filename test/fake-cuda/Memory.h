//===- Memory.h - Memory of the fake devices ------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the fake devices can reach: their own memory and pinned host memory. A
// device address is no address of the process: touching it there is a
// segmentation fault, as with a real GPU. `find` says where its bytes are.
//
// AccessRecorder is what a kernel's loads and stores go through: it checks each
// and keeps the ranges, from which races between streams are found.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_MEMORY_H
#define ZERO_TEST_FAKECUDA_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fake_cuda {

using Address = uint64_t;

struct Range {
  Address begin = 0;
  Address end = 0;
};

/// An allocation as a device sees it.
struct Window {
  Address begin = 0;
  uint64_t bytes = 0;
  char *data = nullptr; ///< where the process reads and writes it
};

/// The allocation that holds [address, address + bytes), as far as `device` may
/// use it. False: `error` says why not, as "address 0x… was freed".
bool find(int device, Address address, uint64_t bytes, Window &window,
          std::string &error);

/// Device memory for variables of a module. Contents are undefined.
Window allocate(int device, uint64_t bytes, const std::string &what);
/// False: there is no such memory that was allocated as `what`.
bool release(Address begin, const std::string &what);

/// Loads and stores of one launch.
class AccessRecorder {
public:
  explicit AccessRecorder(int device) : device(device) {}

  /// Where the process finds [address, address + bytes); nullptr if that is no
  /// memory of the device or if `address` is no multiple of `alignment`: the
  /// launch then ends at once with error(). `slot` is a small number of the
  /// caller's, such as that of the instruction: adjacent accesses under one
  /// slot are joined at once.
  char *access(Address address, uint32_t bytes, bool write, unsigned slot,
               uint32_t alignment = 1) {
    // Wraps to a large number below the window's begin.
    uint64_t offset = address - window.begin;
    if (offset >= window.bytes || bytes > window.bytes - offset ||
        address % alignment != 0) {
      if (!locate(address, bytes, alignment))
        return nullptr;
      offset = address - window.begin;
    }
    note(address, bytes, write, slot);
    return window.data + offset;
  }

  const std::string &error() const { return message; }

  /// What was read and written: sorted, disjoint, not adjacent. Empties the
  /// recorder.
  std::vector<Range> takeReads() { return take(reads); }
  std::vector<Range> takeWrites() { return take(writes); }

private:
  struct Ranges {
    std::vector<Range> open; // by slot
    std::vector<Range> closed;
    size_t limit = 1 << 18; // of `closed`, before adjacent ones are joined
  };

  void note(Address address, uint32_t bytes, bool write, unsigned slot) {
    Ranges &ranges = write ? writes : reads;
    if (slot >= ranges.open.size())
      ranges.open.resize(slot + 1);
    Range &range = ranges.open[slot];
    if (address == range.end) {
      range.end += bytes;
      return;
    }
    if (address >= range.begin && address + bytes <= range.end)
      return;
    close(ranges, range);
    range = {address, address + bytes};
  }
  static void close(Ranges &ranges, Range range);
  static std::vector<Range> take(Ranges &ranges);
  bool locate(Address address, uint32_t bytes, uint32_t alignment);

  int device;
  Window window;
  Ranges reads, writes;
  std::string message;
};

} // namespace fake_cuda

#endif // ZERO_TEST_FAKECUDA_MEMORY_H
