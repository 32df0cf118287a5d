// RUN: zero-opt --kernel-split %s | FileCheck %s

// Elements that are independent: a call computes any range of them. What is
// loaded once for all elements stays outside.
// CHECK-LABEL: func.func @update
// CHECK-SAME: (%[[X:.*]]: memref<64xf32>, %[[Y:.*]]: memref<64xf32>, %[[F:.*]]: memref<f32>, %[[BEGIN:.*]]: index, %[[END:.*]]: index)
// CHECK-SAME: plan.split = 64 : i64
// CHECK: %[[STEP:.*]] = arith.constant 1
// CHECK: memref.load %[[F]][]
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]] step %[[STEP]] {
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]] step %[[STEP]] {
func.func @update(%x: memref<64xf32>, %y: memref<64xf32>, %f: memref<f32>)
    attributes {plan.host, plan.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %0 = memref.load %f[] : memref<f32>
  scf.for %i = %c0 to %c64 step %c1 {
    %a = memref.load %x[%i] : memref<64xf32>
    %b = arith.mulf %a, %0 : f32
    memref.store %b, %x[%i] : memref<64xf32>
  }
  scf.for %i = %c0 to %c64 step %c1 {
    %a = memref.load %x[%i] : memref<64xf32>
    memref.store %a, %y[%i] : memref<64xf32>
  }
  return
}

// What is written before the loops is on the stack of each call.
// CHECK-LABEL: func.func @flag
// CHECK-SAME: plan.split = 8
func.func @flag(%x: memref<8xi8>, %f: memref<i8>)
    attributes {plan.host, plan.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %t = memref.alloca() : memref<i8>
  %0 = memref.load %f[] : memref<i8>
  memref.store %0, %t[] : memref<i8>
  scf.for %i = %c0 to %c8 step %c1 {
    %a = memref.load %t[] : memref<i8>
    memref.store %a, %x[%i] : memref<8xi8>
  }
  return
}

// A step that uses what another one writes.
// CHECK-LABEL: func.func @previous
// CHECK-SAME: (%{{.*}}: memref<64xf32>) attributes {plan.host, plan.kernel}
func.func @previous(%x: memref<64xf32>) attributes {plan.host, plan.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %a = memref.load %x[%c0] : memref<64xf32>
    memref.store %a, %x[%i] : memref<64xf32>
  }
  return
}

// All steps write the same element, through a view of it.
// CHECK-LABEL: func.func @sum
// CHECK-SAME: (%{{.*}}: memref<64xf32>, %{{.*}}: memref<1xf32>) attributes {plan.host, plan.kernel}
func.func @sum(%x: memref<64xf32>, %y: memref<1xf32>)
    attributes {plan.host, plan.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %s = memref.collapse_shape %y [] : memref<1xf32> into memref<f32>
  scf.for %i = %c0 to %c64 step %c1 {
    %a = memref.load %x[%i] : memref<64xf32>
    %b = memref.load %s[] : memref<f32>
    %c = arith.addf %a, %b : f32
    memref.store %c, %s[] : memref<f32>
  }
  return
}

// Loops of different lengths have no ranges in common.
// CHECK-LABEL: func.func @lengths
// CHECK-SAME: (%{{.*}}: memref<64xf32>, %{{.*}}: memref<8xf32>) attributes {plan.host, plan.kernel}
func.func @lengths(%x: memref<64xf32>, %y: memref<8xf32>)
    attributes {plan.host, plan.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c64 step %c1 {
    memref.store %zero, %x[%i] : memref<64xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %zero, %y[%i] : memref<8xf32>
  }
  return
}

// Rows are loops inside of loops.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: (%{{.*}}: memref<4x8xf32>) attributes {plan.host, plan.kernel}
func.func @rows(%x: memref<4x8xf32>) attributes {plan.host, plan.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      memref.store %zero, %x[%i, %j] : memref<4x8xf32>
    }
  }
  return
}

// Kernels of devices run as a whole.
// CHECK-LABEL: func.func @device
// CHECK-SAME: (%{{.*}}: memref<64xf32>) attributes {plan.kernel}
func.func @device(%x: memref<64xf32>) attributes {plan.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c64 step %c1 {
    memref.store %zero, %x[%i] : memref<64xf32>
  }
  return
}
