// The short forms of zero-opt, their place among other passes, and what they refuse.
// RUN: zero-opt %s --zero-stage=3 --zero-ranks=4 2>&1 | FileCheck %s --check-prefix=RANKS
// RUN: zero-opt %s --zero-ranks 4 --zero-stage 3 2>&1 | FileCheck %s --check-prefix=RANKS
// RUN: zero-opt %s --zero-stage=3 --zero-grid=4 | FileCheck %s --check-prefix=RANKS
// RUN: zero-opt %s --zero-stage=3 --zero-grid=2x4 | FileCheck %s --check-prefix=GRID
// RUN: zero-opt %s --zero-stage=3 --zero-grid=2x4 --zero-shard=all | FileCheck %s --check-prefix=BOTHAXES
// RUN: zero-opt %s --zero-stage=3 --zero-ranks=4 --zero-schedule=none | FileCheck %s --check-prefix=NONE
// RUN: zero-opt %s --zero-stage=3 --zero-ranks=4 --zero-memory=1KiB --zero-machine=h100 --zero-schedule=joint | FileCheck %s --check-prefix=RANKS
// RUN: zero-opt %s --zero-pipeline='stage=3 ranks=4' | FileCheck %s --check-prefix=RANKS
// RUN: zero-opt %s --pass-pipeline='builtin.module(zero-annotate{ranks=4},zero-partition{stage=3},zero-bucket,zero-release,zero-schedule,zero-verify)' | FileCheck %s --check-prefix=RANKS
// RUN: zero-opt %s --zero-stage=0 2>&1 | FileCheck %s --check-prefix=DEFAULT
// RUN: zero-opt %s --canonicalize --zero-stage=3 --zero-ranks=4 --symbol-dce --mlir-print-ir-before-all 2>&1 | grep "IR Dump" | FileCheck %s --check-prefix=ORDER
// The pass of that name is not the flag.
// RUN: zero-opt --zero-schedule %s | FileCheck %s --check-prefix=PASS
// RUN: zero-opt --zero-schedule=prefetch=false %s | FileCheck %s --check-prefix=PASS
// PASS-NOT: zero.all_gather
// RUN: zero-opt --help | FileCheck %s --check-prefix=HELP

// RANKS-NOT: remark
// RANKS: module attributes {zero.planned_peak = {{[0-9]+}} : i64, zero.planned_seconds = {{.*}} : f64, zero.stage = 3 : i64}
// RANKS: shard.grid @dp(shape = 4)
// RANKS: zero.all_gather
// RANKS: zero.release
// RANKS: zero.reduce_scatter
// DEFAULT: remark: no grid and no number of ranks given, using 8 ranks
// DEFAULT: shard.grid @dp(shape = 8)
// ORDER: Canonicalizer
// ORDER-NEXT: zero-outline-state
// ORDER-NEXT: zero-annotate
// ORDER-NEXT: zero-partition
// ORDER-NEXT: zero-bucket
// ORDER-NEXT: zero-release
// ORDER-NEXT: zero-schedule
// ORDER-NEXT: zero-verify
// ORDER-NEXT: SymbolDCE
// GRID: shard.grid @hsdp(shape = 2x4)
// GRID: zero.all_reduce
// BOTHAXES: axes = [0, 1]
// BOTHAXES-NOT: zero.all_reduce
// NONE: module attributes {zero.stage = 3 : i64}
// HELP: --zero-stage=<0..3>
// HELP: --zero-shard=<axes>
// HELP: --zero-memory=<size>
// HELP: --zero-machine=<name>
// HELP: --zero-schedule=<mode>

// RUN: not zero-opt %s --zero-stage=4 2>&1 | count 1
// RUN: not zero-opt %s --zero-stage=4 2>&1 | FileCheck %s --check-prefix=FOUR
// RUN: not zero-opt %s --zero-stage=3 --zero-ranks=0 2>&1 | count 1
// RUN: not zero-opt %s --zero-stage=3 --zero-ranks=0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not zero-opt %s --zero-ranks=4 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: not zero-opt %s --zero-stage=3 --zero-memory=80GB! 2>&1 | FileCheck %s --check-prefix=MEMORY
// RUN: not zero-opt %s --zero-stage=3 --zero-schedule=all 2>&1 | FileCheck %s --check-prefix=MODE
// RUN: not zero-opt %s --zero-stage=3 --zero-machine=h1000 2>&1 | FileCheck %s --check-prefix=MACHINE
// RUN: not zero-opt %s --zero-stage=3 --zero-grid=4x 2>&1 | FileCheck %s --check-prefix=HALF
// HALF: zero-opt: --zero-grid=4x: expects sizes such as 8 or 4x8, at most 16777216 ranks
// RUN: not zero-opt %s --zero-stage=3 --zero-grid= 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: zero-opt: --zero-grid=: expects sizes
// RUN: not zero-opt %s --zero-stage=3 --zero-grid=100000x100000 2>&1 | FileCheck %s --check-prefix=HUGE
// HUGE: zero-opt: --zero-grid=100000x100000: expects sizes
// RUN: not zero-opt %s --zero-stage=3 --zero-grid=2x4x8 2>&1 | FileCheck %s --check-prefix=CUBE
// RUN: not zero-opt %s --zero-stage=3 --zero-grid=2x4 --zero-ranks=8 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not zero-opt %s --zero-stage=-1 2>&1 | FileCheck %s --check-prefix=MINUS
// MINUS: zero-opt: --zero-stage=-1: stage -1 does not exist
// FOUR: zero-opt: --zero-stage=4: stage 4 does not exist; ZeRO stages are 0, 1, 2, 3
// ZERO: zero_opt_flags.mlir{{.*}}error: expects at least 1 rank, got 0
// RUN: not zero-opt %s --zero-stage=3 --zero-grid=2x4 --zero-shard=outer 2>&1 | FileCheck %s --check-prefix=SHARD
// SHARD: zero-opt: --zero-shard=outer: expects inner or all
// ALONE: zero-opt: --zero-ranks, --zero-grid, --zero-shard, --zero-bucket-bytes, --zero-memory, --zero-host-memory, --zero-offload, --zero-machine and --zero-schedule go with --zero-stage=<0..3>, which is missing
// MEMORY: zero-opt: --zero-memory=80GB!: expects a size such as 80GiB, 512MiB or a number of bytes above 0
// MODE: zero-opt: --zero-schedule=all: expects none, prefetch, keep, reorder, bucket or joint
// MACHINE: error: {{.*}}h1000
// CUBE: error: {{.*}}has 3 axes; expects one, or two: replicas by shards
// BOTH: error: is given a number of ranks and a grid; give one of them

zero.param @w : tensor<10x4xf32>
func.func @step(%x: tensor<8x4xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
  %w = zero.read @w : tensor<10x4xf32>
  %y = train.matmul %x, %w {transpose_b} : (tensor<8x4xf32>, tensor<10x4xf32>) -> tensor<8x10xf32>
  %dw = train.matmul %y, %x {transpose_a} : (tensor<8x10xf32>, tensor<8x4xf32>) -> tensor<10x4xf32>
  %n = train.sgd %w, %dw, %lr : (tensor<10x4xf32>, tensor<10x4xf32>, tensor<f32>) -> tensor<10x4xf32>
  zero.assign @w, %n : tensor<10x4xf32>
  return
}
