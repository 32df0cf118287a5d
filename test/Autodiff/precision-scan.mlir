// The body of a loop is converted as the function is; what it carries keeps the
// type that it starts with.
// RUN: zero-opt %s -train-precision=type=bf16 | FileCheck %s

// CHECK: train.scan init(%{{.*}}) over(%{{.*}}) with(%{{.*}}) steps 5 : (tensor<2x3xbf16>, tensor<5x2x3xbf16>, tensor<3x3xbf16>) -> (tensor<2x3xbf16>, tensor<5x2xbf16>) {
// CHECK-NEXT: ^bb0(%[[H:.*]]: tensor<2x3xbf16>, %[[X:.*]]: tensor<2x3xbf16>, %[[W:.*]]: tensor<3x3xbf16>):
// CHECK: train.matmul %[[H]], %[[W]] : (tensor<2x3xbf16>, tensor<3x3xbf16>) -> tensor<2x3xbf16>
// CHECK: train.yield %{{.*}}, %{{.*}} : tensor<2x3xbf16>, tensor<2xbf16>
zero.param @w : tensor<3x3xf32>
func.func @forward(%xs: tensor<5x2x3xf32> {zero.input = "x"})
    -> (tensor<2x3xf32> {zero.output = "last"}, tensor<5x2xf32> {zero.output = "all"}) {
  %h0 = arith.constant dense<0.0> : tensor<2x3xf32>
  %w = zero.read @w : tensor<3x3xf32>
  %last, %all = train.scan init(%h0) over(%xs) with(%w) steps 5
      : (tensor<2x3xf32>, tensor<5x2x3xf32>, tensor<3x3xf32>) -> (tensor<2x3xf32>, tensor<5x2xf32>) {
  ^bb0(%h: tensor<2x3xf32>, %x: tensor<2x3xf32>, %u: tensor<3x3xf32>):
    %p = train.matmul %h, %u : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %s = train.add %x, %p : tensor<2x3xf32>
    %l = train.reduce_log_sum_exp %s axes [1] : (tensor<2x3xf32>) -> tensor<2xf32>
    train.yield %s, %l : tensor<2x3xf32>, tensor<2xf32>
  }
  return %last, %all : tensor<2x3xf32>, tensor<5x2xf32>
}
