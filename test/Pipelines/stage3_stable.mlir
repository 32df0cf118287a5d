// Passes of MLIR that know nothing of ZeRO leave the scheduled step as it is: the
// same gathers, reductions and releases, each at the same place.
// RUN: zero-opt %s --zero-stage=3 --zero-ranks=4 --zero-schedule=none --cse --canonicalize --loop-invariant-code-motion | FileCheck %s
// RUN: zero-opt %s --zero-stage=3 --zero-ranks=4 --zero-schedule=none --cse --canonicalize --loop-invariant-code-motion | grep -o "zero\.[a-z_]*" > %t.after
// RUN: zero-opt %s --zero-stage=3 --zero-ranks=4 --zero-schedule=none | grep -o "zero\.[a-z_]*" > %t.before
// RUN: diff %t.before %t.after

// The same starts and waits, in the same places among compute.
// RUN: zero-opt %s --zero-stage=3 --zero-ranks=4 --zero-schedule=prefetch -o %t.started
// RUN: FileCheck %s --check-prefix=START < %t.started
// RUN: zero-opt %t.started --cse --canonicalize --loop-invariant-code-motion | grep -o "[a-z]*\.[a-z_]* " > %t.started.after
// RUN: grep -o "[a-z]*\.[a-z_]* " %t.started > %t.started.before
// RUN: diff %t.started.before %t.started.after
// START: zero.all_gather_start
// START: zero.wait
// START: zero.reduce_scatter_start
// START: zero.wait

zero.param @e.weight : tensor<4x4xf32>
zero.param @l.0.weight : tensor<4x4xf32>
zero.param @l.1.weight : tensor<4x4xf32>

// CHECK-LABEL: func.func @step
// CHECK: zero.all_gather
// CHECK-NEXT: train.matmul
// CHECK-NEXT: zero.release
// CHECK: zero.all_gather
// CHECK-NEXT: train.matmul
// CHECK-NEXT: zero.release
// CHECK: zero.all_gather
// CHECK-NEXT: train.matmul
// CHECK-NEXT: train.matmul
// CHECK-NEXT: zero.reduce_scatter
// CHECK-NEXT: train.matmul
// CHECK-NEXT: zero.release
// CHECK-NEXT: train.matmul
// CHECK-NEXT: zero.reduce_scatter
// CHECK-NEXT: zero.all_gather
// CHECK-NEXT: train.matmul
// CHECK-NEXT: zero.release
// CHECK-NEXT: train.matmul
// CHECK-NEXT: zero.reduce_scatter
// CHECK-NOT: zero.all_gather
func.func @step(%x: tensor<4x4xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"})
    -> (tensor<4x4xf32> {zero.output = "y", zero.across = "mean"}) {
  %e = zero.read @e.weight : tensor<4x4xf32>
  %i = train.matmul %x, %e : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %w0 = zero.read @l.0.weight : tensor<4x4xf32>
  %h = train.matmul %i, %w0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %w1 = zero.read @l.1.weight : tensor<4x4xf32>
  %y = train.matmul %h, %w1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %dw1 = train.matmul %h, %y {transpose_a} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %dh = train.matmul %y, %w1 {transpose_b} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %dw0 = train.matmul %i, %dh {transpose_a} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %di = train.matmul %dh, %w0 {transpose_b} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %de = train.matmul %x, %di {transpose_a} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %ne = train.sgd %e, %de, %lr : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  zero.assign @e.weight, %ne : tensor<4x4xf32>
  %n0 = train.sgd %w0, %dw0, %lr : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  zero.assign @l.0.weight, %n0 : tensor<4x4xf32>
  %n1 = train.sgd %w1, %dw1, %lr : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  zero.assign @l.1.weight, %n1 : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
