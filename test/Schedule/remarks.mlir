// What the schedule says about itself, on request.
// RUN: zero-opt %s --zero-schedule=machine=h100 --remarks-filter='zero-.*' 2>&1 >/dev/null | FileCheck %s
// RUN: zero-opt %s --zero-schedule=machine=h100 2>&1 >/dev/null | count 0
// RUN: zero-opt %s --zero-keep-gathered=machine=h100 --remarks-filter='zero-.*' 2>&1 >/dev/null | FileCheck %s --check-prefix=KEEP

// CHECK: remark: [Analysis] plan | Category:zero-schedule | Remark="step {{.*}} ms, compute {{.*}} ms, exposed communication {{.*}}; no schedule is faster than {{.*}} ms (gap {{.*}} %); peak {{.*}} of a budget of 78.5 GiB"
// CHECK-DAG: remark: [Missed] exposed | Category:zero-schedule | Remark="all_gather of 'a' (256.0 MiB) holds up compute for {{.*}} us of {{.*}} us: the step needs it before it computes anything"
// KEEP: remark: [Passed] kept | Category:zero-keep-gathered | Remark="the second all_gather of 'a' is dropped: 256.0 MiB stay from forward to backward and save {{.*}} us of gathering"
// KEEP: remark: [Missed] exposed | Category:zero-keep-gathered | Remark="all_gather of 'b' (256.0 MiB) holds up compute for {{.*}}: this pass begins nothing earlier"
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
  %c = zero.all_gather %sa on @dp : (!zero.sharded<8192x8192xf32, @dp, dim = 0>) -> tensor<8192x8192xf32>
  %y = train.matmul %i, %c {transpose_b} : (tensor<4096x8192xf32>, tensor<8192x8192xf32>) -> tensor<4096x8192xf32>
  zero.release %c : tensor<8192x8192xf32>
  return %y : tensor<4096x8192xf32>
}
