// What the module declares of an optimizer, the step goes on with: states keep
// their start, and the steps before count. Other states are made as ever.
// RUN: zero-opt %s -train-step='optimizer=adamw' | FileCheck %s
// RUN: zero-opt %s -train-step='optimizer=adamw skip-non-finite' | FileCheck %s --check-prefix=SKIP
// RUN: zero-opt %s -train-step='optimizer=sgd' 2>&1 | FileCheck %s --check-prefix=OTHER

// CHECK: zero.state @v.exp_avg of @v : tensor<3xf32> zeros
// CHECK: zero.state @w.exp_avg of @w : tensor<4xf32> init("s.safetensors")
// CHECK-NEXT: zero.state @w.exp_avg_sq of @w : tensor<4xf32> init("s.safetensors", "second")
// CHECK-NEXT: zero.state @optimizer_step : tensor<i64> value(dense<7> : tensor<i64>)
// CHECK-NOT: zero.state
// CHECK: func.func @step(
// CHECK-NOT: zero.hyper = "step"
// CHECK: %[[DONE:.*]] = zero.read @optimizer_step
// CHECK: %[[STEP:.*]] = train.add %[[DONE]], %{{.*}} : tensor<i64>
// CHECK: train.adamw %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[STEP]]
// CHECK: zero.assign @optimizer_step, %[[STEP]]

// SKIP: zero.state @optimizer_step : tensor<i64> value(dense<7> : tensor<i64>)
// SKIP: %[[NEXT:.*]] = train.next_step
// SKIP: zero.assign @optimizer_step, %[[NEXT]]
// SKIP-NOT: zero.assign @optimizer_step

// OTHER: warning: optimizer sgd has no use for 2 states that the module declares, first @w.exp_avg
// OTHER: module attributes
// OTHER-NOT: exp_avg
// OTHER: zero.state @optimizer_step
// OTHER-NOT: exp_avg
zero.param @w : tensor<4xf32>
zero.param @v : tensor<3xf32>
zero.state @w.exp_avg of @w : tensor<4xf32> init("s.safetensors")
zero.state @w.exp_avg_sq of @w : tensor<4xf32> init("s.safetensors", "second")
zero.state @optimizer_step : tensor<i64> value(dense<7> : tensor<i64>)
func.func @forward(%x: tensor<4xf32> {zero.input = "x"})
    -> (tensor<4xf32> {zero.output = "d", train.gradient = "w"}, tensor<1xf32> {zero.output = "l", train.loss},
        tensor<3xf32> {zero.output = "f", train.gradient = "v"}) {
  %w = zero.read @w : tensor<4xf32>
  %v = zero.read @v : tensor<3xf32>
  %0 = train.mul %w, %x : tensor<4xf32>
  %1 = train.reduce_sum %0 axes [0] {keepdims} : (tensor<4xf32>) -> tensor<1xf32>
  return %x, %1, %v : tensor<4xf32>, tensor<1xf32>, tensor<3xf32>
}
