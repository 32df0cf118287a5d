// Updates of optimizers other than PyTorch's common ones, and what their
// verifiers refuse.
// RUN: zero-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @updates
func.func @updates(%p: tensor<8xf32>, %g: tensor<8xbf16>, %m: tensor<8xf32>, %lr: tensor<f32>, %t: tensor<i64>, %o: tensor<i1>) {
  // CHECK: train.adam_hat %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {beta1 = 9.000000e-01 : f64, beta2 = 5.000000e-01 : f64, epsilon = 1.000000e-03 : f64} : (tensor<8xf32>, tensor<8xbf16>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<i64>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  %0:3 = train.adam_hat %p, %g, %m, %m, %lr, %t {beta1 = 0.9 : f64, beta2 = 0.5 : f64, epsilon = 0.001 : f64}
      : (tensor<8xf32>, tensor<8xbf16>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<i64>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  // CHECK: train.adam_hat %{{.*}} scale %{{.*}} skip %{{.*}} {beta1 = {{.*}}, clip_value = 5.000000e-01 : f64, decoupled_decay = 2.500000e-01 : f64, epsilon = {{.*}}, final_decay = 1.250000e-01 : f64, no_bias_correction, weight_decay = 1.000000e+00 : f64}
  %1:3 = train.adam_hat %p, %g, %m, %m, %lr, %t scale %lr skip %o
      {beta1 = 0.9 : f64, beta2 = 0.5 : f64, epsilon = 0.001 : f64, weight_decay = 1.0 : f64, decoupled_decay = 0.25 : f64,
       final_decay = 0.125 : f64, no_bias_correction, clip_value = 0.5 : f64}
      : (tensor<8xf32>, tensor<8xbf16>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<i64>, tensor<f32>, tensor<i1>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  // CHECK: train.adagrad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {epsilon = 1.000000e-03 : f64, lr_decay = 5.000000e-01 : f64} : (tensor<8xf32>, tensor<8xbf16>, tensor<8xf32>, tensor<f32>, tensor<i64>) -> (tensor<8xf32>, tensor<8xf32>)
  %2:2 = train.adagrad %p, %g, %m, %lr, %t {epsilon = 0.001 : f64, lr_decay = 0.5 : f64}
      : (tensor<8xf32>, tensor<8xbf16>, tensor<8xf32>, tensor<f32>, tensor<i64>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @adam_hat_state(%p: tensor<8xf32>, %q: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @+1 {{'train.adam_hat' op exp_avg_sq has shape [4], expected [8]}}
  %0:3 = train.adam_hat %p, %p, %p, %q, %lr, %t {beta1 = 0.9 : f64, beta2 = 0.9 : f64, epsilon = 1.0e-8 : f64}
      : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>) -> (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>)
  return
}

// -----

func.func @adagrad_state(%p: tensor<8xf32>, %q: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @+1 {{'train.adagrad' op sum has shape [4], expected [8]}}
  %0:2 = train.adagrad %p, %p, %q, %lr, %t {epsilon = 1.0e-8 : f64}
      : (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>) -> (tensor<8xf32>, tensor<4xf32>)
  return
}

// -----

func.func @adagrad_momentum(%p: tensor<8xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @+1 {{'train.adagrad' op has a momentum operand but no momentum}}
  %0:2 = train.adagrad %p, %p, %p, %lr, %t momentum %lr {epsilon = 1.0e-8 : f64}
      : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}
