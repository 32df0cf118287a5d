// Parameters that are special: tied, frozen, unused, buffers; gradients with
// several uses; one rank.
// RUN: zero-opt %s --split-input-file --zero-partition=stage=3 | FileCheck %s
// RUN: zero-opt %s --split-input-file --zero-partition=stage=1 | FileCheck %s --check-prefix=S1

shard.grid @dp(shape = 4)
zero.param @tied : tensor<10x4xf32> tied("head.weight")

// A tied parameter is read twice and gathered once a phase; its gradient, the
// sum of two, is reduced once.
// CHECK-LABEL: func.func @tied_step
// CHECK: %[[S:.*]] = zero.read @tied
// CHECK-NEXT: %[[W:.*]] = zero.all_gather %[[S]]
// CHECK-NEXT: train.gather %[[W]]
// CHECK-NEXT: train.matmul %{{.*}}, %[[W]]
// CHECK-NOT: zero.read
// CHECK: %[[SUM:.*]] = train.add
// CHECK-NEXT: %[[G:.*]] = zero.reduce_scatter %[[SUM]] average
// CHECK-NOT: zero.reduce_scatter
// CHECK: train.sgd %{{.*}}, %[[G]]
func.func @tied_step(%ids: tensor<8xi64> {zero.input = "ids"}, %dy: tensor<8x10xf32> {zero.input = "dy"}, %lr: tensor<f32> {zero.hyper = "lr"}) -> tensor<8x10xf32> {
  %a = zero.read @tied : tensor<10x4xf32>
  %e = train.gather %a, %ids axis 0 : (tensor<10x4xf32>, tensor<8xi64>) -> tensor<8x4xf32>
  %b = zero.read @tied : tensor<10x4xf32>
  %y = train.matmul %e, %b {transpose_b} : (tensor<8x4xf32>, tensor<10x4xf32>) -> tensor<8x10xf32>
  %d0 = train.matmul %dy, %e {transpose_a} : (tensor<8x10xf32>, tensor<8x4xf32>) -> tensor<10x4xf32>
  %de = train.matmul %dy, %b : (tensor<8x10xf32>, tensor<10x4xf32>) -> tensor<8x4xf32>
  %d1 = train.gather_grad %de, %ids axis 0 data_shape [10, 4] : (tensor<8x4xf32>, tensor<8xi64>) -> tensor<10x4xf32>
  %d = train.add %d0, %d1 : tensor<10x4xf32>
  %n = train.sgd %a, %d, %lr : (tensor<10x4xf32>, tensor<10x4xf32>, tensor<f32>) -> tensor<10x4xf32>
  zero.assign @tied, %n : tensor<10x4xf32>
  return %y : tensor<8x10xf32>
}

// -----

// Frozen and unused parameters are cut too; nobody gathers the unused one, and
// nothing is reduced for either. A buffer stays whole and each rank's own.
shard.grid @dp(shape = 4)
// CHECK: zero.param @frozen : !zero.sharded<4x4xf32, @dp, dim = 0> frozen
// S1: zero.param @frozen : tensor<4x4xf32> frozen
zero.param @frozen : tensor<4x4xf32> frozen
// CHECK: zero.param @unused : !zero.sharded<5xf32, @dp, dim = 0>
zero.param @unused : tensor<5xf32>
// CHECK: zero.param @mean : tensor<4xf32> zeros buffer
zero.param @mean : tensor<4xf32> zeros buffer
zero.param @b : tensor<4xf32>

// CHECK-LABEL: func.func @special
// CHECK: zero.all_gather {{.*}} -> tensor<4x4xf32>
// CHECK: zero.reduce_scatter {{.*}} (tensor<4xf32>) -> tensor<1xf32>
// CHECK-NOT: zero.reduce_scatter
// CHECK: zero.assign @mean, %{{.*}} : tensor<4xf32>
func.func @special(%x: tensor<8x4xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) -> tensor<8x4xf32> {
  %f = zero.read @frozen : tensor<4x4xf32>
  %b = zero.read @b : tensor<4xf32>
  %y = train.gemm %x, %f, %b {transpose_b} : (tensor<8x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %db = train.reduce_sum %y axes [0] : (tensor<8x4xf32>) -> tensor<4xf32>
  %m = zero.read @mean : tensor<4xf32>
  %m1 = train.add %m, %db : tensor<4xf32>
  zero.assign @mean, %m1 : tensor<4xf32>
  %n = train.sgd %b, %db, %lr : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  zero.assign @b, %n : tensor<4xf32>
  return %y : tensor<8x4xf32>
}

// -----

// A gradient that the backward itself goes on with: only the update and the
// norm see the reduced one. A norm with another user than the caller is added up.
shard.grid @dp(shape = 4)
zero.param @w : tensor<10xf32>
zero.param @v : tensor<10xf32>

// CHECK-LABEL: func.func @several
// CHECK: %[[DW:.*]] = train.mul
// CHECK-NEXT: %[[G:.*]] = zero.reduce_scatter %[[DW]] average
// CHECK-NEXT: %[[DV:.*]] = train.exp %[[DW]]
// CHECK-NEXT: %[[H:.*]] = zero.reduce_scatter %[[DV]] average
// CHECK: %[[N:.*]] = train.sum_squares %[[G]], %[[H]] : (tensor<3xf32>, tensor<3xf32>)
// CHECK-NEXT: %[[ALL:.*]] = zero.all_reduce %[[N]] on @dp : (tensor<f64>) -> tensor<f64>
// CHECK-NEXT: train.sqrt %[[ALL]]
func.func @several(%x: tensor<10xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"})
    -> (tensor<f64> {zero.output = "norm", zero.across = "same"}) {
  %w = zero.read @w : tensor<10xf32>
  %v = zero.read @v : tensor<10xf32>
  %dw = train.mul %x, %x : tensor<10xf32>
  %dv = train.exp %dw : tensor<10xf32>
  %n = train.sum_squares %dw, %dv : (tensor<10xf32>, tensor<10xf32>) -> tensor<f64>
  %r = train.sqrt %n : tensor<f64>
  %wn = train.sgd %w, %dw, %lr : (tensor<10xf32>, tensor<10xf32>, tensor<f32>) -> tensor<10xf32>
  zero.assign @w, %wn : tensor<10xf32>
  %vn = train.sgd %v, %dv, %lr : (tensor<10xf32>, tensor<10xf32>, tensor<f32>) -> tensor<10xf32>
  zero.assign @v, %vn : tensor<10xf32>
  return %r : tensor<f64>
}

// -----

// One rank owns everything; the step has the same form.
shard.grid @dp(shape = 1)
zero.param @w : tensor<10xf32>

// CHECK-LABEL: func.func @one_rank
// CHECK: zero.reduce_scatter {{.*}} : (tensor<10xf32>) -> tensor<10xf32>
// CHECK: zero.local %{{.*}} on @dp : !zero.sharded<10xf32, @dp, dim = 0> -> tensor<10xf32>
func.func @one_rank(%x: tensor<10xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
  %w = zero.read @w : tensor<10xf32>
  %dw = train.mul %x, %w : tensor<10xf32>
  %wn = train.sgd %w, %dw, %lr : (tensor<10xf32>, tensor<10xf32>, tensor<f32>) -> tensor<10xf32>
  zero.assign @w, %wn : tensor<10xf32>
  return
}

// -----

// Updates that stand in the backward: where gradients are reduced together, they
// move behind the reductions; the others stay.
shard.grid @dp(shape = 4)
zero.param @w : tensor<10xf32>
zero.param @v : tensor<10xf32>

// CHECK-LABEL: func.func @interleaved
// CHECK: zero.reduce_scatter
// CHECK: train.sgd
// CHECK: train.exp
// CHECK: zero.reduce_scatter
// S1-LABEL: func.func @interleaved
// S1: train.exp
// S1-NEXT: %[[G:.*]] = zero.reduce_scatter
// S1-NEXT: %[[H:.*]] = zero.reduce_scatter
// S1: train.sgd %{{.*}}, %[[H]]
// S1: zero.assign @v
// S1: train.sgd %{{.*}}, %[[G]]
// S1: zero.assign @w
func.func @interleaved(%x: tensor<10xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
  %w = zero.read @w : tensor<10xf32>
  %v = zero.read @v : tensor<10xf32>
  %dw = train.mul %x, %x : tensor<10xf32>
  %wn = train.sgd %w, %dw, %lr : (tensor<10xf32>, tensor<10xf32>, tensor<f32>) -> tensor<10xf32>
  zero.assign @w, %wn : tensor<10xf32>
  %dv = train.exp %x : tensor<10xf32>
  %vn = train.sgd %v, %dv, %lr : (tensor<10xf32>, tensor<10xf32>, tensor<f32>) -> tensor<10xf32>
  zero.assign @v, %vn : tensor<10xf32>
  return
}
