//===- TrainOpsReduction.td - products, log-sum-exp --------*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reductions along axes beyond sums and extremes, which TrainOpsShape.td has.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_TRAINOPSREDUCTION_TD
#define ZERO_DIALECTS_TRAIN_TRAINOPSREDUCTION_TD

include "dialects/Train/TrainOpsShape.td"

let opDocGroup = Train_ReductionOps in {

def Train_ReduceProdOp : Train_ReduceOp<"reduce_prod", Train_NumberTensor> {
  let summary = "Product along axes";
  let description = [{
    The product of no elements is 1. The gradient by an element is the product
    of the others, also where some are 0.

    ```mlir
    %y = train.reduce_prod %x axes [0]
        : (tensor<8x10xf32>) -> tensor<10xf32>
    ```
  }];
}

def Train_ReduceLogSumExpOp
    : Train_ReduceOp<"reduce_log_sum_exp", Train_FloatTensor> {
  let summary = "Logarithm of the sum of exponentials along axes";
  let description = [{
    The largest element is subtracted first, so that nothing overflows; without
    elements it is minus infinity. The gradient is a softmax.

    ```mlir
    %y = train.reduce_log_sum_exp %x axes [1] {keepdims}
        : (tensor<8x10xf32>) -> tensor<8x1xf32>
    ```
  }];
}

}

#endif // ZERO_DIALECTS_TRAIN_TRAINOPSREDUCTION_TD
