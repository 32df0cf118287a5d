// What a budget needs is offloaded, and said; without one nothing moves.
// RUN: zero-opt %s --zero-choose-offload='memory=1000 machine=h100' --remarks-filter='zero-choose.*' 2>%t | FileCheck %s
// RUN: FileCheck %s --input-file=%t --check-prefix=REMARK
// RUN: zero-opt %s --zero-choose-offload | FileCheck %s --check-prefix=NOTHING
// RUN: not zero-opt %s --zero-choose-offload='memory=10' 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: not zero-opt %s --zero-choose-offload='memory=0' 2>&1 | FileCheck %s --check-prefix=ZERO

// CHECK: zero.offload_choice = "offloading {{.*}} saves {{.*}}, costs
// CHECK-SAME: zero.offload_rules = ["{{.*}}=host"
// CHECK: mem = host
// REMARK: offloading {{.*}} saves
// NOTHING-NOT: mem = host
// NOTHING-NOT: zero.offload
// SMALL: zero-choose-offload: no choice fits: {{[0-9]+}} bytes more than the budget of 10 of device memory are needed
// ZERO: zero-choose-offload: memory is 0 bytes; expected 1 or more, or -1

module attributes {zero.stage = 2 : i64} {
shard.grid @dp(shape = 2)
zero.param @h.0.w : tensor<8x8xf32> unit("h.0")
zero.state @h.0.w.momentum of @h.0.w : !zero.sharded<8x8xf32, @dp, dim = 0> zeros
func.func @step(%x: tensor<4x8xf32> {zero.input = "x"}, %dy: tensor<4x8xf32> {zero.input = "dy"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
  %dw = train.matmul %x, %dy {transpose_a} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %g = zero.reduce_scatter %dw average on @dp : (tensor<8x8xf32>) -> tensor<4x8xf32>
  %w = zero.read @h.0.w : tensor<8x8xf32>
  %s = zero.read @h.0.w.momentum : !zero.sharded<8x8xf32, @dp, dim = 0>
  %l = zero.local %w on @dp : tensor<8x8xf32> -> tensor<4x8xf32>
  %m = zero.local %s on @dp : !zero.sharded<8x8xf32, @dp, dim = 0> -> tensor<4x8xf32>
  %n, %v = train.sgd %l, %g, %m, %lr {momentum = 0.9 : f64} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %a = zero.all_gather %n on @dp : (tensor<4x8xf32>) -> tensor<8x8xf32>
  zero.assign @h.0.w, %a : tensor<8x8xf32>
  zero.assign @h.0.w.momentum, %v : tensor<4x8xf32>
  return
}
}
