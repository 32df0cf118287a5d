// What a GPU computes in another way than the host: no step adds to what
// another one adds to.
// RUN: zero-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(kernel-prepare-gpu))' | FileCheck %s

// A pooling's gradient: each element of the input adds up its windows.
// CHECK-LABEL: func.func @pool
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (tensor<1x2x4x4xf32>)
// CHECK: scf.for {{.*}} -> (f32)
// CHECK: arith.remsi
// CHECK: scf.if {{.*}} -> (f32)
// CHECK: tensor.insert {{.*}} : tensor<1x2x4x4xf32>
// CHECK-NOT: train.
func.func @pool(%g: tensor<1x2x2x2xf32>, %x: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> attributes {plan.kernel} {
  %0 = train.max_pool_grad %g, %x kernel [2, 2] strides [2, 2] pads [0, 0, 0, 0] dilations [1, 1]
    : (tensor<1x2x2x2xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %0 : tensor<1x2x4x4xf32>
}

// -----

// A table's gradient: one sum over all positions, in f32, rounded once.
// CHECK-LABEL: func.func @table
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction", "reduction", "parallel", "parallel"]
// CHECK-SAME: tensor<50x16xf32>
// CHECK-SAME: plan.scatter
// CHECK: arith.select
// CHECK: linalg.generic
// CHECK: arith.truncf
func.func @table(%g: tensor<4x8x16xbf16>, %i: tensor<4x8xi64>) -> tensor<50x16xbf16> attributes {plan.kernel} {
  %0 = train.gather_grad %g, %i axis 0 data_shape [50, 16]
    : (tensor<4x8x16xbf16>, tensor<4x8xi64>) -> tensor<50x16xbf16>
  return %0 : tensor<50x16xbf16>
}

// -----

// A scatter: each element of a slice goes over the indices, in their order.
// CHECK-LABEL: func.func @scatter
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (tensor<50x16xf32>)
// CHECK: scf.for {{.*}} iter_args(%[[T:.*]] = %{{.*}}) -> (tensor<50x16xf32>)
// CHECK: tensor.extract %{{.*}}[%[[K:.*]]] : tensor<4xi64>
// CHECK: tensor.extract %[[T]]
// CHECK: arith.addf
// CHECK: tensor.insert
func.func @scatter(%d: tensor<50x16xf32>, %i: tensor<4xi64>, %u: tensor<4x16xf32>) -> tensor<50x16xf32> attributes {plan.kernel} {
  %0 = train.scatter %d, %i, %u axis 0 reduction "add"
    : (tensor<50x16xf32>, tensor<4xi64>, tensor<4x16xf32>) -> tensor<50x16xf32>
  return %0 : tensor<50x16xf32>
}
