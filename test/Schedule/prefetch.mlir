// zero-prefetch splits collectives: a gather begins one op before it is needed,
// since that is long enough here, and not at the start of the step. The first one
// has nothing to hide behind and stays as it is.
// RUN: zero-opt %s --zero-prefetch=machine=h100 --zero-verify | FileCheck %s

// CHECK: module attributes {zero.planned_peak = {{[0-9]+}} : i64, zero.planned_seconds = {{.*}} : f64}
shard.grid @dp(shape = 8)
zero.param @a : !zero.sharded<8192x8192xf32, @dp, dim = 0>
zero.param @b : !zero.sharded<8192x8192xf32, @dp, dim = 0>
zero.param @c : !zero.sharded<8192x8192xf32, @dp, dim = 0>

// CHECK-LABEL: func.func @gathers
// CHECK: %[[A:.*]] = zero.all_gather %{{.*}} on @dp
// CHECK-NEXT: zero.read @b
// CHECK-NEXT: %[[FB:.*]] = zero.all_gather_start %b on @dp
// CHECK-NEXT: train.matmul %arg0, %[[A]]
// CHECK-NEXT: zero.release %[[A]]
// CHECK-NEXT: %[[B:.*]] = zero.wait %[[FB]]
// CHECK-NEXT: zero.read @c
// CHECK-NEXT: %[[FC:.*]] = zero.all_gather_start %c on @dp
// CHECK-NEXT: train.matmul %{{.*}}, %[[B]]
// CHECK-NEXT: zero.release %[[B]]
// CHECK-NEXT: %[[C:.*]] = zero.wait %[[FC]]
// CHECK-NEXT: train.matmul %{{.*}}, %[[C]]
// CHECK-NEXT: zero.release %[[C]]
func.func @gathers(%x: tensor<4096x8192xf32> {zero.input = "x"}) -> tensor<4096x8192xf32> {
  %sa = zero.read @a : !zero.sharded<8192x8192xf32, @dp, dim = 0>
  %a = zero.all_gather %sa on @dp : (!zero.sharded<8192x8192xf32, @dp, dim = 0>) -> tensor<8192x8192xf32>
  %h = train.matmul %x, %a : (tensor<4096x8192xf32>, tensor<8192x8192xf32>) -> tensor<4096x8192xf32>
  zero.release %a : tensor<8192x8192xf32>
  %sb = zero.read @b : !zero.sharded<8192x8192xf32, @dp, dim = 0>
  %b = zero.all_gather %sb on @dp : (!zero.sharded<8192x8192xf32, @dp, dim = 0>) -> tensor<8192x8192xf32>
  %i = train.matmul %h, %b : (tensor<4096x8192xf32>, tensor<8192x8192xf32>) -> tensor<4096x8192xf32>
  zero.release %b : tensor<8192x8192xf32>
  %sc = zero.read @c : !zero.sharded<8192x8192xf32, @dp, dim = 0>
  %c = zero.all_gather %sc on @dp : (!zero.sharded<8192x8192xf32, @dp, dim = 0>) -> tensor<8192x8192xf32>
  %y = train.matmul %i, %c : (tensor<4096x8192xf32>, tensor<8192x8192xf32>) -> tensor<4096x8192xf32>
  zero.release %c : tensor<8192x8192xf32>
  return %y : tensor<4096x8192xf32>
}

// A reduction begins when its gradient is complete and is awaited after the
// compute that hides it.
// CHECK-LABEL: func.func @reduction
// CHECK: %[[G:.*]] = train.matmul %arg0, %arg1 {transpose_a}
// CHECK-NEXT: %[[F:.*]] = zero.reduce_scatter_start %[[G]] average on @dp
// CHECK-NEXT: train.matmul
// CHECK-NEXT: zero.wait %[[F]]
func.func @reduction(%x: tensor<4096x8192xf32> {zero.input = "x"}, %dy: tensor<4096x8192xf32> {zero.input = "dy"}) -> (tensor<1024x8192xf32>, tensor<4096x4096xf32>) {
  %g = train.matmul %x, %dy {transpose_a} : (tensor<4096x8192xf32>, tensor<4096x8192xf32>) -> tensor<8192x8192xf32>
  %r = zero.reduce_scatter %g average on @dp : (tensor<8192x8192xf32>) -> tensor<1024x8192xf32>
  %o = train.matmul %x, %dy {transpose_b} : (tensor<4096x8192xf32>, tensor<4096x8192xf32>) -> tensor<4096x4096xf32>
  return %r, %o : tensor<1024x8192xf32>, tensor<4096x4096xf32>
}
