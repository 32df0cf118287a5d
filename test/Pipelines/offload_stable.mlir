// Passes of MLIR that know nothing of ZeRO leave a scheduled step whose optimizer
// state lies elsewhere as it is: the same copies, the same compute of the host, the
// same starts and waits, each at the same place.
// RUN: zero-opt %s --zero-pipeline="stage=2 ranks=4 schedule=prefetch offload=optimizer=host" -o %t.host
// RUN: FileCheck %s --check-prefixes=CHECK,HOST < %t.host
// RUN: zero-opt %t.host --cse --canonicalize --loop-invariant-code-motion | grep -o "[a-z]*\.[a-z_]* " > %t.host.after
// RUN: grep -o "[a-z]*\.[a-z_]* " %t.host > %t.host.before
// RUN: diff %t.host.before %t.host.after

// RUN: zero-opt %s --zero-pipeline="stage=2 ranks=4 schedule=prefetch offload=optimizer=disk" -o %t.disk
// RUN: FileCheck %s --check-prefixes=CHECK,DISK < %t.disk
// RUN: zero-opt %t.disk --cse --canonicalize --loop-invariant-code-motion | grep -o "[a-z]*\.[a-z_]* " > %t.disk.after
// RUN: grep -o "[a-z]*\.[a-z_]* " %t.disk > %t.disk.before
// RUN: diff %t.disk.before %t.disk.after

zero.param @a : tensor<8x8xf32>
zero.param @b : tensor<8x8xf32>
zero.state @a.m of @a : tensor<8x8xf32> zeros
zero.state @b.m of @b : tensor<8x8xf32> zeros

// CHECK-LABEL: func.func @step
// DISK: zero.transfer{{.*}} from disk to host
// HOST: zero.transfer{{.*}} from device to host
// CHECK: zero.on_host
// CHECK: train.sgd
// CHECK: zero.yield
// CHECK: zero.transfer{{.*}} from host to
// CHECK: return
func.func @step(%x: tensor<8x8xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
  %a = zero.read @a : tensor<8x8xf32>
  %h = train.matmul %x, %a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = zero.read @b : tensor<8x8xf32>
  %y = train.matmul %h, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %db = train.matmul %h, %y {transpose_a} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dh = train.matmul %y, %b {transpose_b} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %da = train.matmul %x, %dh {transpose_a} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %am = zero.read @a.m : tensor<8x8xf32>
  %bm = zero.read @b.m : tensor<8x8xf32>
  %an, %amn = train.sgd %a, %da, %am, %lr {momentum = 0.9 : f64} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  zero.assign @a, %an : tensor<8x8xf32>
  zero.assign @a.m, %amn : tensor<8x8xf32>
  %bn, %bmn = train.sgd %b, %db, %bm, %lr {momentum = 0.9 : f64} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  zero.assign @b, %bn : tensor<8x8xf32>
  zero.assign @b.m, %bmn : tensor<8x8xf32>
  return
}
