//===- DeviceCheck.cpp - Consistency of device code -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See DeviceCheck.h. What the text of a function does is not checked: the sum
// of the file says that it is as it was written.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/DeviceCheck.h"
#include "runtime/core/BackendLibrary.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <map>
#include <set>

using namespace zrt;

namespace {
// CUDA's limits of a launch, the same for all compute capabilities from 8.0.
constexpr uint32_t maxGrid[] = {0x7FFFFFFF, 65535, 65535};
constexpr uint32_t maxBlock[] = {1024, 1024, 64};
constexpr uint64_t maxThreads = 1024; // of a block
/// Of those from 9.0; 163 KiB before, which the driver checks.
constexpr uint32_t maxSharedBytes = 227 << 10;
/// Parameters of a kernel take at most 32764 bytes.
constexpr size_t maxArguments = 32764 / sizeof(uint64_t);
constexpr uint64_t maxScratchBytes = uint64_t(1) << 40;

class DeviceChecker {
public:
  explicit DeviceChecker(const Program &program) : program(program) {}
  void run();

private:
  void findEntries();
  void checkKernel(const DeviceKernel &kernel);
  void checkLaunch(const DeviceKernel &kernel, const DeviceLaunch &launch);
  void checkSizes(const std::vector<uint32_t> &sizes, const uint32_t *limits,
                  const char *what);
  void checkCommand(size_t index);

  template <typename... Parts>
  [[noreturn]] void bad(const Parts &...parts) {
    fail(ZRT_ERROR_FORMAT, where, parts...);
  }

  const Program &program;
  std::string where;                  // "device kernel gelu_8x30: "
  std::set<std::string_view> entries; // functions of the PTX
  std::map<std::string_view, const DeviceKernel *> kernels; // by name
};
} // namespace

/// The names after ".entry" in the text.
void DeviceChecker::findEntries() {
  static constexpr std::string_view keyword = ".entry ";
  std::string_view text = program.deviceCode;
  for (size_t at = text.find(keyword); at != text.npos;
       at = text.find(keyword, at + 1)) {
    size_t begin = at + keyword.size();
    size_t end = text.find_first_of("( \t\r\n", begin);
    entries.insert(text.substr(begin, end - begin));
  }
}

void DeviceChecker::checkSizes(const std::vector<uint32_t> &sizes,
                               const uint32_t *limits, const char *what) {
  if (sizes.size() != 3)
    bad("its ", what, " has ", sizes.size(), " dimensions instead of 3");
  for (size_t i = 0; i < 3; ++i)
    if (sizes[i] < 1 || sizes[i] > limits[i])
      bad("its ", what, " is ", sizes[i], " in dimension ", i, "; 1 to ",
          limits[i], " are possible");
}

void DeviceChecker::checkLaunch(const DeviceKernel &kernel,
                                const DeviceLaunch &launch) {
  if (!entries.count(launch.entry))
    bad("the device code has no function '", launch.entry, "'");
  checkSizes(launch.grid, maxGrid, "grid");
  checkSizes(launch.block, maxBlock, "block");
  uint64_t threads = 1;
  for (uint32_t size : launch.block)
    threads *= size;
  if (threads > maxThreads)
    bad("its block has ", threads, " threads; ", maxThreads, " are possible");
  if (launch.sharedBytes > maxSharedBytes)
    bad("a block needs ", launch.sharedBytes, " bytes of shared memory; ",
        maxSharedBytes, " are possible");
  if (launch.arguments.size() > maxArguments)
    bad("it takes ", launch.arguments.size(), " arguments; ", maxArguments,
        " are possible");
  for (int32_t argument : launch.arguments) {
    if (argument < -1)
      bad("argument ", argument, " is neither an operand nor -1");
    if (argument == -1 && kernel.scratchBytes == 0)
      bad("it takes scratch memory, of which the kernel has none");
  }
}

void DeviceChecker::checkKernel(const DeviceKernel &kernel) {
  where = "device kernel " + kernel.name + ": ";
  if (!kernels.emplace(kernel.name, &kernel).second)
    bad("is there twice");
  if (kernel.scratchBytes > maxScratchBytes)
    bad("needs ", kernel.scratchBytes, " bytes of scratch memory; ",
        maxScratchBytes, " are possible");
  for (size_t index = 0; index < kernel.launches.size(); ++index) {
    where = "device kernel " + kernel.name + ", launch " +
            std::to_string(index) + ": ";
    checkLaunch(kernel, kernel.launches[index]);
  }
}

void DeviceChecker::checkCommand(size_t index) {
  const Command &command = program.commands[index];
  if (command.op != fb::Op_Launch || command.host)
    return;
  where =
      "command " + std::to_string(index) + " (launch " + command.callee + "): ";
  if (command.split)
    bad("runs in parts, which only the host does");
  auto kernel = kernels.find(command.callee);
  if (kernel == kernels.end())
    bad("the program has no device kernel of this name");
  for (const DeviceLaunch &launch : kernel->second->launches)
    for (int32_t argument : launch.arguments)
      if (argument >= int64_t(command.operands.size()))
        bad("function ", launch.entry, " takes operand ", argument, " of ",
            command.operands.size());
}

void DeviceChecker::run() {
  if (!isForDevice(program)) {
    if (!program.deviceCode.empty() || !program.deviceKernels.empty())
      bad("the program has device code, but its target is ", program.target);
    return;
  }
  findEntries();
  for (const DeviceKernel &kernel : program.deviceKernels)
    checkKernel(kernel);
  for (size_t index = 0; index < program.commands.size(); ++index)
    checkCommand(index);
}

void zrt::checkDeviceCode(const Program &program) {
  DeviceChecker(program).run();
}
