// A function marked as a kernel that cannot be one is an error.
// RUN: zero-opt %s -split-input-file --kernel-pass-destinations -verify-diagnostics

// expected-error @+1 {{is not a kernel: expected a body of one block}}
func.func @branches(%x: tensor<4xf32>) -> tensor<4xf32> attributes {plan.kernel} {
  cf.br ^next
^next:
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{is not a kernel: expected tensors of static shape, but its type is '(tensor<?xf32>) -> tensor<?xf32>'}}
func.func @dynamic(%x: tensor<?xf32>) -> tensor<?xf32> attributes {plan.kernel} {
  return %x : tensor<?xf32>
}
