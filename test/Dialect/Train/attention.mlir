// Attention and its gradients: forms, and what their operands must be.
// RUN: zero-opt -split-input-file -verify-diagnostics %s | FileCheck %s

// CHECK-LABEL: func @forms(
func.func @forms(%q: tensor<2x4x8x16xbf16>, %k: tensor<2x2x6x16xbf16>, %v: tensor<2x2x6x32xbf16>, %m: tensor<1x1x8x6xbf16>) {
  // CHECK: train.attention %{{.*}}, %{{.*}}, %{{.*}} scale 2.500000e-01 : (tensor<2x4x8x16xbf16>, tensor<2x2x6x16xbf16>, tensor<2x2x6x32xbf16>) -> (tensor<2x4x8x32xbf16>, tensor<2x4x8xf32>)
  %y0, %l0 = train.attention %q, %k, %v scale 2.5e-01 : (tensor<2x4x8x16xbf16>, tensor<2x2x6x16xbf16>, tensor<2x2x6x32xbf16>) -> (tensor<2x4x8x32xbf16>, tensor<2x4x8xf32>)
  // CHECK: train.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale 2.500000e-01 causal : (tensor<2x4x8x16xbf16>, tensor<2x2x6x16xbf16>, tensor<2x2x6x32xbf16>, tensor<1x1x8x6xbf16>) -> (tensor<2x4x8x32xbf16>, tensor<2x4x8xf32>)
  %y1, %l1 = train.attention %q, %k, %v, %m scale 2.5e-01 causal : (tensor<2x4x8x16xbf16>, tensor<2x2x6x16xbf16>, tensor<2x2x6x32xbf16>, tensor<1x1x8x6xbf16>) -> (tensor<2x4x8x32xbf16>, tensor<2x4x8xf32>)
  // CHECK: train.attention_grad %{{.*}} scale 2.500000e-01 causal : ({{.*}}, tensor<1x1x8x6xbf16>) -> (tensor<2x4x8x16xbf16>, tensor<2x2x6x16xbf16>, tensor<2x2x6x32xbf16>)
  %dq, %dk, %dv = train.attention_grad %y0, %q, %k, %v, %y1, %l1, %m scale 2.5e-01 causal : (tensor<2x4x8x32xbf16>, tensor<2x4x8x16xbf16>, tensor<2x2x6x16xbf16>, tensor<2x2x6x32xbf16>, tensor<2x4x8x32xbf16>, tensor<2x4x8xf32>, tensor<1x1x8x6xbf16>) -> (tensor<2x4x8x16xbf16>, tensor<2x2x6x16xbf16>, tensor<2x2x6x32xbf16>)
  return
}

// -----

func.func @rank(%q: tensor<4x8x16xf32>) {
  // expected-error @+2 {{query, key and value have the shapes [4, 8, 16], [4, 8, 16] and [4, 8, 16], expected four dimensions: batch, heads, length, size}}
  // expected-error @+1 {{failed to infer returned types}}
  %y, %l = train.attention %q, %q, %q scale 1.0 : (tensor<4x8x16xf32>, tensor<4x8x16xf32>, tensor<4x8x16xf32>) -> (tensor<4x8x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @empty(%q: tensor<1x0x8x16xf32>) {
  // expected-error @+2 {{has an empty operand}}
  // expected-error @+1 {{failed to infer returned types}}
  %y, %l = train.attention %q, %q, %q scale 1.0 : (tensor<1x0x8x16xf32>, tensor<1x0x8x16xf32>, tensor<1x0x8x16xf32>) -> (tensor<1x0x8x16xf32>, tensor<1x0x8xf32>)
  return
}

// -----

func.func @key(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x8xf32>) {
  // expected-error @+2 {{key has shape [1, 2, 8, 8], expected the batch 1 and the size 16 of the query}}
  // expected-error @+1 {{failed to infer returned types}}
  %y, %l = train.attention %q, %k, %k scale 1.0 : (tensor<1x2x8x16xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> (tensor<1x2x8x8xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @value(%q: tensor<1x2x8x16xf32>, %v: tensor<1x2x4x16xf32>) {
  // expected-error @+2 {{value has shape [1, 2, 4, 16], expected batch, heads and length of the key, [1, 2, 8]}}
  // expected-error @+1 {{failed to infer returned types}}
  %y, %l = train.attention %q, %q, %v scale 1.0 : (tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x4x16xf32>) -> (tensor<1x2x8x16xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @heads(%q: tensor<1x3x8x16xf32>, %k: tensor<1x2x8x16xf32>) {
  // expected-error @+2 {{has 3 query heads, no multiple of 2 key heads}}
  // expected-error @+1 {{failed to infer returned types}}
  %y, %l = train.attention %q, %k, %k scale 1.0 : (tensor<1x3x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>) -> (tensor<1x3x8x16xf32>, tensor<1x3x8xf32>)
  return
}

// -----

func.func @types(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x8x16xbf16>) {
  // expected-error @+2 {{query, key and value do not have the same element type}}
  // expected-error @+1 {{failed to infer returned types}}
  %y, %l = train.attention %q, %k, %q scale 1.0 : (tensor<1x2x8x16xf32>, tensor<1x2x8x16xbf16>, tensor<1x2x8x16xf32>) -> (tensor<1x2x8x16xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @mask(%q: tensor<1x2x8x16xf32>, %m: tensor<3x8x8xf32>) {
  // expected-error @+2 {{mask of shape [3, 8, 8] does not broadcast to the scores' [1, 2, 8, 8]}}
  // expected-error @+1 {{failed to infer returned types}}
  %y, %l = train.attention %q, %q, %q, %m scale 1.0 : (tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<3x8x8xf32>) -> (tensor<1x2x8x16xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @saved(%q: tensor<1x2x8x16xf32>, %l: tensor<1x2x4xf32>) {
  // expected-error @+2 {{logsumexp has shape [1, 2, 4], expected [1, 2, 8]}}
  // expected-error @+1 {{failed to infer returned types}}
  %dq, %dk, %dv = train.attention_grad %q, %q, %q, %q, %q, %l scale 1.0 : (tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x4xf32>) -> (tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>)
  return
}
