// A step of several micro-batches: the function of those before the last, the
// sums, what the last one does with them.
// RUN: zero-opt %s --train-accumulate=steps=4 --verify-roundtrip | FileCheck %s
// RUN: zero-opt %s --train-accumulate=steps=4 --zero-verify -o /dev/null
// RUN: zero-opt %s --train-accumulate=steps=1 | FileCheck %s --check-prefix=ONE

// CHECK: module attributes {zero.micro_batches = 4 : i64}
// ONE-NOT: micro_batches
// ONE-NOT: accumulat

// CHECK: zero.state @w.grad of @w : tensor<10x4xf32> zeros accumulator
// CHECK-NEXT: zero.state @b.grad of @b : tensor<10xf32> zeros accumulator
// CHECK-NEXT: zero.state @loss_sum : tensor<f32> zeros accumulator
zero.param @w : tensor<10x4xf32>
zero.param @b : tensor<10xbf16>
zero.param @running : tensor<4xf32> zeros buffer

// Nothing but data comes in, nothing goes out, and nothing is updated but
// buffers and sums.
// CHECK-LABEL: func.func @accumulate(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<8x4xf32> {zero.input = "x"}, %{{.*}}: tensor<8xi64> {zero.input = "labels"}) {
// CHECK-DAG: %[[SEED:.*]] = train.loss_seed {micro_batches = 4 : i64} : () -> tensor<f32>
// CHECK: zero.assign @running
// CHECK: %[[LOSS:.*]], %{{.*}} = train.cross_entropy
// CHECK-NEXT: %[[LS:.*]] = zero.read @loss_sum
// CHECK-NEXT: %[[L:.*]] = train.accumulate %[[LS]], %[[LOSS]]
// CHECK-NEXT: zero.assign @loss_sum, %[[L]]
// CHECK: %[[DW:.*]] = train.matmul
// CHECK-NEXT: %[[WS:.*]] = zero.read @w.grad
// CHECK-NEXT: %[[W:.*]] = train.accumulate %[[WS]], %[[DW]] : (tensor<10x4xf32>, tensor<10x4xf32>) -> tensor<10x4xf32>
// CHECK-NEXT: zero.assign @w.grad, %[[W]]
// A narrow gradient is added to a sum that is not.
// CHECK: train.accumulate %{{.*}}, %{{.*}} : (tensor<10xf32>, tensor<10xbf16>) -> tensor<10xf32>
// CHECK-NOT: zero.assign @w,
// CHECK-NOT: sum_squares
// CHECK: return{{$}}

// CHECK-LABEL: func.func @step(
// CHECK-SAME: %{{.*}}: tensor<f32> {zero.hyper = "lr"}) -> (tensor<f32> {zero.across = "mean", zero.output = "loss"}, tensor<f64> {zero.across = "same", zero.output = "grad_norm_sq"})
func.func @step(%x: tensor<8x4xf32> {zero.input = "x"}, %labels: tensor<8xi64> {zero.input = "labels"}, %lr: tensor<f32> {zero.hyper = "lr"})
    -> (tensor<f32> {zero.output = "loss", zero.across = "mean"},
        tensor<f64> {zero.output = "grad_norm_sq", zero.across = "same"}) {
  // CHECK: train.loss_seed {micro_batches = 4 : i64}
  %seed = train.loss_seed : () -> tensor<f32>
  %w = zero.read @w : tensor<10x4xf32>
  %b = zero.read @b : tensor<10xbf16>
  // CHECK: zero.assign @running
  %m = train.reduce_mean %x axes [0] : (tensor<8x4xf32>) -> tensor<4xf32>
  zero.assign @running, %m : tensor<4xf32>
  %bf = train.cast %b : tensor<10xbf16> to tensor<10xf32>
  %y = train.gemm %x, %w, %bf {transpose_b} : (tensor<8x4xf32>, tensor<10x4xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  // The loss is the mean of all micro-batches.
  // CHECK: %[[LOSS:.*]], %{{.*}} = train.cross_entropy
  // CHECK: %[[SUM:.*]] = train.accumulate %{{.*}}, %[[LOSS]]
  // CHECK: %[[COUNT:.*]] = arith.constant dense<4.000000e+00> : tensor<f32>
  // CHECK: %[[MEAN:.*]] = train.div %[[SUM]], %[[COUNT]]
  %loss, %lse = train.cross_entropy %y, %labels {axis = 1 : i64} : (tensor<8x10xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>)
  %dy = train.cross_entropy_grad %seed, %y, %labels, %lse {axis = 1 : i64} : (tensor<f32>, tensor<8x10xf32>, tensor<8xi64>, tensor<8xf32>) -> tensor<8x10xf32>
  // CHECK: %[[WG:.*]] = train.accumulate %{{.*}} : (tensor<10x4xf32>, tensor<10x4xf32>) -> tensor<10x4xf32>
  %dw = train.matmul %dy, %x {transpose_a} : (tensor<8x10xf32>, tensor<8x4xf32>) -> tensor<10x4xf32>
  %dbf = train.reduce_sum %dy axes [0] : (tensor<8x10xf32>) -> tensor<10xf32>
  // CHECK: %[[BG:.*]] = train.accumulate %{{.*}} : (tensor<10xf32>, tensor<10xbf16>) -> tensor<10xf32>
  %db = train.cast %dbf : tensor<10xf32> to tensor<10xbf16>
  // CHECK: train.sum_squares %[[WG]], %[[BG]]
  %n = train.sum_squares %dw, %db : (tensor<10x4xf32>, tensor<10xbf16>) -> tensor<f64>
  // CHECK: train.sgd %{{.*}}, %[[WG]], %{{.*}}
  %w1 = train.sgd %w, %dw, %lr : (tensor<10x4xf32>, tensor<10x4xf32>, tensor<f32>) -> tensor<10x4xf32>
  zero.assign @w, %w1 : tensor<10x4xf32>
  // CHECK: train.sgd %{{.*}}, %[[BG]], %{{.*}} : (tensor<10xbf16>, tensor<10xf32>, tensor<f32>) -> tensor<10xbf16>
  %b1 = train.sgd %b, %db, %lr : (tensor<10xbf16>, tensor<10xbf16>, tensor<f32>) -> tensor<10xbf16>
  zero.assign @b, %b1 : tensor<10xbf16>
  // CHECK: zero.assign @w.grad, %{{.*}} : tensor<10x4xf32>
  // CHECK: zero.assign @b.grad, %{{.*}} : tensor<10xf32>
  // CHECK: zero.assign @loss_sum, %{{.*}} : tensor<f32>
  // CHECK: return %[[MEAN]]
  return %loss, %n : tensor<f32>, tensor<f64>
}
