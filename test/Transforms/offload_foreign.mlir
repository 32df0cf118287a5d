// RUN: zero-opt %s --zero-offload=rules=optimizer=host,parameters=host --zero-verify | FileCheck %s

// Steps that others wrote: a parameter that is read twice is read once, and a
// scalar that an update takes out of its tensor is taken out of it on the host.
module attributes {zero.stage = 0 : i64} {
  shard.grid @dp(shape = 2)
  zero.param @w : tensor<4xf32>

  // CHECK-LABEL: func.func @step
  // CHECK: %[[LR:.*]] = zero.transfer %arg1 from device to host : (tensor<f32>) -> tensor<f32>
  // CHECK-COUNT-1: zero.read @w
  // CHECK-NOT: zero.read @w
  // CHECK: zero.on_host ({{.*}} = %[[LR]]
  // CHECK: tensor.extract %{{.*}}[] : tensor<f32>
  // CHECK-NEXT: linalg.generic
  func.func @step(%x: tensor<4xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %s = zero.read @w : tensor<4xf32>
    %y = arith.mulf %s, %x : tensor<4xf32>
    %r = zero.all_reduce %y average on @dp : (tensor<4xf32>) -> tensor<4xf32>
    %t = zero.read @w : tensor<4xf32>
    %e = tensor.extract %lr[] : tensor<f32>
    %n = linalg.generic {indexing_maps = [affine_map<(i)->(i)>, affine_map<(i)->(i)>], iterator_types = ["parallel"]}
        ins(%r : tensor<4xf32>) outs(%t : tensor<4xf32>) {
    ^bb0(%g: f32, %p: f32):
      %c = arith.mulf %g, %e : f32
      %v = arith.subf %p, %c : f32
      linalg.yield %v : f32
    } -> tensor<4xf32>
    zero.assign @w, %n : tensor<4xf32>
    return
  }
}
