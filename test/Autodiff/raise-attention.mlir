// A softmax between two products becomes attention: scales go to the operation,
// heads are not repeated, masks are causal or added up.
// RUN: zero-opt -split-input-file -train-raise-attention %s | FileCheck %s

// The scale behind the product, and a causal mask.
// CHECK-LABEL: func @causal(
// CHECK-SAME: %[[Q:.*]]: tensor<1x2x3x8xbf16>, %[[K:.*]]: tensor<1x2x3x8xbf16>, %[[V:.*]]: tensor<1x2x3x16xbf16>
// CHECK-NEXT: %[[Y:.*]], %{{.*}} = train.attention %[[Q]], %[[K]], %[[V]] scale 5.000000e-01 causal :
// CHECK-NEXT: return %[[Y]]
func.func @causal(%q: tensor<1x2x3x8xbf16>, %k: tensor<1x2x3x8xbf16>, %v: tensor<1x2x3x16xbf16>) -> tensor<1x2x3x16xbf16> {
  %scale = arith.constant dense<5.0e-01> : tensor<bf16>
  %mask = arith.constant dense<[[0.0, -3.38953139e+38, -3.38953139e+38], [0.0, 0.0, -3.38953139e+38], [0.0, 0.0, 0.0]]> : tensor<3x3xbf16>
  %s = train.matmul %q, %k {transpose_b} : (tensor<1x2x3x8xbf16>, tensor<1x2x3x8xbf16>) -> tensor<1x2x3x3xbf16>
  %s1 = train.mul %s, %scale : (tensor<1x2x3x3xbf16>, tensor<bf16>) -> tensor<1x2x3x3xbf16>
  %s2 = train.add %s1, %mask : (tensor<1x2x3x3xbf16>, tensor<3x3xbf16>) -> tensor<1x2x3x3xbf16>
  %p = train.softmax %s2 axis 3 : tensor<1x2x3x3xbf16>
  %y = train.matmul %p, %v : (tensor<1x2x3x3xbf16>, tensor<1x2x3x16xbf16>) -> tensor<1x2x3x16xbf16>
  return %y : tensor<1x2x3x16xbf16>
}

// -----

// As exporters write it: the root of the scale on both sides, transposed keys.
// The product of the rounded roots is next to 1 / sqrt(8), which is meant.
// CHECK-LABEL: func @roots(
// CHECK-SAME: %[[X:.*]]: tensor<1x3x2x8xbf16>
// CHECK: train.transpose %[[X]] [0, 2, 1, 3]
// CHECK: %[[K:.*]] = train.transpose %[[X]] [0, 2, 1, 3]
// CHECK: train.attention %{{.*}}, %[[K]], %{{.*}} scale 0.35355339059327373 :
func.func @roots(%x: tensor<1x3x2x8xbf16>) -> tensor<1x2x3x8xbf16> {
  %root = arith.constant dense<5.937500e-01> : tensor<bf16>
  %h = train.transpose %x [0, 2, 1, 3] : (tensor<1x3x2x8xbf16>) -> tensor<1x2x3x8xbf16>
  %t = train.transpose %x [0, 2, 3, 1] : (tensor<1x3x2x8xbf16>) -> tensor<1x2x8x3xbf16>
  %q = train.mul %h, %root : (tensor<1x2x3x8xbf16>, tensor<bf16>) -> tensor<1x2x3x8xbf16>
  %k = train.mul %t, %root : (tensor<1x2x8x3xbf16>, tensor<bf16>) -> tensor<1x2x8x3xbf16>
  %s = train.matmul %q, %k : (tensor<1x2x3x8xbf16>, tensor<1x2x8x3xbf16>) -> tensor<1x2x3x3xbf16>
  %p = train.softmax %s axis 3 : tensor<1x2x3x3xbf16>
  %y = train.matmul %p, %h : (tensor<1x2x3x3xbf16>, tensor<1x2x3x8xbf16>) -> tensor<1x2x3x8xbf16>
  return %y : tensor<1x2x3x8xbf16>
}

// -----

// Two query heads share a key head; the softmax is in f32; the mask, which is
// no constant, keeps its batch and gets all rows.
// CHECK-LABEL: func @groups(
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x3x8xbf16>, %[[K:.*]]: tensor<2x2x3x8xbf16>, %[[M:.*]]: tensor<2x1x1x3xf32>
// CHECK: %[[NARROW:.*]] = train.cast %[[M]]
// CHECK: %[[FINITE:.*]] = train.max %[[NARROW]]
// CHECK: %[[MASK:.*]] = train.broadcast %[[FINITE]] : tensor<2x1x1x3xbf16> to tensor<2x1x3x3xbf16>
// CHECK: train.attention %[[Q]], %[[K]], %[[K]], %[[MASK]] scale 2.500000e-01 :
func.func @groups(%q: tensor<2x4x3x8xbf16>, %k: tensor<2x2x3x8xbf16>, %m: tensor<2x1x1x3xf32>) -> tensor<2x4x3x8xbf16> {
  %four = arith.constant dense<4.0> : tensor<f32>
  %k0 = train.reshape %k : tensor<2x2x3x8xbf16> to tensor<2x2x1x3x8xbf16>
  %k1 = train.broadcast %k0 : tensor<2x2x1x3x8xbf16> to tensor<2x2x2x3x8xbf16>
  %k2 = train.reshape %k1 : tensor<2x2x2x3x8xbf16> to tensor<2x4x3x8xbf16>
  %s = train.matmul %q, %k2 {transpose_b} : (tensor<2x4x3x8xbf16>, tensor<2x4x3x8xbf16>) -> tensor<2x4x3x3xbf16>
  %wide = train.cast %s : tensor<2x4x3x3xbf16> to tensor<2x4x3x3xf32>
  %s1 = train.div %wide, %four : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3x3xf32>
  %s2 = train.add %m, %s1 : (tensor<2x1x1x3xf32>, tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
  %p = train.softmax %s2 axis 3 : tensor<2x4x3x3xf32>
  %narrow = train.cast %p : tensor<2x4x3x3xf32> to tensor<2x4x3x3xbf16>
  %y = train.matmul %narrow, %k2 : (tensor<2x4x3x3xbf16>, tensor<2x4x3x8xbf16>) -> tensor<2x4x3x8xbf16>
  return %y : tensor<2x4x3x8xbf16>
}

// -----

// Conditions under which scores stay: one is causal, the other becomes a mask.
// CHECK-LABEL: func @conditions(
// CHECK: %[[HIDDEN:.*]] = train.where %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x2xi1>, tensor<f16>, tensor<f16>) -> tensor<2x2xf16>
// CHECK: %[[MASK:.*]] = train.reshape %[[HIDDEN]] : tensor<2x2xf16> to tensor<1x1x2x2xf16>
// CHECK: train.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[MASK]] scale 1.000000e+00 causal :
func.func @conditions(%q: tensor<1x1x2x8xf16>, %c: tensor<2x2xi1>) -> tensor<1x1x2x8xf16> {
  %lowest = arith.constant dense<-6.550400e+04> : tensor<f16>
  %seen = arith.constant dense<[[true, false], [true, true]]> : tensor<2x2xi1>
  %s = train.matmul %q, %q {transpose_b} : (tensor<1x1x2x8xf16>, tensor<1x1x2x8xf16>) -> tensor<1x1x2x2xf16>
  %s1 = train.where %seen, %s, %lowest : (tensor<2x2xi1>, tensor<1x1x2x2xf16>, tensor<f16>) -> tensor<1x1x2x2xf16>
  %s2 = train.where %c, %s1, %lowest : (tensor<2x2xi1>, tensor<1x1x2x2xf16>, tensor<f16>) -> tensor<1x1x2x2xf16>
  %p = train.softmax %s2 axis 3 : tensor<1x1x2x2xf16>
  %y = train.matmul %p, %q : (tensor<1x1x2x2xf16>, tensor<1x1x2x8xf16>) -> tensor<1x1x2x8xf16>
  return %y : tensor<1x1x2x8xf16>
}

// -----

// Heads that are part of the batch.
// CHECK-LABEL: func @joined(
// CHECK-SAME: %[[Q:.*]]: tensor<6x3x8xf16>, %[[K:.*]]: tensor<2x4x3x8xf16>, %[[V:.*]]: tensor<6x4x8xf16>
// CHECK: %[[T:.*]] = train.transpose %[[K]] [0, 2, 1, 3]
// CHECK: %[[Q4:.*]] = train.reshape %[[Q]] : tensor<6x3x8xf16> to tensor<6x1x3x8xf16>
// CHECK: %[[K4:.*]] = train.reshape %[[T]] : tensor<2x3x4x8xf16> to tensor<6x1x4x8xf16>
// CHECK: %[[V4:.*]] = train.reshape %[[V]] : tensor<6x4x8xf16> to tensor<6x1x4x8xf16>
// CHECK: %[[Y:.*]], %{{.*}} = train.attention %[[Q4]], %[[K4]], %[[V4]] scale
// CHECK: train.reshape %[[Y]] : tensor<6x1x3x8xf16> to tensor<6x3x8xf16>
func.func @joined(%q: tensor<6x3x8xf16>, %x: tensor<2x4x3x8xf16>, %v: tensor<6x4x8xf16>) -> tensor<6x3x8xf16> {
  %t = train.transpose %x [0, 2, 3, 1] : (tensor<2x4x3x8xf16>) -> tensor<2x3x8x4xf16>
  %k = train.reshape %t : tensor<2x3x8x4xf16> to tensor<6x8x4xf16>
  %s = train.matmul %q, %k : (tensor<6x3x8xf16>, tensor<6x8x4xf16>) -> tensor<6x3x4xf16>
  %p = train.softmax %s axis 2 : tensor<6x3x4xf16>
  %y = train.matmul %p, %v : (tensor<6x3x4xf16>, tensor<6x4x8xf16>) -> tensor<6x3x8xf16>
  return %y : tensor<6x3x8xf16>
}
