// A gradient that is reduced in a wider type than it is computed in is complete
// as soon as the narrow one is: from stage 2 on it is cast and reduced there,
// before the rest of the backward pass, although its cast stands at the end.
// RUN: zero-opt %s --zero-partition=stage=2 | FileCheck %s --check-prefix=EARLY
// RUN: zero-opt %s --zero-partition=stage=1 | FileCheck %s --check-prefix=LATE

// EARLY: %[[G2:.*]] = train.matmul %{{.*}}, %{{.*}} {transpose_a}
// EARLY-NEXT: %[[C2:.*]] = train.cast %[[G2]] : tensor<4x4xbf16> to tensor<4x4xf32>
// EARLY-NEXT: zero.reduce_scatter %[[C2]] average
// EARLY: train.matmul %{{.*}}, %{{.*}} {transpose_b}
// EARLY: zero.reduce_scatter

// LATE: train.matmul %{{.*}}, %{{.*}} {transpose_b}
// LATE: train.cast
// LATE: train.cast
// LATE: zero.reduce_scatter
// LATE: zero.reduce_scatter
shard.grid @dp(shape = 2)
zero.param @w1 : tensor<4x4xf32>
zero.param @w2 : tensor<4x4xf32>
func.func @step(%x: tensor<8x4xbf16> {zero.input = "x"}, %dy: tensor<8x4xbf16> {zero.input = "dy"},
                %lr: tensor<f32> {zero.hyper = "lr"}) {
  %w1 = zero.read @w1 : tensor<4x4xf32>
  %w2 = zero.read @w2 : tensor<4x4xf32>
  %n1 = train.cast %w1 : tensor<4x4xf32> to tensor<4x4xbf16>
  %n2 = train.cast %w2 : tensor<4x4xf32> to tensor<4x4xbf16>
  %h = train.matmul %x, %n1 : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %d2 = train.matmul %h, %dy {transpose_a} : (tensor<8x4xbf16>, tensor<8x4xbf16>) -> tensor<4x4xbf16>
  %dh = train.matmul %dy, %n2 {transpose_b} : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %d1 = train.matmul %x, %dh {transpose_a} : (tensor<8x4xbf16>, tensor<8x4xbf16>) -> tensor<4x4xbf16>
  %g1 = train.cast %d1 : tensor<4x4xbf16> to tensor<4x4xf32>
  %g2 = train.cast %d2 : tensor<4x4xbf16> to tensor<4x4xf32>
  %u1 = train.sgd %w1, %g1, %lr : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  zero.assign @w1, %u1 : tensor<4x4xf32>
  %u2 = train.sgd %w2, %g2, %lr : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  zero.assign @w2, %u2 : tensor<4x4xf32>
  return
}
