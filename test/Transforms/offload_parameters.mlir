// Parameters in host memory: they come up for each use and are gone after it.
// RUN: zero-opt %s --split-input-file --zero-offload=rules=parameters=host --zero-verify | FileCheck %s

// Stage 3: up before each gather, a bucket at a time, frozen ones too. The
// update on the device takes what it needs of them up, and what it computes
// goes down.
// CHECK: zero.param @w : !zero.sharded<8xf32, @dp, dim = 0, mem = host> unit("a")
// CHECK: zero.param @v : !zero.sharded<8xf32, @dp, dim = 0, mem = host> unit("a") frozen
// CHECK-LABEL: func.func @step(
// CHECK: %[[W:.*]] = zero.read @w
// CHECK-NEXT: %[[V:.*]] = zero.read @v
// CHECK-NEXT: %[[UP:.*]]:2 = zero.transfer %[[W]], %[[V]] from host to device
// CHECK-NEXT: zero.all_gather %[[UP]]#0, %[[UP]]#1 on @dp
// CHECK: %[[AGAIN:.*]] = zero.transfer %[[V]] from host to device
// CHECK-NEXT: zero.all_gather %[[AGAIN]]
// CHECK: %[[OWN:.*]] = zero.transfer %[[W]] from host to device
// CHECK-NEXT: %[[L:.*]] = zero.local %[[OWN]] on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<2xf32>
// CHECK-NEXT: %[[N:.*]] = train.sgd %[[L]]
// CHECK-NEXT: %[[DOWN:.*]] = zero.transfer %[[N]] from device to host : (tensor<2xf32>)
// CHECK-NEXT: zero.assign @w, %[[DOWN]]
module attributes {zero.stage = 3 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : !zero.sharded<8xf32, @dp, dim = 0> unit("a")
  zero.param @v : !zero.sharded<8xf32, @dp, dim = 0> unit("a") frozen
  func.func @step(%x: tensor<8xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %w = zero.read @w : !zero.sharded<8xf32, @dp, dim = 0>
    %v = zero.read @v : !zero.sharded<8xf32, @dp, dim = 0>
    %f:2 = zero.all_gather %w, %v on @dp : (!zero.sharded<8xf32, @dp, dim = 0>, !zero.sharded<8xf32, @dp, dim = 0>) -> (tensor<8xf32>, tensor<8xf32>)
    %y = train.mul %x, %f#0 : tensor<8xf32>
    %z = train.mul %y, %f#1 : tensor<8xf32>
    zero.release %f#0, %f#1 : tensor<8xf32>, tensor<8xf32>
    %b = zero.all_gather %v on @dp : (!zero.sharded<8xf32, @dp, dim = 0>) -> tensor<8xf32>
    %dw = train.mul %z, %b : tensor<8xf32>
    zero.release %b : tensor<8xf32>
    %g = zero.reduce_scatter %dw average on @dp : (tensor<8xf32>) -> tensor<2xf32>
    %l = zero.local %w on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<2xf32>
    %n = train.sgd %l, %g, %lr : (tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    zero.assign @w, %n : tensor<2xf32>
    return
  }
}

// -----

// Stages 0 to 2 keep whole parameters: up before the first use in forward and
// again before that in backward, a layer at a time; once updated and gathered,
// down whole. An update takes its rows only. A tied one is one.
// CHECK: zero.param @w : !zero.sharded<8x8xf32, @dp, axes = [], dim = 0, mem = host> tied("head")
// CHECK-LABEL: func.func @step(
// CHECK: %[[R:.*]] = zero.read @w
// CHECK-NEXT: %[[WHOLE:.*]] = zero.local %[[R]] on @dp axes []
// CHECK-NEXT: %[[UP:.*]] = zero.transfer %[[R]] from host to device
// CHECK-NEXT: %[[F:.*]] = zero.local %[[UP]] on @dp axes []
// CHECK-NEXT: %[[Y:.*]] = train.matmul %arg0, %[[F]]
// CHECK-NEXT: %[[Z:.*]] = train.matmul %[[Y]], %[[F]]
// CHECK: %[[AGAIN:.*]] = zero.transfer %[[R]] from host to device
// CHECK-NEXT: %[[B:.*]] = zero.local %[[AGAIN]] on @dp axes []
// CHECK-NEXT: train.matmul %{{.*}}, %[[B]] {transpose_b}
// CHECK: %[[ROWS:.*]] = zero.local %[[WHOLE]] on @dp : tensor<8x8xf32> -> tensor<2x8xf32>
// CHECK-NEXT: %[[OWN:.*]] = zero.transfer %[[ROWS]] from host to device : (tensor<2x8xf32>)
// CHECK-NEXT: train.sgd %[[OWN]]
// CHECK: %[[NEW:.*]] = zero.all_gather
// CHECK-NEXT: %[[DOWN:.*]] = zero.transfer %[[NEW]] from device to host : (tensor<8x8xf32>)
// CHECK-NEXT: zero.assign @w, %[[DOWN]]
module attributes {zero.stage = 1 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : tensor<8x8xf32> tied("head")
  func.func @step(%x: tensor<8x8xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) -> (tensor<8x8xf32> {zero.output = "z"}) {
    %w = zero.read @w : tensor<8x8xf32>
    %y = train.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %z = train.matmul %y, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %dw = train.matmul %y, %w {transpose_b} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %g = zero.reduce_scatter %dw average on @dp : (tensor<8x8xf32>) -> tensor<2x8xf32>
    %l = zero.local %w on @dp : tensor<8x8xf32> -> tensor<2x8xf32>
    %n = train.sgd %l, %g, %lr : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
    %f = zero.all_gather %n on @dp : (tensor<2x8xf32>) -> tensor<8x8xf32>
    zero.assign @w, %f : tensor<8x8xf32>
    return %z : tensor<8x8xf32>
  }
}
