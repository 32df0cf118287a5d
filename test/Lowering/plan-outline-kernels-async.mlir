// What a collective in flight sends is computed before it starts and what it
// brings is used behind the wait; kernels are the same as without the start.
// RUN: zero-opt %s --plan-outline-kernels | FileCheck %s

// CHECK-LABEL: func.func @step
// CHECK: %[[A:.*]] = plan.dispatch @[[EXP:exp_[a-z0-9_]*]](%[[X:.*]]) tied [-1]
// CHECK-NEXT: %[[F:.*]] = zero.all_reduce_start %[[A]] on @dp
// The product runs while the sum is on its way.
// CHECK-NEXT: %[[M:.*]] = train.matmul
// CHECK-NEXT: %[[W:.*]] = zero.wait %[[F]]
// The negation, which nobody else reads, is part of the kernel that does.
// CHECK-NEXT: plan.dispatch @[[ADD:neg_add_[a-z0-9_]*]](%[[M]], %[[W]]) tied [-1]
// CHECK-NEXT: %[[B:.*]] = plan.dispatch @[[EXP]](%{{.*}}) tied [-1]
// CHECK-NEXT: %[[G:.*]] = zero.all_reduce %[[B]] on @dp
// CHECK-NEXT: %[[N:.*]] = train.matmul
// CHECK-NEXT: plan.dispatch @[[ADD]](%[[N]], %[[G]]) tied [-1]
shard.grid @dp(shape = 2)
func.func @step(%x: tensor<4x4xf32> {zero.input = "x"}, %z: tensor<4x4xf32> {zero.input = "z"})
    -> (tensor<4x4xf32> {zero.output = "y"}, tensor<4x4xf32> {zero.output = "v"}) {
  %a = train.exp %x : tensor<4x4xf32>
  %f = zero.all_reduce_start %a on @dp : (tensor<4x4xf32>) -> !zero.future<tensor<4x4xf32>>
  %m = train.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %n = train.neg %m : tensor<4x4xf32>
  %w = zero.wait %f : !zero.future<tensor<4x4xf32>>
  %s = train.add %n, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = train.exp %z : tensor<4x4xf32>
  %g = zero.all_reduce %b on @dp : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %m2 = train.matmul %z, %z : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %n2 = train.neg %m2 : tensor<4x4xf32>
  %y = train.add %n2, %g : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %s, %y : tensor<4x4xf32>, tensor<4x4xf32>
}
