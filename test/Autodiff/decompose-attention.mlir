// What attention stands for: products, a softmax and, where it is used, the
// logarithm of the sums. Its numbers are checked by vjps-numeric.test.
// RUN: zero-opt -train-decompose-attention %s | FileCheck %s

// CHECK-LABEL: func @forward(
// CHECK-SAME: %[[Q:.*]]: tensor<1x2x3x8xf32>, %[[K:.*]]: tensor<1x1x3x8xf32>, %[[V:.*]]: tensor<1x1x3x4xf32>
// CHECK: %[[K2:.*]] = train.reshape %{{.*}} : tensor<1x1x2x3x8xf32> to tensor<1x2x3x8xf32>
// CHECK: train.matmul %[[Q]], %[[K2]] {transpose_b}
// CHECK: %[[SEEN:.*]] = arith.constant dense<{{\[\[}}true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1>
// CHECK: %[[S:.*]] = train.where %[[SEEN]]
// CHECK: %[[P:.*]] = train.softmax %[[S]] axis 3
// CHECK: train.matmul %[[P]], %{{.*}}
// CHECK-NOT: train.log
// CHECK: return
func.func @forward(%q: tensor<1x2x3x8xf32>, %k: tensor<1x1x3x8xf32>, %v: tensor<1x1x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %y, %l = train.attention %q, %k, %v scale 5.0e-01 causal : (tensor<1x2x3x8xf32>, tensor<1x1x3x8xf32>, tensor<1x1x3x4xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3xf32>)
  return %y : tensor<1x2x3x4xf32>
}

// The gradient has no softmax: the probabilities come from the logarithms.
// CHECK-LABEL: func @backward(
// CHECK-NOT: train.attention
// CHECK-NOT: train.softmax
// CHECK: train.exp
// CHECK: train.matmul %{{.*}}, %{{.*}} {transpose_a}
// CHECK: return
func.func @backward(%q: tensor<1x2x3x8xbf16>, %l: tensor<1x2x3xf32>) -> tensor<1x2x3x8xbf16> {
  %dq, %dk, %dv = train.attention_grad %q, %q, %q, %q, %q, %l scale 5.0e-01 : (tensor<1x2x3x8xbf16>, tensor<1x2x3x8xbf16>, tensor<1x2x3x8xbf16>, tensor<1x2x3x8xbf16>, tensor<1x2x3x8xbf16>, tensor<1x2x3xf32>) -> (tensor<1x2x3x8xbf16>, tensor<1x2x3x8xbf16>, tensor<1x2x3x8xbf16>)
  return %dk : tensor<1x2x3x8xbf16>
}

// The probabilities are dropped out in front of the values.
// CHECK-LABEL: func @dropped(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<4x2x3x8xf32>, %[[KEY:[^:]*]]: tensor<i64>, %[[FIRST:[^:]*]]: tensor<i64>
// CHECK: %[[P:.*]] = train.softmax
// CHECK: %[[D:.*]] = train.dropout %[[P]], %[[KEY]], %[[FIRST]] ratio 1.000000e-01 samples 2 along 0
// CHECK: train.matmul %[[D]], %[[Q]]
func.func @dropped(%q: tensor<4x2x3x8xf32>, %key: tensor<i64>, %first: tensor<i64>) -> tensor<4x2x3x8xf32> {
  %y, %l = train.attention %q, %q, %q scale 5.0e-01 dropout %key, %first ratio 1.0e-01 samples 2 : (tensor<4x2x3x8xf32>, tensor<4x2x3x8xf32>, tensor<4x2x3x8xf32>, tensor<i64>, tensor<i64>) -> (tensor<4x2x3x8xf32>, tensor<4x2x3xf32>)
  return %y : tensor<4x2x3x8xf32>
}

// In the gradient by the values the probabilities are dropped out, in the
// others what the values give of the gradient by the probabilities; without
// samples all draw alike.
// CHECK-LABEL: func @dropped_backward(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<4x2x3x8xf32>, %[[DY:[^:]*]]: tensor<4x2x3x8xf32>
// CHECK: %[[P:.*]] = train.exp
// CHECK: %[[D:.*]] = train.dropout %[[P]], %{{.*}} ratio 1.000000e-01 :
// CHECK: train.matmul %[[D]], %[[DY]] {transpose_a}
// CHECK: %[[DD:.*]] = train.matmul %[[DY]], %[[Q]] {transpose_b}
// CHECK: %[[DP:.*]] = train.dropout %[[DD]], %{{.*}} ratio 1.000000e-01 :
// CHECK: %[[C:.*]] = train.sub %[[DP]]
// CHECK: train.mul %[[P]], %[[C]]
func.func @dropped_backward(%q: tensor<4x2x3x8xf32>, %dy: tensor<4x2x3x8xf32>, %l: tensor<4x2x3xf32>, %key: tensor<i64>) -> (tensor<4x2x3x8xf32>, tensor<4x2x3x8xf32>, tensor<4x2x3x8xf32>) {
  %dq, %dk, %dv = train.attention_grad %dy, %q, %q, %q, %q, %l scale 5.0e-01 dropout %key, %key ratio 1.0e-01 : (tensor<4x2x3x8xf32>, tensor<4x2x3x8xf32>, tensor<4x2x3x8xf32>, tensor<4x2x3x8xf32>, tensor<4x2x3x8xf32>, tensor<4x2x3xf32>, tensor<i64>, tensor<i64>) -> (tensor<4x2x3x8xf32>, tensor<4x2x3x8xf32>, tensor<4x2x3x8xf32>)
  return %dq, %dk, %dv : tensor<4x2x3x8xf32>, tensor<4x2x3x8xf32>, tensor<4x2x3x8xf32>
}

// A mask may hide all keys of a query: its probabilities are 0.
// CHECK-LABEL: func @masked(
// CHECK-DAG: %[[INF:.*]] = arith.constant dense<0xFF800000> : tensor<f32>
// CHECK: %[[S:.*]] = train.where %{{.*}}, %{{.*}}, %[[INF]]
// CHECK: %[[P:.*]] = train.softmax %[[S]] axis 3
// CHECK: %[[MAX:.*]] = train.reduce_max %[[S]] axes [3] {keepdims}
// CHECK: %[[EMPTY:.*]] = train.equal %[[MAX]], %{{.*}}
// CHECK: %[[ZERO:.*]] = train.where %[[EMPTY]], %{{.*}}, %[[P]]
// CHECK: train.matmul %[[ZERO]], %{{.*}}
func.func @masked(%q: tensor<1x2x3x8xf32>, %m: tensor<3x3xf32>) -> tensor<1x2x3x8xf32> {
  %y, %l = train.attention %q, %q, %q, %m scale 5.0e-01 causal : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<3x3xf32>) -> (tensor<1x2x3x8xf32>, tensor<1x2x3xf32>)
  return %y : tensor<1x2x3x8xf32>
}
