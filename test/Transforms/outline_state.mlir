// Arguments and results with roles become symbols, reads and assignments; what
// stays carries the attributes of a step function. Other functions are left alone.
// RUN: zero-opt %s --zero-outline-state --verify-roundtrip | FileCheck %s

// CHECK: zero.param @fc.weight : tensor<10x4xf32> unit("fc")
// CHECK-NEXT: zero.state @fc.weight.m of @fc.weight : tensor<10x4xf32> zeros
// CHECK-NEXT: zero.param @arg2 : tensor<4xf32> frozen
// CHECK-NEXT: zero.param @mean : tensor<10xf32> buffer
// CHECK-NEXT: func.func @step(%[[X:.*]]: tensor<8x4xf32> {zero.input = "x"}, %[[LR:.*]]: f32 {zero.hyper = "lr"})
// CHECK-SAME: -> (tensor<8x4xf32> {zero.across = "mean", zero.output = "y"}, tensor<10xf32> {zero.across = "sum", zero.output = "output4"}) {
// CHECK-NEXT: %[[W:.*]] = zero.read @fc.weight : tensor<10x4xf32>
// CHECK-NEXT: %[[M:.*]] = zero.read @fc.weight.m : tensor<10x4xf32>
// CHECK-NEXT: %[[F:.*]] = zero.read @arg2 : tensor<4xf32>
// CHECK-NEXT: %[[B:.*]] = zero.read @mean : tensor<10xf32>
// CHECK-NEXT: %[[N:.*]] = arith.addf %[[W]], %[[M]]
// CHECK-NEXT: zero.assign @fc.weight, %[[N]] : tensor<10x4xf32>
// CHECK-NEXT: zero.assign @fc.weight.m, %[[M]] : tensor<10x4xf32>
// CHECK-NEXT: zero.assign @mean, %[[B]] : tensor<10xf32>
// CHECK-NEXT: return %[[X]], %[[B]] : tensor<8x4xf32>, tensor<10xf32>
func.func @step(
    %w: tensor<10x4xf32> {zero.role = "param", zero.name = "fc.weight", zero.unit = "fc"},
    %m: tensor<10x4xf32> {zero.role = "state", zero.name = "fc.weight.m", zero.of = "fc.weight"},
    %f: tensor<4xf32> {zero.role = "frozen"},
    %b: tensor<10xf32> {zero.role = "buffer", zero.name = "mean"},
    %x: tensor<8x4xf32> {zero.role = "input", zero.name = "x"},
    %lr: f32 {zero.role = "hyper", zero.name = "lr"})
    -> (tensor<10x4xf32> {zero.role = "param", zero.of = "fc.weight"},
        tensor<8x4xf32> {zero.role = "output", zero.name = "y"},
        tensor<10x4xf32> {zero.role = "state", zero.of = "fc.weight.m"},
        tensor<10xf32> {zero.role = "buffer", zero.of = "mean"},
        tensor<10xf32> {zero.role = "output", zero.across = "sum"}) {
  %n = arith.addf %w, %m : tensor<10x4xf32>
  return %n, %x, %m, %b, %b : tensor<10x4xf32>, tensor<8x4xf32>, tensor<10x4xf32>, tensor<10xf32>, tensor<10xf32>
}

// CHECK: func.func @other(%{{.*}}: tensor<4xf32>) -> tensor<4xf32>
func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// Without a role an argument is data and a result an output; what says so already
// stays as it is.
// CHECK: zero.param @w : tensor<4xf32>
// CHECK: func.func @few(%{{.*}}: tensor<4xf32> {zero.input = "arg1"}, %{{.*}}: f32 {zero.hyper = "lr"}) -> (tensor<4xf32> {zero.across = "mean", zero.output = "output1"})
func.func @few(%w: tensor<4xf32> {zero.role = "param", zero.name = "w"}, %x: tensor<4xf32>, %lr: f32 {zero.hyper = "lr"})
    -> (tensor<4xf32> {zero.role = "param", zero.of = "w"}, tensor<4xf32>) {
  %n = arith.addf %w, %x : tensor<4xf32>
  return %n, %x : tensor<4xf32>, tensor<4xf32>
}
