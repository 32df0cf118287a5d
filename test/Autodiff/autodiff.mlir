// Which values get a gradient, and in which order gradients are built.
// RUN: zero-opt %s -split-input-file -train-autodiff | FileCheck %s

// Two uses of one value: their gradients are added as they arise, in reverse
// order of the uses, before the gradient goes on.
// CHECK-LABEL: func @forward
zero.param @w : tensor<4xf32>
func.func @forward() -> (tensor<f32> {zero.output = "loss"}) {
  // CHECK: %[[W:.*]] = zero.read @w
  // CHECK: %[[E:.*]] = train.exp %[[W]]
  // CHECK: %[[SIN:.*]] = train.sin %[[E]]
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK: %[[D1:.*]] = train.mul %[[DY]], %[[SIN]]
  // CHECK: %[[D2:.*]] = train.mul %[[DY]], %[[E]]
  // CHECK: %[[COS:.*]] = train.cos %[[E]]
  // CHECK: %[[D3:.*]] = train.mul %[[D2]], %[[COS]]
  // CHECK: %[[DE:.*]] = train.add %[[D1]], %[[D3]]
  // CHECK: %[[DW:.*]] = train.mul %[[DE]], %[[E]]
  // CHECK: return %{{.*}}, %[[DW]]
  %w = zero.read @w : tensor<4xf32>
  %0 = train.exp %w : tensor<4xf32>
  %1 = train.sin %0 : tensor<4xf32>
  %2 = train.mul %0, %1 : tensor<4xf32>
  %3 = train.reduce_sum %2 axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}

// -----

// One operand twice: both gradients count.
// CHECK-LABEL: func @forward
zero.param @w : tensor<4xf32>
func.func @forward() -> (tensor<f32> {zero.output = "loss"}) {
  // CHECK: %[[W:.*]] = zero.read @w
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK: %[[D1:.*]] = train.mul %[[DY]], %[[W]]
  // CHECK: %[[D2:.*]] = train.mul %[[DY]], %[[W]]
  // CHECK: %[[DW:.*]] = train.add %[[D1]], %[[D2]]
  // CHECK: return %{{.*}}, %[[DW]]
  %w = zero.read @w : tensor<4xf32>
  %0 = train.mul %w, %w : tensor<4xf32>
  %1 = train.reduce_sum %0 axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// A tied parameter is read twice and has one gradient, the sum.
// CHECK-LABEL: func @forward
// CHECK-SAME: -> (tensor<f32> {zero.output = "loss"}, tensor<3x3xf32> {zero.output = "grad.w"})
zero.param @w : tensor<3x3xf32> tied("head")
func.func @forward(%x: tensor<2x3xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  // CHECK: %[[D2:.*]] = train.matmul {{.*}}{transpose_a} : (tensor<2x3xf32>, tensor<2x3xf32>)
  // CHECK: %[[D1:.*]] = train.matmul {{.*}}{transpose_a} : (tensor<2x3xf32>, tensor<2x3xf32>)
  // CHECK: %[[DW:.*]] = train.add %[[D2]], %[[D1]]
  // CHECK: return %{{.*}}, %[[DW]]
  %w1 = zero.read @w : tensor<3x3xf32>
  %0 = train.matmul %x, %w1 : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
  %w2 = zero.read @w : tensor<3x3xf32>
  %1 = train.matmul %0, %w2 {transpose_b} : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
  %2 = train.reduce_sum %1 axes [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

// Frozen parameters, buffers, unused parameters, inputs and integers get none,
// and no operation is built for them.
// CHECK-LABEL: func @forward
// CHECK-SAME: -> (tensor<f32> {zero.output = "loss"}, tensor<4xf32> {zero.output = "grad.w"})
zero.param @w : tensor<4xf32>
zero.param @frozen : tensor<4xf32> frozen
zero.param @buffer : tensor<4xf32> zeros buffer
zero.param @unused : tensor<4xf32>
zero.param @count : tensor<i64>
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  // CHECK: %[[X:.*]] = train.mul %{{.*}}, %frozen
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DW:.*]] = train.mul %[[DY]], %[[X]]
  // CHECK-NEXT: return %{{.*}}, %[[DW]]
  %f = zero.read @frozen : tensor<4xf32>
  %b = zero.read @buffer : tensor<4xf32>
  %w = zero.read @w : tensor<4xf32>
  %n = zero.read @count : tensor<i64>
  %0 = train.mul %x, %f : tensor<4xf32>
  %1 = train.mul %0, %w : tensor<4xf32>
  %2 = train.add %1, %b : tensor<4xf32>
  %3 = train.cast %n : tensor<i64> to tensor<f32>
  %4 = train.add %2, %3 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %5 = train.reduce_sum %4 axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %5 : tensor<f32>
}

// -----

// Piecewise constant operations end a gradient: @w has none, @v has one.
// CHECK-LABEL: func @forward
// CHECK-SAME: tensor<4xf32> {zero.output = "grad.v"})
zero.param @w : tensor<4xf32>
zero.param @v : tensor<4xf32>
func.func @forward() -> (tensor<f32> {zero.output = "loss"}) {
  %w = zero.read @w : tensor<4xf32>
  %v = zero.read @v : tensor<4xf32>
  %0 = train.floor %w : tensor<4xf32>
  %1 = train.sign %w : tensor<4xf32>
  %2 = train.greater %w, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %3 = train.where %2, %0, %1 : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = train.mul %3, %v : tensor<4xf32>
  %5 = train.reduce_sum %4 axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %5 : tensor<f32>
}

// -----

// What comes after the loss has no gradient; what nobody needs is gone, also
// forward operations. The order of the backward is the reverse of the forward.
// CHECK-LABEL: func @forward
zero.param @w1 : tensor<4x4xf32>
zero.param @w2 : tensor<4x4xf32>
func.func @forward(%x: tensor<2x4xf32> {zero.input = "x"})
    -> (tensor<2x4xf32> {zero.output = "y"}, tensor<f32> {zero.output = "loss"}) {
  // CHECK-NOT: train.tanh
  // CHECK: train.exp
  // CHECK: train.matmul {{.*}}{transpose_b}
  // CHECK: %[[DW2:.*]] = train.matmul {{.*}}{transpose_a}
  // CHECK: %[[DW1:.*]] = train.matmul {{.*}}{transpose_a}
  // CHECK-NOT: train.matmul
  // CHECK: return %{{.*}}, %{{.*}}, %[[DW1]], %[[DW2]]
  %w1 = zero.read @w1 : tensor<4x4xf32>
  %w2 = zero.read @w2 : tensor<4x4xf32>
  %0 = train.matmul %x, %w1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = train.relu %0 : tensor<2x4xf32>
  %dead = train.tanh %1 : tensor<2x4xf32>
  %2 = train.matmul %1, %w2 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %3 = train.reduce_sum %2 axes [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  %4 = train.exp %2 : tensor<2x4xf32>
  return %4, %3 : tensor<2x4xf32>, tensor<f32>
}

// -----

// A loss that is a parameter has gradient 1.
// CHECK-LABEL: func @forward
zero.param @w : tensor<f32>
func.func @forward() -> (tensor<f32> {zero.output = "loss"}) {
  // CHECK: %[[ONE:.*]] = arith.constant dense<1.0
  // CHECK: return %{{.*}}, %[[ONE]]
  %w = zero.read @w : tensor<f32>
  return %w : tensor<f32>
}
