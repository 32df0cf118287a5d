// A module without a backward pass is told what to run first; one line.
// RUN: not zero-opt %s --zero-stage=3 --zero-ranks=4 2>&1 | count 1
// RUN: not zero-opt %s --zero-stage=3 --zero-ranks=4 2>&1 | FileCheck %s
// CHECK: forward_only.mlir{{.*}}error: has no backward pass and no optimizer: no parameter is assigned; run --train-step='loss=... optimizer=...' first

// RUN: zero-opt %s --train-step='loss=mse optimizer=sgd' --zero-stage=3 --zero-ranks=4 | FileCheck %s --check-prefix=STEP
// STEP: func.func @step
// STEP: zero.all_gather
// STEP: zero.reduce_scatter
// STEP: zero.assign @w

zero.param @w : tensor<10x4xf32>
func.func @forward(%x: tensor<8x4xf32> {zero.input = "x"}) -> (tensor<8x10xf32> {zero.output = "y"}) {
  %w = zero.read @w : tensor<10x4xf32>
  %y = train.matmul %x, %w {transpose_b} : (tensor<8x4xf32>, tensor<10x4xf32>) -> tensor<8x10xf32>
  return %y : tensor<8x10xf32>
}
