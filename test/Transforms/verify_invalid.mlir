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
  zero.release %w : tensor<10xf32>
  %l = zero.local %s on @dp : !zero.sharded<10xf32, @dp, dim = 0, mem = host> -> tensor<3xf32>
  // expected-error @below {{computes on a value in host memory; move it with zero.transfer first}}
  %n = arith.negf %l : tensor<3xf32>
  return
}

// -----

shard.grid @dp(shape = 4)
zero.param @w : !zero.sharded<10xf32, @dp, dim = 0>
func.func @never_released(%x: tensor<10xf32>) -> tensor<10xf32> {
  %s = zero.read @w : !zero.sharded<10xf32, @dp, dim = 0>
  // expected-error @below {{gathers a value of type 'tensor<10xf32>' that is never released; expects a zero.release after its last use}}
  %w = zero.all_gather %s on @dp : (!zero.sharded<10xf32, @dp, dim = 0>) -> tensor<10xf32>
  %y = arith.addf %x, %w : tensor<10xf32>
  return %y : tensor<10xf32>
}

// -----

shard.grid @dp(shape = 4)
zero.param @w : !zero.sharded<10xf32, @dp, dim = 0>
func.func @never_released_after_wait(%x: tensor<10xf32>) -> tensor<10xf32> {
  %s = zero.read @w : !zero.sharded<10xf32, @dp, dim = 0>
  %f = zero.all_gather_start %s on @dp : (!zero.sharded<10xf32, @dp, dim = 0>) -> !zero.future<tensor<10xf32>>
  // expected-error @below {{gathers a value of type 'tensor<10xf32>' that is never released; expects a zero.release after its last use}}
  %w = zero.wait %f : !zero.future<tensor<10xf32>>
  %y = arith.addf %x, %w : tensor<10xf32>
  return %y : tensor<10xf32>
}

// -----

shard.grid @dp(shape = 4)
zero.param @w : !zero.sharded<10xf32, @dp, dim = 0>
func.func @assigned_in_flight(%n: tensor<3xf32>) {
  %s = zero.read @w : !zero.sharded<10xf32, @dp, dim = 0>
  // expected-note @below {{it begins here}}
  %f = zero.all_gather_start %s on @dp : (!zero.sharded<10xf32, @dp, dim = 0>) -> !zero.future<tensor<10xf32>>
  // expected-error @below {{assigns @w while a collective that reads it is in flight; wait first}}
  zero.assign @w, %n : tensor<3xf32>
  // expected-note @below {{and is awaited here}}
  %w = zero.wait %f : !zero.future<tensor<10xf32>>
  zero.release %w : tensor<10xf32>
  return
}

// -----

// A collective uses its operand until it is awaited.
shard.grid @dp(shape = 4)
func.func @released_in_flight(%l: tensor<3xf32>) -> tensor<3xf32> {
  %w = zero.all_gather %l on @dp : (tensor<3xf32>) -> tensor<10xf32>
  %f = zero.reduce_scatter_start %w average on @dp : (tensor<10xf32>) -> !zero.future<tensor<3xf32>>
  // expected-note @below {{it is released here}}
  zero.release %w : tensor<10xf32>
  // expected-error @below {{uses a gathered value of type 'tensor<10xf32>', or a view of it, after its release}}
  %r = zero.wait %f : !zero.future<tensor<3xf32>>
  return %r : tensor<3xf32>
}

// -----

// Of two axes, one is not averaged over.
module attributes {zero.stage = 2 : i64} {
  shard.grid @hsdp(shape = 2x4)
  zero.param @w : !zero.sharded<10xf32, @hsdp, axes = [1], dim = 0>
  func.func @one_axis(%g: tensor<10xf32> {zero.input = "g"}) {
    %r = zero.reduce_scatter %g average on @hsdp axes [1] : (tensor<10xf32>) -> tensor<3xf32>
    // expected-error @below {{gives @w a value that is averaged over some axes of the grid only}}
    zero.assign @w, %r : tensor<3xf32>
    return
  }
}

// -----

module attributes {zero.stage = 2 : i64} {
  shard.grid @hsdp(shape = 2x4)
  func.func @same_axis(%g: tensor<10xf32> {zero.input = "g"}) {
    %r = zero.reduce_scatter %g average on @hsdp axes [1] : (tensor<10xf32>) -> tensor<3xf32>
    // expected-error @below {{reduces a value of type 'tensor<3xf32>' over an axis of the grid that it was reduced over before}}
    %t = zero.all_reduce %r average on @hsdp axes [1] : (tensor<3xf32>) -> tensor<3xf32>
    return
  }
}

// -----

// Every replica has all parts of a sum over shards: adding up over replicas
// counts them twice.
module attributes {zero.stage = 2 : i64} {
  shard.grid @hsdp(shape = 2x4)
  zero.param @n : tensor<f64>
  func.func @sum_over_replicas(%g: tensor<10xf32> {zero.input = "g"}) {
    %r = zero.reduce_scatter %g average on @hsdp axes [1] : (tensor<10xf32>) -> tensor<3xf32>
    %a = zero.all_reduce %r average on @hsdp axes [0] : (tensor<3xf32>) -> tensor<3xf32>
    %s = train.sum_squares %a : (tensor<3xf32>) -> tensor<f64>
    %t = zero.all_reduce %s on @hsdp axes [0, 1] : (tensor<f64>) -> tensor<f64>
    // expected-error @below {{gives @n a value that is made of values added up over the ranks but not averaged}}
    zero.assign @n, %t : tensor<f64>
    return
  }
}

// -----

shard.grid @hsdp(shape = 2x4)
func.func @chunk_of_compute(%w: tensor<16xf32>) -> tensor<4xf32> {
  // expected-error @below {{keeps a chunk of a value of type 'tensor<16xf32>', which is not gathered from the state}}
  %c = zero.reshard %w on @hsdp axes [1] : (tensor<16xf32>) -> tensor<4xf32>
  return %c : tensor<4xf32>
}

// -----

shard.grid @hsdp(shape = 2x2)
func.func @gathered_over_other_axes(%s: !zero.sharded<16xf32, @hsdp, axes = [0, 1], dim = 0>) -> tensor<16xf32> {
  %w = zero.all_gather %s on @hsdp axes [0, 1] : (!zero.sharded<16xf32, @hsdp, axes = [0, 1], dim = 0>) -> tensor<16xf32>
  // expected-note @below {{they are cut here}}
  %c = zero.reshard %w on @hsdp axes [1] : (tensor<16xf32>) -> tensor<8xf32>
  zero.release %w : tensor<16xf32>
  // expected-error @below {{gathers chunks over other axes than they were cut over, [1]}}
  %v = zero.all_gather %c on @hsdp : (tensor<8xf32>) -> tensor<16xf32>
  return %v : tensor<16xf32>
}

// -----

module attributes {zero.stage = 1 : i64} {
  shard.grid @dp(shape = 2)
  // expected-error @below {{says that result 1 is the same on all ranks, but it depends on one rank's data or shard}}
  func.func @norm(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<f64> {zero.across = "sum"}, tensor<f64> {zero.across = "same"}) {
    %n = train.sum_squares %x : (tensor<4xf32>) -> tensor<f64>
    return %n, %n : tensor<f64>, tensor<f64>
  }
}
