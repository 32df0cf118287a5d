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
