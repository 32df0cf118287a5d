//===- RunTarget.cpp - What --backend asks for ----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See RunTarget.h.
//
//===----------------------------------------------------------------------===//

#include "RunTarget.h"

#include "RunOptions.h"
#include "Training.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

using namespace zero_tools;

/// The number in "cuda:sm_90"; 0: there is none.
static int numberOf(const std::string &target) {
  static const std::string prefix = "cuda:sm_";
  if (target.compare(0, prefix.size(), prefix))
    return 0;
  return std::atoi(target.c_str() + prefix.size());
}

/// The GPUs of this machine.
static std::vector<zrt_device_info> getDevices() {
  uint32_t count = 0;
  require(zrt::Status(zrt_get_devices(nullptr, 0, &count)));
  std::vector<zrt_device_info> devices(count);
  require(zrt::Status(zrt_get_devices(devices.data(), count, &count)));
  devices.resize(std::min<size_t>(count, devices.size()));
  return devices;
}

/// The newest target that all GPUs of this machine run.
static std::string findTarget() {
  std::vector<zrt_device_info> devices = getDevices();
  if (devices.empty())
    throw std::runtime_error("--backend cuda: this machine has no GPU that can "
                             "be used; cuda:sm_90 compiles for one elsewhere");
  auto oldest = std::min_element(
      devices.begin(), devices.end(), [](const auto &lhs, const auto &rhs) {
        return numberOf(lhs.target) < numberOf(rhs.target);
      });
  for (int target : {100, 90, 80})
    if (numberOf(oldest->target) >= target)
      return "cuda:sm_" + std::to_string(target);
  throw std::runtime_error(std::string("--backend cuda: ") + oldest->name +
                           " is " + oldest->target +
                           "; cuda:sm_80 or newer is needed");
}

std::string zero_tools::targetOf(const std::string &backend) {
  if (backend.empty())
    return "host";
  return backend == "cuda" ? findTarget() : backend;
}

void zero_tools::checkTarget(const RunOptions &options,
                             const zrt::Program &program) {
  std::string target = program.info().target;
  const std::string &asked = options.backend;
  // A GPU's code is assembled where it runs: it says itself if it cannot.
  bool same = asked.empty() || asked == target ||
              target.compare(0, asked.size() + 1, asked + ":") == 0;
  if (!same)
    throw std::runtime_error(options.model + ": is compiled for " + target +
                             ", --backend asks for " + asked);
}
