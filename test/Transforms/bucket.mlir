// Which collectives become one, and where it stands.
// RUN: zero-opt %s --split-input-file --zero-bucket | FileCheck %s
// RUN: zero-opt %s --split-input-file --zero-bucket=bytes=100 | FileCheck %s --check-prefix=SMALL
// RUN: not zero-opt %s --split-input-file --zero-bucket=bytes=-1 2>&1 | FileCheck %s --check-prefix=MINUS
// MINUS: error: expects a bucket size of at least 0, got -1

shard.grid @dp(shape = 4)
zero.param @a.weight : tensor<10x4xf32> unit("a")
zero.param @a.bias : tensor<10xf32> unit("a")
zero.param @b.weight : tensor<4x4xf32> unit("b")

// Gradients of one unit are reduced when the last one is complete; 160 and 40
// bytes are too much for a bucket of 100.
// CHECK-LABEL: func.func @reductions
// CHECK-NOT: zero.reduce_scatter
// CHECK: %[[H:.*]] = arith.negf
// CHECK-NEXT: %[[R:.*]]:2 = zero.reduce_scatter %arg1, %[[H]] average on @dp : (tensor<10xf32>, tensor<10x4xf32>) -> (tensor<3xf32>, tensor<3x4xf32>)
// CHECK-NEXT: %[[O:.*]] = zero.reduce_scatter %arg2 average
// CHECK-NEXT: zero.all_gather %[[R]]#1
// SMALL-LABEL: func.func @reductions
// SMALL-NEXT: zero.reduce_scatter %arg1 average
// SMALL-NEXT: arith.negf
// SMALL-NEXT: zero.reduce_scatter %{{.*}} average on @dp : (tensor<10x4xf32>)
func.func @reductions(%dw: tensor<10x4xf32>, %db: tensor<10xf32>, %dv: tensor<4x4xf32>) {
  %rb = zero.reduce_scatter %db average on @dp : (tensor<10xf32>) -> tensor<3xf32>
  %h = arith.negf %dw : tensor<10x4xf32>
  %rw = zero.reduce_scatter %h average on @dp : (tensor<10x4xf32>) -> tensor<3x4xf32>
  %rv = zero.reduce_scatter %dv average on @dp : (tensor<4x4xf32>) -> tensor<1x4xf32>
  %w = zero.all_gather %rw on @dp : (tensor<3x4xf32>) -> tensor<10x4xf32>
  zero.assign @a.weight, %w : tensor<10x4xf32>
  %b = zero.all_gather %rb on @dp : (tensor<3xf32>) -> tensor<10xf32>
  zero.assign @a.bias, %b : tensor<10xf32>
  %v = zero.all_gather %rv on @dp : (tensor<1x4xf32>) -> tensor<4x4xf32>
  zero.assign @b.weight, %v : tensor<4x4xf32>
  return
}

// A use of the first result closes the bucket.
// CHECK-LABEL: func.func @used_between
// CHECK: zero.reduce_scatter %arg1 average
// CHECK: zero.reduce_scatter %arg0 average
func.func @used_between(%dw: tensor<10x4xf32>, %db: tensor<10xf32>) {
  %rb = zero.reduce_scatter %db average on @dp : (tensor<10xf32>) -> tensor<3xf32>
  %nb = arith.negf %rb : tensor<3xf32>
  %rw = zero.reduce_scatter %dw average on @dp : (tensor<10x4xf32>) -> tensor<3x4xf32>
  %w = zero.all_gather %rw on @dp : (tensor<3x4xf32>) -> tensor<10x4xf32>
  zero.assign @a.weight, %w : tensor<10x4xf32>
  %b = zero.all_gather %nb on @dp : (tensor<3xf32>) -> tensor<10xf32>
  zero.assign @a.bias, %b : tensor<10xf32>
  return
}

// Nor do element types.
// CHECK-LABEL: func.func @types
// CHECK: zero.all_reduce %arg1 average
// CHECK: zero.all_reduce %arg0 average
func.func @types(%dw: tensor<10x4xf32>, %db: tensor<10xf64>) {
  %rb = zero.all_reduce %db average on @dp : (tensor<10xf64>) -> tensor<10xf64>
  %rw = zero.all_reduce %dw average on @dp : (tensor<10x4xf32>) -> tensor<10x4xf32>
  zero.assign @a.weight, %rw : tensor<10x4xf32>
  %cb = arith.truncf %rb : tensor<10xf64> to tensor<10xf32>
  zero.assign @a.bias, %cb : tensor<10xf32>
  return
}

// Sums and averages do not mix.
// CHECK-LABEL: func.func @kinds
// CHECK: zero.all_reduce %arg1 average
// CHECK: zero.all_reduce %arg0 on
func.func @kinds(%dw: tensor<10x4xf32>, %db: tensor<10xf32>) {
  %rb = zero.all_reduce %db average on @dp : (tensor<10xf32>) -> tensor<10xf32>
  %rw = zero.all_reduce %dw on @dp : (tensor<10x4xf32>) -> tensor<10x4xf32>
  zero.assign @a.weight, %rw : tensor<10x4xf32>
  zero.assign @a.bias, %rb : tensor<10xf32>
  return
}

// Updated parameters: assignments follow the bucket.
// CHECK-LABEL: func.func @updated
// CHECK: %[[N:.*]] = arith.negf
// CHECK-NEXT: %[[G:.*]]:2 = zero.all_gather %arg0, %[[N]] on @dp : (tensor<3x4xf32>, tensor<3xf32>) -> (tensor<10x4xf32>, tensor<10xf32>)
// CHECK-NEXT: zero.assign @a.weight, %[[G]]#0
// CHECK-NEXT: zero.assign @a.bias, %[[G]]#1
// CHECK-NEXT: %[[V:.*]] = zero.all_gather %arg2
// CHECK-NEXT: zero.assign @b.weight, %[[V]]
func.func @updated(%w: tensor<3x4xf32>, %b: tensor<3xf32>, %v: tensor<1x4xf32>) {
  %gw = zero.all_gather %w on @dp : (tensor<3x4xf32>) -> tensor<10x4xf32>
  zero.assign @a.weight, %gw : tensor<10x4xf32>
  %n = arith.negf %b : tensor<3xf32>
  %gb = zero.all_gather %n on @dp : (tensor<3xf32>) -> tensor<10xf32>
  zero.assign @a.bias, %gb : tensor<10xf32>
  %gv = zero.all_gather %v on @dp : (tensor<1x4xf32>) -> tensor<4x4xf32>
  zero.assign @b.weight, %gv : tensor<4x4xf32>
  return
}

// -----

shard.grid @dp(shape = 4)
zero.param @a.weight : !zero.sharded<10x4xf32, @dp, dim = 0> unit("a")
zero.param @a.bias : !zero.sharded<10xf32, @dp, dim = 0> unit("a")
zero.param @b.weight : !zero.sharded<4x4xf32, @dp, dim = 0> unit("b")

// The gathers of a unit are one, whatever its size, and stay before the use; the
// gather of a later use is another one, though it is of the same unit.
// CHECK-LABEL: func.func @gathers
// CHECK: %[[G:.*]]:2 = zero.all_gather %{{.*}}, %{{.*}} on @dp : (!zero.sharded<10x4xf32, @dp, dim = 0>, !zero.sharded<10xf32, @dp, dim = 0>) -> (tensor<10x4xf32>, tensor<10xf32>)
// CHECK-NEXT: zero.all_gather %{{.*}} : (!zero.sharded<4x4xf32, @dp, dim = 0>) -> tensor<4x4xf32>
// CHECK-NEXT: arith.negf %[[G]]#0
// CHECK-NEXT: zero.all_gather %{{.*}} : (!zero.sharded<10x4xf32, @dp, dim = 0>) -> tensor<10x4xf32>
// SMALL-LABEL: func.func @gathers
// SMALL: zero.all_gather %{{.*}}, %{{.*}} on @dp
func.func @gathers() -> (tensor<10x4xf32>, tensor<10xf32>, tensor<4x4xf32>, tensor<10x4xf32>) {
  %sw = zero.read @a.weight : !zero.sharded<10x4xf32, @dp, dim = 0>
  %sb = zero.read @a.bias : !zero.sharded<10xf32, @dp, dim = 0>
  %sv = zero.read @b.weight : !zero.sharded<4x4xf32, @dp, dim = 0>
  %w = zero.all_gather %sw on @dp : (!zero.sharded<10x4xf32, @dp, dim = 0>) -> tensor<10x4xf32>
  %v = zero.all_gather %sv on @dp : (!zero.sharded<4x4xf32, @dp, dim = 0>) -> tensor<4x4xf32>
  %b = zero.all_gather %sb on @dp : (!zero.sharded<10xf32, @dp, dim = 0>) -> tensor<10xf32>
  %n = arith.negf %w : tensor<10x4xf32>
  %again = zero.all_gather %sw on @dp : (!zero.sharded<10x4xf32, @dp, dim = 0>) -> tensor<10x4xf32>
  return %n, %b, %v, %again : tensor<10x4xf32>, tensor<10xf32>, tensor<4x4xf32>, tensor<10x4xf32>
}

// -----

shard.grid @hsdp(shape = 2x4)
zero.param @a.weight : tensor<10x4xf32> unit("a")
zero.param @a.bias : tensor<10xf32> unit("a")

// Sums over replicas follow the bucket of sums over shards as one of their own;
// where the buckets are full, both end.
// CHECK-LABEL: func.func @hybrid
// CHECK: %[[H:.*]] = arith.negf
// CHECK-NEXT: %[[S:.*]]:2 = zero.reduce_scatter %arg1, %[[H]] average on @hsdp axes [1]
// CHECK-NEXT: %[[R:.*]]:2 = zero.all_reduce %[[S]]#0, %[[S]]#1 average on @hsdp :
// CHECK-NEXT: arith.negf %[[R]]#0
// SMALL-LABEL: func.func @hybrid
// SMALL-NEXT: %[[SB:.*]] = zero.reduce_scatter %arg1 average
// SMALL-NEXT: arith.negf
// SMALL-NEXT: %[[SW:.*]] = zero.reduce_scatter %{{.*}} average
// SMALL-NEXT: zero.all_reduce %[[SB]], %[[SW]] average on @hsdp :
func.func @hybrid(%dw: tensor<10x4xf32>, %db: tensor<10xf32>) {
  %sb = zero.reduce_scatter %db average on @hsdp axes [1] : (tensor<10xf32>) -> tensor<3xf32>
  %rb = zero.all_reduce %sb average on @hsdp axes [0] : (tensor<3xf32>) -> tensor<3xf32>
  %h = arith.negf %dw : tensor<10x4xf32>
  %sw = zero.reduce_scatter %h average on @hsdp axes [1] : (tensor<10x4xf32>) -> tensor<3x4xf32>
  %rw = zero.all_reduce %sw average on @hsdp axes [0] : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %nb = arith.negf %rb : tensor<3xf32>
  %w = zero.all_gather %rw on @hsdp axes [1] : (tensor<3x4xf32>) -> tensor<10x4xf32>
  zero.assign @a.weight, %w : tensor<10x4xf32>
  %b = zero.all_gather %nb on @hsdp axes [1] : (tensor<3xf32>) -> tensor<10xf32>
  zero.assign @a.bias, %b : tensor<10xf32>
  return
}

// A use of a sum over replicas ends both buckets, in this order.
// CHECK-LABEL: func.func @hybrid_used
// CHECK: %[[S:.*]] = zero.reduce_scatter %arg1 average
// CHECK: %[[R:.*]] = zero.all_reduce %[[S]] average
// CHECK: arith.negf %[[R]]
// CHECK: zero.reduce_scatter %arg0 average
func.func @hybrid_used(%dw: tensor<10x4xf32>, %db: tensor<10xf32>) {
  %sb = zero.reduce_scatter %db average on @hsdp axes [1] : (tensor<10xf32>) -> tensor<3xf32>
  %rb = zero.all_reduce %sb average on @hsdp axes [0] : (tensor<3xf32>) -> tensor<3xf32>
  %nb = arith.negf %rb : tensor<3xf32>
  %sw = zero.reduce_scatter %dw average on @hsdp axes [1] : (tensor<10x4xf32>) -> tensor<3x4xf32>
  %rw = zero.all_reduce %sw average on @hsdp axes [0] : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %w = zero.all_gather %rw on @hsdp axes [1] : (tensor<3x4xf32>) -> tensor<10x4xf32>
  zero.assign @a.weight, %w : tensor<10x4xf32>
  %b = zero.all_gather %nb on @hsdp axes [1] : (tensor<3xf32>) -> tensor<10xf32>
  zero.assign @a.bias, %b : tensor<10xf32>
  return
}
