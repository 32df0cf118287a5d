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

void zero::buildZeroPipeline(OpPassManager &pm, const ZeroOptions &options) {
  // Other front ends' functions first: all that follows reads symbols.
  pm.addPass(createZeroOutlineStatePass());
  ZeroAnnotatePassOptions annotate;
  annotate.ranks = options.ranks;
  annotate.grid = options.grid;
  pm.addPass(createZeroAnnotatePass(annotate));
  ZeroPartitionPassOptions partition;
  partition.stage = options.stage;
  partition.keepAdjacent = options.keepAdjacent;
  pm.addPass(createZeroPartitionPass(partition));
  // Buckets before releases: what is gathered as one is released as one.
  pm.addPass(createZeroBucketPass({options.bucketBytes}));
  pm.addPass(createZeroReleasePass());
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
  Option<int64_t> bucketBytes{
      *this, "bucket-bytes",
      llvm::cl::desc("Largest bucket in bytes; 0 for no limit"),
      llvm::cl::init(kDefaultBucketBytes)};
  Option<bool> keepAdjacent{
      *this, "keep-adjacent",
      llvm::cl::desc("Stage 3: keep a unit gathered that the backward needs "
                     "before any other"),
      llvm::cl::init(true)};
};
} // namespace

void zero::registerZeroPipelines() {
  PassPipelineRegistration<PipelineOptions>(
      "zero-pipeline",
      "All ZeRO passes: outline, annotate, partition, bucket, release, verify",
      [](OpPassManager &pm, const PipelineOptions &from) {
        ZeroOptions options;
        options.stage = from.stage;
        options.ranks = from.ranks;
        options.grid.assign(from.grid.begin(), from.grid.end());
        options.bucketBytes = from.bucketBytes;
        options.keepAdjacent = from.keepAdjacent;
        buildZeroPipeline(pm, options);
      });
}
