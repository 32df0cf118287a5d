// What zero-partition refuses of sums over micro-batches that are cut.
// RUN: zero-opt %s --split-input-file --verify-diagnostics --zero-partition=stage=2

shard.grid @dp(shape = 4)
zero.param @w : tensor<4xf32>
zero.state @w.grad of @w : tensor<4xf32> zeros accumulator
func.func @step(%g: tensor<4xf32>, %lr: tensor<f32> {zero.hyper = "lr"}) -> (tensor<4xf32> {zero.output = "g"}) {
  %w = zero.read @w : tensor<4xf32>
  %a = zero.read @w.grad : tensor<4xf32>
  %s = train.accumulate %a, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %n = train.sgd %w, %s, %lr : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  zero.assign @w, %n : tensor<4xf32>
  %z = arith.constant dense<0.0> : tensor<4xf32>
  zero.assign @w.grad, %z : tensor<4xf32>
  // expected-error @below {{uses the sum over micro-batches @w.grad, which exists in shards only from stage 2 on}}
  return %s : tensor<4xf32>
}
