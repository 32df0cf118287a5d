// Small collectives of different units are merged where their latency costs more
// than what the bucket makes wait; with bucket=false they stay as they are.
// RUN: zero-opt %s --zero-schedule='machine=h100 keep-gathered=false' --zero-verify | FileCheck %s
// RUN: zero-opt %s --zero-schedule='machine=h100 keep-gathered=false bucket=false' --zero-verify | FileCheck %s --check-prefix=ALONE
// RUN: zero-opt %s --zero-schedule='machine=h100 keep-gathered=false bucket-bytes=64' --zero-verify | FileCheck %s --check-prefix=ALONE

// CHECK-LABEL: func.func @step
// CHECK: zero.all_gather{{.*}} %a, %b on @dp
// ALONE-LABEL: func.func @step
// ALONE-NOT: %a, %b on @dp
shard.grid @dp(shape = 8)
zero.param @a : !zero.sharded<8x8xf32, @dp, dim = 0> unit("a")
zero.param @b : !zero.sharded<8x8xf32, @dp, dim = 0> unit("b")
func.func @step(%x: tensor<8x8xf32> {zero.input = "x"}) -> tensor<8x8xf32> {
  %sa = zero.read @a : !zero.sharded<8x8xf32, @dp, dim = 0>
  %a = zero.all_gather %sa on @dp : (!zero.sharded<8x8xf32, @dp, dim = 0>) -> tensor<8x8xf32>
  %h = train.matmul %x, %a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  zero.release %a : tensor<8x8xf32>
  %sb = zero.read @b : !zero.sharded<8x8xf32, @dp, dim = 0>
  %b = zero.all_gather %sb on @dp : (!zero.sharded<8x8xf32, @dp, dim = 0>) -> tensor<8x8xf32>
  %i = train.matmul %h, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  zero.release %b : tensor<8x8xf32>
  return %i : tensor<8x8xf32>
}
