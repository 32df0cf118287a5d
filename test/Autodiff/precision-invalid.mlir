// What train-precision refuses, one error a case.
// RUN: split-file %s %t
// RUN: not zero-opt %t/empty.mlir -train-precision='type=fp8' 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not zero-opt %t/empty.mlir -train-precision 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not zero-opt %t/blocks.mlir -train-precision 2>&1 | FileCheck %s --check-prefix=BLOCKS
// RUN: not zero-opt %t/sharded.mlir -train-precision 2>&1 | FileCheck %s --check-prefix=SHARDED
// RUN: not zero-opt %t/call.mlir -train-precision 2>&1 | FileCheck %s --check-prefix=CALL

// TYPE: error: unknown type fp8, expected f32, bf16 or f16
// EMPTY: error: module has no function @forward to convert
// BLOCKS: error: @forward is not straight-line code, expected one block
// SHARDED: error: @w is partitioned already; train-precision runs before train-step
// CALL: error: 'func.call' op cannot be computed in 'bf16': its result types do not follow from its operands

//--- empty.mlir
module {
}

//--- blocks.mlir
func.func @forward() {
  cf.br ^bb1
^bb1:
  return
}

//--- sharded.mlir
shard.grid @dp(shape = 2)
zero.param @w : !zero.sharded<4xf32, @dp, dim = 0>
func.func @forward() {
  return
}

//--- call.mlir
func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<4xf32> {zero.output = "y"}) {
  %0 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
