// What poolings, normalizations and losses refuse.
// RUN: zero-opt %s -split-input-file -verify-diagnostics

func.func @divisor(%x: tensor<1x2x4xf32>) {
  // expected-error @+1 {{expects a positive divisor, got 0}}
  %0 = train.avg_pool %x kernel [2] strides [2] pads [0, 0] dilations [1] {divisor = 0 : i64} : (tensor<1x2x4xf32>) -> tensor<1x2x2xf32>
  return
}

// -----

func.func @two_divisors(%g: tensor<1x2x2xf32>) {
  // expected-error @+1 {{has both a divisor and count_include_pad}}
  %0 = train.avg_pool_grad %g input_shape [1, 2, 4] kernel [2] strides [2] pads [0, 0] dilations [1] {count_include_pad, divisor = 2 : i64} : (tensor<1x2x2xf32>) -> tensor<1x2x4xf32>
  return
}

// -----

// The last window reaches beyond the padding, but does not start behind the
// input.
func.func @ceil(%x: tensor<1x2x4xf32>) {
  %0 = train.max_pool %x kernel [3] strides [2] pads [0, 0] dilations [1] {ceil_mode} : (tensor<1x2x4xf32>) -> tensor<1x2x2xf32>
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{inferred type(s) 'tensor<1x2x2xf32>' are incompatible with return type(s) of operation 'tensor<1x2x3xf32>'}}
  %1 = train.max_pool %x kernel [1] strides [2] pads [0, 0] dilations [1] {ceil_mode} : (tensor<1x2x4xf32>) -> tensor<1x2x3xf32>
  return
}

// -----

func.func @rstd(%x: tensor<2x3xf32>, %rstd: tensor<2x3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{rstd has shape [2, 3], expected [2, 1]}}
  %0 = train.normalize_grad %x, %x, %rstd {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @reduction(%x: tensor<2x3xf32>, %l: tensor<2xi64>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{reduction is "most", expected "mean", "sum" or "none"}}
  %0, %1 = train.cross_entropy %x, %l {axis = 1 : i64, reduction = "most"} : (tensor<2x3xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<2xf32>)
  return
}

// -----

func.func @weights(%x: tensor<2x3xf32>, %l: tensor<2xi64>, %w: tensor<2xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{weights has shape [2], expected [3]}}
  %0, %1 = train.cross_entropy %x, %l, %w {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2xi64>, tensor<2xf32>) -> (tensor<f32>, tensor<2xf32>)
  return
}

// -----

func.func @grad_of_each(%g: tensor<f32>, %x: tensor<2x3xf32>, %l: tensor<2xi64>, %lse: tensor<2xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{grad has shape [], expected [2]}}
  %0 = train.cross_entropy_grad %g, %x, %l, %lse {axis = 1 : i64, reduction = "none"} : (tensor<f32>, tensor<2x3xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}
