// Operations that change nothing disappear, chains of shape operations become
// one.
// RUN: zero-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func @identities
// CHECK-SAME: (%[[X:.*]]: tensor<8x10xf32>)
// CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]], %[[X]], %[[X]], %[[X]]
func.func @identities(%x: tensor<8x10xf32>)
    -> (tensor<8x10xf32>, tensor<8x10xf32>, tensor<8x10xf32>, tensor<8x10xf32>,
        tensor<8x10xf32>, tensor<8x10xf32>, tensor<8x10xf32>) {
  %0 = train.reshape %x : tensor<8x10xf32> to tensor<8x10xf32>
  %1 = train.broadcast %x : tensor<8x10xf32> to tensor<8x10xf32>
  %2 = train.transpose %x [0, 1] : (tensor<8x10xf32>) -> tensor<8x10xf32>
  %3 = train.slice %x starts [0, 0] limits [8, 10] strides [1, 1] : (tensor<8x10xf32>) -> tensor<8x10xf32>
  %4 = train.pad %x low [0, 0] high [0, 0] interior [0, 0] : (tensor<8x10xf32>) -> tensor<8x10xf32>
  %5 = train.concat %x axis 0 : (tensor<8x10xf32>) -> tensor<8x10xf32>
  %6 = train.cast %x : tensor<8x10xf32> to tensor<8x10xf32>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<8x10xf32>, tensor<8x10xf32>, tensor<8x10xf32>, tensor<8x10xf32>, tensor<8x10xf32>, tensor<8x10xf32>, tensor<8x10xf32>
}

// A square transpose keeps the type but is no identity; nor is a cast back,
// which has lost digits.
// CHECK-LABEL: func @not_identities
// CHECK: train.transpose
// CHECK: train.cast
// CHECK: train.cast
func.func @not_identities(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = train.transpose %x [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = train.cast %x : tensor<4x4xf32> to tensor<4x4xf16>
  %2 = train.cast %1 : tensor<4x4xf16> to tensor<4x4xf32>
  return %0, %2 : tensor<4x4xf32>, tensor<4x4xf32>
}

// CHECK-LABEL: func @chains
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>, %[[B:.*]]: tensor<1x4xf32>)
// CHECK-DAG: %[[R:.*]] = train.reshape %[[X]] : tensor<2x3x4xf32> to tensor<24xf32>
// CHECK-DAG: %[[T:.*]] = train.transpose %[[X]] [1, 0, 2] : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
// CHECK-DAG: %[[E:.*]] = train.broadcast %[[B]] : tensor<1x4xf32> to tensor<5x3x4xf32>
// CHECK: return %[[R]], %[[T]], %[[E]], %[[X]], %[[X]]
func.func @chains(%x: tensor<2x3x4xf32>, %b: tensor<1x4xf32>)
    -> (tensor<24xf32>, tensor<3x2x4xf32>, tensor<5x3x4xf32>, tensor<2x3x4xf32>,
        tensor<2x3x4xf32>) {
  %0 = train.reshape %x : tensor<2x3x4xf32> to tensor<6x4xf32>
  %1 = train.reshape %0 : tensor<6x4xf32> to tensor<24xf32>
  %2 = train.transpose %x [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %3 = train.transpose %2 [2, 1, 0] : (tensor<4x2x3xf32>) -> tensor<3x2x4xf32>
  %4 = train.broadcast %b : tensor<1x4xf32> to tensor<3x4xf32>
  %5 = train.broadcast %4 : tensor<3x4xf32> to tensor<5x3x4xf32>
  %6 = train.transpose %2 [1, 2, 0] : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  %7 = train.reshape %0 : tensor<6x4xf32> to tensor<2x3x4xf32>
  return %1, %3, %5, %6, %7 : tensor<24xf32>, tensor<3x2x4xf32>, tensor<5x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>
}
