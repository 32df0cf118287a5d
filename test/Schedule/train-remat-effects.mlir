// What updates a buffer runs once: batch_norm reads the running statistics, so
// its results are kept where the rest of its layer is computed again. So is
// what has other side effects.
// RUN: zero-opt %s --train-remat=mode=full | FileCheck %s

// CHECK: zero.recomputed = 1 : i64
// CHECK: train.batch_norm %
// CHECK: call @observe
// CHECK-NOT: train.batch_norm %
// CHECK-NOT: call @observe
// CHECK: %[[H:.*]] = train.matmul %arg0, %a.0.w {zero.recomputed}
// CHECK-NEXT: train.batch_norm_grad %{{.*}}, %[[H]],
// CHECK-NOT: {zero.recomputed}
func.func private @observe(tensor<64x32xf32>) -> tensor<64x32xf32>
zero.param @a.0.w : tensor<16x32xf32> unit("a.0")
zero.param @a.0.scale : tensor<32xf32> unit("a.0")
zero.param @a.0.mean : tensor<32xf32> buffer unit("a.0")
zero.param @a.0.var : tensor<32xf32> buffer unit("a.0")
zero.param @a.1.w : tensor<32x8xf32> unit("a.1")
func.func @step(%x: tensor<64x16xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"})
    -> (tensor<64x8xf32> {zero.output = "y", zero.across = "mean"}) {
  %w0 = zero.read @a.0.w : tensor<16x32xf32>
  %scale = zero.read @a.0.scale : tensor<32xf32>
  %mean = zero.read @a.0.mean : tensor<32xf32>
  %var = zero.read @a.0.var : tensor<32xf32>
  %h = train.matmul %x, %w0 : (tensor<64x16xf32>, tensor<16x32xf32>) -> tensor<64x32xf32>
  %n, %newMean, %newVar, %m, %r = train.batch_norm %h, %scale, %scale, %mean, %var {epsilon = 1.0e-5 : f64, momentum = 0.9 : f64}
    : (tensor<64x32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>)
    -> (tensor<64x32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>)
  %o = func.call @observe(%n) : (tensor<64x32xf32>) -> tensor<64x32xf32>
  %a = train.relu %o : tensor<64x32xf32>
  %w1 = zero.read @a.1.w : tensor<32x8xf32>
  %y = train.matmul %a, %w1 : (tensor<64x32xf32>, tensor<32x8xf32>) -> tensor<64x8xf32>
  %dw1 = train.matmul %a, %y {transpose_a} : (tensor<64x32xf32>, tensor<64x8xf32>) -> tensor<32x8xf32>
  %da = train.matmul %y, %w1 {transpose_b} : (tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<64x32xf32>
  %dn = train.relu_grad %da, %o : tensor<64x32xf32>
  %dh, %dscale, %dbias = train.batch_norm_grad %dn, %h, %scale, %m, %r
    : (tensor<64x32xf32>, tensor<64x32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>)
    -> (tensor<64x32xf32>, tensor<32xf32>, tensor<32xf32>)
  %dw0 = train.matmul %x, %dh {transpose_a} : (tensor<64x16xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
  %nw0 = train.sgd %w0, %dw0, %lr : (tensor<16x32xf32>, tensor<16x32xf32>, tensor<f32>) -> tensor<16x32xf32>
  zero.assign @a.0.w, %nw0 : tensor<16x32xf32>
  %ns = train.sgd %scale, %dscale, %lr : (tensor<32xf32>, tensor<32xf32>, tensor<f32>) -> tensor<32xf32>
  zero.assign @a.0.scale, %ns : tensor<32xf32>
  %nw1 = train.sgd %w1, %dw1, %lr : (tensor<32x8xf32>, tensor<32x8xf32>, tensor<f32>) -> tensor<32x8xf32>
  zero.assign @a.1.w, %nw1 : tensor<32x8xf32>
  zero.assign @a.0.mean, %newMean : tensor<32xf32>
  zero.assign @a.0.var, %newVar : tensor<32xf32>
  return %y : tensor<64x8xf32>
}
