// What recomputation cannot be asked for.
// RUN: not zero-opt %s --train-remat=mode=budget 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: not zero-opt %s --train-remat='mode=budget bytes=0' 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not zero-opt %s --train-remat=stage=4 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: not zero-opt %s --zero-stage=3 --zero-ranks=4 --train-remat=mode=full 2>&1 | FileCheck %s --check-prefix=LATE
// RUN: not zero-opt %s --train-remat=mode=some 2>&1 | FileCheck %s --check-prefix=MODE
// RUN: not zero-opt %s --train-remat=machine=h1000 2>&1 | FileCheck %s --check-prefix=MACHINE

// BYTES: error: train-remat: mode=budget needs bytes=N of at least 1, got -1
// ZERO: error: train-remat: mode=budget needs bytes=N of at least 1, got 0
// STAGE: error: train-remat: stage 4 does not exist; ZeRO stages are 0, 1, 2, 3
// LATE: error: is partitioned, at stage 3{{.*}}; recomputation is decided before zero-partition
// MODE: some
// MACHINE: error: {{.*}}h1000
zero.param @w : tensor<4x4xf32>
func.func @step(%x: tensor<4x4xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"})
    -> (tensor<4x4xf32> {zero.output = "y", zero.across = "mean"}) {
  %w = zero.read @w : tensor<4x4xf32>
  %y = train.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %dw = train.matmul %x, %y {transpose_a} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %n = train.sgd %w, %dw, %lr : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  zero.assign @w, %n : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
