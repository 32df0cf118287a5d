// RUN: zero-opt --train-to-linalg --split-input-file %s | FileCheck %s

// The data are copied, then each update goes to where its index says, in order.
// An index means a place of the axis whatever it is.
// CHECK-LABEL: func.func @scatter
// CHECK-SAME: %[[D:.*]]: tensor<4x3xf32>, %[[I:.*]]: tensor<2xi64>, %[[U:[^:]*]]: tensor<2x3xf32>
// CHECK: %[[COPY:.*]] = linalg.generic {{.*}} ins(%[[D]]
// CHECK: scf.for %[[K:.*]] = {{.*}} iter_args(%[[SUM:.*]] = %[[COPY]])
// CHECK: %[[INDEX:.*]] = tensor.extract %[[I]][%[[K]]]
// CHECK: arith.minsi
// CHECK: arith.maxsi
// CHECK: linalg.generic
// CHECK: arith.maximumf
// CHECK: tensor.insert_slice %{{.*}} into %[[SUM]]
func.func @scatter(%d: tensor<4x3xf32>, %i: tensor<2xi64>, %u: tensor<2x3xf32>) -> tensor<4x3xf32>
    attributes {plan.kernel} {
  %0 = train.scatter %d, %i, %u axis 0 reduction "max" : (tensor<4x3xf32>, tensor<2xi64>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----

// Narrow floats combine in f32.
// CHECK-LABEL: func.func @narrow
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: arith.mulf %{{.*}} : f32
// CHECK: arith.truncf %{{.*}} : f32 to bf16
func.func @narrow(%d: tensor<4xbf16>, %i: tensor<2xi64>, %u: tensor<2xbf16>) -> tensor<4xbf16>
    attributes {plan.kernel} {
  %0 = train.scatter %d, %i, %u axis 0 reduction "mul" : (tensor<4xbf16>, tensor<2xi64>, tensor<2xbf16>) -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// -----

// Without updates a copy.
// CHECK-LABEL: func.func @none
// CHECK-NOT: scf.for
// CHECK: linalg.generic
func.func @none(%d: tensor<4xf32>, %i: tensor<0xi64>, %u: tensor<0xf32>) -> tensor<4xf32>
    attributes {plan.kernel} {
  %0 = train.scatter %d, %i, %u axis 0 reduction "add" : (tensor<4xf32>, tensor<0xi64>, tensor<0xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Rows, results, elements: each pass looks for what comes behind the element
// before. Nothing but scalars is kept.
// CHECK-LABEL: func.func @top_k
// CHECK-COUNT-4: scf.for
// CHECK: arith.cmpf ugt
// CHECK: arith.select
// CHECK: tensor.insert
// CHECK: tensor.insert
func.func @top_k(%x: tensor<4x5xf32>) -> (tensor<4x2xf32>, tensor<4x2xi64>)
    attributes {plan.kernel} {
  %0, %1 = train.top_k %x, 2 axis 1 : (tensor<4x5xf32>) -> (tensor<4x2xf32>, tensor<4x2xi64>)
  return %0, %1 : tensor<4x2xf32>, tensor<4x2xi64>
}

// -----

// Unsigned numbers are compared as such.
// CHECK-LABEL: func.func @unsigned
// CHECK: arith.cmpi ugt
func.func @unsigned(%x: tensor<5xui8>) -> (tensor<2xui8>, tensor<2xi64>)
    attributes {plan.kernel} {
  %0, %1 = train.top_k %x, 2 axis 0 : (tensor<5xui8>) -> (tensor<2xui8>, tensor<2xi64>)
  return %0, %1 : tensor<2xui8>, tensor<2xi64>
}

// -----

// One scalar is carried, in f32, from the end.
// CHECK-LABEL: func.func @cumulative_sum
// CHECK: scf.for {{.*}} -> (tensor<4x5xbf16>, f32)
// CHECK: arith.subi
// CHECK: arith.extf
// CHECK: arith.addf %{{.*}} : f32
func.func @cumulative_sum(%x: tensor<4x5xbf16>) -> tensor<4x5xbf16>
    attributes {plan.kernel} {
  %0 = train.cumulative_sum %x axis 1 {reverse} : tensor<4x5xbf16>
  return %0 : tensor<4x5xbf16>
}

// -----

// CHECK-LABEL: func.func @linear_recurrence
// CHECK: arith.mulf
// CHECK: arith.select
// CHECK: arith.addf
func.func @linear_recurrence(%a: tensor<4x5xf32>, %b: tensor<4x5xf32>) -> tensor<4x5xf32>
    attributes {plan.kernel} {
  %0 = train.linear_recurrence %a, %b axis 0 : tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}
