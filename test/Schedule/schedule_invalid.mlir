// What the scheduling passes refuse.
// RUN: not zero-opt %s --zero-schedule=memory=0 2>&1 | FileCheck %s --check-prefix=MEMORY
// RUN: not zero-opt %s --zero-schedule=memory=-5 2>&1 | FileCheck %s --check-prefix=MINUS
// RUN: not zero-opt %s --zero-schedule=bucket-bytes=-1 2>&1 | FileCheck %s --check-prefix=BUCKET
// RUN: not zero-opt %s --zero-prefetch=machine=h1000 2>&1 | FileCheck %s --check-prefix=MACHINE
// RUN: not zero-opt %s --zero-reorder=machine=none.json 2>&1 | FileCheck %s --check-prefix=FILE
// RUN: zero-opt %s --zero-schedule | FileCheck %s
// MEMORY: error: expects a memory budget of at least 1 byte, got 0
// MINUS: error: expects a memory budget of at least 1 byte, got -5
// BUCKET: error: expects a bucket size of at least 0, got -1
// MACHINE: error: {{.*}}h1000
// FILE: error: {{.*}}none.json
// A function that moves nothing is left alone.
// CHECK: module {
// CHECK-NEXT: func.func @plain
func.func @plain(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = arith.negf %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
