//===- RankWork.cpp - The commands of a rank, prepared --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Rank.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Rank.h"

#include "runtime/cuda/Status.h"
#include "runtime/host/HostLaunch.h"
#include "runtime/host/Transfers.h"

#include <algorithm>
#include <cstring>

using namespace zrt;
using namespace zrt::cuda;
using zrt::host::tensorName;

Rank::Rank(const Program &program, uint32_t rank, int deviceNumber,
           const RankOptions &options, const Cancel &cancel)
    : program(program), rank(rank), options(options), cancel(cancel),
      device(deviceNumber), current(device),
      arenas(program, rank, options.offloadPath,
             Communicators::needed(program)),
      streams(program.numStreams) {
  if (device.capability() < kLeastCapability)
    fail(ZRT_ERROR_TARGET, "device ", deviceNumber, " (", device.name(),
         ") is sm_", device.capability(), ": a GPU of sm_", kLeastCapability,
         " or newer is needed");
  int wanted = 0;
  if (std::sscanf(program.target.c_str(), "cuda:sm_%d", &wanted) != 1 ||
      wanted > device.capability())
    fail(ZRT_ERROR_TARGET, "the program is compiled for ", program.target,
         ", but device ", deviceNumber, " (", device.name(), ") is sm_",
         device.capability(), ": compile it with --target ",
         device.info().target);
  libraries.capability = device.capability();
  streamTimes = std::make_unique<StreamTimes>(program);
  for (const DeviceKernel &kernel : program.deviceKernels)
    kernels[kernel.name] = &kernel;
  for (const Command &command : program.commands)
    if (command.host && command.split && !hostThreads)
      hostThreads = std::make_unique<host::HostThreads>(options.hostThreads);
  makeStreams();
}

Rank::~Rank() {
  try {
    device.use();
  } catch (const std::exception &) {
    return; // the driver is gone, and all memory with it
  }
  for (Stream &stream : streams)
    if (stream.stream)
      cuStreamSynchronize(stream.stream);
  for (std::unique_ptr<Graph> &graph : graphs)
    graph.reset();
  communicators.reset();
  for (Stream &stream : streams)
    if (stream.stream)
      cuStreamDestroy(stream.stream);
}

/// What others wait for goes before the computation.
void Rank::makeStreams() {
  int lowest = 0, highest = 0;
  checkCuda(cuCtxGetStreamPriorityRange(&lowest, &highest),
            "cuCtxGetStreamPriorityRange");
  for (size_t index = 0; index < streams.size(); ++index)
    checkCuda(cuStreamCreateWithPriority(&streams[index].stream,
                                         CU_STREAM_NON_BLOCKING,
                                         index == 0 ? lowest : highest),
              "cuStreamCreateWithPriority");
}

void Rank::connect(const ncclUniqueId &id) {
  communicators = std::make_unique<Communicators>(
      program, rank, id, arenas.deviceArenas(), options.inGroup,
      std::max(60.0, options.timeoutMinSeconds), cancel);
}

CUdeviceptr Rank::address(const Operand &operand) const {
  return arenas.address(operand.buffer) +
         operand.view.offset *
             elementBytes(program.buffers[operand.buffer].dtype);
}

/// Memory for what kernels leave to their later launches: each stream's most.
void Rank::takeScratch() {
  std::vector<uint64_t> most(streams.size(), 0);
  for (const Command &command : program.commands)
    if (command.op == fb::Op_Launch && !command.host)
      most[command.stream] =
          std::max(most[command.stream], kernels.at(command.callee)->scratchBytes);
  for (size_t index = 0; index < streams.size(); ++index) {
    streams[index].scratch = DeviceBlock(
        most[index], "scratch memory of rank " + std::to_string(rank));
    workspaces += most[index];
  }
}

void Rank::takeWorkspaces() {
  for (Stream &stream : streams) {
    stream.workspace = DeviceBlock(stream.workspaceBytes,
                                   "workspace of rank " + std::to_string(rank));
    workspaces += stream.workspaceBytes;
  }
}

std::unique_ptr<Work> Rank::makeLaunch(const Command &command) {
  const DeviceKernel &kernel = *kernels.at(command.callee);
  std::vector<KernelWork::Launch> launches;
  for (const DeviceLaunch &from : kernel.launches) {
    KernelWork::Launch launch{from.entry, module->find(from.entry), {},
                              {},         from.sharedBytes,         {}};
    std::copy_n(from.grid.begin(), 3, launch.grid);
    std::copy_n(from.block.begin(), 3, launch.block);
    for (int32_t argument : from.arguments)
      launch.arguments.push_back(
          argument < 0 ? streams[command.stream].scratch.address()
                       : address(command.operands[size_t(argument)]));
    launches.push_back(std::move(launch));
  }
  return std::make_unique<KernelWork>(std::move(launches));
}

std::unique_ptr<Work> Rank::makeHostLaunch(size_t index,
                                           const KernelLibrary &host) {
  const Command &command = program.commands[index];
  Kernel kernel = host.find(command.callee);
  std::vector<void *> buffers;
  std::vector<HostWork::Use> uses;
  for (size_t operand = 0; operand < command.operands.size(); ++operand) {
    const Operand &from = command.operands[operand];
    uint64_t element = elementBytes(program.buffers[from.buffer].dtype);
    uint8_t *data =
        arenas.hostAddress(from.buffer) + from.view.offset * element;
    bool written =
        command.writes.empty() ||
        std::count(command.writes.begin(), command.writes.end(), operand);
    buffers.push_back(data);
    uses.push_back({data, *elementCount(from.view.sizes) * element, written});
  }
  return std::make_unique<HostWork>(hostFailure, index, std::move(uses),
                                    [kernel, buffers, split = command.split,
                                     threads = hostThreads.get()]() mutable {
                                      host::launchKernel(kernel, buffers.data(),
                                                         split, threads);
                                    });
}

namespace {
/// A library call; its workspace is known once all calls are prepared.
class CallWork : public Work {
public:
  CallWork(std::unique_ptr<LibraryCall> call, const DeviceBlock &workspace)
      : call(std::move(call)), workspace(workspace) {}
  void enqueue(CUstream stream) override {
    call->run(stream, workspace.address());
  }

private:
  std::unique_ptr<LibraryCall> call;
  const DeviceBlock &workspace;
};
} // namespace

std::unique_ptr<Work> Rank::makeCall(const Command &command) {
  CallSite site{command, {}, libraries};
  for (const Operand &operand : command.operands) {
    View view = operand.view;
    view.offset = 0;
    site.operands.push_back(
        {view, program.buffers[operand.buffer].dtype, address(operand)});
  }
  std::unique_ptr<LibraryCall> call = makeLibraryCall(site);
  Stream &stream = streams[command.stream];
  stream.workspaceBytes =
      std::max(stream.workspaceBytes, call->workspaceBytes());
  return std::make_unique<CallWork>(std::move(call), stream.workspace);
}

std::unique_ptr<Work> Rank::makePoison(size_t index, uint32_t buffer) {
  const Buffer &released = program.buffers[buffer];
  if (arenas.spaceOf(buffer) == fb::Space_Device)
    return std::make_unique<SetBytes>(arenas.address(buffer), released.bytes,
                                      kPoisonByte);
  if (DiskArena *disk = arenas.diskOf(buffer))
    return std::make_unique<HostWork>(
        hostFailure, index, std::vector<HostWork::Use>{},
        [disk, begin = released.begin(rank), bytes = released.bytes] {
          disk->fill(begin, bytes, kPoisonByte);
        });
  uint8_t *data = arenas.hostAddress(buffer);
  return std::make_unique<HostWork>(
      hostFailure, index,
      std::vector<HostWork::Use>{{data, released.bytes, true}},
      [data, bytes = released.bytes] {
        std::memset(data, kPoisonByte, bytes);
      });
}

std::unique_ptr<Work> Rank::makeWork(size_t index, const KernelLibrary &host) {
  const Command &command = program.commands[index];
  if (command.isCollective())
    return communicators->make(command, arenas);
  if (command.op == fb::Op_Call)
    return makeCall(command);
  if (command.op != fb::Op_Launch)
    return copies->make(index);
  return command.host ? makeHostLaunch(index, host) : makeLaunch(command);
}

void Rank::bind(const KernelLibrary &hostKernels) {
  module = std::make_unique<Module>(program.deviceCode, "the device code");
  copies = std::make_unique<CopyMaker>(program, rank, arenas,
                                       libraries.kernels(), hostFailure);
  takeScratch();
  signaler.resize(program.numEvents, 0);
  poisons.resize(program.commands.size());
  for (size_t index = 0; index < program.commands.size(); ++index) {
    const Command &command = program.commands[index];
    Part part = index < program.microCommands ? Part::MicroBatch : Part::Step;
    streams[command.stream].used[size_t(part)] = true;
    if (command.signal >= 0)
      signaler[command.signal] = index;
    names.push_back(std::to_string(index) + " " + opName(command.op) + " " +
                    (command.label.empty() ? command.callee : command.label));
    try {
      works.push_back(makeWork(index, hostKernels));
      for (uint32_t buffer : command.release)
        if (options.poison)
          poisons[index].push_back(makePoison(index, buffer));
    } catch (const CommandError &) {
      throw;
    } catch (const Error &error) {
      throw CommandError(error.code(), index, error.what());
    }
  }
  takeWorkspaces();
}
