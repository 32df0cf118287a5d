// Every rule of the operations, each broken once. Where result types cannot be
// inferred a second error of upstream's follows the first.
// RUN: zero-opt %s -split-input-file -verify-diagnostics

// Broadcasting.
func.func @f(%a: tensor<8x10xf32>, %b: tensor<4xf32>) {
  // expected-error @+2 {{'train.add' op operand of shape [4] does not broadcast with shape [8, 10]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.add %a, %b : (tensor<8x10xf32>, tensor<4xf32>) -> tensor<8x10xf32>
  return
}

// -----

// Two element types.
func.func @f(%a: tensor<8x10xf32>, %b: tensor<8x10xf64>) {
  // expected-error @+1 {{op requires the same element type for all operands}}
  %0 = train.add %a, %b : (tensor<8x10xf32>, tensor<8x10xf64>) -> tensor<8x10xf32>
  return
}

// -----

// Result shape.
func.func @f(%a: tensor<8x10xf32>, %b: tensor<8x10xf32>) {
  // expected-error @+2 {{op inferred type(s) 'tensor<8x10xf32>' are incompatible with return type(s) of operation 'tensor<8xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.add %a, %b : (tensor<8x10xf32>, tensor<8x10xf32>) -> tensor<8xf32>
  return
}

// -----

// No arithmetic on booleans.
func.func @f(%a: tensor<8xi1>) {
  // expected-error @+1 {{operand #0 must be statically shaped tensor of}}
  %0 = train.neg %a : tensor<8xi1>
  return
}

// -----

// Only static shapes.
func.func @f(%a: tensor<?xf32>) {
  // expected-error @+1 {{operand #0 must be statically shaped tensor of}}
  %0 = train.neg %a : tensor<?xf32>
  return
}

// -----

// Choice between types.
func.func @f(%c: tensor<8x10xi1>, %a: tensor<8x10xf32>, %b: tensor<f64>) {
  // expected-error @+1 {{failed to verify that all of {on_true, on_false, result} have same element type}}
  %0 = train.where %c, %a, %b : (tensor<8x10xi1>, tensor<8x10xf32>, tensor<f64>) -> tensor<8x10xf32>
  return
}

// -----

// An approximation that does not exist.
func.func @f(%a: tensor<8x10xf32>) {
  // expected-error @+1 {{'train.gelu' op approximate is "erf", expected "none" or "tanh"}}
  %0 = train.gelu %a {approximate = "erf"} : tensor<8x10xf32>
  return
}

// -----

// An approximation that does not exist.
func.func @f(%a: tensor<8x10xf32>) {
  // expected-error @+1 {{'train.gelu_grad' op approximate is "erf", expected "none" or "tanh"}}
  %0 = train.gelu_grad %a, %a {approximate = "erf"} : tensor<8x10xf32>
  return
}

// -----

// A vector in a matrix product.
func.func @f(%a: tensor<8x10xf32>, %b: tensor<10xf32>) {
  // expected-error @+2 {{operand of shape [10] is not a matrix, reshape it to rank 2 first}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.matmul %a, %b : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8xf32>
  return
}

// -----

// Inner dimensions.
func.func @f(%a: tensor<8x10xf32>, %b: tensor<8x10xf32>) {
  // expected-error @+2 {{contracted dimensions differ, 10 and 8}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.matmul %a, %b : (tensor<8x10xf32>, tensor<8x10xf32>) -> tensor<8x10xf32>
  return
}

// -----

// Batch dimensions.
func.func @f(%a: tensor<2x8x10xf32>, %b: tensor<3x10x4xf32>) {
  // expected-error @+2 {{batch dimensions [2] and [3] do not broadcast}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.matmul %a, %b : (tensor<2x8x10xf32>, tensor<3x10x4xf32>) -> tensor<2x8x4xf32>
  return
}

// -----

// A batch in gemm.
func.func @f(%a: tensor<2x8x10xf32>, %b: tensor<10x4xf32>, %c: tensor<4xf32>) {
  // expected-error @+2 {{operands have batch dimensions, use matmul and add}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.gemm %a, %b, %c : (tensor<2x8x10xf32>, tensor<10x4xf32>, tensor<4xf32>) -> tensor<2x8x4xf32>
  return
}

// -----

// A bias that would widen the result.
func.func @f(%a: tensor<8x10xf32>, %b: tensor<10x1xf32>, %c: tensor<4xf32>) {
  // expected-error @+2 {{bias of shape [4] does not broadcast to the result's shape [8, 1]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.gemm %a, %b, %c : (tensor<8x10xf32>, tensor<10x1xf32>, tensor<4xf32>) -> tensor<8x1xf32>
  return
}

// -----

// Ranks of a convolution.
func.func @f(%x: tensor<2x4xf32>, %w: tensor<6x4xf32>) {
  // expected-error @+2 {{input of shape [2, 4] and weight of shape [6, 4] do not have the same rank of 3 or more}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : (tensor<2x4xf32>, tensor<6x4xf32>) -> tensor<2x6xf32>
  return
}

// -----

// Groups and output channels.
func.func @f(%x: tensor<2x4x9x9xf32>, %w: tensor<6x1x3x3xf32>) {
  // expected-error @+2 {{cannot split 6 output channels into 4 groups}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] group 4 : (tensor<2x4x9x9xf32>, tensor<6x1x3x3xf32>) -> tensor<2x6x7x7xf32>
  return
}

// -----

// Groups and input channels.
func.func @f(%x: tensor<2x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @+2 {{input has 4 channels, weight takes 8}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] group 2 : (tensor<2x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x7x7xf32>
  return
}

// -----

// Bias.
func.func @f(%x: tensor<2x4x9x9xf32>, %w: tensor<6x4x3x3xf32>, %b: tensor<4xf32>) {
  // expected-error @+2 {{bias has shape [4], expected [6]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.conv %x, %w, %b strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : (tensor<2x4x9x9xf32>, tensor<6x4x3x3xf32>, tensor<4xf32>) -> tensor<2x6x7x7xf32>
  return
}

// -----

// Number of strides.
func.func @f(%x: tensor<2x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @+2 {{strides has 1 numbers, expected 2 for 2 spatial dimensions}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.conv %x, %w strides [1] pads [0, 0, 0, 0] dilations [1, 1] : (tensor<2x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x7x7xf32>
  return
}

// -----

// Number of pads.
func.func @f(%x: tensor<2x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @+2 {{pads has 2 numbers, expected 4 for 2 spatial dimensions}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.conv %x, %w strides [1, 1] pads [1, 1] dilations [1, 1] : (tensor<2x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x7x7xf32>
  return
}

// -----

// A dilation of 0.
func.func @f(%x: tensor<2x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @+2 {{dilations [1, 0] has a number less than 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 0] : (tensor<2x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x7x7xf32>
  return
}

// -----

// A window larger than the input.
func.func @f(%x: tensor<2x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @+2 {{window of size 19 exceeds spatial dimension 0 of padded size 9}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [9, 9] : (tensor<2x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x7x7xf32>
  return
}

// -----

// Gradient of a convolution.
func.func @f(%d: tensor<2x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @+2 {{'train.conv_grad_input' op grad has shape [2, 4, 9, 9], expected [2, 6, 7, 7]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.conv_grad_input %d, %w input_shape [2, 4, 9, 9] strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : (tensor<2x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<2x4x9x9xf32>
  return
}

// -----

// Gradient of a convolution by its weight.
func.func @f(%d: tensor<2x4x9x9xf32>, %x: tensor<2x4x9x9xf32>) {
  // expected-error @+2 {{'train.conv_grad_weight' op grad has shape [2, 4, 9, 9], expected [2, 6, 7, 7]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.conv_grad_weight %d, %x weight_shape [6, 4, 3, 3] strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : (tensor<2x4x9x9xf32>, tensor<2x4x9x9xf32>) -> tensor<6x4x3x3xf32>
  return
}

// -----

// Pooling without a spatial dimension.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{input of shape [8, 10] has no spatial dimension}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.max_pool %x kernel [] strides [] pads [] dilations [] : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return
}

// -----

// Kernel of a pooling.
func.func @f(%x: tensor<2x4x9x9xf32>) {
  // expected-error @+2 {{kernel has 1 numbers, expected 2 for 2 spatial dimensions}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.avg_pool %x kernel [3] strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : (tensor<2x4x9x9xf32>) -> tensor<2x4x9x9xf32>
  return
}

// -----

// Gradient of a pooling.
func.func @f(%d: tensor<2x4x9x9xf32>, %x: tensor<2x4x9x9xf32>) {
  // expected-error @+2 {{grad has shape [2, 4, 9, 9], expected [2, 4, 7, 7]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.max_pool_grad %d, %x kernel [3, 3] strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : (tensor<2x4x9x9xf32>, tensor<2x4x9x9xf32>) -> tensor<2x4x9x9xf32>
  return
}

// -----

// Gradient of an average.
func.func @f(%d: tensor<2x4x9x9xf32>) {
  // expected-error @+2 {{grad has shape [2, 4, 9, 9], expected [2, 4, 7, 7]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.avg_pool_grad %d input_shape [2, 4, 9, 9] kernel [3, 3] strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : (tensor<2x4x9x9xf32>) -> tensor<2x4x9x9xf32>
  return
}

// -----

// Number of elements.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{cannot reshape 80 elements to [8, 9], which has 72}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.reshape %x : tensor<8x10xf32> to tensor<8x9xf32>
  return
}

// -----

// A negative size.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{shape [-8, -10] has a negative size}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "train.reshape"(%x) {shape = array<i64: -8, -10>} : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return
}

// -----

// A broadcast that shrinks.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{shape [8, 10] does not broadcast to [10]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.broadcast %x : tensor<8x10xf32> to tensor<10xf32>
  return
}

// -----

// No permutation.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{[1, 1] is not a permutation of 2 dimensions}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.transpose %x [1, 1] : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return
}

// -----

// Starts.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{starts has 1 numbers, expected 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.slice %x starts [0] limits [8, 10] strides [1, 1] : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return
}

// -----

// Limits.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{limits has 1 numbers, expected 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.slice %x starts [0, 0] limits [8] strides [1, 1] : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return
}

// -----

// Strides.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{strides has 0 numbers, expected 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.slice %x starts [0, 0] limits [8, 10] strides [] : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return
}

// -----

// A slice beyond the end.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{range [0, 11) is not within dimension 1 of size 10}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.slice %x starts [0, 0] limits [8, 11] strides [1, 1] : (tensor<8x10xf32>) -> tensor<8x11xf32>
  return
}

// -----

// A slice backwards.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{range [5, 4) is not within dimension 1 of size 10}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.slice %x starts [0, 5] limits [8, 4] strides [1, 1] : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return
}

// -----

// A stride of 0.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{stride 0 of dimension 1 is not positive}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.slice %x starts [0, 0] limits [8, 10] strides [1, 0] : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return
}

// -----

// Nothing to join.
func.func @f() {
  // expected-error @+1 {{op expected 1 or more operands, but found 0}}
  %0 = "train.concat"() {axis = 0 : i64} : () -> tensor<8x10xf32>
  return
}

// -----

// Axis of concat.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{axis 2 is out of range for rank 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.concat %x axis 2 : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return
}

// -----

// Other dimensions of concat.
func.func @f(%x: tensor<8x10xf32>, %y: tensor<8x9xf32>) {
  // expected-error @+2 {{operand of shape [8, 9] cannot be joined to shape [8, 10] along axis 0}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.concat %x, %y axis 0 : (tensor<8x10xf32>, tensor<8x9xf32>) -> tensor<16x10xf32>
  return
}

// -----

// Padding that cuts.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{padding of dimension 1 is negative}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.pad %x low [0, -1] high [0, 0] interior [0, 0] : (tensor<8x10xf32>) -> tensor<8x9xf32>
  return
}

// -----

// Length of low.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{low has 1 numbers, expected 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.pad %x low [0] high [0, 0] interior [0, 0] : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return
}

// -----

// Length of high.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{high has 1 numbers, expected 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.pad %x low [0, 0] high [0] interior [0, 0] : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return
}

// -----

// Length of interior.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{interior has 1 numbers, expected 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.pad %x low [0, 0] high [0, 0] interior [0] : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return
}

// -----

// Axis of gather.
func.func @f(%x: tensor<8x10xf32>, %i: tensor<3xi64>) {
  // expected-error @+2 {{axis -1 is out of range for rank 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.gather %x, %i axis -1 : (tensor<8x10xf32>, tensor<3xi64>) -> tensor<8x3xf32>
  return
}

// -----

// Gradient of gather.
func.func @f(%x: tensor<8x10xf32>, %i: tensor<3xi64>) {
  // expected-error @+2 {{grad has shape [8, 10], expected [3, 10]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.gather_grad %x, %i axis 0 data_shape [8, 10] : (tensor<8x10xf32>, tensor<3xi64>) -> tensor<8x10xf32>
  return
}

// -----

// A negative size of the data.
func.func @f(%x: tensor<3x10xf32>, %i: tensor<3xi64>) {
  // expected-error @+2 {{shape [-8, 10] has a negative size}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.gather_grad %x, %i axis 0 data_shape [-8, 10] : (tensor<3x10xf32>, tensor<3xi64>) -> tensor<8x10xf32>
  return
}

// -----

// Axis of a reduction.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{axis 2 is out of range for rank 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.reduce_sum %x axes [2] : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return
}

// -----

// Order of axes.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{axes [1, 0] are not distinct and ascending}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.reduce_mean %x axes [1, 0] : (tensor<8x10xf32>) -> tensor<f32>
  return
}

// -----

// The largest of nothing.
func.func @f(%x: tensor<0x3xf32>) {
  // expected-error @+2 {{axis 0 has no elements to choose from}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.reduce_max %x axes [0] : (tensor<0x3xf32>) -> tensor<3xf32>
  return
}

// -----

// Scale of a layer norm.
func.func @f(%x: tensor<8x10xf32>, %s: tensor<8xf32>) {
  // expected-error @+2 {{scale has shape [8], expected [10]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = train.layer_norm %x, %s {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<8x10xf32>, tensor<8xf32>) -> (tensor<8x10xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
  return
}

// -----

// Bias of a layer norm.
func.func @f(%x: tensor<8x10xf32>, %s: tensor<10xf32>, %b: tensor<1xf32>) {
  // expected-error @+2 {{bias has shape [1], expected [10]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = train.layer_norm %x, %s, %b {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<8x10xf32>, tensor<10xf32>, tensor<1xf32>) -> (tensor<8x10xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
  return
}

// -----

// Statistics of a layer norm.
func.func @f(%x: tensor<8x10xf32>, %s: tensor<10xf32>, %m: tensor<8xf32>) {
  // expected-error @+2 {{mean has shape [8], expected [8, 1]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = train.layer_norm_grad %x, %x, %s, %m, %m {axis = 1 : i64} : (tensor<8x10xf32>, tensor<8x10xf32>, tensor<10xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8x10xf32>, tensor<10xf32>, tensor<10xf32>)
  return
}

// -----

// Statistic of an RMS norm.
func.func @f(%x: tensor<8x10xf32>, %s: tensor<10xf32>, %m: tensor<8xf32>) {
  // expected-error @+2 {{rstd has shape [8], expected [8, 1]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = train.rms_norm_grad %x, %x, %s, %m {axis = 1 : i64} : (tensor<8x10xf32>, tensor<8x10xf32>, tensor<10xf32>, tensor<8xf32>) -> (tensor<8x10xf32>, tensor<10xf32>)
  return
}

// -----

// Axis of an RMS norm.
func.func @f(%x: tensor<8x10xf32>, %s: tensor<10xf32>) {
  // expected-error @+2 {{axis 2 is out of range for rank 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = train.rms_norm %x, %s {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<8x10xf32>, tensor<10xf32>) -> (tensor<8x10xf32>, tensor<8x1xf32>)
  return
}

// -----

// Channels of a batch norm.
func.func @f(%x: tensor<8x10xf32>, %c: tensor<10xf32>, %d: tensor<8xf32>) {
  // expected-error @+2 {{var has shape [8], expected [10]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.batch_norm_inference %x, %c, %c, %c, %d {epsilon = 1.0e-5 : f64} : (tensor<8x10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<8xf32>) -> tensor<8x10xf32>
  return
}

// -----

// Nothing but channels.
func.func @f(%x: tensor<10xf32>) {
  // expected-error @+2 {{input of shape [10] has no channel dimension}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.batch_norm_inference %x, %x, %x, %x, %x {epsilon = 1.0e-5 : f64} : (tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<10xf32>) -> tensor<10xf32>
  return
}

// -----

// Running statistics.
func.func @f(%x: tensor<8x10xf32>, %c: tensor<10xf32>, %d: tensor<8xf32>) {
  // expected-error @+2 {{running_mean has shape [8], expected [10]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:5 = train.batch_norm %x, %c, %c, %d, %c {epsilon = 1.0e-5 : f64, momentum = 0.9 : f64} : (tensor<8x10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<8xf32>, tensor<10xf32>) -> (tensor<8x10xf32>, tensor<8xf32>, tensor<10xf32>, tensor<10xf32>, tensor<10xf32>)
  return
}

// -----

// Statistics of a batch norm.
func.func @f(%x: tensor<8x10xf32>, %c: tensor<10xf32>, %d: tensor<8xf32>) {
  // expected-error @+2 {{save_rstd has shape [8], expected [10]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = train.batch_norm_grad %x, %x, %c, %c, %d : (tensor<8x10xf32>, tensor<8x10xf32>, tensor<10xf32>, tensor<10xf32>, tensor<8xf32>) -> (tensor<8x10xf32>, tensor<10xf32>, tensor<10xf32>)
  return
}

// -----

// Axis of softmax.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+1 {{'train.softmax' op axis 2 is out of range for rank 2}}
  %0 = train.softmax %x axis 2 : tensor<8x10xf32>
  return
}

// -----

// Axis of softmax.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+1 {{'train.log_softmax' op axis 2 is out of range for rank 2}}
  %0 = train.log_softmax %x axis 2 : tensor<8x10xf32>
  return
}

// -----

// Axis of softmax.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+1 {{'train.softmax_grad' op axis 2 is out of range for rank 2}}
  %0 = train.softmax_grad %x, %x axis 2 : tensor<8x10xf32>
  return
}

// -----

// Axis of softmax.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+1 {{'train.log_softmax_grad' op axis 2 is out of range for rank 2}}
  %0 = train.log_softmax_grad %x, %x axis 2 : tensor<8x10xf32>
  return
}

// -----

// Labels.
func.func @f(%x: tensor<8x10xf32>, %l: tensor<10xi64>) {
  // expected-error @+2 {{labels has shape [10], expected [8]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = train.cross_entropy %x, %l {axis = 1 : i64} : (tensor<8x10xf32>, tensor<10xi64>) -> (tensor<f32>, tensor<10xf32>)
  return
}

// -----

// Class axis.
func.func @f(%x: tensor<8x10xf32>, %l: tensor<8xi64>) {
  // expected-error @+2 {{axis 2 is out of range for rank 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = train.cross_entropy %x, %l {axis = 2 : i64} : (tensor<8x10xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>)
  return
}

// -----

// Saved sums of a loss.
func.func @f(%d: tensor<f32>, %x: tensor<8x10xf32>, %l: tensor<8xi64>, %s: tensor<10xf32>) {
  // expected-error @+2 {{lse has shape [10], expected [8]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.cross_entropy_grad %d, %x, %l, %s {axis = 1 : i64} : (tensor<f32>, tensor<8x10xf32>, tensor<8xi64>, tensor<10xf32>) -> tensor<8x10xf32>
  return
}

// -----

// Gradient of another shape.
func.func @f(%p: tensor<8xf32>, %g: tensor<4xf32>, %m: tensor<8xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @+1 {{'train.sgd' op grad has shape [4], expected [8]}}
  %0 = train.sgd %p, %g, %lr : (tensor<8xf32>, tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

// Momentum without a buffer.
func.func @f(%p: tensor<8xf32>, %g: tensor<8xf32>, %m: tensor<8xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @+1 {{needs a momentum buffer, momentum is 9.000000e-01}}
  %0 = train.sgd %p, %g, %lr {momentum = 0.9 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

// A buffer without momentum.
func.func @f(%p: tensor<8xf32>, %g: tensor<8xf32>, %m: tensor<8xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @+1 {{has a momentum buffer, momentum is 0.000000e+00}}
  %0:2 = train.sgd %p, %g, %m, %lr : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// Dampening without a step.
func.func @f(%p: tensor<8xf32>, %g: tensor<8xf32>, %m: tensor<8xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @+1 {{needs a step operand, dampening is 5.000000e-01}}
  %0:2 = train.sgd %p, %g, %m, %lr {momentum = 0.9 : f64, dampening = 0.5 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// A step without dampening.
func.func @f(%p: tensor<8xf32>, %g: tensor<8xf32>, %m: tensor<8xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @+1 {{has a step operand, dampening is 0.000000e+00}}
  %0:2 = train.sgd %p, %g, %m, %lr, %t {momentum = 0.9 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<i64>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// Nesterov without momentum.
func.func @f(%p: tensor<8xf32>, %g: tensor<8xf32>, %m: tensor<8xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @+1 {{nesterov needs momentum and no dampening}}
  %0 = train.sgd %p, %g, %lr {nesterov} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

// Buffer of another shape.
func.func @f(%p: tensor<8xf32>, %g: tensor<8xf32>, %m: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @+1 {{momentum_buffer has shape [4], expected [8]}}
  %0:2 = train.sgd %p, %g, %m, %lr {momentum = 0.9 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<4xf32>)
  return
}

// -----

// Shape of grad.
func.func @f(%p: tensor<8xf32>, %q: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @+1 {{'train.adam' op grad has shape [4], expected [8]}}
  %0:3 = train.adam %p, %q, %p, %p, %lr, %t {beta1 = 0.9 : f64, beta2 = 0.9 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<i64>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// Shape of exp_avg.
func.func @f(%p: tensor<8xf32>, %q: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @+1 {{'train.adam' op exp_avg has shape [4], expected [8]}}
  %0:3 = train.adam %p, %p, %q, %p, %lr, %t {beta1 = 0.9 : f64, beta2 = 0.9 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<f32>, tensor<i64>) -> (tensor<8xf32>, tensor<4xf32>, tensor<8xf32>)
  return
}

// -----

// Shape of exp_avg_sq.
func.func @f(%p: tensor<8xf32>, %q: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i64>) {
  // expected-error @+1 {{'train.adamw' op exp_avg_sq has shape [4], expected [8]}}
  %0:3 = train.adamw %p, %p, %p, %q, %lr, %t {beta1 = 0.9 : f64, beta2 = 0.9 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<f32>, tensor<i64>) -> (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>)
  return
}

// -----

// Too many elements.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{result is too large, its sizes exceed 64 bits}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "train.reshape"(%x) {shape = array<i64: 9223372036854775807, 4>} : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return
}

// -----

// Too much padding.
func.func @f(%x: tensor<8x10xf32>) {
  // expected-error @+2 {{result is too large, its sizes exceed 64 bits}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.pad %x low [9223372036854775807, 0] high [1, 0] interior [0, 0] : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return
}

// -----

// Too many rows.
func.func @f(%x: tensor<9223372036854775807xi1>) {
  // expected-error @+2 {{result is too large, its sizes exceed 64 bits}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.concat %x, %x axis 0 : (tensor<9223372036854775807xi1>, tensor<9223372036854775807xi1>) -> tensor<9223372036854775807xi1>
  return
}

// -----

// A dilation beyond all sizes.
func.func @f(%x: tensor<2x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @+2 {{result is too large, its sizes exceed 64 bits}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [9223372036854775807, 1] : (tensor<2x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x7x7xf32>
  return
}

// -----

// Groups beyond all sizes.
func.func @f(%x: tensor<2x4x9x9xf32>, %w: tensor<0x4x3x3xf32>) {
  // expected-error @+2 {{result is too large, its sizes exceed 64 bits}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] group 9223372036854775807 : (tensor<2x4x9x9xf32>, tensor<0x4x3x3xf32>) -> tensor<2x6x7x7xf32>
  return
}

// -----

// Types of a broadcast.
func.func @f(%a: tensor<8x10xf32>) {
  // expected-error @+1 {{expected two operand types and one result type}}
  %0 = train.add %a, %a : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return
}

// -----

// Operands of sgd.
func.func @f(%p: tensor<8xf32>, %lr: tensor<f32>) {
  // expected-error @+1 {{expected 3 to 5 operands: parameter, gradient, momentum buffer (optional), learning rate, step (optional)}}
  %0 = train.sgd %p, %lr : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @cast_rounding(%x: tensor<4xf32>) {
  // expected-error @below {{'train.cast' op round_scale is "odd", expected "up", "down" or "nearest"}}
  %0 = train.cast %x {round_scale = "odd"} : tensor<4xf32> to tensor<4xf8E8M0FNU>
  return
}

// -----

func.func @bitcast_width(%x: tensor<4xf32>) {
  // expected-error @below {{'train.bitcast' op reads the bits of 'f32' as 'i16', which has another width}}
  %0 = train.bitcast %x : tensor<4xf32> to tensor<4xi16>
  return
}
