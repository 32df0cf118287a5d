// Micro-batches divide the gradient by the loss, which this function does not
// take.
// RUN: zero-opt %s -verify-diagnostics -train-step='optimizer=sgd micro-batches=2'

zero.param @w : tensor<4xf32>
// expected-error @+1 {{@forward has gradients of its own but no argument marked train.loss_seed, which micro-batches and a loss scale need}}
func.func @forward(%l: tensor<f32>) -> (tensor<f32> {train.loss}, tensor<4xf32> {train.gradient = "w"}) {
  %w = zero.read @w : tensor<4xf32>
  return %l, %w : tensor<f32>, tensor<4xf32>
}
