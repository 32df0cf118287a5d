// Every op and type prints as it is parsed, in the short and in the long form.
// RUN: zero-opt %s | zero-opt | FileCheck %s
// RUN: zero-opt %s --emit-bytecode | zero-opt | FileCheck %s

// CHECK: shard.grid @dp(shape = 4)
shard.grid @dp(shape = 4)
shard.grid @hsdp(shape = 2x4)

// CHECK: zero.param @plain : tensor<10x4xf32>{{$}}
zero.param @plain : tensor<10x4xf32>
// CHECK: zero.param @file : tensor<10xf32> init("m.safetensors") unit("fc1")
zero.param @file : tensor<10xf32> init("m.safetensors") unit("fc1")
// CHECK: zero.param @named : tensor<10xf32> init("m.safetensors", "other") frozen tied("a.weight", "b.weight")
zero.param @named : tensor<10xf32> frozen tied("a.weight", "b.weight") init("m.safetensors", "other")
// CHECK: zero.param @mean : tensor<16xf32> zeros buffer
zero.param @mean : tensor<16xf32> zeros buffer
// CHECK: zero.param @var : tensor<16xf32> ones buffer
zero.param @var : tensor<16xf32> ones buffer
// The default axes, dim and memory are printed in one way only.
// CHECK: zero.param @sharded : !zero.sharded<10x4xf32, @dp, dim = 0>
zero.param @sharded : !zero.sharded<10x4xf32, @dp, axes = [0], dim = 0, mem = device>
// CHECK: zero.param @far : !zero.sharded<10x8xbf16, @hsdp, axes = [1], dim = 1, mem = host>
zero.param @far : !zero.sharded<10x8xbf16, @hsdp, axes = [1], dim = 1, mem = host>
// CHECK: zero.state @sharded.m of @sharded : !zero.sharded<10x4xf32, @dp, dim = 0> zeros
zero.state @sharded.m of @sharded : !zero.sharded<10x4xf32, @dp, dim = 0> zeros
// CHECK: zero.state @plain.step of @plain : tensor<10x4xf32>
zero.state @plain.step of @plain : tensor<10x4xf32>

// CHECK-LABEL: func.func @sync
func.func @sync(%g: tensor<10x4xf32>, %h: tensor<2xf32>) {
  // CHECK: %[[S:.*]] = zero.read @sharded : !zero.sharded<10x4xf32, @dp, dim = 0>
  %s = zero.read @sharded : !zero.sharded<10x4xf32, @dp, dim = 0>
  // CHECK: %[[L:.*]] = zero.local %[[S]] on @dp : !zero.sharded<10x4xf32, @dp, dim = 0> -> tensor<3x4xf32>
  %l = zero.local %s on @dp : !zero.sharded<10x4xf32, @dp, dim = 0> -> tensor<3x4xf32>
  // CHECK: zero.local %{{.*}} on @hsdp axes [1] dim 1 : tensor<10x4xf32> -> tensor<10x1xf32>
  %c = zero.local %g on @hsdp axes [1] dim 1 : tensor<10x4xf32> -> tensor<10x1xf32>
  // CHECK: %[[W:.*]]:2 = zero.all_gather %[[S]], %[[L]] on @dp : (!zero.sharded<10x4xf32, @dp, dim = 0>, tensor<3x4xf32>) -> (tensor<10x4xf32>, tensor<10x4xf32>)
  %w:2 = zero.all_gather %s, %l on @dp : (!zero.sharded<10x4xf32, @dp, dim = 0>, tensor<3x4xf32>) -> (tensor<10x4xf32>, tensor<10x4xf32>)
  // CHECK: zero.release %[[W]]#0, %[[W]]#1 : tensor<10x4xf32>, tensor<10x4xf32>
  zero.release %w#0, %w#1 : tensor<10x4xf32>, tensor<10x4xf32>
  // Two rows over four ranks: the last two hold padding only.
  // CHECK: %[[R:.*]]:2 = zero.reduce_scatter %{{.*}}, %{{.*}} average on @dp : (tensor<10x4xf32>, tensor<2xf32>) -> (tensor<3x4xf32>, tensor<1xf32>)
  %r:2 = zero.reduce_scatter %g, %h average on @dp : (tensor<10x4xf32>, tensor<2xf32>) -> (tensor<3x4xf32>, tensor<1xf32>)
  // CHECK: zero.all_reduce %{{.*}} on @hsdp axes [0, 1] : (tensor<2xf32>) -> tensor<2xf32>
  %a = zero.all_reduce %h on @hsdp axes [0, 1] : (tensor<2xf32>) -> tensor<2xf32>
  // CHECK: zero.assign @sharded, %[[R]]#0 : tensor<3x4xf32>
  zero.assign @sharded, %r#0 : tensor<3x4xf32>
  return
}

// CHECK-LABEL: func.func @async
func.func @async(%g: tensor<10x4xf32>) {
  %s = zero.read @sharded : !zero.sharded<10x4xf32, @dp, dim = 0>
  // CHECK: %[[F:.*]] = zero.all_gather_start %{{.*}} on @dp : (!zero.sharded<10x4xf32, @dp, dim = 0>) -> !zero.future<tensor<10x4xf32>>
  %f = zero.all_gather_start %s on @dp : (!zero.sharded<10x4xf32, @dp, dim = 0>) -> !zero.future<tensor<10x4xf32>>
  // CHECK: zero.wait %[[F]] : !zero.future<tensor<10x4xf32>>
  %w = zero.wait %f : !zero.future<tensor<10x4xf32>>
  // CHECK: %[[R:.*]] = zero.reduce_scatter_start %{{.*}}, %{{.*}} average on @dp : (tensor<10x4xf32>, tensor<10x4xf32>) -> !zero.future<tensor<3x4xf32>, tensor<3x4xf32>>
  %r = zero.reduce_scatter_start %g, %w average on @dp : (tensor<10x4xf32>, tensor<10x4xf32>) -> !zero.future<tensor<3x4xf32>, tensor<3x4xf32>>
  // CHECK: zero.wait %[[R]] : !zero.future<tensor<3x4xf32>, tensor<3x4xf32>>
  %x:2 = zero.wait %r : !zero.future<tensor<3x4xf32>, tensor<3x4xf32>>
  // CHECK: zero.all_reduce_start %{{.*}} average on @dp : (tensor<10x4xf32>) -> !zero.future<tensor<10x4xf32>>
  %a = zero.all_reduce_start %g average on @dp : (tensor<10x4xf32>) -> !zero.future<tensor<10x4xf32>>
  %y = zero.wait %a : !zero.future<tensor<10x4xf32>>
  return
}

// CHECK-LABEL: func.func @memory
func.func @memory() {
  %h = zero.read @far : !zero.sharded<10x8xbf16, @hsdp, axes = [1], dim = 1, mem = host>
  // CHECK: zero.transfer %{{.*}} from host to device : (!zero.sharded<10x8xbf16, @hsdp, axes = [1], dim = 1, mem = host>) -> !zero.sharded<10x8xbf16, @hsdp, axes = [1], dim = 1>
  %d = zero.transfer %h from host to device : (!zero.sharded<10x8xbf16, @hsdp, axes = [1], dim = 1, mem = host>) -> !zero.sharded<10x8xbf16, @hsdp, axes = [1], dim = 1>
  // CHECK: zero.transfer_start %{{.*}} from host to disk : (!zero.sharded<10x8xbf16, @hsdp, axes = [1], dim = 1, mem = host>) -> !zero.future<!zero.sharded<10x8xbf16, @hsdp, axes = [1], dim = 1, mem = disk>>
  %f = zero.transfer_start %h from host to disk : (!zero.sharded<10x8xbf16, @hsdp, axes = [1], dim = 1, mem = host>) -> !zero.future<!zero.sharded<10x8xbf16, @hsdp, axes = [1], dim = 1, mem = disk>>
  %e = zero.wait %f : !zero.future<!zero.sharded<10x8xbf16, @hsdp, axes = [1], dim = 1, mem = disk>>
  return
}

// A plain tensor keeps its type; state that is not cut has no axes.
// CHECK-LABEL: func.func @plain_tensors
func.func @plain_tensors(%g: tensor<4xbf16>, %s: tensor<f32>,
                 %m: !zero.sharded<4xf32, @hsdp, axes = [], dim = 0, mem = host>) {
  // CHECK: zero.transfer %{{.*}}, %{{.*}} from device to host : (tensor<4xbf16>, tensor<f32>) -> (tensor<4xbf16>, tensor<f32>)
  %gh, %sh = zero.transfer %g, %s from device to host : (tensor<4xbf16>, tensor<f32>) -> (tensor<4xbf16>, tensor<f32>)
  // CHECK: zero.local %{{.*}} on @hsdp axes [] : !zero.sharded<4xf32, @hsdp, axes = [], dim = 0, mem = host> -> tensor<4xf32>
  %l = zero.local %m on @hsdp axes [] : !zero.sharded<4xf32, @hsdp, axes = [], dim = 0, mem = host> -> tensor<4xf32>
  // CHECK: zero.on_host (%[[X:.*]] = %{{.*}}, %[[Y:.*]] = %{{.*}}) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> {
  // CHECK-NEXT: arith.addf %[[X]], %[[X]]
  // CHECK-NEXT: zero.yield %{{.*}} : tensor<4xf32>
  // CHECK-NEXT: }
  %n = zero.on_host (%x = %l, %y = %sh) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> {
    %z = arith.addf %x, %x : tensor<4xf32>
    zero.yield %z : tensor<4xf32>
  }
  // CHECK: zero.on_host_start (%{{.*}} = %{{.*}}) : (tensor<4xf32>) -> !zero.future<tensor<4xf32>> {
  %f = zero.on_host_start (%x = %n) : (tensor<4xf32>) -> !zero.future<tensor<4xf32>> {
    zero.yield %x : tensor<4xf32>
  }
  %w = zero.wait %f : !zero.future<tensor<4xf32>>
  return
}

// CHECK-LABEL: func.func @chunks
func.func @chunks(%w: tensor<10x8xf32>, %b: tensor<8xf32>) -> tensor<10x8xf32> {
  // CHECK: %[[C:.*]]:2 = zero.reshard %{{.*}}, %{{.*}} on @hsdp axes [1] : (tensor<10x8xf32>, tensor<8xf32>) -> (tensor<3x8xf32>, tensor<2xf32>)
  %c:2 = zero.reshard %w, %b on @hsdp axes [1] : (tensor<10x8xf32>, tensor<8xf32>) -> (tensor<3x8xf32>, tensor<2xf32>)
  // CHECK: zero.all_gather %[[C]]#0 on @hsdp axes [1]
  %v = zero.all_gather %c#0 on @hsdp axes [1] : (tensor<3x8xf32>) -> tensor<10x8xf32>
  return %v : tensor<10x8xf32>
}
