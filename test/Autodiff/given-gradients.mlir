// A forward function that computes gradients itself: train-step makes none, and
// adds updates of what the results are marked as. The seed that the function
// takes becomes 1, or the share of a micro-batch, times the loss scale.
// RUN: zero-opt %s -train-step='optimizer=adamw-hf weight-decay=0.5' | FileCheck %s
// RUN: zero-opt %s -train-step='optimizer=adagrad micro-batches=2' | FileCheck %s --check-prefix=MICRO
// RUN: zero-opt %s -train-step='optimizer=sgd loss-scale=4' | FileCheck %s --check-prefix=SCALE

// CHECK: zero.optimizer = "adamw-hf"
// CHECK: zero.state @w.exp_avg of @w
// CHECK: func.func @step(%[[X:.*]]: tensor<4xf32> {zero.input = "x"}, %[[LR:.*]]: tensor<f32> {zero.hyper = "lr"}, %[[STEP:.*]]: tensor<i64> {zero.hyper = "step"})
// CHECK-SAME: -> (tensor<f32> {zero.across = "mean", zero.output = "loss"}, tensor<f64> {zero.across = "same", zero.output = "grad_norm_sq"})
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[W:.*]] = zero.read @w
// CHECK: %[[G:.*]] = train.mul %[[X]], %[[ONE]]
// CHECK: train.sum_squares %[[G]]
// CHECK: train.adam_hat %[[W]], %[[G]], %{{.*}}, %{{.*}}, %[[LR]], %[[STEP]]
// CHECK-SAME: decoupled_decay = 5.000000e-01 : f64
// The other gradient is of a parameter that is frozen.
// CHECK-NOT: train.adam_hat

// MICRO: func.func @accumulate
// MICRO: train.loss_seed {micro_batches = 2 : i64}
// MICRO: func.func @step
// MICRO: train.loss_seed {micro_batches = 2 : i64}
// MICRO: train.adagrad

// SCALE: func.func @step
// SCALE: %[[SEED:.*]] = train.loss_seed scale
// SCALE: train.mul %{{.*}}, %[[SEED]]
zero.param @w : tensor<4xf32>
zero.param @frozen : tensor<4xf32> frozen
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}, %seed: tensor<f32> {zero.input = "s", train.loss_seed})
    -> (tensor<4xf32> {zero.output = "d", train.gradient = "w"}, tensor<1xf32> {zero.output = "l", train.loss},
        tensor<4xf32> {zero.output = "f", train.gradient = "frozen"}) {
  %w = zero.read @w : tensor<4xf32>
  %f = zero.read @frozen : tensor<4xf32>
  %0 = train.mul %w, %x : tensor<4xf32>
  %1 = train.reduce_sum %0 axes [0] {keepdims} : (tensor<4xf32>) -> tensor<1xf32>
  %2 = train.mul %x, %seed : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %2, %1, %f : tensor<4xf32>, tensor<1xf32>, tensor<4xf32>
}
