// The derivatives of products and of log-sum-exp along axes.
// RUN: zero-opt %s -split-input-file -train-autodiff=inputs -canonicalize | FileCheck %s

// The product of the other elements: zeros are left out of the product, and
// count at most their own place.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:.*]]: tensor<3x4xf32> {zero.input = "x"})
// CHECK: %[[ZERO:.*]] = train.equal %[[X]], %{{.*}}
// CHECK: %[[NUMBER:.*]] = train.cast %[[ZERO]]
// CHECK: %[[COUNT:.*]] = train.reduce_sum %[[NUMBER]] axes [1] {keepdims}
// CHECK: %[[OTHERS:.*]] = train.where %[[ZERO]], %{{.*}}, %[[X]]
// CHECK: %[[PRODUCT:.*]] = train.reduce_prod %[[OTHERS]] axes [1] {keepdims}
// CHECK: %[[SLOPE:.*]] = train.div %[[PRODUCT]], %[[OTHERS]]
// CHECK: %[[LEFT:.*]] = train.sub %[[COUNT]], %{{.*}}
// CHECK: %[[NONE:.*]] = train.equal %[[LEFT]], %{{.*}}
// CHECK: %[[DX:.*]] = train.where %[[NONE]], %{{.*}}, %{{.*}}
// CHECK: return %{{.*}}, %[[DX]]
func.func @forward(%x: tensor<3x4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.reduce_prod %x axes [1] : (tensor<3x4xf32>) -> tensor<3xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A softmax.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:.*]]: tensor<3x4xf32> {zero.input = "x"})
// CHECK: %[[Y:.*]] = train.reduce_log_sum_exp %[[X]] axes [1]
// CHECK: %[[KEPT:.*]] = train.reshape %[[Y]] : tensor<{{.*}}> to tensor<3x1xf32>
// CHECK: %[[SHIFTED:.*]] = train.sub %[[X]], %[[KEPT]]
// CHECK: %[[P:.*]] = train.exp %[[SHIFTED]]
// CHECK: train.mul %{{.*}}, %[[P]]
func.func @forward(%x: tensor<3x4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.reduce_log_sum_exp %x axes [1] : (tensor<3x4xf32>) -> tensor<3xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Normalization keeps its result, not its input.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:.*]]: tensor<3x4xf32> {zero.input = "x"})
// CHECK: %[[Y:.*]], %[[RSTD:.*]] = train.normalize %[[X]] {axis = 1 : i64, epsilon = 1.000000e-01 : f64}
// CHECK: %[[DX:.*]] = train.normalize_grad %{{.*}}, %[[Y]], %[[RSTD]] {axis = 1 : i64}
// CHECK: return %{{.*}}, %[[DX]]
func.func @forward(%x: tensor<3x4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y, %rstd = train.normalize %x {axis = 1 : i64, epsilon = 0.1 : f64} : (tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x1xf32>)
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A loss with weights: each label's own gradient.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:.*]]: tensor<3x4xf32> {zero.input = "x"}, %[[L:.*]]: tensor<3xi64> {zero.input = "l"})
// CHECK: %[[W:.*]] = arith.constant dense<[1.000000e+00
// CHECK: %[[Y:.*]], %[[LSE:.*]] = train.cross_entropy %[[X]], %[[L]], %[[W]] {axis = 1 : i64, reduction = "none"}
// CHECK: train.cross_entropy_grad %{{.*}}, %[[X]], %[[L]], %[[LSE]], %[[W]] {axis = 1 : i64, reduction = "none"} : (tensor<3xf32>, tensor<3x4xf32>, tensor<3xi64>, tensor<3xf32>, tensor<4xf32>) -> tensor<3x4xf32>
func.func @forward(%x: tensor<3x4xf32> {zero.input = "x"}, %l: tensor<3xi64> {zero.input = "l"}) -> (tensor<f32> {zero.output = "loss"}) {
  %w = arith.constant dense<[1.0, 2.0, 0.5, 1.0]> : tensor<4xf32>
  %y, %lse = train.cross_entropy %x, %l, %w {axis = 1 : i64, reduction = "none"} : (tensor<3x4xf32>, tensor<3xi64>, tensor<4xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  %loss = train.reduce_sum %y axes [0] : (tensor<3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
