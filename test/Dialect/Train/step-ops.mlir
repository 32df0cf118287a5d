// Ops of accumulation, loss scaling and schedules, and the controls of updates: print and parse back.
// RUN: zero-opt %s | zero-opt | FileCheck %s
// RUN: zero-opt %s --mlir-print-op-generic | zero-opt | FileCheck %s

// CHECK-LABEL: func @scalars(
func.func @scalars(%s: tensor<f32>, %n: tensor<f64>, %i: tensor<i64>, %o: tensor<i1>) {
  // CHECK: train.loss_seed scale %{{.*}} {micro_batches = 4 : i64} : (tensor<f32>) -> tensor<f32>
  %v0 = train.loss_seed scale %s {micro_batches = 4 : i64} : (tensor<f32>) -> tensor<f32>
  // CHECK: train.loss_seed {micro_batches = 4 : i64} : () -> tensor<f64>
  %v1 = train.loss_seed {micro_batches = 4 : i64} : () -> tensor<f64>
  // CHECK: train.gradient_factor %{{.*}} scale %{{.*}} {max_norm = 1.000000e+00 : f64} : (tensor<f64>, tensor<f32>) -> (tensor<f32>, tensor<f64>, tensor<i1>)
  %v2:3 = train.gradient_factor %n scale %s {max_norm = 1.0 : f64} : (tensor<f64>, tensor<f32>) -> (tensor<f32>, tensor<f64>, tensor<i1>)
  // CHECK: train.gradient_factor %{{.*}} : (tensor<f64>) -> (tensor<f32>, tensor<f64>, tensor<i1>)
  %v3:3 = train.gradient_factor %n : (tensor<f64>) -> (tensor<f32>, tensor<f64>, tensor<i1>)
  // Default values are not printed.
  // CHECK: train.update_loss_scale %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<f32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i1>) -> (tensor<f32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i1>)
  %v4:5 = train.update_loss_scale %s, %i, %i, %i, %o {window = 1000 : i64, hysteresis = 2 : i64} : (tensor<f32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i1>) -> (tensor<f32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i1>)
  // CHECK: train.update_loss_scale %{{.*}} {consecutive_hysteresis, factor = 4.000000e+00 : f64, hysteresis = 1 : i64, min_scale = 5.000000e-01 : f64, window = 5 : i64}
  %v5:5 = train.update_loss_scale %s, %i, %i, %i, %o {consecutive_hysteresis, factor = 4.0 : f64, hysteresis = 1 : i64, min_scale = 0.5 : f64, window = 5 : i64} : (tensor<f32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i1>) -> (tensor<f32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i1>)
  // CHECK: train.next_step %{{.*}}, %{{.*}} : (tensor<i64>, tensor<i1>) -> tensor<i64>
  %v6 = train.next_step %i, %o : (tensor<i64>, tensor<i1>) -> tensor<i64>
  return
}

// CHECK-LABEL: func @schedules(
func.func @schedules(%i: tensor<i64>) {
  // CHECK: train.schedule %{{.*}} <"constant", {lr = 1.000000e-03 : f64}> : tensor<i64> -> tensor<f32>
  %v0 = train.schedule %i <"constant", {lr = 0.001 : f64}> : tensor<i64> -> tensor<f32>
  // CHECK: train.schedule %{{.*}} <"WarmupLR", {lr = 1.000000e-03 : f64, warmup_num_steps = 1.000000e+02 : f64}> {factor = 5.000000e-01 : f64} : tensor<i64> -> tensor<f32>
  %v1 = train.schedule %i <"WarmupLR", {lr = 0.001 : f64, warmup_num_steps = 100.0 : f64}> {factor = 0.5 : f64} : tensor<i64> -> tensor<f32>
  // CHECK: train.schedule %{{.*}} <"OneCycleMomentum", {}> : tensor<i64> -> tensor<f64>
  %v2 = train.schedule %i <"OneCycleMomentum", {}> : tensor<i64> -> tensor<f64>
  return
}

// CHECK-LABEL: func @accumulate(
func.func @accumulate(%s: tensor<8xf32>, %g: tensor<8xbf16>) {
  // CHECK: train.accumulate %{{.*}}, %{{.*}} : (tensor<8xf32>, tensor<8xbf16>) -> tensor<8xf32>
  %v0 = train.accumulate %s, %g : (tensor<8xf32>, tensor<8xbf16>) -> tensor<8xf32>
  return
}

// CHECK-LABEL: func @controls(
func.func @controls(%p: tensor<8xf32>, %g: tensor<8xbf16>, %m: tensor<8xf32>, %lr: tensor<f32>, %t: tensor<i64>, %o: tensor<i1>, %b: tensor<f64>) {
  // CHECK: train.sgd %{{.*}}, %{{.*}}, %{{.*}} scale %{{.*}} skip %{{.*}} {clip_value = 5.000000e-01 : f64} : (tensor<8xf32>, tensor<8xbf16>, tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<8xf32>
  %v0 = train.sgd %p, %g, %lr scale %lr skip %o {clip_value = 0.5 : f64} : (tensor<8xf32>, tensor<8xbf16>, tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<8xf32>
  // A step comes with dampening, and momentum after the other controls.
  // CHECK: train.sgd %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} momentum %{{.*}} {dampening = 5.000000e-01 : f64, momentum = 9.000000e-01 : f64} : (tensor<8xf32>, tensor<8xbf16>, tensor<8xf32>, tensor<f32>, tensor<i64>, tensor<f64>) -> (tensor<8xf32>, tensor<8xf32>)
  %v1:2 = train.sgd %p, %g, %m, %lr, %t momentum %b {momentum = 0.9 : f64, dampening = 0.5 : f64} : (tensor<8xf32>, tensor<8xbf16>, tensor<8xf32>, tensor<f32>, tensor<i64>, tensor<f64>) -> (tensor<8xf32>, tensor<8xf32>)
  // CHECK: train.adam %{{.*}} skip %{{.*}} {beta1 = {{.*}}, no_bias_correction, weight_decay
  %v2:3 = train.adam %p, %g, %m, %m, %lr, %t skip %o {beta1 = 0.9 : f64, beta2 = 0.5 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.0 : f64, no_bias_correction} : (tensor<8xf32>, tensor<8xbf16>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<i64>, tensor<i1>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  // CHECK: train.adamw %{{.*}} scale %{{.*}} skip %{{.*}} momentum %{{.*}} {beta1
  %v3:3 = train.adamw %p, %g, %m, %m, %lr, %t scale %lr skip %o momentum %b {beta1 = 0.9 : f64, beta2 = 0.5 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<8xbf16>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<i64>, tensor<f32>, tensor<i1>, tensor<f64>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}
