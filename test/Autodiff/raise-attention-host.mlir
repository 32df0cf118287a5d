// Attention for the host's runtime: any head size, f32, masks in the shape that
// they have before they are broadcast.
// RUN: zero-opt -split-input-file -train-raise-attention=host %s | FileCheck %s

// As PyTorch's exporters write a padding mask: a conjunction that broadcasts to
// the scores, -infinity, and zeros in place of what is no number.
// CHECK-LABEL: func @padding(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x6x5xf32>, %[[SEEN:[^:]*]]: tensor<2x1x1x6xi1>
// CHECK: %[[MASK:.*]] = train.where %[[SEEN]], %{{.*}}, %{{.*}} : (tensor<2x1x1x6xi1>, tensor<f32>, tensor<f32>) -> tensor<2x1x1x6xf32>
// CHECK: %[[Y:.*]], %{{.*}} = train.attention %[[Q]], %[[Q]], %[[Q]], %[[MASK]] scale 2.500000e-01 :
// CHECK: return %[[Y]]
func.func @padding(%q: tensor<2x4x6x5xf32>, %seen: tensor<2x1x1x6xi1>) -> tensor<2x4x6x5xf32> {
  %root = arith.constant dense<5.0e-01> : tensor<f32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %hidden = arith.constant dense<0xFF800000> : tensor<f32>
  %true = arith.constant dense<true> : tensor<6x1xi1>
  %both = train.and %true, %seen : (tensor<6x1xi1>, tensor<2x1x1x6xi1>) -> tensor<2x1x6x6xi1>
  %mask = train.where %both, %zero, %hidden : (tensor<2x1x6x6xi1>, tensor<f32>, tensor<f32>) -> tensor<2x1x6x6xf32>
  %q1 = train.mul %q, %root : (tensor<2x4x6x5xf32>, tensor<f32>) -> tensor<2x4x6x5xf32>
  %s = train.matmul %q1, %q1 {transpose_b} : (tensor<2x4x6x5xf32>, tensor<2x4x6x5xf32>) -> tensor<2x4x6x6xf32>
  %s1 = train.add %s, %mask : (tensor<2x4x6x6xf32>, tensor<2x1x6x6xf32>) -> tensor<2x4x6x6xf32>
  %p = train.softmax %s1 axis 3 : tensor<2x4x6x6xf32>
  %nan = train.is_nan %p : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xi1>
  %p1 = train.where %nan, %zero, %p : (tensor<2x4x6x6xi1>, tensor<f32>, tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %y = train.matmul %p1, %q : (tensor<2x4x6x6xf32>, tensor<2x4x6x5xf32>) -> tensor<2x4x6x5xf32>
  return %y : tensor<2x4x6x5xf32>
}

// -----

// Causality that is joined with padding is taken out; what was broadcast for
// the scores is not.
// CHECK-LABEL: func @joined(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x1x3x8xf32>, %[[SEEN:[^:]*]]: tensor<2x1x1x3xi1>
// CHECK-NOT: tensor<2x1x3x3
// CHECK: %[[MASK:.*]] = train.where %[[SEEN]]
// CHECK: train.attention %[[Q]], %[[Q]], %[[Q]], %[[MASK]] scale 1.000000e+00 causal :
func.func @joined(%q: tensor<2x1x3x8xf32>, %seen: tensor<2x1x1x3xi1>) -> tensor<2x1x3x8xf32> {
  %hidden = arith.constant dense<-3.40282347E+38> : tensor<f32>
  %causal = arith.constant dense<[[true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1>
  %wide = train.broadcast %seen : tensor<2x1x1x3xi1> to tensor<2x1x3x3xi1>
  %both = train.and %causal, %wide : (tensor<3x3xi1>, tensor<2x1x3x3xi1>) -> tensor<2x1x3x3xi1>
  %s = train.matmul %q, %q {transpose_b} : (tensor<2x1x3x8xf32>, tensor<2x1x3x8xf32>) -> tensor<2x1x3x3xf32>
  %s1 = train.where %both, %s, %hidden : (tensor<2x1x3x3xi1>, tensor<2x1x3x3xf32>, tensor<f32>) -> tensor<2x1x3x3xf32>
  %p = train.softmax %s1 axis 3 : tensor<2x1x3x3xf32>
  %y = train.matmul %p, %q : (tensor<2x1x3x3xf32>, tensor<2x1x3x8xf32>) -> tensor<2x1x3x8xf32>
  return %y : tensor<2x1x3x8xf32>
}

// -----

// Two conditions stay one mask: the sum of two would overflow.
// CHECK-LABEL: func @two(
// CHECK: %[[BOTH:.*]] = train.and %{{.*}}, %{{.*}} : (tensor<2x1x1x3xi1>, tensor<1x1x3x3xi1>)
// CHECK: %[[MASK:.*]] = train.where %[[BOTH]]
// CHECK: train.attention %{{.*}}, %[[MASK]] scale
func.func @two(%q: tensor<2x1x3x8xf32>, %a: tensor<2x1x1x3xi1>, %b: tensor<1x1x3x3xi1>) -> tensor<2x1x3x8xf32> {
  %hidden = arith.constant dense<-3.40282347E+38> : tensor<f32>
  %both = train.and %a, %b : (tensor<2x1x1x3xi1>, tensor<1x1x3x3xi1>) -> tensor<2x1x3x3xi1>
  %s = train.matmul %q, %q {transpose_b} : (tensor<2x1x3x8xf32>, tensor<2x1x3x8xf32>) -> tensor<2x1x3x3xf32>
  %s1 = train.where %both, %s, %hidden : (tensor<2x1x3x3xi1>, tensor<2x1x3x3xf32>, tensor<f32>) -> tensor<2x1x3x3xf32>
  %p = train.softmax %s1 axis 3 : tensor<2x1x3x3xf32>
  %y = train.matmul %p, %q : (tensor<2x1x3x3xf32>, tensor<2x1x3x8xf32>) -> tensor<2x1x3x8xf32>
  return %y : tensor<2x1x3x8xf32>
}

// -----

// Dropout behind the softmax, as a model has it that was exported in training;
// in bf16 around a softmax in f32, behind the zeros for what is no number.
// CHECK-LABEL: func @dropout(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<4x2x3x8xbf16>, %[[KEY:[^:]*]]: tensor<i64>, %[[FIRST:[^:]*]]: tensor<i64>
// CHECK-NEXT: %[[Y:.*]], %{{.*}} = train.attention %[[Q]], %[[Q]], %[[Q]] scale 1.000000e+00 dropout %[[KEY]], %[[FIRST]] ratio 1.000000e-01 samples 4 :
// CHECK-NEXT: return %[[Y]]
func.func @dropout(%q: tensor<4x2x3x8xbf16>, %key: tensor<i64>, %first: tensor<i64>) -> tensor<4x2x3x8xbf16> {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %s = train.matmul %q, %q {transpose_b} : (tensor<4x2x3x8xbf16>, tensor<4x2x3x8xbf16>) -> tensor<4x2x3x3xbf16>
  %s1 = train.cast %s : tensor<4x2x3x3xbf16> to tensor<4x2x3x3xf32>
  %p = train.softmax %s1 axis 3 : tensor<4x2x3x3xf32>
  %nan = train.is_nan %p : (tensor<4x2x3x3xf32>) -> tensor<4x2x3x3xi1>
  %p1 = train.where %nan, %zero, %p : (tensor<4x2x3x3xi1>, tensor<f32>, tensor<4x2x3x3xf32>) -> tensor<4x2x3x3xf32>
  %p2 = train.dropout %p1, %key, %first ratio 1.0e-01 samples 4 along 0 : (tensor<4x2x3x3xf32>, tensor<i64>, tensor<i64>) -> tensor<4x2x3x3xf32>
  %p3 = train.cast %p2 : tensor<4x2x3x3xf32> to tensor<4x2x3x3xbf16>
  %y = train.matmul %p3, %q : (tensor<4x2x3x3xbf16>, tensor<4x2x3x8xbf16>) -> tensor<4x2x3x8xbf16>
  return %y : tensor<4x2x3x8xbf16>
}

// -----

// Batch and heads in one dimension: two rows a sample. Then no samples at all.
// CHECK-LABEL: func @rows(
// CHECK: train.attention %{{.*}} ratio 5.000000e-01 samples 2 : (tensor<4x1x3x8xf32>,
// CHECK: train.attention %{{.*}} ratio 5.000000e-01 : (tensor<4x1x3x8xf32>,
func.func @rows(%q: tensor<4x3x8xf32>, %key: tensor<i64>, %first: tensor<i64>) -> (tensor<4x3x8xf32>, tensor<4x3x8xf32>) {
  %s = train.matmul %q, %q {transpose_b} : (tensor<4x3x8xf32>, tensor<4x3x8xf32>) -> tensor<4x3x3xf32>
  %p = train.softmax %s axis 2 : tensor<4x3x3xf32>
  %p1 = train.dropout %p, %key, %first ratio 5.0e-01 samples 2 along 0 : (tensor<4x3x3xf32>, tensor<i64>, tensor<i64>) -> tensor<4x3x3xf32>
  %y = train.matmul %p1, %q : (tensor<4x3x3xf32>, tensor<4x3x8xf32>) -> tensor<4x3x8xf32>
  %t = train.matmul %q, %q {transpose_b} : (tensor<4x3x8xf32>, tensor<4x3x8xf32>) -> tensor<4x3x3xf32>
  %r = train.softmax %t axis 2 : tensor<4x3x3xf32>
  %r1 = train.dropout %r, %key, %first ratio 5.0e-01 : (tensor<4x3x3xf32>, tensor<i64>, tensor<i64>) -> tensor<4x3x3xf32>
  %z = train.matmul %r1, %q : (tensor<4x3x3xf32>, tensor<4x3x8xf32>) -> tensor<4x3x8xf32>
  return %y, %z : tensor<4x3x8xf32>, tensor<4x3x8xf32>
}

// -----

// CHECK-LABEL: func @f64(
// CHECK-NOT: train.attention
func.func @f64(%q: tensor<1x1x2x8xf64>) -> tensor<1x1x2x8xf64> {
  %s = train.matmul %q, %q {transpose_b} : (tensor<1x1x2x8xf64>, tensor<1x1x2x8xf64>) -> tensor<1x1x2x2xf64>
  %p = train.softmax %s axis 3 : tensor<1x1x2x2xf64>
  %y = train.matmul %p, %q : (tensor<1x1x2x2xf64>, tensor<1x1x2x8xf64>) -> tensor<1x1x2x8xf64>
  return %y : tensor<1x1x2x8xf64>
}
