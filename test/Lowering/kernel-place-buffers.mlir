// RUN: zero-opt --kernel-place-buffers --split-input-file --verify-diagnostics %s | FileCheck %s

// Temporaries of a loop are one buffer of the stack frame; contiguous
// dimensions are one loop; a copy is no call.
// CHECK-LABEL: func.func @k
// CHECK-NEXT: %[[T:.*]] = memref.alloca() {alignment = 64 : i64} : memref<2x8xf32>
// CHECK: scf.for
// CHECK-NOT: memref.alloc()
// CHECK: memref.collapse_shape %[[T]] {{.*}} into memref<16xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]}
// CHECK-NOT: memref.copy
func.func @k(%x: memref<4x2x8xf32>) attributes {plan.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %t = memref.alloc() : memref<2x8xf32>
    %row = memref.subview %x[%i, 0, 0] [1, 2, 8] [1, 1, 1]
        : memref<4x2x8xf32> to memref<2x8xf32, strided<[8, 1], offset: ?>>
    linalg.generic {
        indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>,
                         affine_map<(d0, d1) -> (d0, d1)>],
        iterator_types = ["parallel", "parallel"]}
        ins(%row : memref<2x8xf32, strided<[8, 1], offset: ?>>)
        outs(%t : memref<2x8xf32>) {
      ^bb0(%a: f32, %b: f32):
        %e = math.exp %a : f32
        linalg.yield %e : f32
    }
    memref.copy %t, %row
        : memref<2x8xf32> to memref<2x8xf32, strided<[8, 1], offset: ?>>
    memref.dealloc %t : memref<2x8xf32>
  }
  return
}

// -----

// Temporaries that a kernel begins with.
// CHECK-LABEL: func.func @begins
// CHECK-NEXT: memref.alloca() {alignment = 64 : i64} : memref<4xf32>
// CHECK-NEXT: memref.alloca() {alignment = 64 : i64} : memref<8xf32>
// CHECK-NOT: memref.alloc()
func.func @begins(%x: memref<4xf32>, %y: memref<8xf32>) attributes {plan.kernel} {
  %t = memref.alloc() : memref<4xf32>
  %u = memref.alloc() : memref<8xf32>
  memref.copy %t, %x : memref<4xf32> to memref<4xf32>
  memref.copy %u, %y : memref<8xf32> to memref<8xf32>
  return
}

// -----

// What the stack has no room for lies in the memory for temporaries.
// CHECK-LABEL: func.func @scratch(
// CHECK-SAME: %[[SCRATCH:.*]]: memref<4194432xi8>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<8xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: memref.view %[[SCRATCH]][%[[ZERO]]][] : memref<4194432xi8> to memref<1024x1024xf32>
func.func @scratch(%s: memref<4194432xi8>) attributes {plan.kernel, plan.scratch_result} {
  %t = memref.alloc() : memref<8xf32>
  %u = memref.alloc() : memref<1024x1024xf32>
  return
}

// -----

// expected-error@+1 {{needs a temporary of type 'memref<1024x1024xf32>', which does not fit into the 1048576 bytes of a kernel's stack frame}}
func.func @large() attributes {plan.kernel} {
  %t = memref.alloc() : memref<1024x1024xf32>
  return
}

// -----

// expected-error@+1 {{needs a temporary of dynamic size 'memref<?xf32>'}}
func.func @dynamic(%n: index) attributes {plan.kernel} {
  %t = memref.alloc(%n) : memref<?xf32>
  return
}
