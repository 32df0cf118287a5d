// Kernels that cannot be mapped to a GPU.
// RUN: zero-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(func.func(kernel-map-to-gpu))'

func.func @prefix(%x: memref<64x4xf32>) attributes {plan.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  // expected-error @+1 {{cannot be mapped to a GPU: its steps depend on each other}}
  scf.for %i = %c0 to %c63 step %c1 {
    %next = arith.addi %i, %c1 : index
    %from = memref.subview %x[%i, 0] [1, 4] [1, 1] : memref<64x4xf32> to memref<4xf32, strided<[1], offset: ?>>
    %to = memref.subview %x[%next, 0] [1, 4] [1, 1] : memref<64x4xf32> to memref<4xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%from : memref<4xf32, strided<[1], offset: ?>>) outs(%to : memref<4xf32, strided<[1], offset: ?>>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
  }
  return
}

// -----

func.func @call(%x: memref<f32>) attributes {plan.kernel} {
  // expected-error @+1 {{cannot be mapped to a GPU}}
  func.call @other() : () -> ()
  return
}
func.func private @other()
