// The derivatives of trigonometry, of exponentials near 0 and of rounding as IR:
// the gradient by the input of the sum of the result; DY is the gradient by it.
// RUN: zero-opt %s -split-input-file -train-autodiff=inputs -canonicalize | FileCheck %s

// From the result.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[Y:.*]] = train.tan %[[X]]
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.mul %[[Y]], %[[Y]]
// CHECK: %[[V1:.*]] = train.add %[[V0]], %[[ONE]]
// CHECK: %[[V2:.*]] = train.mul %[[DY]], %[[V1]]
// CHECK: return %{{.*}}, %[[V2]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.tan %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.mul %[[X]], %[[X]]
// CHECK: %[[V1:.*]] = train.sub %[[ONE]], %[[V0]]
// CHECK: %[[V2:.*]] = train.rsqrt %[[V1]]
// CHECK: %[[V3:.*]] = train.mul %[[DY]], %[[V2]]
// CHECK: return %{{.*}}, %[[V3]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.asin %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.mul %[[X]], %[[X]]
// CHECK: %[[V1:.*]] = train.sub %[[ONE]], %[[V0]]
// CHECK: %[[V2:.*]] = train.rsqrt %[[V1]]
// CHECK: %[[V3:.*]] = train.mul %[[DY]], %[[V2]]
// CHECK: %[[V4:.*]] = train.neg %[[V3]]
// CHECK: return %{{.*}}, %[[V4]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.acos %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.mul %[[X]], %[[X]]
// CHECK: %[[V1:.*]] = train.add %[[V0]], %[[ONE]]
// CHECK: %[[V2:.*]] = train.div %[[DY]], %[[V1]]
// CHECK: return %{{.*}}, %[[V2]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.atan %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.cosh %[[X]]
// CHECK: %[[V1:.*]] = train.mul %[[DY]], %[[V0]]
// CHECK: return %{{.*}}, %[[V1]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.sinh %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.sinh %[[X]]
// CHECK: %[[V1:.*]] = train.mul %[[DY]], %[[V0]]
// CHECK: return %{{.*}}, %[[V1]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.cosh %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.mul %[[X]], %[[X]]
// CHECK: %[[V1:.*]] = train.add %[[V0]], %[[ONE]]
// CHECK: %[[V2:.*]] = train.rsqrt %[[V1]]
// CHECK: %[[V3:.*]] = train.mul %[[DY]], %[[V2]]
// CHECK: return %{{.*}}, %[[V3]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.asinh %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.mul %[[X]], %[[X]]
// CHECK: %[[V1:.*]] = train.sub %[[V0]], %[[ONE]]
// CHECK: %[[V2:.*]] = train.rsqrt %[[V1]]
// CHECK: %[[V3:.*]] = train.mul %[[DY]], %[[V2]]
// CHECK: return %{{.*}}, %[[V3]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.acosh %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.mul %[[X]], %[[X]]
// CHECK: %[[V1:.*]] = train.sub %[[ONE]], %[[V0]]
// CHECK: %[[V2:.*]] = train.div %[[DY]], %[[V1]]
// CHECK: return %{{.*}}, %[[V2]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.atanh %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// From the result.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[Y:.*]] = train.expm1 %[[X]]
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.add %[[Y]], %[[ONE]]
// CHECK: %[[V1:.*]] = train.mul %[[DY]], %[[V0]]
// CHECK: return %{{.*}}, %[[V1]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.expm1 %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.add %[[X]], %[[ONE]]
// CHECK: %[[V1:.*]] = train.div %[[DY]], %[[V0]]
// CHECK: return %{{.*}}, %[[V1]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.log1p %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.sigmoid %[[X]]
// CHECK: %[[V1:.*]] = train.mul %[[DY]], %[[V0]]
// CHECK: return %{{.*}}, %[[V1]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.softplus %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Piecewise constant: no gradient.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK-NOT: train.broadcast
// CHECK: return %{{[^,]*}} : tensor<f32>
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.ceil %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Piecewise constant: no gradient.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK-NOT: train.broadcast
// CHECK: return %{{[^,]*}} : tensor<f32>
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.round %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
