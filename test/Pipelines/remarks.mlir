// Decisions are explained on request, and only then.
// RUN: zero-opt %s --zero-stage=3 --zero-ranks=4 --zero-schedule=none --remarks-filter='zero-.*' 2>&1 >/dev/null | FileCheck %s
// RUN: zero-opt %s --zero-stage=3 --zero-ranks=4 2>&1 >/dev/null | count 0
// RUN: zero-opt %s --zero-stage=3 --zero-ranks=4 --remarks-filter='zero-.*' 2>&1 >/dev/null | FileCheck %s --check-prefix=JOINT

// CHECK-DAG: remark: [Passed] kept | Category:zero-partition | Remark="unit 'fc' stays gathered: the backward needs it before any other unit"
// CHECK-DAG: remark: [Passed] bucket | Category:zero-bucket | Remark="unit 'fc': 2 tensors, 80 bytes in one zero.all_gather"
// CHECK-DAG: remark: [Passed] bucket | Category:zero-bucket | Remark="unit 'fc': 2 tensors, 80 bytes in one zero.reduce_scatter"
// JOINT: remark: [Analysis] plan | Category:zero-schedule
// JOINT: remark: [Passed] kept | Category:zero-schedule | Remark="the second all_gather of 'fc' is dropped

zero.param @fc.weight : tensor<4x4xf32>
zero.param @fc.bias : tensor<4xf32>
func.func @step(%x: tensor<4x4xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"})
    -> (tensor<4x4xf32> {zero.output = "y", zero.across = "mean"}) {
  %w = zero.read @fc.weight : tensor<4x4xf32>
  %b = zero.read @fc.bias : tensor<4xf32>
  %y = train.gemm %x, %w, %b : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %db = train.reduce_sum %y axes [0] : (tensor<4x4xf32>) -> tensor<4xf32>
  %dx = train.matmul %y, %w {transpose_b} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %dw = train.matmul %x, %dx {transpose_a} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %n = train.sgd %w, %dw, %lr : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  zero.assign @fc.weight, %n : tensor<4x4xf32>
  %m = train.sgd %b, %db, %lr : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  zero.assign @fc.bias, %m : tensor<4xf32>
  return %y : tensor<4x4xf32>
}
