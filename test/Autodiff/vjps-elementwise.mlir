// The derivative of each operation as IR: the gradients by all float inputs of
// the sum of the operation's result; DY is the gradient by that result.
// RUN: zero-opt %s -split-input-file -train-autodiff=inputs -canonicalize | FileCheck %s

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.neg %[[DY]] : tensor<4xf32>
// CHECK: return %{{.*}}, %[[V0]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.neg %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The derivative at 0 is 0.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.sign %[[X]] : tensor<4xf32>
// CHECK: %[[V1:.*]] = train.mul %[[DY]], %[[V0]] : tensor<4xf32>
// CHECK: return %{{.*}}, %[[V1]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.abs %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// From the result.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[V0:.*]] = train.exp %[[X]] : tensor<4xf32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V1:.*]] = train.mul %[[DY]], %[[V0]] : tensor<4xf32>
// CHECK: return %{{.*}}, %[[V1]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.exp %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.div %[[DY]], %[[X]] : tensor<4xf32>
// CHECK: return %{{.*}}, %[[V0]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.log %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// From the result.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK-DAG: %[[C0:.*]] = arith.constant dense<2.000000e+00> : tensor<f32>
// CHECK: %[[V0:.*]] = train.sqrt %[[X]] : tensor<4xf32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V1:.*]] = train.mul %[[V0]], %[[C0]] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: %[[V2:.*]] = train.div %[[DY]], %[[V1]] : tensor<4xf32>
// CHECK: return %{{.*}}, %[[V2]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.sqrt %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// From the result.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK-DAG: %[[C0:.*]] = arith.constant dense<-5.000000e-01> : tensor<f32>
// CHECK: %[[V0:.*]] = train.rsqrt %[[X]] : tensor<4xf32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V1:.*]] = train.mul %[[V0]], %[[V0]] : tensor<4xf32>
// CHECK: %[[V2:.*]] = train.mul %[[V1]], %[[V0]] : tensor<4xf32>
// CHECK: %[[V3:.*]] = train.mul %[[DY]], %[[V2]] : tensor<4xf32>
// CHECK: %[[V4:.*]] = train.mul %[[V3]], %[[C0]] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: return %{{.*}}, %[[V4]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.rsqrt %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// From the result.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[V0:.*]] = train.reciprocal %[[X]] : tensor<4xf32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V1:.*]] = train.mul %[[V0]], %[[V0]] : tensor<4xf32>
// CHECK: %[[V2:.*]] = train.mul %[[DY]], %[[V1]] : tensor<4xf32>
// CHECK: %[[V3:.*]] = train.neg %[[V2]] : tensor<4xf32>
// CHECK: return %{{.*}}, %[[V3]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.reciprocal %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK-DAG: %[[C0:.*]] = arith.constant dense<1.12837923> : tensor<f32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.mul %[[X]], %[[X]] : tensor<4xf32>
// CHECK: %[[V1:.*]] = train.neg %[[V0]] : tensor<4xf32>
// CHECK: %[[V2:.*]] = train.exp %[[V1]] : tensor<4xf32>
// CHECK: %[[V3:.*]] = train.mul %[[DY]], %[[V2]] : tensor<4xf32>
// CHECK: %[[V4:.*]] = train.mul %[[V3]], %[[C0]] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: return %{{.*}}, %[[V4]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.erf %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// From the result.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK-DAG: %[[C0:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[V0:.*]] = train.tanh %[[X]] : tensor<4xf32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V1:.*]] = train.mul %[[V0]], %[[V0]] : tensor<4xf32>
// CHECK: %[[V2:.*]] = train.sub %[[C0]], %[[V1]] : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK: %[[V3:.*]] = train.mul %[[DY]], %[[V2]] : tensor<4xf32>
// CHECK: return %{{.*}}, %[[V3]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.tanh %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// From the result.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK-DAG: %[[C0:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[V0:.*]] = train.sigmoid %[[X]] : tensor<4xf32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V1:.*]] = train.sub %[[C0]], %[[V0]] : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK: %[[V2:.*]] = train.mul %[[DY]], %[[V1]] : tensor<4xf32>
// CHECK: %[[V3:.*]] = train.mul %[[V2]], %[[V0]] : tensor<4xf32>
// CHECK: return %{{.*}}, %[[V3]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.sigmoid %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[V0:.*]] = train.relu %[[X]] : tensor<4xf32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V1:.*]] = train.relu_grad %[[DY]], %[[V0]] : tensor<4xf32>
// CHECK: return %{{.*}}, %[[V1]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.relu %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.cos %[[X]] : tensor<4xf32>
// CHECK: %[[V1:.*]] = train.mul %[[DY]], %[[V0]] : tensor<4xf32>
// CHECK: return %{{.*}}, %[[V1]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.sin %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.sin %[[X]] : tensor<4xf32>
// CHECK: %[[V1:.*]] = train.mul %[[DY]], %[[V0]] : tensor<4xf32>
// CHECK: %[[V2:.*]] = train.neg %[[V1]] : tensor<4xf32>
// CHECK: return %{{.*}}, %[[V2]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.cos %x : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The approximation stays.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf32> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.gelu_grad %[[DY]], %[[X]] {approximate = "tanh"} : tensor<4xf32>
// CHECK: return %{{.*}}, %[[V0]]
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.gelu %x {approximate = "tanh"} : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Between float types.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<4xf64> {zero.input = "x"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.cast %[[DY]] : tensor<4xf32> to tensor<4xf64>
// CHECK: return %{{.*}}, %[[V0]]
func.func @forward(%x: tensor<4xf64> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.cast %x : tensor<4xf64> to tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The broadcast operand gets the sum over what was added.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<3x4xf32> {zero.input = "a"}, %[[B:.*]]: tensor<4xf32> {zero.input = "b"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V0:.*]] = train.reduce_sum %[[DY]] axes [0] : (tensor<3x4xf32>) -> tensor<4xf32>
// CHECK: return %{{.*}}, %[[DY]], %[[V0]]
func.func @forward(%a: tensor<3x4xf32> {zero.input = "a"}, %b: tensor<4xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.add %a, %b : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A dimension of 1 is summed and kept.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<3x4xf32> {zero.input = "a"}, %[[B:.*]]: tensor<3x1xf32> {zero.input = "b"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V0:.*]] = train.reduce_sum %[[DY]] axes [1] {keepdims} : (tensor<3x4xf32>) -> tensor<3x1xf32>
// CHECK: return %{{.*}}, %[[DY]], %[[V0]]
func.func @forward(%a: tensor<3x4xf32> {zero.input = "a"}, %b: tensor<3x1xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.add %a, %b : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// All dimensions are summed.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<3x4xf32> {zero.input = "a"}, %[[B:.*]]: tensor<f32> {zero.input = "b"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V0:.*]] = train.reduce_sum %[[DY]] axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
// CHECK: return %{{.*}}, %[[DY]], %[[V0]]
func.func @forward(%a: tensor<3x4xf32> {zero.input = "a"}, %b: tensor<f32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.add %a, %b : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<3x4xf32> {zero.input = "a"}, %[[B:.*]]: tensor<3x4xf32> {zero.input = "b"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V0:.*]] = train.neg %[[DY]] : tensor<3x4xf32>
// CHECK: return %{{.*}}, %[[DY]], %[[V0]]
func.func @forward(%a: tensor<3x4xf32> {zero.input = "a"}, %b: tensor<3x4xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.sub %a, %b : tensor<3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<3x4xf32> {zero.input = "a"}, %[[B:.*]]: tensor<4xf32> {zero.input = "b"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V0:.*]] = train.mul %[[DY]], %[[B]] : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
// CHECK: %[[V1:.*]] = train.mul %[[DY]], %[[A]] : tensor<3x4xf32>
// CHECK: %[[V2:.*]] = train.reduce_sum %[[V1]] axes [0] : (tensor<3x4xf32>) -> tensor<4xf32>
// CHECK: return %{{.*}}, %[[V0]], %[[V2]]
func.func @forward(%a: tensor<3x4xf32> {zero.input = "a"}, %b: tensor<4xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.mul %a, %b : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<3x4xf32> {zero.input = "a"}, %[[B:.*]]: tensor<4xf32> {zero.input = "b"})
// CHECK: %[[V0:.*]] = train.div %[[A]], %[[B]] : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<3x4xf32>
// CHECK: %[[V1:.*]] = train.div %[[DY]], %[[B]] : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
// CHECK: %[[V2:.*]] = train.div %[[V0]], %[[B]] : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
// CHECK: %[[V3:.*]] = train.mul %[[DY]], %[[V2]] : tensor<3x4xf32>
// CHECK: %[[V4:.*]] = train.neg %[[V3]] : tensor<3x4xf32>
// CHECK: %[[V5:.*]] = train.reduce_sum %[[V4]] axes [0] : (tensor<3x4xf32>) -> tensor<4xf32>
// CHECK: return %{{.*}}, %[[V1]], %[[V5]]
func.func @forward(%a: tensor<3x4xf32> {zero.input = "a"}, %b: tensor<4xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.div %a, %b : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Equal operands get half each.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<4xf32> {zero.input = "a"}, %[[B:.*]]: tensor<4xf32> {zero.input = "b"})
// CHECK-DAG: %[[C0:.*]] = arith.constant dense<0.000000e+00> : tensor<f32>
// CHECK-DAG: %[[C1:.*]] = arith.constant dense<5.000000e-01> : tensor<f32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.equal %[[A]], %[[B]] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
// CHECK: %[[V1:.*]] = train.greater %[[A]], %[[B]] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
// CHECK: %[[V2:.*]] = train.mul %[[DY]], %[[C1]] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: %[[V3:.*]] = train.where %[[V0]], %[[V2]], %[[C0]] : (tensor<4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: %[[V4:.*]] = train.where %[[V1]], %[[DY]], %[[V3]] : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK: %[[V5:.*]] = train.greater %[[B]], %[[A]] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
// CHECK: %[[V6:.*]] = train.mul %[[DY]], %[[C1]] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: %[[V7:.*]] = train.where %[[V0]], %[[V6]], %[[C0]] : (tensor<4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: %[[V8:.*]] = train.where %[[V5]], %[[DY]], %[[V7]] : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK: return %{{.*}}, %[[V4]], %[[V8]]
func.func @forward(%a: tensor<4xf32> {zero.input = "a"}, %b: tensor<4xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.max %a, %b : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<4xf32> {zero.input = "a"}, %[[B:.*]]: tensor<4xf32> {zero.input = "b"})
// CHECK-DAG: %[[C0:.*]] = arith.constant dense<0.000000e+00> : tensor<f32>
// CHECK-DAG: %[[C1:.*]] = arith.constant dense<5.000000e-01> : tensor<f32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.equal %[[A]], %[[B]] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
// CHECK: %[[V1:.*]] = train.less %[[A]], %[[B]] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
// CHECK: %[[V2:.*]] = train.mul %[[DY]], %[[C1]] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: %[[V3:.*]] = train.where %[[V0]], %[[V2]], %[[C0]] : (tensor<4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: %[[V4:.*]] = train.where %[[V1]], %[[DY]], %[[V3]] : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK: %[[V5:.*]] = train.less %[[B]], %[[A]] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
// CHECK: %[[V6:.*]] = train.mul %[[DY]], %[[C1]] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: %[[V7:.*]] = train.where %[[V0]], %[[V6]], %[[C0]] : (tensor<4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: %[[V8:.*]] = train.where %[[V5]], %[[DY]], %[[V7]] : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK: return %{{.*}}, %[[V4]], %[[V8]]
func.func @forward(%a: tensor<4xf32> {zero.input = "a"}, %b: tensor<4xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.min %a, %b : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<4xf32> {zero.input = "a"}, %[[B:.*]]: tensor<4xf32> {zero.input = "b"})
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.div %[[A]], %[[B]] : tensor<4xf32>
// CHECK: %[[V1:.*]] = train.abs %[[V0]] : tensor<4xf32>
// CHECK: %[[V2:.*]] = train.floor %[[V1]] : tensor<4xf32>
// CHECK: %[[V3:.*]] = train.sign %[[V0]] : tensor<4xf32>
// CHECK: %[[V4:.*]] = train.mul %[[V3]], %[[V2]] : tensor<4xf32>
// CHECK: %[[V5:.*]] = train.mul %[[DY]], %[[V4]] : tensor<4xf32>
// CHECK: %[[V6:.*]] = train.neg %[[V5]] : tensor<4xf32>
// CHECK: return %{{.*}}, %[[DY]], %[[V6]]
func.func @forward(%a: tensor<4xf32> {zero.input = "a"}, %b: tensor<4xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.mod %a, %b : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<4xf32> {zero.input = "a"}, %[[B:.*]]: tensor<4xf32> {zero.input = "b"})
// CHECK-DAG: %[[C0:.*]] = arith.constant dense<0.000000e+00> : tensor<f32>
// CHECK-DAG: %[[C1:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[V0:.*]] = train.pow %[[A]], %[[B]] : tensor<4xf32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V1:.*]] = train.sub %[[B]], %[[C1]] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: %[[V2:.*]] = train.pow %[[A]], %[[V1]] : tensor<4xf32>
// CHECK: %[[V3:.*]] = train.equal %[[B]], %[[C0]] : (tensor<4xf32>, tensor<f32>) -> tensor<4xi1>
// CHECK: %[[V4:.*]] = train.mul %[[B]], %[[V2]] : tensor<4xf32>
// CHECK: %[[V5:.*]] = train.mul %[[DY]], %[[V4]] : tensor<4xf32>
// CHECK: %[[V6:.*]] = train.where %[[V3]], %[[C0]], %[[V5]] : (tensor<4xi1>, tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK: %[[V7:.*]] = train.equal %[[A]], %[[C0]] : (tensor<4xf32>, tensor<f32>) -> tensor<4xi1>
// CHECK: %[[V8:.*]] = train.greater_equal %[[B]], %[[C0]] : (tensor<4xf32>, tensor<f32>) -> tensor<4xi1>
// CHECK: %[[V9:.*]] = train.and %[[V7]], %[[V8]] : tensor<4xi1>
// CHECK: %[[V10:.*]] = train.log %[[A]] : tensor<4xf32>
// CHECK: %[[V11:.*]] = train.mul %[[V0]], %[[V10]] : tensor<4xf32>
// CHECK: %[[V12:.*]] = train.mul %[[DY]], %[[V11]] : tensor<4xf32>
// CHECK: %[[V13:.*]] = train.where %[[V9]], %[[C0]], %[[V12]] : (tensor<4xi1>, tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK: return %{{.*}}, %[[V6]], %[[V13]]
func.func @forward(%a: tensor<4xf32> {zero.input = "a"}, %b: tensor<4xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.pow %a, %b : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A constant exponent needs no logarithm, and 2 no power.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<4xf32> {zero.input = "a"})
// CHECK-DAG: %[[C0:.*]] = arith.constant dense<2.000000e+00> : tensor<f32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.mul %[[A]], %[[C0]] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: %[[V1:.*]] = train.mul %[[DY]], %[[V0]] : tensor<4xf32>
// CHECK: return %{{.*}}, %[[V1]]
func.func @forward(%a: tensor<4xf32> {zero.input = "a"}) -> (tensor<f32> {zero.output = "loss"}) {
  %c = arith.constant dense<2.0> : tensor<f32>
  %y = train.pow %a, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<4xf32> {zero.input = "a"})
// CHECK-DAG: %[[C0:.*]] = arith.constant dense<3.000000e+00> : tensor<f32>
// CHECK-DAG: %[[C1:.*]] = arith.constant dense<2.000000e+00> : tensor<f32>
// CHECK-DAG: %[[C2:.*]] = arith.constant dense<3.000000e+00> : tensor<4xf32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.pow %[[A]], %[[C1]] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: %[[V1:.*]] = train.mul %[[V0]], %[[C0]] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: %[[V2:.*]] = train.mul %[[DY]], %[[V1]] : tensor<4xf32>
// CHECK: return %{{.*}}, %[[V2]]
func.func @forward(%a: tensor<4xf32> {zero.input = "a"}) -> (tensor<f32> {zero.output = "loss"}) {
  %c = arith.constant dense<3.0> : tensor<4xf32>
  %y = train.pow %a, %c : tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[C:[a-z0-9]*]]: tensor<4xi1> {zero.input = "c"}, %[[A:.*]]: tensor<4xf32> {zero.input = "a"}, %[[B:.*]]: tensor<f32> {zero.input = "b"})
// CHECK-DAG: %[[C1:.*]] = arith.constant dense<0.000000e+00> : tensor<f32>
// CHECK: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1xf32> to tensor<4xf32>
// CHECK: %[[V0:.*]] = train.where %[[C]], %[[DY]], %[[C1]] : (tensor<4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: %[[V1:.*]] = train.where %[[C]], %[[C1]], %[[DY]] : (tensor<4xi1>, tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK: %[[V2:.*]] = train.reduce_sum %[[V1]] axes [0] : (tensor<4xf32>) -> tensor<f32>
// CHECK: return %{{.*}}, %[[V0]], %[[V2]]
func.func @forward(%c: tensor<4xi1> {zero.input = "c"}, %a: tensor<4xf32> {zero.input = "a"}, %b: tensor<f32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.where %c, %a, %b : (tensor<4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %loss = train.reduce_sum %y axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
