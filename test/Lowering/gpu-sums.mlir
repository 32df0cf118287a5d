// Sums: to a scalar, along the first and along the last dimensions. There are
// no atomics.
// RUN: zero-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(kernel-map-to-gpu,canonicalize,cse))' | FileCheck %s --implicit-check-not=atomic

// A small sum takes one block. What becomes of it is computed there.
// CHECK-LABEL: func.func @small
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c1, {{.*}} = %c1, {{.*}} = %c1)
// CHECK: gpu.shuffle xor
// CHECK: math.sqrt
// CHECK: memref.store
// CHECK-NOT: gpu.launch
func.func @small(%x: memref<1000xf32>, %y: memref<f32>) attributes {plan.kernel} {
  %zero = arith.constant 0.0 : f32
  %sum = memref.alloca() : memref<f32>
  memref.store %zero, %sum[] : memref<f32>
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
    ins(%x : memref<1000xf32>) outs(%sum : memref<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  %all = memref.load %sum[] : memref<f32>
  %root = math.sqrt %all : f32
  memref.store %root, %y[] : memref<f32>
  return
}

// -----

// A large one: each block leaves its part in scratch memory.
// CHECK-LABEL: func.func @large
// CHECK-SAME: memref<{{[0-9]+}}xi8> {plan.scratch})
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c528,
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c1, {{.*}} = %c1, {{.*}} = %c1)
// CHECK: scf.for {{.*}} to %c528
// CHECK-NOT: gpu.launch
func.func @large(%x: memref<1000000xf32>, %y: memref<f64>) attributes {plan.kernel} {
  %zero = arith.constant 0.0 : f64
  memref.store %zero, %y[] : memref<f64>
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
    ins(%x : memref<1000000xf32>) outs(%y : memref<f64>) {
  ^bb0(%in: f32, %out: f64):
    %0 = arith.extf %in : f32 to f64
    %1 = arith.addf %out, %0 : f64
    linalg.yield %1 : f64
  }
  return
}

// -----

// Columns: a thread has four of them; the fill and the conversion of the sums
// take no launch and no memory.
// CHECK-LABEL: func.func @columns
// CHECK-SAME: (%[[X:.*]]: memref<64x96xf32>, %[[Y:.*]]: memref<96xbf16>) attributes
// CHECK: gpu.launch
// CHECK: vector.load %[[X]]{{.*}} vector<4xf32>
// CHECK: gpu.barrier
// CHECK-COUNT-4: arith.truncf {{.*}} : f32 to bf16
// CHECK-NOT: gpu.launch
func.func @columns(%x: memref<64x96xf32>, %y: memref<96xbf16>) attributes {plan.kernel} {
  %zero = arith.constant 0.0 : f32
  %sum = memref.alloca() : memref<96xf32>
  linalg.generic {indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
    ins(%zero : f32) outs(%sum : memref<96xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]}
    ins(%x : memref<64x96xf32>) outs(%sum : memref<96xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
    ins(%sum : memref<96xf32>) outs(%y : memref<96xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  }
  return
}

// -----

// Rows: a warp for each.
// CHECK-LABEL: func.func @rows
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c16, {{.*}}) threads({{.*}}) in ({{.*}} = %c128,
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-NOT: gpu.barrier
// CHECK: memref.store
func.func @rows(%x: memref<64x96xf32>, %y: memref<64xf32>) attributes {plan.kernel} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
    ins(%x : memref<64x96xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// A copy of what an element was stored to comes after the store.
// CHECK-LABEL: func.func @one_element
// CHECK: gpu.launch
// CHECK: math.exp
// CHECK: gpu.launch
// CHECK: memref.store {{.*}}[%c3]
// CHECK: gpu.launch
// CHECK: vector.store
// CHECK-NOT: gpu.launch
func.func @one_element(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>) attributes {plan.kernel} {
  %one = arith.constant 1.0 : f32
  %c3 = arith.constant 3 : index
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
    ins(%x : memref<64xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.exp %in : f32
    linalg.yield %0 : f32
  }
  memref.store %one, %y[%c3] : memref<64xf32>
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
    ins(%y : memref<64xf32>) outs(%z : memref<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}
