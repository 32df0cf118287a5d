// Loops over rows: a warp or a block for each row. What is kept of a row is in
// registers, sums go by shuffles.
// RUN: zero-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(kernel-map-to-gpu,canonicalize,cse))' | FileCheck %s

// The temporary is in registers: a thread has one piece of four elements, which
// is loaded once, though two operations read it.
// CHECK-LABEL: func.func @centered
// CHECK-SAME: (%[[X:.*]]: memref<64x128xf32>, %[[Y:.*]]: memref<64x128xf32>) attributes
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c16, {{.*}}) threads({{.*}}) in ({{.*}} = %c128,
// CHECK: scf.if
// CHECK: scf.for
// CHECK-COUNT-1: vector.load
// CHECK-COUNT-4: math.exp
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-COUNT-4: arith.subf
// CHECK: vector.store
// CHECK: } else {
// CHECK-NOT: gpu.barrier
func.func @centered(%x: memref<64x128xf32>, %y: memref<64x128xf32>) attributes {plan.kernel} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %powers = memref.alloca() : memref<128xf32>
  %sum = memref.alloca() : memref<f32>
  scf.for %i = %c0 to %c64 step %c1 {
    %row = memref.subview %x[%i, 0] [1, 128] [1, 1] : memref<64x128xf32> to memref<128xf32, strided<[1], offset: ?>>
    %out = memref.subview %y[%i, 0] [1, 128] [1, 1] : memref<64x128xf32> to memref<128xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%row : memref<128xf32, strided<[1], offset: ?>>) outs(%powers : memref<128xf32>) {
    ^bb0(%in: f32, %o: f32):
      %0 = math.exp %in : f32
      linalg.yield %0 : f32
    }
    memref.store %zero, %sum[] : memref<f32>
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
      ins(%powers : memref<128xf32>) outs(%sum : memref<f32>) {
    ^bb0(%in: f32, %o: f32):
      %0 = arith.addf %o, %in : f32
      linalg.yield %0 : f32
    }
    %s = memref.load %sum[] : memref<f32>
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%powers : memref<128xf32>) outs(%out : memref<128xf32, strided<[1], offset: ?>>) {
    ^bb0(%in: f32, %o: f32):
      %0 = arith.subf %in, %s : f32
      linalg.yield %0 : f32
    }
  }
  return
}

// -----

// What rows add up by column each team leaves in scratch memory; a second
// launch adds it up. The fill takes none.
// CHECK-LABEL: func.func @over_rows
// CHECK-SAME: {plan.scratch})
// CHECK: gpu.launch
// CHECK: scf.for {{.*}} iter_args
// CHECK: gpu.launch
// CHECK-NOT: gpu.launch
func.func @over_rows(%x: memref<64x30xf32>, %y: memref<30xf32>) attributes {plan.kernel} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  linalg.generic {indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
    ins(%zero : f32) outs(%y : memref<30xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  scf.for %i = %c0 to %c64 step %c1 {
    %row = memref.subview %x[%i, 0] [1, 30] [1, 1] : memref<64x30xf32> to memref<30xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%row : memref<30xf32, strided<[1], offset: ?>>) outs(%y : memref<30xf32>) {
    ^bb0(%in: f32, %o: f32):
      %0 = arith.addf %o, %in : f32
      linalg.yield %0 : f32
    }
  }
  return
}

// -----

// A scalar that the loop carries: the second launch also does what follows.
// CHECK-LABEL: func.func @carried
// CHECK-SAME: {plan.scratch})
// CHECK: gpu.launch
// CHECK: scf.for {{.*}} iter_args
// CHECK: gpu.launch
// CHECK: arith.divf
// CHECK-NOT: gpu.launch
func.func @carried(%x: memref<64x30xf32>, %y: memref<64x30xf32>, %z: memref<f64>) attributes {plan.kernel} {
  %none = arith.constant 0.0 : f64
  %two = arith.constant 2.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %all = scf.for %i = %c0 to %c64 step %c1 iter_args(%carried = %none) -> (f64) {
    %row = memref.subview %x[%i, 0] [1, 30] [1, 1] : memref<64x30xf32> to memref<30xf32, strided<[1], offset: ?>>
    %out = memref.subview %y[%i, 0] [1, 30] [1, 1] : memref<64x30xf32> to memref<30xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%row : memref<30xf32, strided<[1], offset: ?>>) outs(%out : memref<30xf32, strided<[1], offset: ?>>) {
    ^bb0(%in: f32, %o: f32):
      %0 = math.exp %in : f32
      linalg.yield %0 : f32
    }
    %first = memref.load %x[%i, %c0] : memref<64x30xf32>
    %wide = arith.extf %first : f32 to f64
    %next = arith.addf %carried, %wide : f64
    scf.yield %next : f64
  }
  %half = arith.divf %all, %two : f64
  memref.store %half, %z[] : memref<f64>
  return
}

// -----

// An element that another thread of the row has written is read after a
// barrier, and written by one thread after another one.
// CHECK-LABEL: func.func @one_element
// CHECK: nvvm.bar.warp.sync
// CHECK: memref.load
// CHECK: nvvm.bar.warp.sync
// CHECK: scf.if
// CHECK: memref.store
func.func @one_element(%x: memref<64x30xf32>, %at: memref<64xi64>, %y: memref<64x30xf32>) attributes {plan.kernel} {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %row = memref.subview %x[%i, 0] [1, 30] [1, 1] : memref<64x30xf32> to memref<30xf32, strided<[1], offset: ?>>
    %out = memref.subview %y[%i, 0] [1, 30] [1, 1] : memref<64x30xf32> to memref<30xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%row : memref<30xf32, strided<[1], offset: ?>>) outs(%out : memref<30xf32, strided<[1], offset: ?>>) {
    ^bb0(%in: f32, %o: f32):
      %0 = math.exp %in : f32
      linalg.yield %0 : f32
    }
    %label = memref.load %at[%i] : memref<64xi64>
    %index = arith.index_cast %label : i64 to index
    %own = memref.load %out[%index] : memref<30xf32, strided<[1], offset: ?>>
    %less = arith.subf %own, %one : f32
    memref.store %less, %out[%index] : memref<30xf32, strided<[1], offset: ?>>
  }
  return
}

// -----

// A loop without operations on rows: a thread for each step.
// CHECK-LABEL: func.func @steps
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c2, {{.*}}) threads({{.*}}) in ({{.*}} = %c256,
// CHECK: scf.for {{.*}} to %c512 step %c512
// CHECK: scf.for {{.*}} to %c4 step %c1
func.func @steps(%x: memref<16x128xf32>, %y: memref<16x32xf32>) attributes {plan.kernel} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %c0 to %c16 step %c1 {
    scf.for %j = %c0 to %c32 step %c1 {
      %sum = scf.for %k = %c0 to %c4 step %c1 iter_args(%carried = %zero) -> (f32) {
        %first = arith.muli %j, %c4 : index
        %at = arith.addi %first, %k : index
        %v = memref.load %x[%i, %at] : memref<16x128xf32>
        %next = arith.addf %carried, %v : f32
        scf.yield %next : f32
      }
      memref.store %sum, %y[%i, %j] : memref<16x32xf32>
    }
  }
  return
}

// -----

// A thread for each row, which writes elements of its own in a loop.
// CHECK-LABEL: func.func @running
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c1{{.*}}) threads({{.*}}) in ({{.*}} = %c64,
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args
// CHECK: memref.store
// CHECK-NOT: gpu.launch
func.func @running(%x: memref<64x30xf32>, %y: memref<64x30xf32>) attributes {plan.kernel} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c30 = arith.constant 30 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %0 = scf.for %k = %c0 to %c30 step %c1 iter_args(%sum = %zero) -> (f32) {
      %a = memref.load %x[%i, %k] : memref<64x30xf32>
      %next = arith.addf %sum, %a : f32
      memref.store %next, %y[%i, %k] : memref<64x30xf32>
      scf.yield %next : f32
    }
  }
  return
}

// -----

// Steps that depend on each other run in one thread, in their order; what the
// loop carries to its end goes to scratch memory.
// CHECK-LABEL: func.func @prefix
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c1{{.*}}) threads({{.*}}) in ({{.*}} = %c32,
// CHECK: arith.cmpi eq
// CHECK-NEXT: scf.if
// CHECK-NEXT: %[[R:.*]] = scf.for {{.*}} iter_args
// CHECK: memref.store %[[R]]
func.func @prefix(%x: memref<64xf32>, %y: memref<64xf32>) attributes {plan.kernel} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %half = arith.constant 0.5 : f32
  %0 = scf.for %i = %c0 to %c64 step %c1 iter_args(%state = %zero) -> (f32) {
    %a = memref.load %x[%i] : memref<64xf32>
    %slow = arith.mulf %state, %half : f32
    %next = arith.addf %slow, %a : f32
    memref.store %next, %y[%i] : memref<64xf32>
    scf.yield %next : f32
  }
  memref.store %0, %x[%c0] : memref<64xf32>
  return
}
