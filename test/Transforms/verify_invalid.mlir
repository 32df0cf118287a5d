// One case per rule of zero-verify.
// RUN: zero-opt %s --split-input-file --zero-verify --verify-diagnostics

shard.grid @dp(shape = 4)
func.func @never_awaited(%x: tensor<10xf32>) {
  // expected-error @below {{starts a future that is awaited 0 times; expects exactly one zero.wait}}
  %f = zero.all_reduce_start %x average on @dp : (tensor<10xf32>) -> !zero.future<tensor<10xf32>>
  return
}

// -----

shard.grid @dp(shape = 4)
func.func @awaited_twice(%x: tensor<10xf32>) {
  // expected-error @below {{starts a future that is awaited 2 times; expects exactly one zero.wait}}
  %f = zero.all_reduce_start %x average on @dp : (tensor<10xf32>) -> !zero.future<tensor<10xf32>>
  %a = zero.wait %f : !zero.future<tensor<10xf32>>
  %b = zero.wait %f : !zero.future<tensor<10xf32>>
  return
}

// -----

shard.grid @dp(shape = 4)
func.func @escapes(%x: tensor<10xf32>) -> !zero.future<tensor<10xf32>> {
  // expected-error @below {{starts a future that is awaited 0 times and used otherwise; expects exactly one zero.wait}}
  %f = zero.all_reduce_start %x average on @dp : (tensor<10xf32>) -> !zero.future<tensor<10xf32>>
  return %f : !zero.future<tensor<10xf32>>
}

// -----

shard.grid @dp(shape = 4)
func.func @used_after_release(%l: tensor<3xf32>) -> tensor<10xf32> {
  %w = zero.all_gather %l on @dp : (tensor<3xf32>) -> tensor<10xf32>
  // expected-note @below {{it is released here}}
  zero.release %w : tensor<10xf32>
  // expected-error @below {{uses a gathered value of type 'tensor<10xf32>', or a view of it, after its release}}
  %y = arith.negf %w : tensor<10xf32>
  return %y : tensor<10xf32>
}

// -----

shard.grid @dp(shape = 4)
func.func @view_after_release(%l: tensor<3x4xf32>) -> tensor<40xf32> {
  %w = zero.all_gather %l on @dp : (tensor<3x4xf32>) -> tensor<10x4xf32>
  %v = tensor.collapse_shape %w [[0, 1]] : tensor<10x4xf32> into tensor<40xf32>
  // expected-note @below {{it is released here}}
  zero.release %w : tensor<10x4xf32>
  // expected-error @below {{uses a gathered value of type 'tensor<10x4xf32>', or a view of it, after its release}}
  %y = arith.negf %v : tensor<40xf32>
  return %y : tensor<40xf32>
}

// -----

shard.grid @dp(shape = 4)
func.func @released_twice(%l: tensor<3xf32>) {
  %w = zero.all_gather %l on @dp : (tensor<3xf32>) -> tensor<10xf32>
  zero.release %w : tensor<10xf32>
  // expected-error @below {{releases a value of type 'tensor<10xf32>' a second time}}
  zero.release %w : tensor<10xf32>
  return
}

// -----

module attributes {zero.stage = 0 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : tensor<10xf32>
  func.func @not_reduced(%g: tensor<10xf32> {zero.input = "g"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %w = zero.read @w : tensor<10xf32>
    %n = train.sgd %w, %g, %lr : (tensor<10xf32>, tensor<10xf32>, tensor<f32>) -> tensor<10xf32>
    // expected-error @below {{gives @w a value that depends on one rank's data; its gradient is not reduced}}
    zero.assign @w, %n : tensor<10xf32>
    return
  }
}

// -----

module attributes {zero.stage = 0 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : tensor<10xf32>
  func.func @not_averaged(%g: tensor<10xf32> {zero.input = "g"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %w = zero.read @w : tensor<10xf32>
    %r = zero.all_reduce %g on @dp : (tensor<10xf32>) -> tensor<10xf32>
    %n = train.sgd %w, %r, %lr : (tensor<10xf32>, tensor<10xf32>, tensor<f32>) -> tensor<10xf32>
    // expected-error @below {{gives @w a value that is made of values added up over the ranks but not averaged}}
    zero.assign @w, %n : tensor<10xf32>
    return
  }
}

// -----

module attributes {zero.stage = 0 : i64} {
  shard.grid @dp(shape = 4)
  func.func @reduced_twice(%g: tensor<10xf32> {zero.input = "g"}) {
    %r = zero.all_reduce %g average on @dp : (tensor<10xf32>) -> tensor<10xf32>
    %s = arith.negf %r : tensor<10xf32>
    // expected-error @below {{reduces a value of type 'tensor<10xf32>' that was reduced before; expects exactly one reduction}}
    %t = zero.reduce_scatter %s average on @dp : (tensor<10xf32>) -> tensor<3xf32>
    return
  }
}

// -----

// A norm of the own shard only, used to scale the gradient.
module attributes {zero.stage = 1 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : tensor<10xf32>
  func.func @partial(%g: tensor<10xf32> {zero.input = "g"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %w = zero.read @w : tensor<10xf32>
    %r = zero.reduce_scatter %g average on @dp : (tensor<10xf32>) -> tensor<3xf32>
    %n = train.sum_squares %r : (tensor<3xf32>) -> tensor<f64>
    %c = train.cast %n : tensor<f64> to tensor<f32>
    %s = train.div %r, %c : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
    %f = zero.all_gather %s on @dp : (tensor<3xf32>) -> tensor<10xf32>
    // expected-error @below {{gives @w a value that is made of a sum over one rank's shard}}
    zero.assign @w, %f : tensor<10xf32>
    return
  }
}

// -----

shard.grid @dp(shape = 4)
zero.param @w : !zero.sharded<10xf32, @dp, dim = 0, mem = host>
func.func @host(%x: tensor<10xf32>) {
  %s = zero.read @w : !zero.sharded<10xf32, @dp, dim = 0, mem = host>
  // expected-error @below {{computes on a value in host memory; move it with zero.transfer first}}
  %w = zero.all_gather %s on @dp : (!zero.sharded<10xf32, @dp, dim = 0, mem = host>) -> tensor<10xf32>
  %l = zero.local %s on @dp : !zero.sharded<10xf32, @dp, dim = 0, mem = host> -> tensor<3xf32>
  // expected-error @below {{computes on a value in host memory; move it with zero.transfer first}}
  %n = arith.negf %l : tensor<3xf32>
  return
}
