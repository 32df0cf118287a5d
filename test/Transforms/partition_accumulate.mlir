// What each stage reduces in which function of a step of several micro-batches,
// with masters of a bf16 parameter.
// RUN: zero-opt %s --zero-annotate=ranks=4 --zero-partition=stage=0 --zero-verify | FileCheck %s --check-prefixes=CHECK,WHOLE,S0
// RUN: zero-opt %s --zero-annotate=ranks=4 --zero-partition=stage=1 --zero-verify | FileCheck %s --check-prefixes=CHECK,WHOLE,S1
// RUN: zero-opt %s --zero-annotate=ranks=4 --zero-partition=stage=2 --zero-verify | FileCheck %s --check-prefixes=CHECK,SHARD
// RUN: zero-opt %s --zero-annotate=ranks=4 --zero-partition=stage=3 --zero-release --zero-verify | FileCheck %s --check-prefixes=CHECK,SHARD,S3
// RUN: zero-opt %s --zero-annotate=grid=2,4 --zero-partition=stage=2 --zero-verify | FileCheck %s --check-prefixes=CHECK,HYBRID
// RUN: zero-opt %s --zero-pipeline='grid=2,4 stage=3' -o /dev/null

module attributes {zero.micro_batches = 4 : i64} {
  zero.param @w : tensor<10x4xbf16>
  zero.param @s : tensor<f32>
  zero.param @mean : tensor<4xf32> zeros buffer
  // S0: zero.state @w.master of @w : tensor<10x4xf32>
  // S1: zero.state @w.master of @w : !zero.sharded
  zero.state @w.master of @w : tensor<10x4xf32> init("w.safetensors", "w")
  // WHOLE: zero.state @w.grad of @w : tensor<10x4xf32> zeros accumulator
  // SHARD: zero.state @w.grad of @w : !zero.sharded<10x4xf32, @dp, dim = 0> zeros accumulator
  zero.state @w.grad of @w : tensor<10x4xf32> zeros accumulator
  // CHECK: zero.state @s.grad of @s : tensor<f32> zeros accumulator
  zero.state @s.grad of @s : tensor<f32> zeros accumulator
  // CHECK: zero.state @loss_sum : tensor<f32> zeros accumulator
  zero.state @loss_sum : tensor<f32> zeros accumulator

  // CHECK-LABEL: func.func @accumulate
  func.func @accumulate(%x: tensor<10x4xf32> {zero.input = "x"}, %y: tensor<4xf32> {zero.input = "y"}) {
    %seed = train.loss_seed {micro_batches = 4 : i64} : () -> tensor<f32>
    %w = zero.read @w : tensor<10x4xbf16>
    %s = zero.read @s : tensor<f32>
    zero.assign @mean, %y : tensor<4xf32>
    // The forward pass is found by the sum of the loss: one gather, before it.
    // S3: %[[W:.*]] = zero.all_gather %{{.*}} on @dp : (!zero.sharded<10x4xbf16, @dp, dim = 0>) -> tensor<10x4xbf16>
    // S3-NEXT: train.reduce_sum %[[W]]
    %loss = train.reduce_sum %w axes [0, 1] : (tensor<10x4xbf16>) -> tensor<bf16>
    %wide = train.cast %loss : tensor<bf16> to tensor<f32>
    %ls = zero.read @loss_sum : tensor<f32>
    %l = train.accumulate %ls, %wide : (tensor<f32>, tensor<f32>) -> tensor<f32>
    zero.assign @loss_sum, %l : tensor<f32>
    // S3: train.mul %[[W]]
    %t = train.mul %w, %w : tensor<10x4xbf16>
    %g = train.mul %x, %seed : (tensor<10x4xf32>, tensor<f32>) -> tensor<10x4xf32>
    // WHOLE-NOT: zero.reduce_scatter
    // WHOLE-NOT: zero.all_reduce
    // WHOLE: train.accumulate %{{.*}} : (tensor<10x4xf32>, tensor<10x4xf32>) -> tensor<10x4xf32>
    // SHARD: %[[R:.*]] = zero.reduce_scatter %{{.*}} average on @dp : (tensor<10x4xf32>) -> tensor<3x4xf32>
    // SHARD-NEXT: %[[L:.*]] = zero.local %{{.*}} on @dp : !zero.sharded<10x4xf32, @dp, dim = 0> -> tensor<3x4xf32>
    // SHARD-NEXT: %[[A:.*]] = train.accumulate %[[L]], %[[R]] : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    // SHARD: zero.assign @w.grad, %[[A]] : tensor<3x4xf32>
    // SHARD-NOT: zero.all_reduce
    // HYBRID: zero.reduce_scatter %{{.*}} average on @hsdp axes [1]
    // HYBRID-NOT: zero.all_reduce
    %a = zero.read @w.grad : tensor<10x4xf32>
    %b = train.accumulate %a, %g : (tensor<10x4xf32>, tensor<10x4xf32>) -> tensor<10x4xf32>
    zero.assign @w.grad, %b : tensor<10x4xf32>
    %h = train.mul %s, %seed : tensor<f32>
    %c = zero.read @s.grad : tensor<f32>
    %d = train.accumulate %c, %h : (tensor<f32>, tensor<f32>) -> tensor<f32>
    zero.assign @s.grad, %d : tensor<f32>
    return
  }

  // CHECK-LABEL: func.func @step
  func.func @step(%x: tensor<10x4xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) -> (tensor<f64> {zero.output = "grad_norm_sq"}) {
    %seed = train.loss_seed {micro_batches = 4 : i64} : () -> tensor<f32>
    %m = zero.read @w.master : tensor<10x4xf32>
    %s = zero.read @s : tensor<f32>
    // WHOLE: %[[SUM:.*]] = train.accumulate %{{.*}} : (tensor<10x4xf32>, tensor<10x4xf32>)
    // S0: %[[G:.*]] = zero.all_reduce %[[SUM]] average on @dp
    // S1: %[[G:.*]] = zero.reduce_scatter %[[SUM]] average on @dp
    // SHARD: %[[R:.*]] = zero.reduce_scatter %{{.*}} average on @dp : (tensor<10x4xf32>) -> tensor<3x4xf32>
    // SHARD: %[[G:.*]] = train.accumulate %{{.*}}, %[[R]]
    // SHARD-NOT: zero.reduce_scatter
    // The chunk of the sum crosses the replicas once.
    // HYBRID: zero.reduce_scatter %{{.*}} average on @hsdp axes [1]
    // HYBRID: %[[SUM:.*]] = train.accumulate
    // HYBRID: %[[G:.*]] = zero.all_reduce %[[SUM]] average on @hsdp : (tensor<3x4xf32>)
    %g = train.mul %x, %seed : (tensor<10x4xf32>, tensor<f32>) -> tensor<10x4xf32>
    %a = zero.read @w.grad : tensor<10x4xf32>
    %b = train.accumulate %a, %g : (tensor<10x4xf32>, tensor<10x4xf32>) -> tensor<10x4xf32>
    // What is never cut is summed whole, and reduced once at every stage.
    // CHECK: zero.all_reduce %{{.*}} average {{.*}} : (tensor<f32>) -> tensor<f32>
    %h = train.mul %s, %seed : tensor<f32>
    %c = zero.read @s.grad : tensor<f32>
    %d = train.accumulate %c, %h : (tensor<f32>, tensor<f32>) -> tensor<f32>
    // CHECK: train.sum_squares
    %n = train.sum_squares %b, %d : (tensor<10x4xf32>, tensor<f32>) -> tensor<f64>
    // S0: %[[NEW:.*]] = train.sgd %{{.*}}, %[[G]], %{{.*}}
    // S0: %[[N16:.*]] = train.cast %[[NEW]] : tensor<10x4xf32> to tensor<10x4xbf16>
    // S0: zero.assign @w.master, %[[NEW]]
    // S0: zero.assign @w, %[[N16]]
    // S1: %[[NEW:.*]] = train.sgd %{{.*}}, %[[G]], %{{.*}} : (tensor<3x4xf32>
    // S1: %[[N16:.*]] = train.cast %[[NEW]] : tensor<3x4xf32> to tensor<3x4xbf16>
    // S1: zero.assign @w.master, %[[NEW]] : tensor<3x4xf32>
    // S1: %[[FULL:.*]] = zero.all_gather %[[N16]] on @dp : (tensor<3x4xbf16>) -> tensor<10x4xbf16>
    // S1: zero.assign @w, %[[FULL]]
    // SHARD: train.sgd %{{.*}}, %[[G]], %{{.*}} : (tensor<3x4xf32>
    // S3: zero.assign @w, %{{.*}} : tensor<3x4xbf16>
    // HYBRID: train.sgd %{{.*}}, %[[G]], %{{.*}} : (tensor<3x4xf32>
    %w1 = train.sgd %m, %b, %lr : (tensor<10x4xf32>, tensor<10x4xf32>, tensor<f32>) -> tensor<10x4xf32>
    zero.assign @w.master, %w1 : tensor<10x4xf32>
    %n16 = train.cast %w1 : tensor<10x4xf32> to tensor<10x4xbf16>
    zero.assign @w, %n16 : tensor<10x4xbf16>
    %s1 = train.sgd %s, %d, %lr : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
    zero.assign @s, %s1 : tensor<f32>
    %zero = arith.constant dense<0.0> : tensor<10x4xf32>
    // WHOLE: zero.assign @w.grad, %{{.*}} : tensor<10x4xf32>
    // SHARD: zero.assign @w.grad, %{{.*}} : tensor<3x4xf32>
    zero.assign @w.grad, %zero : tensor<10x4xf32>
    %none = arith.constant dense<0.0> : tensor<f32>
    zero.assign @s.grad, %none : tensor<f32>
    %ls = zero.read @loss_sum : tensor<f32>
    %l = train.accumulate %ls, %none : (tensor<f32>, tensor<f32>) -> tensor<f32>
    zero.assign @loss_sum, %none : tensor<f32>
    return %n : tensor<f64>
  }
}
