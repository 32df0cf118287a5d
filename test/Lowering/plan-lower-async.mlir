// Collectives with a future run on the stream of their kind: a start waits for
// the compute command before it, the next compute command after a wait waits
// for it, and no wait is emitted that others imply.
// RUN: zero-opt %s -split-input-file --pass-pipeline='builtin.module(plan-lower,plan.program(cse,plan-allocate),zero-verify)' 2>/dev/null | FileCheck %s

// The first gather has no compute before it. The second one starts behind the
// wait for the first, which its channel implies. The reductions start behind
// the product that they read, and run beside what follows.
// CHECK-LABEL: plan.program @step ranks(2)
// CHECK-SAME: order(
// CHECK-DAG: %[[W:.*]] = plan.buffer %{{.*}} gathered : memref<8x8xf32>
// CHECK: plan.all_gather %[[P:.*]] -> %[[W:.*]] elements [64] chunks [32] label("w") stream("all_gather") signal(%[[EW:.*]]) :
// CHECK-NEXT: plan.all_gather %[[Q:.*]] -> %[[V:.*]] elements [64] chunks [32] label("v") stream("all_gather") signal(%[[EV:.*]]) :
// CHECK-NEXT: plan.call @matmul(%[[X:.*]], %[[W]], %[[H:.*]]) writes [2] wait(%[[EW]]) :
// CHECK-NEXT: plan.release %[[W]]
// CHECK-NEXT: plan.call @matmul(%[[H]], %[[V]], %[[H2:.*]]) writes [2] wait(%[[EV]]) signal(%[[E2:.*]]) :
// CHECK-NEXT: plan.release %[[V]]
// CHECK-NEXT: plan.reduce_scatter %[[H2]] -> %[[G:.*]] average elements [64] chunks [32] label("w") stream("reduce_scatter") wait(%[[E2]]) signal(%[[EG:.*]]) :
// CHECK-NEXT: plan.call @matmul(%[[H]], %[[X]], %[[H3:.*]]) writes [2] signal(%[[E3:.*]]) :
// CHECK-NEXT: plan.reduce_scatter %[[H3]] -> %[[G2:.*]] average elements [64] chunks [32] label("v") stream("reduce_scatter") wait(%[[E3]]) signal(%[[EG2:.*]]) :
// CHECK-NEXT: plan.launch @sgd(%[[P]], %[[G]]) writes [0] wait(%[[EG]]) :
// CHECK-NEXT: plan.launch @sgd(%[[Q]], %[[G2]]) writes [0] wait(%[[EG2]]) :
// CHECK-NEXT: }
module attributes {zero.stage = 3 : i64} {
  shard.grid @dp(shape = 2)
  zero.param @w : !zero.sharded<8x8xf32, @dp, dim = 0>
  zero.param @v : !zero.sharded<8x8xf32, @dp, dim = 0>
  func.func private @sgd(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {plan.kernel}
  func.func @step(%x: tensor<8x8xf32> {zero.input = "x"}) {
    %s = zero.read @w : !zero.sharded<8x8xf32, @dp, dim = 0>
    %t = zero.read @v : !zero.sharded<8x8xf32, @dp, dim = 0>
    %fw = zero.all_gather_start %s on @dp : (!zero.sharded<8x8xf32, @dp, dim = 0>) -> !zero.future<tensor<8x8xf32>>
    %w = zero.wait %fw : !zero.future<tensor<8x8xf32>>
    %fv = zero.all_gather_start %t on @dp : (!zero.sharded<8x8xf32, @dp, dim = 0>) -> !zero.future<tensor<8x8xf32>>
    %h = train.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    zero.release %w : tensor<8x8xf32>
    %v = zero.wait %fv : !zero.future<tensor<8x8xf32>>
    %h2 = train.matmul %h, %v : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    zero.release %v : tensor<8x8xf32>
    %fg = zero.reduce_scatter_start %h2 average on @dp : (tensor<8x8xf32>) -> !zero.future<tensor<4x8xf32>>
    %h3 = train.matmul %h, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %fg2 = zero.reduce_scatter_start %h3 average on @dp : (tensor<8x8xf32>) -> !zero.future<tensor<4x8xf32>>
    %g = zero.wait %fg : !zero.future<tensor<4x8xf32>>
    %l = zero.local %s on @dp : !zero.sharded<8x8xf32, @dp, dim = 0> -> tensor<4x8xf32>
    %n = plan.dispatch @sgd(%l, %g) tied [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    zero.assign @w, %n : tensor<4x8xf32>
    %g2 = zero.wait %fg2 : !zero.future<tensor<4x8xf32>>
    %l2 = zero.local %t on @dp : !zero.sharded<8x8xf32, @dp, dim = 0> -> tensor<4x8xf32>
    %n2 = plan.dispatch @sgd(%l2, %g2) tied [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    zero.assign @v, %n2 : tensor<4x8xf32>
    return
  }
}

// -----

// A gradient is summed in place, without a copy, even while compute goes on;
// where compute reads it in the meantime, the sum has a buffer of its own.
// CHECK-LABEL: plan.program @step ranks(2)
// CHECK: plan.all_reduce %[[A:.*]] -> %[[A]] average elements [16] chunks [16] stream("all_reduce")
// CHECK: plan.call @matmul
// CHECK: plan.all_reduce %[[B:.*]] -> %[[C:.*]] average elements [16] chunks [16] stream("all_reduce")
// CHECK-NOT: -> %[[B]]
// CHECK: plan.call @matmul(%[[B]], %{{.*}}) writes [2]
// CHECK-NOT: plan.copy
// CHECK: plan.call @matmul(%[[A]], %[[C]], %{{.*}}) writes [2] wait(%{{[^,]*}}) :
module {
  shard.grid @dp(shape = 2)
  func.func @step(%x: tensor<4x4xf32> {zero.input = "x"}) -> (tensor<4x4xf32> {zero.output = "y"}, tensor<4x4xf32> {zero.output = "z"}) {
    %a = train.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %fa = zero.all_reduce_start %a average on @dp : (tensor<4x4xf32>) -> !zero.future<tensor<4x4xf32>>
    %b = train.matmul %x, %x {transpose_a} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %fb = zero.all_reduce_start %b average on @dp : (tensor<4x4xf32>) -> !zero.future<tensor<4x4xf32>>
    %c = train.matmul %b, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %ra = zero.wait %fa : !zero.future<tensor<4x4xf32>>
    %rb = zero.wait %fb : !zero.future<tensor<4x4xf32>>
    %y = train.matmul %ra, %rb : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %y, %c : tensor<4x4xf32>, tensor<4x4xf32>
  }
}

// -----

// A 2-D grid: 2 replicas of 4 shards. The gather and the reduce-scatter stay in
// the shard axis; the sum of the shards over the replicas has its own channel
// and begins when the shard is there. An update waits for the last of them,
// which implies the others. 10 rows over 4 ranks: 2 rows too many, twice.
// CHECK-LABEL: plan.program @step ranks(8) grid [2, 4]
// CHECK: plan.buffer %{{.*}} parameter padding(128) : memref<3x8xf32>
// CHECK: plan.buffer %{{.*}} gathered capacity(384) padding(512) : memref<10x8xf32>
// CHECK: plan.all_gather %[[P:.*]] -> %[[W:.*]] elements [80] chunks [24] axes [1] label("w") stream("all_gather") signal(%[[EW:.*]]) :
// CHECK: plan.call @matmul(%{{.*}}) writes [2] wait(%[[EW]]) :
// CHECK: plan.call @matmul(%{{.*}}) writes [2] signal(%[[E:.*]]) :
// CHECK: plan.reduce_scatter %{{.*}} -> %[[G:.*]] average elements [80] chunks [24] axes [1] label("w") stream("reduce_scatter") wait(%[[E]]) signal(%[[EG:.*]]) :
// CHECK: plan.all_reduce %[[G]] -> %[[G]] average elements [24] chunks [24] axes [0] label("w") stream("all_reduce.0") wait(%[[EG]]) signal(%[[ES:.*]]) :
// CHECK: plan.launch @sgd(%[[P]], %[[G]]) writes [0] wait(%[[ES]]) :
module attributes {zero.stage = 3 : i64} {
  shard.grid @hsdp(shape = 2x4)
  zero.param @w : !zero.sharded<10x8xf32, @hsdp, axes = [1], dim = 0>
  func.func private @sgd(%p: tensor<3x8xf32>, %g: tensor<3x8xf32>) -> tensor<3x8xf32> attributes {plan.kernel}
  func.func @step(%x: tensor<4x10xf32> {zero.input = "x"}) {
    %s = zero.read @w : !zero.sharded<10x8xf32, @hsdp, axes = [1], dim = 0>
    %fw = zero.all_gather_start %s on @hsdp axes [1] : (!zero.sharded<10x8xf32, @hsdp, axes = [1], dim = 0>) -> !zero.future<tensor<10x8xf32>>
    %w = zero.wait %fw : !zero.future<tensor<10x8xf32>>
    %h = train.matmul %x, %w : (tensor<4x10xf32>, tensor<10x8xf32>) -> tensor<4x8xf32>
    zero.release %w : tensor<10x8xf32>
    %d = train.matmul %x, %h {transpose_a} : (tensor<4x10xf32>, tensor<4x8xf32>) -> tensor<10x8xf32>
    %fg = zero.reduce_scatter_start %d average on @hsdp axes [1] : (tensor<10x8xf32>) -> !zero.future<tensor<3x8xf32>>
    %g = zero.wait %fg : !zero.future<tensor<3x8xf32>>
    %fs = zero.all_reduce_start %g average on @hsdp axes [0] : (tensor<3x8xf32>) -> !zero.future<tensor<3x8xf32>>
    %sum = zero.wait %fs : !zero.future<tensor<3x8xf32>>
    %l = zero.local %s on @hsdp axes [1] : !zero.sharded<10x8xf32, @hsdp, axes = [1], dim = 0> -> tensor<3x8xf32>
    %n = plan.dispatch @sgd(%l, %sum) tied [0] : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    zero.assign @w, %n : tensor<3x8xf32>
    return
  }
}
