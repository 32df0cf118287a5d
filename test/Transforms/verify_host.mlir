// What zero-verify lets pass where state lives outside device memory: nothing is
// reported, nothing changes.
// RUN: zero-opt %s --split-input-file --zero-verify --verify-diagnostics | FileCheck %s

// An update in mixed precision: the master on the host and a moment on disk. The
// gradient that is reduced once goes down, the parameter that is cast goes up.
// CHECK: module attributes {zero.stage = 2 : i64}
module attributes {zero.stage = 2 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : tensor<10xbf16>
  zero.state @w.master of @w : !zero.sharded<10xf32, @dp, dim = 0, mem = host> zeros
  zero.state @w.momentum of @w : !zero.sharded<10xf32, @dp, dim = 0, mem = disk> zeros
  // CHECK-LABEL: func.func @step
  func.func @step(%x: tensor<10xbf16> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %g = zero.reduce_scatter %x average on @dp : (tensor<10xbf16>) -> tensor<3xbf16>
    %n = train.sum_squares %g : (tensor<3xbf16>) -> tensor<f64>
    %total = zero.all_reduce %n on @dp : (tensor<f64>) -> tensor<f64>
    %clip = train.cast %total : tensor<f64> to tensor<f32>
    %f = zero.transfer_start %g, %clip, %lr from device to host : (tensor<3xbf16>, tensor<f32>, tensor<f32>) -> !zero.future<tensor<3xbf16>, tensor<f32>, tensor<f32>>
    %p = zero.read @w.master : !zero.sharded<10xf32, @dp, dim = 0, mem = host>
    %pl = zero.local %p on @dp : !zero.sharded<10xf32, @dp, dim = 0, mem = host> -> tensor<3xf32>
    %md = zero.read @w.momentum : !zero.sharded<10xf32, @dp, dim = 0, mem = disk>
    %mh = zero.transfer %md from disk to host : (!zero.sharded<10xf32, @dp, dim = 0, mem = disk>) -> !zero.sharded<10xf32, @dp, dim = 0, mem = host>
    %ml = zero.local %mh on @dp : !zero.sharded<10xf32, @dp, dim = 0, mem = host> -> tensor<3xf32>
    %gh, %ch, %lh = zero.wait %f : !zero.future<tensor<3xbf16>, tensor<f32>, tensor<f32>>
    %u = zero.on_host_start (%a = %pl, %b = %gh, %m = %ml, %c = %ch, %r = %lh)
      : (tensor<3xf32>, tensor<3xbf16>, tensor<3xf32>, tensor<f32>, tensor<f32>) -> !zero.future<tensor<3xf32>, tensor<3xf32>, tensor<3xbf16>> {
      %up = train.cast %b : tensor<3xbf16> to tensor<3xf32>
      %d = train.div %up, %c : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
      %pn, %mn = train.sgd %a, %d, %m, %r {momentum = 0.9 : f64} : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
      %half = train.cast %pn : tensor<3xf32> to tensor<3xbf16>
      zero.yield %pn, %mn, %half : tensor<3xf32>, tensor<3xf32>, tensor<3xbf16>
    }
    %pn, %mn, %half = zero.wait %u : !zero.future<tensor<3xf32>, tensor<3xf32>, tensor<3xbf16>>
    zero.assign @w.master, %pn : tensor<3xf32>
    %back = zero.transfer %mn from host to disk : (tensor<3xf32>) -> tensor<3xf32>
    zero.assign @w.momentum, %back : tensor<3xf32>
    %hd = zero.transfer %half from host to device : (tensor<3xbf16>) -> tensor<3xbf16>
    %w = zero.all_gather %hd on @dp : (tensor<3xbf16>) -> tensor<10xbf16>
    zero.assign @w, %w : tensor<10xbf16>
    return
  }
}

// -----

// A parameter that is whole and on the host, and a gradient summed up there over
// micro-batches: its seed, its sum and its reduction are found behind the copies.
// Zeros are filled in where they go.
// CHECK: module attributes
module attributes {zero.micro_batches = 2 : i64, zero.stage = 0 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host>
  zero.state @w.grad of @w : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host> zeros accumulator
  // CHECK-LABEL: func.func @accumulate
  func.func @accumulate(%x: tensor<4xf32> {zero.input = "x"}) {
    %seed = train.loss_seed {micro_batches = 2 : i64} : () -> tensor<f32>
    %g = train.mul %x, %seed : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %gh = zero.transfer %g from device to host : (tensor<4xf32>) -> tensor<4xf32>
    %a = zero.read @w.grad : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host>
    %al = zero.local %a on @dp axes [] : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host> -> tensor<4xf32>
    %s = zero.on_host (%l = %al, %r = %gh) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
      %sum = train.accumulate %l, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      zero.yield %sum : tensor<4xf32>
    }
    zero.assign @w.grad, %s : tensor<4xf32>
    return
  }
  // CHECK-LABEL: func.func @step
  func.func @step(%x: tensor<4xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %p = zero.read @w : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host>
    %pl = zero.local %p on @dp axes [] : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host> -> tensor<4xf32>
    %w = zero.transfer %pl from host to device : (tensor<4xf32>) -> tensor<4xf32>
    %y = train.mul %x, %w : tensor<4xf32>
    %seed = train.loss_seed {micro_batches = 2 : i64} : () -> tensor<f32>
    %g = train.mul %y, %seed : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %gh = zero.transfer %g from device to host : (tensor<4xf32>) -> tensor<4xf32>
    %a = zero.read @w.grad : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host>
    %al = zero.local %a on @dp axes [] : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host> -> tensor<4xf32>
    %s = zero.on_host (%l = %al, %r = %gh) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
      %sum = train.accumulate %l, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      zero.yield %sum : tensor<4xf32>
    }
    %sd = zero.transfer %s from host to device : (tensor<4xf32>) -> tensor<4xf32>
    %r = zero.all_reduce %sd average on @dp : (tensor<4xf32>) -> tensor<4xf32>
    %rh, %lh = zero.transfer %r, %lr from device to host : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
    %new = zero.on_host (%b = %pl, %d = %rh, %e = %lh) : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32> {
      %n = train.sgd %b, %d, %e : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      zero.yield %n : tensor<4xf32>
    }
    zero.assign @w, %new : tensor<4xf32>
    %z = arith.constant dense<0.0> : tensor<4xf32>
    zero.assign @w.grad, %z : tensor<4xf32>
    return
  }
}
