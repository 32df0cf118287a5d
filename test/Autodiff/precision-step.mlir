// train-step{precision} is train-precision and then the step: the loss takes narrow logits, the gradients are narrow.
// RUN: zero-opt %s -train-step='precision=bf16 optimizer=sgd' | FileCheck %s
// RUN: zero-opt %s -train-precision -train-step='optimizer=sgd' | FileCheck %s
// RUN: zero-opt %s -train-step='precision=bf16 optimizer=sgd loss=mse' | FileCheck %s --check-prefix=MSE
zero.param @w : tensor<4x6xf32>
// CHECK: func.func @step
// CHECK: %[[X16:.*]] = train.cast %{{.*}} : tensor<8x6xf32> to tensor<8x6xbf16>
// CHECK: %[[Y:.*]] = train.matmul %[[X16]], %{{.*}} -> tensor<8x4xbf16>
// CHECK: %[[LOSS:.*]], %[[LSE:.*]] = train.cross_entropy %[[Y]], %{{.*}} : (tensor<8x4xbf16>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>)
// CHECK: train.cross_entropy_grad %{{.*}}, %[[Y]], %{{.*}}, %[[LSE]] {axis = 1 : i64} : (tensor<f32>, tensor<8x4xbf16>, tensor<8xi64>, tensor<8xf32>) -> tensor<8x4xbf16>
// CHECK: %[[DW:.*]] = train.matmul %{{.*}}, %[[X16]] {transpose_a} : {{.*}} -> tensor<4x6xbf16>
// CHECK: train.cast %[[DW]] : tensor<4x6xbf16> to tensor<4x6xf32>
// CHECK: return %[[LOSS]]

// MSE: func.func @step({{.*}}: tensor<8x4xf32> {zero.input = "labels"}
// MSE: %[[Y:.*]] = train.cast %{{.*}} : tensor<8x4xbf16> to tensor<8x4xf32>
// MSE: train.sub %[[Y]], %{{.*}} : tensor<8x4xf32>
func.func @forward(%x: tensor<8x6xf32> {zero.input = "x"}) -> (tensor<8x4xf32> {zero.output = "y"}) {
  %w = zero.read @w : tensor<4x6xf32>
  %y = train.matmul %x, %w {transpose_b} : (tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
