// Stages 1 and 2: gradients are reduced beside the backward pass, and the gathers
// of updated parameters run beside each other's updates; each is awaited before
// the parameter is assigned.
// RUN: zero-opt %s --zero-stage=2 --zero-ranks=8 --zero-machine=h100 | FileCheck %s
// RUN: zero-opt %s --zero-stage=1 --zero-ranks=8 --zero-machine=h100 | FileCheck %s --check-prefix=S1
// RUN: zero-opt %s --zero-stage=0 --zero-ranks=8 --zero-machine=h100 | FileCheck %s --check-prefix=S0

// CHECK-LABEL: func.func @step
// CHECK: %[[RB:.*]] = zero.reduce_scatter_start
// CHECK-NEXT: train.matmul
// CHECK: zero.wait %[[RB]]
// CHECK: train.sgd
// CHECK-NEXT: %[[FB:.*]] = zero.all_gather_start %{{.*}} on @dp : (tensor<1024x8192xf32>)
// CHECK: %[[B:.*]] = zero.wait %[[FB]]
// CHECK-NEXT: zero.assign @b, %[[B]]

// S1-LABEL: func.func @step
// S1: zero.reduce_scatter_start
// S1: zero.all_gather
// S0-LABEL: func.func @step
// S0: zero.all_reduce_start
// S0: train.sgd
zero.param @a : tensor<8192x8192xf32>
zero.param @b : tensor<8192x8192xf32>
func.func @step(%x: tensor<4096x8192xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
  %a = zero.read @a : tensor<8192x8192xf32>
  %b = zero.read @b : tensor<8192x8192xf32>
  %h = train.matmul %x, %a : (tensor<4096x8192xf32>, tensor<8192x8192xf32>) -> tensor<4096x8192xf32>
  %y = train.matmul %h, %b : (tensor<4096x8192xf32>, tensor<8192x8192xf32>) -> tensor<4096x8192xf32>
  %db = train.matmul %h, %y {transpose_a} : (tensor<4096x8192xf32>, tensor<4096x8192xf32>) -> tensor<8192x8192xf32>
  %dh = train.matmul %y, %b {transpose_b} : (tensor<4096x8192xf32>, tensor<8192x8192xf32>) -> tensor<4096x8192xf32>
  %da = train.matmul %x, %dh {transpose_a} : (tensor<4096x8192xf32>, tensor<4096x8192xf32>) -> tensor<8192x8192xf32>
  %na = train.sgd %a, %da, %lr : (tensor<8192x8192xf32>, tensor<8192x8192xf32>, tensor<f32>) -> tensor<8192x8192xf32>
  zero.assign @a, %na : tensor<8192x8192xf32>
  %nb = train.sgd %b, %db, %lr : (tensor<8192x8192xf32>, tensor<8192x8192xf32>, tensor<f32>) -> tensor<8192x8192xf32>
  zero.assign @b, %nb : tensor<8192x8192xf32>
  return
}
