// Each stage's updates run in place, and shards are views: no byte is copied
// that the plan does not show.
// RUN: zero-opt %s -split-input-file --plan-lower --cse | FileCheck %s

// Stage 1: the update works on the own chunk of the whole parameter, and the
// gather writes the others' chunks beside it. 10 rows on 4 ranks are chunks of
// 3, so the parameter is padded to 12 rows.
// CHECK-LABEL: plan.program @step ranks(4)
// CHECK-SAME: zero.stage = 1
module attributes {zero.stage = 1 : i64, zero.optimizer = "sgd"} {
  shard.grid @dp(shape = 4)
  zero.param @w : tensor<10x8xf32> init("w.safetensors")
  zero.state @w.momentum of @w : !zero.sharded<10x8xf32, @dp, dim = 0> zeros
  func.func private @sgd(%p: tensor<3x8xf32>, %g: tensor<3x8xf32>, %m: tensor<3x8xf32>, %lr: tensor<f32>)
      -> (tensor<3x8xf32>, tensor<3x8xf32>) attributes {plan.kernel}
  // CHECK-DAG: %[[W:.*]] = plan.buffer %{{.*}} parameter capacity(384) padding(256) : memref<10x8xf32>
  // CHECK-DAG: plan.parameter "w" %[[W]] trained init("w.safetensors") : memref<10x8xf32>
  // CHECK-DAG: %[[M:.*]] = plan.buffer %{{.*}} state padding(64) : memref<3x8xf32>
  // CHECK-DAG: plan.parameter "w.momentum" %[[M]] state of("w") shape [10, 8] : memref<3x8xf32>
  // CHECK-DAG: %[[LR:.*]] = plan.buffer %{{.*}} input : memref<f32>
  // CHECK-DAG: plan.input "lr" %[[LR]] learning_rate
  // CHECK-DAG: %[[OWN:.*]] = plan.view %[[W]][0] rank_stride(24) : memref<10x8xf32> to memref<3x8xf32>
  // The transposed operands of both products are strides, not copies.
  // CHECK: plan.call @matmul(%[[X:[^,]*]], %{{[^,]*}}, %[[H:.*]]) writes [2] : memref<4x8xf32>, memref<8x10xf32, strided<[1, 8]>>, memref<4x10xf32>
  // CHECK: plan.call @matmul(%{{[^,]*}}, %[[X]], %[[DW:.*]]) writes [2] : memref<10x4xf32, strided<[1, 10]>>, memref<4x8xf32>, memref<10x8xf32>
  // CHECK: plan.reduce_scatter %[[DW]] -> %[[G:.*]] average elements [80] chunks [24]
  // CHECK-NOT: plan.copy
  // CHECK: plan.launch @sgd(%[[OWN]], %[[G]], %[[M]], %[[LR]]) writes [0, 2]
  // CHECK: plan.all_gather %[[OWN]] -> %[[W]] elements [80] chunks [24]{{.*}} : memref<3x8xf32> -> memref<10x8xf32>
  // CHECK-NOT: plan.copy
  func.func @step(%x: tensor<4x8xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"},
                  %step: tensor<i64> {zero.hyper = "step"}) {
    %w = zero.read @w : tensor<10x8xf32>
    %t = train.transpose %w [1, 0] : (tensor<10x8xf32>) -> tensor<8x10xf32>
    %h = train.matmul %x, %t : (tensor<4x8xf32>, tensor<8x10xf32>) -> tensor<4x10xf32>
    %dw = train.matmul %h, %x {transpose_a} : (tensor<4x10xf32>, tensor<4x8xf32>) -> tensor<10x8xf32>
    %g = zero.reduce_scatter %dw average on @dp : (tensor<10x8xf32>) -> tensor<3x8xf32>
    %l = zero.local %w on @dp : tensor<10x8xf32> -> tensor<3x8xf32>
    %m = zero.read @w.momentum : !zero.sharded<10x8xf32, @dp, dim = 0>
    %ml = zero.local %m on @dp : !zero.sharded<10x8xf32, @dp, dim = 0> -> tensor<3x8xf32>
    %n:2 = plan.dispatch @sgd(%l, %g, %ml, %lr) tied [0, 2]
      : (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<f32>) -> (tensor<3x8xf32>, tensor<3x8xf32>)
    %full = zero.all_gather %n#0 on @dp : (tensor<3x8xf32>) -> tensor<10x8xf32>
    zero.assign @w, %full : tensor<10x8xf32>
    zero.assign @w.momentum, %n#1 : tensor<3x8xf32>
    return
  }
}

// -----

// Stage 3: a parameter is gathered into a buffer of its own and released; the
// gradient's shard is what is kept.
// CHECK-LABEL: plan.program @step ranks(2)
module attributes {zero.stage = 3 : i64} {
  shard.grid @dp(shape = 2)
  zero.param @w : !zero.sharded<8x8xf32, @dp, dim = 0>
  func.func private @sgd(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {plan.kernel}
  // CHECK-DAG: %[[S:.*]] = plan.buffer %{{.*}} parameter padding(0) : memref<4x8xf32>
  // CHECK-DAG: %[[W:.*]] = plan.buffer %{{.*}} gathered : memref<8x8xf32>
  // CHECK-DAG: %[[G:.*]] = plan.buffer %{{.*}} gradient padding(0) : memref<4x8xf32>
  // CHECK: plan.all_gather %[[S]] -> %[[W]] elements [64] chunks [32]
  // CHECK: plan.call @matmul(%{{.*}}, %[[W]], %[[H:.*]]) writes [2]
  // CHECK: plan.release %[[W]]
  // CHECK: plan.reduce_scatter %[[H]] -> %[[G]] average elements [64] chunks [32]
  // CHECK: plan.launch @sgd(%[[S]], %[[G]]) writes [0]
  func.func @step(%x: tensor<8x8xf32> {zero.input = "x"}) {
    %s = zero.read @w : !zero.sharded<8x8xf32, @dp, dim = 0>
    %w = zero.all_gather %s on @dp : (!zero.sharded<8x8xf32, @dp, dim = 0>) -> tensor<8x8xf32>
    %h = train.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    zero.release %w : tensor<8x8xf32>
    %g = zero.reduce_scatter %h average on @dp : (tensor<8x8xf32>) -> tensor<4x8xf32>
    %l = zero.local %s on @dp : !zero.sharded<8x8xf32, @dp, dim = 0> -> tensor<4x8xf32>
    %n = plan.dispatch @sgd(%l, %g) tied [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    zero.assign @w, %n : tensor<4x8xf32>
    return
  }
}

// -----

// The old value is read after the update, so the update works on a copy that
// is stored back once nobody reads the old value.
// CHECK-LABEL: plan.program @step ranks(1)
module {
  zero.param @w : tensor<4x4xf32>
  func.func private @sgd(%p: tensor<4x4xf32>, %g: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {plan.kernel}
  // CHECK: %[[W:.*]] = plan.buffer %{{.*}} parameter : memref<4x4xf32>
  // CHECK: plan.copy %[[W]] -> %[[OWN:.*]] : memref<4x4xf32> -> memref<4x4xf32>
  // CHECK: plan.launch @sgd(%[[OWN]], %{{.*}}) writes [0]
  // CHECK: plan.call @matmul(%{{.*}}, %[[W]], %{{.*}}) writes [2]
  // CHECK: plan.copy %[[OWN]] -> %[[W]]
  func.func @step(%x: tensor<4x4xf32> {zero.input = "x"}) -> (tensor<4x4xf32> {zero.output = "y"}) {
    %w = zero.read @w : tensor<4x4xf32>
    %n = plan.dispatch @sgd(%w, %x) tied [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %h = train.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    zero.assign @w, %n : tensor<4x4xf32>
    return %h : tensor<4x4xf32>
  }
}

// -----

// A product of a batch with one matrix is one large product; batches of both
// sides keep their dimension, and a broadcast one has stride 0.
// CHECK-LABEL: plan.program @step ranks(1)
module {
  // CHECK: plan.call @matmul({{.*}}) writes [2] : memref<6x4xf32>, memref<4x5xf32>, memref<6x5xf32>
  // CHECK: plan.call @matmul({{.*}}) writes [2] : memref<2x3x4xf32>, memref<2x4x3xf32, strided<[12, 1, 4]>>, memref<2x3x3xf32>
  // CHECK: plan.call @matmul({{.*}}) writes [3] : memref<3x4xf32>, memref<4x5xf32>, memref<3x5xf32, strided<[0, 1]>>, memref<3x5xf32>
  func.func @step(%a: tensor<2x3x4xf32> {zero.input = "a"}, %w: tensor<4x5xf32> {zero.input = "w"},
                  %m: tensor<3x4xf32> {zero.input = "m"}, %b: tensor<5xf32> {zero.input = "b"})
      -> (tensor<2x3x5xf32> {zero.output = "p"}, tensor<2x3x3xf32> {zero.output = "q"}, tensor<3x5xf32> {zero.output = "r"}) {
    %p = train.matmul %a, %w : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>
    %q = train.matmul %a, %a {transpose_b} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
    %r = train.gemm %m, %w, %b : (tensor<3x4xf32>, tensor<4x5xf32>, tensor<5xf32>) -> tensor<3x5xf32>
    return %p, %q, %r : tensor<2x3x5xf32>, tensor<2x3x3xf32>, tensor<3x5xf32>
  }
}
