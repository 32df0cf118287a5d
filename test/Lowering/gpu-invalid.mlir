// Kernels that cannot be mapped to a GPU.
// RUN: zero-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(func.func(kernel-map-to-gpu))'

func.func @prefix(%x: memref<64xf32>) attributes {plan.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  // expected-error @+1 {{cannot be mapped to a GPU: its steps depend on each other}}
  scf.for %i = %c0 to %c63 step %c1 {
    %a = memref.load %x[%i] : memref<64xf32>
    %next = arith.addi %i, %c1 : index
    memref.store %a, %x[%next] : memref<64xf32>
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
