// Why a softmax between two products stays what it is.
// RUN: zero-opt -split-input-file -verify-diagnostics -train-raise-attention %s | FileCheck %s
// RUN: zero-opt -split-input-file -train-raise-attention=any %s 2>/dev/null | FileCheck %s --check-prefix=ANY

// CHECK-NOT: train.attention
// ANY-LABEL: func @f32(
// ANY: train.attention
func.func @f32(%q: tensor<1x1x2x8xf32>) -> tensor<1x1x2x8xf32> {
  %s = train.matmul %q, %q {transpose_b} : (tensor<1x1x2x8xf32>, tensor<1x1x2x8xf32>) -> tensor<1x1x2x2xf32>
  // expected-remark @+1 {{attention stays products and a softmax: it is in f32, and cuDNN has it in bf16 and f16}}
  %p = train.softmax %s axis 3 : tensor<1x1x2x2xf32>
  %y = train.matmul %p, %q : (tensor<1x1x2x2xf32>, tensor<1x1x2x8xf32>) -> tensor<1x1x2x8xf32>
  return %y : tensor<1x1x2x8xf32>
}

// -----

// ANY-LABEL: func @size(
// ANY: train.attention
func.func @size(%q: tensor<1x1x2x12xbf16>) -> tensor<1x1x2x12xbf16> {
  %s = train.matmul %q, %q {transpose_b} : (tensor<1x1x2x12xbf16>, tensor<1x1x2x12xbf16>) -> tensor<1x1x2x2xbf16>
  // expected-remark @+1 {{attention stays products and a softmax: its heads have a size of 12, and cuDNN takes multiples of 8 up to 128}}
  %p = train.softmax %s axis 3 : tensor<1x1x2x2xbf16>
  %y = train.matmul %p, %q : (tensor<1x1x2x2xbf16>, tensor<1x1x2x12xbf16>) -> tensor<1x1x2x12xbf16>
  return %y : tensor<1x1x2x12xbf16>
}

// -----

// ANY-LABEL: func @used(
// ANY-NOT: train.attention
func.func @used(%q: tensor<1x1x2x8xbf16>) -> (tensor<1x1x2x8xbf16>, tensor<1x1x2x2xbf16>) {
  %s = train.matmul %q, %q {transpose_b} : (tensor<1x1x2x8xbf16>, tensor<1x1x2x8xbf16>) -> tensor<1x1x2x2xbf16>
  // expected-remark @+1 {{attention stays products and a softmax: its probabilities are used elsewhere}}
  %p = train.softmax %s axis 3 : tensor<1x1x2x2xbf16>
  %y = train.matmul %p, %q : (tensor<1x1x2x2xbf16>, tensor<1x1x2x8xbf16>) -> tensor<1x1x2x8xbf16>
  return %y, %p : tensor<1x1x2x8xbf16>, tensor<1x1x2x2xbf16>
}

// -----

// ANY-LABEL: func @rank(
func.func @rank(%q: tensor<2x8xbf16>) -> tensor<2x8xbf16> {
  %s = train.matmul %q, %q {transpose_b} : (tensor<2x8xbf16>, tensor<2x8xbf16>) -> tensor<2x2xbf16>
  // expected-remark @+1 {{attention stays products and a softmax: its scores have 2 dimensions instead of 3 or 4: batch, heads, queries, keys}}
  %p = train.softmax %s axis 1 : tensor<2x2xbf16>
  %y = train.matmul %p, %q : (tensor<2x2xbf16>, tensor<2x8xbf16>) -> tensor<2x8xbf16>
  return %y : tensor<2x8xbf16>
}

// -----

// ANY-LABEL: func @batch(
func.func @batch(%q: tensor<2x1x2x8xbf16>, %k: tensor<1x1x2x8xbf16>) -> tensor<2x1x2x8xbf16> {
  %s = train.matmul %q, %k {transpose_b} : (tensor<2x1x2x8xbf16>, tensor<1x1x2x8xbf16>) -> tensor<2x1x2x2xbf16>
  // expected-remark @+1 {{attention stays products and a softmax: its operands are not of one batch}}
  %p = train.softmax %s axis 3 : tensor<2x1x2x2xbf16>
  %y = train.matmul %p, %k : (tensor<2x1x2x2xbf16>, tensor<1x1x2x8xbf16>) -> tensor<2x1x2x8xbf16>
  return %y : tensor<2x1x2x8xbf16>
}

// -----

// ANY-LABEL: func @transposed(
func.func @transposed(%q: tensor<1x1x8x2xbf16>, %k: tensor<1x1x2x8xbf16>) -> tensor<1x1x2x8xbf16> {
  %s = train.matmul %q, %k {transpose_a, transpose_b} : (tensor<1x1x8x2xbf16>, tensor<1x1x2x8xbf16>) -> tensor<1x1x2x2xbf16>
  // expected-remark @+1 {{attention stays products and a softmax: its queries are transposed}}
  %p = train.softmax %s axis 3 : tensor<1x1x2x2xbf16>
  %y = train.matmul %p, %k : (tensor<1x1x2x2xbf16>, tensor<1x1x2x8xbf16>) -> tensor<1x1x2x8xbf16>
  return %y : tensor<1x1x2x8xbf16>
}

// -----

// A soft cap between the scale and the mask is not scaled dot-product attention.
// ANY-LABEL: func @capped(
func.func @capped(%q: tensor<1x1x2x8xbf16>, %m: tensor<2x2xbf16>) -> tensor<1x1x2x8xbf16> {
  %s = train.matmul %q, %q {transpose_b} : (tensor<1x1x2x8xbf16>, tensor<1x1x2x8xbf16>) -> tensor<1x1x2x2xbf16>
  %t = train.tanh %s : tensor<1x1x2x2xbf16>
  %a = train.add %t, %m : (tensor<1x1x2x2xbf16>, tensor<2x2xbf16>) -> tensor<1x1x2x2xbf16>
  // expected-remark @+1 {{attention stays products and a softmax: its scores are no scaled product of queries and keys}}
  %p = train.softmax %a axis 3 : tensor<1x1x2x2xbf16>
  %y = train.matmul %p, %q : (tensor<1x1x2x2xbf16>, tensor<1x1x2x8xbf16>) -> tensor<1x1x2x8xbf16>
  return %y : tensor<1x1x2x8xbf16>
}

// -----

zero.param @bias : tensor<2x2xbf16> init("w.safetensors")
// ANY-LABEL: func @trained(
func.func @trained(%q: tensor<1x1x2x8xbf16>) -> tensor<1x1x2x8xbf16> {
  %b = zero.read @bias : tensor<2x2xbf16>
  %s = train.matmul %q, %q {transpose_b} : (tensor<1x1x2x8xbf16>, tensor<1x1x2x8xbf16>) -> tensor<1x1x2x2xbf16>
  %a = train.add %s, %b : (tensor<1x1x2x2xbf16>, tensor<2x2xbf16>) -> tensor<1x1x2x2xbf16>
  // expected-remark @+1 {{attention stays products and a softmax: its mask depends on a trained parameter}}
  %p = train.softmax %a axis 3 : tensor<1x1x2x2xbf16>
  %y = train.matmul %p, %q : (tensor<1x1x2x2xbf16>, tensor<1x1x2x8xbf16>) -> tensor<1x1x2x8xbf16>
  return %y : tensor<1x1x2x8xbf16>
}

// -----

// ANY-LABEL: func @dropped(
// ANY: train.attention {{.*}} dropout
func.func @dropped(%q: tensor<1x1x2x8xbf16>, %key: tensor<i64>) -> tensor<1x1x2x8xbf16> {
  %s = train.matmul %q, %q {transpose_b} : (tensor<1x1x2x8xbf16>, tensor<1x1x2x8xbf16>) -> tensor<1x1x2x2xbf16>
  // expected-remark @+1 {{attention stays products and a softmax: its probabilities are dropped out, and cuDNN draws other numbers}}
  %p = train.softmax %s axis 3 : tensor<1x1x2x2xbf16>
  %p1 = train.dropout %p, %key, %key ratio 1.0e-01 samples 1 along 0 : (tensor<1x1x2x2xbf16>, tensor<i64>, tensor<i64>) -> tensor<1x1x2x2xbf16>
  %y = train.matmul %p1, %q : (tensor<1x1x2x2xbf16>, tensor<1x1x2x8xbf16>) -> tensor<1x1x2x8xbf16>
  return %y : tensor<1x1x2x8xbf16>
}

// -----

// ANY-LABEL: func @along(
// ANY-NOT: train.attention
func.func @along(%q: tensor<1x2x2x8xbf16>, %key: tensor<i64>) -> tensor<1x2x2x8xbf16> {
  %s = train.matmul %q, %q {transpose_b} : (tensor<1x2x2x8xbf16>, tensor<1x2x2x8xbf16>) -> tensor<1x2x2x2xbf16>
  // expected-remark @+1 {{attention stays products and a softmax: its dropout has samples along dimension 1 instead of the batch}}
  %p = train.softmax %s axis 3 : tensor<1x2x2x2xbf16>
  %p1 = train.dropout %p, %key, %key ratio 1.0e-01 samples 2 along 1 : (tensor<1x2x2x2xbf16>, tensor<i64>, tensor<i64>) -> tensor<1x2x2x2xbf16>
  %y = train.matmul %p1, %q : (tensor<1x2x2x2xbf16>, tensor<1x2x2x8xbf16>) -> tensor<1x2x2x8xbf16>
  return %y : tensor<1x2x2x8xbf16>
}

// -----

// Numbers that are dropped out twice are used elsewhere than in the product.
// ANY-LABEL: func @twice(
// ANY-NOT: train.attention
func.func @twice(%q: tensor<1x1x2x8xbf16>, %key: tensor<i64>) -> tensor<1x1x2x8xbf16> {
  %s = train.matmul %q, %q {transpose_b} : (tensor<1x1x2x8xbf16>, tensor<1x1x2x8xbf16>) -> tensor<1x1x2x2xbf16>
  // expected-remark @+1 {{attention stays products and a softmax: its probabilities are used elsewhere}}
  %p = train.softmax %s axis 3 : tensor<1x1x2x2xbf16>
  %p1 = train.dropout %p, %key, %key ratio 1.0e-01 : (tensor<1x1x2x2xbf16>, tensor<i64>, tensor<i64>) -> tensor<1x1x2x2xbf16>
  %p2 = train.dropout %p1, %key, %key ratio 1.0e-01 : (tensor<1x1x2x2xbf16>, tensor<i64>, tensor<i64>) -> tensor<1x1x2x2xbf16>
  %y = train.matmul %p2, %q : (tensor<1x1x2x2xbf16>, tensor<1x1x2x8xbf16>) -> tensor<1x1x2x8xbf16>
  return %y : tensor<1x1x2x8xbf16>
}

// -----

// A softmax alone is nothing to talk about.
// ANY-LABEL: func @softmax(
func.func @softmax(%x: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  %p = train.softmax %x axis 1 : tensor<4x8xbf16>
  return %p : tensor<4x8xbf16>
}

// -----

// RUN: zero-opt -split-input-file -train-raise-attention=host %s 2>&1 | FileCheck %s --check-prefix=HOST
// HOST: remark: attention stays products and a softmax: it is in f64, and the host has it in f32, bf16 and f16
func.func @f64(%q: tensor<1x1x2x8xf64>) -> tensor<1x1x2x8xf64> {
  %s = train.matmul %q, %q {transpose_b} : (tensor<1x1x2x8xf64>, tensor<1x1x2x8xf64>) -> tensor<1x1x2x2xf64>
  // expected-remark @+1 {{attention stays products and a softmax: it is in f64, and cuDNN has it in bf16 and f16}}
  %p = train.softmax %s axis 3 : tensor<1x1x2x2xf64>
  %y = train.matmul %p, %q : (tensor<1x1x2x2xf64>, tensor<1x1x2x8xf64>) -> tensor<1x1x2x8xf64>
  return %y : tensor<1x1x2x8xf64>
}
