// What plan-lower cannot turn into a program is an error that says why.
// RUN: zero-opt %s -split-input-file --plan-lower -verify-diagnostics

// expected-error @+1 {{plan-lower: the module has no function '@step' of one block; run train-step first}}
module {
}

// -----

module {
  shard.grid @hsdp(shape = 2x4)
  // expected-error @+1 {{the plan takes shards of dimension 0 over the last grid axis or all}}
  zero.param @w : !zero.sharded<8x8xf32, @hsdp, axes = [0], dim = 0>
  func.func @step() { return }
}

// -----

module {
  shard.grid @dp(shape = 2)
  // expected-error @+1 {{the plan takes shards of dimension 0 over the last grid axis or all}}
  zero.param @w : !zero.sharded<8x8xf32, @dp, dim = 1>
  func.func @step() { return }
}

// -----

module {
  // expected-error @+1 {{has argument 0 of type 'tensor<4xf32>'; the plan needs tensors of static shape with 'zero.input', 'zero.hyper' or 'zero.first_sample'}}
  func.func @step(%x: tensor<4xf32>) { return }
}

// -----

module {
  // expected-error @+1 {{has the hyperparameter 'momentum'; known are 'lr', 'step' and 'seed'}}
  func.func @step(%x: tensor<f32> {zero.hyper = "momentum"}) { return }
}

// -----

module {
  // expected-error @+1 {{has no 'zero.output' name on result 0}}
  func.func @step(%x: tensor<4xf32> {zero.input = "x"}) -> tensor<4xf32> { return %x : tensor<4xf32> }
}

// -----

module {
  // expected-error @+1 {{has 'zero.across' = "max"; known are "mean", "sum", "same"}}
  func.func @step(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<4xf32> {zero.output = "y", zero.across = "max"}) {
    return %x : tensor<4xf32>
  }
}

// -----

module {
  func.func @step(%x: tensor<4xf32> {zero.input = "x"}) {
    // expected-error @+1 {{cannot be part of a plan; is it outlined as a kernel?}}
    %0 = train.neg %x : tensor<4xf32>
    return
  }
}

// -----

module {
  zero.param @w : tensor<4xf32>
  func.func @step(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<4xf32> {zero.output = "y"}) {
    %w = zero.read @w : tensor<4xf32>
    // expected-error @+1 {{replaces @w, whose old value is read later in the step}}
    zero.assign @w, %x : tensor<4xf32>
    return %w : tensor<4xf32>
  }
}

// -----

module {
  func.func @step() {
    // expected-error @+1 {{is not a tensor; the plan holds only tensors}}
    %0 = arith.constant 0 : i32
    return
  }
}

// -----

module {
  shard.grid @dp(shape = 2)
  func.func @step(%x: tensor<4x4xf32> {zero.input = "x"}) {
    // expected-error @+1 {{takes shards of dimension 1 over axes [0]; the plan takes dimension 0 over the last axis or all}}
    %0 = zero.local %x on @dp dim 1 : tensor<4x4xf32> -> tensor<4x2xf32>
    return
  }
}

// -----

module {
  shard.grid @dp(shape = 2)
  func.func @step(%x: tensor<4x4xf32> {zero.input = "x"}) {
    // expected-error @+1 {{cuts dimension 1; the plan takes dimension 0}}
    %0 = zero.reduce_scatter %x on @dp dim 1 : (tensor<4x4xf32>) -> tensor<4x2xf32>
    return
  }
}

// -----

module {
  shard.grid @dp(shape = 2)
  func.func @step(%x: tensor<4x4xf32> {zero.input = "x"}) {
    // expected-error @+1 {{starts a future that is not awaited exactly once}}
    %0 = zero.all_reduce_start %x on @dp : (tensor<4x4xf32>) -> !zero.future<tensor<4x4xf32>>
    return
  }
}

// -----

// A copy is shown: nothing moves by being assigned.
module {
  zero.param @w : tensor<4xf32>
  func.func @step(%x: tensor<4xf32> {zero.input = "x"}) {
    %h = zero.transfer %x from device to host : (tensor<4xf32>) -> tensor<4xf32>
    // expected-error @+1 {{stores a value in host memory in @w, which is in device memory; a zero.transfer has to bring it there}}
    zero.assign @w, %h : tensor<4xf32>
    return
  }
}

// -----

module {
  func.func @step(%x: tensor<4xf32> {zero.input = "x"}) {
    // expected-error @+1 {{moves a value from host memory that is in device memory}}
    %h = zero.transfer %x from host to disk : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}

// -----

module {
  func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {plan.kernel}
  func.func @step(%x: tensor<4xf32> {zero.input = "x"}) {
    // expected-error @+1 {{computes with a value in device memory; a zero.transfer to host memory has to come before}}
    %y = zero.on_host (%a = %x) : (tensor<4xf32>) -> (tensor<4xf32>) {
      %b = plan.dispatch @k(%a) tied [-1] : (tensor<4xf32>) -> tensor<4xf32>
      zero.yield %b : tensor<4xf32>
    }
    return
  }
}

// -----

module {
  func.func @step(%x: tensor<4x4xf32> {zero.input = "x"}) {
    %h = zero.transfer %x from device to host : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %y = zero.on_host (%a = %h) : (tensor<4x4xf32>) -> (tensor<4x4xf32>) {
      // expected-error @+1 {{cannot run on the host's processor, which has kernels only}}
      %b = train.matmul %a, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      zero.yield %b : tensor<4x4xf32>
    }
    return
  }
}

// -----

module attributes {zero.stage = 0 : i64} {
  shard.grid @dp(shape = 2)
  zero.param @w : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = disk>
  func.func @step(%x: tensor<4xf32> {zero.input = "x"}) {
    %h = zero.transfer %x from device to host : (tensor<4xf32>) -> tensor<4xf32>
    %d = zero.transfer %h from host to disk : (tensor<4xf32>) -> tensor<4xf32>
    %w = zero.read @w : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = disk>
    %u = zero.transfer %w from disk to host : (!zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = disk>) -> !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host>
    // expected-error @below {{gives @w a value that went to disk before the old one is read for the last time; its zero.transfer belongs behind that read}}
    zero.assign @w, %d : tensor<4xf32>
    return
  }
}
