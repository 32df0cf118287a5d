// One case per rule of zero-verify on where values lie, and on updates that the
// host runs.
// RUN: zero-opt %s --split-input-file --zero-verify --verify-diagnostics

func.func @host_on_device(%x: tensor<4xf32>) {
  // expected-error @below {{computes on a value in device memory; move it with zero.transfer first}}
  %y = zero.on_host (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    zero.yield %a : tensor<4xf32>
  }
  return
}

// -----

// What the host computes lies there, also seen through a view.
func.func @device_on_host(%x: tensor<4xf32>) -> tensor<2x2xf32> {
  %h = zero.transfer %x from device to host : (tensor<4xf32>) -> tensor<4xf32>
  %f = zero.on_host_start (%a = %h) : (tensor<4xf32>) -> !zero.future<tensor<4xf32>> {
    zero.yield %a : tensor<4xf32>
  }
  %y = zero.wait %f : !zero.future<tensor<4xf32>>
  %v = train.reshape %y : tensor<4xf32> to tensor<2x2xf32>
  // expected-error @below {{computes on a value in host memory; move it with zero.transfer first}}
  return %v : tensor<2x2xf32>
}

// -----

func.func @moved_from_elsewhere(%x: tensor<4xf32>) {
  // expected-error @below {{moves from host memory a value of type 'tensor<4xf32>' that is in device memory}}
  %y = zero.transfer %x from host to disk : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @below {{moves from host memory a value of type 'tensor<4xf32>' that is in disk memory}}
  %f = zero.transfer_start %y from host to device : (tensor<4xf32>) -> !zero.future<tensor<4xf32>>
  %z = zero.wait %f : !zero.future<tensor<4xf32>>
  return
}

// -----

shard.grid @dp(shape = 4)
zero.param @w : tensor<4xf32>
zero.state @m of @w : !zero.sharded<4xf32, @dp, dim = 0, mem = disk> zeros
func.func @assigned_from_elsewhere(%x: tensor<4xf32>, %y: tensor<1xf32>) {
  %h, %i = zero.transfer %x, %y from device to host : (tensor<4xf32>, tensor<1xf32>) -> (tensor<4xf32>, tensor<1xf32>)
  // expected-error @below {{gives @w, which is in device memory, a value in host memory; move it with zero.transfer first}}
  zero.assign @w, %h : tensor<4xf32>
  // expected-error @below {{gives @m, which is in disk memory, a value in host memory; move it with zero.transfer first}}
  zero.assign @m, %i : tensor<1xf32>
  %z = arith.constant dense<0.0> : tensor<1xf32>
  // expected-error @below {{gives @m, which is in disk memory, a value in device memory}}
  zero.assign @m, %z : tensor<1xf32>
  return
}

// -----

shard.grid @dp(shape = 4)
func.func @communicates(%x: tensor<4xf32>) {
  %h = zero.transfer %x from device to host : (tensor<4xf32>) -> tensor<4xf32>
  %y = zero.on_host (%a = %h) : (tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @below {{stands in a zero.on_host, whose body only computes}}
    %b = zero.all_reduce %a average on @dp : (tensor<4xf32>) -> tensor<4xf32>
    zero.yield %b : tensor<4xf32>
  }
  return
}

// -----

func.func @never_awaited(%x: tensor<4xf32>) {
  // expected-error @below {{starts a future that is awaited 0 times; expects exactly one zero.wait}}
  %f = zero.transfer_start %x from device to host : (tensor<4xf32>) -> !zero.future<tensor<4xf32>>
  %h = zero.transfer %x from device to host : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @below {{starts a future that is awaited 2 times; expects exactly one zero.wait}}
  %e = zero.on_host_start (%a = %h) : (tensor<4xf32>) -> !zero.future<tensor<4xf32>> {
    zero.yield %a : tensor<4xf32>
  }
  %y = zero.wait %e : !zero.future<tensor<4xf32>>
  %z = zero.wait %e : !zero.future<tensor<4xf32>>
  return
}

// -----

// A copy of the state that is on its way, and compute on the state itself.
shard.grid @dp(shape = 4)
zero.param @w : !zero.sharded<4xf32, @dp, dim = 0, mem = host>
func.func @assigned_in_flight(%x: tensor<1xf32>) {
  %n = zero.transfer %x from device to host : (tensor<1xf32>) -> tensor<1xf32>
  %s = zero.read @w : !zero.sharded<4xf32, @dp, dim = 0, mem = host>
  %l = zero.local %s on @dp : !zero.sharded<4xf32, @dp, dim = 0, mem = host> -> tensor<1xf32>
  // expected-note @below {{it begins here}}
  %f = zero.transfer_start %s from host to device : (!zero.sharded<4xf32, @dp, dim = 0, mem = host>) -> !zero.future<!zero.sharded<4xf32, @dp, dim = 0>>
  // expected-note @below {{it begins here}}
  %e = zero.on_host_start (%a = %l) : (tensor<1xf32>) -> !zero.future<tensor<1xf32>> {
    zero.yield %a : tensor<1xf32>
  }
  // expected-error @below {{assigns @w while a transfer that reads it is in flight; wait first}}
  // expected-error @below {{assigns @w while compute of the host that reads it is in flight; wait first}}
  zero.assign @w, %n : tensor<1xf32>
  // expected-note @below {{and is awaited here}}
  %w = zero.wait %f : !zero.future<!zero.sharded<4xf32, @dp, dim = 0>>
  // expected-note @below {{and is awaited here}}
  %y = zero.wait %e : !zero.future<tensor<1xf32>>
  return
}

// -----

// A transfer reads its operand until it is awaited.
shard.grid @dp(shape = 4)
func.func @released_in_flight(%l: tensor<3xf32>) {
  %w = zero.all_gather %l on @dp : (tensor<3xf32>) -> tensor<10xf32>
  %f = zero.transfer_start %w from device to host : (tensor<10xf32>) -> !zero.future<tensor<10xf32>>
  // expected-note @below {{it is released here}}
  zero.release %w : tensor<10xf32>
  // expected-error @below {{uses a gathered value of type 'tensor<10xf32>', or a view of it, after its release}}
  %r = zero.wait %f : !zero.future<tensor<10xf32>>
  return
}

// -----

// A parameter at rest on the host, gathered from a copy of its chunk: it ends in
// the step as one that is at rest on the device.
shard.grid @dp(shape = 4)
zero.param @w : !zero.sharded<10xf32, @dp, dim = 0, mem = host>
func.func @never_released(%x: tensor<10xf32>) -> tensor<10xf32> {
  %s = zero.read @w : !zero.sharded<10xf32, @dp, dim = 0, mem = host>
  %l = zero.local %s on @dp : !zero.sharded<10xf32, @dp, dim = 0, mem = host> -> tensor<3xf32>
  %f = zero.transfer_start %l from host to device : (tensor<3xf32>) -> !zero.future<tensor<3xf32>>
  %d = zero.wait %f : !zero.future<tensor<3xf32>>
  // expected-error @below {{gathers a value of type 'tensor<10xf32>' that is never released; expects a zero.release after its last use}}
  %w = zero.all_gather %d on @dp : (tensor<3xf32>) -> tensor<10xf32>
  %y = arith.addf %x, %w : tensor<10xf32>
  return %y : tensor<10xf32>
}

// -----

// The gradient of an update on the host was not reduced before it went down.
module attributes {zero.stage = 0 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host>
  func.func @not_reduced(%g: tensor<4xf32> {zero.input = "g"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %p = zero.read @w : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host>
    %pl = zero.local %p on @dp axes [] : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host> -> tensor<4xf32>
    %f = zero.transfer_start %g, %lr from device to host : (tensor<4xf32>, tensor<f32>) -> !zero.future<tensor<4xf32>, tensor<f32>>
    %gh, %lh = zero.wait %f : !zero.future<tensor<4xf32>, tensor<f32>>
    %u = zero.on_host_start (%a = %pl, %b = %gh, %r = %lh) : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> !zero.future<tensor<4xf32>> {
      %n = train.sgd %a, %b, %r : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      zero.yield %n : tensor<4xf32>
    }
    %n = zero.wait %u : !zero.future<tensor<4xf32>>
    // expected-error @below {{gives @w a value that depends on one rank's data; its gradient is not reduced}}
    zero.assign @w, %n : tensor<4xf32>
    return
  }
}

// -----

// Reduced, moved to the host and back, and reduced again.
module attributes {zero.stage = 0 : i64} {
  shard.grid @dp(shape = 4)
  func.func @reduced_twice(%g: tensor<10xf32> {zero.input = "g"}) {
    %r = zero.all_reduce %g average on @dp : (tensor<10xf32>) -> tensor<10xf32>
    %h = zero.transfer %r from device to host : (tensor<10xf32>) -> tensor<10xf32>
    %d = zero.transfer %h from host to device : (tensor<10xf32>) -> tensor<10xf32>
    // expected-error @below {{reduces a value of type 'tensor<10xf32>' that was reduced before; expects exactly one reduction}}
    %t = zero.reduce_scatter %d average on @dp : (tensor<10xf32>) -> tensor<3xf32>
    return
  }
}

// -----

// A norm of the own chunk only, made and used on the host.
module attributes {zero.stage = 2 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : !zero.sharded<10xf32, @dp, dim = 0, mem = host>
  func.func @partial(%g: tensor<10xf32> {zero.input = "g"}) {
    %r = zero.reduce_scatter %g average on @dp : (tensor<10xf32>) -> tensor<3xf32>
    %h = zero.transfer %r from device to host : (tensor<3xf32>) -> tensor<3xf32>
    %n = zero.on_host (%a = %h) : (tensor<3xf32>) -> tensor<3xf32> {
      %s = train.sum_squares %a : (tensor<3xf32>) -> tensor<f64>
      %c = train.cast %s : tensor<f64> to tensor<f32>
      %d = train.div %a, %c : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
      zero.yield %d : tensor<3xf32>
    }
    // expected-error @below {{gives @w a value that is made of a sum over one rank's shard}}
    zero.assign @w, %n : tensor<3xf32>
    return
  }
}

// -----

// Sums over micro-batches on the host: divided twice, updated with something
// else, and not emptied.
module attributes {zero.micro_batches = 2 : i64} {
  shard.grid @dp(shape = 1)
  zero.param @w : tensor<4xf32>
  zero.state @w.grad of @w : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host> zeros accumulator
  func.func @accumulate(%x: tensor<4xf32> {zero.input = "x"}) {
    %gh = zero.transfer %x from device to host : (tensor<4xf32>) -> tensor<4xf32>
    %a = zero.read @w.grad : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host>
    %al = zero.local %a on @dp axes [] : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host> -> tensor<4xf32>
    %s = zero.on_host (%l = %al, %r = %gh) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
      // expected-error @below {{adds to @w.grad a gradient that is divided by the number of micro-batches 0 times; expects one train.loss_seed before it}}
      %sum = train.accumulate %l, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      zero.yield %sum : tensor<4xf32>
    }
    zero.assign @w.grad, %s : tensor<4xf32>
    return
  }
  func.func @step(%x: tensor<4xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %seed = train.loss_seed {micro_batches = 2 : i64} : () -> tensor<f32>
    // expected-note @below {{the gradient is computed here}}
    %g = train.mul %x, %seed : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %gh, %lh = zero.transfer %g, %lr from device to host : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
    %a = zero.read @w.grad : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host>
    %al = zero.local %a on @dp axes [] : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host> -> tensor<4xf32>
    %w = zero.read @w : tensor<4xf32>
    %wh = zero.transfer %w from device to host : (tensor<4xf32>) -> tensor<4xf32>
    %s, %n = zero.on_host (%l = %al, %r = %gh, %p = %wh, %e = %lh) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %sum = train.accumulate %l, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      // expected-error @below {{updates with a gradient of type 'tensor<4xf32>' that is not the sum over micro-batches}}
      %new = train.sgd %p, %r, %e : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      zero.yield %sum, %new : tensor<4xf32>, tensor<4xf32>
    }
    %nd = zero.transfer %n from host to device : (tensor<4xf32>) -> tensor<4xf32>
    zero.assign @w, %nd : tensor<4xf32>
    // expected-error @below {{leaves in @w.grad what the next step would add to; expects a constant of zeros}}
    zero.assign @w.grad, %s : tensor<4xf32>
    return
  }
}
