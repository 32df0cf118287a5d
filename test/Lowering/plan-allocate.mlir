// Buffers that never live together share bytes; what outlives the step does not.
// RUN: zero-opt %s --plan-allocate 2>/dev/null | FileCheck %s
// RUN: zero-opt %s --plan-allocate 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: not zero-opt %s --pass-pipeline='builtin.module(plan.program(plan-allocate{alignment=48}))' 2>&1 | FileCheck %s --check-prefix=ALIGN

func.func private @k(%a: tensor<16xf32>) -> tensor<16xf32> attributes {plan.kernel}

// ALIGN: plan-allocate: alignment 48 is not a power of two
// REMARK: arena of 192 bytes for 6 buffers; lower bound 192 bytes, gap 0.0 %

// %b lives over commands 0 and 1, %c over 1 and 2, %d over 2 only: %d takes
// %b's place. %w is gathered for two commands; the window says how much.
// CHECK: plan.program @step ranks(1) window(64)
plan.program @step ranks(1) {
  // CHECK: plan.arena device bytes(192)
  %dev = plan.arena device
  // CHECK: %[[P:.*]] = plan.buffer %{{.*}}[[[PAT:.*]]] parameter
  %p = plan.buffer %dev parameter : memref<16xf32>
  // CHECK: plan.buffer %{{.*}}[[[B:.*]]] activation
  %b = plan.buffer %dev activation : memref<16xf32>
  // CHECK-NOT: plan.buffer %{{.*}}[[[B]]]
  // CHECK: plan.buffer %{{.*}}[[[C:.*]]] activation
  %c = plan.buffer %dev activation : memref<16xf32>
  // CHECK: plan.buffer %{{.*}}[[[B]]] activation
  %d = plan.buffer %dev activation : memref<16xf32>
  %w = plan.buffer %dev gathered : memref<16xf32>
  %scalar = plan.buffer %dev activation : memref<f32>
  plan.parameter "p" %p trained : memref<16xf32>
  plan.launch @k(%p, %b) writes [1] : memref<16xf32>, memref<16xf32>
  plan.launch @k(%b, %c) writes [1] : memref<16xf32>, memref<16xf32>
  plan.launch @k(%c, %d) writes [1] : memref<16xf32>, memref<16xf32>
  plan.all_gather %p -> %w elements [16] chunks [16] : memref<16xf32> -> memref<16xf32>
  plan.release %w : memref<16xf32>
  plan.fill %scalar : memref<f32>
}
