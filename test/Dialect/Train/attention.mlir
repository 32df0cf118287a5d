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

// -----

// CHECK-LABEL: func @dropout(
func.func @dropout(%q: tensor<4x2x8x16xf32>, %m: tensor<8x8xf32>, %key: tensor<i64>, %first: tensor<i64>) {
  // CHECK: train.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00 causal dropout %{{.*}}, %{{.*}} ratio 1.000000e-01 : (tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<i64>, tensor<i64>) -> (tensor<4x2x8x16xf32>, tensor<4x2x8xf32>)
  %y0, %l0 = train.attention %q, %q, %q scale 1.0 causal dropout %key, %first ratio 1.0e-01 : (tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<i64>, tensor<i64>) -> (tensor<4x2x8x16xf32>, tensor<4x2x8xf32>)
  // CHECK: train.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00 dropout %[[KEY:.*]], %[[FIRST:.*]] ratio 1.000000e-01 samples 2 :
  %y1, %l1 = train.attention %q, %q, %q, %m scale 1.0 dropout %key, %first ratio 1.0e-01 samples 2 : (tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<8x8xf32>, tensor<i64>, tensor<i64>) -> (tensor<4x2x8x16xf32>, tensor<4x2x8xf32>)
  // CHECK: train.attention_grad {{.*}} scale 1.000000e+00 dropout %[[KEY]], %[[FIRST]] ratio 1.000000e-01 samples 2 :
  %dq, %dk, %dv = train.attention_grad %y0, %q, %q, %q, %y1, %l1, %m scale 1.0 dropout %key, %first ratio 1.0e-01 samples 2 : (tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<4x2x8xf32>, tensor<8x8xf32>, tensor<i64>, tensor<i64>) -> (tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>)
  return
}

// -----

func.func @ratio(%q: tensor<4x2x8x16xf32>, %key: tensor<i64>) {
  // expected-error @+1 {{'train.attention' op ratio is 1.000000e+00, expected one in [0, 1)}}
  %y, %l = train.attention %q, %q, %q scale 1.0 dropout %key, %key ratio 1.0 : (tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<i64>, tensor<i64>) -> (tensor<4x2x8x16xf32>, tensor<4x2x8xf32>)
  return
}

// -----

func.func @samples(%q: tensor<4x2x8x16xf32>, %key: tensor<i64>) {
  // expected-error @+1 {{'train.attention' op has 3 samples in a batch of 4}}
  %y, %l = train.attention %q, %q, %q scale 1.0 dropout %key, %key ratio 0.5 samples 3 : (tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<i64>, tensor<i64>) -> (tensor<4x2x8x16xf32>, tensor<4x2x8xf32>)
  return
}

// -----

func.func @no_samples(%q: tensor<4x2x8x16xf32>, %key: tensor<i64>) {
  // expected-error @+1 {{'train.attention' op has 0 samples in a batch of 4}}
  %y, %l = train.attention %q, %q, %q scale 1.0 dropout %key, %key ratio 0.5 samples 0 : (tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<i64>, tensor<i64>) -> (tensor<4x2x8x16xf32>, tensor<4x2x8xf32>)
  return
}

// -----

func.func @only_samples(%q: tensor<4x2x8x16xf32>, %key: tensor<i64>) {
  // expected-error @+1 {{'train.attention' op has 'samples' without dropout}}
  %y, %l = train.attention %q, %q, %q scale 1.0 samples 2 : (tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>) -> (tensor<4x2x8x16xf32>, tensor<4x2x8xf32>)
  return
}

// -----

func.func @no_ratio(%q: tensor<4x2x8x16xf32>, %key: tensor<i64>) {
  // expected-error @+1 {{'train.attention' op has some of 'dropout_key', 'first_sample' and 'ratio', not all}}
  %y, %l = "train.attention"(%q, %q, %q, %key, %key) <{scale = 1.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 1>}> : (tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<i64>, tensor<i64>) -> (tensor<4x2x8x16xf32>, tensor<4x2x8xf32>)
  return
}

// -----

func.func @no_key(%q: tensor<4x2x8x16xf32>, %l: tensor<4x2x8xf32>) {
  // expected-error @+1 {{'train.attention_grad' op has some of 'dropout_key', 'first_sample' and 'ratio', not all}}
  %dq, %dk, %dv = "train.attention_grad"(%q, %q, %q, %q, %q, %l) <{scale = 1.0 : f64, ratio = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0>}> : (tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<4x2x8xf32>) -> (tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>, tensor<4x2x8x16xf32>)
  return
}
