// Loops in their textual form, and what of them can be left out.
// RUN: zero-opt %s | zero-opt | FileCheck %s
// RUN: zero-opt %s --mlir-print-op-generic | zero-opt | FileCheck %s
// RUN: zero-opt %s --canonicalize | FileCheck %s --check-prefix=CANON

// All kinds of operands; the first results are the last carried values.
// CHECK-LABEL: func @all(
func.func @all(%h0: tensor<4x8xf32>, %xs: tensor<16x4x8xf32>, %w: tensor<8x8xf32>)
    -> (tensor<4x8xf32>, tensor<16x4x8xf32>) {
  // CHECK: %{{.*}}:2 = train.scan init(%{{.*}}) over(%{{.*}}) with(%{{.*}}) steps 16 : (tensor<4x8xf32>, tensor<16x4x8xf32>, tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<16x4x8xf32>) {
  // CHECK-NEXT: ^bb0(%[[H:.*]]: tensor<4x8xf32>, %[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8x8xf32>):
  // CHECK: train.yield %{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<4x8xf32>
  %last, %all = train.scan init(%h0) over(%xs) with(%w) steps 16
      : (tensor<4x8xf32>, tensor<16x4x8xf32>, tensor<8x8xf32>)
      -> (tensor<4x8xf32>, tensor<16x4x8xf32>) {
  ^bb0(%h: tensor<4x8xf32>, %x: tensor<4x8xf32>, %u: tensor<8x8xf32>):
    %p = train.matmul %h, %u : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %s = train.add %x, %p : tensor<4x8xf32>
    %next = train.tanh %s : tensor<4x8xf32>
    train.yield %next, %next : tensor<4x8xf32>, tensor<4x8xf32>
  }
  return %last, %all : tensor<4x8xf32>, tensor<16x4x8xf32>
}

// Backwards, and without operands of some kinds.
// CHECK-LABEL: func @some(
func.func @some(%xs: tensor<3xf32>, %c: tensor<f32>) -> (tensor<3xf32>, tensor<f32>) {
  // CHECK: train.scan over(%{{.*}}) steps 3 reverse : (tensor<3xf32>) -> tensor<3xf32> {
  %all = train.scan over(%xs) steps 3 reverse : (tensor<3xf32>) -> tensor<3xf32> {
  ^bb0(%x: tensor<f32>):
    %e = train.exp %x : tensor<f32>
    train.yield %e : tensor<f32>
  }
  // CHECK: train.scan init(%{{.*}}) steps 5 : (tensor<f32>) -> tensor<f32> {
  %last = train.scan init(%c) steps 5 : (tensor<f32>) -> tensor<f32> {
  ^bb0(%v: tensor<f32>):
    %s = train.sin %v : tensor<f32>
    train.yield %s : tensor<f32>
  }
  return %all, %last : tensor<3xf32>, tensor<f32>
}

// A carried value that only it needs, what is stacked for nobody, and operands
// that no operation uses go.
// CANON-LABEL: func @unused(
// CANON-SAME: %[[A:.*]]: tensor<f32>, %{{.*}}: tensor<f32>, %[[XS:.*]]: tensor<3xf32>, %{{.*}}: tensor<f32>
// CANON: %[[R:.*]] = train.scan init(%[[A]]) over(%[[XS]]) steps 3 : (tensor<f32>, tensor<3xf32>) -> tensor<f32> {
// CANON-NEXT: ^bb0(%[[U:.*]]: tensor<f32>, %[[X:.*]]: tensor<f32>):
// CANON-NEXT: %[[S:.*]] = train.add %[[U]], %[[X]]
// CANON-NEXT: train.yield %[[S]] : tensor<f32>
// CANON-NEXT: }
// CANON-NEXT: return %[[R]]
func.func @unused(%a: tensor<f32>, %b: tensor<f32>, %xs: tensor<3xf32>, %w: tensor<f32>)
    -> tensor<f32> {
  %r:3 = train.scan init(%a, %b) over(%xs) with(%w) steps 3
      : (tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<f32>)
      -> (tensor<f32>, tensor<f32>, tensor<3xf32>) {
  ^bb0(%u: tensor<f32>, %v: tensor<f32>, %x: tensor<f32>, %c: tensor<f32>):
    %s = train.add %u, %x : tensor<f32>
    %n = train.mul %v, %c : tensor<f32>
    %e = train.exp %v : tensor<f32>
    train.yield %s, %n, %e : tensor<f32>, tensor<f32>, tensor<f32>
  }
  return %r#0 : tensor<f32>
}
