// A grid of replicas by shards: the state is cut over the last axis; gradients are
// summed over it, then over the replicas; a norm is added up inside a replica and,
// where it leaves the step, counted once.
// RUN: zero-opt %s --zero-annotate=grid=2,4 --zero-partition=stage=3 | FileCheck %s
// RUN: zero-opt %s --zero-annotate=grid=2,4 --zero-partition=stage=1 | FileCheck %s --check-prefix=S1
// RUN: zero-opt %s --zero-annotate=grid=2,4 --zero-partition=stage=0 | FileCheck %s --check-prefix=S0
// With shard-axes=all the state is cut over both axes, and there are no replicas.
// RUN: zero-opt %s --zero-annotate=grid=2,4 --zero-partition='stage=3 shard-axes=all' --zero-release --zero-verify | FileCheck %s --check-prefix=ALL
// RUN: zero-opt %s --zero-annotate=grid=2,4 --zero-partition='stage=1 shard-axes=all' --zero-verify | FileCheck %s --check-prefix=ALL1

// CHECK: shard.grid @hsdp(shape = 2x4)
// CHECK: zero.param @w : !zero.sharded<10x4xf32, @hsdp, axes = [1], dim = 0>
// CHECK: zero.all_gather %w on @hsdp axes [1]
// CHECK: %[[S:.*]] = zero.reduce_scatter %{{.*}} average on @hsdp axes [1] : (tensor<10x4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: %[[R:.*]] = zero.all_reduce %[[S]] average on @hsdp : (tensor<3x4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: %[[N:.*]] = train.sum_squares %[[R]]
// CHECK-NEXT: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : tensor<f64>
// CHECK-NEXT: %[[LEFT:.*]] = arith.divf %[[N]], %[[TWO]]
// CHECK: zero.local %w on @hsdp axes [1]
// CHECK: return %[[LEFT]]

// S1: zero.param @w : tensor<10x4xf32>
// S1: %[[S:.*]] = zero.reduce_scatter %{{.*}} average on @hsdp axes [1]
// S1-NEXT: zero.all_reduce %[[S]] average on @hsdp :
// S1: zero.local %w on @hsdp axes [1] : tensor<10x4xf32> -> tensor<3x4xf32>
// S1: zero.all_gather %{{.*}} on @hsdp axes [1]

// ALL: zero.param @w : !zero.sharded<10x4xf32, @hsdp, axes = [0, 1], dim = 0>
// ALL: zero.all_gather %w on @hsdp axes [0, 1]
// ALL: %[[S:.*]] = zero.reduce_scatter %{{.*}} average on @hsdp axes [0, 1] : (tensor<10x4xf32>) -> tensor<2x4xf32>
// ALL-NEXT: %[[N:.*]] = train.sum_squares %[[S]]
// ALL-NOT: zero.all_reduce
// ALL: zero.local %w on @hsdp axes [0, 1]
// ALL: return %[[N]]

// ALL1: zero.reduce_scatter %{{.*}} average on @hsdp axes [0, 1]
// ALL1: zero.local %w on @hsdp axes [0, 1] : tensor<10x4xf32> -> tensor<2x4xf32>
// ALL1: zero.all_gather %{{.*}} on @hsdp axes [0, 1]

// S0: zero.all_reduce %{{.*}} average on @hsdp axes [0, 1] : (tensor<10x4xf32>) -> tensor<10x4xf32>
// S0-NOT: arith.divf
zero.param @w : tensor<10x4xf32>
func.func @step(%x: tensor<8x4xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"})
    -> (tensor<f64> {zero.output = "grad_norm", zero.across = "same"}) {
  %w = zero.read @w : tensor<10x4xf32>
  %y = train.matmul %x, %w {transpose_b} : (tensor<8x4xf32>, tensor<10x4xf32>) -> tensor<8x10xf32>
  %dw = train.matmul %y, %x {transpose_a} : (tensor<8x10xf32>, tensor<8x4xf32>) -> tensor<10x4xf32>
  %n = train.sum_squares %dw : (tensor<10x4xf32>) -> tensor<f64>
  %new = train.sgd %w, %dw, %lr : (tensor<10x4xf32>, tensor<10x4xf32>, tensor<f32>) -> tensor<10x4xf32>
  zero.assign @w, %new : tensor<10x4xf32>
  return %n : tensor<f64>
}
