// Launches that only read a product become epilogues of the product.
// RUN: zero-opt %s -split-input-file -plan-fuse-epilogues | FileCheck %s

// The pre-activation is saved for the backward pass, so the product writes it
// too; the gradient is that of what the product computes, and so is the bias's.
// CHECK-LABEL: plan.program @two_passes
plan.program @two_passes ranks(1) {
  %dev = plan.arena device
  %x = plan.buffer %dev input : memref<4x16xf32>
  plan.input "x" %x data : memref<4x16xf32>
  // CHECK: %[[X:.*]] = plan.buffer %{{.*}} input
  %w = plan.buffer %dev parameter : memref<16x8xf32>
  // CHECK-NEXT: plan.input
  // CHECK-NEXT: %[[W:.*]] = plan.buffer %{{.*}} parameter
  plan.parameter "w" %w frozen : memref<16x8xf32>
  %b = plan.buffer %dev parameter : memref<8xf32>
  plan.parameter "b" %b frozen : memref<8xf32>
  %pre = plan.buffer %dev activation : memref<4x8xf32>
  %post = plan.buffer %dev activation : memref<4x8xf32>
  %bias = plan.view %b[0] : memref<8xf32> to memref<4x8xf32, strided<[0, 1]>>
  // CHECK-DAG: %[[BIAS:.*]] = plan.view {{.*}} strided<[0, 1]>
  // CHECK: plan.call @matmul(%[[X]], %[[W]], %[[BIAS]], %[[PRE:.*]], %[[POST:.*]]) writes [3, 4] {aux, gelu}
  plan.call @matmul(%x, %w, %bias, %pre) writes [3]
    : memref<4x16xf32>, memref<16x8xf32>, memref<4x8xf32, strided<[0, 1]>>, memref<4x8xf32>
  // CHECK-NOT: plan.launch @gelu
  plan.launch @gelu(%pre, %post) writes [1] : memref<4x8xf32>, memref<4x8xf32>
  %w2 = plan.view %w[0] : memref<16x8xf32> to memref<8x16xf32, strided<[1, 8]>>
  %y = plan.buffer %dev activation : memref<4x16xf32>
  // CHECK: plan.call @matmul({{.*}}) writes [2]
  // CHECK-NOT: {gelu
  plan.call @matmul(%post, %w2, %y) writes [2] : memref<4x8xf32>, memref<8x16xf32, strided<[1, 8]>>, memref<4x16xf32>
  // The product of the backward pass.
  %dpost = plan.buffer %dev activation : memref<4x8xf32>
  %dpre = plan.buffer %dev activation : memref<4x8xf32>
  %db = plan.buffer %dev gradient : memref<8xf32>
  // CHECK: plan.call @matmul(%{{.*}}, %[[W]], %[[PRE2:.*]], %[[DB:.*]], %[[DPRE:.*]]) writes [3, 4] {bias_grad, gelu_grad}
  plan.call @matmul(%y, %w, %dpost) writes [2] : memref<4x16xf32>, memref<16x8xf32>, memref<4x8xf32>
  plan.launch @gelu_grad(%dpost, %pre, %dpre) writes [2] : memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>
  plan.launch @sum(%dpre, %db) writes [1] : memref<4x8xf32>, memref<8xf32>
  plan.output "db" %db same : memref<8xf32>
  // CHECK-NOT: plan.launch
}
// Kernels that nobody launches any more are gone.
// CHECK-NOT: func.func
func.func private @gelu(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {plan.kernel} {
  %0 = train.gelu %x {approximate = "tanh"} : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func private @gelu_grad(%g: tensor<4x8xf32>, %x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {plan.kernel} {
  %0 = train.gelu_grad %g, %x {approximate = "tanh"} : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func private @sum(%x: tensor<4x8xf32>) -> tensor<8xf32> attributes {plan.kernel} {
  %0 = train.reduce_sum %x axes [0] : (tensor<4x8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Nobody else reads the sum: it is never stored. An event of the launch becomes
// one of the product.
// CHECK-LABEL: plan.program @one_reader
plan.program @one_reader ranks(1) {
  %dev = plan.arena device
  %host = plan.arena host
  %x = plan.buffer %dev input : memref<4x16xf32>
  plan.input "x" %x data : memref<4x16xf32>
  %sum = plan.buffer %dev activation : memref<4x3xf32>
  %y = plan.buffer %dev activation : memref<12xf32>
  %w = plan.buffer %dev activation : memref<16x3xf32>
  %h = plan.buffer %host activation : memref<12xf32>
  // CHECK: %[[E:.*]] = plan.event
  // CHECK: plan.call @matmul({{.*}}) writes [2] signal(%[[E]]) {relu}
  plan.call @matmul(%x, %w, %sum) writes [2] : memref<4x16xf32>, memref<16x3xf32>, memref<4x3xf32>
  %flat = plan.view %sum[0] : memref<4x3xf32> to memref<12xf32>
  %e = plan.event
  plan.launch @relu(%flat, %y) writes [1] signal(%e) : memref<12xf32>, memref<12xf32>
  // CHECK-NOT: plan.launch
  // CHECK: plan.copy {{.*}} wait(%[[E]])
  plan.copy %y -> %h stream("to_host") wait(%e) : memref<12xf32> -> memref<12xf32>
}
func.func private @relu(%x: tensor<12xf32>) -> tensor<12xf32> attributes {plan.kernel} {
  %0 = train.relu %x : tensor<12xf32>
  return %0 : tensor<12xf32>
}

// -----

// The gradient of a bias is the sum of an operand of the weight's gradient.
// CHECK-LABEL: plan.program @operands
plan.program @operands ranks(1) {
  %dev = plan.arena device
  %x = plan.buffer %dev input : memref<4x16xf32>
  plan.input "x" %x data : memref<4x16xf32>
  %dy = plan.buffer %dev activation : memref<4x8xf32>
  %dw = plan.buffer %dev gradient : memref<16x8xf32>
  %dv = plan.buffer %dev gradient : memref<8x16xf32>
  %db = plan.buffer %dev gradient : memref<8xf32>
  %dc = plan.buffer %dev gradient : memref<8xf32>
  %xt = plan.view %x[0] : memref<4x16xf32> to memref<16x4xf32, strided<[1, 16]>>
  %dyt = plan.view %dy[0] : memref<4x8xf32> to memref<8x4xf32, strided<[1, 8]>>
  // CHECK: plan.call @matmul(%{{.*}}, %[[DY:.*]], %{{.*}}, %{{.*}}) writes [2, 3] {bias_grad_b}
  plan.call @matmul(%xt, %dy, %dw) writes [2] : memref<16x4xf32, strided<[1, 16]>>, memref<4x8xf32>, memref<16x8xf32>
  plan.launch @sum(%dy, %db) writes [1] : memref<4x8xf32>, memref<8xf32>
  // CHECK: plan.call @matmul({{.*}}) writes [2, 3] {bias_grad_a}
  plan.call @matmul(%dyt, %x, %dv) writes [2] : memref<8x4xf32, strided<[1, 8]>>, memref<4x16xf32>, memref<8x16xf32>
  plan.launch @sum(%dy, %dc) writes [1] : memref<4x8xf32>, memref<8xf32>
  // CHECK-NOT: plan.launch
}
func.func private @sum(%x: tensor<4x8xf32>) -> tensor<8xf32> attributes {plan.kernel} {
  %0 = train.reduce_sum %x axes [0] : (tensor<4x8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Not fused: the gelu of erf, which the library does not have; a launch that
// waits; a result that is used before the launch.
// CHECK-LABEL: plan.program @not
plan.program @not ranks(1) {
  %dev = plan.arena device
  %host = plan.arena host
  %x = plan.buffer %dev input : memref<4x16xf32>
  plan.input "x" %x data : memref<4x16xf32>
  %w = plan.buffer %dev activation : memref<16x8xf32>
  %s = plan.buffer %dev activation : memref<4x8xf32>
  %y = plan.buffer %dev activation : memref<4x8xf32>
  %s2 = plan.buffer %dev activation : memref<4x8xf32>
  %y2 = plan.buffer %dev activation : memref<4x8xf32>
  %s3 = plan.buffer %dev activation : memref<4x8xf32>
  %y3 = plan.buffer %dev activation : memref<4x8xf32>
  %h = plan.buffer %host activation : memref<4x8xf32>
  // CHECK: plan.launch @erf
  plan.call @matmul(%x, %w, %s) writes [2] : memref<4x16xf32>, memref<16x8xf32>, memref<4x8xf32>
  plan.launch @erf(%s, %y) writes [1] : memref<4x8xf32>, memref<4x8xf32>
  %e = plan.event
  plan.call @matmul(%x, %w, %s2) writes [2] : memref<4x16xf32>, memref<16x8xf32>, memref<4x8xf32>
  plan.copy %y -> %h stream("to_host") signal(%e) : memref<4x8xf32> -> memref<4x8xf32>
  // CHECK: plan.launch @relu
  plan.launch @relu(%s2, %y2) writes [1] wait(%e) : memref<4x8xf32>, memref<4x8xf32>
  plan.call @matmul(%x, %w, %s3) writes [2] : memref<4x16xf32>, memref<16x8xf32>, memref<4x8xf32>
  plan.launch @relu(%y3, %y2) writes [1] : memref<4x8xf32>, memref<4x8xf32>
  // CHECK-COUNT-2: plan.launch @relu
  plan.launch @relu(%s3, %y3) writes [1] : memref<4x8xf32>, memref<4x8xf32>
}
func.func private @erf(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {plan.kernel} {
  %0 = train.gelu %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func private @relu(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {plan.kernel} {
  %0 = train.relu %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
