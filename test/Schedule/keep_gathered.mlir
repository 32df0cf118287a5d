// zero-keep-gathered drops the gather of the backward pass where memory allows;
// the release moves behind the last use. Nothing is begun earlier.
// RUN: zero-opt %s --zero-keep-gathered=machine=h100 --zero-verify | FileCheck %s
// RUN: zero-opt %s --zero-keep-gathered='machine=h100 memory=900000000' --zero-verify | FileCheck %s --check-prefix=TIGHT

// CHECK-LABEL: func.func @step
// CHECK: %[[W:.*]]:2 = zero.all_gather
// CHECK-NEXT: train.gemm %arg0, %[[W]]#0, %[[W]]#1
// The bias is not used again and goes at once.
// CHECK-NEXT: zero.release %[[W]]#1
// CHECK-NOT: zero.all_gather
// CHECK-NOT: _start
// CHECK: train.matmul %{{.*}}, %[[W]]#0 {transpose_b}
// CHECK-NEXT: zero.release %[[W]]#0

// TIGHT-COUNT-2: zero.all_gather
shard.grid @dp(shape = 8)
zero.param @w : !zero.sharded<8192x8192xf32, @dp, dim = 0>
zero.param @b : !zero.sharded<8192xf32, @dp, dim = 0>
func.func @step(%x: tensor<4096x8192xf32> {zero.input = "x"}) -> tensor<4096x8192xf32> {
  %s = zero.read @w : !zero.sharded<8192x8192xf32, @dp, dim = 0>
  %t = zero.read @b : !zero.sharded<8192xf32, @dp, dim = 0>
  %w:2 = zero.all_gather %s, %t on @dp : (!zero.sharded<8192x8192xf32, @dp, dim = 0>, !zero.sharded<8192xf32, @dp, dim = 0>) -> (tensor<8192x8192xf32>, tensor<8192xf32>)
  %h = train.gemm %x, %w#0, %w#1 : (tensor<4096x8192xf32>, tensor<8192x8192xf32>, tensor<8192xf32>) -> tensor<4096x8192xf32>
  zero.release %w#0, %w#1 : tensor<8192x8192xf32>, tensor<8192xf32>
  %p = train.softmax %h axis 1 : tensor<4096x8192xf32>
  %q = train.softmax %p axis 1 : tensor<4096x8192xf32>
  %r = train.concat %p, %q axis 0 : (tensor<4096x8192xf32>, tensor<4096x8192xf32>) -> tensor<8192x8192xf32>
  %u = train.slice %r starts [0, 0] limits [4096, 8192] strides [1, 1] : (tensor<8192x8192xf32>) -> tensor<4096x8192xf32>
  %v = zero.all_gather %s on @dp : (!zero.sharded<8192x8192xf32, @dp, dim = 0>) -> tensor<8192x8192xf32>
  %dx = train.matmul %u, %v {transpose_b} : (tensor<4096x8192xf32>, tensor<8192x8192xf32>) -> tensor<4096x8192xf32>
  zero.release %v : tensor<8192x8192xf32>
  return %dx : tensor<4096x8192xf32>
}
