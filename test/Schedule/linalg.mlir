// A step in linalg is scheduled by its loop ranges; what is not tensors, effects
// of other dialects and regions stay in their order.
// RUN: zero-opt %s --zero-prefetch=machine=h100 --zero-verify | FileCheck %s

// CHECK-LABEL: func.func @step
// CHECK: zero.all_gather %{{.*}} on @dp
// CHECK: %[[F:.*]] = zero.all_gather_start
// CHECK: linalg.matmul
// CHECK: memref.store
// CHECK: zero.wait %[[F]]
// CHECK: linalg.matmul
// CHECK: memref.store
shard.grid @dp(shape = 8)
zero.param @a : !zero.sharded<8192x8192xf32, @dp, dim = 0>
zero.param @b : !zero.sharded<8192x8192xf32, @dp, dim = 0>
func.func @step(%x: tensor<4096x8192xf32> {zero.input = "x"}, %log: memref<2xf32>, %value: f32) -> tensor<4096x8192xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4096x8192xf32>
  %sa = zero.read @a : !zero.sharded<8192x8192xf32, @dp, dim = 0>
  %a = zero.all_gather %sa on @dp : (!zero.sharded<8192x8192xf32, @dp, dim = 0>) -> tensor<8192x8192xf32>
  %h = linalg.matmul ins(%x, %a : tensor<4096x8192xf32>, tensor<8192x8192xf32>) outs(%e : tensor<4096x8192xf32>) -> tensor<4096x8192xf32>
  zero.release %a : tensor<8192x8192xf32>
  memref.store %value, %log[%c0] : memref<2xf32>
  %sb = zero.read @b : !zero.sharded<8192x8192xf32, @dp, dim = 0>
  %b = zero.all_gather %sb on @dp : (!zero.sharded<8192x8192xf32, @dp, dim = 0>) -> tensor<8192x8192xf32>
  %i = linalg.matmul ins(%h, %b : tensor<4096x8192xf32>, tensor<8192x8192xf32>) outs(%e : tensor<4096x8192xf32>) -> tensor<4096x8192xf32>
  zero.release %b : tensor<8192x8192xf32>
  memref.store %value, %log[%c1] : memref<2xf32>
  return %i : tensor<4096x8192xf32>
}
