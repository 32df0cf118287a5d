// The derivative of a loop is a loop in the other direction.
// RUN: zero-opt %s -split-input-file -train-autodiff=inputs | FileCheck %s

// The forward loop also stacks what each step began with (the carried value) and
// its product, which is not computed again. Gradients by what is carried are
// carried, those by the shared weight are summed up, those by the inputs of steps
// are stacked.
// CHECK-LABEL: func @forward(
// CHECK-SAME: %[[H0:[^:]*]]: tensor<2x3xf32> {{.*}}, %[[XS:[^:]*]]: tensor<5x2x3xf32> {{.*}}, %[[W:[^:]*]]: tensor<3x3xf32>
// CHECK: %[[F:.*]]:3 = train.scan init(%[[H0]]) over(%[[XS]]) with(%[[W]]) steps 5 :
// CHECK-NEXT: ^bb0(%[[H:.*]]: tensor<2x3xf32>, %[[X:.*]]: tensor<2x3xf32>, %[[U:.*]]: tensor<3x3xf32>):
// CHECK-NEXT: %[[P:.*]] = train.matmul %[[H]], %[[U]]
// CHECK: train.yield %{{.*}}, %[[H]], %[[P]]
// CHECK: %[[SEED:.*]] = train.broadcast
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<3x3xf32>
// CHECK: %[[B:.*]]:3 = train.scan init(%[[SEED]], %[[ZERO]]) over(%[[F]]#1, %[[F]]#2, %[[XS]]) with(%[[W]]) steps 5 reverse :
// CHECK-NEXT: ^bb0(%[[DH:.*]]: tensor<2x3xf32>, %[[SUM:.*]]: tensor<3x3xf32>, %[[BH:.*]]: tensor<2x3xf32>, %[[BP:.*]]: tensor<2x3xf32>, %[[BX:.*]]: tensor<2x3xf32>, %[[BU:.*]]: tensor<3x3xf32>):
// CHECK-NEXT: %[[S:.*]] = train.add %[[BX]], %[[BP]]
// CHECK-NEXT: train.tanh %[[S]]
// CHECK: %[[DS:.*]] = train.mul %[[DH]]
// CHECK: %[[NEXT:.*]] = train.matmul %[[DS]], %[[BU]] {transpose_b}
// CHECK: %[[DW:.*]] = train.matmul %[[BH]], %[[DS]] {transpose_a}
// CHECK: %[[ACC:.*]] = train.add %[[SUM]], %[[DW]]
// CHECK: train.yield %[[NEXT]], %[[ACC]], %[[DS]]
// CHECK: return %{{.*}}, %[[B]]#0, %[[B]]#2, %[[B]]#1 :
func.func @forward(%h0: tensor<2x3xf32> {zero.input = "h"}, %xs: tensor<5x2x3xf32> {zero.input = "x"},
                   %w: tensor<3x3xf32> {zero.input = "w"}) -> (tensor<f32> {zero.output = "loss"}) {
  %last = train.scan init(%h0) over(%xs) with(%w) steps 5
      : (tensor<2x3xf32>, tensor<5x2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32> {
  ^bb0(%h: tensor<2x3xf32>, %x: tensor<2x3xf32>, %u: tensor<3x3xf32>):
    %p = train.matmul %h, %u : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %s = train.add %x, %p : tensor<2x3xf32>
    %n = train.tanh %s : tensor<2x3xf32>
    train.yield %n : tensor<2x3xf32>
  }
  %loss = train.reduce_sum %last axes [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
