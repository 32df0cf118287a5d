// RUN: zero-opt %s --zero-offload=rules=parameters=host --split-input-file --verify-diagnostics

// What zero-offload asks of a step.
module attributes {zero.stage = 0 : i64} {
  shard.grid @dp(shape = 2)
  zero.param @w : tensor<4xf32>
  func.func @step(%x: tensor<4xf32> {zero.input = "x"}) -> tensor<4xf32> {
    zero.assign @w, %x : tensor<4xf32>
    // expected-error @below {{reads @w after it is assigned; zero-offload takes steps that read first}}
    %s = zero.read @w : tensor<4xf32>
    return %s : tensor<4xf32>
  }
}

// -----

module attributes {zero.stage = 0 : i64} {
  shard.grid @dp(shape = 2)
  zero.param @w : tensor<4xf32>
  // expected-error @below {{uses state in regions or several blocks; zero-offload takes step functions of one block}}
  func.func @step() -> tensor<4xf32> {
    cf.br ^end
  ^end:
    %s = zero.read @w : tensor<4xf32>
    return %s : tensor<4xf32>
  }
}

// -----

module attributes {zero.stage = 0 : i64} {
  shard.grid @dp(shape = 2)
  zero.param @w : tensor<4xf32>
  func.func @step(%x: tensor<4xf32> {zero.input = "x"}, %lr: f32) {
    %r = zero.all_reduce %x average on @dp : (tensor<4xf32>) -> tensor<4xf32>
    %s = zero.read @w : tensor<4xf32>
    %n = linalg.generic {indexing_maps = [affine_map<(i)->(i)>, affine_map<(i)->(i)>], iterator_types = ["parallel"]}
        ins(%r : tensor<4xf32>) outs(%s : tensor<4xf32>) {
    ^bb0(%g: f32, %p: f32):
      %c = arith.mulf %g, %lr : f32
      %v = arith.subf %p, %c : f32
      linalg.yield %v : f32
    } -> tensor<4xf32>
    // expected-error @below {{is computed from a value of type 'f32'; zero-offload takes updates of tensors}}
    zero.assign @w, %n : tensor<4xf32>
    return
  }
}
