// Each optimizer with its defaults, which are PyTorch's, and with all options.
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=sgd' | FileCheck %s --check-prefix=SGD
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=sgd momentum=0.5 dampening=0.25 weight-decay=0.125' | FileCheck %s --check-prefix=DAMPENED
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=sgd momentum=0.5 nesterov' | FileCheck %s --check-prefix=NESTEROV
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=adam' | FileCheck %s --check-prefix=ADAM
// RUN: zero-opt %s -train-step='loss=output:loss' | FileCheck %s --check-prefix=ADAMW
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=adamw beta1=0.5 beta2=0.75 epsilon=0.125 weight-decay=0' | FileCheck %s --check-prefix=OPTIONS
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=none' | FileCheck %s --check-prefix=NO-UPDATE

// SGD: zero.optimizer = "sgd"
// SGD-NOT: zero.state
// SGD: func.func @step(%[[LR:[a-z0-9]*]]: tensor<f32> {zero.hyper = "lr"}, %[[STEP:.*]]: tensor<i64> {zero.hyper = "step"})
// SGD: %[[W:.*]] = zero.read @w
// SGD: %[[W1:.*]] = train.sgd %[[W]], %{{.*}}, %[[LR]] : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// SGD: zero.assign @w, %[[W1]]
// SGD-NOT: zero.assign

// DAMPENED: func.func @step(%[[LR:[a-z0-9]*]]: tensor<f32> {zero.hyper = "lr"}, %[[STEP:.*]]: tensor<i64> {zero.hyper = "step"})
// DAMPENED: train.sgd %{{.*}}, %{{.*}}, %{{.*}}, %[[LR]], %[[STEP]] {dampening = 2.500000e-01 : f64, momentum = 5.000000e-01 : f64, weight_decay = 1.250000e-01 : f64}

// NESTEROV: train.sgd %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {momentum = 5.000000e-01 : f64, nesterov}

// ADAM: zero.optimizer = "adam"
// ADAM: zero.state @w.exp_avg of @w : tensor<4xf32> zeros
// ADAM-NEXT: zero.state @w.exp_avg_sq of @w : tensor<4xf32> zeros
// ADAM: func.func @step(%[[LR:[a-z0-9]*]]: tensor<f32> {zero.hyper = "lr"}, %[[STEP:.*]]: tensor<i64> {zero.hyper = "step"})
// ADAM: %[[W:.*]] = zero.read @w
// ADAM: %[[M:.*]] = zero.read @w.exp_avg
// ADAM: %[[V:.*]] = zero.read @w.exp_avg_sq
// ADAM: %[[W1:.*]], %[[M1:.*]], %[[V1:.*]] = train.adam %[[W]], %{{.*}}, %[[M]], %[[V]], %[[LR]], %[[STEP]]
// ADAM-SAME: {beta1 = 9.000000e-01 : f64, beta2 = 0.99899999999999999 : f64, epsilon = 1.000000e-08 : f64, weight_decay = 0.000000e+00 : f64}
// ADAM: zero.assign @w, %[[W1]]
// ADAM: zero.assign @w.exp_avg, %[[M1]]
// ADAM: zero.assign @w.exp_avg_sq, %[[V1]]

// ADAMW: zero.optimizer = "adamw"
// ADAMW: train.adamw
// ADAMW-SAME: {beta1 = 9.000000e-01 : f64, beta2 = 0.99899999999999999 : f64, epsilon = 1.000000e-08 : f64, weight_decay = 1.000000e-02 : f64}

// OPTIONS: train.adamw
// OPTIONS-SAME: {beta1 = 5.000000e-01 : f64, beta2 = 7.500000e-01 : f64, epsilon = 1.250000e-01 : f64, weight_decay = 0.000000e+00 : f64}

// Without an optimizer the gradients are outputs.
// NO-UPDATE: zero.optimizer = "none"
// NO-UPDATE: func.func @step
// NO-UPDATE-SAME: tensor<4xf32> {zero.across = "mean", zero.output = "grad.w"})
// NO-UPDATE: %[[DW:.*]] = train.mul
// NO-UPDATE: %[[N:.*]] = train.sum_squares %[[DW]]
// NO-UPDATE-NOT: zero.assign
// NO-UPDATE: return %{{.*}}, %[[N]], %[[DW]]
zero.param @w : tensor<4xf32>
func.func @forward() -> (tensor<f32> {zero.output = "loss"}) {
  %w = zero.read @w : tensor<4xf32>
  %0 = train.exp %w : tensor<4xf32>
  %1 = train.reduce_sum %0 axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
