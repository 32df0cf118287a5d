// Transfers are copies between arenas, one a tensor, on the stream of their
// direction; what the host computes are launches on the stream "host". Each
// waits for what it needs, and nothing is copied that can lie where it is.
// RUN: zero-opt %s -split-input-file --pass-pipeline='builtin.module(plan-lower,plan.program(cse,plan-allocate),zero-verify)' 2>/dev/null | FileCheck %s

// Mixed precision at stage 2: gradients go down while compute goes on, are used
// in place by the update, which is in place itself, and the new parameters go up
// into the parameters.
// CHECK-LABEL: plan.program @step ranks(2)
// CHECK-DAG: %[[DEV:.*]] = plan.arena device bytes({{[0-9]+}})
// CHECK-DAG: %[[HOST:.*]] = plan.arena host bytes({{[0-9]+}})
// CHECK-DAG: %[[W:.*]] = plan.buffer %[[DEV]]{{.*}} parameter padding(8) : memref<3x4xbf16>
// CHECK-DAG: %[[MASTER:.*]] = plan.buffer %[[HOST]]{{.*}} state padding(16) : memref<3x4xf32>
// CHECK-DAG: plan.parameter "w.master" %[[MASTER]] state of("w") shape [5, 4]
// CHECK-DAG: %[[G:.*]] = plan.buffer %[[DEV]]{{.*}} gradient padding(8) : memref<3x4xbf16>
// CHECK-DAG: %[[GH:.*]] = plan.buffer %[[HOST]]{{.*}} gradient padding(8) : memref<3x4xbf16>
// CHECK-DAG: %[[LRH:.*]] = plan.buffer %[[HOST]]{{.*}} activation : memref<f32>
// CHECK-DAG: %[[NEW:.*]] = plan.buffer %[[HOST]]{{.*}} activation padding(8) : memref<3x4xbf16>
// CHECK: plan.reduce_scatter %{{.*}} -> %[[G]] {{.*}}label("w") signal(%[[RS:.*]]) :
// CHECK-NEXT: plan.copy %[[G]] -> %[[GH]] label("gradient of w") stream("to_host") wait(%[[RS]]) :
// CHECK-NEXT: plan.copy %{{.*}} -> %[[LRH]] stream("to_host") signal(%[[DOWN:.*]]) : memref<f32>
// CHECK-NEXT: plan.call @matmul({{.*}}) writes [2] signal(%[[BUSY:.*]]) :
// CHECK-NEXT: plan.launch @update(%[[MASTER]], %[[GH]], %[[LRH]], %[[NEW]]) writes [0, 3] host stream("host") wait(%[[BUSY]], %[[DOWN]]) signal(%[[DONE:.*]]) :
// CHECK-NEXT: plan.copy %[[NEW]] -> %[[W]] label("w") stream("to_device") wait(%[[DONE]]) signal(%[[UP:.*]]) :
// CHECK-NEXT: plan.all_gather %[[W]] -> {{.*}}wait(%[[UP]])
module attributes {zero.stage = 2 : i64} {
  shard.grid @dp(shape = 2)
  zero.param @w : !zero.sharded<5x4xbf16, @dp, dim = 0>
  zero.state @w.master of @w : !zero.sharded<5x4xf32, @dp, dim = 0, mem = host>
  func.func private @update(%p: tensor<3x4xf32>, %g: tensor<3x4xbf16>, %lr: tensor<f32>)
      -> (tensor<3x4xf32>, tensor<3x4xbf16>) attributes {plan.host, plan.kernel, plan.tied = array<i64: 0, -1>}
  func.func @step(%dw: tensor<5x4xbf16> {zero.input = "g"}, %x: tensor<4x4xf32> {zero.input = "x"},
                  %lr: tensor<f32> {zero.hyper = "lr"}) -> (tensor<4x4xf32> {zero.output = "y"}, tensor<5x4xbf16> {zero.output = "w"}) {
    %g = zero.reduce_scatter %dw average on @dp : (tensor<5x4xbf16>) -> tensor<3x4xbf16>
    %f0 = zero.transfer_start %g, %lr from device to host
      : (tensor<3x4xbf16>, tensor<f32>) -> !zero.future<tensor<3x4xbf16>, tensor<f32>>
    %y = train.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %gh, %lrh = zero.wait %f0 : !zero.future<tensor<3x4xbf16>, tensor<f32>>
    %s = zero.read @w.master : !zero.sharded<5x4xf32, @dp, dim = 0, mem = host>
    %m = zero.local %s on @dp : !zero.sharded<5x4xf32, @dp, dim = 0, mem = host> -> tensor<3x4xf32>
    %f1 = zero.on_host_start (%p = %m, %d = %gh, %r = %lrh)
      : (tensor<3x4xf32>, tensor<3x4xbf16>, tensor<f32>) -> !zero.future<tensor<3x4xf32>, tensor<3x4xbf16>> {
      %n:2 = plan.dispatch @update(%p, %d, %r) tied [0, -1]
        : (tensor<3x4xf32>, tensor<3x4xbf16>, tensor<f32>) -> (tensor<3x4xf32>, tensor<3x4xbf16>)
      zero.yield %n#0, %n#1 : tensor<3x4xf32>, tensor<3x4xbf16>
    }
    %n, %n16 = zero.wait %f1 : !zero.future<tensor<3x4xf32>, tensor<3x4xbf16>>
    zero.assign @w.master, %n : tensor<3x4xf32>
    %f2 = zero.transfer_start %n16 from host to device : (tensor<3x4xbf16>) -> !zero.future<tensor<3x4xbf16>>
    %up = zero.wait %f2 : !zero.future<tensor<3x4xbf16>>
    zero.assign @w, %up : tensor<3x4xbf16>
    %whole = zero.all_gather %up on @dp : (tensor<3x4xbf16>) -> tensor<5x4xbf16>
    return %y, %whole : tensor<4x4xf32>, tensor<5x4xbf16>
  }
}

// -----

// State on disk: read into a window in host memory, updated there, written
// back to its place. Disk and window are whole blocks. What is not scheduled is
// awaited at once.
// CHECK-LABEL: plan.program @step ranks(1)
// CHECK-DAG: %[[HOST:.*]] = plan.arena host bytes([[HB:[0-9]+]]) lower_bound([[HB]])
// CHECK-DAG: %[[DISK:.*]] = plan.arena disk bytes(4096) lower_bound(4096)
// CHECK-DAG: %[[M:.*]] = plan.buffer %[[DISK]][0] state capacity(4096) padding(4080) : memref<4xf32>
// CHECK-DAG: plan.parameter "w.m" %[[M]] state of("w") : memref<4xf32>
// CHECK-DAG: %[[WIN:.*]] = plan.buffer %[[HOST]][{{.*}}] state capacity(4096) padding(4080) : memref<4xf32>
// CHECK: plan.copy %[[M]] -> %[[WIN]] label("w.m") stream("disk_read") signal(%[[READ:.*]]) :
// CHECK-NEXT: plan.copy %[[W:.*]] -> %[[P:.*]] label("w") stream("to_host") wait(%[[READ]]) signal(%[[DOWN:.*]]) :
// CHECK-NEXT: plan.launch @update(%[[P]], %[[WIN]]) writes [0, 1] host stream("host") wait(%[[DOWN]]) signal(%[[DONE:.*]]) :
// CHECK-NEXT: plan.copy %[[WIN]] -> %[[M]] label("w.m") stream("disk_write") wait(%[[DONE]]) signal(%[[WRITTEN:.*]]) :
// CHECK-NEXT: plan.copy %[[P]] -> %[[W]] label("w") stream("to_device") wait(%[[WRITTEN]]) :
// CHECK-NEXT: }
module {
  shard.grid @dp(shape = 1)
  zero.param @w : tensor<4xf32>
  zero.state @w.m of @w : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = disk>
  func.func private @update(%p: tensor<4xf32>, %m: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    attributes {plan.host, plan.kernel, plan.tied = array<i64: 0, 1>}
  func.func @step() {
    %s = zero.read @w.m : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = disk>
    %sh = zero.transfer %s from disk to host
      : (!zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = disk>) -> !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host>
    %m = zero.local %sh on @dp axes [] : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host> -> tensor<4xf32>
    %w = zero.read @w : tensor<4xf32>
    %wh = zero.transfer %w from device to host : (tensor<4xf32>) -> tensor<4xf32>
    %wn, %mn = zero.on_host (%p = %wh, %v = %m) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %n:2 = plan.dispatch @update(%p, %v) tied [0, 1] : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
      zero.yield %n#0, %n#1 : tensor<4xf32>, tensor<4xf32>
    }
    %md = zero.transfer %mn from host to disk : (tensor<4xf32>) -> tensor<4xf32>
    zero.assign @w.m, %md : tensor<4xf32>
    %wd = zero.transfer %wn from host to device : (tensor<4xf32>) -> tensor<4xf32>
    zero.assign @w, %wd : tensor<4xf32>
    return
  }
}

// -----

// Parameters in host memory come before their use and are gone after it; a sum
// of micro-batches in host memory is emptied there.
// CHECK-LABEL: plan.program @step ranks(2)
// CHECK-DAG: %[[HOST:.*]] = plan.arena host
// CHECK-DAG: %[[W:.*]] = plan.buffer %[[HOST]]{{.*}} parameter {{.*}}: memref<3x4xf32>
// CHECK-DAG: %[[ACC:.*]] = plan.buffer %[[HOST]]{{.*}} gradient {{.*}}: memref<3x4xf32>
// CHECK: plan.copy %[[W]] -> %[[S:.*]] label("w") stream("to_device") signal(%[[IN:.*]]) :
// CHECK-NEXT: plan.all_gather %[[S]] -> {{.*}} wait(%[[IN]])
// CHECK: plan.copy %{{.*}} -> %[[GH:.*]] label("gradient of w") stream("to_host")
// CHECK-NEXT: plan.launch @add(%[[ACC]], %[[GH]]) writes [0] host stream("host")
// CHECK-NEXT: plan.launch @sgd(%[[W]], %[[ACC]]) writes [0] host stream("host")
// CHECK-NEXT: plan.fill %[[ACC]] stream("host") :
// CHECK-NEXT: plan.output
module attributes {zero.stage = 3 : i64} {
  shard.grid @dp(shape = 2)
  zero.param @w : !zero.sharded<5x4xf32, @dp, dim = 0, mem = host>
  zero.state @w.sum of @w : !zero.sharded<5x4xf32, @dp, dim = 0, mem = host> zeros accumulator
  func.func private @add(%p: tensor<3x4xf32>, %g: tensor<3x4xf32>) -> tensor<3x4xf32>
    attributes {plan.host, plan.kernel, plan.tied = array<i64: 0>}
  func.func private @sgd(%p: tensor<3x4xf32>, %g: tensor<3x4xf32>) -> tensor<3x4xf32>
    attributes {plan.host, plan.kernel, plan.tied = array<i64: 0>}
  func.func @step(%x: tensor<4x5xf32> {zero.input = "x"}) -> (tensor<4x4xf32> {zero.output = "y"}) {
    %zero = arith.constant dense<0.0> : tensor<3x4xf32>
    %s = zero.read @w : !zero.sharded<5x4xf32, @dp, dim = 0, mem = host>
    %d = zero.transfer %s from host to device
      : (!zero.sharded<5x4xf32, @dp, dim = 0, mem = host>) -> !zero.sharded<5x4xf32, @dp, dim = 0>
    %w = zero.all_gather %d on @dp : (!zero.sharded<5x4xf32, @dp, dim = 0>) -> tensor<5x4xf32>
    %y = train.matmul %x, %w : (tensor<4x5xf32>, tensor<5x4xf32>) -> tensor<4x4xf32>
    zero.release %w : tensor<5x4xf32>
    %dw = train.matmul %x, %y {transpose_a} : (tensor<4x5xf32>, tensor<4x4xf32>) -> tensor<5x4xf32>
    %g = zero.reduce_scatter %dw average on @dp : (tensor<5x4xf32>) -> tensor<3x4xf32>
    %gh = zero.transfer %g from device to host : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %sum = zero.read @w.sum : !zero.sharded<5x4xf32, @dp, dim = 0, mem = host>
    %acc = zero.local %sum on @dp : !zero.sharded<5x4xf32, @dp, dim = 0, mem = host> -> tensor<3x4xf32>
    %p = zero.local %s on @dp : !zero.sharded<5x4xf32, @dp, dim = 0, mem = host> -> tensor<3x4xf32>
    %new = zero.on_host (%a = %acc, %b = %gh, %q = %p) : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> (tensor<3x4xf32>) {
      %t = plan.dispatch @add(%a, %b) tied [0] : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
      %n = plan.dispatch @sgd(%q, %t) tied [0] : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
      zero.yield %n : tensor<3x4xf32>
    }
    zero.assign @w, %new : tensor<3x4xf32>
    zero.assign @w.sum, %zero : tensor<3x4xf32>
    return %y : tensor<4x4xf32>
  }
}

// -----

// Zeros for a disk are written from host memory. A whole parameter that passes
// through the device on its way to the host is none that is gathered for use.
// CHECK-LABEL: plan.program @step ranks(2)
// CHECK-SAME: window(0)
// CHECK-DAG: %[[HOST:.*]] = plan.arena host
// CHECK-DAG: %[[W:.*]] = plan.buffer %[[HOST]]{{.*}} parameter : memref<4xf32>
// CHECK-DAG: %[[Z:.*]] = plan.buffer %[[HOST]]{{.*}} constant capacity(4096) padding(8160) : memref<4xf32>
// CHECK-DAG: plan.constant %[[Z]], dense<0.000000e+00>
// CHECK-DAG: plan.buffer {{.*}} parameter : memref<4xf32>
// CHECK: plan.copy %{{.*}} -> %[[UP:.*]] label("w") stream("to_device")
// CHECK-NEXT: plan.all_gather %[[UP]] -> %[[ALL:.*]] elements [4] chunks [2]
// CHECK-NEXT: plan.copy %[[ALL]] -> %[[W]] label("w") stream("to_host")
// CHECK-NEXT: plan.copy %[[Z]] -> %{{.*}} label("w.sum") stream("disk_write")
// CHECK-NEXT: }
module {
  shard.grid @dp(shape = 2)
  zero.param @w : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host>
  zero.state @w.sum of @w : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = disk> zeros accumulator
  func.func @step(%x: tensor<2xf32> {zero.input = "x"}) {
    %h = zero.transfer %x from device to host : (tensor<2xf32>) -> tensor<2xf32>
    %up = zero.transfer %h from host to device : (tensor<2xf32>) -> tensor<2xf32>
    %all = zero.all_gather %up on @dp : (tensor<2xf32>) -> tensor<4xf32>
    %new = zero.transfer %all from device to host : (tensor<4xf32>) -> tensor<4xf32>
    zero.assign @w, %new : tensor<4xf32>
    %z = zero.on_host () : () -> (tensor<4xf32>) {
      %zero = arith.constant dense<0.0> : tensor<4xf32>
      zero.yield %zero : tensor<4xf32>
    }
    %zd = zero.transfer %z from host to disk : (tensor<4xf32>) -> tensor<4xf32>
    zero.assign @w.sum, %zd : tensor<4xf32>
    return
  }
}
