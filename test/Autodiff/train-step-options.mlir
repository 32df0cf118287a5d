// What a step has besides gradients and updates: clipping, loss scaling, schedules, groups of parameters.
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=sgd clip-norm=0.5' | FileCheck %s --check-prefix=NORM
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=sgd clip-value=0.5' | FileCheck %s --check-prefix=VALUE
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=sgd skip-non-finite' | FileCheck %s --check-prefix=SKIPPED
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=adam loss-scale=dynamic' | FileCheck %s --check-prefix=DYNAMIC
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=sgd loss-scale=dynamic initial-scale=16 loss-scale-window=5 loss-scale-hysteresis=1 consecutive-hysteresis min-scale=0.5' | FileCheck %s --check-prefix=SCALE-OPTIONS
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=sgd loss-scale=128 clip-norm=1' | FileCheck %s --check-prefix=FIXED
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=adamw schedule=cosine:lr=0.5:warmup=2:total=8' | FileCheck %s --check-prefix=SCHEDULE
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=sgd skip-non-finite schedule=constant:lr=0.5' | FileCheck %s --check-prefix=SKIP-SCHEDULE
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=adam momentum-schedule=OneCycleMomentum:cycle_first_step_size=4' | FileCheck %s --check-prefix=BETA
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=sgd momentum=0.9 momentum-schedule=OneCycleMomentum' | FileCheck %s --check-prefix=MOMENTUM
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=adam no-bias-correction' | FileCheck %s --check-prefix=BIAS
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=sgd micro-batches=1' | FileCheck %s --check-prefix=ONE
zero.param @w : tensor<4xf32>
zero.param @tied : tensor<4x4xf32> tied("again")
zero.param @still : tensor<4xf32> frozen

func.func @forward() -> (tensor<f32> {zero.output = "loss"}) {
  %w = zero.read @w : tensor<4xf32>
  %t = zero.read @tied : tensor<4x4xf32>
  %again = zero.read @tied : tensor<4x4xf32>
  %s = zero.read @still : tensor<4xf32>
  %0 = train.mul %w, %s : tensor<4xf32>
  %1 = train.mul %t, %0 : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %2 = train.mul %1, %again : tensor<4x4xf32>
  %3 = train.reduce_sum %2 axes [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}

// One factor for all updates, from one sum: a tied parameter has one gradient, a frozen one none.
// NORM: func.func @step
// NORM-SAME: -> (tensor<f32> {zero.across = "mean", zero.output = "loss"}, tensor<f64> {zero.across = "same", zero.output = "grad_norm"}, tensor<f64> {zero.across = "same", zero.output = "grad_norm_clipped"})
// NORM: %[[DT:.*]] = train.add
// NORM: %[[SUM:.*]] = train.sum_squares %[[DW:.*]], %[[DT]] : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<f64>
// NORM: %[[FACTOR:.*]], %[[N:.*]], %{{.*}} = train.gradient_factor %[[SUM]] {max_norm = 5.000000e-01 : f64} : (tensor<f64>) -> (tensor<f32>, tensor<f64>, tensor<i1>)
// NORM: %[[MAX:.*]] = arith.constant dense<5.000000e-01> : tensor<f64>
// NORM: %[[CLIPPED:.*]] = train.min %[[N]], %[[MAX]] : tensor<f64>
// NORM: train.sgd %{{.*}}, %[[DW]], %{{.*}} scale %[[FACTOR]] :
// NORM: train.sgd %{{.*}}, %[[DT]], %{{.*}} scale %[[FACTOR]] :
// NORM: return %{{.*}}, %[[N]], %[[CLIPPED]]

// By value nothing depends on the norm, which stays what it was.
// VALUE: zero.output = "grad_norm_sq"
// VALUE-NOT: gradient_factor
// VALUE: train.sgd %{{.*}}, %{{.*}}, %{{.*}} {clip_value = 5.000000e-01 : f64}

// Without a scale there is nothing to multiply by; a step that may be skipped counts itself.
// SKIPPED: zero.state @optimizer_step : tensor<i64> value(dense<0> : tensor<i64>)
// SKIPPED-NOT: zero.state
// SKIPPED: func.func @step(%{{[a-z0-9]*}}: tensor<f32> {zero.hyper = "lr"})
// SKIPPED-SAME: zero.output = "overflow"})
// SKIPPED: %{{.*}}, %{{.*}}, %[[SKIP:.*]] = train.gradient_factor %{{.*}} : (tensor<f64>)
// SKIPPED: %[[DONE:.*]] = zero.read @optimizer_step
// SKIPPED: train.sgd %{{.*}}, %{{.*}}, %{{.*}} skip %[[SKIP]] :
// SKIPPED: %[[NEXT:.*]] = train.next_step %[[DONE]], %[[SKIP]]
// SKIPPED: zero.assign @optimizer_step, %[[NEXT]]
// SKIPPED: %[[OVERFLOW:.*]] = train.cast %[[SKIP]] : tensor<i1> to tensor<i64>
// SKIPPED: return %{{.*}}, %{{.*}}, %[[OVERFLOW]]

// DYNAMIC: zero.state @loss_scale : tensor<f32> value(dense<6.553600e+04> : tensor<f32>)
// DYNAMIC: zero.state @optimizer_step : tensor<i64> value(dense<0> : tensor<i64>)
// DYNAMIC: zero.state @loss_scale.hysteresis : tensor<i64> value(dense<2> : tensor<i64>)
// DYNAMIC: zero.state @loss_scale.iteration : tensor<i64> value(dense<0> : tensor<i64>)
// DYNAMIC: zero.state @loss_scale.last_overflow : tensor<i64> value(dense<-1> : tensor<i64>)
// DYNAMIC: func.func @step(%{{[a-z0-9]*}}: tensor<f32> {zero.hyper = "lr"})
// DYNAMIC-SAME: zero.output = "loss_scale"}, tensor<i64> {zero.across = "same", zero.output = "overflow"}, tensor<i64> {zero.across = "same", zero.output = "loss_scale_exhausted"})
// DYNAMIC: %[[SCALE:.*]] = zero.read @loss_scale : tensor<f32>
// DYNAMIC: %[[SEED:.*]] = train.loss_seed scale %[[SCALE]] : (tensor<f32>) -> tensor<f32>
// DYNAMIC: train.reshape %[[SEED]]
// DYNAMIC: %[[FACTOR:.*]], %{{.*}}, %[[SKIP:.*]] = train.gradient_factor %{{.*}} scale %[[SCALE]] : (tensor<f64>, tensor<f32>)
// DYNAMIC: %[[DONE:.*]] = zero.read @optimizer_step
// DYNAMIC: %[[STEP:.*]] = train.add %[[DONE]], %{{.*}} : tensor<i64>
// DYNAMIC: train.adam %{{.*}}, %[[STEP]] scale %[[FACTOR]] skip %[[SKIP]] {beta1
// The scale that this step used, before it is replaced.
// DYNAMIC: %[[USED:.*]] = train.mul %[[SCALE]], %{{.*}} : tensor<f32>
// DYNAMIC: %[[S:.*]], %[[H:.*]], %[[I:.*]], %[[L:.*]], %[[X:.*]] = train.update_loss_scale %[[SCALE]], %{{.*}}, %{{.*}}, %{{.*}}, %[[SKIP]] :
// DYNAMIC: zero.assign @loss_scale, %[[S]]
// DYNAMIC: zero.assign @loss_scale.hysteresis, %[[H]]
// DYNAMIC: zero.assign @loss_scale.iteration, %[[I]]
// DYNAMIC: zero.assign @loss_scale.last_overflow, %[[L]]
// DYNAMIC: return %{{.*}}, %{{.*}}, %[[USED]]

// SCALE-OPTIONS: zero.state @loss_scale : tensor<f32> value(dense<1.600000e+01> : tensor<f32>)
// SCALE-OPTIONS: zero.state @loss_scale.hysteresis : tensor<i64> value(dense<1> : tensor<i64>)
// SCALE-OPTIONS: train.update_loss_scale %{{.*}} {consecutive_hysteresis, hysteresis = 1 : i64, min_scale = 5.000000e-01 : f64, window = 5 : i64}

// A fixed scale is a constant; steps are skipped all the same.
// FIXED-NOT: zero.state @loss_scale
// FIXED: %[[SCALE:.*]] = arith.constant dense<1.280000e+02> : tensor<f32>
// FIXED: train.loss_seed scale %[[SCALE]]
// FIXED: train.gradient_factor %{{.*}} scale %[[SCALE]] {max_norm = 1.000000e+00 : f64}
// FIXED: train.sgd %{{.*}} scale %{{.*}} skip
// FIXED-NOT: update_loss_scale

// The schedule takes the place of the argument, and the rate is an output.
// SCHEDULE: func.func @step(%[[STEP:[a-z0-9]*]]: tensor<i64> {zero.hyper = "step"})
// SCHEDULE-SAME: tensor<f32> {zero.across = "same", zero.output = "lr"})
// SCHEDULE: %[[LR:.*]] = train.schedule %[[STEP]] <"cosine", {lr = 5.000000e-01 : f64, total = 8.000000e+00 : f64, warmup = 2.000000e+00 : f64}> : tensor<i64> -> tensor<f32>
// SCHEDULE: train.adamw %{{.*}}, %[[LR]], %[[STEP]] {beta1
// SCHEDULE: return %{{.*}}, %{{.*}}, %[[LR]]

// Then no argument is left.
// SKIP-SCHEDULE: func.func @step()
// SKIP-SCHEDULE: %[[STEP:.*]] = train.add %{{.*}} : tensor<i64>
// SKIP-SCHEDULE: train.schedule %[[STEP]]

// BETA: %[[BETA:.*]] = train.schedule %{{.*}} <"OneCycleMomentum", {cycle_first_step_size = 4.000000e+00 : f64}> : tensor<i64> -> tensor<f64>
// BETA: train.adam %{{.*}} momentum %[[BETA]] {beta1
// BETA: train.adam %{{.*}} momentum %[[BETA]] {beta1
// MOMENTUM: %[[M:.*]] = train.schedule
// MOMENTUM: train.sgd %{{.*}} momentum %[[M]] {momentum
// BIAS: train.adam {{.*}}no_bias_correction
// ONE-NOT: loss_seed
