// The derivatives of the gradients of convolutions, which transposed
// convolutions are made of, and of poolings with all their attributes.
// RUN: zero-opt %s -split-input-file -train-autodiff=inputs -canonicalize | FileCheck %s

// All three convolutions are each other's derivatives.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[G:[a-z0-9]*]]: tensor<2x6x5xf32> {zero.input = "g"}, %[[W:.*]]: tensor<6x2x3xf32> {zero.input = "w"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} to tensor<2x4x10xf32>
// CHECK: %[[DG:.*]] = train.conv %[[DY]], %[[W]] strides [2] pads [0, 1] dilations [1] group 2 : (tensor<2x4x10xf32>, tensor<6x2x3xf32>) -> tensor<2x6x5xf32>
// CHECK: %[[DW:.*]] = train.conv_grad_weight %[[G]], %[[DY]] weight_shape [6, 2, 3] strides [2] pads [0, 1] dilations [1] group 2
// CHECK: return %{{.*}}, %[[DG]], %[[DW]]
func.func @forward(%g: tensor<2x6x5xf32> {zero.input = "g"}, %w: tensor<6x2x3xf32> {zero.input = "w"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.conv_grad_input %g, %w input_shape [2, 4, 10] strides [2] pads [0, 1] dilations [1] group 2 : (tensor<2x6x5xf32>, tensor<6x2x3xf32>) -> tensor<2x4x10xf32>
  %loss = train.reduce_sum %y axes [0, 1, 2] : (tensor<2x4x10xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[G:[a-z0-9]*]]: tensor<2x6x5xf32> {zero.input = "g"}, %[[X:.*]]: tensor<2x4x10xf32> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} to tensor<6x4x3xf32>
// CHECK: %[[DG:.*]] = train.conv %[[X]], %[[DY]] strides [2] pads [0, 1] dilations [1] : (tensor<2x4x10xf32>, tensor<6x4x3xf32>) -> tensor<2x6x5xf32>
// CHECK: %[[DX:.*]] = train.conv_grad_input %[[G]], %[[DY]] input_shape [2, 4, 10] strides [2] pads [0, 1] dilations [1]
// CHECK: return %{{.*}}, %[[DG]], %[[DX]]
func.func @forward(%g: tensor<2x6x5xf32> {zero.input = "g"}, %x: tensor<2x4x10xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.conv_grad_weight %g, %x weight_shape [6, 4, 3] strides [2] pads [0, 1] dilations [1] : (tensor<2x6x5xf32>, tensor<2x4x10xf32>) -> tensor<6x4x3xf32>
  %loss = train.reduce_sum %y axes [0, 1, 2] : (tensor<6x4x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK: train.max_pool_grad %{{.*}}, %{{.*}} kernel [2] strides [2] pads [0, 0] dilations [1] {ceil_mode} : (tensor<2x4x4xf32>, tensor<2x4x7xf32>) -> tensor<2x4x7xf32>
func.func @forward(%x: tensor<2x4x7xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.max_pool %x kernel [2] strides [2] pads [0, 0] dilations [1] {ceil_mode} : (tensor<2x4x7xf32>) -> tensor<2x4x4xf32>
  %loss = train.reduce_sum %y axes [0, 1, 2] : (tensor<2x4x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK: train.avg_pool_grad %{{.*}} input_shape [2, 4, 7] kernel [2] strides [2] pads [0, 0] dilations [1] {ceil_mode, divisor = 3 : i64} : (tensor<2x4x4xf32>) -> tensor<2x4x7xf32>
func.func @forward(%x: tensor<2x4x7xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.avg_pool %x kernel [2] strides [2] pads [0, 0] dilations [1] {ceil_mode, divisor = 3 : i64} : (tensor<2x4x7xf32>) -> tensor<2x4x4xf32>
  %loss = train.reduce_sum %y axes [0, 1, 2] : (tensor<2x4x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
