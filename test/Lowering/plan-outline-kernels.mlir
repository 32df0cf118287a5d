// RUN: zero-opt --plan-outline-kernels --split-input-file %s | FileCheck %s

// An elementwise chain becomes one kernel; the scalar goes into it, and the
// value that is read twice is one more result.
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[X:.*]]: tensor<8x16xf32>, %[[B:.*]]: tensor<16xf32>
// CHECK-NEXT: %[[K:.*]]:2 = plan.dispatch @add_gelu_mul_8x16(%[[X]], %[[B]]) tied [-1, -1]
// CHECK-NEXT: return %[[K]]#0, %[[K]]#1
// CHECK: func.func private @add_gelu_mul_8x16(
// CHECK-SAME: attributes {plan.kernel}
// CHECK-NEXT: %[[SUM:.*]] = train.add
// CHECK-NEXT: %[[GELU:.*]] = train.gelu %[[SUM]]
// CHECK-NEXT: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[MUL:.*]] = train.mul %[[GELU]], %[[TWO]]
// CHECK-NEXT: return %[[SUM]], %[[MUL]]
func.func @step(%x: tensor<8x16xf32>, %b: tensor<16xf32>)
    -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %two = arith.constant dense<2.0> : tensor<f32>
  %0 = train.add %x, %b
      : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  %1 = train.gelu %0 : tensor<8x16xf32>
  %2 = train.mul %1, %two : (tensor<8x16xf32>, tensor<f32>) -> tensor<8x16xf32>
  return %0, %2 : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// Matrix products stay; reshapes and what only they see through strides too.
// The large constant is an operand.
// CHECK-LABEL: func.func @step
// CHECK: %[[MASK:.*]] = arith.constant dense<{{.*}}> : tensor<2x2xf32>
// CHECK-NEXT: %[[T:.*]] = train.transpose
// CHECK-NEXT: %[[P:.*]] = train.matmul %{{.*}}, %[[T]]
// CHECK-NEXT: %[[R:.*]] = train.reshape %[[P]]
// CHECK-NEXT: plan.dispatch @add_softmax_1x2x2(%[[R]], %[[MASK]]) tied [-1]
// CHECK-NOT: train.softmax
// CHECK: func.func private @add_softmax_1x2x2
// CHECK: train.softmax
func.func @step(%q: tensor<2x3xf32>, %k: tensor<2x3xf32>) -> tensor<1x2x2xf32> {
  %mask = arith.constant dense<[[0.0, -1.0e9], [0.0, 0.0]]> : tensor<2x2xf32>
  %t = train.transpose %k [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %p = train.matmul %q, %t
      : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %r = train.reshape %p : tensor<2x2xf32> to tensor<1x2x2xf32>
  %m = train.add %r, %mask
      : (tensor<1x2x2xf32>, tensor<2x2xf32>) -> tensor<1x2x2xf32>
  %s = train.softmax %m axis 2 : tensor<1x2x2xf32>
  return %s : tensor<1x2x2xf32>
}

// -----

// Equal kernels are one, whatever layers their ops are of; an update runs in
// place and takes no producer in, so that one rank and many run the same ones.
// CHECK-LABEL: func.func @step
// CHECK: %[[G:.*]] = plan.dispatch @neg_4
// CHECK-NEXT: %[[A:.*]]:2 = plan.dispatch @sgd_4(%{{.*}}, %[[G]], %{{.*}}, %{{.*}}) tied [0, 2]
// CHECK-NEXT: %[[B:.*]]:2 = plan.dispatch @sgd_4(
// CHECK: func.func private @neg_4
// CHECK: func.func private @sgd_4
// CHECK-SAME: attributes {plan.kernel, plan.tied = array<i64: 0, 2>}
// CHECK-NOT: func.func
func.func @step(%p: tensor<4xf32>, %q: tensor<4xf32>, %m: tensor<4xf32>,
                %n: tensor<4xf32>, %g: tensor<4xf32>, %lr: tensor<f32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %d = train.neg %g : tensor<4xf32>
  %0:2 = train.sgd %p, %d, %m, %lr {momentum = 0.9 : f64, layer = "a"}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
      -> (tensor<4xf32>, tensor<4xf32>)
  %1:2 = train.sgd %q, %d, %n, %lr {momentum = 0.9 : f64, layer = "b"}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
      -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1, %1#0, %1#1
      : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A release moves behind the kernel that the op using the value joined.
// CHECK-LABEL: func.func @step
// CHECK: %[[B:.*]] = zero.all_gather
// CHECK-NEXT: plan.dispatch @add_relu_8(%{{.*}}, %[[B]])
// CHECK-NEXT: zero.release %[[B]]
shard.grid @dp(shape = 2)
zero.param @b : !zero.sharded<8xf32, @dp, dim = 0> zeros
func.func @step(%x: tensor<8xf32>) -> tensor<8xf32> {
  %s = zero.read @b : !zero.sharded<8xf32, @dp, dim = 0>
  %b = zero.all_gather %s on @dp
      : (!zero.sharded<8xf32, @dp, dim = 0>) -> tensor<8xf32>
  %0 = train.add %x, %b : tensor<8xf32>
  zero.release %b : tensor<8xf32>
  %1 = train.relu %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// The same where the kernel reads the gathered value through a view.
// CHECK-LABEL: func.func @step
// CHECK: %[[B:.*]] = zero.all_gather
// CHECK-NEXT: %[[R:.*]] = train.reshape %[[B]]
// CHECK-NEXT: plan.dispatch @add_relu_2x4(%{{.*}}, %[[R]])
// CHECK-NEXT: zero.release %[[B]]
shard.grid @dp(shape = 2)
zero.param @b : !zero.sharded<8xf32, @dp, dim = 0> zeros
func.func @step(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %s = zero.read @b : !zero.sharded<8xf32, @dp, dim = 0>
  %b = zero.all_gather %s on @dp
      : (!zero.sharded<8xf32, @dp, dim = 0>) -> tensor<8xf32>
  %r = train.reshape %b : tensor<8xf32> to tensor<2x4xf32>
  %0 = train.add %x, %r : tensor<2x4xf32>
  zero.release %b : tensor<8xf32>
  %1 = train.relu %0 : tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// -----

// A step in upstream dialects: the update is tied to the parameter that its
// result replaces, the empty tensor goes into the kernel.
// CHECK-LABEL: func.func @step
// CHECK: %[[P:.*]] = zero.read @p
// CHECK-NEXT: %[[N:.*]] = plan.dispatch @mulf_subf_6(%{{.*}}, %{{.*}}, %[[P]]) tied [2]
// CHECK-NEXT: zero.assign @p, %[[N]]
// CHECK-NEXT: plan.dispatch @generic_scalar(%[[N]]) tied [-1]
// CHECK: func.func private @mulf_subf_6
// CHECK: func.func private @generic_scalar(%{{.*}}: tensor<6xf32>) -> tensor<f32>
// CHECK: linalg.fill
// CHECK: linalg.generic
zero.param @p : tensor<6xf32> zeros
func.func @step(%g: tensor<6xf32>, %lr: tensor<6xf32>) -> tensor<f32> {
  %p = zero.read @p : tensor<6xf32>
  %0 = arith.mulf %g, %lr : tensor<6xf32>
  %1 = arith.subf %p, %0 : tensor<6xf32>
  zero.assign @p, %1 : tensor<6xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {
      indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>],
      iterator_types = ["reduction"]}
      ins(%1 : tensor<6xf32>) outs(%i : tensor<f32>) {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      linalg.yield %c : f32
  } -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// Gradients of three slices of one tensor: side by side, not padded and added.
// CHECK-LABEL: func.func @step
// CHECK-NEXT: plan.dispatch @concat_2x6(%{{.*}}, %{{.*}}, %{{.*}}) tied [-1]
// CHECK-NEXT: return
func.func @step(%q: tensor<2x1xf32>, %k: tensor<2x2xf32>, %v: tensor<2x3xf32>)
    -> tensor<2x6xf32> {
  %0 = train.pad %q low [0, 0] high [0, 5] interior [0, 0]
      : (tensor<2x1xf32>) -> tensor<2x6xf32>
  %1 = train.pad %k low [0, 1] high [0, 3] interior [0, 0]
      : (tensor<2x2xf32>) -> tensor<2x6xf32>
  %2 = train.pad %v low [0, 3] high [0, 0] interior [0, 0]
      : (tensor<2x3xf32>) -> tensor<2x6xf32>
  %3 = train.add %2, %0 : tensor<2x6xf32>
  %4 = train.add %3, %1 : tensor<2x6xf32>
  return %4 : tensor<2x6xf32>
}

// -----

// Pads that leave a gap stay a sum.
// CHECK-LABEL: func.func @step
// CHECK-NOT: concat
// CHECK: train.pad
// CHECK: train.add
func.func @step(%q: tensor<2x1xf32>, %v: tensor<2x3xf32>) -> tensor<2x6xf32> {
  %0 = train.pad %q low [0, 0] high [0, 5] interior [0, 0]
      : (tensor<2x1xf32>) -> tensor<2x6xf32>
  %1 = train.pad %v low [0, 3] high [0, 0] interior [0, 0]
      : (tensor<2x3xf32>) -> tensor<2x6xf32>
  %2 = train.add %1, %0 : tensor<2x6xf32>
  return %2 : tensor<2x6xf32>
}

// -----

// Queries of a joint projection: slice, split into heads, transpose and scale
// in one pass.
// CHECK-LABEL: func.func @step
// CHECK-NEXT: plan.dispatch @slice_reshape_transpose_mul_2x3x2x4(%{{.*}}) tied [-1]
// CHECK-NEXT: return
func.func @step(%x: tensor<2x2x36xf32>) -> tensor<2x3x2x4xf32> {
  %scale = arith.constant dense<0.5> : tensor<f32>
  %0 = train.slice %x starts [0, 0, 12] limits [2, 2, 24] strides [1, 1, 1]
      : (tensor<2x2x36xf32>) -> tensor<2x2x12xf32>
  %1 = train.reshape %0 : tensor<2x2x12xf32> to tensor<2x2x3x4xf32>
  %2 = train.transpose %1 [0, 2, 1, 3]
      : (tensor<2x2x3x4xf32>) -> tensor<2x3x2x4xf32>
  %3 = train.mul %2, %scale
      : (tensor<2x3x2x4xf32>, tensor<f32>) -> tensor<2x3x2x4xf32>
  return %3 : tensor<2x3x2x4xf32>
}
