//===- PtxModule.cpp - Modules and launches -------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fake-cuda/PtxDecode.h"

#include <algorithm>
#include <set>

using namespace fake_cuda;

// Of a block, on devices from sm_90 on; 1 KiB is the system's.
static constexpr uint32_t kMostSharedBytes = 227 * 1024;
static constexpr uint32_t kMostThreads = 1024;
// Blocks are told apart by 25 bits.
static constexpr uint64_t kMostBlocks = (1u << 25) - 2;

static uint64_t alignTo(uint64_t offset, uint64_t align) {
  return align ? (offset + align - 1) / align * align : offset;
}

namespace {
class Kernel : public Function {
public:
  Kernel(const ptx::Syntax &syntax, const ptx::Function &function,
         ptx::Layout layout, int device);

  const std::string &name() const override { return function.name; }
  const std::vector<Parameter> &parameters() const override { return params; }
  uint32_t staticSharedBytes() const override { return sharedBytes; }
  uint32_t localBytes() const override { return entry->totalStackBytes; }
  uint32_t maxThreads() const override;
  std::string launch(Dim gridDim, Dim blockDim, uint32_t dynamicShared,
                     const char *block,
                     AccessRecorder &recorder) const override;

private:
  void layOutShared(const ptx::Syntax &syntax, ptx::Layout &layout);
  void layOutParams(ptx::Layout &layout);
  std::string checkLaunch(Dim gridDim, Dim blockDim,
                          uint32_t dynamicShared) const;

  const ptx::Function &function;
  int device;
  std::vector<Parameter> params;
  uint32_t paramBytes = 0, sharedBytes = 0;
  ptx::Program program;
  const ptx::Code *entry = nullptr;
};

/// Memory of a module's variables, by name.
struct Windows : std::map<std::string, Window, std::less<>> {
  ~Windows() {
    for (const auto &entry : *this)
      release(entry.second.begin, entry.first);
  }
};

class LoadedModule : public Module {
public:
  LoadedModule(std::string_view text, int device, int sm);

  const Function *function(std::string_view name) const override;
  bool variable(std::string_view name, Window &window) const override;

private:
  void checkTarget(int sm) const;
  void allocateVariables(int device);
  void initialize(const ptx::Variable &variable);

  std::unique_ptr<ptx::Syntax> syntax;
  ptx::Layout globals;
  Windows windows;
  std::map<std::string, std::unique_ptr<Kernel>, std::less<>> kernels;
};
} // namespace

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {
/// What an entry uses, through calls too.
struct Uses {
  const ptx::Syntax &syntax;
  std::vector<const ptx::Variable *> shared = {};
  std::set<const ptx::Function *> seen = {};

  void add(const ptx::Function &function);
  void add(const ptx::Operand &operand);
};
} // namespace

void Uses::add(const ptx::Operand &operand) {
  const ptx::Variable *variable = operand.variable;
  if (variable && variable->space == ptx::Space::Shared &&
      std::find(shared.begin(), shared.end(), variable) == shared.end())
    shared.push_back(variable);
  if (operand.kind == ptx::Operand::Symbol && !variable)
    if (const ptx::Function *callee = syntax.find(operand.name))
      add(*callee);
  for (const ptx::Operand &part : operand.parts)
    add(part);
}

void Uses::add(const ptx::Function &function) {
  if (!seen.insert(&function).second)
    return;
  for (const ptx::Instruction &instruction : function.body)
    for (const ptx::Operand &operand : instruction.operands)
      add(operand);
}

Kernel::Kernel(const ptx::Syntax &syntax, const ptx::Function &function,
               ptx::Layout layout, int device)
    : function(function), device(device) {
  layOutShared(syntax, layout);
  layOutParams(layout);
  entry = &ptx::decode(syntax, function, layout, program);
}

void Kernel::layOutShared(const ptx::Syntax &syntax, ptx::Layout &layout) {
  Uses uses{syntax};
  uses.add(function);
  for (const ptx::Variable *variable : uses.shared) {
    if (variable->isUnsized)
      continue;
    uint64_t offset = alignTo(sharedBytes, variable->align);
    layout[variable] = offset;
    sharedBytes = offset + variable->bytes;
  }
  // All names of the dynamic part are one place, behind.
  bool isDynamic = false;
  for (const ptx::Variable *variable : uses.shared)
    isDynamic |= variable->isUnsized;
  if (isDynamic)
    sharedBytes = alignTo(sharedBytes, 16);
  for (const ptx::Variable *variable : uses.shared)
    if (variable->isUnsized)
      layout[variable] = sharedBytes;
}

void Kernel::layOutParams(ptx::Layout &layout) {
  for (const auto &param : function.params) {
    paramBytes = alignTo(paramBytes, param->align);
    layout[param.get()] = paramBytes;
    params.push_back({paramBytes, static_cast<uint32_t>(param->bytes)});
    paramBytes += param->bytes;
  }
}

static uint32_t product(const std::array<uint32_t, 3> &extents) {
  return extents[0] * extents[1] * extents[2];
}

uint32_t Kernel::maxThreads() const {
  if (uint32_t required = product(function.requiredThreads))
    return required;
  uint32_t most = product(function.maxThreads);
  return most ? most : kMostThreads;
}

/// What is wrong with the sizes, or "".
std::string Kernel::checkLaunch(Dim gridDim, Dim blockDim,
                                uint32_t dynamicShared) const {
  uint64_t threads = uint64_t(blockDim.x) * blockDim.y * blockDim.z;
  uint64_t blocks = uint64_t(gridDim.x) * gridDim.y * gridDim.z;
  if (threads == 0 || blocks == 0 || gridDim.y > 65535 || gridDim.z > 65535 ||
      blockDim.z > 64)
    return "grid " + ptx::describe(gridDim) + " of blocks " +
           ptx::describe(blockDim) + " is no valid size";
  const auto &required = function.requiredThreads;
  if (product(required) &&
      (blockDim.x != required[0] || blockDim.y != required[1] ||
       blockDim.z != required[2]))
    return "blocks " + ptx::describe(blockDim) + ", but the kernel requires " +
           ptx::describe({required[0], required[1], required[2]});
  if (threads > std::min(maxThreads(), kMostThreads))
    return "blocks of " + std::to_string(threads) +
           " threads, but the kernel takes at most " +
           std::to_string(std::min(maxThreads(), kMostThreads));
  if (blocks > kMostBlocks)
    return "grid " + ptx::describe(gridDim) +
           " has more blocks than the interpreter counts";
  if (sharedBytes + uint64_t(dynamicShared) > kMostSharedBytes)
    return std::to_string(sharedBytes + uint64_t(dynamicShared)) +
           " bytes of shared memory, but a block has at most " +
           std::to_string(kMostSharedBytes);
  return "";
}

/// Hands on what was accessed, for the checks between streams.
static std::string record(const ptx::Shadow &shadow, AccessRecorder &recorder) {
  constexpr uint64_t most = 1u << 30;
  for (bool written : {false, true})
    for (auto [begin, end] : shadow.ranges(written))
      for (; begin < end; begin += std::min(most, end - begin))
        if (!recorder.access(begin, std::min(most, end - begin), written, 0))
          return recorder.error();
  return "";
}

std::string Kernel::launch(Dim gridDim, Dim blockDim, uint32_t dynamicShared,
                           const char *block, AccessRecorder &recorder) const {
  std::string where = "kernel '" + function.name + "': ";
  std::string invalid = checkLaunch(gridDim, blockDim, dynamicShared);
  if (!invalid.empty())
    return where + invalid;
  ptx::Launch launch;
  launch.entry = entry;
  launch.grid = gridDim;
  launch.block = blockDim;
  launch.params = block;
  launch.paramBytes = paramBytes;
  launch.sharedBytes = sharedBytes + dynamicShared;
  launch.dynamicSharedBytes = dynamicShared;
  launch.device = device;
  try {
    ptx::Block runner(launch);
    uint32_t blocks = gridDim.x * gridDim.y * gridDim.z;
    for (uint32_t i = 0; i < blocks; ++i)
      runner.run(i);
  } catch (const ptx::Fault &fault) {
    return where + fault.what();
  }
  return record(launch.globals, recorder);
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

LoadedModule::LoadedModule(std::string_view text, int device, int sm)
    : syntax(ptx::parse(text)) {
  checkTarget(sm);
  allocateVariables(device);
  for (const auto &function : syntax->functions)
    if (function->isEntry && function->hasBody)
      kernels[function->name] =
          std::make_unique<Kernel>(*syntax, *function, globals, device);
}

/// "sm_80" runs on 8.0 and later, "sm_90a" on 9.0 alone.
void LoadedModule::checkTarget(int sm) const {
  const std::string &target = syntax->target;
  int wanted = target.compare(0, 3, "sm_") == 0 ? std::atoi(&target[3]) : 0;
  bool isExact = !target.empty() && target.back() == 'a';
  if (wanted == 0)
    throw ptx::Error("PTX has no .target of the form sm_90, but '" + target +
                     "'");
  if (isExact ? wanted != sm : wanted > sm)
    throw ptx::Error("PTX for " + target + " does not run on a device of sm_" +
                     std::to_string(sm));
}

void LoadedModule::allocateVariables(int device) {
  for (const auto &variable : syntax->variables) {
    if (variable->space == ptx::Space::Shared || variable->bytes == 0)
      continue;
    Window window = allocate(device, variable->bytes, variable->name);
    windows[variable->name] = window;
    globals[variable.get()] = window.begin;
  }
  for (const auto &variable : syntax->variables)
    if (globals.count(variable.get()))
      initialize(*variable);
}

void LoadedModule::initialize(const ptx::Variable &variable) {
  char *data = windows[variable.name].data;
  std::memset(data, 0, variable.bytes);
  if (!variable.init.empty())
    std::memcpy(data, variable.init.data(), variable.init.size());
  for (const ptx::Variable::Address &address : variable.addresses) {
    auto found = windows.find(address.name);
    if (found == windows.end() || address.at + 8 > variable.bytes)
      throw ptx::Error("PTX variable '" + variable.name +
                       "' holds the address of '" + address.name +
                       "', which has none");
    uint64_t value = found->second.begin + address.offset;
    std::memcpy(data + address.at, &value, sizeof value);
  }
}

const Function *LoadedModule::function(std::string_view name) const {
  auto found = kernels.find(name);
  return found == kernels.end() ? nullptr : found->second.get();
}

bool LoadedModule::variable(std::string_view name, Window &window) const {
  auto found = windows.find(name);
  if (found == windows.end())
    return false;
  window = found->second;
  return true;
}

std::unique_ptr<Module> Module::parse(std::string_view text, int device, int sm,
                                      std::string &error) {
  try {
    return std::make_unique<LoadedModule>(text, device, sm);
  } catch (const ptx::Error &failure) {
    error = failure.what();
    return nullptr;
  }
}
