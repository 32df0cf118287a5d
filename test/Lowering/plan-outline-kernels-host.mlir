// What a zero.on_host does to each element of a parameter, casts included, is
// one kernel of the host's; it is never shared with the device.
// RUN: zero-opt %s --plan-outline-kernels | FileCheck %s

zero.param @w : tensor<4xbf16>
zero.param @v : tensor<6xbf16>
zero.state @w.master of @w : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host>
zero.state @v.master of @v : !zero.sharded<6xf32, @dp, axes = [], dim = 0, mem = host>
zero.state @w.grad of @w : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host> zeros accumulator
shard.grid @dp(shape = 2)

// Two updates: two kernels, in the order of the body. State is tied, through
// what is read from host memory.
// CHECK-LABEL: func.func @step
// CHECK: %[[F:.*]] = zero.on_host_start (%[[A:.*]] = %{{.*}}, %[[G:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %[[K:.*]] = %{{.*}}, %[[R:.*]] = %{{.*}})
// CHECK-NEXT: %[[W:.*]]:2 = plan.dispatch @cast_sgd_cast_4(%[[G]], %[[A]], %[[R]]) tied [1, -1]
// CHECK-NEXT: %[[V:.*]]:2 = plan.dispatch @cast_sgd_cast_6(%[[K]], %[[B]], %[[R]]) tied [1, -1]
// CHECK-NEXT: zero.yield %[[W]]#0, %[[W]]#1, %[[V]]#0, %[[V]]#1
// The sum of micro-batches stays where it is.
// CHECK: zero.on_host (
// CHECK-NEXT: plan.dispatch @cast_add_4(%{{.*}}, %[[ACC:.*]]) tied [1]
// The same ops on the device.
// CHECK: plan.dispatch @cast_4(
// CHECK: func.func private @cast_sgd_cast_4(%arg0: tensor<4xbf16>, %arg1: tensor<4xf32>, %arg2: tensor<f32>) -> (tensor<4xf32>, tensor<4xbf16>) attributes {plan.host, plan.kernel, plan.tied = array<i64: 1, -1>}
// CHECK: func.func private @cast_4({{.*}}attributes {plan.kernel}
func.func @step(%g: tensor<4xbf16> {zero.input = "g"}, %k: tensor<6xbf16> {zero.input = "k"},
                %lr: tensor<f32> {zero.hyper = "lr"}) -> tensor<4xf32> {
  %gh, %kh, %r = zero.transfer %g, %k, %lr from device to host
    : (tensor<4xbf16>, tensor<6xbf16>, tensor<f32>) -> (tensor<4xbf16>, tensor<6xbf16>, tensor<f32>)
  %sa = zero.read @w.master : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host>
  %sb = zero.read @v.master : !zero.sharded<6xf32, @dp, axes = [], dim = 0, mem = host>
  %a = zero.local %sa on @dp axes [] : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host> -> tensor<4xf32>
  %b = zero.local %sb on @dp axes [] : !zero.sharded<6xf32, @dp, axes = [], dim = 0, mem = host> -> tensor<6xf32>
  %f = zero.on_host_start (%p = %a, %d = %gh, %q = %b, %e = %kh, %rate = %r)
    : (tensor<4xf32>, tensor<4xbf16>, tensor<6xf32>, tensor<6xbf16>, tensor<f32>)
    -> !zero.future<tensor<4xf32>, tensor<4xbf16>, tensor<6xf32>, tensor<6xbf16>> {
    %d32 = train.cast %d : tensor<4xbf16> to tensor<4xf32>
    %e32 = train.cast %e : tensor<6xbf16> to tensor<6xf32>
    %n = train.sgd %p, %d32, %rate : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %m = train.sgd %q, %e32, %rate : (tensor<6xf32>, tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
    %n16 = train.cast %n : tensor<4xf32> to tensor<4xbf16>
    %m16 = train.cast %m : tensor<6xf32> to tensor<6xbf16>
    zero.yield %n, %n16, %m, %m16 : tensor<4xf32>, tensor<4xbf16>, tensor<6xf32>, tensor<6xbf16>
  }
  %n, %n16, %m, %m16 = zero.wait %f : !zero.future<tensor<4xf32>, tensor<4xbf16>, tensor<6xf32>, tensor<6xbf16>>
  zero.assign @w.master, %n : tensor<4xf32>
  zero.assign @v.master, %m : tensor<6xf32>
  %wd, %vd = zero.transfer %n16, %m16 from host to device : (tensor<4xbf16>, tensor<6xbf16>) -> (tensor<4xbf16>, tensor<6xbf16>)
  zero.assign @w, %wd : tensor<4xbf16>
  zero.assign @v, %vd : tensor<6xbf16>
  %sc = zero.read @w.grad : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host>
  %c = zero.local %sc on @dp axes [] : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = host> -> tensor<4xf32>
  %s = zero.on_host (%x = %c, %y = %gh) : (tensor<4xf32>, tensor<4xbf16>) -> (tensor<4xf32>) {
    %y32 = train.cast %y : tensor<4xbf16> to tensor<4xf32>
    %t = train.add %x, %y32 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    zero.yield %t : tensor<4xf32>
  }
  zero.assign @w.grad, %s : tensor<4xf32>
  %o = train.cast %g : tensor<4xbf16> to tensor<4xf32>
  return %o : tensor<4xf32>
}
