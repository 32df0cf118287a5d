// A chunk that stays of a gathered parameter has storage of its own: a copy of the
// part over the last axis, while the state at rest is cut over all ranks.
// RUN: zero-opt %s --plan-lower | FileCheck %s
// RUN: zero-opt %s --plan-lower --zero-verify --plan-allocate -o /dev/null

// CHECK: plan.program @step ranks(4) grid [2, 2]
// Ten rows in parts of three: two rows of padding on all ranks together.
// CHECK: %[[W:.*]] = plan.buffer %{{.*}} parameter padding(32) : memref<3x4xf32>
// CHECK: plan.parameter "w" %[[W]] trained shape [10, 4] shards(4)
// CHECK: %[[FULL:.*]] = plan.buffer %{{.*}} gathered capacity(192)
// CHECK: %[[PART:.*]] = plan.view %[[FULL]][0] rank_stride(20) : memref<10x4xf32> to memref<5x4xf32>
// CHECK: plan.all_gather %[[W]] -> %[[FULL]] elements [40] chunks [12] label("w")
// CHECK: plan.copy %[[PART]] -> %[[OWN:[^ ]*]] :
// CHECK: plan.release %[[FULL]]
// CHECK: plan.all_gather %[[OWN]] -> %{{.*}} elements [40] chunks [20] axes [1] label("w")
module attributes {zero.stage = 3 : i64} {
  shard.grid @hsdp(shape = 2x2)
  zero.param @w : !zero.sharded<10x4xf32, @hsdp, axes = [0, 1], dim = 0>
  func.func @step(%x: tensor<8x4xf32> {zero.input = "x"}) -> (tensor<8x10xf32> {zero.output = "y"}) {
    %s = zero.read @w : !zero.sharded<10x4xf32, @hsdp, axes = [0, 1], dim = 0>
    %w = zero.all_gather %s on @hsdp axes [0, 1] : (!zero.sharded<10x4xf32, @hsdp, axes = [0, 1], dim = 0>) -> tensor<10x4xf32>
    %c = zero.reshard %w on @hsdp axes [1] : (tensor<10x4xf32>) -> tensor<5x4xf32>
    zero.release %w : tensor<10x4xf32>
    %v = zero.all_gather %c on @hsdp axes [1] : (tensor<5x4xf32>) -> tensor<10x4xf32>
    %y = train.matmul %x, %v {transpose_b} : (tensor<8x4xf32>, tensor<10x4xf32>) -> tensor<8x10xf32>
    zero.release %v : tensor<10x4xf32>
    return %y : tensor<8x10xf32>
  }
}
