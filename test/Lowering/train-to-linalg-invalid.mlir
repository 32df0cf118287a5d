// RUN: zero-opt --train-to-linalg --verify-diagnostics %s

func.func @k(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>) -> tensor<2x2xf32>
    attributes {plan.kernel} {
  // expected-error@+1 {{cannot be part of a kernel: it is a library call}}
  %0 = train.matmul %a, %b
      : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
