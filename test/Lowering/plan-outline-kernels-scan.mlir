// A loop is a kernel of its own, whose last result is memory for its temporaries.
// RUN: zero-opt %s --plan-outline-kernels | FileCheck %s

// CHECK: %[[R:.*]]:2 = plan.dispatch @scan_2x3(%{{.*}}, %{{.*}}) tied [-1, -1] : (tensor<2x3xf32>, tensor<5x2x3xf32>) -> (tensor<2x3xf32>, tensor<96xi8>)
// CHECK: return %[[R]]#0
// CHECK: func.func private @scan_2x3(
// CHECK-SAME: plan.scratch_result
// CHECK: train.scan
// CHECK: %[[E:.*]] = tensor.empty() : tensor<96xi8>
// CHECK: return %{{.*}}, %[[E]]
func.func @step(%h0: tensor<2x3xf32>, %xs: tensor<5x2x3xf32>) -> tensor<2x3xf32> {
  %last = train.scan init(%h0) over(%xs) steps 5 : (tensor<2x3xf32>, tensor<5x2x3xf32>) -> tensor<2x3xf32> {
  ^bb0(%h: tensor<2x3xf32>, %x: tensor<2x3xf32>):
    %s = train.add %x, %h : tensor<2x3xf32>
    %n = train.tanh %s : tensor<2x3xf32>
    train.yield %n : tensor<2x3xf32>
  }
  return %last : tensor<2x3xf32>
}
