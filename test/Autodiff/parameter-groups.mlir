// Weight decay and learning rates of groups, each of the first group that says it and matches any name of a parameter.
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=adamw no-decay=auto' | FileCheck %s --check-prefix=AUTO
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=sgd weight-decay=0.5 groups=*.bias:weight-decay=0.25:lr-factor=2,h.?.weight:lr-factor=2 no-decay=h.*' | FileCheck %s --check-prefix=GROUPS
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=sgd weight-decay=0.5 groups=wte:lr-factor=1,h.0.bias:weight-decay=0.25,*:lr-factor=2:weight-decay=0.125,h.0.weight:lr-factor=3' | FileCheck %s --check-prefix=MERGED
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=sgd weight-decay=0.5 no-decay=lm_head' | FileCheck %s --check-prefix=TIED
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=sgd schedule=constant:lr=0.5 groups=h.0.bias:lr-factor=3' | FileCheck %s --check-prefix=SCHEDULE
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=sgd no-decay=*.gamma,still,h.0.bias' 2>&1 | FileCheck %s --check-prefix=UNMATCHED
// RUN: not zero-opt %s -train-step='loss=output:loss optimizer=sgd no-decay=[' 2>&1 | FileCheck %s --check-prefix=NO-GLOB
// RUN: not zero-opt %s -train-step='loss=output:loss optimizer=sgd groups=*.bias' 2>&1 | FileCheck %s --check-prefix=NOTHING
zero.param @wte : tensor<4x4xf32> tied("lm_head")
zero.param @h.0.weight : tensor<4x4xf32>
zero.param @h.0.bias : tensor<4xf32>
zero.param @still : tensor<4xf32> frozen

// Biases and norms: parameters of at most one dimension.
// AUTO: train.adamw %wte, {{.*}}weight_decay = 1.000000e-02
// AUTO: train.adamw %h.0.weight, {{.*}}weight_decay = 1.000000e-02
// AUTO: train.adamw %h.0.bias, {{.*}}weight_decay = 0.000000e+00

// A group without a weight decay leaves it to no-decay; equal factors share one learning rate.
// GROUPS: func.func @step(%[[LR:[a-z0-9]*]]: tensor<f32>
// GROUPS: train.sgd %wte, %{{.*}}, %[[LR]] {weight_decay = 5.000000e-01 : f64}
// GROUPS: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : tensor<f32>
// GROUPS: %[[TWICE:.*]] = train.mul %[[LR]], %[[TWO]] : tensor<f32>
// GROUPS: train.sgd %h.0.weight, %{{.*}}, %[[TWICE]] :
// GROUPS: train.sgd %h.0.bias, %{{.*}}, %[[TWICE]] {weight_decay = 2.500000e-01 : f64}

// A learning rate and a weight decay may come from two groups; a factor of 1 is one.
// MERGED: func.func @step(%[[LR:[a-z0-9]*]]: tensor<f32>
// MERGED: train.sgd %wte, %{{.*}}, %[[LR]] {weight_decay = 1.250000e-01 : f64}
// MERGED: %[[TWICE:.*]] = train.mul %[[LR]], %{{.*}} : tensor<f32>
// MERGED: train.sgd %h.0.weight, %{{.*}}, %[[TWICE]] {weight_decay = 1.250000e-01 : f64}
// MERGED: train.sgd %h.0.bias, %{{.*}}, %[[TWICE]] {weight_decay = 2.500000e-01 : f64}

// TIED: train.sgd %wte, %{{[a-z0-9_]*}}, %{{[a-z0-9_]*}} : (
// TIED: train.sgd %h.0.weight, %{{.*}}, %{{.*}} {weight_decay = 5.000000e-01 : f64}

// SCHEDULE: %[[LR:.*]] = train.schedule %{{.*}} <"constant", {lr = 5.000000e-01 : f64}> : tensor<i64> -> tensor<f32>
// SCHEDULE: train.sgd %wte, %{{.*}}, %[[LR]] :
// SCHEDULE: train.sgd %h.0.weight, %{{.*}}, %[[LR]] :
// SCHEDULE: %[[THRICE:.*]] = train.schedule %{{.*}} <"constant", {lr = 5.000000e-01 : f64}> {factor = 3.000000e+00 : f64} : tensor<i64> -> tensor<f32>
// SCHEDULE: train.sgd %h.0.bias, %{{.*}}, %[[THRICE]] :
// SCHEDULE: return %{{.*}}, %{{.*}}, %[[LR]]

// UNMATCHED: warning: pattern *.gamma matches no parameter
// UNMATCHED: warning: pattern still matches only parameters that are not trained, such as @still
// UNMATCHED-NOT: warning

// NOTHING: error: group *.bias says nothing, expected a weight-decay, an lr-factor or both
// NO-GLOB: error: pattern [ of parameters: invalid glob pattern, unmatched '['
func.func @forward() -> (tensor<f32> {zero.output = "loss"}) {
  %wte = zero.read @wte : tensor<4x4xf32>
  %w = zero.read @h.0.weight : tensor<4x4xf32>
  %b = zero.read @h.0.bias : tensor<4xf32>
  %s = zero.read @still : tensor<4xf32>
  %0 = train.mul %wte, %w : tensor<4x4xf32>
  %1 = train.mul %0, %b : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %2 = train.mul %1, %s : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %3 = train.reduce_sum %2 axes [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}
