// Loops as the operations of their steps.
// RUN: zero-opt %s --train-unroll-scans | FileCheck %s
// RUN: zero-opt %s --train-unroll-scans=keep-kernels | FileCheck %s --check-prefix=KEEP

// Backwards: the last entry first; what is stacked lies in the order of the axis.
// CHECK-LABEL: func @two(
// CHECK-SAME: %[[H:.*]]: tensor<4xf32>, %[[XS:.*]]: tensor<2x4xf32>
// CHECK: %[[S1:.*]] = train.slice %[[XS]] starts [1, 0] limits [2, 4]
// CHECK: %[[X1:.*]] = train.reshape %[[S1]]
// CHECK: %[[A:.*]] = train.add %[[H]], %[[X1]]
// CHECK: %[[S0:.*]] = train.slice %[[XS]] starts [0, 0] limits [1, 4]
// CHECK: %[[X0:.*]] = train.reshape %[[S0]]
// CHECK: %[[B:.*]] = train.add %[[A]], %[[X0]]
// CHECK: %[[R0:.*]] = train.reshape %[[B]] : tensor<4xf32> to tensor<1x4xf32>
// CHECK: %[[R1:.*]] = train.reshape %[[A]] : tensor<4xf32> to tensor<1x4xf32>
// CHECK: %[[ALL:.*]] = train.concat %[[R0]], %[[R1]] axis 0
// CHECK: return %[[B]], %[[ALL]]
// KEEP-LABEL: func @two(
// KEEP: train.scan
func.func @two(%h0: tensor<4xf32>, %xs: tensor<2x4xf32>) -> (tensor<4xf32>, tensor<2x4xf32>) {
  %last, %all = train.scan init(%h0) over(%xs) steps 2 reverse
      : (tensor<4xf32>, tensor<2x4xf32>) -> (tensor<4xf32>, tensor<2x4xf32>) {
  ^bb0(%h: tensor<4xf32>, %x: tensor<4xf32>):
    %s = train.add %h, %x : tensor<4xf32>
    train.yield %s, %s : tensor<4xf32>, tensor<4xf32>
  }
  return %last, %all : tensor<4xf32>, tensor<2x4xf32>
}

// Attention is a call of a library, which no kernel makes.
// KEEP-LABEL: func @attention(
// KEEP-NOT: train.scan
// KEEP-COUNT-2: train.attention
func.func @attention(%q: tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32> {
  %last = train.scan init(%q) steps 2 : (tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32> {
  ^bb0(%v: tensor<1x1x4x8xf32>):
    %o, %lse = train.attention %v, %v, %v scale 1.0
        : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>)
        -> (tensor<1x1x4x8xf32>, tensor<1x1x4xf32>)
    train.yield %o : tensor<1x1x4x8xf32>
  }
  return %last : tensor<1x1x4x8xf32>
}
