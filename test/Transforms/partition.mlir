// What each stage inserts for a step of two layers, with shards that are uneven
// (10 rows over 4 ranks: 3, 3, 3, 1) and empty (2 rows over 4).
// RUN: zero-opt %s --zero-partition=stage=0 --verify-roundtrip | FileCheck %s --check-prefixes=CHECK,S0
// RUN: zero-opt %s --zero-partition=stage=1 --verify-roundtrip | FileCheck %s --check-prefixes=CHECK,S1
// RUN: zero-opt %s --zero-partition=stage=2 --verify-roundtrip | FileCheck %s --check-prefixes=CHECK,S2
// RUN: zero-opt %s --zero-partition=stage=3 --verify-roundtrip | FileCheck %s --check-prefixes=CHECK,S3
// RUN: zero-opt %s --zero-partition='stage=3 keep-adjacent=false' | FileCheck %s --check-prefix=FREED

// S0: module attributes {zero.stage = 0 : i64}
// S1: module attributes {zero.stage = 1 : i64}
// S2: module attributes {zero.stage = 2 : i64}
// S3: module attributes {zero.stage = 3 : i64}

shard.grid @dp(shape = 4)
// S0: zero.param @fc1.weight : tensor<10x4xf32>
// S1: zero.param @fc1.weight : tensor<10x4xf32>
// S2: zero.param @fc1.weight : tensor<10x4xf32>
// S3: zero.param @fc1.weight : !zero.sharded<10x4xf32, @dp, dim = 0>
zero.param @fc1.weight : tensor<10x4xf32> unit("fc1")
zero.param @fc1.bias : tensor<10xf32> unit("fc1")
zero.param @fc2.weight : tensor<2x10xf32> unit("fc2")
// A scalar is never cut.
// CHECK: zero.param @scale : tensor<f32>
zero.param @scale : tensor<f32> unit("scale")
// S0: zero.state @fc1.weight.m of @fc1.weight : tensor<10x4xf32> zeros
// S1: zero.state @fc1.weight.m of @fc1.weight : !zero.sharded<10x4xf32, @dp, dim = 0> zeros
// S2: zero.state @fc1.weight.m of @fc1.weight : !zero.sharded<10x4xf32, @dp, dim = 0> zeros
// S3: zero.state @fc1.weight.m of @fc1.weight : !zero.sharded<10x4xf32, @dp, dim = 0> zeros
zero.state @fc1.weight.m of @fc1.weight : tensor<10x4xf32> zeros

// The norm is of the whole gradient at stage 0, of the shards after that.
// S0: zero.across = "same", zero.output = "grad_norm_sq"
// S1: zero.across = "sum", zero.output = "grad_norm_sq"
// S2: zero.across = "sum", zero.output = "grad_norm_sq"
// S3: zero.across = "sum", zero.output = "grad_norm_sq"
func.func @step(%x: tensor<8x4xf32> {zero.input = "x"}, %labels: tensor<8xi64> {zero.input = "labels"},
                %lr: tensor<f32> {zero.hyper = "lr"})
    -> (tensor<f32> {zero.output = "loss", zero.across = "mean"},
        tensor<f64> {zero.output = "grad_norm_sq", zero.across = "same"}) {
  %w1 = zero.read @fc1.weight : tensor<10x4xf32>
  %b1 = zero.read @fc1.bias : tensor<10xf32>
  %s = zero.read @scale : tensor<f32>
  %w2 = zero.read @fc2.weight : tensor<2x10xf32>
  // Before the first use of the unit, both of its parameters.
  // S0-NOT: zero.all_gather
  // S1-NOT: zero.all_gather
  // S2-NOT: zero.all_gather
  // S3: %[[W1:.*]] = zero.all_gather %[[SHARD:.*]] on @dp : (!zero.sharded<10x4xf32, @dp, dim = 0>) -> tensor<10x4xf32>
  // S3-NEXT: %[[B1:.*]] = zero.all_gather %{{.*}} on @dp : (!zero.sharded<10xf32, @dp, dim = 0>) -> tensor<10xf32>
  // S3-NEXT: train.gemm %{{.*}}, %[[W1]], %[[B1]]
  %h = train.gemm %x, %w1, %b1 {transpose_b} : (tensor<8x4xf32>, tensor<10x4xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  %a = train.mul %h, %s : (tensor<8x10xf32>, tensor<f32>) -> tensor<8x10xf32>
  // S3: %[[W2:.*]] = zero.all_gather %{{.*}} on @dp : (!zero.sharded<2x10xf32, @dp, dim = 0>) -> tensor<2x10xf32>
  // S3-NEXT: train.matmul %{{.*}}, %[[W2]]
  %y = train.matmul %a, %w2 {transpose_b} : (tensor<8x10xf32>, tensor<2x10xf32>) -> tensor<8x2xf32>
  %loss, %lse = train.cross_entropy %y, %labels {axis = 1 : i64} : (tensor<8x2xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>)
  %one = arith.constant dense<1.0> : tensor<f32>
  %dy = train.cross_entropy_grad %one, %y, %labels, %lse {axis = 1 : i64} : (tensor<f32>, tensor<8x2xf32>, tensor<8xi64>, tensor<8xf32>) -> tensor<8x2xf32>
  // S2: %[[DW2:.*]] = train.matmul {{.*}} -> tensor<2x10xf32>
  // S2-NEXT: zero.reduce_scatter %[[DW2]] average on @dp : (tensor<2x10xf32>) -> tensor<1x10xf32>
  // S3: %[[DW2:.*]] = train.matmul {{.*}} -> tensor<2x10xf32>
  // S3-NEXT: zero.reduce_scatter %[[DW2]] average on @dp : (tensor<2x10xf32>) -> tensor<1x10xf32>
  %dw2 = train.matmul %dy, %a {transpose_a} : (tensor<8x2xf32>, tensor<8x10xf32>) -> tensor<2x10xf32>
  // The backward needs fc2 before any other unit: the forward's copy serves.
  // S3-NEXT: train.matmul %{{.*}}, %[[W2]] :
  // FREED: cross_entropy_grad
  // FREED: %[[AGAIN:.*]] = zero.all_gather %{{.*}} -> tensor<2x10xf32>
  // FREED-NEXT: train.matmul %{{.*}}, %[[AGAIN]] :
  %da = train.matmul %dy, %w2 : (tensor<8x2xf32>, tensor<2x10xf32>) -> tensor<8x10xf32>
  %dsa = train.mul %da, %h : tensor<8x10xf32>
  // S2: train.reduce_sum
  // S2-NEXT: zero.all_reduce %{{.*}} average on @dp : (tensor<f32>) -> tensor<f32>
  // S3: train.reduce_sum
  // S3-NEXT: zero.all_reduce %{{.*}} average on @dp : (tensor<f32>) -> tensor<f32>
  %ds = train.reduce_sum %dsa axes [0, 1] : (tensor<8x10xf32>) -> tensor<f32>
  %dh = train.mul %da, %s : (tensor<8x10xf32>, tensor<f32>) -> tensor<8x10xf32>
  %db1 = train.reduce_sum %dh axes [0] : (tensor<8x10xf32>) -> tensor<10xf32>
  // Stages 0 and 1 reduce after the last gradient, in order of completion.
  // S0-NOT: zero.all_reduce
  // S0: %[[DW1:.*]] = train.matmul {{.*}} -> tensor<10x4xf32>
  // S0-NEXT: %[[G2:.*]] = zero.all_reduce %{{.*}} average on @dp : (tensor<2x10xf32>) -> tensor<2x10xf32>
  // S0-NEXT: %[[GS:.*]] = zero.all_reduce %{{.*}} average on @dp : (tensor<f32>) -> tensor<f32>
  // S0-NEXT: %[[GB:.*]] = zero.all_reduce %{{.*}} average on @dp : (tensor<10xf32>) -> tensor<10xf32>
  // S0-NEXT: %[[G1:.*]] = zero.all_reduce %[[DW1]] average on @dp : (tensor<10x4xf32>) -> tensor<10x4xf32>
  // S1-NOT: zero.reduce_scatter
  // S1: %[[DW1:.*]] = train.matmul {{.*}} -> tensor<10x4xf32>
  // S1-NEXT: %[[G2:.*]] = zero.reduce_scatter %{{.*}} average on @dp : (tensor<2x10xf32>) -> tensor<1x10xf32>
  // S1-NEXT: %[[GS:.*]] = zero.all_reduce %{{.*}} average on @dp : (tensor<f32>) -> tensor<f32>
  // S1-NEXT: %[[GB:.*]] = zero.reduce_scatter %{{.*}} average on @dp : (tensor<10xf32>) -> tensor<3xf32>
  // S1-NEXT: %[[G1:.*]] = zero.reduce_scatter %[[DW1]] average on @dp : (tensor<10x4xf32>) -> tensor<3x4xf32>
  // S3: %[[G1:.*]] = zero.reduce_scatter %{{.*}} average on @dp : (tensor<10x4xf32>) -> tensor<3x4xf32>
  %dw1 = train.matmul %dh, %x {transpose_a} : (tensor<8x10xf32>, tensor<8x4xf32>) -> tensor<10x4xf32>
  // A gradient that is not a shard counts once, not once a rank.
  // S0-NEXT: train.sum_squares %[[G1]], %[[GB]], %[[G2]], %[[GS]] :
  // S1-NEXT: %[[REST:.*]] = train.sum_squares %[[GS]] :
  // S1-NEXT: %[[RANKS:.*]] = arith.constant dense<4.0{{.*}}> : tensor<f64>
  // S1-NEXT: %[[SHARE:.*]] = arith.divf %[[REST]], %[[RANKS]]
  // S1-NEXT: %[[SHARDS:.*]] = train.sum_squares %[[G1]], %[[GB]], %[[G2]] :
  // S1-NEXT: %[[NORM:.*]] = arith.addf %[[SHARDS]], %[[SHARE]]
  %n = train.sum_squares %dw1, %db1, %dw2, %ds : (tensor<10x4xf32>, tensor<10xf32>, tensor<2x10xf32>, tensor<f32>) -> tensor<f64>
  %m1 = zero.read @fc1.weight.m : tensor<10x4xf32>
  // S0: train.sgd %{{.*}}, %[[G1]], %{{.*}} {momentum
  // S0-NEXT: zero.assign @fc1.weight, %{{.*}} : tensor<10x4xf32>
  // S0-NEXT: zero.assign @fc1.weight.m, %{{.*}} : tensor<10x4xf32>
  // S1: %[[L:.*]] = zero.local %{{.*}} on @dp : tensor<10x4xf32> -> tensor<3x4xf32>
  // S1-NEXT: %[[M:.*]] = zero.local %{{.*}} on @dp : !zero.sharded<10x4xf32, @dp, dim = 0> -> tensor<3x4xf32>
  // S1-NEXT: %[[P:.*]], %[[N:.*]] = train.sgd %[[L]], %[[G1]], %[[M]]
  // S1-NEXT: %[[F:.*]] = zero.all_gather %[[P]] on @dp : (tensor<3x4xf32>) -> tensor<10x4xf32>
  // S1-NEXT: zero.assign @fc1.weight, %[[F]] : tensor<10x4xf32>
  // S1-NEXT: zero.assign @fc1.weight.m, %[[N]] : tensor<3x4xf32>
  // S3: %[[L:.*]] = zero.local %[[SHARD]] on @dp : !zero.sharded<10x4xf32, @dp, dim = 0> -> tensor<3x4xf32>
  // S3: %[[P:.*]], %[[N:.*]] = train.sgd %[[L]], %[[G1]]
  // S3-NEXT: zero.assign @fc1.weight, %[[P]] : tensor<3x4xf32>
  // S3-NEXT: zero.assign @fc1.weight.m, %[[N]] : tensor<3x4xf32>
  // S3-NOT: zero.all_gather
  %w1n, %m1n = train.sgd %w1, %dw1, %m1, %lr {momentum = 0.9 : f64} : (tensor<10x4xf32>, tensor<10x4xf32>, tensor<10x4xf32>, tensor<f32>) -> (tensor<10x4xf32>, tensor<10x4xf32>)
  zero.assign @fc1.weight, %w1n : tensor<10x4xf32>
  zero.assign @fc1.weight.m, %m1n : tensor<10x4xf32>
  %b1n = train.sgd %b1, %db1, %lr : (tensor<10xf32>, tensor<10xf32>, tensor<f32>) -> tensor<10xf32>
  zero.assign @fc1.bias, %b1n : tensor<10xf32>
  %w2n = train.sgd %w2, %dw2, %lr : (tensor<2x10xf32>, tensor<2x10xf32>, tensor<f32>) -> tensor<2x10xf32>
  zero.assign @fc2.weight, %w2n : tensor<2x10xf32>
  // The scalar is updated whole, with what all ranks agree on.
  // S1: train.sgd %{{.*}}, %[[GS]], %{{.*}} : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  // S1-NEXT: zero.assign @scale
  // S1-NEXT: return %{{.*}}, %[[NORM]]
  %sn = train.sgd %s, %ds, %lr : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  zero.assign @scale, %sn : tensor<f32>
  return %loss, %n : tensor<f32>, tensor<f64>
}
