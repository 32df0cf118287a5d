// Both functions of a step of several micro-batches in one program: they share
// state, inputs and kernels, sums are added to in place and filled with zeros.
// RUN: zero-opt %S/../Autodiff/accumulate.mlir --train-accumulate=steps=4 --zero-pipeline='stage=1 ranks=4 schedule=none' --plan-pipeline 2> /dev/null | FileCheck %s
// RUN: zero-opt %S/../Autodiff/accumulate.mlir --train-accumulate=steps=4 --zero-pipeline='stage=0 ranks=4 schedule=joint' --plan-pipeline 2> /dev/null | FileCheck %s --check-prefix=ASYNC
// RUN: zero-opt %s -split-input-file -verify-diagnostics --plan-lower

// CHECK-NOT: zero.micro_batches
// CHECK: plan.program @step ranks(4) {{.*}} micro_batches(4)
// CHECK: %[[G:.*]] = plan.buffer {{.*}} gradient : memref<10x4xf32>
// CHECK-NEXT: plan.parameter "w.grad" %[[G]] accumulator of("w") : memref<10x4xf32>
// CHECK: %[[L:.*]] = plan.buffer {{.*}} persistent : memref<f32>
// CHECK-NEXT: plan.parameter "loss_sum" %[[L]] accumulator : memref<f32>
// CHECK: plan.input "x" %[[X:.*]] data
// CHECK-NOT: plan.input "x"
// CHECK: plan.input "lr"
// CHECK-NOT: plan.constant
// CHECK: plan.call @matmul(%[[X]]
// CHECK: plan.launch @accumulate_scalar(%[[L]], %{{.*}}) writes [0]
// CHECK: plan.launch @accumulate_10x4(%[[G]], %{{.*}}) writes [0] : memref<10x4xf32>, memref<10x4xf32>
// CHECK-NOT: plan.reduce_scatter
// CHECK: plan.micro_batch_end
// CHECK: plan.call @matmul(%[[X]]
// CHECK: plan.launch @accumulate_10x4(%[[G]], %{{.*}}) writes [0]
// CHECK: plan.reduce_scatter %[[G]] -> %{{.*}} average elements [40] chunks [12] label("w")
// CHECK: plan.fill %[[G]] : memref<10x4xf32>
// CHECK: plan.fill %[[L]] : memref<f32>

// The sum is reduced where it is, and waited for before it becomes zero.
// ASYNC: plan.parameter "w.grad" %[[G:[a-z0-9]*]] accumulator
// ASYNC: plan.micro_batch_end
// ASYNC: plan.all_reduce %[[G]]{{.*}} -> %[[G]]
// ASYNC: plan.launch @sgd_10x4(%{{.*}}, %[[G]],
// ASYNC: plan.fill %[[G]]

module attributes {zero.micro_batches = 2 : i64} {
  func.func @accumulate(%x: tensor<4xf32> {zero.input = "x"}) {
    return
  }
  // expected-error @below {{has the input "x" of type 'tensor<8xf32>', which is 'memref<4xf32>' in @accumulate}}
  func.func @step(%x: tensor<8xf32> {zero.input = "x"}) {
    return
  }
}
