// Steps written in linalg, arith and tosa only: the same passes insert the same
// collectives, and updates are remade on shapes of the shard.
// RUN: zero-opt %s --split-input-file --zero-outline-state --zero-partition=stage=0 | FileCheck %s --check-prefixes=CHECK,S0
// RUN: zero-opt %s --split-input-file --zero-outline-state --zero-partition=stage=1 | FileCheck %s --check-prefixes=CHECK,SHARD,S1
// RUN: zero-opt %s --split-input-file --zero-outline-state --zero-partition=stage=2 | FileCheck %s --check-prefixes=CHECK,SHARD,S2
// RUN: zero-opt %s --split-input-file --zero-outline-state --zero-partition=stage=3 | FileCheck %s --check-prefixes=CHECK,SHARD,S3

shard.grid @dp(shape = 4)

// Two layers in linalg. The updates stand between the gradients; in stages 0 and
// 1 they move behind the last one. The scalar learning rate is broadcast inside.
#ik = affine_map<(i, j, k) -> (i, k)>
#kj = affine_map<(i, j, k) -> (k, j)>
#jk = affine_map<(i, j, k) -> (j, k)>
#ki = affine_map<(i, j, k) -> (k, i)>
#ij = affine_map<(i, j, k) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>
#scalar = affine_map<(i, j) -> ()>

// CHECK-LABEL: func.func @linalg_step
// S0-NOT: zero.all_gather
// S3: zero.all_gather %{{.*}} -> tensor<10x4xf32>
// S3-NEXT: linalg.matmul
// S3: zero.all_gather %{{.*}} -> tensor<2x10xf32>
// S3-NEXT: linalg.matmul
// The second gradient of four: reduced at once from stage 2 on.
// S2: %[[D2:.*]] = linalg.matmul {{.*}} -> tensor<2x10xf32>
// S2-NEXT: zero.reduce_scatter %[[D2]] average on @dp : (tensor<2x10xf32>) -> tensor<1x10xf32>
// S3: %[[D2:.*]] = linalg.matmul {{.*}} -> tensor<2x10xf32>
// S3-NEXT: zero.reduce_scatter %[[D2]] average on @dp : (tensor<2x10xf32>) -> tensor<1x10xf32>
// S0: %[[D1:.*]] = linalg.matmul {{.*}} -> tensor<10x4xf32>
// S0-NEXT: %[[G2:.*]] = zero.all_reduce %{{.*}} average on @dp : (tensor<2x10xf32>) -> tensor<2x10xf32>
// S0-NEXT: %[[G1:.*]] = zero.all_reduce %[[D1]] average on @dp : (tensor<10x4xf32>) -> tensor<10x4xf32>
// S1: %[[D1:.*]] = linalg.matmul {{.*}} -> tensor<10x4xf32>
// S1-NEXT: %[[G2:.*]] = zero.reduce_scatter %{{.*}} average on @dp : (tensor<2x10xf32>) -> tensor<1x10xf32>
// S1-NEXT: %[[G1:.*]] = zero.reduce_scatter %[[D1]] average on @dp : (tensor<10x4xf32>) -> tensor<3x4xf32>
// S0: linalg.generic {{.*}} ins(%[[G1]], %{{.*}} : tensor<10x4xf32>, tensor<f32>) outs(%{{.*}} : tensor<10x4xf32>)
// SHARD: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<3x4xf32>, tensor<f32>) outs(%{{.*}} : tensor<3x4xf32>)
// S1: zero.all_gather %{{.*}} : (tensor<3x4xf32>) -> tensor<10x4xf32>
// S3: zero.assign @w1, %{{.*}} : tensor<3x4xf32>
// S0: linalg.generic {{.*}} ins(%[[G2]], %{{.*}} : tensor<2x10xf32>, tensor<f32>) outs(%{{.*}} : tensor<2x10xf32>)
// SHARD: zero.local {{.*}} -> tensor<1x10xf32>
// SHARD: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<1x10xf32>, tensor<f32>) outs(%{{.*}} : tensor<1x10xf32>)
// S1: zero.all_gather %{{.*}} : (tensor<1x10xf32>) -> tensor<2x10xf32>
// S3: zero.assign @w2, %{{.*}} : tensor<1x10xf32>
func.func @linalg_step(
    %w1: tensor<10x4xf32> {zero.role = "param", zero.name = "w1"},
    %w2: tensor<2x10xf32> {zero.role = "param", zero.name = "w2"},
    %x: tensor<8x4xf32> {zero.role = "input", zero.name = "x"},
    %lr: tensor<f32> {zero.role = "hyper", zero.name = "lr"})
    -> (tensor<10x4xf32> {zero.role = "param", zero.of = "w1"},
        tensor<2x10xf32> {zero.role = "param", zero.of = "w2"},
        tensor<8x2xf32> {zero.role = "output", zero.name = "y"}) {
  %e0 = tensor.empty() : tensor<8x10xf32>
  %h = linalg.matmul indexing_maps = [#ik, #jk, #ij] ins(%x, %w1 : tensor<8x4xf32>, tensor<10x4xf32>) outs(%e0 : tensor<8x10xf32>) -> tensor<8x10xf32>
  %e1 = tensor.empty() : tensor<8x2xf32>
  %y = linalg.matmul indexing_maps = [#ik, #jk, #ij] ins(%h, %w2 : tensor<8x10xf32>, tensor<2x10xf32>) outs(%e1 : tensor<8x2xf32>) -> tensor<8x2xf32>
  %e2 = tensor.empty() : tensor<2x10xf32>
  %dw2 = linalg.matmul indexing_maps = [#ki, #kj, #ij] ins(%y, %h : tensor<8x2xf32>, tensor<8x10xf32>) outs(%e2 : tensor<2x10xf32>) -> tensor<2x10xf32>
  %w2n = linalg.generic {indexing_maps = [#id, #scalar, #id], iterator_types = ["parallel", "parallel"]}
      ins(%dw2, %lr : tensor<2x10xf32>, tensor<f32>) outs(%w2 : tensor<2x10xf32>) {
    ^bb0(%g: f32, %l: f32, %p: f32):
      %s = arith.mulf %g, %l : f32
      %n = arith.subf %p, %s : f32
      linalg.yield %n : f32
  } -> tensor<2x10xf32>
  %dh = linalg.matmul ins(%y, %w2 : tensor<8x2xf32>, tensor<2x10xf32>) outs(%e0 : tensor<8x10xf32>) -> tensor<8x10xf32>
  %e3 = tensor.empty() : tensor<10x4xf32>
  %dw1 = linalg.matmul indexing_maps = [#ki, #kj, #ij] ins(%dh, %x : tensor<8x10xf32>, tensor<8x4xf32>) outs(%e3 : tensor<10x4xf32>) -> tensor<10x4xf32>
  %w1n = linalg.generic {indexing_maps = [#id, #scalar, #id], iterator_types = ["parallel", "parallel"]}
      ins(%dw1, %lr : tensor<10x4xf32>, tensor<f32>) outs(%w1 : tensor<10x4xf32>) {
    ^bb0(%g: f32, %l: f32, %p: f32):
      %s = arith.mulf %g, %l : f32
      %n = arith.subf %p, %s : f32
      linalg.yield %n : f32
  } -> tensor<10x4xf32>
  return %w1n, %w2n, %y : tensor<10x4xf32>, tensor<2x10xf32>, tensor<8x2xf32>
}

// -----

shard.grid @dp(shape = 4)

// Adam-like moments in arith. The gradient enters twice, once squared, each time
// through a product with a constant: what is reduced is the gradient, not a
// function of it. Constants and empty tensors are remade, a splat too.
// CHECK-LABEL: func.func @arith_step
// S0: %[[DW:.*]] = linalg.matmul
// S0-NEXT: %[[G:.*]] = zero.all_reduce %[[DW]] average on @dp : (tensor<10x4xf32>) -> tensor<10x4xf32>
// S0: arith.mulf %[[G]], %[[G]] : tensor<10x4xf32>
// SHARD: %[[DW:.*]] = linalg.matmul
// SHARD-NEXT: %[[G:.*]] = zero.reduce_scatter %[[DW]] average on @dp : (tensor<10x4xf32>) -> tensor<3x4xf32>
// CHECK-NOT: zero.reduce_scatter
// SHARD-DAG: %[[C:.*]] = arith.constant dense<1.0{{.*}}> : tensor<3x4xf32>
// SHARD-DAG: arith.mulf %[[G]], %[[C]] : tensor<3x4xf32>
// SHARD-DAG: arith.mulf %[[G]], %[[G]] : tensor<3x4xf32>
// SHARD-DAG: tensor.splat %{{.*}} : tensor<3x4xf32>
// SHARD-DAG: zero.assign @v, %{{.*}} : tensor<3x4xf32>
// SHARD-NOT: arith.constant dense<{{.*}}> : tensor<10x4xf32>
func.func @arith_step(
    %w: tensor<10x4xf32> {zero.role = "param", zero.name = "w"},
    %m: tensor<10x4xf32> {zero.role = "state", zero.name = "m", zero.of = "w"},
    %v: tensor<10x4xf32> {zero.role = "state", zero.name = "v", zero.of = "w"},
    %x: tensor<8x4xf32> {zero.role = "input", zero.name = "x"},
    %d: tensor<8x10xf32> {zero.role = "input", zero.name = "d"},
    %lr: f32 {zero.role = "hyper", zero.name = "lr"})
    -> (tensor<10x4xf32> {zero.role = "param", zero.of = "w"},
        tensor<10x4xf32> {zero.role = "state", zero.of = "m"},
        tensor<10x4xf32> {zero.role = "state", zero.of = "v"}) {
  %e = tensor.empty() : tensor<10x4xf32>
  %dw = linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]
    ins(%d, %x : tensor<8x10xf32>, tensor<8x4xf32>) outs(%e : tensor<10x4xf32>) -> tensor<10x4xf32>
  %c = arith.constant dense<1.0> : tensor<10x4xf32>
  %g1 = arith.mulf %dw, %c : tensor<10x4xf32>
  %m1 = arith.addf %m, %g1 : tensor<10x4xf32>
  %sq = arith.mulf %dw, %dw : tensor<10x4xf32>
  %g2 = arith.mulf %sq, %c : tensor<10x4xf32>
  %v1 = arith.addf %v, %g2 : tensor<10x4xf32>
  %r = math.rsqrt %v1 : tensor<10x4xf32>
  %u = arith.mulf %m1, %r : tensor<10x4xf32>
  %l = tensor.splat %lr : tensor<10x4xf32>
  %s = arith.mulf %u, %l : tensor<10x4xf32>
  %w1 = arith.subf %w, %s : tensor<10x4xf32>
  return %w1, %m1, %v1 : tensor<10x4xf32>, tensor<10x4xf32>, tensor<10x4xf32>
}

// -----

shard.grid @dp(shape = 4)

// tosa, with its broadcasts of equal rank.
// CHECK-LABEL: func.func @tosa_step
// S0: zero.all_reduce %{{.*}} average on @dp : (tensor<10x4xf32>) -> tensor<10x4xf32>
// S3: zero.all_gather %{{.*}} -> tensor<10x4xf32>
// SHARD: %[[G:.*]] = zero.reduce_scatter %{{.*}} average on @dp : (tensor<10x4xf32>) -> tensor<3x4xf32>
// SHARD: tosa.mul %[[G]], %{{.*}}, %{{.*}} : (tensor<3x4xf32>, tensor<1x1xf32>, tensor<1xi8>) -> tensor<3x4xf32>
// SHARD: tosa.sub %{{.*}}, %{{.*}} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
// S1: zero.all_gather %{{.*}} : (tensor<3x4xf32>) -> tensor<10x4xf32>
// S2: zero.all_gather %{{.*}} : (tensor<3x4xf32>) -> tensor<10x4xf32>
func.func @tosa_step(
    %w: tensor<10x4xf32> {zero.role = "param", zero.name = "w"},
    %x: tensor<10x4xf32> {zero.role = "input", zero.name = "x"},
    %lr: tensor<1x1xf32> {zero.role = "hyper", zero.name = "lr"})
    -> (tensor<10x4xf32> {zero.role = "param", zero.of = "w"},
        tensor<1x4xf32> {zero.role = "output", zero.name = "loss"}) {
  %shift = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  %d = tosa.sub %w, %x : (tensor<10x4xf32>, tensor<10x4xf32>) -> tensor<10x4xf32>
  %loss = tosa.reduce_sum %d {axis = 0 : i32} : (tensor<10x4xf32>) -> tensor<1x4xf32>
  %g = tosa.reverse %d {axis = 0 : i32} : (tensor<10x4xf32>) -> tensor<10x4xf32>
  %s = tosa.mul %g, %lr, %shift : (tensor<10x4xf32>, tensor<1x1xf32>, tensor<1xi8>) -> tensor<10x4xf32>
  %n = tosa.sub %w, %s : (tensor<10x4xf32>, tensor<10x4xf32>) -> tensor<10x4xf32>
  return %n, %loss : tensor<10x4xf32>, tensor<1x4xf32>
}

// -----

shard.grid @dp(shape = 4)

// A learning rate per row differs from row to row of the shard: it is cut.
// CHECK-LABEL: func.func @per_row
// SHARD: %[[ALL:.*]] = linalg.broadcast {{.*}} outs(%{{.*}} : tensor<10x4xf32>)
// SHARD: %[[L:.*]] = zero.local %[[ALL]] on @dp : tensor<10x4xf32> -> tensor<3x4xf32>
// SHARD: arith.mulf %{{.*}}, %[[L]] : tensor<3x4xf32>
func.func @per_row(
    %w: tensor<10x4xf32> {zero.role = "param", zero.name = "w"},
    %x: tensor<10x4xf32> {zero.role = "input", zero.name = "x"},
    %lr: tensor<10xf32> {zero.role = "hyper", zero.name = "lr"})
    -> (tensor<10x4xf32> {zero.role = "param", zero.of = "w"}) {
  %e = tensor.empty() : tensor<10x4xf32>
  %l = linalg.broadcast ins(%lr : tensor<10xf32>) outs(%e : tensor<10x4xf32>) dimensions = [1]
  %s = arith.mulf %x, %l : tensor<10x4xf32>
  %n = arith.subf %w, %s : tensor<10x4xf32>
  return %n : tensor<10x4xf32>
}
