// Products that no library takes are kernels of plain loops.
// RUN: zero-opt --train-to-linalg --split-input-file %s | FileCheck %s

// The innermost loop is over columns. Sums of f64 may be reordered.
// CHECK-DAG: #[[A:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1)>
// CHECK-DAG: #[[B:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
// CHECK-DAG: #[[Y:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-LABEL: func.func @matmul
// CHECK: linalg.fill
// CHECK: linalg.generic {indexing_maps = [#[[A]], #[[B]], #[[Y]]], iterator_types = ["parallel", "parallel", "reduction", "parallel"]}
// CHECK: arith.mulf
// CHECK: arith.addf {{.*}} fastmath<reassoc>
func.func @matmul(%a: tensor<4x5x3xf64>, %b: tensor<5x2xf64>) -> tensor<4x3x2xf64>
    attributes {plan.kernel} {
  %0 = train.matmul %a, %b {transpose_a} : (tensor<4x5x3xf64>, tensor<5x2xf64>) -> tensor<4x3x2xf64>
  return %0 : tensor<4x3x2xf64>
}

// -----

// The bias is what the sum starts from.
// CHECK-LABEL: func.func @gemm
// CHECK-SAME: %[[C:[^:]*]]: tensor<2xi32>)
// CHECK: %[[BIAS:.*]] = linalg.generic {{.*}} ins(%[[C]] : tensor<2xi32>)
// CHECK: linalg.generic {{.*}} outs(%[[BIAS]] : tensor<3x2xi32>)
// CHECK: arith.muli
// CHECK: arith.addi
func.func @gemm(%a: tensor<3x5xi32>, %b: tensor<5x2xi32>, %c: tensor<2xi32>) -> tensor<3x2xi32>
    attributes {plan.kernel} {
  %0 = train.gemm %a, %b, %c : (tensor<3x5xi32>, tensor<5x2xi32>, tensor<2xi32>) -> tensor<3x2xi32>
  return %0 : tensor<3x2xi32>
}

// -----

// A convolution of integers: what lies in the padding adds nothing and is not read.
// CHECK-LABEL: func.func @conv
// CHECK-COUNT-5: scf.for
// CHECK: arith.andi
// CHECK: scf.if %{{.*}} -> (i32)
// CHECK: tensor.extract
// CHECK: tensor.extract
// CHECK: arith.muli
// CHECK: arith.addi
func.func @conv(%x: tensor<1x2x5xi32>, %w: tensor<4x2x3xi32>) -> tensor<1x4x5xi32>
    attributes {plan.kernel} {
  %0 = train.conv %x, %w strides [1] pads [1, 1] dilations [1] : (tensor<1x2x5xi32>, tensor<4x2x3xi32>) -> tensor<1x4x5xi32>
  return %0 : tensor<1x4x5xi32>
}
