// The gradient of dropout draws again what the forward pass drew: it takes the
// same key and samples, and no mask is kept.
// RUN: zero-opt -train-autodiff=inputs %s | FileCheck %s

// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x3xf32>
// CHECK-SAME: %[[KEY:[^:]*]]: tensor<i64>
// CHECK-SAME: %[[FIRST:[^:]*]]: tensor<i64>
// CHECK: train.dropout %[[X]], %[[KEY]], %[[FIRST]] ratio 5.000000e-01 samples 4 along 0
// CHECK: %[[DY:.*]] = train.broadcast
// CHECK-NEXT: %[[DX:.*]] = train.dropout %[[DY]], %[[KEY]], %[[FIRST]] ratio 5.000000e-01 samples 4 along 0
// CHECK: return %{{.*}}, %[[DX]]
func.func @forward(%x: tensor<4x3xf32> {zero.input = "x"}, %key: tensor<i64> {zero.input = "key"}, %first: tensor<i64> {zero.first_sample}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.dropout %x, %key, %first ratio 5.0e-01 samples 4 along 0 : (tensor<4x3xf32>, tensor<i64>, tensor<i64>) -> tensor<4x3xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
