// Who waits for a launch waits for all that compute does before it; so it still
// does when the launch became an epilogue of a product further up.
// RUN: zero-opt %s -split-input-file -plan-fuse-epilogues -zero-verify | FileCheck %s

// The command before the launch, which is not the product, signals.
// CHECK-LABEL: plan.program @between
plan.program @between ranks(3) {
  %dev = plan.arena device
  %x = plan.buffer %dev input : memref<4x16xf32>
  plan.input "x" %x data : memref<4x16xf32>
  %dy = plan.buffer %dev input : memref<4x8xf32>
  plan.input "dy" %dy data : memref<4x8xf32>
  %dw = plan.buffer %dev gradient : memref<16x8xf32>
  %db = plan.buffer %dev gradient : memref<8xf32>
  %dz = plan.buffer %dev activation : memref<4x8xf32>
  %shard = plan.buffer %dev gradient : memref<3xf32>
  %xt = plan.view %x[0] : memref<4x16xf32> to memref<16x4xf32, strided<[1, 16]>>
  // CHECK: %[[SUMMED:.*]] = plan.event
  %summed = plan.event
  %scattered = plan.event
  // CHECK: plan.call @matmul({{.*}}) writes [2, 3] {bias_grad_b}
  plan.call @matmul(%xt, %dy, %dw) writes [2] : memref<16x4xf32, strided<[1, 16]>>, memref<4x8xf32>, memref<16x8xf32>
  // CHECK: plan.launch @relu({{.*}}) writes [1] signal(%[[SUMMED]])
  plan.launch @relu(%dy, %dz) writes [1] : memref<4x8xf32>, memref<4x8xf32>
  // A release is not a command that could signal.
  plan.release %dz : memref<4x8xf32>
  // CHECK-NOT: plan.launch
  plan.launch @sum(%dy, %db) writes [1] signal(%summed) : memref<4x8xf32>, memref<8xf32>
  // CHECK: plan.reduce_scatter {{.*}} wait(%[[SUMMED]])
  plan.reduce_scatter %db -> %shard average elements [8] chunks [3] stream("comm") wait(%summed) signal(%scattered) : memref<8xf32> -> memref<3xf32>
  plan.launch @relu3(%shard, %shard) writes [1] wait(%scattered) : memref<3xf32>, memref<3xf32>
}
func.func private @sum(%x: tensor<4x8xf32>) -> tensor<8xf32> attributes {plan.kernel} {
  %0 = train.reduce_sum %x axes [0] : (tensor<4x8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @relu(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {plan.kernel} {
  %0 = train.relu %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func private @relu3(%x: tensor<3xf32>) -> tensor<3xf32> attributes {plan.kernel} {
  %0 = train.relu %x : tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// It signals already: one event is enough, and nobody waits for it twice.
// CHECK-LABEL: plan.program @signals_already
plan.program @signals_already ranks(1) {
  %dev = plan.arena device
  %host = plan.arena host
  %x = plan.buffer %dev input : memref<4x16xf32>
  plan.input "x" %x data : memref<4x16xf32>
  %dy = plan.buffer %dev input : memref<4x8xf32>
  plan.input "dy" %dy data : memref<4x8xf32>
  %dw = plan.buffer %dev gradient : memref<16x8xf32>
  %db = plan.buffer %dev gradient : memref<8xf32>
  %dz = plan.buffer %dev activation : memref<4x8xf32>
  %h = plan.buffer %host activation : memref<4x8xf32>
  %hb = plan.buffer %host gradient : memref<8xf32>
  %hw = plan.buffer %host gradient : memref<16x8xf32>
  %xt = plan.view %x[0] : memref<4x16xf32> to memref<16x4xf32, strided<[1, 16]>>
  // CHECK: %[[E:.*]] = plan.event
  // CHECK-NOT: plan.event
  %e = plan.event
  %summed = plan.event
  // CHECK: plan.call @matmul({{.*}}) writes [2, 3] {bias_grad_b}
  plan.call @matmul(%xt, %dy, %dw) writes [2] : memref<16x4xf32, strided<[1, 16]>>, memref<4x8xf32>, memref<16x8xf32>
  // CHECK: plan.launch @relu({{.*}}) writes [1] signal(%[[E]])
  plan.launch @relu(%dy, %dz) writes [1] signal(%e) : memref<4x8xf32>, memref<4x8xf32>
  // CHECK-NOT: plan.launch
  plan.launch @sum(%dy, %db) writes [1] signal(%summed) : memref<4x8xf32>, memref<8xf32>
  // CHECK: plan.copy {{.*}} stream("a") wait(%[[E]])
  plan.copy %db -> %hb stream("a") wait(%summed) : memref<8xf32> -> memref<8xf32>
  // CHECK: plan.copy {{.*}} stream("b") wait(%[[E]])
  plan.copy %dw -> %hw stream("b") wait(%summed, %e) : memref<16x8xf32> -> memref<16x8xf32>
  // CHECK: plan.copy {{.*}} stream("c") wait(%[[E]])
  plan.copy %dz -> %h stream("c") wait(%e, %summed) : memref<4x8xf32> -> memref<4x8xf32>
}
func.func private @sum(%x: tensor<4x8xf32>) -> tensor<8xf32> attributes {plan.kernel} {
  %0 = train.reduce_sum %x axes [0] : (tensor<4x8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @relu(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {plan.kernel} {
  %0 = train.relu %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// A matrix that is written again between the product and its sum is another.
// CHECK-LABEL: plan.program @written_again
plan.program @written_again ranks(1) {
  %dev = plan.arena device
  %x = plan.buffer %dev input : memref<4x16xf32>
  plan.input "x" %x data : memref<4x16xf32>
  %dy = plan.buffer %dev input : memref<4x8xf32>
  plan.input "dy" %dy data : memref<4x8xf32>
  %dz = plan.buffer %dev activation : memref<4x8xf32>
  %dw = plan.buffer %dev gradient : memref<16x8xf32>
  %db = plan.buffer %dev gradient : memref<8xf32>
  %xt = plan.view %x[0] : memref<4x16xf32> to memref<16x4xf32, strided<[1, 16]>>
  plan.launch @relu(%dy, %dz) writes [1] : memref<4x8xf32>, memref<4x8xf32>
  plan.call @matmul(%xt, %dz, %dw) writes [2] : memref<16x4xf32, strided<[1, 16]>>, memref<4x8xf32>, memref<16x8xf32>
  plan.launch @relu(%dz, %dz) writes [1] : memref<4x8xf32>, memref<4x8xf32>
  // CHECK: plan.launch @sum
  plan.launch @sum(%dz, %db) writes [1] : memref<4x8xf32>, memref<8xf32>
}
func.func private @sum(%x: tensor<4x8xf32>) -> tensor<8xf32> attributes {plan.kernel} {
  %0 = train.reduce_sum %x axes [0] : (tensor<4x8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @relu(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {plan.kernel} {
  %0 = train.relu %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
