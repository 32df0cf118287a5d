// What zero-verify lets pass: nothing is reported, nothing changes.
// RUN: zero-opt %s --zero-verify --verify-diagnostics | FileCheck %s

// CHECK: module attributes {zero.stage = 3 : i64}
module attributes {zero.stage = 3 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : !zero.sharded<10xf32, @dp, dim = 0>
  zero.param @s : tensor<f32>
  zero.param @mean : tensor<10xf32> buffer
  zero.state @m of @w : !zero.sharded<10xf32, @dp, dim = 0, mem = host> zeros

  // Averages, clipped by a norm that was added up over shards; a buffer of the
  // rank's own; a state in host memory that is moved before and after it is used.
  // CHECK-LABEL: func.func @step
  func.func @step(%x: tensor<10xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %sw = zero.read @w : !zero.sharded<10xf32, @dp, dim = 0>
    %w = zero.all_gather %sw on @dp : (!zero.sharded<10xf32, @dp, dim = 0>) -> tensor<10xf32>
    %d = train.mul %x, %w : tensor<10xf32>
    zero.release %w : tensor<10xf32>
    %f = zero.reduce_scatter_start %d average on @dp : (tensor<10xf32>) -> !zero.future<tensor<3xf32>>
    %g = zero.wait %f : !zero.future<tensor<3xf32>>
    %n = train.sum_squares %g : (tensor<3xf32>) -> tensor<f64>
    %total = zero.all_reduce %n on @dp : (tensor<f64>) -> tensor<f64>
    %clip = train.cast %total : tensor<f64> to tensor<f32>
    %gc = train.div %g, %clip : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
    %hm = zero.read @m : !zero.sharded<10xf32, @dp, dim = 0, mem = host>
    %dm = zero.transfer %hm from host to device : (!zero.sharded<10xf32, @dp, dim = 0, mem = host>) -> !zero.sharded<10xf32, @dp, dim = 0>
    %m = zero.local %dm on @dp : !zero.sharded<10xf32, @dp, dim = 0> -> tensor<3xf32>
    %l = zero.local %sw on @dp : !zero.sharded<10xf32, @dp, dim = 0> -> tensor<3xf32>
    %wn, %mn = train.sgd %l, %gc, %m, %lr {momentum = 0.9 : f64} : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
    zero.assign @w, %wn : tensor<3xf32>
    %mh = zero.transfer %mn from device to host : (tensor<3xf32>) -> tensor<3xf32>
    zero.assign @m, %mh : tensor<3xf32>
    zero.assign @mean, %d : tensor<10xf32>
    return
  }

  // Averaged over one axis of a grid, then over the other; a norm of the chunks,
  // added up where the other parts are.
  // CHECK-LABEL: func.func @hybrid
  shard.grid @hsdp(shape = 2x4)
  zero.param @h : !zero.sharded<10xf32, @hsdp, axes = [1], dim = 0>
  func.func @hybrid(%x: tensor<10xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %f = zero.reduce_scatter_start %x average on @hsdp axes [1] : (tensor<10xf32>) -> !zero.future<tensor<3xf32>>
    %s = zero.wait %f : !zero.future<tensor<3xf32>>
    %e = zero.all_reduce_start %s average on @hsdp axes [0] : (tensor<3xf32>) -> !zero.future<tensor<3xf32>>
    %g = zero.wait %e : !zero.future<tensor<3xf32>>
    %n = train.sum_squares %g : (tensor<3xf32>) -> tensor<f64>
    %total = zero.all_reduce %n on @hsdp axes [1] : (tensor<f64>) -> tensor<f64>
    %clip = train.cast %total : tensor<f64> to tensor<f32>
    %gc = train.div %g, %clip : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
    zero.assign @h, %gc : tensor<3xf32>
    return
  }
}
