// The gradient of attention draws the dropout of the probabilities again: it
// takes the same key and samples, and nothing of the size of the scores is kept.
// RUN: zero-opt -train-autodiff=inputs %s | FileCheck %s

// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[Q:[^:]*]]: tensor<4x2x3x8xf32>
// CHECK-SAME: %[[KEY:[^:]*]]: tensor<i64>
// CHECK-SAME: %[[FIRST:[^:]*]]: tensor<i64>
// CHECK: %[[Y:.*]], %[[L:.*]] = train.attention %[[Q]], %[[Q]], %[[Q]] scale 5.000000e-01 causal dropout %[[KEY]], %[[FIRST]] ratio 1.000000e-01 samples 4 :
// CHECK-NOT: tensor<4x2x3x3
// CHECK: train.attention_grad %{{.*}}, %[[Q]], %[[Q]], %[[Q]], %[[Y]], %[[L]] scale 5.000000e-01 causal dropout %[[KEY]], %[[FIRST]] ratio 1.000000e-01 samples 4 :
// CHECK-NOT: tensor<4x2x3x3
func.func @forward(%q: tensor<4x2x3x8xf32> {zero.input = "q"}, %key: tensor<i64> {zero.input = "key"}, %first: tensor<i64> {zero.first_sample}) -> (tensor<f32> {zero.output = "loss"}) {
  %y, %l = train.attention %q, %q, %q scale 5.0e-01 causal dropout %key, %first ratio 1.0e-01 samples 4 : (tensor<4x2x3x8xf32>, tensor<4x2x3x8xf32>, tensor<4x2x3x8xf32>, tensor<i64>, tensor<i64>) -> (tensor<4x2x3x8xf32>, tensor<4x2x3xf32>)
  %loss = train.reduce_sum %y axes [0, 1, 2, 3] : (tensor<4x2x3x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
