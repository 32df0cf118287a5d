// A sum over gradients that updates depend on: reduced once, behind the last
// reduction, the same on all ranks; on every stage, on grids of one and two
// axes.
// RUN: zero-opt %s --zero-annotate=ranks=4 --zero-partition=stage=0 --zero-verify | FileCheck %s --check-prefixes=CHECK,S0
// RUN: zero-opt %s --zero-annotate=ranks=4 --zero-partition=stage=1 --zero-verify | FileCheck %s --check-prefixes=CHECK,SHARD,ONE
// RUN: zero-opt %s --zero-annotate=ranks=4 --zero-partition=stage=2 --zero-verify | FileCheck %s --check-prefixes=CHECK,SHARD,ONE
// RUN: zero-opt %s --zero-annotate=ranks=4 --zero-partition=stage=3 --zero-verify | FileCheck %s --check-prefixes=CHECK,SHARD,ONE
// RUN: zero-opt %s --zero-annotate=grid=2,4 --zero-partition=stage=2 --zero-verify | FileCheck %s --check-prefixes=CHECK,SHARD,TWO
// RUN: zero-opt %s --zero-annotate=grid=2,4 --zero-partition='stage=3 shard-axes=all' --zero-verify | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: zero-opt %s --zero-pipeline='ranks=4 stage=3' -o /dev/null

zero.param @w : tensor<10x4xf32>
zero.param @s : tensor<f32>
zero.param @v : tensor<6xf32>
// A state of the step itself is whole on all ranks.
// CHECK: zero.state @calls : tensor<i64> zeros
zero.state @calls : tensor<i64> zeros

// CHECK-LABEL: func.func @step
// CHECK-SAME: tensor<f64> {zero.across = "same", zero.output = "grad_norm"}, tensor<f64> {zero.across = "same", zero.output = "grad_norm_sq"}
func.func @step(%x: tensor<10x4xf32> {zero.input = "x"}, %y: tensor<f32> {zero.input = "y"}, %z: tensor<6xf32> {zero.input = "z"}, %lr: tensor<f32> {zero.hyper = "lr"})
    -> (tensor<f64> {zero.output = "grad_norm", zero.across = "same"}, tensor<f64> {zero.output = "grad_norm_sq", zero.across = "same"}) {
  %w = zero.read @w : tensor<10x4xf32>
  %s = zero.read @s : tensor<f32>
  %v = zero.read @v : tensor<6xf32>
  %c = zero.read @calls : tensor<i64>
  // S0: zero.all_reduce %{{.*}} average on @dp : (tensor<10x4xf32>)
  // SHARD: zero.reduce_scatter %{{.*}} average {{.*}} -> tensor<3x4xf32>
  %g = train.exp %x : tensor<10x4xf32>
  %h = train.exp %y : tensor<f32>
  // The sum is of two gradients; a third one follows, whose reduction is last.
  %n = train.sum_squares %g, %h : (tensor<10x4xf32>, tensor<f32>) -> tensor<f64>
  %f, %norm, %o = train.gradient_factor %n {max_norm = 1.0 : f64} : (tensor<f64>) -> (tensor<f32>, tensor<f64>, tensor<i1>)
  %c1 = train.next_step %c, %o : (tensor<i64>, tensor<i1>) -> tensor<i64>
  zero.assign @calls, %c1 : tensor<i64>
  %k = train.exp %z : tensor<6xf32>
  // S0: zero.all_reduce %{{.*}} average {{.*}} (tensor<6xf32>)
  // S0: %[[N:.*]] = train.sum_squares %{{.*}}, %{{.*}} : (tensor<10x4xf32>, tensor<f32>)
  // S0-NOT: zero.all_reduce
  // SHARD: zero.reduce_scatter %{{.*}} average {{.*}} -> tensor<2xf32>
  // What every rank has whole counts once.
  // SHARD: %[[REST:.*]] = train.sum_squares %{{.*}} : (tensor<f32>)
  // SHARD-NEXT: %[[FOUR:.*]] = arith.constant dense<4.0
  // SHARD-NEXT: %[[PART:.*]] = arith.divf %[[REST]], %[[FOUR]]
  // SHARD-NEXT: %[[OWN:.*]] = train.sum_squares %{{.*}} : (tensor<3x4xf32>)
  // SHARD-NEXT: %[[BOTH:.*]] = arith.addf %[[OWN]], %[[PART]]
  // ONE-NEXT: %[[N:.*]] = zero.all_reduce %[[BOTH]] on @dp : (tensor<f64>)
  // Replicas have the same shards: the sum is over the inner axis.
  // TWO-NEXT: %[[N:.*]] = zero.all_reduce %[[BOTH]] on @hsdp axes [1] : (tensor<f64>)
  // ALL: zero.all_reduce %{{.*}} on @hsdp axes [0, 1] : (tensor<f64>)
  // CHECK: %[[F:.*]], %[[NORM:.*]], %[[O:.*]] = train.gradient_factor
  // CHECK: %[[C1:.*]] = train.next_step %{{.*}}, %[[O]]
  // CHECK: zero.assign @calls, %[[C1]]
  // CHECK: train.sgd {{.*}} scale %[[F]] skip %[[O]]
  %w1 = train.sgd %w, %g, %lr scale %f skip %o : (tensor<10x4xf32>, tensor<10x4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<10x4xf32>
  zero.assign @w, %w1 : tensor<10x4xf32>
  %s1 = train.sgd %s, %h, %lr scale %f : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  zero.assign @s, %s1 : tensor<f32>
  %v1 = train.sgd %v, %k, %lr : (tensor<6xf32>, tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
  zero.assign @v, %v1 : tensor<6xf32>
  // CHECK: return %[[NORM]]
  return %norm, %n : tensor<f64>, tensor<f64>
}
