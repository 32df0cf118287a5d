// RUN: zero-opt --plan-outline-kernels --split-input-file --verify-diagnostics %s

// expected-error@+1 {{the module has no function @step; make one with --train-step or zero-import --loss}}
module {
  func.func @forward() {
    return
  }
}

// -----

func.func @step(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error@+1 {{cannot become a kernel: 'tensor<?xf32>' is no tensor of static shape}}
  %0 = math.exp %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func private @print(f32)
func.func @step(%x: tensor<f32>) {
  %0 = tensor.extract %x[] : tensor<f32>
  // expected-error@+1 {{cannot become a kernel: it has no result}}
  func.call @print(%0) : (f32) -> ()
  return
}

// -----

// expected-error@+1 {{must have a body of one block to become a plan}}
func.func @step() {
  cf.br ^bb1
^bb1:
  return
}
