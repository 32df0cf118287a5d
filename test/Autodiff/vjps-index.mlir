// The derivatives of operations that write by index, order elements or carry a
// value along an axis, as IR; DY is the gradient by the result.
// RUN: zero-opt %s -split-input-file -train-autodiff=inputs -canonicalize | FileCheck %s

// What was replaced has no gradient; updates get that of their place.
// CHECK-LABEL: func @forward
// CHECK-SAME: %[[I:[a-z0-9]*]]: tensor<2xi64>
// CHECK-DAG: %[[DY:.*]] = train.broadcast %{{.*}} : tensor<1x1xf32> to tensor<4x3xf32>
// CHECK-DAG: %[[ZERO:.*]] = train.broadcast %{{.*}} : tensor<f32> to tensor<2x3xf32>
// CHECK-DAG: %[[DD:.*]] = train.scatter %[[DY]], %[[I]], %[[ZERO]] axis 0 reduction "none"
// CHECK-DAG: %[[DU:.*]] = train.gather %[[DY]], %[[I]] axis 0
// CHECK: return %{{.*}}, %[[DD]], %[[DU]]
func.func @forward(%d: tensor<4x3xf32> {zero.input = "d"}, %i: tensor<2xi64> {zero.input = "i"}, %u: tensor<2x3xf32> {zero.input = "u"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.scatter %d, %i, %u axis 0 reduction "none" : (tensor<4x3xf32>, tensor<2xi64>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func @forward
// CHECK-SAME: %[[I:[a-z0-9]*]]: tensor<2xi64>
// CHECK: %[[DY:.*]] = train.broadcast
// CHECK: %[[DU:.*]] = train.gather %[[DY]], %[[I]] axis 0
// CHECK: return %{{.*}}, %[[DY]], %[[DU]]
func.func @forward(%d: tensor<4x3xf32> {zero.input = "d"}, %i: tensor<2xi64> {zero.input = "i"}, %u: tensor<2x3xf32> {zero.input = "u"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.scatter %d, %i, %u axis 0 reduction "add" : (tensor<4x3xf32>, tensor<2xi64>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The product of the factors for the data; for an update that of all others,
// which is one without zeros where the update is the only zero.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[D:.*]]: tensor<4x3xf32> {{.*}}, %[[I:[a-z0-9]*]]: tensor<2xi64> {{.*}}, %[[U:.*]]: tensor<2x3xf32> {{.*}})
// CHECK: %[[ONES:.*]] = train.broadcast %{{.*}} : tensor<f32> to tensor<4x3xf32>
// CHECK: %[[FACTORS:.*]] = train.scatter %[[ONES]], %[[I]], %[[U]] axis 0 reduction "mul"
// CHECK: %[[DD:.*]] = train.mul %{{.*}}, %[[FACTORS]]
// CHECK: %[[ISZERO:.*]] = train.equal %[[U]]
// CHECK: %[[NONZERO:.*]] = train.where %[[ISZERO]], %{{.*}}, %[[U]]
// CHECK: %[[PRODUCT:.*]] = train.scatter %[[D]], %[[I]], %[[NONZERO]] axis 0 reduction "mul"
// CHECK: train.gather_grad
// CHECK: train.div %{{.*}}, %[[NONZERO]]
// CHECK: %[[DU:.*]] = train.where
// CHECK: return %{{.*}}, %[[DD]], %[[DU]]
func.func @forward(%d: tensor<4x3xf32> {zero.input = "d"}, %i: tensor<2xi64> {zero.input = "i"}, %u: tensor<2x3xf32> {zero.input = "u"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.scatter %d, %i, %u axis 0 reduction "mul" : (tensor<4x3xf32>, tensor<2xi64>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Equals share: each that equals the result has its part.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[D:.*]]: tensor<4x3xf32> {{.*}}, %[[I:[a-z0-9]*]]: tensor<2xi64> {{.*}}, %[[U:.*]]: tensor<2x3xf32> {{.*}})
// CHECK: %[[Y:.*]] = train.scatter %[[D]], %[[I]], %[[U]] axis 0 reduction "min"
// CHECK: train.equal %[[D]], %[[Y]]
// CHECK: %[[TAKEN:.*]] = train.gather %[[Y]], %[[I]]
// CHECK: train.equal %[[U]], %[[TAKEN]]
// CHECK: %[[MORE:.*]] = train.gather_grad
// CHECK: %[[COUNT:.*]] = train.add %{{.*}}, %[[MORE]]
// CHECK: %[[SHARE:.*]] = train.div %{{.*}}, %[[COUNT]]
// CHECK: train.gather %[[SHARE]], %[[I]]
func.func @forward(%d: tensor<4x3xf32> {zero.input = "d"}, %i: tensor<2xi64> {zero.input = "i"}, %u: tensor<2x3xf32> {zero.input = "u"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.scatter %d, %i, %u axis 0 reduction "min" : (tensor<4x3xf32>, tensor<2xi64>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Back to where each came from, in the operand as one dimension.
// CHECK-LABEL: func @forward
// CHECK: %{{.*}}, %[[PLACES:.*]] = train.top_k
// CHECK: train.mul
// CHECK: train.add
// CHECK: %[[FLAT:.*]] = train.reshape %{{.*}} : tensor<2x2x3xi64> to tensor<12xi64>
// CHECK: %[[GRAD:.*]] = train.gather_grad %{{.*}}, %[[FLAT]] axis 0 data_shape [30] : (tensor<12xf32>, tensor<12xi64>) -> tensor<30xf32>
// CHECK: %[[DX:.*]] = train.reshape %[[GRAD]] : tensor<30xf32> to tensor<2x5x3xf32>
// CHECK: return %{{.*}}, %[[DX]]
func.func @forward(%x: tensor<2x5x3xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y, %i = train.top_k %x, 2 axis 1 : (tensor<2x5x3xf32>) -> (tensor<2x2x3xf32>, tensor<2x2x3xi64>)
  %loss = train.reduce_sum %y axes [0, 1, 2] : (tensor<2x2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The sum from the other end.
// CHECK-LABEL: func @forward
// CHECK: %[[DX:.*]] = train.cumulative_sum %{{.*}} axis 1 {exclusive, reverse} : tensor<2x5xf32>
// CHECK: return %{{.*}}, %[[DX]]
func.func @forward(%x: tensor<2x5xf32> {zero.input = "x"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.cumulative_sum %x axis 1 {exclusive} : tensor<2x5xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<2x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The recurrence from the other end, decaying by what came next.
// CHECK-LABEL: func @forward
// CHECK-SAME: (%[[A:.*]]: tensor<2x5xf32> {{.*}}, %[[B:.*]]: tensor<2x5xf32> {{.*}})
// CHECK: %[[H:.*]] = train.linear_recurrence %[[A]], %[[B]] axis 1 : tensor<2x5xf32>
// CHECK: %[[NEXT:.*]] = train.slice %[[A]] starts [0, 1] limits [2, 5]
// CHECK: %[[DECAY:.*]] = train.pad %[[NEXT]] low [0, 0] high [0, 1]
// CHECK: %[[DB:.*]] = train.linear_recurrence %[[DECAY]], %{{.*}} axis 1 {reverse}
// CHECK: %[[LAST:.*]] = train.slice %[[H]] starts [0, 0] limits [2, 4]
// CHECK: %[[BEFORE:.*]] = train.pad %[[LAST]] low [0, 1] high [0, 0]
// CHECK: %[[DA:.*]] = train.mul %[[DB]], %[[BEFORE]]
// CHECK: return %{{.*}}, %[[DA]], %[[DB]]
func.func @forward(%a: tensor<2x5xf32> {zero.input = "a"}, %b: tensor<2x5xf32> {zero.input = "b"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.linear_recurrence %a, %b axis 1 : tensor<2x5xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<2x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Adding up rows has the gradient of taking them.
// CHECK-LABEL: func @forward
// CHECK-SAME: %[[I:[a-z0-9]*]]: tensor<2xi64>
// CHECK: %[[DG:.*]] = train.gather %{{.*}}, %[[I]] axis 0 : (tensor<4x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
// CHECK: return %{{.*}}, %[[DG]]
func.func @forward(%g: tensor<2x3xf32> {zero.input = "g"}, %i: tensor<2xi64> {zero.input = "i"}) -> (tensor<f32> {zero.output = "loss"}) {
  %y = train.gather_grad %g, %i axis 0 data_shape [4, 3] : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<4x3xf32>
  %loss = train.reduce_sum %y axes [0, 1] : (tensor<4x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
