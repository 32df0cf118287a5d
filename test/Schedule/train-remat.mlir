// Values of the forward pass are computed again where the backward pass reads
// them: nothing, what is cheap and large, all inside of layers, or what a budget
// of bytes needs.
// RUN: zero-opt %s --train-remat=mode=none | FileCheck %s --check-prefix=NONE
// RUN: zero-opt %s --train-remat=mode=selective | FileCheck %s --check-prefix=CHEAP
// RUN: zero-opt %s --train-remat=mode=full | FileCheck %s --check-prefix=FULL
// RUN: zero-opt %s --train-remat='mode=budget bytes=100000000' | FileCheck %s --check-prefix=NONE
// RUN: zero-opt %s --train-remat='mode=budget bytes=2400000' | FileCheck %s --check-prefix=CHEAP
// RUN: zero-opt %s --train-remat='mode=budget bytes=2000000' | FileCheck %s --check-prefix=FULL

// A budget that nothing meets: what takes the least.
// RUN: zero-opt %s --train-remat='mode=budget bytes=1' 2>/dev/null | FileCheck %s --check-prefix=FULL
// RUN: zero-opt %s --train-remat='mode=budget bytes=1' 2>&1 >/dev/null | FileCheck %s --check-prefix=UNMET
// RUN: zero-opt %s --train-remat='mode=budget bytes=2000000' 2>&1 >/dev/null | count 0

// Copies stay copies: an attribute makes them differ from what they repeat.
// RUN: zero-opt %s --train-remat=mode=full --canonicalize --cse --canonicalize --cse | FileCheck %s --check-prefix=FULL

// Why, on request.
// RUN: zero-opt %s --train-remat=mode=selective --remarks-filter='train-.*' 2>&1 >/dev/null | FileCheck %s --check-prefix=WHY
// RUN: zero-opt %s --train-remat=mode=selective 2>&1 >/dev/null | count 0

// A layer is gathered once for the forward pass, and once for the backward pass
// and what that computes again.
// RUN: zero-opt %s --zero-pipeline='stage=3 ranks=4 schedule=none keep-adjacent=false remat=full' | FileCheck %s --check-prefix=GATHER

// UNMET: warning: train-remat: the step's values need {{[0-9]+}} bytes with all recomputation there is, more than the budget of 1

// NONE-NOT: {zero.recomputed}

// The module says how many ops, and their seconds.
// CHEAP: module attributes {zero.recomputed = 1 : i64, zero.recomputed_seconds = {{.*}} : f64}
// CHEAP: %[[H:.*]] = train.matmul %arg0, %a.0.w :
// CHEAP-NOT: zero.recomputed
// CHEAP: %[[DY:.*]] = train.matmul %{{.*}}, %a.1.w {transpose_b}
// CHEAP-NEXT: %[[G:.*]] = train.gelu %[[H]] {zero.recomputed}
// CHEAP-NEXT: train.matmul %[[G]], %[[DY]] {transpose_a}
// CHEAP-NOT: zero.recomputed

// FULL: module attributes {zero.recomputed = 2 : i64,
// FULL: %[[H:.*]] = train.matmul %arg0, %a.0.w :
// FULL-NEXT: train.gelu %[[H]] :
// FULL-NOT: zero.recomputed
// FULL: %[[DY:.*]] = train.matmul %{{.*}}, %a.1.w {transpose_b}
// FULL-NEXT: %[[AGAIN:.*]] = train.matmul %arg0, %a.0.w {zero.recomputed}
// FULL-NEXT: %[[G:.*]] = train.gelu %[[AGAIN]] {zero.recomputed}
// FULL-NEXT: train.matmul %[[G]], %[[DY]] {transpose_a}
// FULL: train.gelu_grad %{{.*}}, %[[AGAIN]]
// FULL-NOT: zero.recomputed

// WHY: train-remat.mlir:[[#]]:9: remark: [Passed] recomputed | Category:train-remat | Remark="the backward pass computes 1 gelu of layer 'a.0' again: 512.0 KiB are not held, for {{.*}} us"
// WHY: remark: [Analysis] plan | Category:train-remat | Remark="values take 2.2 MiB at the peak instead of 2.8 MiB, for {{.*}} us of computing again"

// GATHER: zero.all_gather %a.0.w, %a.0.v
// GATHER: zero.all_gather %a.1.w, %a.1.v
// GATHER: zero.all_gather %a.1.w, %a.1.v
// GATHER: zero.all_gather %a.0.w, %a.0.v
// GATHER-NEXT: train.matmul %arg0, %{{.*}} {zero.recomputed}
// GATHER-NOT: zero.all_gather

zero.param @a.0.w : tensor<64x256xf32> unit("a.0")
zero.param @a.0.v : tensor<256x64xf32> unit("a.0")
zero.param @a.1.w : tensor<64x256xf32> unit("a.1")
zero.param @a.1.v : tensor<256x64xf32> unit("a.1")
func.func @step(%x: tensor<512x64xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"})
    -> (tensor<512x64xf32> {zero.output = "y", zero.across = "mean"}) {
  %w0 = zero.read @a.0.w : tensor<64x256xf32>
  %h0 = train.matmul %x, %w0 : (tensor<512x64xf32>, tensor<64x256xf32>) -> tensor<512x256xf32>
  %g0 = train.gelu %h0 : tensor<512x256xf32>
  %v0 = zero.read @a.0.v : tensor<256x64xf32>
  %y0 = train.matmul %g0, %v0 : (tensor<512x256xf32>, tensor<256x64xf32>) -> tensor<512x64xf32>
  %w1 = zero.read @a.1.w : tensor<64x256xf32>
  %h1 = train.matmul %y0, %w1 : (tensor<512x64xf32>, tensor<64x256xf32>) -> tensor<512x256xf32>
  %g1 = train.gelu %h1 : tensor<512x256xf32>
  %v1 = zero.read @a.1.v : tensor<256x64xf32>
  %y1 = train.matmul %g1, %v1 : (tensor<512x256xf32>, tensor<256x64xf32>) -> tensor<512x64xf32>
  // The backward pass of half the sum of squares of %y1.
  %dv1 = train.matmul %g1, %y1 {transpose_a} : (tensor<512x256xf32>, tensor<512x64xf32>) -> tensor<256x64xf32>
  %dg1 = train.matmul %y1, %v1 {transpose_b} : (tensor<512x64xf32>, tensor<256x64xf32>) -> tensor<512x256xf32>
  %dh1 = train.gelu_grad %dg1, %h1 : tensor<512x256xf32>
  %dw1 = train.matmul %y0, %dh1 {transpose_a} : (tensor<512x64xf32>, tensor<512x256xf32>) -> tensor<64x256xf32>
  %dy0 = train.matmul %dh1, %w1 {transpose_b} : (tensor<512x256xf32>, tensor<64x256xf32>) -> tensor<512x64xf32>
  %dv0 = train.matmul %g0, %dy0 {transpose_a} : (tensor<512x256xf32>, tensor<512x64xf32>) -> tensor<256x64xf32>
  %dg0 = train.matmul %dy0, %v0 {transpose_b} : (tensor<512x64xf32>, tensor<256x64xf32>) -> tensor<512x256xf32>
  %dh0 = train.gelu_grad %dg0, %h0 : tensor<512x256xf32>
  %dw0 = train.matmul %x, %dh0 {transpose_a} : (tensor<512x64xf32>, tensor<512x256xf32>) -> tensor<64x256xf32>
  %nw0 = train.sgd %w0, %dw0, %lr : (tensor<64x256xf32>, tensor<64x256xf32>, tensor<f32>) -> tensor<64x256xf32>
  zero.assign @a.0.w, %nw0 : tensor<64x256xf32>
  %nv0 = train.sgd %v0, %dv0, %lr : (tensor<256x64xf32>, tensor<256x64xf32>, tensor<f32>) -> tensor<256x64xf32>
  zero.assign @a.0.v, %nv0 : tensor<256x64xf32>
  %nw1 = train.sgd %w1, %dw1, %lr : (tensor<64x256xf32>, tensor<64x256xf32>, tensor<f32>) -> tensor<64x256xf32>
  zero.assign @a.1.w, %nw1 : tensor<64x256xf32>
  %nv1 = train.sgd %v1, %dv1, %lr : (tensor<256x64xf32>, tensor<256x64xf32>, tensor<f32>) -> tensor<256x64xf32>
  zero.assign @a.1.v, %nv1 : tensor<256x64xf32>
  return %y1 : tensor<512x64xf32>
}
