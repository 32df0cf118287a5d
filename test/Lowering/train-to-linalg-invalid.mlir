// RUN: zero-opt --train-to-linalg --verify-diagnostics %s

func.func @k(%q: tensor<2x4x8x16xbf16>) -> tensor<2x4x8x16xbf16>
    attributes {plan.kernel} {
  // expected-error@+1 {{cannot be part of a kernel: it is a library call}}
  %0, %1 = train.attention %q, %q, %q scale 2.5e-01
      : (tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>)
      -> (tensor<2x4x8x16xbf16>, tensor<2x4x8xf32>)
  return %0 : tensor<2x4x8x16xbf16>
}
