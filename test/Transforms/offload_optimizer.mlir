// State of the optimizer in host memory: the update runs there.
// RUN: zero-opt %s --split-input-file --zero-offload=rules=optimizer=host --zero-verify | FileCheck %s

// Mixed precision, stage 2: gradients go down in their two bytes as soon as
// they are reduced, one transfer a bucket; one zero.on_host updates both; new
// parameters come up in two bytes and are gathered as before. Scalars go down
// once.
// CHECK: zero.state @w.master of @w : !zero.sharded<10x4xf32, @dp, dim = 0, mem = host> zeros
// CHECK: zero.state @b.master of @b : !zero.sharded<10xf32, @dp, dim = 0, mem = host> zeros
// CHECK-LABEL: func.func @step(
// CHECK-NEXT: %[[LR:.*]] = zero.transfer %arg2 from device to host : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %[[G:.*]]:2 = zero.reduce_scatter
// CHECK-NEXT: %[[H:.*]]:2 = zero.transfer %[[G]]#0, %[[G]]#1 from device to host : (tensor<3x4xbf16>, tensor<3xbf16>)
// CHECK-NEXT: zero.read @w.master : !zero.sharded<10x4xf32, @dp, dim = 0, mem = host>
// CHECK-NEXT: %[[M:.*]] = zero.local
// CHECK-NEXT: zero.read @b.master
// CHECK-NEXT: %[[N:.*]] = zero.local
// CHECK-NEXT: %[[U:.*]]:4 = zero.on_host (%[[A:.*]] = %[[M]], %[[B:.*]] = %[[N]], %[[C:.*]] = %[[H]]#0, %[[D:.*]] = %[[H]]#1, %[[R:.*]] = %[[LR]])
// CHECK-SAME: -> (tensor<3x4xf32>, tensor<3x4xbf16>, tensor<3xf32>, tensor<3xbf16>) {
// CHECK-NEXT: %[[W:.*]] = train.sgd %[[A]], %[[C]], %[[R]]
// CHECK-NEXT: %[[W16:.*]] = train.cast %[[W]]
// CHECK-NEXT: %[[V:.*]] = train.sgd %[[B]], %[[D]], %[[R]]
// CHECK-NEXT: %[[V16:.*]] = train.cast %[[V]]
// CHECK-NEXT: zero.yield %[[W]], %[[W16]], %[[V]], %[[V16]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[P:.*]]:2 = zero.transfer %[[U]]#1, %[[U]]#3 from host to device : (tensor<3x4xbf16>, tensor<3xbf16>)
// CHECK-NEXT: zero.assign @w.master, %[[U]]#0
// CHECK-NEXT: zero.assign @b.master, %[[U]]#2
// CHECK-NEXT: zero.all_gather %[[P]]#0, %[[P]]#1 on @dp
module attributes {zero.stage = 2 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : tensor<10x4xbf16> unit("a")
  zero.param @b : tensor<10xbf16> unit("a")
  zero.state @w.master of @w : !zero.sharded<10x4xf32, @dp, dim = 0> zeros
  zero.state @b.master of @b : !zero.sharded<10xf32, @dp, dim = 0> zeros
  func.func @step(%dw: tensor<10x4xbf16> {zero.input = "dw"}, %db: tensor<10xbf16> {zero.input = "db"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %g:2 = zero.reduce_scatter %dw, %db average on @dp : (tensor<10x4xbf16>, tensor<10xbf16>) -> (tensor<3x4xbf16>, tensor<3xbf16>)
    %ws = zero.read @w.master : !zero.sharded<10x4xf32, @dp, dim = 0>
    %wl = zero.local %ws on @dp : !zero.sharded<10x4xf32, @dp, dim = 0> -> tensor<3x4xf32>
    %wn = train.sgd %wl, %g#0, %lr : (tensor<3x4xf32>, tensor<3x4xbf16>, tensor<f32>) -> tensor<3x4xf32>
    %w16 = train.cast %wn : tensor<3x4xf32> to tensor<3x4xbf16>
    zero.assign @w.master, %wn : tensor<3x4xf32>
    %bs = zero.read @b.master : !zero.sharded<10xf32, @dp, dim = 0>
    %bl = zero.local %bs on @dp : !zero.sharded<10xf32, @dp, dim = 0> -> tensor<3xf32>
    %bn = train.sgd %bl, %g#1, %lr : (tensor<3xf32>, tensor<3xbf16>, tensor<f32>) -> tensor<3xf32>
    %b16 = train.cast %bn : tensor<3xf32> to tensor<3xbf16>
    zero.assign @b.master, %bn : tensor<3xf32>
    %f:2 = zero.all_gather %w16, %b16 on @dp : (tensor<3x4xbf16>, tensor<3xbf16>) -> (tensor<10x4xbf16>, tensor<10xbf16>)
    zero.assign @w, %f#0 : tensor<10x4xbf16>
    zero.assign @b, %f#1 : tensor<10xbf16>
    return
  }
}

// -----

// Without a master the rank's part of the parameter goes down before. The norm
// is taken on the device; its factor goes down.
// CHECK-LABEL: func.func @step(
// CHECK: %[[L:.*]] = zero.local %{{.*}} on @dp : tensor<8xf32> -> tensor<2xf32>
// CHECK-NEXT: %[[PH:.*]] = zero.transfer %[[L]] from device to host : (tensor<2xf32>)
// CHECK-NEXT: %[[G:.*]] = zero.reduce_scatter
// CHECK-NEXT: %[[GH:.*]] = zero.transfer %[[G]] from device to host
// CHECK-NEXT: train.sum_squares %[[G]]
// CHECK-NEXT: zero.all_reduce
// CHECK-NEXT: %[[F:.*]], %{{.*}}, %{{.*}} = train.gradient_factor
// CHECK-NEXT: %[[FH:.*]] = zero.transfer %[[F]] from device to host : (tensor<f32>)
// CHECK: %[[U:.*]]:2 = zero.on_host ({{.*}} = %[[PH]], {{.*}} = %[[GH]], {{.*}} = %[[FH]])
// CHECK: train.sgd {{.*}} scale
// CHECK-NEXT: zero.yield
// CHECK-NEXT: }
// CHECK-NEXT: %[[N:.*]] = zero.transfer %[[U]]#1 from host to device : (tensor<2xf32>)
// CHECK-NEXT: zero.assign @w.m, %[[U]]#0
// CHECK-NEXT: zero.all_gather %[[N]]
module attributes {zero.stage = 2 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : tensor<8xf32>
  zero.state @w.m of @w : !zero.sharded<8xf32, @dp, dim = 0> zeros
  func.func @step(%dw: tensor<8xf32> {zero.input = "dw"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %w = zero.read @w : tensor<8xf32>
    %g = zero.reduce_scatter %dw average on @dp : (tensor<8xf32>) -> tensor<2xf32>
    %s = train.sum_squares %g : (tensor<2xf32>) -> tensor<f64>
    %t = zero.all_reduce %s on @dp : (tensor<f64>) -> tensor<f64>
    %f, %norm, %over = train.gradient_factor %t {max_norm = 1.000000e+00 : f64} : (tensor<f64>) -> (tensor<f32>, tensor<f64>, tensor<i1>)
    %ms = zero.read @w.m : !zero.sharded<8xf32, @dp, dim = 0>
    %ml = zero.local %ms on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<2xf32>
    %wl = zero.local %w on @dp : tensor<8xf32> -> tensor<2xf32>
    %wn, %mn = train.sgd %wl, %g, %ml, %lr scale %f {momentum = 0.9 : f64} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>)
    zero.assign @w.m, %mn : tensor<2xf32>
    %full = zero.all_gather %wn on @dp : (tensor<2xf32>) -> tensor<8xf32>
    zero.assign @w, %full : tensor<8xf32>
    return
  }
}

// -----

// An update in elementwise ops of any dialect is remade as it is, with its
// constants.
// CHECK-LABEL: func.func @step(
// CHECK: zero.on_host
// CHECK-NEXT: arith.constant dense<5.000000e-01>
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.subf
// CHECK-NEXT: zero.yield
// CHECK-NOT: arith
module attributes {zero.stage = 2 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : !zero.sharded<8xf32, @dp, dim = 0>
  zero.state @w.m of @w : !zero.sharded<8xf32, @dp, dim = 0> zeros
  func.func @step(%dw: tensor<8xf32> {zero.input = "dw"}) {
    %g = zero.reduce_scatter %dw average on @dp : (tensor<8xf32>) -> tensor<2xf32>
    %half = arith.constant dense<5.000000e-01> : tensor<2xf32>
    %ms = zero.read @w.m : !zero.sharded<8xf32, @dp, dim = 0>
    %ml = zero.local %ms on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<2xf32>
    %w = zero.read @w : !zero.sharded<8xf32, @dp, dim = 0>
    %wl = zero.local %w on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<2xf32>
    %old = arith.mulf %ml, %half : tensor<2xf32>
    %mn = arith.addf %old, %g : tensor<2xf32>
    %wn = arith.subf %wl, %mn : tensor<2xf32>
    zero.assign @w.m, %mn : tensor<2xf32>
    zero.assign @w, %wn : tensor<2xf32>
    return
  }
}

// -----

// Stage 0: a whole state in host memory is a shard cut over no axis, viewed
// whole. A tensor of rank 0 stays with its state on the device.
// CHECK: zero.state @w.m of @w : !zero.sharded<8xf32, @dp, axes = [], dim = 0, mem = host> zeros
// CHECK-NEXT: zero.state @scale.m of @scale : tensor<f32> zeros
// CHECK-LABEL: func.func @step(
// CHECK: zero.local %{{.*}} on @dp axes [] : !zero.sharded<8xf32, @dp, axes = [], dim = 0, mem = host> -> tensor<8xf32>
// CHECK-NEXT: zero.on_host
// CHECK: train.sgd {{.*}} (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>)
// CHECK: zero.assign @w.m
// CHECK-NEXT: zero.assign @w,
// CHECK: %{{.*}} = train.sgd {{.*}} (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>)
module attributes {zero.stage = 0 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : tensor<8xf32>
  zero.param @scale : tensor<f32>
  zero.state @w.m of @w : tensor<8xf32> zeros
  zero.state @scale.m of @scale : tensor<f32> zeros
  func.func @step(%dw: tensor<8xf32> {zero.input = "dw"}, %ds: tensor<f32> {zero.input = "ds"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %w = zero.read @w : tensor<8xf32>
    %s = zero.read @scale : tensor<f32>
    %g:2 = zero.all_reduce %dw, %ds average on @dp : (tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<f32>)
    %m = zero.read @w.m : tensor<8xf32>
    %wn, %mn = train.sgd %w, %g#0, %m, %lr {momentum = 0.9 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
    zero.assign @w.m, %mn : tensor<8xf32>
    zero.assign @w, %wn : tensor<8xf32>
    %sm = zero.read @scale.m : tensor<f32>
    %sn, %smn = train.sgd %s, %g#1, %sm, %lr {momentum = 0.9 : f64} : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    zero.assign @scale.m, %smn : tensor<f32>
    zero.assign @scale, %sn : tensor<f32>
    return
  }
}

// -----

// Buckets are updated in the order in which they are reduced, and each as soon
// as its gradients are there: the backward pass goes on.
// CHECK-LABEL: func.func @step(
// CHECK: %[[B:.*]] = zero.all_reduce %arg1
// CHECK: %[[BH:.*]] = zero.transfer %[[B]] from device to host
// CHECK: zero.on_host ({{.*}} = %[[BH]]
// CHECK: zero.all_reduce %arg0
// CHECK: zero.on_host
// CHECK: zero.assign @a,
// CHECK: zero.assign @b,
module attributes {zero.stage = 3 : i64} {
  shard.grid @dp(shape = 1)
  zero.param @a : !zero.sharded<8xf32, @dp, dim = 0>
  zero.param @b : !zero.sharded<8xf32, @dp, dim = 0>
  zero.state @a.m of @a : !zero.sharded<8xf32, @dp, dim = 0> zeros
  zero.state @b.m of @b : !zero.sharded<8xf32, @dp, dim = 0> zeros
  func.func @step(%da: tensor<8xf32> {zero.input = "da"}, %db: tensor<8xf32> {zero.input = "db"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %gb = zero.all_reduce %db average on @dp : (tensor<8xf32>) -> tensor<8xf32>
    %ga = zero.all_reduce %da average on @dp : (tensor<8xf32>) -> tensor<8xf32>
    %a = zero.read @a : !zero.sharded<8xf32, @dp, dim = 0>
    %al = zero.local %a on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<8xf32>
    %am = zero.read @a.m : !zero.sharded<8xf32, @dp, dim = 0>
    %aml = zero.local %am on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<8xf32>
    %an, %amn = train.sgd %al, %ga, %aml, %lr {momentum = 0.9 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
    zero.assign @a, %an : tensor<8xf32>
    zero.assign @a.m, %amn : tensor<8xf32>
    %b = zero.read @b : !zero.sharded<8xf32, @dp, dim = 0>
    %bl = zero.local %b on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<8xf32>
    %bm = zero.read @b.m : !zero.sharded<8xf32, @dp, dim = 0>
    %bml = zero.local %bm on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<8xf32>
    %bn, %bmn = train.sgd %bl, %gb, %bml, %lr {momentum = 0.9 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
    zero.assign @b, %bn : tensor<8xf32>
    zero.assign @b.m, %bmn : tensor<8xf32>
    return
  }
}
