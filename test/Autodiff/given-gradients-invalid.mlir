// Gradients that a forward function computes itself and that make no step.
// RUN: zero-opt %s -split-input-file -verify-diagnostics -train-step='optimizer=sgd'
// RUN: not zero-opt %S/given-gradients.mlir -train-step='optimizer=sgd precision=bf16' 2>&1 | FileCheck %s --check-prefix=PRECISION
// PRECISION: @forward has gradients of its own, in its own types

zero.param @w : tensor<4xf32>
// expected-error @+1 {{@forward has gradients of its own but no result marked train.loss that is one float number}}
func.func @forward() -> (tensor<4xf32> {train.gradient = "w"}) {
  %w = zero.read @w : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

zero.param @w : tensor<4xf32>
// expected-error @+1 {{result 1 is marked as the gradient of @v, which is no parameter of its type}}
func.func @forward(%l: tensor<f32>) -> (tensor<f32> {train.loss}, tensor<4xf32> {train.gradient = "v"}) {
  %w = zero.read @w : tensor<4xf32>
  return %l, %w : tensor<f32>, tensor<4xf32>
}

// -----

zero.param @w : tensor<4xf32> frozen
// expected-error @+1 {{@forward has gradients of its own, but of no parameter that is trained and used}}
func.func @forward(%l: tensor<f32>) -> (tensor<f32> {train.loss}, tensor<4xf32> {train.gradient = "w"}) {
  %w = zero.read @w : tensor<4xf32>
  return %l, %w : tensor<f32>, tensor<4xf32>
}
