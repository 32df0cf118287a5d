// The derivative of each operation as IR: the gradients by all float inputs of
// the sum of the operation's result; DY is the gradient by that result.
// RUN: zero-opt %s -split-input-file -train-autodiff=inputs -canonicalize | FileCheck %s

// Transposed products, no transposes of data.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<3x5xf32> {zero.input = "a"}, %[[B:.*]]: tensor<5x4xf32> {zero.input = "b"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V0:.*]] = train.matmul %[[DY]], %[[B]] {transpose_b} : (tensor<3x4xf32>, tensor<5x4xf32>) -> tensor<3x5xf32>
// CHECK: %[[V1:.*]] = train.matmul %[[A]], %[[DY]] {transpose_a} : (tensor<3x5xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
// CHECK: return %{{.*}}, %[[V0]], %[[V1]]
func.func @forward(%a: tensor<3x5xf32> {zero.input = "a"}, %b: tensor<5x4xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.matmul %a, %b : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<3x5xf32> {zero.input = "a"}, %[[B:.*]]: tensor<4x5xf32> {zero.input = "b"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V0:.*]] = train.matmul %[[DY]], %[[B]] : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
// CHECK: %[[V1:.*]] = train.matmul %[[DY]], %[[A]] {transpose_a} : (tensor<3x4xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
// CHECK: return %{{.*}}, %[[V0]], %[[V1]]
func.func @forward(%a: tensor<3x5xf32> {zero.input = "a"}, %b: tensor<4x5xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.matmul %a, %b {transpose_b} : (tensor<3x5xf32>, tensor<4x5xf32>) -> tensor<3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<5x3xf32> {zero.input = "a"}, %[[B:.*]]: tensor<5x4xf32> {zero.input = "b"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V0:.*]] = train.matmul %[[B]], %[[DY]] {transpose_b} : (tensor<5x4xf32>, tensor<3x4xf32>) -> tensor<5x3xf32>
// CHECK: %[[V1:.*]] = train.matmul %[[A]], %[[DY]] : (tensor<5x3xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
// CHECK: return %{{.*}}, %[[V0]], %[[V1]]
func.func @forward(%a: tensor<5x3xf32> {zero.input = "a"}, %b: tensor<5x4xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.matmul %a, %b {transpose_a} : (tensor<5x3xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<5x3xf32> {zero.input = "a"}, %[[B:.*]]: tensor<4x5xf32> {zero.input = "b"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V0:.*]] = train.matmul %[[B]], %[[DY]] {transpose_a, transpose_b} : (tensor<4x5xf32>, tensor<3x4xf32>) -> tensor<5x3xf32>
// CHECK: %[[V1:.*]] = train.matmul %[[DY]], %[[A]] {transpose_a, transpose_b} : (tensor<3x4xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
// CHECK: return %{{.*}}, %[[V0]], %[[V1]]
func.func @forward(%a: tensor<5x3xf32> {zero.input = "a"}, %b: tensor<4x5xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.matmul %a, %b {transpose_a, transpose_b} : (tensor<5x3xf32>, tensor<4x5xf32>) -> tensor<3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A batch times one matrix: one product each, over the flattened batch.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<2x3x5xf32> {zero.input = "a"}, %[[B:.*]]: tensor<5x4xf32> {zero.input = "b"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1x1xf32> to tensor<2x3x4xf32>
// CHECK: %[[V0:.*]] = train.reshape %[[DY]] : tensor<2x3x4xf32> to tensor<6x4xf32>
// CHECK: %[[V1:.*]] = train.reshape %[[A]] : tensor<2x3x5xf32> to tensor<6x5xf32>
// CHECK: %[[V2:.*]] = train.matmul %[[V0]], %[[B]] {transpose_b} : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
// CHECK: %[[V3:.*]] = train.matmul %[[V1]], %[[V0]] {transpose_a} : (tensor<6x5xf32>, tensor<6x4xf32>) -> tensor<5x4xf32>
// CHECK: %[[V4:.*]] = train.reshape %[[V2]] : tensor<6x5xf32> to tensor<2x3x5xf32>
// CHECK: return %{{.*}}, %[[V4]], %[[V3]]
func.func @forward(%a: tensor<2x3x5xf32> {zero.input = "a"}, %b: tensor<5x4xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.matmul %a, %b : (tensor<2x3x5xf32>, tensor<5x4xf32>) -> tensor<2x3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1, 2] : (tensor<2x3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Batches that broadcast are summed.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<2x3x5xf32> {zero.input = "a"}, %[[B:.*]]: tensor<1x5x4xf32> {zero.input = "b"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1x1xf32> to tensor<2x3x4xf32>
// CHECK: %[[V0:.*]] = train.matmul %[[DY]], %[[B]] {transpose_b} : (tensor<2x3x4xf32>, tensor<1x5x4xf32>) -> tensor<2x3x5xf32>
// CHECK: %[[V1:.*]] = train.matmul %[[A]], %[[DY]] {transpose_a} : (tensor<2x3x5xf32>, tensor<2x3x4xf32>) -> tensor<2x5x4xf32>
// CHECK: %[[V2:.*]] = train.reduce_sum %[[V1]] axes [0] {keepdims} : (tensor<2x5x4xf32>) -> tensor<1x5x4xf32>
// CHECK: return %{{.*}}, %[[V0]], %[[V2]]
func.func @forward(%a: tensor<2x3x5xf32> {zero.input = "a"}, %b: tensor<1x5x4xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.matmul %a, %b : (tensor<2x3x5xf32>, tensor<1x5x4xf32>) -> tensor<2x3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1, 2] : (tensor<2x3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<3x5xf32> {zero.input = "a"}, %[[B:.*]]: tensor<4x5xf32> {zero.input = "b"}, %[[C:.*]]: tensor<4xf32> {zero.input = "c"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V0:.*]] = train.matmul %[[DY]], %[[B]] : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
// CHECK: %[[V1:.*]] = train.matmul %[[DY]], %[[A]] {transpose_a} : (tensor<3x4xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
// CHECK: %[[V2:.*]] = train.reduce_sum %[[DY]] axes [0] : (tensor<3x4xf32>) -> tensor<4xf32>
// CHECK: return %{{.*}}, %[[V0]], %[[V1]], %[[V2]]
func.func @forward(%a: tensor<3x5xf32> {zero.input = "a"}, %b: tensor<4x5xf32> {zero.input = "b"}, %c: tensor<4xf32> {zero.input = "c"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.gemm %a, %b, %c {transpose_b} : (tensor<3x5xf32>, tensor<4x5xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<2x4x9x9xf32> {zero.input = "x"}, %[[W:.*]]: tensor<6x2x3x3xf32> {zero.input = "w"}, %[[B:.*]]: tensor<6xf32> {zero.input = "b"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1x1x1xf32> to tensor<2x6x5x5xf32>
// CHECK: %[[V0:.*]] = train.conv_grad_input %[[DY]], %[[W]] input_shape [2, 4, 9, 9] strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] group 2 : (tensor<2x6x5x5xf32>, tensor<6x2x3x3xf32>) -> tensor<2x4x9x9xf32>
// CHECK: %[[V1:.*]] = train.conv_grad_weight %[[DY]], %[[X]] weight_shape [6, 2, 3, 3] strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] group 2 : (tensor<2x6x5x5xf32>, tensor<2x4x9x9xf32>) -> tensor<6x2x3x3xf32>
// CHECK: %[[V2:.*]] = train.reduce_sum %[[DY]] axes [0, 2, 3] : (tensor<2x6x5x5xf32>) -> tensor<6xf32>
// CHECK: return %{{.*}}, %[[V0]], %[[V1]], %[[V2]]
func.func @forward(%x: tensor<2x4x9x9xf32> {zero.input = "x"}, %w: tensor<6x2x3x3xf32> {zero.input = "w"}, %b: tensor<6xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.conv %x, %w, %b strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] group 2 : (tensor<2x4x9x9xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<2x6x5x5xf32>
  %loss = train.reduce_sum %y axes [0, 1, 2, 3] : (tensor<2x6x5x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<2x4x9x9xf32> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1x1x1xf32> to tensor<2x4x5x5xf32>
// CHECK: %[[V0:.*]] = train.max_pool_grad %[[DY]], %[[X]] kernel [2, 2] strides [2, 2] pads [0, 0, 1, 1] dilations [1, 1] : (tensor<2x4x5x5xf32>, tensor<2x4x9x9xf32>) -> tensor<2x4x9x9xf32>
// CHECK: return %{{.*}}, %[[V0]]
func.func @forward(%x: tensor<2x4x9x9xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.max_pool %x kernel [2, 2] strides [2, 2] pads [0, 0, 1, 1] dilations [1, 1] : (tensor<2x4x9x9xf32>) -> tensor<2x4x5x5xf32>
  %loss = train.reduce_sum %y axes [0, 1, 2, 3] : (tensor<2x4x5x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<2x4x9x9xf32> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1x1x1xf32> to tensor<2x4x5x5xf32>
// CHECK: %[[V0:.*]] = train.avg_pool_grad %[[DY]] input_shape [2, 4, 9, 9] kernel [2, 2] strides [2, 2] pads [0, 0, 1, 1] dilations [1, 1] {count_include_pad} : (tensor<2x4x5x5xf32>) -> tensor<2x4x9x9xf32>
// CHECK: return %{{.*}}, %[[V0]]
func.func @forward(%x: tensor<2x4x9x9xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.avg_pool %x kernel [2, 2] strides [2, 2] pads [0, 0, 1, 1] dilations [1, 1] {count_include_pad} : (tensor<2x4x9x9xf32>) -> tensor<2x4x5x5xf32>
  %loss = train.reduce_sum %y axes [0, 1, 2, 3] : (tensor<2x4x5x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<3x4xf32> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<12xf32>
// CHECK: %[[V0:.*]] = train.reshape %[[DY]] : tensor<12xf32> to tensor<3x4xf32>
// CHECK: return %{{.*}}, %[[V0]]
func.func @forward(%x: tensor<3x4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.reshape %x : tensor<3x4xf32> to tensor<12xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<12xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<3x1xf32> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1x1xf32> to tensor<2x3x4xf32>
// CHECK: %[[V0:.*]] = train.reduce_sum %[[DY]] axes [0, 2] : (tensor<2x3x4xf32>) -> tensor<3xf32>
// CHECK: %[[V1:.*]] = train.reshape %[[V0]] : tensor<3xf32> to tensor<3x1xf32>
// CHECK: return %{{.*}}, %[[V1]]
func.func @forward(%x: tensor<3x1xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.broadcast %x : tensor<3x1xf32> to tensor<2x3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1, 2] : (tensor<2x3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The inverse permutation.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<2x3x4xf32> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1x1xf32> to tensor<3x4x2xf32>
// CHECK: %[[V0:.*]] = train.transpose %[[DY]] [2, 0, 1] : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
// CHECK: return %{{.*}}, %[[V0]]
func.func @forward(%x: tensor<2x3x4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.transpose %x [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %loss = train.reduce_sum %y axes [0, 1, 2] : (tensor<3x4x2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The gradient is spread by the stride.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<9x4xf32> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V0:.*]] = train.pad %[[DY]] low [1, 0] high [1, 0] interior [2, 0] : (tensor<3x4xf32>) -> tensor<9x4xf32>
// CHECK: return %{{.*}}, %[[V0]]
func.func @forward(%x: tensor<9x4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.slice %x starts [1, 0] limits [8, 4] strides [3, 1] : (tensor<9x4xf32>) -> tensor<3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<9xf32> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<0xf32>
// CHECK: %[[V0:.*]] = train.pad %[[DY]] low [2] high [7] interior [0] : (tensor<0xf32>) -> tensor<9xf32>
// CHECK: return %{{.*}}, %[[V0]]
func.func @forward(%x: tensor<9xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.slice %x starts [2] limits [2] strides [1] : (tensor<9xf32>) -> tensor<0xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<0xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<1x4xf32> {zero.input = "a"}, %[[B:.*]]: tensor<2x4xf32> {zero.input = "b"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V0:.*]] = train.slice %[[DY]] starts [0, 0] limits [1, 4] strides [1, 1] : (tensor<3x4xf32>) -> tensor<1x4xf32>
// CHECK: %[[V1:.*]] = train.slice %[[DY]] starts [1, 0] limits [3, 4] strides [1, 1] : (tensor<3x4xf32>) -> tensor<2x4xf32>
// CHECK: return %{{.*}}, %[[V0]], %[[V1]]
func.func @forward(%a: tensor<1x4xf32> {zero.input = "a"}, %b: tensor<2x4xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.concat %a, %b axis 0 : (tensor<1x4xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<2x4xf32> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<5x6xf32>
// CHECK: %[[V0:.*]] = train.slice %[[DY]] starts [1, 0] limits [5, 4] strides [3, 1] : (tensor<5x6xf32>) -> tensor<2x4xf32>
// CHECK: return %{{.*}}, %[[V0]]
func.func @forward(%x: tensor<2x4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.pad %x low [1, 0] high [0, 2] interior [2, 0] : (tensor<2x4xf32>) -> tensor<5x6xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<5x6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[T:[a-z0-9]*]]: tensor<9x4xf32> {zero.input = "t"}, %[[I:.*]]: tensor<3xi64> {zero.input = "i"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V0:.*]] = train.gather_grad %[[DY]], %[[I]] axis 0 data_shape [9, 4] : (tensor<3x4xf32>, tensor<3xi64>) -> tensor<9x4xf32>
// CHECK: return %{{.*}}, %[[V0]]
func.func @forward(%t: tensor<9x4xf32> {zero.input = "t"}, %i: tensor<3xi64> {zero.input = "i"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.gather %t, %i axis 0 : (tensor<9x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<3x4xf32> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.reshape %[[DY]] : tensor<4xf32> to tensor<1x4xf32>
// CHECK: %[[V1:.*]] = train.broadcast %[[V0]] : tensor<1x4xf32> to tensor<3x4xf32>
// CHECK: return %{{.*}}, %[[V1]]
func.func @forward(%x: tensor<3x4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.reduce_sum %x axes [0] : (tensor<3x4xf32>) -> tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<3x4xf32> {zero.input = "x"})
// CHECK-DAG: %[[C0:.*]] = arith.constant dense<4.000000e+00> : tensor<f32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x1xf32>
// CHECK: %[[V0:.*]] = train.div %[[DY]], %[[C0]] : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
// CHECK: %[[V1:.*]] = train.broadcast %[[V0]] : tensor<3x1xf32> to tensor<3x4xf32>
// CHECK: return %{{.*}}, %[[V1]]
func.func @forward(%x: tensor<3x4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.reduce_mean %x axes [1] {keepdims} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x1xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Equal largest elements share the gradient.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<3x4xf32> {zero.input = "x"})
// CHECK: %[[V0:.*]] = train.reduce_max %[[X]] axes [0] : (tensor<3x4xf32>) -> tensor<4xf32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V1:.*]] = train.reshape %[[V0]] : tensor<4xf32> to tensor<1x4xf32>
// CHECK: %[[V2:.*]] = train.equal %[[X]], %[[V1]] : (tensor<3x4xf32>, tensor<1x4xf32>) -> tensor<3x4xi1>
// CHECK: %[[V3:.*]] = train.cast %[[V2]] : tensor<3x4xi1> to tensor<3x4xf32>
// CHECK: %[[V4:.*]] = train.reduce_sum %[[V3]] axes [0] {keepdims} : (tensor<3x4xf32>) -> tensor<1x4xf32>
// CHECK: %[[V5:.*]] = train.reshape %[[DY]] : tensor<4xf32> to tensor<1x4xf32>
// CHECK: %[[V6:.*]] = train.div %[[V5]], %[[V4]] : tensor<1x4xf32>
// CHECK: %[[V7:.*]] = train.mul %[[V3]], %[[V6]] : (tensor<3x4xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
// CHECK: return %{{.*}}, %[[V7]]
func.func @forward(%x: tensor<3x4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.reduce_max %x axes [0] : (tensor<3x4xf32>) -> tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<3x4xf32> {zero.input = "x"}, %[[S:.*]]: tensor<4xf32> {zero.input = "s"}, %[[B:.*]]: tensor<4xf32> {zero.input = "b"})
// CHECK: %{{.*}}, %[[V0:.*]], %[[V1:.*]] = train.layer_norm %[[X]], %[[S]], %[[B]] {axis = 1 : i64, epsilon = 1.000000e-05 : f64} : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3x1xf32>, tensor<3x1xf32>)
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V2:.*]], %[[V3:.*]], %[[V4:.*]] = train.layer_norm_grad %[[DY]], %[[X]], %[[S]], %[[V0]], %[[V1]] {axis = 1 : i64} : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<4xf32>, tensor<3x1xf32>, tensor<3x1xf32>) -> (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>)
// CHECK: return %{{.*}}, %[[V2]], %[[V3]], %[[V4]]
func.func @forward(%x: tensor<3x4xf32> {zero.input = "x"}, %s: tensor<4xf32> {zero.input = "s"}, %b: tensor<4xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y, %m, %r = train.layer_norm %x, %s, %b {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3x1xf32>, tensor<3x1xf32>)
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<3x4xf32> {zero.input = "x"}, %[[S:.*]]: tensor<4xf32> {zero.input = "s"})
// CHECK: %{{.*}}, %[[V0:.*]] = train.rms_norm %[[X]], %[[S]] {axis = 1 : i64, epsilon = 1.000000e-05 : f64} : (tensor<3x4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3x1xf32>)
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V1:.*]], %[[V2:.*]] = train.rms_norm_grad %[[DY]], %[[X]], %[[S]], %[[V0]] {axis = 1 : i64} : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<4xf32>, tensor<3x1xf32>) -> (tensor<3x4xf32>, tensor<4xf32>)
// CHECK: return %{{.*}}, %[[V1]], %[[V2]]
func.func @forward(%x: tensor<3x4xf32> {zero.input = "x"}, %s: tensor<4xf32> {zero.input = "s"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y, %r = train.rms_norm %x, %s {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<3x4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3x1xf32>)
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The running statistics get no gradient.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<3x4xf32> {zero.input = "x"}, %[[S:.*]]: tensor<4xf32> {zero.input = "s"}, %[[B:.*]]: tensor<4xf32> {zero.input = "b"}, %[[M:.*]]: tensor<4xf32> {zero.input = "m"}, %[[V:.*]]: tensor<4xf32> {zero.input = "v"})
// CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %[[V0:.*]], %[[V1:.*]] = train.batch_norm %[[X]], %[[S]], %[[B]], %[[M]], %[[V]] {epsilon = 1.000000e-05 : f64, momentum = 9.000000e-01 : f64} : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V2:.*]], %[[V3:.*]], %[[V4:.*]] = train.batch_norm_grad %[[DY]], %[[X]], %[[S]], %[[V0]], %[[V1]] : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>)
// CHECK: return %{{.*}}, %[[V2]], %[[V3]], %[[V4]]
func.func @forward(%x: tensor<3x4xf32> {zero.input = "x"}, %s: tensor<4xf32> {zero.input = "s"}, %b: tensor<4xf32> {zero.input = "b"}, %m: tensor<4xf32> {zero.input = "m"}, %v: tensor<4xf32> {zero.input = "v"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y, %rm, %rv, %sm, %sr = train.batch_norm %x, %s, %b, %m, %v {epsilon = 1.0e-5 : f64, momentum = 0.9 : f64} : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<3x4xf32> {zero.input = "x"}, %[[S:.*]]: tensor<4xf32> {zero.input = "s"}, %[[B:.*]]: tensor<4xf32> {zero.input = "b"})
// CHECK-DAG: %[[C0:.*]] = arith.constant dense<9.99999974E-6> : tensor<f32>
// CHECK-DAG: %[[C1:.*]] = arith.constant dense<5.000000e-01> : tensor<4xf32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V0:.*]] = train.reshape %[[C1]] : tensor<4xf32> to tensor<1x4xf32>
// CHECK: %[[V1:.*]] = train.add %[[V0]], %[[C0]] : (tensor<1x4xf32>, tensor<f32>) -> tensor<1x4xf32>
// CHECK: %[[V2:.*]] = train.rsqrt %[[V1]] : tensor<1x4xf32>
// CHECK: %[[V3:.*]] = train.reshape %[[C1]] : tensor<4xf32> to tensor<1x4xf32>
// CHECK: %[[V4:.*]] = train.sub %[[X]], %[[V3]] : (tensor<3x4xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
// CHECK: %[[V5:.*]] = train.mul %[[V4]], %[[V2]] : (tensor<3x4xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
// CHECK: %[[V6:.*]] = train.reshape %[[S]] : tensor<4xf32> to tensor<1x4xf32>
// CHECK: %[[V7:.*]] = train.mul %[[V6]], %[[V2]] : tensor<1x4xf32>
// CHECK: %[[V8:.*]] = train.mul %[[DY]], %[[V7]] : (tensor<3x4xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
// CHECK: %[[V9:.*]] = train.mul %[[DY]], %[[V5]] : tensor<3x4xf32>
// CHECK: %[[V10:.*]] = train.reduce_sum %[[V9]] axes [0] : (tensor<3x4xf32>) -> tensor<4xf32>
// CHECK: %[[V11:.*]] = train.reduce_sum %[[DY]] axes [0] : (tensor<3x4xf32>) -> tensor<4xf32>
// CHECK: return %{{.*}}, %[[V8]], %[[V10]], %[[V11]]
func.func @forward(%x: tensor<3x4xf32> {zero.input = "x"}, %s: tensor<4xf32> {zero.input = "s"}, %b: tensor<4xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %m = arith.constant dense<0.5> : tensor<4xf32>
  %y = train.batch_norm_inference %x, %s, %b, %m, %m {epsilon = 1.0e-5 : f64} : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<3x4xf32> {zero.input = "x"})
// CHECK: %[[V0:.*]] = train.softmax %[[X]] axis 1 : tensor<3x4xf32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V1:.*]] = train.softmax_grad %[[DY]], %[[V0]] axis 1 : tensor<3x4xf32>
// CHECK: return %{{.*}}, %[[V1]]
func.func @forward(%x: tensor<3x4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.softmax %x axis 1 : tensor<3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<3x4xf32> {zero.input = "x"})
// CHECK: %[[V0:.*]] = train.log_softmax %[[X]] axis 1 : tensor<3x4xf32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V1:.*]] = train.log_softmax_grad %[[DY]], %[[V0]] axis 1 : tensor<3x4xf32>
// CHECK: return %{{.*}}, %[[V1]]
func.func @forward(%x: tensor<3x4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.log_softmax %x axis 1 : tensor<3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<3x4xf32> {zero.input = "x"}, %[[L:.*]]: tensor<3xi64> {zero.input = "l"})
// CHECK-DAG: %[[C0:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[V0:.*]], %[[V1:.*]] = train.cross_entropy %[[X]], %[[L]] {axis = 1 : i64, ignore_index = 0 : i64} : (tensor<3x4xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
// CHECK: %[[V2:.*]] = train.cross_entropy_grad %[[C0]], %[[X]], %[[L]], %[[V1]] {axis = 1 : i64, ignore_index = 0 : i64} : (tensor<f32>, tensor<3x4xf32>, tensor<3xi64>, tensor<3xf32>) -> tensor<3x4xf32>
// CHECK: return %[[V0]], %[[V2]]
func.func @forward(%x: tensor<3x4xf32> {zero.input = "x"}, %l: tensor<3xi64> {zero.input = "l"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y, %lse = train.cross_entropy %x, %l {axis = 1 : i64, ignore_index = 0 : i64} : (tensor<3x4xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
  return %y : tensor<f32>
}
