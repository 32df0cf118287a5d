// A loop over steps is a loop of its kernel, with products and all.
// RUN: zero-opt %s --train-to-linalg | FileCheck %s

// Backwards: the step's entry is read from, and what it gives written to, the end
// first.
// CHECK-LABEL: func private @reverse(
// CHECK-SAME: %[[H0:.*]]: tensor<2x3xf32>, %[[XS:.*]]: tensor<5x2x3xf32>, %[[W:.*]]: tensor<3x3xf32>
// CHECK: %[[E:.*]] = tensor.empty() : tensor<5x2x3xf32>
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[H:.*]] = %[[H0]], %[[ALL:.*]] = %[[E]])
// CHECK: %[[LAST:.*]] = arith.constant 4 : index
// CHECK: %[[T:.*]] = arith.subi %[[LAST]], %[[I]]
// CHECK: %[[X:.*]] = tensor.extract_slice %[[XS]][%[[T]], 0, 0] [1, 2, 3] [1, 1, 1]
// CHECK: linalg.generic {{.*}} ins(%[[H]], %[[W]]
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[X]],
// CHECK: %[[NEXT:.*]] = tensor.insert_slice %[[S]] into %[[ALL]][%[[T]], 0, 0]
// CHECK: scf.yield %[[S]], %[[NEXT]]
func.func private @reverse(%h0: tensor<2x3xf32>, %xs: tensor<5x2x3xf32>, %w: tensor<3x3xf32>)
    -> (tensor<2x3xf32>, tensor<5x2x3xf32>) attributes {plan.kernel} {
  %last, %all = train.scan init(%h0) over(%xs) with(%w) steps 5 reverse
      : (tensor<2x3xf32>, tensor<5x2x3xf32>, tensor<3x3xf32>) -> (tensor<2x3xf32>, tensor<5x2x3xf32>) {
  ^bb0(%h: tensor<2x3xf32>, %x: tensor<2x3xf32>, %u: tensor<3x3xf32>):
    %p = train.matmul %h, %u : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %s = train.add %x, %p : tensor<2x3xf32>
    train.yield %s, %s : tensor<2x3xf32>, tensor<2x3xf32>
  }
  return %last, %all : tensor<2x3xf32>, tensor<5x2x3xf32>
}

// What is the same in all steps is transposed once.
// CHECK-LABEL: func private @transposed(
// CHECK-SAME: %{{.*}}: tensor<2x3xf32>, %[[W:.*]]: tensor<3x3xf32>
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%[[W]] :
// CHECK: scf.for {{.*}} iter_args(%[[H:.*]] =
// CHECK: linalg.generic {{.*}} ins(%[[H]], %[[T]] :
func.func private @transposed(%h0: tensor<2x3xf32>, %w: tensor<3x3xf32>)
    -> tensor<2x3xf32> attributes {plan.kernel} {
  %last = train.scan init(%h0) with(%w) steps 5
      : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32> {
  ^bb0(%h: tensor<2x3xf32>, %u: tensor<3x3xf32>):
    %p = train.matmul %h, %u {transpose_b} : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    train.yield %p : tensor<2x3xf32>
  }
  return %last : tensor<2x3xf32>
}
