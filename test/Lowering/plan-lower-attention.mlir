// Attention is a library call: operands are views of whatever they were cut
// from, as far as their strides are multiples of 16 bytes; it has two results,
// its gradient three.
// RUN: zero-opt -split-input-file -plan-outline-kernels -plan-lower %s | FileCheck %s

// CHECK-LABEL: plan.program @step
// CHECK: %[[X:.*]] = plan.buffer %{{.*}} input : memref<1x4x48xbf16>
// CHECK-DAG: %[[Q:.*]] = plan.view %[[X]][0] : memref<1x4x48xbf16> to memref<1x2x4x8xbf16, strided<[192, 8, 48, 1]>>
// CHECK-DAG: %[[K:.*]] = plan.view %[[X]][16] : memref<1x4x48xbf16> to memref<1x2x4x8xbf16, strided<[192, 8, 48, 1]>>
// CHECK-DAG: %[[V:.*]] = plan.view %[[X]][32] : memref<1x4x48xbf16> to memref<1x2x4x8xbf16, strided<[192, 8, 48, 1]>>
// CHECK: plan.call @attention(%[[Q]], %[[K]], %[[V]], %[[Y:.*]], %[[L:.*]]) writes [3, 4] {causal, scale = 5.000000e-01 : f64}
// CHECK: plan.call @attention_grad(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[Y]], %[[L]], %{{.*}}, %{{.*}}, %{{.*}}) writes [6, 7, 8] {causal, scale = 5.000000e-01 : f64}
func.func @step(%x: tensor<1x4x48xbf16> {zero.input = "x"}, %dy: tensor<1x2x4x8xbf16> {zero.input = "dy"})
    -> (tensor<1x2x4x8xbf16> {zero.output = "dq"}, tensor<1x2x4x8xbf16> {zero.output = "dk"}, tensor<1x2x4x8xbf16> {zero.output = "dv"}) {
  %q0 = train.slice %x starts [0, 0, 0] limits [1, 4, 16] strides [1, 1, 1] : (tensor<1x4x48xbf16>) -> tensor<1x4x16xbf16>
  %k0 = train.slice %x starts [0, 0, 16] limits [1, 4, 32] strides [1, 1, 1] : (tensor<1x4x48xbf16>) -> tensor<1x4x16xbf16>
  %v0 = train.slice %x starts [0, 0, 32] limits [1, 4, 48] strides [1, 1, 1] : (tensor<1x4x48xbf16>) -> tensor<1x4x16xbf16>
  %q1 = train.reshape %q0 : tensor<1x4x16xbf16> to tensor<1x4x2x8xbf16>
  %k1 = train.reshape %k0 : tensor<1x4x16xbf16> to tensor<1x4x2x8xbf16>
  %v1 = train.reshape %v0 : tensor<1x4x16xbf16> to tensor<1x4x2x8xbf16>
  %q = train.transpose %q1 [0, 2, 1, 3] : (tensor<1x4x2x8xbf16>) -> tensor<1x2x4x8xbf16>
  %k = train.transpose %k1 [0, 2, 1, 3] : (tensor<1x4x2x8xbf16>) -> tensor<1x2x4x8xbf16>
  %v = train.transpose %v1 [0, 2, 1, 3] : (tensor<1x4x2x8xbf16>) -> tensor<1x2x4x8xbf16>
  %y, %l = train.attention %q, %k, %v scale 5.0e-01 causal : (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>) -> (tensor<1x2x4x8xbf16>, tensor<1x2x4xf32>)
  %dq, %dk, %dv = train.attention_grad %dy, %q, %k, %v, %y, %l scale 5.0e-01 causal : (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4xf32>) -> (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>)
  return %dq, %dk, %dv : tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>
}

// -----

// The key of a dropout and the number of the first sample are operands too.
// CHECK-LABEL: plan.program @step
// CHECK: %[[KEY:.*]] = plan.buffer %{{.*}} input : memref<i64>
// CHECK: %[[FIRST:.*]] = plan.buffer %{{.*}} input : memref<i64>
// CHECK: plan.call @attention(%{{.*}}, %{{.*}}, %{{.*}}, %[[KEY]], %[[FIRST]], %{{.*}}, %{{.*}}) writes [5, 6] {ratio = 1.000000e-01 : f64, samples = 2 : i64, scale = 5.000000e-01 : f64}
// CHECK: plan.call @attention_grad(%{{.*}}, %[[KEY]], %[[FIRST]], %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}) writes [8, 9, 10] {ratio = 1.000000e-01 : f64, samples = 2 : i64, scale = 5.000000e-01 : f64}
func.func @step(%q: tensor<2x2x4x8xf32> {zero.input = "q"}, %key: tensor<i64> {zero.input = "key"}, %first: tensor<i64> {zero.input = "first"})
    -> (tensor<2x2x4x8xf32> {zero.output = "dq"}, tensor<2x2x4x8xf32> {zero.output = "dk"}, tensor<2x2x4x8xf32> {zero.output = "dv"}) {
  %y, %l = train.attention %q, %q, %q scale 5.0e-01 dropout %key, %first ratio 1.0e-01 samples 2 : (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<i64>, tensor<i64>) -> (tensor<2x2x4x8xf32>, tensor<2x2x4xf32>)
  %dq, %dk, %dv = train.attention_grad %q, %q, %q, %q, %y, %l scale 5.0e-01 dropout %key, %first ratio 1.0e-01 samples 2 : (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4xf32>, tensor<i64>, tensor<i64>) -> (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>)
  return %dq, %dk, %dv : tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>
}
