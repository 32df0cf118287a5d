// Integer inputs get the range of the table or the classes they index.
// RUN: zero-opt %s --pass-pipeline='builtin.module(func.func(plan-bound-inputs))' | FileCheck %s

// Tokens index a table of 256 rows, from its end where they are negative; labels
// shifted by one position are classes.
// CHECK-LABEL: func.func @step
// CHECK-SAME: %{{.*}}: tensor<2x8xi64> {zero.bounds = array<i64: -256, 255>, zero.input = "input_ids"}
// CHECK-SAME: %{{.*}}: tensor<2x8xi64> {zero.bounds = array<i64: 0, 9>, zero.ignore = -100 : i64, zero.input = "labels"}
// CHECK-SAME: %{{.*}}: tensor<2xi64> {zero.input = "unused"}
func.func @step(%ids: tensor<2x8xi64> {zero.input = "input_ids"}, %labels: tensor<2x8xi64> {zero.input = "labels"},
                %unused: tensor<2xi64> {zero.input = "unused"}, %wte: tensor<256x4xf32> {zero.input = "wte"},
                %logits: tensor<2x7x10xf32> {zero.input = "logits"}) {
  %flat = train.reshape %ids : tensor<2x8xi64> to tensor<16xi64>
  %e = train.gather %wte, %flat axis 0 : (tensor<256x4xf32>, tensor<16xi64>) -> tensor<16x4xf32>
  %shifted = train.slice %labels starts [0, 1] limits [2, 8] strides [1, 1] : (tensor<2x8xi64>) -> tensor<2x7xi64>
  %loss, %lse = train.cross_entropy %logits, %shifted {axis = 2 : i64} : (tensor<2x7x10xf32>, tensor<2x7xi64>) -> (tensor<f32>, tensor<2x7xf32>)
  return
}

// Tokens that are also labels must be valid ones of both, whatever is done to
// them before, and none is ignored.
// CHECK-LABEL: func.func @both
// CHECK-SAME: %{{.*}}: tensor<2x4xi32> {zero.bounds = array<i64: 0, 9>, zero.input = "tokens"}
func.func @both(%tokens: tensor<2x4xi32> {zero.ignore = -100 : i64, zero.input = "tokens"},
                %table: tensor<10x4xf32> {zero.input = "table"}, %logits: tensor<2x4x10xf32> {zero.input = "logits"}) {
  %wide = train.cast %tokens : tensor<2x4xi32> to tensor<2x4xi64>
  %flat = train.reshape %wide : tensor<2x4xi64> to tensor<8xi64>
  %e = train.gather %table, %flat axis 0 : (tensor<10x4xf32>, tensor<8xi64>) -> tensor<8x4xf32>
  %loss, %lse = train.cross_entropy %logits, %wide {axis = 2 : i64} : (tensor<2x4x10xf32>, tensor<2x4xi64>) -> (tensor<f32>, tensor<2x4xf32>)
  return
}

// Whether something is 0 says nothing of what it is, and a table without rows
// has no index.
// CHECK-LABEL: func.func @free
// CHECK-SAME: %{{.*}}: tensor<4xi64> {zero.input = "counts"}
// CHECK-SAME: %{{.*}}: tensor<0xi64> {zero.input = "none"}
func.func @free(%counts: tensor<4xi64> {zero.input = "counts"}, %none: tensor<0xi64> {zero.input = "none"},
                %table: tensor<2x4xf32> {zero.input = "table"}, %empty: tensor<0x4xf32> {zero.input = "empty"}) {
  %flags = train.cast %counts : tensor<4xi64> to tensor<4xi1>
  %rows = train.cast %flags : tensor<4xi1> to tensor<4xi64>
  %a = train.gather %table, %rows axis 0 : (tensor<2x4xf32>, tensor<4xi64>) -> tensor<4x4xf32>
  %b = train.gather %empty, %none axis 0 : (tensor<0x4xf32>, tensor<0xi64>) -> tensor<0x4xf32>
  return
}
