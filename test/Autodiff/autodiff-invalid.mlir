// What cannot be differentiated, each with the error that says why.
// RUN: zero-opt %s -split-input-file -train-autodiff -verify-diagnostics

// No derivative: the gradient of a gradient helper.
zero.param @w : tensor<4xf32>
func.func @forward() -> (tensor<f32> {zero.output = "loss"}) {
  %w = zero.read @w : tensor<4xf32>
  // expected-error @+1 {{'train.relu_grad' op has no derivative, but a trained parameter reaches the loss through it; freeze the parameters before it or replace it}}
  %0 = train.relu_grad %w, %w : tensor<4xf32>
  %1 = train.reduce_sum %0 axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// The same is no error where no gradient passes.
zero.param @w : tensor<4xf32>
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %w = zero.read @w : tensor<4xf32>
  %0 = train.relu_grad %x, %x : tensor<4xf32>
  %1 = train.mul %0, %w : tensor<4xf32>
  %2 = train.reduce_sum %1 axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

// Saved statistics have no derivative.
zero.param @w : tensor<3x4xf32>
func.func @forward(%s: tensor<4xf32> {zero.input = "s"}) -> (tensor<f32> {zero.output = "loss"}) {
  %w = zero.read @w : tensor<3x4xf32>
  // expected-error @+1 {{'train.layer_norm' op has no derivative by its result 1, but the loss depends on it}}
  %y, %mean, %rstd = train.layer_norm %w, %s {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<3x4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3x1xf32>, tensor<3x1xf32>)
  %1 = train.reduce_sum %mean axes [0, 1] : (tensor<3x1xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// expected-error @+1 {{module has no function @forward}}
module {
}

// -----

// expected-error @+1 {{@forward has 0 rank-0 float outputs, name one with loss=}}
func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{@forward has 2 rank-0 float outputs, name one with loss=}}
func.func @forward(%x: tensor<f32>, %y: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %x, %y : tensor<f32>, tensor<f32>
}

// -----

// expected-error @+1 {{@forward is not straight-line code, expected one block}}
func.func @forward(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
^next:
  return %x : tensor<f32>
}
