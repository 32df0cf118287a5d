//===- Registry.h - Allocations of the fake devices -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_REGISTRY_H
#define ZERO_TEST_FAKECUDA_REGISTRY_H

#include "test/fake-cuda/Memory.h"
#include "test/fake-cuda/Shadow.h"

#include <map>
#include <memory>
#include <shared_mutex>
#include <string>

namespace fake_cuda {

constexpr int kHost = -1;

/// Device memory, or pinned memory of the host.
struct Allocation {
  Window window;
  int device = kHost;
  unsigned number = 0; ///< of its device's, from 0
  std::string what;    ///< "cuMemAlloc", "cuMemHostAlloc", ...
  bool owned = true;   ///< the data are ours to unmap
  Shadow shadow;

  /// "device 0's memory 2" or "pinned memory 1".
  std::string text() const;
};

using AllocationPtr = std::shared_ptr<Allocation>;

/// All that is allocated. Addresses are never used twice, so that what was
/// freed is known as such.
class Registry {
public:
  static Registry &get();

  /// Null: the device has no room for it.
  AllocationPtr addDevice(int device, uint64_t bytes, const std::string &what);
  /// Memory at addresses and with data that others keep (VMM, registered host
  /// memory).
  AllocationPtr addForeign(int device, Window window, const std::string &what);
  /// Pinned memory of the host.
  AllocationPtr addHost(uint64_t bytes, const std::string &what);

  /// The allocation around an address, or null.
  AllocationPtr around(Address address) const;
  /// False: there is none that begins there with the name.
  bool remove(Address begin, const std::string &what);

  /// Why [address, address + bytes) cannot be used by `device`.
  std::string whyNot(int device, Address address, uint64_t bytes) const;

  /// Bytes in use of a device.
  uint64_t used(int device) const;
  bool reserve(int device, uint64_t bytes);
  void unreserve(int device, uint64_t bytes);

  std::vector<std::string> leaks() const;

private:
  void insert(const AllocationPtr &allocation);

  mutable std::shared_mutex mutex;
  std::map<Address, AllocationPtr> live;
  std::map<Address, std::pair<Address, std::string>>
      freed; // begin -> end, text
  std::map<int, uint64_t> usedBytes;
  std::map<int, unsigned> numbers;
};

/// Addresses at which the process has nothing, for device memory.
Address reserveAddresses(uint64_t bytes);
/// Memory with contents that show where they are used unwritten.
char *mapData(uint64_t bytes);
void unmapData(char *data, uint64_t bytes);

} // namespace fake_cuda

#endif // ZERO_TEST_FAKECUDA_REGISTRY_H
