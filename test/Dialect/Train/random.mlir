// Random numbers: forms, and what the verifier refuses.
// RUN: zero-opt -split-input-file -verify-diagnostics %s | FileCheck %s

// CHECK-LABEL: func.func @forms
func.func @forms(%seed: tensor<i64>, %step: tensor<i64>, %first: tensor<i64>, %x: tensor<8x3xbf16>) {
  // CHECK: %[[KEY:.*]] = train.random_key %{{.*}}, %{{.*}} site 4294967295 : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %key = train.random_key %seed, %step site 4294967295 : (tensor<i64>, tensor<i64>) -> tensor<i64>
  // CHECK: train.random_uniform %[[KEY]], %{{.*}} shape [2, 6] type f16 samples 3 along 1 : (tensor<i64>, tensor<i64>) -> tensor<2x6xf16>
  %u = train.random_uniform %key, %first shape [2, 6] type f16 samples 3 along 1 : (tensor<i64>, tensor<i64>) -> tensor<2x6xf16>
  // CHECK: train.random_normal %[[KEY]], %{{.*}} shape [] type f64 : (tensor<i64>, tensor<i64>) -> tensor<f64>
  %n = train.random_normal %key, %first shape [] type f64 : (tensor<i64>, tensor<i64>) -> tensor<f64>
  // CHECK: train.dropout %{{.*}}, %[[KEY]], %{{.*}} ratio 1.000000e-01 samples 4 along 0 : (tensor<8x3xbf16>, tensor<i64>, tensor<i64>) -> tensor<8x3xbf16>
  %y = train.dropout %x, %key, %first ratio 1.0e-01 samples 4 along 0 : (tensor<8x3xbf16>, tensor<i64>, tensor<i64>) -> tensor<8x3xbf16>
  return
}

// -----

func.func @site(%seed: tensor<i64>) {
  // expected-error @+1 {{site is 4294967296, expected a number in [0, 2^32)}}
  %key = train.random_key %seed, %seed site 4294967296 : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return
}

// -----

func.func @ratio(%x: tensor<4xf32>, %key: tensor<i64>) {
  // expected-error @+1 {{ratio is 1.000000e+00, expected one in [0, 1)}}
  %y = train.dropout %x, %key, %key ratio 1.0 : (tensor<4xf32>, tensor<i64>, tensor<i64>) -> tensor<4xf32>
  return
}

// -----

func.func @samples(%x: tensor<4xf32>, %key: tensor<i64>) {
  // expected-error @+1 {{has 3 samples along a dimension of 4}}
  %y = train.dropout %x, %key, %key ratio 0.5 samples 3 along 0 : (tensor<4xf32>, tensor<i64>, tensor<i64>) -> tensor<4xf32>
  return
}

// -----

func.func @along(%x: tensor<4xf32>, %key: tensor<i64>) {
  // expected-error @+1 {{has samples along dimension 1 of a tensor of rank 1}}
  %y = train.dropout %x, %key, %key ratio 0.5 samples 2 along 1 : (tensor<4xf32>, tensor<i64>, tensor<i64>) -> tensor<4xf32>
  return
}

// -----

func.func @half(%x: tensor<4xf32>, %key: tensor<i64>) {
  // expected-error @+1 {{has 'samples' without 'along', or the reverse}}
  %y = "train.dropout"(%x, %key, %key) <{ratio = 0.5 : f64, samples = 2 : i64}> : (tensor<4xf32>, tensor<i64>, tensor<i64>) -> tensor<4xf32>
  return
}

// -----

func.func @element(%key: tensor<i64>) {
  // expected-error @+2 {{draws elements of type 'i32', expected f16, bf16, f32 or f64}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = "train.random_uniform"(%key, %key) <{shape = array<i64: 2>, element = i32}> : (tensor<i64>, tensor<i64>) -> tensor<2xf32>
  return
}

// -----

func.func @negative(%key: tensor<i64>) {
  // expected-error @+2 {{has the shape [-2] with a negative size}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = "train.random_normal"(%key, %key) <{shape = array<i64: -2>, element = f32}> : (tensor<i64>, tensor<i64>) -> tensor<2xf32>
  return
}
