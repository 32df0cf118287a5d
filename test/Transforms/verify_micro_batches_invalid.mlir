// What zero-verify says about steps of several micro-batches, one case per
// message.
// RUN: zero-opt %s --split-input-file --verify-diagnostics --zero-verify

// expected-error @below {{has 4 micro-batches and no function @accumulate; expects it exactly where there are several}}
module attributes {zero.micro_batches = 4 : i64} {
}

// -----

// expected-error @below {{has 1 micro-batches and a function @accumulate}}
module {
  func.func @accumulate() {
    return
  }
}

// -----

// Divided by another number: the factor is missing, or in excess.
module attributes {zero.micro_batches = 4 : i64} {
  zero.param @w : tensor<4xf32>
  zero.state @w.grad of @w : tensor<4xf32> zeros accumulator
  func.func @accumulate(%x: tensor<4xf32> {zero.input = "x"}) {
    // expected-error @below {{divides gradients by 1 micro-batches; the step has 4}}
    %seed = train.loss_seed : () -> tensor<f32>
    %g = train.mul %x, %seed : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %a = zero.read @w.grad : tensor<4xf32>
    %s = train.accumulate %a, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    zero.assign @w.grad, %s : tensor<4xf32>
    return
  }
  func.func @step(%x: tensor<4xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    // expected-error @below {{divides gradients by 8 micro-batches; the step has 4}}
    %seed = train.loss_seed {micro_batches = 8 : i64} : () -> tensor<f32>
    %g = train.mul %x, %seed : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %a = zero.read @w.grad : tensor<4xf32>
    %s = train.accumulate %a, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %w = zero.read @w : tensor<4xf32>
    %n = train.sgd %w, %s, %lr : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    zero.assign @w, %n : tensor<4xf32>
    %z = arith.constant dense<0.0> : tensor<4xf32>
    zero.assign @w.grad, %z : tensor<4xf32>
    return
  }
}

// -----

// The same where there is one micro-batch.
zero.param @w : tensor<4xf32>
func.func @step(%x: tensor<4xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
  // expected-error @below {{divides gradients by 4 micro-batches; the step has 1}}
  %seed = train.loss_seed {micro_batches = 4 : i64} : () -> tensor<f32>
  %g = train.mul %x, %seed : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %w = zero.read @w : tensor<4xf32>
  %n = train.sgd %w, %g, %lr : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  zero.assign @w, %n : tensor<4xf32>
  return
}

// -----

module attributes {zero.micro_batches = 4 : i64} {
  zero.param @w : tensor<4xf32>
  zero.param @b : tensor<4xf32>
  zero.state @w.grad of @w : tensor<4xf32> zeros accumulator
  zero.state @b.grad of @b : tensor<4xf32> zeros accumulator
  zero.state @w.m of @w : tensor<4xf32> zeros
  func.func @accumulate(%x: tensor<4xf32> {zero.input = "x"}) {
    // expected-note @below {{it is divided here}}
    %seed = train.loss_seed {micro_batches = 4 : i64} : () -> tensor<f32>
    // expected-note @below {{it is divided here}}
    %again = train.loss_seed {micro_batches = 4 : i64} : () -> tensor<f32>
    %g = train.mul %x, %seed : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %h = train.mul %g, %again : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %a = zero.read @w.grad : tensor<4xf32>
    // expected-error @below {{adds to @w.grad a gradient that is divided by the number of micro-batches 2 times; expects one train.loss_seed before it}}
    %s = train.accumulate %a, %h : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    zero.assign @w.grad, %s : tensor<4xf32>
    %b = zero.read @b.grad : tensor<4xf32>
    // expected-error @below {{adds to @b.grad a gradient that is divided by the number of micro-batches 0 times}}
    %t = train.accumulate %b, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    zero.assign @b.grad, %t : tensor<4xf32>
    // expected-error @below {{assigns @w in @accumulate, which runs for each micro-batch; only accumulators and buffers change there}}
    zero.assign @w, %g : tensor<4xf32>
    // expected-error @below {{assigns @w.m in @accumulate}}
    zero.assign @w.m, %g : tensor<4xf32>
    return
  }
}

// -----

module attributes {zero.micro_batches = 4 : i64} {
  zero.param @w : tensor<4xf32>
  // expected-note @below {{the accumulator is declared here}}
  zero.state @w.grad of @w : tensor<4xf32> zeros accumulator
  // expected-note @below {{the accumulator is declared here}}
  zero.state @other.grad of @w : tensor<4xf32> zeros accumulator
  func.func @accumulate(%x: tensor<4xf32> {zero.input = "x"}) {
    %seed = train.loss_seed {micro_batches = 4 : i64} : () -> tensor<f32>
    %g = train.mul %x, %seed : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %a = zero.read @w.grad : tensor<4xf32>
    %s = train.accumulate %a, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // expected-error @below {{gives @w.grad a value that is not added to it}}
    zero.assign @w.grad, %g : tensor<4xf32>
    %b = zero.read @other.grad : tensor<4xf32>
    %t = train.accumulate %b, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    zero.assign @other.grad, %t : tensor<4xf32>
    return
  }
  // expected-error @below {{does not assign @w.grad, which sums over micro-batches}}
  // expected-error @below {{does not add to @other.grad, which sums over micro-batches}}
  func.func @step(%x: tensor<4xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %seed = train.loss_seed {micro_batches = 4 : i64} : () -> tensor<f32>
    // expected-note @below {{the gradient is computed here}}
    %g = train.mul %x, %seed : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %a = zero.read @w.grad : tensor<4xf32>
    %s = train.accumulate %a, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %w = zero.read @w : tensor<4xf32>
    // The gradient of the last micro-batch alone.
    // expected-error @below {{updates with a gradient of type 'tensor<4xf32>' that is not the sum over micro-batches; nothing may stand between but reductions}}
    %n = train.sgd %w, %g, %lr : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    zero.assign @w, %n : tensor<4xf32>
    // expected-error @below {{leaves in @other.grad what the next step would add to; expects a constant of zeros}}
    zero.assign @other.grad, %s : tensor<4xf32>
    return
  }
}

// -----

// Divided once more between the sum and the update.
module attributes {zero.micro_batches = 4 : i64} {
  zero.param @w : tensor<4xf32>
  zero.state @w.grad of @w : tensor<4xf32> zeros accumulator
  func.func @accumulate(%x: tensor<4xf32> {zero.input = "x"}) {
    %seed = train.loss_seed {micro_batches = 4 : i64} : () -> tensor<f32>
    %g = train.mul %x, %seed : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %a = zero.read @w.grad : tensor<4xf32>
    %s = train.accumulate %a, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    zero.assign @w.grad, %s : tensor<4xf32>
    return
  }
  func.func @step(%x: tensor<4xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %seed = train.loss_seed {micro_batches = 4 : i64} : () -> tensor<f32>
    %g = train.mul %x, %seed : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %a = zero.read @w.grad : tensor<4xf32>
    %s = train.accumulate %a, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %c = arith.constant dense<4.0> : tensor<f32>
    // expected-note @below {{the gradient is computed here}}
    %d = train.div %s, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %w = zero.read @w : tensor<4xf32>
    // expected-error @below {{that is not the sum over micro-batches}}
    %n = train.sgd %w, %d, %lr : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    zero.assign @w, %n : tensor<4xf32>
    %z = arith.constant dense<0.0> : tensor<4xf32>
    zero.assign @w.grad, %z : tensor<4xf32>
    return
  }
}

// -----

// Reduced in the micro-batches before the last, not in the last one; and not at
// all.
module attributes {zero.micro_batches = 2 : i64, zero.stage = 2 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : tensor<4xf32>
  zero.param @v : tensor<f32>
  zero.state @w.grad of @w : !zero.sharded<4xf32, @dp, dim = 0> zeros accumulator
  zero.state @v.grad of @v : tensor<f32> zeros accumulator
  func.func @accumulate(%x: tensor<4xf32> {zero.input = "x"}, %y: tensor<f32> {zero.input = "y"}) {
    %seed = train.loss_seed {micro_batches = 2 : i64} : () -> tensor<f32>
    %g = train.mul %x, %seed : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %r = zero.reduce_scatter %g average on @dp : (tensor<4xf32>) -> tensor<1xf32>
    %a = zero.read @w.grad : !zero.sharded<4xf32, @dp, dim = 0>
    %l = zero.local %a on @dp : !zero.sharded<4xf32, @dp, dim = 0> -> tensor<1xf32>
    %s = train.accumulate %l, %r : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    zero.assign @w.grad, %s : tensor<1xf32>
    %h = train.mul %y, %seed : tensor<f32>
    %b = zero.read @v.grad : tensor<f32>
    %t = train.accumulate %b, %h : (tensor<f32>, tensor<f32>) -> tensor<f32>
    zero.assign @v.grad, %t : tensor<f32>
    return
  }
  func.func @step(%x: tensor<1xf32> {zero.input = "x"}, %y: tensor<f32> {zero.input = "y"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %seed = train.loss_seed {micro_batches = 2 : i64} : () -> tensor<f32>
    %g = train.mul %x, %seed : (tensor<1xf32>, tensor<f32>) -> tensor<1xf32>
    %a = zero.read @w.grad : !zero.sharded<4xf32, @dp, dim = 0>
    %l = zero.local %a on @dp : !zero.sharded<4xf32, @dp, dim = 0> -> tensor<1xf32>
    // expected-error @below {{adds to @w.grad a gradient that is reduced otherwise than those of the micro-batches before}}
    %s = train.accumulate %l, %g : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %z = arith.constant dense<0.0> : tensor<1xf32>
    zero.assign @w.grad, %z : tensor<1xf32>
    %h = train.mul %y, %seed : tensor<f32>
    %b = zero.read @v.grad : tensor<f32>
    %t = train.accumulate %b, %h : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %v = zero.read @v : tensor<f32>
    %n = train.sgd %v, %t, %lr : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
    // expected-error @below {{gives @v a value that depends on one rank's data; its gradient is not reduced}}
    zero.assign @v, %n : tensor<f32>
    %o = arith.constant dense<0.0> : tensor<f32>
    zero.assign @v.grad, %o : tensor<f32>
    return
  }
}
