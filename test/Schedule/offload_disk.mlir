// Momentum on disk: it is read before the host needs it and written behind the
// update, both at once where host memory has room for two, one after the other where
// it has room for one.
// RUN: zero-opt %s --zero-schedule='machine=h100 reorder=false bucket=false' --zero-verify | FileCheck %s
// RUN: zero-opt %s --zero-schedule='machine=h100 host-memory=104857600' --zero-verify | FileCheck %s --check-prefix=ONE
// RUN: not zero-opt %s --zero-schedule='machine=h100 host-memory=1048576' 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not zero-opt %s --zero-schedule='machine=h100 host-memory=-2' 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: zero-opt %s --zero-schedule=machine=h100 --remarks-filter='zero-.*' 2>&1 >/dev/null | FileCheck %s --check-prefix=WHY

// CHECK: %[[READ3:.*]] = zero.transfer_start %m3 from disk to host
// CHECK: train.matmul %arg0, %arg1
// CHECK: zero.wait %[[READ3]]
// CHECK: zero.on_host
// CHECK: %[[WRITE3:.*]] = zero.transfer_start {{.*}} from host to disk
// CHECK: zero.transfer_start {{.*}} from host to device
// CHECK: train.matmul
// CHECK: %[[WRITTEN3:.*]] = zero.wait %[[WRITE3]]
// CHECK: zero.assign @m3, %[[WRITTEN3]]

// ONE: zero.planned_host_peak = 100{{[0-9]+}} : i64
// NONE: offload_disk.mlir:{{[0-9]+}}:1: error: the step needs at least 10{{[0-9]+}} bytes of host memory of one rank, 99{{[0-9]+}} more than the budget of 1048576; largest at the peak: {{.*}}; what would help: more of it on disk, less of it offloaded, more ranks
// NEGATIVE: error: expects a budget of host memory of at least 0 bytes, got -2
// WHY: Remark="step {{.*}}, in host memory {{.*}}, on disk 96.0 MiB"
// WHY: Remark="write to disk of 'w1' (32.0 MiB) holds up compute for {{.*}}; what would help: more host memory, or less of it on disk"
module attributes {zero.stage = 3 : i64} {
shard.grid @dp(shape = 8)
zero.param @w3 : !zero.sharded<8192x8192xf32, @dp, dim = 0>
zero.state @m3 of @w3 : !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = disk> zeros
zero.param @w2 : !zero.sharded<8192x8192xf32, @dp, dim = 0>
zero.state @m2 of @w2 : !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = disk> zeros
zero.param @w1 : !zero.sharded<8192x8192xf32, @dp, dim = 0>
zero.state @m1 of @w1 : !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = disk> zeros
func.func @step(%x: tensor<4096x8192xf32> {zero.input = "x"}, %dy3: tensor<4096x8192xf32> {zero.input = "dy3"}, %dy2: tensor<4096x8192xf32> {zero.input = "dy2"}, %dy1: tensor<4096x8192xf32> {zero.input = "dy1"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
  %lrh = zero.transfer %lr from device to host : (tensor<f32>) -> tensor<f32>
  %g3 = train.matmul %x, %dy3 {transpose_a} : (tensor<4096x8192xf32>, tensor<4096x8192xf32>) -> tensor<8192x8192xf32>
  %s3 = zero.reduce_scatter %g3 average on @dp : (tensor<8192x8192xf32>) -> tensor<1024x8192xf32>
  %p3 = zero.read @w3 : !zero.sharded<8192x8192xf32, @dp, dim = 0>
  %l3 = zero.local %p3 on @dp : !zero.sharded<8192x8192xf32, @dp, dim = 0> -> tensor<1024x8192xf32>
  %gh3, %ph3 = zero.transfer %s3, %l3 from device to host : (tensor<1024x8192xf32>, tensor<1024x8192xf32>) -> (tensor<1024x8192xf32>, tensor<1024x8192xf32>)
  %m3 = zero.read @m3 : !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = disk>
  %mh3 = zero.transfer %m3 from disk to host : (!zero.sharded<8192x8192xf32, @dp, dim = 0, mem = disk>) -> !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = host>
  %lm3 = zero.local %mh3 on @dp : !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = host> -> tensor<1024x8192xf32>
  %n3:2 = zero.on_host (%p = %ph3, %g = %gh3, %m = %lm3, %r = %lrh) : (tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<f32>) -> (tensor<1024x8192xf32>, tensor<1024x8192xf32>) {
    %new, %mom = train.sgd %p, %g, %m, %r {momentum = 0.9 : f64} : (tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<f32>) -> (tensor<1024x8192xf32>, tensor<1024x8192xf32>)
    zero.yield %new, %mom : tensor<1024x8192xf32>, tensor<1024x8192xf32>
  }
  %md3 = zero.transfer %n3#1 from host to disk : (tensor<1024x8192xf32>) -> tensor<1024x8192xf32>
  zero.assign @m3, %md3 : tensor<1024x8192xf32>
  %u3 = zero.transfer %n3#0 from host to device : (tensor<1024x8192xf32>) -> tensor<1024x8192xf32>
  zero.assign @w3, %u3 : tensor<1024x8192xf32>
  %g2 = train.matmul %x, %dy2 {transpose_a} : (tensor<4096x8192xf32>, tensor<4096x8192xf32>) -> tensor<8192x8192xf32>
  %s2 = zero.reduce_scatter %g2 average on @dp : (tensor<8192x8192xf32>) -> tensor<1024x8192xf32>
  %p2 = zero.read @w2 : !zero.sharded<8192x8192xf32, @dp, dim = 0>
  %l2 = zero.local %p2 on @dp : !zero.sharded<8192x8192xf32, @dp, dim = 0> -> tensor<1024x8192xf32>
  %gh2, %ph2 = zero.transfer %s2, %l2 from device to host : (tensor<1024x8192xf32>, tensor<1024x8192xf32>) -> (tensor<1024x8192xf32>, tensor<1024x8192xf32>)
  %m2 = zero.read @m2 : !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = disk>
  %mh2 = zero.transfer %m2 from disk to host : (!zero.sharded<8192x8192xf32, @dp, dim = 0, mem = disk>) -> !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = host>
  %lm2 = zero.local %mh2 on @dp : !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = host> -> tensor<1024x8192xf32>
  %n2:2 = zero.on_host (%p = %ph2, %g = %gh2, %m = %lm2, %r = %lrh) : (tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<f32>) -> (tensor<1024x8192xf32>, tensor<1024x8192xf32>) {
    %new, %mom = train.sgd %p, %g, %m, %r {momentum = 0.9 : f64} : (tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<f32>) -> (tensor<1024x8192xf32>, tensor<1024x8192xf32>)
    zero.yield %new, %mom : tensor<1024x8192xf32>, tensor<1024x8192xf32>
  }
  %md2 = zero.transfer %n2#1 from host to disk : (tensor<1024x8192xf32>) -> tensor<1024x8192xf32>
  zero.assign @m2, %md2 : tensor<1024x8192xf32>
  %u2 = zero.transfer %n2#0 from host to device : (tensor<1024x8192xf32>) -> tensor<1024x8192xf32>
  zero.assign @w2, %u2 : tensor<1024x8192xf32>
  %g1 = train.matmul %x, %dy1 {transpose_a} : (tensor<4096x8192xf32>, tensor<4096x8192xf32>) -> tensor<8192x8192xf32>
  %s1 = zero.reduce_scatter %g1 average on @dp : (tensor<8192x8192xf32>) -> tensor<1024x8192xf32>
  %p1 = zero.read @w1 : !zero.sharded<8192x8192xf32, @dp, dim = 0>
  %l1 = zero.local %p1 on @dp : !zero.sharded<8192x8192xf32, @dp, dim = 0> -> tensor<1024x8192xf32>
  %gh1, %ph1 = zero.transfer %s1, %l1 from device to host : (tensor<1024x8192xf32>, tensor<1024x8192xf32>) -> (tensor<1024x8192xf32>, tensor<1024x8192xf32>)
  %m1 = zero.read @m1 : !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = disk>
  %mh1 = zero.transfer %m1 from disk to host : (!zero.sharded<8192x8192xf32, @dp, dim = 0, mem = disk>) -> !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = host>
  %lm1 = zero.local %mh1 on @dp : !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = host> -> tensor<1024x8192xf32>
  %n1:2 = zero.on_host (%p = %ph1, %g = %gh1, %m = %lm1, %r = %lrh) : (tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<f32>) -> (tensor<1024x8192xf32>, tensor<1024x8192xf32>) {
    %new, %mom = train.sgd %p, %g, %m, %r {momentum = 0.9 : f64} : (tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<f32>) -> (tensor<1024x8192xf32>, tensor<1024x8192xf32>)
    zero.yield %new, %mom : tensor<1024x8192xf32>, tensor<1024x8192xf32>
  }
  %md1 = zero.transfer %n1#1 from host to disk : (tensor<1024x8192xf32>) -> tensor<1024x8192xf32>
  zero.assign @m1, %md1 : tensor<1024x8192xf32>
  %u1 = zero.transfer %n1#0 from host to device : (tensor<1024x8192xf32>) -> tensor<1024x8192xf32>
  zero.assign @w1, %u1 : tensor<1024x8192xf32>
  return
}
}
