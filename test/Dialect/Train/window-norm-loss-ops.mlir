// Round trip of windows, norms, losses and reductions in all their forms.
// RUN: zero-opt %s | zero-opt | FileCheck %s
// RUN: zero-opt %s --mlir-print-op-generic | zero-opt | FileCheck %s

// CHECK-LABEL: func.func @f
func.func @f(%x: tensor<1x2x5xf32>, %u: tensor<1x2x5xui8>, %g: tensor<1x2x2xf32>, %a: tensor<2x3xi32>, %b: tensor<3x4xi32>, %c: tensor<4xi32>, %l: tensor<1x5xi64>, %w: tensor<2xf32>) {
  // CHECK: train.max_pool %{{.*}} kernel [2] strides [2] pads [0, 0] dilations [1] {ceil_mode} : (tensor<1x2x5xui8>) -> tensor<1x2x3xui8>
  %0 = train.max_pool %u kernel [2] strides [2] pads [0, 0] dilations [1] {ceil_mode} : (tensor<1x2x5xui8>) -> tensor<1x2x3xui8>
  // CHECK: train.max_pool_indices %{{.*}} kernel [2] strides [2] pads [0, 0] dilations [1] {column_major} : (tensor<1x2x5xf32>) -> tensor<1x2x2xi64>
  %1 = train.max_pool_indices %x kernel [2] strides [2] pads [0, 0] dilations [1] {column_major} : (tensor<1x2x5xf32>) -> tensor<1x2x2xi64>
  // CHECK: train.max_pool_grad %{{.*}}, %{{.*}} kernel [2] strides [2] pads [0, 0] dilations [1] : (tensor<1x2x2xf32>, tensor<1x2x5xf32>) -> tensor<1x2x5xf32>
  %2 = train.max_pool_grad %g, %x kernel [2] strides [2] pads [0, 0] dilations [1] : (tensor<1x2x2xf32>, tensor<1x2x5xf32>) -> tensor<1x2x5xf32>
  // CHECK: train.avg_pool %{{.*}} kernel [2] strides [2] pads [0, 0] dilations [1] {divisor = 3 : i64} : (tensor<1x2x5xf32>) -> tensor<1x2x2xf32>
  %3 = train.avg_pool %x kernel [2] strides [2] pads [0, 0] dilations [1] {divisor = 3 : i64} : (tensor<1x2x5xf32>) -> tensor<1x2x2xf32>
  // CHECK: train.avg_pool_grad %{{.*}} input_shape [1, 2, 5] kernel [2] strides [2] pads [0, 0] dilations [1] {count_include_pad} : (tensor<1x2x2xf32>) -> tensor<1x2x5xf32>
  %4 = train.avg_pool_grad %g input_shape [1, 2, 5] kernel [2] strides [2] pads [0, 0] dilations [1] {count_include_pad} : (tensor<1x2x2xf32>) -> tensor<1x2x5xf32>
  // CHECK: train.gemm %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x3xi32>, tensor<3x4xi32>, tensor<4xi32>) -> tensor<2x4xi32>
  %5 = train.gemm %a, %b, %c : (tensor<2x3xi32>, tensor<3x4xi32>, tensor<4xi32>) -> tensor<2x4xi32>
  // CHECK: train.normalize %{{.*}} {axis = 2 : i64, epsilon = 1.000000e-05 : f64} : (tensor<1x2x5xf32>) -> (tensor<1x2x5xf32>, tensor<1x2x1xf32>)
  %y, %rstd = train.normalize %x {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<1x2x5xf32>) -> (tensor<1x2x5xf32>, tensor<1x2x1xf32>)
  // CHECK: train.normalize_grad %{{.*}}, %{{.*}}, %{{.*}} {axis = 2 : i64} : (tensor<1x2x5xf32>, tensor<1x2x5xf32>, tensor<1x2x1xf32>) -> tensor<1x2x5xf32>
  %6 = train.normalize_grad %x, %y, %rstd {axis = 2 : i64} : (tensor<1x2x5xf32>, tensor<1x2x5xf32>, tensor<1x2x1xf32>) -> tensor<1x2x5xf32>
  // CHECK: train.cross_entropy %{{.*}}, %{{.*}}, %{{.*}} {axis = 1 : i64, reduction = "sum"} : (tensor<1x2x5xf32>, tensor<1x5xi64>, tensor<2xf32>) -> (tensor<f32>, tensor<1x5xf32>)
  %loss, %lse = train.cross_entropy %x, %l, %w {axis = 1 : i64, reduction = "sum"} : (tensor<1x2x5xf32>, tensor<1x5xi64>, tensor<2xf32>) -> (tensor<f32>, tensor<1x5xf32>)
  // CHECK: train.cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {axis = 1 : i64, reduction = "sum"} : (tensor<f32>, tensor<1x2x5xf32>, tensor<1x5xi64>, tensor<1x5xf32>, tensor<2xf32>) -> tensor<1x2x5xf32>
  %7 = train.cross_entropy_grad %loss, %x, %l, %lse, %w {axis = 1 : i64, reduction = "sum"} : (tensor<f32>, tensor<1x2x5xf32>, tensor<1x5xi64>, tensor<1x5xf32>, tensor<2xf32>) -> tensor<1x2x5xf32>
  // CHECK: train.reduce_prod %{{.*}} axes [0, 2] {keepdims} : (tensor<1x2x5xui8>) -> tensor<1x2x1xui8>
  %8 = train.reduce_prod %u axes [0, 2] {keepdims} : (tensor<1x2x5xui8>) -> tensor<1x2x1xui8>
  // CHECK: train.reduce_log_sum_exp %{{.*}} axes [1] : (tensor<1x2x5xf32>) -> tensor<1x5xf32>
  %9 = train.reduce_log_sum_exp %x axes [1] : (tensor<1x2x5xf32>) -> tensor<1x5xf32>
  return
}
