// What loops carry stays in the memory that it started with.
// RUN: zero-opt %s --kernel-tie-loops | FileCheck %s
// RUN: zero-opt %s --kernel-pass-destinations --kernel-tie-loops --empty-tensor-to-alloc-tensor \
// RUN:   --one-shot-bufferize --canonicalize | FileCheck %s --check-prefix=BUFFER

// A computed value is stored at the end of the step; one that has been written to
// already is not.
// CHECK-LABEL: func private @computed(
// CHECK: iter_args(%[[V:.*]] = %{{.*}}, %[[ALL:.*]] = %{{.*}})
// CHECK: %[[N:.*]] = linalg.exp
// CHECK: %[[ROW:.*]] = tensor.insert_slice %[[N]] into %[[ALL]]
// CHECK-NEXT: %[[S:.*]] = bufferization.materialize_in_destination %[[N]] in %[[V]]
// CHECK-NEXT: scf.yield %[[S]], %[[ROW]]
// BUFFER-LABEL: func private @computed(
// BUFFER: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} {
func.func private @computed(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<3x4xf32>) attributes {plan.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<3x4xf32>
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %a, %all = %e) -> (tensor<4xf32>, tensor<3x4xf32>) {
    %o = tensor.empty() : tensor<4xf32>
    %n = linalg.exp ins(%v : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
    %row = tensor.insert_slice %n into %all[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<3x4xf32>
    scf.yield %n, %row : tensor<4xf32>, tensor<3x4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<3x4xf32>
}

// Two that change places: both are copied before either is stored.
// CHECK-LABEL: func private @swap(
// CHECK: iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}})
// CHECK: %[[CB:.*]] = bufferization.alloc_tensor() copy(%[[B]])
// CHECK: %[[CA:.*]] = bufferization.alloc_tensor() copy(%[[A]])
// CHECK: bufferization.materialize_in_destination %[[CB]] in %[[A]]
// CHECK: bufferization.materialize_in_destination %[[CA]] in %[[B]]
// BUFFER-LABEL: func private @swap(
// BUFFER: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} {
func.func private @swap(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {plan.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %a, %w = %b) -> (tensor<4xf32>, tensor<4xf32>) {
    scf.yield %w, %v : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}
