// Every op of the plan dialect survives a round trip through its syntax.
// RUN: zero-opt %s | zero-opt | FileCheck %s

func.func private @sgd(%p: tensor<3x8xf32>, %g: tensor<3x8xf32>) -> tensor<3x8xf32>
    attributes {plan.kernel} {
  return %p : tensor<3x8xf32>
}

// A kernel call at tensor level; the update takes over its parameter's storage.
// CHECK-LABEL: func.func @dispatch
func.func @dispatch(%p: tensor<3x8xf32>, %g: tensor<3x8xf32>) -> tensor<3x8xf32> {
  // CHECK: plan.dispatch @sgd(%{{.*}}, %{{.*}}) tied [0] : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %0 = plan.dispatch @sgd(%p, %g) tied [0] : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  return %0 : tensor<3x8xf32>
}

// CHECK-LABEL: plan.program @step ranks(4) window(384)
plan.program @step ranks(4) window(384) {
  // CHECK: %[[DEV:.*]] = plan.arena device bytes(4096)
  %dev = plan.arena device bytes(4096)
  // CHECK: plan.arena host bytes(64)
  %host = plan.arena host bytes(64)

  // Buffers, one of each kind.
  // CHECK: %[[P:.*]] = plan.buffer %[[DEV]][0] parameter padding(64) : memref<3x8xf32>
  %p = plan.buffer %dev[0] parameter padding(64) : memref<3x8xf32>
  %m = plan.buffer %dev[128] state padding(64) : memref<3x8xf32>
  %g = plan.buffer %dev[256] gradient padding(64) : memref<3x8xf32>
  // CHECK: %[[W:.*]] = plan.buffer %[[DEV]][384] gathered capacity(384) padding(256) : memref<10x8xf32>
  %w = plan.buffer %dev[384] gathered capacity(384) padding(256) : memref<10x8xf32>
  %a = plan.buffer %dev[768] activation : memref<10x8xf32>
  %x = plan.buffer %dev[1152] input : memref<2xi64>
  %c = plan.buffer %dev[1216] constant : memref<2xi1>
  %r = plan.buffer %dev[1280] persistent : memref<8xf32>
  %l = plan.buffer %dev[1344] activation : memref<f32>
  // CHECK: plan.buffer %{{.*}} activation : memref<16xf32>
  %h = plan.buffer %host activation : memref<16xf32>

  // A transposed operand, and the own shard of a whole tensor.
  // CHECK: plan.view %[[W]][0] : memref<10x8xf32> to memref<8x10xf32, strided<[1, 8]>>
  %t = plan.view %w[0] : memref<10x8xf32> to memref<8x10xf32, strided<[1, 8]>>
  // CHECK: plan.view %[[W]][0] rank_stride(24) : memref<10x8xf32> to memref<3x8xf32>
  %own = plan.view %w[0] rank_stride(24) : memref<10x8xf32> to memref<3x8xf32>
  // CHECK: plan.view %[[W]][0] : memref<10x8xf32> to memref<4x0xf32>
  %nothing = plan.view %w[0] : memref<10x8xf32> to memref<4x0xf32>

  // What binds buffers to names.
  // CHECK: plan.parameter "w" %[[P]] trained shape [10, 8] init("f.safetensors", "fc.w") tied ["head.w"] : memref<3x8xf32>
  plan.parameter "w" %p trained shape [10, 8] init("f.safetensors", "fc.w") tied ["head.w"] : memref<3x8xf32>
  // CHECK: plan.parameter "w.momentum" %{{.*}} state of("w") shape [10, 8] : memref<3x8xf32>
  plan.parameter "w.momentum" %m state of("w") shape [10, 8] : memref<3x8xf32>
  // CHECK: plan.parameter "bn.running_var" %{{.*}} buffer ones : memref<8xf32>
  plan.parameter "bn.running_var" %r buffer ones : memref<8xf32>
  // CHECK: plan.input "labels" %{{.*}} data bounds [0, 9] ignore(-100) : memref<2xi64>
  plan.input "labels" %x data bounds [0, 9] ignore(-100) : memref<2xi64>
  // CHECK: plan.constant %{{.*}}, dense<[true, false]> : tensor<2xi1> : memref<2xi1>
  plan.constant %c, dense<[true, false]> : tensor<2xi1> : memref<2xi1>

  // Commands on two streams, ordered by an event.
  // CHECK: %[[E:.*]] = plan.event
  %e = plan.event
  // CHECK: plan.all_gather %[[P]] -> %[[W]] elements [80] chunks [24] stream("gather") signal(%[[E]]) : memref<3x8xf32> -> memref<10x8xf32>
  plan.all_gather %p -> %w elements [80] chunks [24] stream("gather") signal(%e) : memref<3x8xf32> -> memref<10x8xf32>
  // CHECK: plan.call @matmul(%{{.*}}) writes [2] wait(%[[E]]) {{.*}}
  plan.call @matmul(%w, %t, %a) writes [2] wait(%e) : memref<10x8xf32>, memref<8x10xf32, strided<[1, 8]>>, memref<10x8xf32>
  // CHECK: plan.release %[[W]] : memref<10x8xf32>
  plan.release %w : memref<10x8xf32>
  // CHECK: plan.reduce_scatter %{{.*}} -> %{{.*}} average elements [80] chunks [24] : memref<10x8xf32> -> memref<3x8xf32>
  plan.reduce_scatter %a -> %g average elements [80] chunks [24] : memref<10x8xf32> -> memref<3x8xf32>
  // CHECK: plan.launch @sgd(%[[P]], %{{.*}}) writes [0] : memref<3x8xf32>, memref<3x8xf32>
  plan.launch @sgd(%p, %g) writes [0] : memref<3x8xf32>, memref<3x8xf32>
  // CHECK: plan.all_reduce %{{.*}} -> %{{.*}} elements [8] chunks [8] : memref<8xf32> -> memref<8xf32>
  plan.all_reduce %r -> %r elements [8] chunks [8] : memref<8xf32> -> memref<8xf32>
  // CHECK: plan.fill %{{.*}} : memref<10x8xf32>
  plan.fill %a : memref<10x8xf32>
  // CHECK: plan.copy %[[P]] -> %{{.*}} stream("copy") : memref<3x8xf32> -> memref<3x8xf32>
  plan.copy %p -> %m stream("copy") : memref<3x8xf32> -> memref<3x8xf32>
  // CHECK: plan.output "loss" %{{.*}} mean : memref<f32>
  plan.output "loss" %l mean : memref<f32>
}

// A grid of 2 replicas of 4 shards, what the compiler knows of the program, and
// collectives over one axis each.
// CHECK-LABEL: plan.program @hsdp ranks(8) grid [2, 4] window(64) budget(4096) order(7)
plan.program @hsdp ranks(8) grid [2, 4] window(64) budget(4096) order(7) {
  // CHECK: plan.arena device bytes(4096) lower_bound(4000)
  %dev = plan.arena device bytes(4096) lower_bound(4000)
  %p = plan.buffer %dev[0] parameter : memref<2x8xf32>
  %w = plan.buffer %dev[64] gathered : memref<8x8xf32>
  plan.parameter "w" %p trained shape [8, 8] : memref<2x8xf32>
  // CHECK: plan.all_gather %{{.*}} elements [64] chunks [16] axes [1] label("w") stream("all_gather") : memref<2x8xf32> -> memref<8x8xf32>
  plan.all_gather %p -> %w elements [64] chunks [16] axes [1] label("w") stream("all_gather") : memref<2x8xf32> -> memref<8x8xf32>
  // CHECK: plan.all_reduce %{{.*}} average elements [16] chunks [16] axes [0] stream("all_reduce.0") : memref<2x8xf32> -> memref<2x8xf32>
  plan.all_reduce %p -> %p average elements [16] chunks [16] axes [0] stream("all_reduce.0") : memref<2x8xf32> -> memref<2x8xf32>
  // The shard of a rank is its place on the last axis: 4 of them, not 8.
  // CHECK: plan.view %{{.*}}[0] rank_stride(16)
  %v = plan.view %w[0] rank_stride(16) : memref<8x8xf32> to memref<2x8xf32>
}
