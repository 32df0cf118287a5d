// Layers whose momentum lives in host memory: gradients go down as soon as they are
// reduced, updates run on the host beside the backward pass, in order, and
// parameters come back while the next update runs.
// RUN: zero-opt %s --zero-schedule='machine=h100 reorder=false bucket=false' --zero-verify | FileCheck %s
// A scheduled step is scheduled anew from its synchronous form; nothing is lost.
// RUN: zero-opt %s --zero-schedule='machine=h100 reorder=false bucket=false' --zero-schedule='machine=h100 reorder=false bucket=false' --zero-verify | FileCheck %s
// Why compute stands still for the host, and what would help.
// RUN: zero-opt %s --zero-schedule='machine=h100 reorder=false bucket=false' --remarks-filter='zero-.*' 2>&1 >/dev/null | FileCheck %s --check-prefix=WHY

// CHECK: zero.planned_host_peak = {{[0-9]+}} : i64, zero.planned_peak = {{[0-9]+}} : i64
// CHECK: train.matmul %arg0, %arg1
// CHECK: %[[DOWN3:.*]] = zero.transfer_start {{.*}} from device to host
// CHECK: train.matmul %arg0, %arg2
// CHECK: zero.wait %[[DOWN3]]
// CHECK: %[[UPDATE3:.*]] = zero.on_host_start
// CHECK: train.sgd
// CHECK: zero.yield
// CHECK: zero.transfer_start {{.*}} from device to host
// CHECK: train.matmul %arg0, %arg3
// CHECK: %[[NEW3:.*]]:2 = zero.wait %[[UPDATE3]]
// CHECK: zero.assign @m3, %[[NEW3]]#1
// CHECK: %[[UPDATE2:.*]] = zero.on_host_start
// CHECK: zero.transfer{{.*}} %[[NEW3]]#0 from host to device
// CHECK: zero.wait %[[UPDATE2]]

// WHY: remark: [Analysis] plan | Category:zero-schedule | Remark="step {{.*}}; peak 896.0 MiB of a budget of 78.5 GiB, in host memory {{.*}} MiB of a budget of 256.0 GiB"
// WHY: remark: [Missed] exposed | Category:zero-schedule | Remark="copy to the device of 'w3' (32.0 MiB) holds up compute for {{.*}}; what would help: a larger batch, or less of it offloaded"
// WHY: remark: [Missed] exposed | Category:zero-schedule | Remark="compute on the host of 'w1' (96.0 MiB) holds up compute for {{.*}}: its channel is busy with compute on the host of 'w2'; what would help: a larger batch, or a part of the optimizer on the device"
module attributes {zero.stage = 3 : i64} {
shard.grid @dp(shape = 8)
zero.param @w3 : !zero.sharded<8192x8192xf32, @dp, dim = 0>
zero.state @m3 of @w3 : !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = host> zeros
zero.param @w2 : !zero.sharded<8192x8192xf32, @dp, dim = 0>
zero.state @m2 of @w2 : !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = host> zeros
zero.param @w1 : !zero.sharded<8192x8192xf32, @dp, dim = 0>
zero.state @m1 of @w1 : !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = host> zeros
func.func @step(%x: tensor<4096x8192xf32> {zero.input = "x"}, %dy3: tensor<4096x8192xf32> {zero.input = "dy3"}, %dy2: tensor<4096x8192xf32> {zero.input = "dy2"}, %dy1: tensor<4096x8192xf32> {zero.input = "dy1"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
  %lrh = zero.transfer %lr from device to host : (tensor<f32>) -> tensor<f32>
  %g3 = train.matmul %x, %dy3 {transpose_a} : (tensor<4096x8192xf32>, tensor<4096x8192xf32>) -> tensor<8192x8192xf32>
  %s3 = zero.reduce_scatter %g3 average on @dp : (tensor<8192x8192xf32>) -> tensor<1024x8192xf32>
  %p3 = zero.read @w3 : !zero.sharded<8192x8192xf32, @dp, dim = 0>
  %l3 = zero.local %p3 on @dp : !zero.sharded<8192x8192xf32, @dp, dim = 0> -> tensor<1024x8192xf32>
  %gh3, %ph3 = zero.transfer %s3, %l3 from device to host : (tensor<1024x8192xf32>, tensor<1024x8192xf32>) -> (tensor<1024x8192xf32>, tensor<1024x8192xf32>)
  %m3 = zero.read @m3 : !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = host>
  %lm3 = zero.local %m3 on @dp : !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = host> -> tensor<1024x8192xf32>
  %n3:2 = zero.on_host (%p = %ph3, %g = %gh3, %m = %lm3, %r = %lrh) : (tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<f32>) -> (tensor<1024x8192xf32>, tensor<1024x8192xf32>) {
    %new, %mom = train.sgd %p, %g, %m, %r {momentum = 0.9 : f64} : (tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<f32>) -> (tensor<1024x8192xf32>, tensor<1024x8192xf32>)
    zero.yield %new, %mom : tensor<1024x8192xf32>, tensor<1024x8192xf32>
  }
  zero.assign @m3, %n3#1 : tensor<1024x8192xf32>
  %u3 = zero.transfer %n3#0 from host to device : (tensor<1024x8192xf32>) -> tensor<1024x8192xf32>
  zero.assign @w3, %u3 : tensor<1024x8192xf32>
  %g2 = train.matmul %x, %dy2 {transpose_a} : (tensor<4096x8192xf32>, tensor<4096x8192xf32>) -> tensor<8192x8192xf32>
  %s2 = zero.reduce_scatter %g2 average on @dp : (tensor<8192x8192xf32>) -> tensor<1024x8192xf32>
  %p2 = zero.read @w2 : !zero.sharded<8192x8192xf32, @dp, dim = 0>
  %l2 = zero.local %p2 on @dp : !zero.sharded<8192x8192xf32, @dp, dim = 0> -> tensor<1024x8192xf32>
  %gh2, %ph2 = zero.transfer %s2, %l2 from device to host : (tensor<1024x8192xf32>, tensor<1024x8192xf32>) -> (tensor<1024x8192xf32>, tensor<1024x8192xf32>)
  %m2 = zero.read @m2 : !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = host>
  %lm2 = zero.local %m2 on @dp : !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = host> -> tensor<1024x8192xf32>
  %n2:2 = zero.on_host (%p = %ph2, %g = %gh2, %m = %lm2, %r = %lrh) : (tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<f32>) -> (tensor<1024x8192xf32>, tensor<1024x8192xf32>) {
    %new, %mom = train.sgd %p, %g, %m, %r {momentum = 0.9 : f64} : (tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<f32>) -> (tensor<1024x8192xf32>, tensor<1024x8192xf32>)
    zero.yield %new, %mom : tensor<1024x8192xf32>, tensor<1024x8192xf32>
  }
  zero.assign @m2, %n2#1 : tensor<1024x8192xf32>
  %u2 = zero.transfer %n2#0 from host to device : (tensor<1024x8192xf32>) -> tensor<1024x8192xf32>
  zero.assign @w2, %u2 : tensor<1024x8192xf32>
  %g1 = train.matmul %x, %dy1 {transpose_a} : (tensor<4096x8192xf32>, tensor<4096x8192xf32>) -> tensor<8192x8192xf32>
  %s1 = zero.reduce_scatter %g1 average on @dp : (tensor<8192x8192xf32>) -> tensor<1024x8192xf32>
  %p1 = zero.read @w1 : !zero.sharded<8192x8192xf32, @dp, dim = 0>
  %l1 = zero.local %p1 on @dp : !zero.sharded<8192x8192xf32, @dp, dim = 0> -> tensor<1024x8192xf32>
  %gh1, %ph1 = zero.transfer %s1, %l1 from device to host : (tensor<1024x8192xf32>, tensor<1024x8192xf32>) -> (tensor<1024x8192xf32>, tensor<1024x8192xf32>)
  %m1 = zero.read @m1 : !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = host>
  %lm1 = zero.local %m1 on @dp : !zero.sharded<8192x8192xf32, @dp, dim = 0, mem = host> -> tensor<1024x8192xf32>
  %n1:2 = zero.on_host (%p = %ph1, %g = %gh1, %m = %lm1, %r = %lrh) : (tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<f32>) -> (tensor<1024x8192xf32>, tensor<1024x8192xf32>) {
    %new, %mom = train.sgd %p, %g, %m, %r {momentum = 0.9 : f64} : (tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<1024x8192xf32>, tensor<f32>) -> (tensor<1024x8192xf32>, tensor<1024x8192xf32>)
    zero.yield %new, %mom : tensor<1024x8192xf32>, tensor<1024x8192xf32>
  }
  zero.assign @m1, %n1#1 : tensor<1024x8192xf32>
  %u1 = zero.transfer %n1#0 from host to device : (tensor<1024x8192xf32>) -> tensor<1024x8192xf32>
  zero.assign @w1, %u1 : tensor<1024x8192xf32>
  return
}
}
