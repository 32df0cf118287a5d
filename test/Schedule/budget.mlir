// The memory budget decides what may be begun early; when nothing fits, one error
// says by how much, what is large and what would help.
// RUN: zero-opt %s --zero-prefetch='machine=h100 memory=1500000000' | FileCheck %s --check-prefix=WIDE
// RUN: zero-opt %s --zero-prefetch='machine=h100 memory=805306368' | FileCheck %s --check-prefix=TIGHT
// RUN: not zero-opt %s --zero-prefetch='machine=h100 memory=500000000' 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not zero-opt %s --zero-prefetch='machine=h100 memory=500000000' 2>&1 | grep -c error: | FileCheck %s --check-prefix=ONE

// WIDE: zero.all_gather_start
// TIGHT-NOT: zero.all_gather_start
// TIGHT: zero.all_gather
// ONE: 1
// NONE: budget.mlir:{{[0-9]+}}:1: error: the step needs at least 738197504 bytes of one rank, 238197504 more than the budget of 500000000; largest at the peak: {{.*}}'b', gathered (256.0 MiB), input 'x' (128.0 MiB), {{.*}}; what would help: {{.*}}more ranks

module attributes {zero.stage = 3 : i64} {
shard.grid @dp(shape = 8)
zero.param @a : !zero.sharded<8192x8192xf32, @dp, dim = 0>
zero.param @b : !zero.sharded<8192x8192xf32, @dp, dim = 0>
func.func @step(%x: tensor<4096x8192xf32> {zero.input = "x"}) -> tensor<4096x8192xf32> {
  %sa = zero.read @a : !zero.sharded<8192x8192xf32, @dp, dim = 0>
  %a = zero.all_gather %sa on @dp : (!zero.sharded<8192x8192xf32, @dp, dim = 0>) -> tensor<8192x8192xf32>
  %h = train.matmul %x, %a : (tensor<4096x8192xf32>, tensor<8192x8192xf32>) -> tensor<4096x8192xf32>
  zero.release %a : tensor<8192x8192xf32>
  %sb = zero.read @b : !zero.sharded<8192x8192xf32, @dp, dim = 0>
  %b = zero.all_gather %sb on @dp : (!zero.sharded<8192x8192xf32, @dp, dim = 0>) -> tensor<8192x8192xf32>
  %i = train.matmul %h, %b : (tensor<4096x8192xf32>, tensor<8192x8192xf32>) -> tensor<4096x8192xf32>
  zero.release %b : tensor<8192x8192xf32>
  return %i : tensor<4096x8192xf32>
}
}
