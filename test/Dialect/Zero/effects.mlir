// Passes of MLIR that know nothing of ZeRO must leave collectives alone.
// RUN: zero-opt %s --cse --canonicalize --loop-invariant-code-motion | FileCheck %s

shard.grid @dp(shape = 4)
zero.param @w : !zero.sharded<10x4xf32, @dp, dim = 0>
zero.param @p : tensor<4xf32>

// Equal gathers are two gathers: the second would otherwise keep the first one's
// result alive from forward to backward.
// CHECK-LABEL: func.func @not_merged
// CHECK-COUNT-2: zero.all_gather
// CHECK: return
func.func @not_merged() -> (tensor<10x4xf32>, tensor<10x4xf32>) {
  %s = zero.read @w : !zero.sharded<10x4xf32, @dp, dim = 0>
  %a = zero.all_gather %s on @dp : (!zero.sharded<10x4xf32, @dp, dim = 0>) -> tensor<10x4xf32>
  %t = zero.read @w : !zero.sharded<10x4xf32, @dp, dim = 0>
  %b = zero.all_gather %t on @dp : (!zero.sharded<10x4xf32, @dp, dim = 0>) -> tensor<10x4xf32>
  return %a, %b : tensor<10x4xf32>, tensor<10x4xf32>
}

// Equal reductions are not merged either.
// CHECK-LABEL: func.func @reductions_not_merged
// CHECK-COUNT-2: zero.reduce_scatter
// CHECK-COUNT-2: zero.all_reduce
// CHECK: return
func.func @reductions_not_merged(%g: tensor<10xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<10xf32>, tensor<10xf32>) {
  %a = zero.reduce_scatter %g average on @dp : (tensor<10xf32>) -> tensor<3xf32>
  %b = zero.reduce_scatter %g average on @dp : (tensor<10xf32>) -> tensor<3xf32>
  %c = zero.all_reduce %g average on @dp : (tensor<10xf32>) -> tensor<10xf32>
  %d = zero.all_reduce %g average on @dp : (tensor<10xf32>) -> tensor<10xf32>
  return %a, %b, %c, %d : tensor<3xf32>, tensor<3xf32>, tensor<10xf32>, tensor<10xf32>
}

// A gather stays in its loop.
// CHECK-LABEL: func.func @not_hoisted
// CHECK: scf.for
// CHECK-NEXT: zero.all_gather
func.func @not_hoisted(%n: index, %x: tensor<10x4xf32>) -> tensor<10x4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %s = zero.read @w : !zero.sharded<10x4xf32, @dp, dim = 0>
  %r = scf.for %i = %zero to %n step %one iter_args(%acc = %x) -> tensor<10x4xf32> {
    %w = zero.all_gather %s on @dp : (!zero.sharded<10x4xf32, @dp, dim = 0>) -> tensor<10x4xf32>
    %next = arith.addf %acc, %w : tensor<10x4xf32>
    scf.yield %next : tensor<10x4xf32>
  }
  return %r : tensor<10x4xf32>
}

// What nobody uses is erased, unless it is in flight.
// CHECK-LABEL: func.func @unused
// CHECK-NEXT: zero.read
// CHECK-NEXT: zero.all_gather_start
// CHECK-NEXT: zero.wait
// CHECK-NEXT: return
func.func @unused(%g: tensor<10xf32>) {
  %s = zero.read @w : !zero.sharded<10x4xf32, @dp, dim = 0>
  %a = zero.all_gather %s on @dp : (!zero.sharded<10x4xf32, @dp, dim = 0>) -> tensor<10x4xf32>
  %b = zero.reduce_scatter %g average on @dp : (tensor<10xf32>) -> tensor<3xf32>
  %f = zero.all_gather_start %s on @dp : (!zero.sharded<10x4xf32, @dp, dim = 0>) -> !zero.future<tensor<10x4xf32>>
  %w = zero.wait %f : !zero.future<tensor<10x4xf32>>
  return
}

// A read after an assignment is another value than the one before it.
// CHECK-LABEL: func.func @read_assign_read
// CHECK: %[[A:.*]] = zero.read @p
// CHECK: zero.assign @p
// CHECK: %[[B:.*]] = zero.read @p
// CHECK: return %[[A]], %[[A]], %[[B]]
func.func @read_assign_read(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = zero.read @p : tensor<4xf32>
  %same = zero.read @p : tensor<4xf32>
  zero.assign @p, %x : tensor<4xf32>
  %b = zero.read @p : tensor<4xf32>
  return %a, %same, %b : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Releases stay where they are.
// CHECK-LABEL: func.func @release_stays
// CHECK: %[[W:.*]] = zero.all_gather
// CHECK-NEXT: %[[Y:.*]] = arith.negf %[[W]]
// CHECK-NEXT: zero.release %[[W]]
// CHECK-NEXT: return %[[Y]]
func.func @release_stays() -> tensor<10x4xf32> {
  %s = zero.read @w : !zero.sharded<10x4xf32, @dp, dim = 0>
  %w = zero.all_gather %s on @dp : (!zero.sharded<10x4xf32, @dp, dim = 0>) -> tensor<10x4xf32>
  %y = arith.negf %w : tensor<10x4xf32>
  zero.release %w : tensor<10x4xf32>
  return %y : tensor<10x4xf32>
}

// Equal transfers are two copies, and equal compute of the host is run twice:
// each has memory of its own, for a time of its own.
// CHECK-LABEL: func.func @copies_not_merged
// CHECK-COUNT-2: zero.transfer
// CHECK-COUNT-2: zero.on_host
// CHECK: return
func.func @copies_not_merged(%g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = zero.transfer %g from device to host : (tensor<4xf32>) -> tensor<4xf32>
  %b = zero.transfer %g from device to host : (tensor<4xf32>) -> tensor<4xf32>
  %c = zero.on_host (%x = %a) : (tensor<4xf32>) -> tensor<4xf32> {
    %y = arith.negf %x : tensor<4xf32>
    zero.yield %y : tensor<4xf32>
  }
  %d = zero.on_host (%x = %a) : (tensor<4xf32>) -> tensor<4xf32> {
    %y = arith.negf %x : tensor<4xf32>
    zero.yield %y : tensor<4xf32>
  }
  %e = zero.on_host (%x = %b, %y = %c, %z = %d) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    %s = arith.addf %x, %y : tensor<4xf32>
    %t = arith.addf %s, %z : tensor<4xf32>
    zero.yield %t : tensor<4xf32>
  }
  %f = zero.transfer %e from host to device : (tensor<4xf32>) -> tensor<4xf32>
  return %f, %g : tensor<4xf32>, tensor<4xf32>
}

// They stay in their loop, and what the body makes stays in the body.
// CHECK-LABEL: func.func @copies_not_hoisted
// CHECK: scf.for
// CHECK-NEXT: zero.transfer
// CHECK-NEXT: zero.on_host
// CHECK-NEXT: arith.constant
// CHECK-NEXT: arith.addf
// CHECK-NEXT: zero.yield
// CHECK-NEXT: }
// CHECK-NEXT: zero.transfer
func.func @copies_not_hoisted(%n: index, %g: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %zero to %n step %one iter_args(%acc = %g) -> tensor<4xf32> {
    %h = zero.transfer %g from device to host : (tensor<4xf32>) -> tensor<4xf32>
    %u = zero.on_host (%x = %h) : (tensor<4xf32>) -> tensor<4xf32> {
      %c = arith.constant dense<1.0> : tensor<4xf32>
      %y = arith.addf %x, %c : tensor<4xf32>
      zero.yield %y : tensor<4xf32>
    }
    %d = zero.transfer %u from host to device : (tensor<4xf32>) -> tensor<4xf32>
    %next = arith.addf %acc, %d : tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// As with collectives, what nobody uses is erased unless it is in flight.
// CHECK-LABEL: func.func @unused_copies
// CHECK-NEXT: zero.transfer_start
// CHECK-NEXT: %[[H:.*]] = zero.wait
// CHECK-NEXT: zero.on_host_start (%{{.*}} = %[[H]])
// CHECK-NEXT: zero.yield
// CHECK-NEXT: }
// CHECK-NEXT: zero.wait
// CHECK-NEXT: return
func.func @unused_copies(%g: tensor<4xf32>) {
  %a = zero.transfer %g from device to host : (tensor<4xf32>) -> tensor<4xf32>
  %b = zero.on_host (%x = %a) : (tensor<4xf32>) -> tensor<4xf32> {
    zero.yield %x : tensor<4xf32>
  }
  %f = zero.transfer_start %g from device to host : (tensor<4xf32>) -> !zero.future<tensor<4xf32>>
  %h = zero.wait %f : !zero.future<tensor<4xf32>>
  %e = zero.on_host_start (%x = %h) : (tensor<4xf32>) -> !zero.future<tensor<4xf32>> {
    zero.yield %x : tensor<4xf32>
  }
  %w = zero.wait %e : !zero.future<tensor<4xf32>>
  return
}
