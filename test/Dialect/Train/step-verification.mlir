// What the ops of accumulation, loss scaling and schedules refuse, one error a case.
// RUN: zero-opt %s -split-input-file -verify-diagnostics

func.func @no_micro_batch() {
  // expected-error @+1 {{expects at least one micro-batch, got 0}}
  %0 = train.loss_seed {micro_batches = 0 : i64} : () -> tensor<f32>
  return
}

// -----

func.func @max_norm(%n: tensor<f64>) {
  // expected-error @+1 {{expects a positive max_norm, got 0.000000e+00}}
  %0:3 = train.gradient_factor %n {max_norm = 0.0 : f64} : (tensor<f64>) -> (tensor<f32>, tensor<f64>, tensor<i1>)
  return
}

// -----

func.func @window(%s: tensor<f32>, %i: tensor<i64>, %o: tensor<i1>) {
  // expected-error @+1 {{expects a window and a hysteresis of at least 1, got 0 and 2}}
  %0:5 = train.update_loss_scale %s, %i, %i, %i, %o {window = 0 : i64} : (tensor<f32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i1>) -> (tensor<f32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i1>)
  return
}

// -----

func.func @factor(%s: tensor<f32>, %i: tensor<i64>, %o: tensor<i1>) {
  // expected-error @+1 {{expects a factor greater than 1, got 1.000000e+00}}
  %0:5 = train.update_loss_scale %s, %i, %i, %i, %o {factor = 1.0 : f64} : (tensor<f32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i1>) -> (tensor<f32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i1>)
  return
}

// -----

func.func @min_scale(%s: tensor<f32>, %i: tensor<i64>, %o: tensor<i1>) {
  // expected-error @+1 {{expects a positive min_scale, got -1.000000e+00}}
  %0:5 = train.update_loss_scale %s, %i, %i, %i, %o {min_scale = -1.0 : f64} : (tensor<f32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i1>) -> (tensor<f32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i1>)
  return
}

// -----

func.func @shapes(%s: tensor<8xf32>, %g: tensor<4xbf16>) {
  // expected-error @+1 {{all non-scalar operands/results must have the same shape and base type}}
  %0 = train.accumulate %s, %g : (tensor<8xf32>, tensor<4xbf16>) -> tensor<8xf32>
  return
}

// -----

func.func @clip_value(%p: tensor<8xf32>, %lr: tensor<f32>) {
  // expected-error @+1 {{expects a positive clip_value, got 0.000000e+00}}
  %0 = train.sgd %p, %p, %lr {clip_value = 0.0 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @adam_clip_value(%p: tensor<8xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @+1 {{expects a positive clip_value, got -5.000000e-01}}
  %0:3 = train.adam %p, %p, %p, %p, %lr, %t {beta1 = 0.9 : f64, beta2 = 0.5 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.0 : f64, clip_value = -0.5 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<i64>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @momentum(%p: tensor<8xf32>, %lr: tensor<f32>) {
  // expected-error @+1 {{has a momentum operand but no momentum buffer}}
  %0 = train.sgd %p, %p, %lr momentum %lr : (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @unknown_schedule(%i: tensor<i64>) {
  // expected-error @+1 {{unknown schedule WarmUpLR, expected one of WarmupLR, WarmupDecayLR, WarmupCosineLR, LRRangeTest, OneCycle, OneCycleMomentum, ConstantLR, LinearLR, CosineAnnealingLR, PolynomialLR, constant, constant_with_warmup, linear, cosine, polynomial, warmup_stable_decay}}
  %0 = train.schedule %i <"WarmUpLR", {lr = 1.0 : f64}> : tensor<i64> -> tensor<f32>
  return
}

// -----

func.func @unknown_number(%i: tensor<i64>) {
  // expected-error @+1 {{schedule cosine has no number warmup_num_steps, expected one of lr, warmup, total, num_cycles}}
  %0 = train.schedule %i <"cosine", {lr = 1.0 : f64, total = 8.0 : f64, warmup_num_steps = 2.0 : f64}> : tensor<i64> -> tensor<f32>
  return
}

// -----

func.func @missing_number(%i: tensor<i64>) {
  // expected-error @+1 {{schedule WarmupDecayLR needs the number total_num_steps}}
  %0 = train.schedule %i <"WarmupDecayLR", {lr = 1.0 : f64}> : tensor<i64> -> tensor<f32>
  return
}

// -----

func.func @no_number(%i: tensor<i64>) {
  // expected-error @+1 {{number lr of schedule constant is 1 : i64, expected an f64}}
  %0 = train.schedule %i <"constant", {lr = 1 : i64}> : tensor<i64> -> tensor<f32>
  return
}

// -----

func.func @negative(%i: tensor<i64>) {
  // expected-error @+1 {{number lr of schedule constant is -1.000000e+00, expected a number that is not negative}}
  %0 = train.schedule %i <"constant", {lr = -1.0 : f64}> : tensor<i64> -> tensor<f32>
  return
}

// -----

func.func @no_step(%i: tensor<i64>) {
  // expected-error @+1 {{number total_iters of schedule LinearLR is 0.000000e+00, expected at least 1}}
  %0 = train.schedule %i <"LinearLR", {lr = 1.0 : f64, total_iters = 0.0 : f64}> : tensor<i64> -> tensor<f32>
  return
}

// -----

func.func @empty_cycle(%i: tensor<i64>) {
  // expected-error @+1 {{number cycle_first_step_size of schedule OneCycleMomentum is 0.000000e+00, expected a positive number}}
  %0 = train.schedule %i <"OneCycleMomentum", {cycle_first_step_size = 0.0 : f64}> : tensor<i64> -> tensor<f32>
  return
}

// -----

func.func @truth(%i: tensor<i64>) {
  // expected-error @+1 {{number warmup_type of schedule WarmupLR is 2.000000e+00, expected 0 or 1}}
  %0 = train.schedule %i <"WarmupLR", {lr = 1.0 : f64, warmup_type = 2.0 : f64}> : tensor<i64> -> tensor<f32>
  return
}

// -----

func.func @decay_type(%i: tensor<i64>) {
  // expected-error @+1 {{number decay_type of schedule warmup_stable_decay is 5.000000e-01, expected 0, 1 or 2}}
  %0 = train.schedule %i <"warmup_stable_decay", {lr = 1.0 : f64, decay = 3.0 : f64, decay_type = 0.5 : f64}> : tensor<i64> -> tensor<f32>
  return
}

// -----

func.func @infinite(%i: tensor<i64>) {
  // expected-error @+1 {{number lr_range_test_step_rate of schedule LRRangeTest is INF, expected a finite number}}
  %0 = train.schedule %i <"LRRangeTest", {lr_range_test_step_rate = 0x7FF0000000000000 : f64}> : tensor<i64> -> tensor<f32>
  return
}
