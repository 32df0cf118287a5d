// Elementwise kernels: a thread has 16 bytes of each operand at a time where
// all buffers are aligned, and the rest of the elements one by one.
// RUN: zero-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(kernel-map-to-gpu,canonicalize,cse))' | FileCheck %s

// CHECK-LABEL: func.func @map
// CHECK-SAME: (%[[X:.*]]: memref<1003xf32>, %[[Y:.*]]: memref<1003xf32>)
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c1, {{.*}} = %c1, {{.*}} = %c1) threads({{.*}}) in ({{.*}} = %c256, {{.*}} = %c1, {{.*}} = %c1)
// CHECK: memref.extract_aligned_pointer_as_index %[[X]]
// CHECK: memref.extract_aligned_pointer_as_index %[[Y]]
// CHECK: scf.if
// CHECK: scf.for {{.*}} to %c250 step %c256
// CHECK: vector.load %[[X]][{{.*}}] {alignment = 16 : i64} : memref<1003xf32>, vector<4xf32>
// CHECK-COUNT-4: math.exp
// CHECK: vector.store {{.*}}, %[[Y]][{{.*}}] {alignment = 16 : i64} : memref<1003xf32>, vector<4xf32>
// CHECK: } else {
// CHECK: scf.for {{.*}} to %c250 step %c256
// CHECK-COUNT-4: memref.store {{.*}}, %[[Y]]
// The last three elements.
// CHECK: arith.cmpi ult, {{.*}}, %c3
// CHECK: scf.if
// CHECK: memref.store {{.*}}, %[[Y]]
// CHECK: gpu.terminator
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @map(%x: memref<1003xf32>, %y: memref<1003xf32>) attributes {plan.kernel} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
    ins(%x : memref<1003xf32>) outs(%y : memref<1003xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.exp %in : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Elements of a narrow type come eight at a time, of a wide one in two parts.
// CHECK-LABEL: func.func @cast
// CHECK: vector.load {{.*}} {alignment = 16 : i64} : memref<4096xbf16>, vector<8xbf16>
// CHECK-COUNT-2: vector.store {{.*}} {alignment = 16 : i64} : memref<4096xf32>, vector<4xf32>
func.func @cast(%x: memref<4096xbf16>, %y: memref<4096xf32>) attributes {plan.kernel} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
    ins(%x : memref<4096xbf16>) outs(%y : memref<4096xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %0 = arith.extf %in : bf16 to f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Parts of a concatenation share a launch; what reads them waits for the next.
// CHECK-LABEL: func.func @concat
// CHECK-COUNT-2: gpu.launch
// CHECK-NOT: gpu.launch
func.func @concat(%x: memref<8x32xf32>, %y: memref<8x64xf32>, %z: memref<8x64xf32>) attributes {plan.kernel} {
  %a = memref.subview %y[0, 0] [8, 32] [1, 1] : memref<8x64xf32> to memref<8x32xf32, strided<[64, 1]>>
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
    ins(%x : memref<8x32xf32>) outs(%a : memref<8x32xf32, strided<[64, 1]>>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  %b = memref.subview %y[0, 32] [8, 32] [1, 1] : memref<8x64xf32> to memref<8x32xf32, strided<[64, 1], offset: 32>>
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
    ins(%x : memref<8x32xf32>) outs(%b : memref<8x32xf32, strided<[64, 1], offset: 32>>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
    ins(%y : memref<8x64xf32>) outs(%z : memref<8x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}
