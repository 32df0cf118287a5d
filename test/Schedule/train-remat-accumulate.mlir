// The functions of a step of several micro-batches are decided each on its own:
// both compute layer a.0 again.
// RUN: zero-opt %s --train-step='loss=mse optimizer=sgd micro-batches=3' --train-remat=mode=full | FileCheck %s

// CHECK: zero.recomputed = 4 : i64
// CHECK: func.func @accumulate
// CHECK: train.matmul %arg0, %[[W:.*]] :
// CHECK: train.matmul %arg0, %[[W]] {zero.recomputed}
// CHECK-NEXT: train.gelu %{{.*}} {zero.recomputed}
// CHECK: return
// CHECK: func.func @step
// CHECK: train.matmul %arg0, %[[V:.*]] :
// CHECK: train.matmul %arg0, %[[V]] {zero.recomputed}
// CHECK-NEXT: train.gelu %{{.*}} {zero.recomputed}
// CHECK: return
zero.param @a.0.w : tensor<64x256xf32> unit("a.0")
zero.param @a.0.v : tensor<256x64xf32> unit("a.0")
zero.param @a.1.w : tensor<64x64xf32> unit("a.1")
func.func @forward(%x: tensor<512x64xf32> {zero.input = "x"}) -> (tensor<512x64xf32> {zero.output = "y"}) {
  %w0 = zero.read @a.0.w : tensor<64x256xf32>
  %h0 = train.matmul %x, %w0 : (tensor<512x64xf32>, tensor<64x256xf32>) -> tensor<512x256xf32>
  %g0 = train.gelu %h0 : tensor<512x256xf32>
  %v0 = zero.read @a.0.v : tensor<256x64xf32>
  %y0 = train.matmul %g0, %v0 : (tensor<512x256xf32>, tensor<256x64xf32>) -> tensor<512x64xf32>
  %w1 = zero.read @a.1.w : tensor<64x64xf32>
  %y1 = train.matmul %y0, %w1 : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
  return %y1 : tensor<512x64xf32>
}
