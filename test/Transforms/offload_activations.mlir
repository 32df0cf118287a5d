// Activations in host memory between the passes: down after their last use in
// forward, up before the first in backward, where other layouts are made again.
// RUN: zero-opt %s --split-input-file --zero-offload='rules=activations@a.relu=host' --zero-verify | FileCheck %s
// RUN: zero-opt %s --split-input-file --zero-offload='rules=activations@a.*=disk' --zero-verify | FileCheck %s --check-prefix=DISK

// A name is the layer and the op, numbered from the second on; what belongs to
// no layer yet has none. What the step returns stays.
// CHECK-LABEL: func.func @step(
// CHECK: %[[H:.*]] = train.matmul
// CHECK-NEXT: %[[A:.*]] = train.relu %[[H]]
// CHECK-NEXT: %[[T:.*]] = train.transpose %[[A]]
// CHECK-NEXT: %[[B:.*]] = train.relu %[[T]]
// CHECK-NEXT: %[[D:.*]] = zero.transfer %[[A]] from device to host : (tensor<2x4xf32>)
// CHECK-NEXT: %[[L:.*]] = train.reduce_sum %[[B]]
// CHECK-NEXT: %[[U:.*]] = zero.transfer %[[D]] from host to device : (tensor<2x4xf32>)
// CHECK-NEXT: %[[V:.*]] = train.transpose %[[U]]
// CHECK-NEXT: train.relu_grad %[[B]], %[[V]]
// CHECK-NEXT: train.reshape
// CHECK-NEXT: train.relu_grad {{.*}}, %[[U]]
// DISK-LABEL: func.func @step(
// DISK: %[[A:.*]] = train.relu
// DISK: %[[B:.*]] = train.relu
// DISK-NEXT: %[[AH:.*]] = zero.transfer %[[A]] from device to host
// DISK-NEXT: zero.transfer %[[AH]] from host to disk
// DISK-NEXT: train.reduce_sum %[[B]]
// DISK-NEXT: %[[BH:.*]] = zero.transfer %[[B]] from device to host
// DISK-NEXT: %[[BD:.*]] = zero.transfer %[[BH]] from host to disk
// DISK-NEXT: %[[AU:.*]] = zero.transfer %{{.*}} from disk to host
// DISK-NEXT: zero.transfer %[[AU]] from host to device
module attributes {zero.stage = 0 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : tensor<4x4xf32> unit("a")
  func.func @step(%x: tensor<2x4xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) -> (tensor<f32> {zero.output = "loss", zero.across = "mean"}) {
    %w = zero.read @w : tensor<4x4xf32>
    %h = train.matmul %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %a = train.relu %h : tensor<2x4xf32>
    %t = train.transpose %a [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
    %b = train.relu %t : tensor<4x2xf32>
    %loss = train.reduce_sum %b axes [0, 1] : (tensor<4x2xf32>) -> tensor<f32>
    %db = train.relu_grad %b, %t : tensor<4x2xf32>
    %dt = train.reshape %db : tensor<4x2xf32> to tensor<2x4xf32>
    %dh = train.relu_grad %dt, %a : tensor<2x4xf32>
    %dw = train.matmul %x, %dh {transpose_a} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    %g = zero.all_reduce %dw average on @dp : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %n = train.sgd %w, %g, %lr : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
    zero.assign @w, %n : tensor<4x4xf32>
    return %loss : tensor<f32>
  }
}
