// A step that is scheduled can be scheduled again, for another budget or machine:
// the result is that of the step before, and the same on every run.
// RUN: zero-opt %s --zero-schedule=machine=h100 -o %t.once
// RUN: zero-opt %s --zero-schedule=machine=h100 -o %t.same
// RUN: diff %t.once %t.same
// RUN: FileCheck %s < %t.once
// RUN: zero-opt %t.once --zero-schedule=machine=h100 -o %t.twice
// RUN: diff %t.once %t.twice
// RUN: zero-opt %t.once --zero-schedule='machine=h100 prefetch=false' | FileCheck %s --check-prefix=SERIAL

// CHECK: zero.all_gather_start
// SERIAL-NOT: _start
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
