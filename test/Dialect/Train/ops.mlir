// Every operation in its textual form, twice through the parser and once through
// the generic form.
// RUN: zero-opt %s | zero-opt | FileCheck %s
// RUN: zero-opt %s --mlir-print-op-generic | zero-opt | FileCheck %s

// Unary operations keep the type of their operand.
// CHECK-LABEL: func @unary(
func.func @unary(%x: tensor<8x10xf32>) {
  // CHECK: train.neg %{{.*}} : tensor<8x10xf32>
  %v0 = train.neg %x : tensor<8x10xf32>
  // CHECK: train.abs %{{.*}} : tensor<8x10xf32>
  %v1 = train.abs %x : tensor<8x10xf32>
  // CHECK: train.sign %{{.*}} : tensor<8x10xf32>
  %v2 = train.sign %x : tensor<8x10xf32>
  // CHECK: train.exp %{{.*}} : tensor<8x10xf32>
  %v3 = train.exp %x : tensor<8x10xf32>
  // CHECK: train.log %{{.*}} : tensor<8x10xf32>
  %v4 = train.log %x : tensor<8x10xf32>
  // CHECK: train.sqrt %{{.*}} : tensor<8x10xf32>
  %v5 = train.sqrt %x : tensor<8x10xf32>
  // CHECK: train.rsqrt %{{.*}} : tensor<8x10xf32>
  %v6 = train.rsqrt %x : tensor<8x10xf32>
  // CHECK: train.reciprocal %{{.*}} : tensor<8x10xf32>
  %v7 = train.reciprocal %x : tensor<8x10xf32>
  // CHECK: train.erf %{{.*}} : tensor<8x10xf32>
  %v8 = train.erf %x : tensor<8x10xf32>
  // CHECK: train.tanh %{{.*}} : tensor<8x10xf32>
  %v9 = train.tanh %x : tensor<8x10xf32>
  // CHECK: train.sigmoid %{{.*}} : tensor<8x10xf32>
  %v10 = train.sigmoid %x : tensor<8x10xf32>
  // CHECK: train.relu %{{.*}} : tensor<8x10xf32>
  %v11 = train.relu %x : tensor<8x10xf32>
  // CHECK: train.sin %{{.*}} : tensor<8x10xf32>
  %v12 = train.sin %x : tensor<8x10xf32>
  // CHECK: train.cos %{{.*}} : tensor<8x10xf32>
  %v13 = train.cos %x : tensor<8x10xf32>
  // CHECK: train.floor %{{.*}} : tensor<8x10xf32>
  %v14 = train.floor %x : tensor<8x10xf32>
  // CHECK: train.gelu %{{.*}} : tensor<8x10xf32>
  %v15 = train.gelu %x : tensor<8x10xf32>
  // CHECK: train.gelu %{{.*}} {approximate = "tanh"} : tensor<8x10xf32>
  %v16 = train.gelu %x {approximate = "tanh"} : tensor<8x10xf32>
  // CHECK: train.is_nan %{{.*}} : (tensor<8x10xf32>) -> tensor<8x10xi1>
  %v17 = train.is_nan %x : (tensor<8x10xf32>) -> tensor<8x10xi1>
  return
}

// The types that arithmetic is defined on, and the booleans.
// CHECK-LABEL: func @element_types(
func.func @element_types(%a: tensor<4xf16>, %b: tensor<4xbf16>, %c: tensor<4xf64>, %i: tensor<4xi64>, %p: tensor<4xi1>, %s: tensor<f32>, %e: tensor<0x4xf32>) {
  // CHECK: train.exp %{{.*}} : tensor<4xf16>
  %v0 = train.exp %a : tensor<4xf16>
  // CHECK: train.exp %{{.*}} : tensor<4xbf16>
  %v1 = train.exp %b : tensor<4xbf16>
  // CHECK: train.exp %{{.*}} : tensor<4xf64>
  %v2 = train.exp %c : tensor<4xf64>
  // CHECK: train.neg %{{.*}} : tensor<4xi64>
  %v3 = train.neg %i : tensor<4xi64>
  // CHECK: train.not %{{.*}} : tensor<4xi1>
  %v4 = train.not %p : tensor<4xi1>
  // CHECK: train.exp %{{.*}} : tensor<f32>
  %v5 = train.exp %s : tensor<f32>
  // CHECK: train.exp %{{.*}} : tensor<0x4xf32>
  %v6 = train.exp %e : tensor<0x4xf32>
  return
}

// Casts print both types and no attribute.
// CHECK-LABEL: func @cast(
func.func @cast(%x: tensor<4xi1>, %y: tensor<4xf32>) {
  // CHECK: train.cast %{{.*}} : tensor<4xi1> to tensor<4xf32>
  %v0 = train.cast %x : tensor<4xi1> to tensor<4xf32>
  // CHECK: train.cast %{{.*}} : tensor<4xf32> to tensor<4xi64>
  %v1 = train.cast %y : tensor<4xf32> to tensor<4xi64>
  return
}

// One type where all are equal, otherwise a function type.
// CHECK-LABEL: func @binary(
func.func @binary(%a: tensor<8x10xf32>, %b: tensor<8x10xf32>, %c: tensor<10xf32>, %d: tensor<8x1xf32>, %e: tensor<1x10xf32>, %z: tensor<0x10xf32>) {
  // CHECK: train.add %{{.*}}, %{{.*}} : tensor<8x10xf32>
  %v0 = train.add %a, %b : tensor<8x10xf32>
  // CHECK: train.add %{{.*}}, %{{.*}} : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  %v1 = train.add %a, %c : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  // CHECK: train.sub %{{.*}}, %{{.*}} : tensor<8x10xf32>
  %v2 = train.sub %a, %b : tensor<8x10xf32>
  // CHECK: train.sub %{{.*}}, %{{.*}} : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  %v3 = train.sub %a, %c : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  // CHECK: train.mul %{{.*}}, %{{.*}} : tensor<8x10xf32>
  %v4 = train.mul %a, %b : tensor<8x10xf32>
  // CHECK: train.mul %{{.*}}, %{{.*}} : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  %v5 = train.mul %a, %c : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  // CHECK: train.div %{{.*}}, %{{.*}} : tensor<8x10xf32>
  %v6 = train.div %a, %b : tensor<8x10xf32>
  // CHECK: train.div %{{.*}}, %{{.*}} : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  %v7 = train.div %a, %c : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  // CHECK: train.pow %{{.*}}, %{{.*}} : tensor<8x10xf32>
  %v8 = train.pow %a, %b : tensor<8x10xf32>
  // CHECK: train.pow %{{.*}}, %{{.*}} : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  %v9 = train.pow %a, %c : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  // CHECK: train.max %{{.*}}, %{{.*}} : tensor<8x10xf32>
  %v10 = train.max %a, %b : tensor<8x10xf32>
  // CHECK: train.max %{{.*}}, %{{.*}} : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  %v11 = train.max %a, %c : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  // CHECK: train.min %{{.*}}, %{{.*}} : tensor<8x10xf32>
  %v12 = train.min %a, %b : tensor<8x10xf32>
  // CHECK: train.min %{{.*}}, %{{.*}} : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  %v13 = train.min %a, %c : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  // CHECK: train.mod %{{.*}}, %{{.*}} : tensor<8x10xf32>
  %v14 = train.mod %a, %b : tensor<8x10xf32>
  // CHECK: train.mod %{{.*}}, %{{.*}} : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  %v15 = train.mod %a, %c : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  // CHECK: train.add %{{.*}}, %{{.*}} : (tensor<8x1xf32>, tensor<1x10xf32>) -> tensor<8x10xf32>
  %v16 = train.add %d, %e : (tensor<8x1xf32>, tensor<1x10xf32>) -> tensor<8x10xf32>
  // CHECK: train.add %{{.*}}, %{{.*}} : (tensor<10xf32>, tensor<8x10xf32>) -> tensor<8x10xf32>
  %v17 = train.add %c, %a : (tensor<10xf32>, tensor<8x10xf32>) -> tensor<8x10xf32>
  // CHECK: train.add %{{.*}}, %{{.*}} : (tensor<1x10xf32>, tensor<0x10xf32>) -> tensor<0x10xf32>
  %v18 = train.add %e, %z : (tensor<1x10xf32>, tensor<0x10xf32>) -> tensor<0x10xf32>
  return
}

// Comparisons yield booleans; logic takes them.
// CHECK-LABEL: func @logic(
func.func @logic(%a: tensor<8x10xf32>, %s: tensor<f32>, %p: tensor<8x10xi1>) {
  // CHECK: train.equal %{{.*}}, %{{.*}} : (tensor<8x10xf32>, tensor<f32>) -> tensor<8x10xi1>
  %v0 = train.equal %a, %s : (tensor<8x10xf32>, tensor<f32>) -> tensor<8x10xi1>
  // CHECK: train.less %{{.*}}, %{{.*}} : (tensor<8x10xf32>, tensor<f32>) -> tensor<8x10xi1>
  %v1 = train.less %a, %s : (tensor<8x10xf32>, tensor<f32>) -> tensor<8x10xi1>
  // CHECK: train.less_equal %{{.*}}, %{{.*}} : (tensor<8x10xf32>, tensor<f32>) -> tensor<8x10xi1>
  %v2 = train.less_equal %a, %s : (tensor<8x10xf32>, tensor<f32>) -> tensor<8x10xi1>
  // CHECK: train.greater %{{.*}}, %{{.*}} : (tensor<8x10xf32>, tensor<f32>) -> tensor<8x10xi1>
  %v3 = train.greater %a, %s : (tensor<8x10xf32>, tensor<f32>) -> tensor<8x10xi1>
  // CHECK: train.greater_equal %{{.*}}, %{{.*}} : (tensor<8x10xf32>, tensor<f32>) -> tensor<8x10xi1>
  %v4 = train.greater_equal %a, %s : (tensor<8x10xf32>, tensor<f32>) -> tensor<8x10xi1>
  // CHECK: train.and %{{.*}}, %{{.*}} : tensor<8x10xi1>
  %v5 = train.and %p, %p : tensor<8x10xi1>
  // CHECK: train.or %{{.*}}, %{{.*}} : tensor<8x10xi1>
  %v6 = train.or %p, %p : tensor<8x10xi1>
  // CHECK: train.xor %{{.*}}, %{{.*}} : tensor<8x10xi1>
  %v7 = train.xor %p, %p : tensor<8x10xi1>
  // CHECK: train.equal %{{.*}}, %{{.*}} : tensor<8x10xi1>
  %v8 = train.equal %p, %p : tensor<8x10xi1>
  // CHECK: train.where %{{.*}}, %{{.*}}, %{{.*}} : (tensor<8x10xi1>, tensor<8x10xf32>, tensor<f32>) -> tensor<8x10xf32>
  %v9 = train.where %p, %a, %s : (tensor<8x10xi1>, tensor<8x10xf32>, tensor<f32>) -> tensor<8x10xf32>
  return
}

// Helpers of the backward pass.
// CHECK-LABEL: func @activation_grads(
func.func @activation_grads(%dy: tensor<8x10xf32>, %x: tensor<8x10xf32>) {
  // CHECK: train.relu_grad %{{.*}}, %{{.*}} : tensor<8x10xf32>
  %v0 = train.relu_grad %dy, %x : tensor<8x10xf32>
  // CHECK: train.gelu_grad %{{.*}}, %{{.*}} : tensor<8x10xf32>
  %v1 = train.gelu_grad %dy, %x : tensor<8x10xf32>
  // CHECK: train.gelu_grad %{{.*}}, %{{.*}} {approximate = "tanh"} : tensor<8x10xf32>
  %v2 = train.gelu_grad %dy, %x {approximate = "tanh"} : tensor<8x10xf32>
  return
}

// Transposes apply to the last two dimensions, before the product.
// CHECK-LABEL: func @products(
func.func @products(%a: tensor<4x8x64xf32>, %b: tensor<10x64xf32>, %c: tensor<64x10xf32>, %d: tensor<2x1x64x8xf32>, %x: tensor<8x64xf32>, %v: tensor<10xf32>) {
  // CHECK: train.matmul %{{.*}}, %{{.*}} : (tensor<4x8x64xf32>, tensor<64x10xf32>) -> tensor<4x8x10xf32>
  %v0 = train.matmul %a, %c : (tensor<4x8x64xf32>, tensor<64x10xf32>) -> tensor<4x8x10xf32>
  // CHECK: train.matmul %{{.*}}, %{{.*}} {transpose_b} : (tensor<4x8x64xf32>, tensor<10x64xf32>) -> tensor<4x8x10xf32>
  %v1 = train.matmul %a, %b {transpose_b} : (tensor<4x8x64xf32>, tensor<10x64xf32>) -> tensor<4x8x10xf32>
  // CHECK: train.matmul %{{.*}}, %{{.*}} {transpose_a, transpose_b} : (tensor<2x1x64x8xf32>, tensor<10x64xf32>) -> tensor<2x1x8x10xf32>
  %v2 = train.matmul %d, %b {transpose_a, transpose_b} : (tensor<2x1x64x8xf32>, tensor<10x64xf32>) -> tensor<2x1x8x10xf32>
  // CHECK: train.matmul %{{.*}}, %{{.*}} : (tensor<4x8x64xf32>, tensor<2x1x64x8xf32>) -> tensor<2x4x8x8xf32>
  %v3 = train.matmul %a, %d : (tensor<4x8x64xf32>, tensor<2x1x64x8xf32>) -> tensor<2x4x8x8xf32>
  // CHECK: train.gemm %{{.*}}, %{{.*}}, %{{.*}} {transpose_b} : (tensor<8x64xf32>, tensor<10x64xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  %v4 = train.gemm %x, %b, %v {transpose_b} : (tensor<8x64xf32>, tensor<10x64xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  return
}

// Strides, padding, dilation, groups; 1-D as well.
// CHECK-LABEL: func @convolutions(
func.func @convolutions(%x: tensor<2x4x9x9xf32>, %w: tensor<6x2x3x3xf32>, %b: tensor<6xf32>, %dy: tensor<2x6x5x5xf32>, %x1: tensor<2x4x9xf32>, %w1: tensor<3x4x2xf32>) {
  // CHECK: train.conv %{{.*}}, %{{.*}}, %{{.*}} strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] group 2 : (tensor<2x4x9x9xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<2x6x5x5xf32>
  %v0 = train.conv %x, %w, %b strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] group 2 : (tensor<2x4x9x9xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<2x6x5x5xf32>
  // CHECK: train.conv %{{.*}}, %{{.*}} strides [1] pads [0, 1] dilations [3] : (tensor<2x4x9xf32>, tensor<3x4x2xf32>) -> tensor<2x3x7xf32>
  %v1 = train.conv %x1, %w1 strides [1] pads [0, 1] dilations [3] : (tensor<2x4x9xf32>, tensor<3x4x2xf32>) -> tensor<2x3x7xf32>
  // CHECK: train.conv_grad_input %{{.*}}, %{{.*}} input_shape [2, 4, 9, 9] strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] group 2 : (tensor<2x6x5x5xf32>, tensor<6x2x3x3xf32>) -> tensor<2x4x9x9xf32>
  %v2 = train.conv_grad_input %dy, %w input_shape [2, 4, 9, 9] strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] group 2 : (tensor<2x6x5x5xf32>, tensor<6x2x3x3xf32>) -> tensor<2x4x9x9xf32>
  // CHECK: train.conv_grad_weight %{{.*}}, %{{.*}} weight_shape [6, 2, 3, 3] strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] group 2 : (tensor<2x6x5x5xf32>, tensor<2x4x9x9xf32>) -> tensor<6x2x3x3xf32>
  %v3 = train.conv_grad_weight %dy, %x weight_shape [6, 2, 3, 3] strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] group 2 : (tensor<2x6x5x5xf32>, tensor<2x4x9x9xf32>) -> tensor<6x2x3x3xf32>
  return
}

// Poolings and their gradients.
// CHECK-LABEL: func @pools(
func.func @pools(%x: tensor<2x4x9x9xf32>, %dy: tensor<2x4x5x5xf32>) {
  // CHECK: train.max_pool %{{.*}} kernel [2, 2] strides [2, 2] pads [0, 0, 1, 1] dilations [1, 1] : (tensor<2x4x9x9xf32>) -> tensor<2x4x5x5xf32>
  %v0 = train.max_pool %x kernel [2, 2] strides [2, 2] pads [0, 0, 1, 1] dilations [1, 1] : (tensor<2x4x9x9xf32>) -> tensor<2x4x5x5xf32>
  // CHECK: train.max_pool_grad %{{.*}}, %{{.*}} kernel [2, 2] strides [2, 2] pads [0, 0, 1, 1] dilations [1, 1] : (tensor<2x4x5x5xf32>, tensor<2x4x9x9xf32>) -> tensor<2x4x9x9xf32>
  %v1 = train.max_pool_grad %dy, %x kernel [2, 2] strides [2, 2] pads [0, 0, 1, 1] dilations [1, 1] : (tensor<2x4x5x5xf32>, tensor<2x4x9x9xf32>) -> tensor<2x4x9x9xf32>
  // CHECK: train.avg_pool %{{.*}} kernel [2, 2] strides [2, 2] pads [0, 0, 1, 1] dilations [1, 1] : (tensor<2x4x9x9xf32>) -> tensor<2x4x5x5xf32>
  %v2 = train.avg_pool %x kernel [2, 2] strides [2, 2] pads [0, 0, 1, 1] dilations [1, 1] : (tensor<2x4x9x9xf32>) -> tensor<2x4x5x5xf32>
  // CHECK: train.avg_pool %{{.*}} kernel [2, 2] strides [2, 2] pads [0, 0, 1, 1] dilations [1, 1] {count_include_pad} : (tensor<2x4x9x9xf32>) -> tensor<2x4x5x5xf32>
  %v3 = train.avg_pool %x kernel [2, 2] strides [2, 2] pads [0, 0, 1, 1] dilations [1, 1] {count_include_pad} : (tensor<2x4x9x9xf32>) -> tensor<2x4x5x5xf32>
  // CHECK: train.avg_pool_grad %{{.*}} input_shape [2, 4, 9, 9] kernel [2, 2] strides [2, 2] pads [0, 0, 1, 1] dilations [1, 1] {count_include_pad} : (tensor<2x4x5x5xf32>) -> tensor<2x4x9x9xf32>
  %v4 = train.avg_pool_grad %dy input_shape [2, 4, 9, 9] kernel [2, 2] strides [2, 2] pads [0, 0, 1, 1] dilations [1, 1] {count_include_pad} : (tensor<2x4x5x5xf32>) -> tensor<2x4x9x9xf32>
  return
}

// Operations that move elements.
// CHECK-LABEL: func @shapes(
func.func @shapes(%x: tensor<8x4x16xf32>, %y: tensor<1x16xf32>, %t: tensor<100x16xf32>, %i: tensor<4x8xi64>, %dy: tensor<4x8x16xf32>, %b: tensor<3xi1>) {
  // CHECK: train.reshape %{{.*}} : tensor<8x4x16xf32> to tensor<8x64xf32>
  %v0 = train.reshape %x : tensor<8x4x16xf32> to tensor<8x64xf32>
  // CHECK: train.broadcast %{{.*}} : tensor<1x16xf32> to tensor<4x8x16xf32>
  %v1 = train.broadcast %y : tensor<1x16xf32> to tensor<4x8x16xf32>
  // CHECK: train.transpose %{{.*}} [0, 2, 1] : (tensor<8x4x16xf32>) -> tensor<8x16x4xf32>
  %v2 = train.transpose %x [0, 2, 1] : (tensor<8x4x16xf32>) -> tensor<8x16x4xf32>
  // CHECK: train.slice %{{.*}} starts [0, 1, 0] limits [8, 4, 16] strides [1, 2, 4] : (tensor<8x4x16xf32>) -> tensor<8x2x4xf32>
  %v3 = train.slice %x starts [0, 1, 0] limits [8, 4, 16] strides [1, 2, 4] : (tensor<8x4x16xf32>) -> tensor<8x2x4xf32>
  // CHECK: train.slice %{{.*}} starts [1] limits [1] strides [1] : (tensor<3xi1>) -> tensor<0xi1>
  %v4 = train.slice %b starts [1] limits [1] strides [1] : (tensor<3xi1>) -> tensor<0xi1>
  // CHECK: train.concat %{{.*}}, %{{.*}} axis 0 : (tensor<1x16xf32>, tensor<100x16xf32>) -> tensor<101x16xf32>
  %v5 = train.concat %y, %t axis 0 : (tensor<1x16xf32>, tensor<100x16xf32>) -> tensor<101x16xf32>
  // CHECK: train.pad %{{.*}} low [0, 1] high [2, 0] interior [0, 1] : (tensor<1x16xf32>) -> tensor<3x32xf32>
  %v6 = train.pad %y low [0, 1] high [2, 0] interior [0, 1] : (tensor<1x16xf32>) -> tensor<3x32xf32>
  // CHECK: train.gather %{{.*}}, %{{.*}} axis 0 : (tensor<100x16xf32>, tensor<4x8xi64>) -> tensor<4x8x16xf32>
  %v7 = train.gather %t, %i axis 0 : (tensor<100x16xf32>, tensor<4x8xi64>) -> tensor<4x8x16xf32>
  // CHECK: train.gather_grad %{{.*}}, %{{.*}} axis 0 data_shape [100, 16] : (tensor<4x8x16xf32>, tensor<4x8xi64>) -> tensor<100x16xf32>
  %v8 = train.gather_grad %dy, %i axis 0 data_shape [100, 16] : (tensor<4x8x16xf32>, tensor<4x8xi64>) -> tensor<100x16xf32>
  return
}

// With and without the reduced dimensions.
// CHECK-LABEL: func @reductions(
func.func @reductions(%x: tensor<8x10xf32>, %i: tensor<8x10xi64>, %e: tensor<0x3xf32>) {
  // CHECK: train.reduce_sum %{{.*}} axes [1] {keepdims} : (tensor<8x10xf32>) -> tensor<8x1xf32>
  %v0 = train.reduce_sum %x axes [1] {keepdims} : (tensor<8x10xf32>) -> tensor<8x1xf32>
  // CHECK: train.reduce_mean %{{.*}} axes [1] {keepdims} : (tensor<8x10xf32>) -> tensor<8x1xf32>
  %v1 = train.reduce_mean %x axes [1] {keepdims} : (tensor<8x10xf32>) -> tensor<8x1xf32>
  // CHECK: train.reduce_max %{{.*}} axes [1] {keepdims} : (tensor<8x10xf32>) -> tensor<8x1xf32>
  %v2 = train.reduce_max %x axes [1] {keepdims} : (tensor<8x10xf32>) -> tensor<8x1xf32>
  // CHECK: train.reduce_min %{{.*}} axes [1] {keepdims} : (tensor<8x10xf32>) -> tensor<8x1xf32>
  %v3 = train.reduce_min %x axes [1] {keepdims} : (tensor<8x10xf32>) -> tensor<8x1xf32>
  // CHECK: train.reduce_sum %{{.*}} axes [0, 1] : (tensor<8x10xf32>) -> tensor<f32>
  %v4 = train.reduce_sum %x axes [0, 1] : (tensor<8x10xf32>) -> tensor<f32>
  // CHECK: train.reduce_sum %{{.*}} axes [] : (tensor<8x10xf32>) -> tensor<8x10xf32>
  %v5 = train.reduce_sum %x axes [] : (tensor<8x10xf32>) -> tensor<8x10xf32>
  // CHECK: train.reduce_sum %{{.*}} axes [0] : (tensor<8x10xi64>) -> tensor<10xi64>
  %v6 = train.reduce_sum %i axes [0] : (tensor<8x10xi64>) -> tensor<10xi64>
  // CHECK: train.reduce_sum %{{.*}} axes [0] : (tensor<0x3xf32>) -> tensor<3xf32>
  %v7 = train.reduce_sum %e axes [0] : (tensor<0x3xf32>) -> tensor<3xf32>
  return
}

// Normalizations with saved statistics; those of f16 are f32.
// CHECK-LABEL: func @norms(
func.func @norms(%x: tensor<8x4x16xf32>, %s: tensor<16xf32>, %st: tensor<8x4x1xf32>, %h: tensor<8x16xf16>, %hs: tensor<16xf16>, %i: tensor<8x4x5x5xf32>, %c: tensor<4xf32>) {
  // CHECK: train.layer_norm %{{.*}}, %{{.*}}, %{{.*}} {axis = 2 : i64, epsilon = 1.000000e-05 : f64} : (tensor<8x4x16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<8x4x16xf32>, tensor<8x4x1xf32>, tensor<8x4x1xf32>)
  %v0:3 = train.layer_norm %x, %s, %s {axis = 2 : i64, epsilon = 1.000000e-05 : f64} : (tensor<8x4x16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<8x4x16xf32>, tensor<8x4x1xf32>, tensor<8x4x1xf32>)
  // CHECK: train.layer_norm %{{.*}}, %{{.*}} {axis = 1 : i64, epsilon = 1.000000e-05 : f64} : (tensor<8x16xf16>, tensor<16xf16>) -> (tensor<8x16xf16>, tensor<8x1xf32>, tensor<8x1xf32>)
  %v1:3 = train.layer_norm %h, %hs {axis = 1 : i64, epsilon = 1.000000e-05 : f64} : (tensor<8x16xf16>, tensor<16xf16>) -> (tensor<8x16xf16>, tensor<8x1xf32>, tensor<8x1xf32>)
  // CHECK: train.layer_norm_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {axis = 2 : i64} : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<16xf32>, tensor<8x4x1xf32>, tensor<8x4x1xf32>) -> (tensor<8x4x16xf32>, tensor<16xf32>, tensor<16xf32>)
  %v2:3 = train.layer_norm_grad %x, %x, %s, %st, %st {axis = 2 : i64} : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<16xf32>, tensor<8x4x1xf32>, tensor<8x4x1xf32>) -> (tensor<8x4x16xf32>, tensor<16xf32>, tensor<16xf32>)
  // CHECK: train.rms_norm %{{.*}}, %{{.*}} {axis = 2 : i64, epsilon = 1.000000e-05 : f64} : (tensor<8x4x16xf32>, tensor<16xf32>) -> (tensor<8x4x16xf32>, tensor<8x4x1xf32>)
  %v3:2 = train.rms_norm %x, %s {axis = 2 : i64, epsilon = 1.000000e-05 : f64} : (tensor<8x4x16xf32>, tensor<16xf32>) -> (tensor<8x4x16xf32>, tensor<8x4x1xf32>)
  // CHECK: train.rms_norm_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {axis = 2 : i64} : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<16xf32>, tensor<8x4x1xf32>) -> (tensor<8x4x16xf32>, tensor<16xf32>)
  %v4:2 = train.rms_norm_grad %x, %x, %s, %st {axis = 2 : i64} : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<16xf32>, tensor<8x4x1xf32>) -> (tensor<8x4x16xf32>, tensor<16xf32>)
  // CHECK: train.batch_norm %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {epsilon = 1.000000e-05 : f64, momentum = 9.000000e-01 : f64, unbiased} : (tensor<8x4x5x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4x5x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %v5:5 = train.batch_norm %i, %c, %c, %c, %c {epsilon = 1.000000e-05 : f64, momentum = 9.000000e-01 : f64, unbiased} : (tensor<8x4x5x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4x5x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: train.batch_norm_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<8x4x5x5xf32>, tensor<8x4x5x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4x5x5xf32>, tensor<4xf32>, tensor<4xf32>)
  %v6:3 = train.batch_norm_grad %i, %i, %c, %c, %c : (tensor<8x4x5x5xf32>, tensor<8x4x5x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4x5x5xf32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: train.batch_norm_inference %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {epsilon = 1.000000e-05 : f64} : (tensor<8x4x5x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4x5x5xf32>
  %v7 = train.batch_norm_inference %i, %c, %c, %c, %c {epsilon = 1.000000e-05 : f64} : (tensor<8x4x5x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4x5x5xf32>
  return
}

// Softmax and its logarithm.
// CHECK-LABEL: func @softmax(
func.func @softmax(%x: tensor<8x10xf32>) {
  // CHECK: train.softmax %{{.*}} axis 1 : tensor<8x10xf32>
  %v0 = train.softmax %x axis 1 : tensor<8x10xf32>
  // CHECK: train.log_softmax %{{.*}} axis 1 : tensor<8x10xf32>
  %v1 = train.log_softmax %x axis 1 : tensor<8x10xf32>
  // CHECK: train.softmax_grad %{{.*}}, %{{.*}} axis 0 : tensor<8x10xf32>
  %v2 = train.softmax_grad %x, %x axis 0 : tensor<8x10xf32>
  // CHECK: train.log_softmax_grad %{{.*}}, %{{.*}} axis 0 : tensor<8x10xf32>
  %v3 = train.log_softmax_grad %x, %x axis 0 : tensor<8x10xf32>
  return
}

// The class axis may stand anywhere; -100 is the default of ignore_index and not printed. The loss of f64 logits is f64.
// CHECK-LABEL: func @loss(
func.func @loss(%x: tensor<2x5x7xf32>, %l: tensor<2x7xi64>, %d: tensor<f32>, %s: tensor<2x7xf32>, %y: tensor<8x10xf64>, %m: tensor<8xi32>) {
  // CHECK: train.cross_entropy %{{.*}}, %{{.*}} {axis = 1 : i64} : (tensor<2x5x7xf32>, tensor<2x7xi64>) -> (tensor<f32>, tensor<2x7xf32>)
  %v0:2 = train.cross_entropy %x, %l {axis = 1 : i64} : (tensor<2x5x7xf32>, tensor<2x7xi64>) -> (tensor<f32>, tensor<2x7xf32>)
  // CHECK: train.cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {axis = 1 : i64} : (tensor<f32>, tensor<2x5x7xf32>, tensor<2x7xi64>, tensor<2x7xf32>) -> tensor<2x5x7xf32>
  %v1 = train.cross_entropy_grad %d, %x, %l, %s {axis = 1 : i64} : (tensor<f32>, tensor<2x5x7xf32>, tensor<2x7xi64>, tensor<2x7xf32>) -> tensor<2x5x7xf32>
  // CHECK: train.cross_entropy %{{.*}}, %{{.*}} {axis = 1 : i64, ignore_index = 0 : i64} : (tensor<8x10xf64>, tensor<8xi32>) -> (tensor<f64>, tensor<8xf64>)
  %v2:2 = train.cross_entropy %y, %m {axis = 1 : i64, ignore_index = 0 : i64} : (tensor<8x10xf64>, tensor<8xi32>) -> (tensor<f64>, tensor<8xf64>)
  return
}

// The momentum buffer and the step number of sgd are optional.
// CHECK-LABEL: func @updates(
func.func @updates(%p: tensor<8xf32>, %g: tensor<8xf32>, %m: tensor<8xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // CHECK: train.sgd %{{.*}}, %{{.*}}, %{{.*}} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %v0 = train.sgd %p, %g, %lr : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  // CHECK: train.sgd %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {momentum = 9.000000e-01 : f64, nesterov, weight_decay = 1.000000e-01 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
  %v1:2 = train.sgd %p, %g, %m, %lr {momentum = 9.000000e-01 : f64, nesterov, weight_decay = 1.000000e-01 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
  // CHECK: train.sgd %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {dampening = 5.000000e-01 : f64, momentum = 9.000000e-01 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<i64>) -> (tensor<8xf32>, tensor<8xf32>)
  %v2:2 = train.sgd %p, %g, %m, %lr, %t {dampening = 5.000000e-01 : f64, momentum = 9.000000e-01 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<i64>) -> (tensor<8xf32>, tensor<8xf32>)
  // CHECK: train.adam %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {beta1 = 9.000000e-01 : f64, beta2 = 5.000000e-01 : f64, epsilon = 1.000000e-08 : f64, weight_decay = 0.000000e+00 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<i64>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  %v3:3 = train.adam %p, %g, %m, %m, %lr, %t {beta1 = 9.000000e-01 : f64, beta2 = 5.000000e-01 : f64, epsilon = 1.000000e-08 : f64, weight_decay = 0.000000e+00 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<i64>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  // CHECK: train.adamw %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {beta1 = 9.000000e-01 : f64, beta2 = 5.000000e-01 : f64, epsilon = 1.000000e-08 : f64, weight_decay = 0.000000e+00 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<i64>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  %v4:3 = train.adamw %p, %g, %m, %m, %lr, %t {beta1 = 9.000000e-01 : f64, beta2 = 5.000000e-01 : f64, epsilon = 1.000000e-08 : f64, weight_decay = 0.000000e+00 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<i64>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  // CHECK: train.sum_squares %{{.*}}, %{{.*}} : (tensor<8xf32>, tensor<f32>) -> tensor<f64>
  %v5 = train.sum_squares %p, %lr : (tensor<8xf32>, tensor<f32>) -> tensor<f64>
  return
}
