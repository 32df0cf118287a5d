// A stock mlir-opt with the plugin partitions a step written in linalg and arith
// as zero-opt does.
// REQUIRES: no-sanitizer
// RUN: mlir-opt %s --load-dialect-plugin=%zero_lib/libZeroPlugin.so --load-pass-plugin=%zero_lib/libZeroPlugin.so --pass-pipeline='builtin.module(zero-pipeline{stage=3 ranks=4})' -o %t.stock
// RUN: FileCheck %s < %t.stock
// RUN: zero-opt %s --zero-stage=3 --zero-ranks=4 -o %t.ours
// RUN: diff %t.stock %t.ours
// RUN: mlir-opt %s --load-dialect-plugin=%zero_lib/libZeroPlugin.so --load-pass-plugin=%zero_lib/libZeroPlugin.so --pass-pipeline='builtin.module(zero-outline-state,zero-annotate{ranks=4},zero-partition{stage=0})' | FileCheck %s --check-prefix=S0
// RUN: mlir-opt %s --load-dialect-plugin=%zero_lib/libZeroPlugin.so --load-pass-plugin=%zero_lib/libZeroPlugin.so --pass-pipeline='builtin.module(zero-outline-state,zero-annotate{ranks=4},zero-partition{stage=1})' | FileCheck %s --check-prefix=S1
// RUN: mlir-opt %s --load-dialect-plugin=%zero_lib/libZeroPlugin.so --load-pass-plugin=%zero_lib/libZeroPlugin.so --pass-pipeline='builtin.module(zero-outline-state,zero-annotate{ranks=4},zero-partition{stage=2})' | FileCheck %s --check-prefix=S1

// CHECK: zero.param @w : !zero.sharded<10x4xf32, @dp, dim = 0> unit("w")
// CHECK: zero.all_gather
// CHECK: linalg.matmul
// CHECK-NEXT: zero.release
// CHECK: zero.reduce_scatter %{{.*}} average on @dp : (tensor<10x4xf32>) -> tensor<3x4xf32>
// CHECK: arith.subf %{{.*}} : tensor<3x4xf32>
// CHECK: zero.assign @w, %{{.*}} : tensor<3x4xf32>
// S0: zero.all_reduce %{{.*}} average on @dp : (tensor<10x4xf32>) -> tensor<10x4xf32>
// S1: zero.reduce_scatter %{{.*}} average on @dp : (tensor<10x4xf32>) -> tensor<3x4xf32>
// S1: zero.all_gather %{{.*}} on @dp : (tensor<3x4xf32>) -> tensor<10x4xf32>

#ik = affine_map<(i, j, k) -> (i, k)>
#jk = affine_map<(i, j, k) -> (j, k)>
#ki = affine_map<(i, j, k) -> (k, i)>
#kj = affine_map<(i, j, k) -> (k, j)>
#ij = affine_map<(i, j, k) -> (i, j)>
func.func @step(
    %w: tensor<10x4xf32> {zero.role = "param", zero.name = "w"},
    %x: tensor<8x4xf32> {zero.role = "input", zero.name = "x"},
    %lr: f32 {zero.role = "hyper", zero.name = "lr"})
    -> (tensor<10x4xf32> {zero.role = "param", zero.of = "w"},
        tensor<8x10xf32> {zero.role = "output", zero.name = "y"}) {
  %e = tensor.empty() : tensor<8x10xf32>
  %y = linalg.matmul indexing_maps = [#ik, #jk, #ij] ins(%x, %w : tensor<8x4xf32>, tensor<10x4xf32>) outs(%e : tensor<8x10xf32>) -> tensor<8x10xf32>
  %f = tensor.empty() : tensor<10x4xf32>
  %dw = linalg.matmul indexing_maps = [#ki, #kj, #ij] ins(%y, %x : tensor<8x10xf32>, tensor<8x4xf32>) outs(%f : tensor<10x4xf32>) -> tensor<10x4xf32>
  %l = tensor.splat %lr : tensor<10x4xf32>
  %s = arith.mulf %dw, %l : tensor<10x4xf32>
  %n = arith.subf %w, %s : tensor<10x4xf32>
  return %n, %y : tensor<10x4xf32>, tensor<8x10xf32>
}
