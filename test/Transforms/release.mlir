// Where the life of gathered parameters ends.
// RUN: zero-opt %s --zero-release | FileCheck %s
// Running the pass again adds nothing.
// RUN: zero-opt %s --zero-release --zero-release | FileCheck %s

shard.grid @dp(shape = 4)
zero.param @w : !zero.sharded<10x4xf32, @dp, dim = 0>
zero.param @b : !zero.sharded<10xf32, @dp, dim = 0>
zero.param @r : tensor<10xf32>

// What ends together is released together; a view keeps its source alive, the
// result of an elementwise op does not.
// CHECK-LABEL: func.func @views
// CHECK: %[[G:.*]]:2 = zero.all_gather
// CHECK-NEXT: %[[N:.*]] = arith.negf %[[G]]#1
// CHECK-NEXT: zero.release %[[G]]#1 : tensor<10xf32>
// CHECK-NEXT: %[[C:.*]] = tensor.collapse_shape %[[G]]#0
// CHECK-NEXT: %[[T:.*]] = train.reshape %[[C]]
// CHECK-NEXT: arith.addf %[[T]]
// CHECK-NEXT: zero.release %[[G]]#0 : tensor<10x4xf32>
// CHECK-NEXT: arith.negf
// CHECK-NOT: zero.release
func.func @views(%x: tensor<4x10xf32>) -> (tensor<10xf32>, tensor<4x10xf32>) {
  %sw = zero.read @w : !zero.sharded<10x4xf32, @dp, dim = 0>
  %sb = zero.read @b : !zero.sharded<10xf32, @dp, dim = 0>
  %w, %b = zero.all_gather %sw, %sb on @dp : (!zero.sharded<10x4xf32, @dp, dim = 0>, !zero.sharded<10xf32, @dp, dim = 0>) -> (tensor<10x4xf32>, tensor<10xf32>)
  %n = arith.negf %b : tensor<10xf32>
  %c = tensor.collapse_shape %w [[0, 1]] : tensor<10x4xf32> into tensor<40xf32>
  %t = train.reshape %c : tensor<40xf32> to tensor<4x10xf32>
  %y = arith.addf %t, %x : tensor<4x10xf32>
  %z = arith.negf %y : tensor<4x10xf32>
  return %n, %z : tensor<10xf32>, tensor<4x10xf32>
}

// Each phase has its own gather and its own release; both end at one op here.
// CHECK-LABEL: func.func @phases
// CHECK: %[[F:.*]] = zero.all_gather
// CHECK-NEXT: arith.negf %[[F]]
// CHECK-NEXT: zero.release %[[F]]
// CHECK: %[[B:.*]] = zero.all_gather
// CHECK-NEXT: %[[V:.*]] = zero.all_gather
// CHECK-NEXT: arith.addf %[[B]], %[[V]]
// CHECK-NEXT: zero.release %[[B]], %[[V]] : tensor<10xf32>, tensor<10xf32>
func.func @phases() -> (tensor<10xf32>, tensor<10xf32>) {
  %s = zero.read @b : !zero.sharded<10xf32, @dp, dim = 0>
  %f = zero.all_gather %s on @dp : (!zero.sharded<10xf32, @dp, dim = 0>) -> tensor<10xf32>
  %y = arith.negf %f : tensor<10xf32>
  %b = zero.all_gather %s on @dp : (!zero.sharded<10xf32, @dp, dim = 0>) -> tensor<10xf32>
  %v = zero.all_gather %s on @dp : (!zero.sharded<10xf32, @dp, dim = 0>) -> tensor<10xf32>
  %z = arith.addf %b, %v : tensor<10xf32>
  return %y, %z : tensor<10xf32>, tensor<10xf32>
}

// A use inside a loop ends with the loop; a value in flight is released once it
// has arrived and is used up.
// CHECK-LABEL: func.func @loop
// CHECK: %[[W:.*]] = zero.wait
// CHECK: scf.for
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: zero.release %[[W]]
func.func @loop(%x: tensor<10xf32>, %n: index) -> tensor<10xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = zero.read @b : !zero.sharded<10xf32, @dp, dim = 0>
  %f = zero.all_gather_start %s on @dp : (!zero.sharded<10xf32, @dp, dim = 0>) -> !zero.future<tensor<10xf32>>
  %w = zero.wait %f : !zero.future<tensor<10xf32>>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x) -> tensor<10xf32> {
    %next = arith.addf %acc, %w : tensor<10xf32>
    scf.yield %next : tensor<10xf32>
  }
  return %r : tensor<10xf32>
}

// Not released: what the caller gets, and whole parameters that are assigned.
// CHECK-LABEL: func.func @kept
// CHECK-NOT: zero.release
// CHECK: return
func.func @kept(%l: tensor<3xf32>) -> tensor<10xf32> {
  %s = zero.read @b : !zero.sharded<10xf32, @dp, dim = 0>
  %w = zero.all_gather %s on @dp : (!zero.sharded<10xf32, @dp, dim = 0>) -> tensor<10xf32>
  %u = zero.all_gather %l on @dp : (tensor<3xf32>) -> tensor<10xf32>
  zero.assign @r, %u : tensor<10xf32>
  return %w : tensor<10xf32>
}
