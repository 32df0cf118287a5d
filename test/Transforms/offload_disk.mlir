// State on disk: through host memory, bucket by bucket, in both directions.
// RUN: zero-opt %s --zero-offload=rules=optimizer=disk,parameters=disk --zero-verify | FileCheck %s

// The parameter is read for its gather; the update reads parameter and state
// again, and writes them back.
// CHECK: zero.param @w : !zero.sharded<8xf32, @dp, dim = 0, mem = disk>
// CHECK: zero.state @w.m of @w : !zero.sharded<8xf32, @dp, dim = 0, mem = disk> zeros
// CHECK-LABEL: func.func @step(
// CHECK: %[[P:.*]] = zero.read @w : !zero.sharded<8xf32, @dp, dim = 0, mem = disk>
// CHECK-NEXT: %[[H:.*]] = zero.transfer %[[P]] from disk to host : (!zero.sharded<8xf32, @dp, dim = 0, mem = disk>) -> !zero.sharded<8xf32, @dp, dim = 0, mem = host>
// CHECK-NEXT: %[[D:.*]] = zero.transfer %[[H]] from host to device : (!zero.sharded<8xf32, @dp, dim = 0, mem = host>) -> !zero.sharded<8xf32, @dp, dim = 0>
// CHECK-NEXT: zero.all_gather %[[D]]
// CHECK: %[[M:.*]] = zero.read @w.m
// CHECK: %[[IN:.*]]:2 = zero.transfer %[[P]], %[[M]] from disk to host
// CHECK-NEXT: %[[WL:.*]] = zero.local %[[IN]]#0 on @dp : !zero.sharded<8xf32, @dp, dim = 0, mem = host> -> tensor<2xf32>
// CHECK-NEXT: %[[ML:.*]] = zero.local %[[IN]]#1
// CHECK-NEXT: %[[G:.*]] = zero.reduce_scatter
// CHECK-NEXT: %[[GH:.*]] = zero.transfer %[[G]] from device to host
// CHECK: %[[U:.*]]:2 = zero.on_host (
// CHECK: %[[OUT:.*]]:2 = zero.transfer %[[U]]#0, %[[U]]#1 from host to disk : (tensor<2xf32>, tensor<2xf32>)
// CHECK-NEXT: zero.assign @w, %[[OUT]]#0
// CHECK-NEXT: zero.assign @w.m, %[[OUT]]#1
module attributes {zero.stage = 3 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : !zero.sharded<8xf32, @dp, dim = 0>
  zero.state @w.m of @w : !zero.sharded<8xf32, @dp, dim = 0> zeros
  func.func @step(%x: tensor<8xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %w = zero.read @w : !zero.sharded<8xf32, @dp, dim = 0>
    %f = zero.all_gather %w on @dp : (!zero.sharded<8xf32, @dp, dim = 0>) -> tensor<8xf32>
    %dw = train.mul %x, %f : tensor<8xf32>
    zero.release %f : tensor<8xf32>
    %g = zero.reduce_scatter %dw average on @dp : (tensor<8xf32>) -> tensor<2xf32>
    %wl = zero.local %w on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<2xf32>
    %m = zero.read @w.m : !zero.sharded<8xf32, @dp, dim = 0>
    %ml = zero.local %m on @dp : !zero.sharded<8xf32, @dp, dim = 0> -> tensor<2xf32>
    %wn, %mn = train.sgd %wl, %g, %ml, %lr {momentum = 0.9 : f64} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>)
    zero.assign @w, %wn : tensor<2xf32>
    zero.assign @w.m, %mn : tensor<2xf32>
    return
  }
}
