// Between forward and backward a gathered parameter stays whole where memory allows;
// where it does not, its chunk over the last axis may stay, and the second gather
// spans that axis alone; with still less it is gathered from all ranks again.
// RUN: zero-opt %s --zero-stage=3 --zero-grid=4x8 --zero-shard=all --zero-machine=h100 --zero-schedule=keep | FileCheck %s --check-prefix=KEPT
// RUN: zero-opt %s --zero-stage=3 --zero-grid=4x8 --zero-shard=all --zero-machine=h100 --zero-schedule=keep --zero-memory=1450000000 | FileCheck %s --check-prefix=CHUNK
// RUN: zero-opt %s --zero-stage=3 --zero-grid=4x8 --zero-shard=all --zero-machine=h100 --zero-memory=1450000000 | FileCheck %s --check-prefix=CHUNK
// RUN: zero-opt %s --zero-stage=3 --zero-grid=4x8 --zero-shard=all --zero-machine=h100 --zero-memory=1360000000 | FileCheck %s --check-prefix=AGAIN
// RUN: zero-opt %s --zero-stage=3 --zero-grid=4x8 --zero-shard=all --zero-machine=h100 --zero-memory=1450000000 --remarks-filter='zero-.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// Scheduled again for more memory, the chunk goes.
// RUN: zero-opt %s --zero-stage=3 --zero-grid=4x8 --zero-shard=all --zero-machine=h100 --zero-memory=1450000000 -o %t.mlir
// RUN: zero-opt %t.mlir --zero-keep-gathered='machine=h100 memory=4000000000' --zero-verify | FileCheck %s --check-prefix=KEPT
// RUN: zero-opt %t.mlir --zero-keep-gathered='machine=h100 memory=1360000000' --zero-verify | FileCheck %s --check-prefix=AGAIN
// Over the last axis alone, or where no gather may go, there is nothing to choose.
// RUN: zero-opt %s --zero-stage=3 --zero-grid=4x8 --zero-machine=h100 --zero-memory=2000000000 | FileCheck %s --check-prefix=NONE
// RUN: zero-opt %s --zero-stage=3 --zero-grid=4x8 --zero-shard=all --zero-machine=h100 --zero-schedule=prefetch | FileCheck %s --check-prefix=NONE

// KEPT-NOT: zero.reshard
// KEPT-COUNT-1: = zero.all_gather
// KEPT-NOT: = zero.all_gather
// AGAIN-NOT: zero.reshard
// AGAIN-COUNT-2: = zero.all_gather{{.*}} on @hsdp axes [0, 1]
// AGAIN-NOT: zero.reshard
// NONE-NOT: zero.reshard

// CHUNK-LABEL: func.func @step
// CHUNK: %[[W:.*]] = zero.all_gather %{{.*}} on @hsdp axes [0, 1]
// CHUNK: train.matmul %arg0, %[[W]]
// CHUNK: %[[C:.*]] = zero.reshard %[[W]] on @hsdp axes [1] : (tensor<8192x8192xf32>) -> tensor<1024x8192xf32>
// CHUNK: zero.release %[[W]]
// CHUNK: %[[V:.*]] = zero.all_gather %[[C]] on @hsdp axes [1] : (tensor<1024x8192xf32>)
// CHUNK-NEXT: zero.release %[[C]]
// CHUNK: zero.release %[[V]]
// REMARK: the second all_gather of 'w' spans the last axis of the grid only: a chunk of 32.0 MiB stays from forward to backward
zero.param @w : tensor<8192x8192xf32>
func.func @step(%x: tensor<4096x8192xf32> {zero.input = "x"},
                %m: tensor<4096x16384xf32> {zero.input = "m"}, %lr: tensor<f32> {zero.hyper = "lr"})
    -> (tensor<4096x8192xf32> {zero.output = "p", zero.across = "mean"}) {
  %w = zero.read @w : tensor<8192x8192xf32>
  %h = train.matmul %x, %w : (tensor<4096x8192xf32>, tensor<8192x8192xf32>) -> tensor<4096x8192xf32>
  %p = train.softmax %h axis 1 : tensor<4096x8192xf32>
  %q = train.softmax %p axis 1 : tensor<4096x8192xf32>
  %r = train.concat %p, %q axis 0 : (tensor<4096x8192xf32>, tensor<4096x8192xf32>) -> tensor<8192x8192xf32>
  %r2 = train.concat %r, %r axis 0 : (tensor<8192x8192xf32>, tensor<8192x8192xf32>) -> tensor<16384x8192xf32>
  %dh = train.matmul %m, %r2 : (tensor<4096x16384xf32>, tensor<16384x8192xf32>) -> tensor<4096x8192xf32>
  %dx = train.matmul %dh, %w {transpose_b} : (tensor<4096x8192xf32>, tensor<8192x8192xf32>) -> tensor<4096x8192xf32>
  %dw = train.matmul %x, %dx {transpose_a} : (tensor<4096x8192xf32>, tensor<4096x8192xf32>) -> tensor<8192x8192xf32>
  %n = train.sgd %w, %dw, %lr : (tensor<8192x8192xf32>, tensor<8192x8192xf32>, tensor<f32>) -> tensor<8192x8192xf32>
  zero.assign @w, %n : tensor<8192x8192xf32>
  return %p : tensor<4096x8192xf32>
}
