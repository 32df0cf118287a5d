// The whole step: arguments, results, symbols, the order of its parts.
// RUN: zero-opt %s -train-step='loss=cross-entropy optimizer=sgd momentum=0.9' -verify-diagnostics | FileCheck %s

// CHECK: module attributes {zero.optimizer = "sgd"}
// CHECK: zero.param @w
// CHECK: zero.param @unused
// States follow the last parameter, in the order of the parameters.
// CHECK: zero.param @running
// CHECK-NEXT: zero.state @w.momentum of @w : tensor<10x64xf32> zeros
// CHECK-NEXT: zero.state @b.momentum of @b : tensor<10xf32> zeros
// CHECK-NEXT: func.func @step(
zero.param @w : tensor<10x64xf32> unit("fc")
zero.param @b : tensor<10xf32> unit("fc")
// expected-remark @+1 {{parameter @unused is not updated: the loss does not depend on it}}
zero.param @unused : tensor<10xf32>
// expected-remark @+1 {{parameter @aside is not updated: the loss does not depend on it}}
zero.param @aside : tensor<64xf32>
zero.param @scale : tensor<64xf32> frozen
zero.param @running : tensor<64xf32> zeros buffer

// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<8x64xf32> {zero.input = "x"}, %[[LABELS:.*]]: tensor<8xi64> {zero.input = "labels"}, %[[LR:.*]]: tensor<f32> {zero.hyper = "lr"}, %[[STEP:.*]]: tensor<i64> {zero.hyper = "step"})
// CHECK-SAME: -> (tensor<f32> {zero.across = "mean", zero.output = "loss"}, tensor<f64> {zero.across = "same", zero.output = "grad_norm_sq"}) {
func.func @forward(%x: tensor<8x64xf32> {zero.input = "x"})
    -> (tensor<8x10xf32> {zero.output = "logits"}, tensor<8xi64> {zero.output = "other"}) {
  // CHECK: %[[W:.*]] = zero.read @w
  // CHECK: %[[B:.*]] = zero.read @b
  %w = zero.read @w : tensor<10x64xf32>
  %b = zero.read @b : tensor<10xf32>
  %f = zero.read @scale : tensor<64xf32>
  // CHECK: %[[Z:.*]] = train.mul %[[X]]
  %z = train.mul %x, %f : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
  // What the forward pass assigns stays, and what only it needs.
  // CHECK: %[[MEAN:.*]] = train.reduce_mean
  // CHECK: zero.assign @running, %[[MEAN]]
  %m = train.reduce_mean %z axes [0] : (tensor<8x64xf32>) -> tensor<64xf32>
  zero.assign @running, %m : tensor<64xf32>
  // CHECK: %[[Y:.*]] = train.gemm
  %y = train.gemm %z, %w, %b {transpose_b} : (tensor<8x64xf32>, tensor<10x64xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  // Other outputs disappear with what leads to them.
  // CHECK-NOT: @aside
  %aside = zero.read @aside : tensor<64xf32>
  %other = train.cast %aside : tensor<64xf32> to tensor<64xi64>
  %short = train.slice %other starts [0] limits [8] strides [1] : (tensor<64xi64>) -> tensor<8xi64>
  // CHECK: %[[LOSS:.*]], %[[LSE:.*]] = train.cross_entropy %[[Y]], %[[LABELS]] {axis = 1 : i64}
  // CHECK: %[[ONE:.*]] = arith.constant dense<1.0
  // CHECK: %[[DY:.*]] = train.cross_entropy_grad %[[ONE]], %[[Y]], %[[LABELS]], %[[LSE]] {axis = 1 : i64}
  // CHECK: %[[DW:.*]] = train.matmul %[[DY]], %[[Z]] {transpose_a}
  // CHECK: %[[DB:.*]] = train.reduce_sum %[[DY]] axes [0]
  // CHECK: %[[NORM:.*]] = train.sum_squares %[[DW]], %[[DB]]
  // CHECK: %[[WM:.*]] = zero.read @w.momentum : tensor<10x64xf32>
  // CHECK: %[[W1:.*]], %[[WM1:.*]] = train.sgd %[[W]], %[[DW]], %[[WM]], %[[LR]] {momentum = 9.000000e-01 : f64}
  // CHECK: zero.assign @w, %[[W1]]
  // CHECK: zero.assign @w.momentum, %[[WM1]]
  // CHECK: %[[BM:.*]] = zero.read @b.momentum : tensor<10xf32>
  // CHECK: %[[B1:.*]], %[[BM1:.*]] = train.sgd %[[B]], %[[DB]], %[[BM]], %[[LR]] {momentum = 9.000000e-01 : f64}
  // CHECK: zero.assign @b, %[[B1]]
  // CHECK: zero.assign @b.momentum, %[[BM1]]
  // CHECK: return %[[LOSS]], %[[NORM]] : tensor<f32>, tensor<f64>
  return %y, %short : tensor<8x10xf32>, tensor<8xi64>
}
