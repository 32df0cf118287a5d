// Integer inputs get the range of the table or the classes they index.
// RUN: zero-opt %s --pass-pipeline='builtin.module(func.func(plan-bound-inputs))' | FileCheck %s

// Tokens index a table of 256 rows; labels shifted by one position are classes.
// CHECK-LABEL: func.func @step
// CHECK-SAME: %{{.*}}: tensor<2x8xi64> {zero.bounds = array<i64: 0, 255>, zero.input = "input_ids"}
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
