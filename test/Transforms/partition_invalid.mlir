// What zero-partition refuses, one case per message.
// RUN: zero-opt %s --split-input-file --verify-diagnostics --zero-partition=stage=1

// expected-error @below {{has no zero.param, so there is nothing to partition; import a model with zero-import, or mark arguments with zero.role}}
module {}

// -----

// expected-error @below {{has no shard.grid; run zero-annotate first}}
module {
  zero.param @w : tensor<4xf32>
}

// -----

// expected-error @below {{has several grids, expected one}}
module {
  shard.grid @a(shape = 4)
  shard.grid @b(shape = 4)
  zero.param @w : tensor<4xf32>
}

// -----

// expected-error @below {{has 3 axes; expects one, or two: replicas by shards}}
shard.grid @dp(shape = 2x4x8)
zero.param @w : tensor<4xf32>

// -----

// expected-error @below {{expects a static number of ranks}}
shard.grid @dp(shape = ?)
zero.param @w : tensor<4xf32>

// -----

// expected-error @below {{is already partitioned, at stage 2 : i64}}
module attributes {zero.stage = 2 : i64} {
  zero.param @w : tensor<4xf32>
}

// -----

// expected-error @below {{has no backward pass and no optimizer: no parameter is assigned; run --train-step='loss=... optimizer=...' first}}
module {
  shard.grid @dp(shape = 4)
  zero.param @w : tensor<4xf32>
  func.func @forward() -> tensor<4xf32> {
    %w = zero.read @w : tensor<4xf32>
    return %w : tensor<4xf32>
  }
}

// -----

shard.grid @dp(shape = 4)
zero.param @w : tensor<4xf32>
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  zero.assign @w, %x : tensor<4xf32>
  // expected-error @below {{reads @w after it was assigned}}
  %w = zero.read @w : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

shard.grid @dp(shape = 4)
zero.param @w : tensor<4xf32>
func.func @step(%x: tensor<4xf32>) {
  zero.assign @w, %x : tensor<4xf32>
  // expected-error @below {{assigns @w a second time}}
  zero.assign @w, %x : tensor<4xf32>
  return
}

// -----

shard.grid @dp(shape = 4)
zero.param @w : tensor<4xf32>
func.func @step(%x: tensor<4xf32>, %c: i1) {
  scf.if %c {
    // expected-error @below {{stands in a nested region; the state is read and assigned in the body of the step function}}
    zero.assign @w, %x : tensor<4xf32>
  }
  return
}

// -----

shard.grid @dp(shape = 4)
zero.param @w : tensor<4xf32>
// expected-error @below {{reads or assigns state and has several blocks; a step function is one block}}
func.func @step(%x: tensor<4xf32>) {
  zero.assign @w, %x : tensor<4xf32>
  cf.br ^next
^next:
  return
}

// -----

// Two values of this rank's data enter the update: which one should be averaged
// is not known.
shard.grid @dp(shape = 4)
zero.param @w : tensor<4xf32>
func.func @step(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) {
  %w = zero.read @w : tensor<4xf32>
  // expected-note @below {{this value enters the update}}
  %g = train.reduce_sum %x axes [0] : (tensor<2x4xf32>) -> tensor<4xf32>
  // expected-note @below {{this value enters the update}}
  %h = train.reduce_sum %y axes [0] : (tensor<2x4xf32>) -> tensor<4xf32>
  %a = arith.subf %w, %g : tensor<4xf32>
  %b = arith.divf %a, %h : tensor<4xf32>
  // expected-error @below {{updates @w from several values that depend on one rank's data; expects one gradient that enters elementwise ops}}
  zero.assign @w, %b : tensor<4xf32>
  return
}

// -----

// Clipping by a norm that was not added up over the ranks.
shard.grid @dp(shape = 4)
zero.param @w : tensor<2x4xf32>
func.func @step(%g: tensor<2x4xf32>) {
  %w = zero.read @w : tensor<2x4xf32>
  // expected-note @below {{the value is computed here}}
  %n = train.reduce_sum %g axes [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  %e = tensor.empty() : tensor<2x4xf32>
  %new = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%w, %g, %n : tensor<2x4xf32>, tensor<2x4xf32>, tensor<f32>) outs(%e : tensor<2x4xf32>) {
    ^bb0(%p: f32, %d: f32, %s: f32, %o: f32):
      %q = arith.divf %d, %s : f32
      %r = arith.subf %p, %q : f32
      linalg.yield %r : f32
  } -> tensor<2x4xf32>
  // expected-error @below {{updates @w with a value of type 'tensor<f32>' that depends on one rank's data beside the gradient; reduce it over the ranks first}}
  zero.assign @w, %new : tensor<2x4xf32>
  return
}

// -----

shard.grid @dp(shape = 4)
zero.param @w : tensor<4xf32>
zero.state @m of @w : tensor<4xf32> zeros
func.func @step(%g: tensor<4xf32>, %lr: tensor<f32> {zero.hyper = "lr"}) {
  %w = zero.read @w : tensor<4xf32>
  %m = zero.read @m : tensor<4xf32>
  %n, %k = train.sgd %w, %g, %m, %lr {momentum = 0.9 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  zero.assign @w, %n : tensor<4xf32>
  // expected-error @below {{expects all values of @w and its states from one train.sgd op}}
  zero.assign @m, %g : tensor<4xf32>
  return
}

// -----

shard.grid @dp(shape = 4)
zero.param @w : tensor<4xf32>
zero.state @m of @w : tensor<4xf32> zeros
func.func @step(%g: tensor<4xf32>, %lr: tensor<f32> {zero.hyper = "lr"}) {
  %w = zero.read @w : tensor<4xf32>
  %m = zero.read @m : tensor<4xf32>
  %n, %k = train.sgd %w, %g, %m, %lr {momentum = 0.9 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  // expected-error @below {{assigns @w result 1 of train.sgd, which does not replace a read of that symbol}}
  zero.assign @w, %k : tensor<4xf32>
  zero.assign @m, %n : tensor<4xf32>
  return
}

// -----

shard.grid @dp(shape = 4)
zero.param @w : tensor<4xf32>
func.func @step(%g: tensor<4xf32>, %lr: tensor<f32> {zero.hyper = "lr"}) -> tensor<4xf32> {
  %w = zero.read @w : tensor<4xf32>
  // expected-note @below {{the value is computed here}}
  %n = train.sgd %w, %g, %lr : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  zero.assign @w, %n : tensor<4xf32>
  // expected-error @below {{uses a value of the update of @w, which exists in shards only from stage 1 on}}
  return %n : tensor<4xf32>
}

// -----

shard.grid @dp(shape = 4)
zero.param @w : tensor<4xf32>
func.func @step(%g: tensor<4xf32>, %h: tensor<4xf32>, %lr: tensor<f32> {zero.hyper = "lr"}) -> tensor<f64> {
  %w = zero.read @w : tensor<4xf32>
  // expected-error @below {{adds up gradients and another value of type 'tensor<4xf32>'; expects gradients of parameters only}}
  %s = train.sum_squares %g, %h : (tensor<4xf32>, tensor<4xf32>) -> tensor<f64>
  %n = train.sgd %w, %g, %lr : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  zero.assign @w, %n : tensor<4xf32>
  return %s : tensor<f64>
}

// -----

shard.grid @dp(shape = 4)
zero.param @w : tensor<4xf32>
zero.param @v : tensor<4xf32>
func.func @step(%g: tensor<4xf32>, %lr: tensor<f32> {zero.hyper = "lr"}) -> tensor<f64> {
  %w = zero.read @w : tensor<4xf32>
  %v = zero.read @v : tensor<4xf32>
  // expected-error @below {{is a sum over gradients that another gradient depends on; it is known only when all gradients are complete}}
  %s = train.sum_squares %g : (tensor<4xf32>) -> tensor<f64>
  %r = train.sqrt %s : tensor<f64>
  %c = train.cast %r : tensor<f64> to tensor<f32>
  %h = train.mul %g, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %n = train.sgd %w, %g, %lr : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  zero.assign @w, %n : tensor<4xf32>
  %k = train.sgd %v, %h, %lr : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  zero.assign @v, %k : tensor<4xf32>
  return %r : tensor<f64>
}

// -----

shard.grid @dp(shape = 4)
zero.param @w : tensor<4xf32>
zero.state @w.grad of @w : tensor<4xf32> zeros accumulator
func.func @accumulate(%g: tensor<4xf32>) {
  // expected-error @below {{assigns the accumulator @w.grad, which one elementwise op has to read and add a gradient to}}
  zero.assign @w.grad, %g : tensor<4xf32>
  return
}
