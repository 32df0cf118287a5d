// Gradients in host memory: accumulators are added to there, reduced gradients
// kept there until something reads them.
// RUN: zero-opt %s --split-input-file --zero-offload=rules=gradients=host --zero-verify | FileCheck %s
// RUN: zero-opt %s --split-input-file --zero-offload=rules=gradients=host,optimizer=host --zero-verify | FileCheck %s --check-prefix=BOTH
// RUN: zero-opt %s --split-input-file --zero-offload=rules=gradients=disk --zero-verify | FileCheck %s --check-prefix=DISK

// Down after the reduction, up before the update. The norm is taken where the
// gradients are, and only its sum comes up. Where the update is on the host it
// takes them there.
// CHECK-LABEL: func.func @step(
// CHECK-NEXT: %[[G:.*]] = zero.reduce_scatter
// CHECK-NEXT: %[[H:.*]] = zero.transfer %[[G]] from device to host
// CHECK-NEXT: %[[S:.*]] = zero.on_host (%[[A:.*]] = %[[H]]) : (tensor<2xf32>) -> tensor<f64> {
// CHECK-NEXT: train.sum_squares %[[A]]
// CHECK: }
// CHECK-NEXT: %[[U:.*]] = zero.transfer %[[S]] from host to device : (tensor<f64>)
// CHECK-NEXT: zero.all_reduce %[[U]]
// CHECK: %[[B:.*]] = zero.transfer %[[H]] from host to device
// CHECK-NEXT: train.sgd %{{.*}}, %[[B]]
// BOTH-LABEL: func.func @step(
// BOTH: %[[G:.*]] = zero.reduce_scatter
// BOTH-NEXT: %[[H:.*]] = zero.transfer %[[G]] from device to host : (tensor<2xf32>)
// BOTH: zero.on_host ({{.*}} = %[[H]]) : (tensor<2xf32>) -> tensor<f64>
// BOTH: zero.on_host ({{.*}} = %[[H]]
// BOTH: train.sgd
// DISK-LABEL: func.func @step(
// DISK: %[[G:.*]] = zero.reduce_scatter
// DISK-NEXT: %[[H:.*]] = zero.transfer %[[G]] from device to host
// DISK-NEXT: %[[D:.*]] = zero.transfer %[[H]] from host to disk
// DISK-NEXT: %[[B:.*]] = zero.transfer %[[D]] from disk to host
// DISK-NEXT: zero.on_host ({{.*}} = %[[B]])
module attributes {zero.stage = 3 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : !zero.sharded<8xf32, @dp, dim = 0>
  zero.state @w.m of @w : !zero.sharded<8xf32, @dp, dim = 0> zeros
  func.func @step(%dw: tensor<8xf32> {zero.input = "dw"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %g = zero.reduce_scatter %dw average on @dp : (tensor<8xf32>) -> tensor<2xf32>
    %s = train.sum_squares %g : (tensor<2xf32>) -> tensor<f64>
    %t = zero.all_reduce %s on @dp : (tensor<f64>) -> tensor<f64>
    %f, %norm, %over = train.gradient_factor %t {max_norm = 1.000000e+00 : f64} : (tensor<f64>) -> (tensor<f32>, tensor<f64>, tensor<i1>)
    %w = zero.read @w : !zero.sharded<8xf32, @dp, dim = 0>
    %l = zero.local %w on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<2xf32>
    %m = zero.read @w.m : !zero.sharded<8xf32, @dp, dim = 0>
    %ml = zero.local %m on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<2xf32>
    %n, %mn = train.sgd %l, %g, %ml, %lr scale %f {momentum = 0.9 : f64} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>)
    zero.assign @w, %n : tensor<2xf32>
    zero.assign @w.m, %mn : tensor<2xf32>
    return
  }
}

// -----

// Micro-batches: a layer's gradients go down as they are, before they are made
// wider, and are added in one zero.on_host. The last sum comes up for an update
// on the device, and stays for one on the host; the layer is updated as one.
// Zeros are filled in where the accumulator is, and written to a disk.
// CHECK: zero.state @w.grad of @w : !zero.sharded<8xf32, @dp, axes = [], dim = 0, mem = host> zeros accumulator
// CHECK-LABEL: func.func @accumulate(
// CHECK: %[[DW:.*]] = train.mul
// CHECK-NEXT: %[[DB:.*]] = train.mul
// CHECK: %[[H:.*]]:2 = zero.transfer %[[DW]], %[[DB]] from device to host : (tensor<8xbf16>, tensor<8xbf16>)
// CHECK: %[[S:.*]]:2 = zero.on_host ({{.*}} = %[[H]]#0, {{.*}} = %[[H]]#1, {{.*}}) : (tensor<8xbf16>, tensor<8xbf16>, tensor<8xf32>, tensor<8xf32>)
// CHECK-NEXT: train.cast
// CHECK-NEXT: train.accumulate
// CHECK: }
// CHECK: zero.assign @w.grad, %[[S]]#0
// CHECK-NEXT: zero.assign @b.grad, %[[S]]#1
// CHECK-LABEL: func.func @step(
// CHECK: %[[S:.*]]:2 = zero.on_host
// CHECK: %[[UP:.*]]:2 = zero.transfer %[[S]]#0, %[[S]]#1 from host to device
// CHECK-NEXT: zero.all_reduce %[[UP]]#0, %[[UP]]#1 average
// CHECK: %[[ZERO:.*]] = arith.constant
// CHECK-NEXT: zero.assign @w.grad, %[[ZERO]]
// DISK-LABEL: func.func @accumulate(
// DISK: %[[S:.*]]:2 = zero.on_host
// DISK: %[[OUT:.*]] = zero.transfer %[[S]]#0 from host to disk
// DISK-NEXT: zero.assign @w.grad, %[[OUT]]
// DISK-LABEL: func.func @step(
// DISK: %[[Z:.*]]:2 = zero.on_host () : () -> (tensor<8xf32>, tensor<8xf32>) {
// DISK: %[[OUT:.*]] = zero.transfer %[[Z]]#0 from host to disk
// DISK-NEXT: zero.assign @w.grad, %[[OUT]]
module attributes {zero.stage = 0 : i64, zero.micro_batches = 3 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : tensor<8xf32> unit("a")
  zero.param @b : tensor<8xf32> unit("a")
  zero.state @w.m of @w : tensor<8xf32> zeros
  zero.state @w.grad of @w : tensor<8xf32> zeros accumulator
  zero.state @b.grad of @b : tensor<8xf32> zeros accumulator
  func.func @accumulate(%x: tensor<8xbf16> {zero.input = "x"}, %y: tensor<8xbf16> {zero.input = "y"}) {
    %seed = train.loss_seed {micro_batches = 3 : i64} : () -> tensor<f32>
    %half = train.cast %seed : tensor<f32> to tensor<bf16>
    %all = train.broadcast %half : tensor<bf16> to tensor<8xbf16>
    %dw = train.mul %x, %all : tensor<8xbf16>
    %db = train.mul %y, %all : tensor<8xbf16>
    %dw32 = train.cast %dw : tensor<8xbf16> to tensor<8xf32>
    %wa = zero.read @w.grad : tensor<8xf32>
    %ws = train.accumulate %wa, %dw32 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    zero.assign @w.grad, %ws : tensor<8xf32>
    %db32 = train.cast %db : tensor<8xbf16> to tensor<8xf32>
    %ba = zero.read @b.grad : tensor<8xf32>
    %bs = train.accumulate %ba, %db32 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    zero.assign @b.grad, %bs : tensor<8xf32>
    return
  }
  func.func @step(%x: tensor<8xbf16> {zero.input = "x"}, %y: tensor<8xbf16> {zero.input = "y"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %seed = train.loss_seed {micro_batches = 3 : i64} : () -> tensor<f32>
    %half = train.cast %seed : tensor<f32> to tensor<bf16>
    %all = train.broadcast %half : tensor<bf16> to tensor<8xbf16>
    %dw = train.mul %x, %all : tensor<8xbf16>
    %db = train.mul %y, %all : tensor<8xbf16>
    %w = zero.read @w : tensor<8xf32>
    %b = zero.read @b : tensor<8xf32>
    %dw32 = train.cast %dw : tensor<8xbf16> to tensor<8xf32>
    %wa = zero.read @w.grad : tensor<8xf32>
    %ws = train.accumulate %wa, %dw32 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %db32 = train.cast %db : tensor<8xbf16> to tensor<8xf32>
    %ba = zero.read @b.grad : tensor<8xf32>
    %bs = train.accumulate %ba, %db32 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %g:2 = zero.all_reduce %ws, %bs average on @dp : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    %m = zero.read @w.m : tensor<8xf32>
    %wn, %mn = train.sgd %w, %g#0, %m, %lr {momentum = 0.9 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
    %bn = train.sgd %b, %g#1, %lr : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    zero.assign @w, %wn : tensor<8xf32>
    zero.assign @w.m, %mn : tensor<8xf32>
    zero.assign @b, %bn : tensor<8xf32>
    %z = arith.constant dense<0.0> : tensor<8xf32>
    zero.assign @w.grad, %z : tensor<8xf32>
    zero.assign @b.grad, %z : tensor<8xf32>
    return
  }
}
