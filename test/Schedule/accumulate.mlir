// Both functions of a step of several micro-batches are scheduled: the peak is
// the greater of the two, the seconds are those of all micro-batches.
// RUN: zero-opt %S/../Autodiff/accumulate.mlir --train-accumulate=steps=4 --zero-pipeline='stage=0 ranks=8 machine=h100' | FileCheck %s --check-prefixes=CHECK,S0
// RUN: zero-opt %S/../Autodiff/accumulate.mlir --train-accumulate=steps=4 --zero-pipeline='stage=2 ranks=8 machine=h100' | FileCheck %s --check-prefixes=CHECK,S2
// RUN: zero-opt %S/../Autodiff/accumulate.mlir --train-accumulate=steps=4 --zero-pipeline='stage=0 ranks=8 machine=h100' | grep -o 'planned_seconds = [^ ]*' > %t.4
// RUN: zero-opt %S/../Autodiff/accumulate.mlir --train-accumulate=steps=40 --zero-pipeline='stage=0 ranks=8 machine=h100' | grep -o 'planned_seconds = [^ ]*' > %t.40
// RUN: not cmp %t.4 %t.40
// RUN: not zero-opt %S/../Autodiff/accumulate.mlir --train-accumulate=steps=4 --zero-pipeline='stage=0 ranks=8 memory=1500' 2>&1 | FileCheck %s --check-prefix=SMALL

// CHECK: module attributes {zero.micro_batches = 4 : i64, zero.planned_peak = {{[0-9]+}} : i64, zero.planned_seconds
// CHECK: func.func @accumulate
// S0-NOT: zero.all_reduce
// S2: zero.reduce_scatter_start
// S2: zero.wait
// S2: train.accumulate

// The sum is complete, reduced beside compute, used, and zero at the end.
// CHECK: func.func @step
// S0: %[[W:.*]] = train.accumulate %w.grad
// S0: %[[B:.*]] = train.accumulate %b.grad
// S0: %[[F:.*]] = zero.all_reduce_start %[[W]], %[[B]] average on @dp
// S0: %[[G:.*]]:2 = zero.wait %[[F]]
// S0: train.sgd %{{.*}}, %[[G]]#0
// S0: zero.assign @w.grad
// S2: zero.reduce_scatter_start
// S2: zero.wait
// S2: train.accumulate
// S2: train.sgd
// S2: zero.assign @w.grad

// SMALL: error: {{.*}}budget
