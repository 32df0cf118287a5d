// Operations that write by index, order elements or carry a value along an
// axis: printed as they are read.
// RUN: zero-opt %s | zero-opt | FileCheck %s

// CHECK-LABEL: func @scatter
func.func @scatter(%d: tensor<2x5x3xf32>, %i: tensor<4xi64>, %u: tensor<2x4x3xf32>, %b: tensor<3xi1>, %s: tensor<i32>, %v: tensor<i1>) {
  // CHECK: train.scatter %{{.*}}, %{{.*}}, %{{.*}} axis 1 reduction "mul" : (tensor<2x5x3xf32>, tensor<4xi64>, tensor<2x4x3xf32>) -> tensor<2x5x3xf32>
  %0 = train.scatter %d, %i, %u axis 1 reduction "mul" : (tensor<2x5x3xf32>, tensor<4xi64>, tensor<2x4x3xf32>) -> tensor<2x5x3xf32>
  // CHECK: train.scatter %{{.*}}, %{{.*}}, %{{.*}} axis 0 reduction "none" : (tensor<3xi1>, tensor<i32>, tensor<i1>) -> tensor<3xi1>
  %1 = train.scatter %b, %s, %v axis 0 reduction "none" : (tensor<3xi1>, tensor<i32>, tensor<i1>) -> tensor<3xi1>
  return
}

// CHECK-LABEL: func @order
func.func @order(%x: tensor<4x5xui8>) {
  // CHECK: train.top_k %{{.*}}, 2 axis 1 {smallest} : (tensor<4x5xui8>) -> (tensor<4x2xui8>, tensor<4x2xi64>)
  %0, %1 = train.top_k %x, 2 axis 1 {smallest} : (tensor<4x5xui8>) -> (tensor<4x2xui8>, tensor<4x2xi64>)
  // CHECK: train.top_k %{{.*}}, 0 axis 0 : (tensor<4x5xui8>) -> (tensor<0x5xui8>, tensor<0x5xi64>)
  %2, %3 = train.top_k %x, 0 axis 0 : (tensor<4x5xui8>) -> (tensor<0x5xui8>, tensor<0x5xi64>)
  return
}

// CHECK-LABEL: func @running
func.func @running(%x: tensor<4x5xf32>, %n: tensor<0x5xi32>) {
  // CHECK: train.cumulative_sum %{{.*}} axis 1 {exclusive, reverse} : tensor<4x5xf32>
  %0 = train.cumulative_sum %x axis 1 {exclusive, reverse} : tensor<4x5xf32>
  // CHECK: train.cumulative_sum %{{.*}} axis 0 : tensor<0x5xi32>
  %1 = train.cumulative_sum %n axis 0 : tensor<0x5xi32>
  // CHECK: train.linear_recurrence %{{.*}}, %{{.*}} axis 0 {reverse} : tensor<4x5xf32>
  %2 = train.linear_recurrence %x, %x axis 0 {reverse} : tensor<4x5xf32>
  return
}
