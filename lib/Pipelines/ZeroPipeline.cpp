//===- ZeroPipeline.cpp - the ZeRO pipeline -------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Builds and registers the pipeline from options.
//
//===----------------------------------------------------------------------===//

#include "zero/Pipelines.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace mlir::zero;

static constexpr std::pair<StringLiteral, ScheduleMode> kScheduleModes[] = {
    {"none", ScheduleMode::None},     {"prefetch", ScheduleMode::Prefetch},
    {"keep", ScheduleMode::Keep},     {"reorder", ScheduleMode::Reorder},
    {"bucket", ScheduleMode::Bucket}, {"joint", ScheduleMode::Joint}};

std::optional<ScheduleMode> zero::parseScheduleMode(StringRef name) {
  for (auto &[known, mode] : kScheduleModes)
    if (known == name)
      return mode;
  return std::nullopt;
}

void zero::setScheduleMode(ZeroOptions &options, ScheduleMode mode) {
  options.schedule = mode != ScheduleMode::None;
  bool joint = mode == ScheduleMode::Joint;
  options.prefetch = joint || mode == ScheduleMode::Prefetch;
  options.keepGathered = joint || mode == ScheduleMode::Keep;
  options.reorder = joint || mode == ScheduleMode::Reorder;
  options.bucket = joint || mode == ScheduleMode::Bucket;
}

static ZeroSchedulePassOptions getScheduleOptions(const ZeroOptions &from) {
  ZeroSchedulePassOptions options;
  options.memory = from.memoryBytes;
  options.hostMemory = from.hostMemoryBytes;
  options.machine = from.machine;
  options.prefetch = from.prefetch;
  options.keepGathered = from.keepGathered;
  options.reorder = from.reorder;
  options.bucket = from.bucket;
  return options;
}

void zero::buildZeroPreparation(OpPassManager &pm, const ZeroOptions &options) {
  // Other front ends' functions first: all that follows reads symbols.
  pm.addPass(createZeroOutlineStatePass());
  ZeroAnnotatePassOptions annotate;
  annotate.ranks = options.ranks;
  annotate.grid = options.grid;
  pm.addPass(createZeroAnnotatePass(annotate));
}

static void addOffload(OpPassManager &pm, const ZeroOptions &options) {
  const std::vector<std::string> &rules = options.offload;
  if (rules.empty() || (rules.size() == 1 && rules.front() == "none"))
    return;
  if (rules.size() == 1 && rules.front() == "auto") {
    ZeroChooseOffloadPassOptions choice;
    choice.memory = options.memoryBytes;
    choice.hostMemory = options.hostMemoryBytes;
    choice.machine = options.machine;
    choice.disk = options.offloadToDisk;
    pm.addPass(createZeroChooseOffloadPass(choice));
    return;
  }
  ZeroOffloadPassOptions offload;
  llvm::append_range(offload.rules, rules);
  pm.addPass(createZeroOffloadPass(offload));
}

void zero::buildZeroPipeline(OpPassManager &pm, const ZeroOptions &options) {
  buildZeroPreparation(pm, options);
  if (options.remat != RematMode::None) {
    TrainRematPassOptions remat;
    remat.mode = options.remat;
    remat.bytes = options.rematBytes;
    remat.stage = options.stage;
    remat.machine = options.machine;
    pm.addPass(createTrainRematPass(remat));
  }
  ZeroPartitionPassOptions partition;
  partition.stage = options.stage;
  partition.shardAxes = options.shardAxes;
  partition.keepAdjacent =
      options.keepAdjacent && !(options.schedule && options.keepGathered);
  pm.addPass(createZeroPartitionPass(partition));
  // Buckets before releases: what is gathered as one is released as one.
  pm.addPass(createZeroBucketPass({options.bucketBytes}));
  pm.addPass(createZeroReleasePass());
  addOffload(pm, options);
  if (options.schedule)
    pm.addPass(createZeroSchedulePass(getScheduleOptions(options)));
  pm.addPass(createZeroVerifyPass());
}

namespace {
struct PipelineOptions : public PassPipelineOptions<PipelineOptions> {
  Option<int64_t> stage{*this, "stage", llvm::cl::desc("ZeRO stage, 0 to 3"),
                        llvm::cl::init(3)};
  Option<int64_t> ranks{
      *this, "ranks",
      llvm::cl::desc("Number of ranks; -1 keeps the module's grid, or makes "
                     "one of 8 ranks"),
      llvm::cl::init(kUnsetRanks)};
  ListOption<int64_t> grid{
      *this, "grid",
      llvm::cl::desc("Shape of the grid instead of a number of ranks")};
  Option<ShardAxes> shard{
      *this, "shard",
      llvm::cl::desc("Axes of a grid of two that the state is cut over"),
      llvm::cl::init(ShardAxes::Inner),
      llvm::cl::values(
          clEnumValN(ShardAxes::Inner, "inner",
                     "the last; a copy for each place on the first"),
          clEnumValN(ShardAxes::All, "all", "both"))};
  Option<RematMode> remat{
      *this, "remat", llvm::cl::desc("What the backward pass computes again"),
      llvm::cl::init(RematMode::None),
      llvm::cl::values(
          clEnumValN(RematMode::None, "none", "nothing"),
          clEnumValN(RematMode::Selective, "selective",
                     "what is cheap and large"),
          clEnumValN(RematMode::Full, "full", "all inside of layers"),
          clEnumValN(RematMode::Budget, "budget", "what remat-bytes needs"))};
  Option<int64_t> rematBytes{
      *this, "remat-bytes",
      llvm::cl::desc("With remat=budget: most bytes of the step's values"),
      llvm::cl::init(kUnsetMemory)};
  Option<int64_t> bucketBytes{
      *this, "bucket-bytes",
      llvm::cl::desc("Largest bucket in bytes; 0 for no limit"),
      llvm::cl::init(kDefaultBucketBytes)};
  Option<bool> keepAdjacent{
      *this, "keep-adjacent",
      llvm::cl::desc("Stage 3: keep a unit gathered that the backward needs "
                     "before any other"),
      llvm::cl::init(true)};
  ListOption<std::string> offload{
      *this, "offload",
      llvm::cl::desc("What lives outside device memory, as in optimizer=host "
                     "(of several rules the last that matches counts), or "
                     "auto: what the budgets need")};
  Option<bool> offloadToDisk{
      *this, "offload-to-disk",
      llvm::cl::desc("With offload=auto: there is a disk to use"),
      llvm::cl::init(false)};
  Option<int64_t> hostMemory{
      *this, "host-memory",
      llvm::cl::desc("Budget in bytes of one rank's host memory; -1 for its "
                     "part of the machine's where one is named, else for no "
                     "limit"),
      llvm::cl::init(kUnsetMemory)};
  Option<int64_t> memory{
      *this, "memory",
      llvm::cl::desc("Budget in bytes of one rank; -1 for the machine's memory "
                     "where one is named, else for no limit"),
      llvm::cl::init(kUnsetMemory)};
  Option<std::string> machine{
      *this, "machine",
      llvm::cl::desc("A machine preset by name, or a .json file")};
  Option<ScheduleMode> schedule{
      *this, "schedule", llvm::cl::desc("What the schedule decides"),
      llvm::cl::init(ScheduleMode::Joint),
      llvm::cl::values(
          clEnumValN(ScheduleMode::None, "none", "nothing: no overlap"),
          clEnumValN(ScheduleMode::Prefetch, "prefetch", "starts and waits"),
          clEnumValN(ScheduleMode::Keep, "keep", "what stays gathered"),
          clEnumValN(ScheduleMode::Reorder, "reorder", "the order of compute"),
          clEnumValN(ScheduleMode::Bucket, "bucket", "larger buckets"),
          clEnumValN(ScheduleMode::Joint, "joint", "all of it together"))};
};
} // namespace

static void buildFromOptions(OpPassManager &pm, const PipelineOptions &from) {
  ZeroOptions options;
  options.stage = from.stage;
  options.ranks = from.ranks;
  options.grid.assign(from.grid.begin(), from.grid.end());
  options.shardAxes = from.shard;
  options.remat = from.remat;
  options.rematBytes = from.rematBytes;
  options.bucketBytes = from.bucketBytes;
  options.keepAdjacent = from.keepAdjacent;
  options.offload.assign(from.offload.begin(), from.offload.end());
  options.offloadToDisk = from.offloadToDisk;
  options.hostMemoryBytes = from.hostMemory;
  options.memoryBytes = from.memory;
  options.machine = from.machine;
  setScheduleMode(options, from.schedule);
  buildZeroPipeline(pm, options);
}

void zero::registerZeroPipelines() {
  PassPipelineRegistration<PipelineOptions>(
      "zero-pipeline",
      "All ZeRO passes: outline, annotate, remat, partition, bucket, release, "
      "offload, schedule, verify",
      buildFromOptions);
}
