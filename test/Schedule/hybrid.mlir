// On a grid of replicas by shards, the sum over replicas has a channel of its own
// and runs beside the next reduction; gathers stay inside a replica.
// RUN: zero-opt %s --zero-stage=2 --zero-grid=4x8 --zero-machine=h100 | FileCheck %s
// RUN: zero-opt %s --zero-stage=3 --zero-grid=4x8 --zero-machine=h100 | FileCheck %s --check-prefix=S3

// CHECK-LABEL: func.func @step
// CHECK: %[[FS:.*]] = zero.reduce_scatter_start %{{.*}} average on @hsdp axes [1]
// CHECK: %[[S:.*]] = zero.wait %[[FS]]
// CHECK-NEXT: %[[FR:.*]] = zero.all_reduce_start %[[S]] average on @hsdp : (tensor<1024x8192xf32>)
// CHECK: zero.wait %[[FR]]
// CHECK: zero.all_gather{{.*}} axes [1]
// S3: zero.param @a : !zero.sharded<8192x8192xf32, @hsdp, axes = [1], dim = 0>
// S3: zero.all_gather{{.*}} on @hsdp axes [1]
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
