//===- TrainOpsIndex.td - indices, order and running sums --*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations that write by index, that order elements, and that carry a value
// along an axis.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_TRAINOPSINDEX_TD
#define ZERO_DIALECTS_TRAIN_TRAINOPSINDEX_TD

include "dialects/Train/TrainDialect.td"

def Train_IndexOps : OpDocGroup {
  let summary = "Indices, order and running sums";
  let description = [{
    Gathers and scatters of other forms (by element, by coordinates, in a
    batch) are `gather` and `scatter` of a reshaped tensor, with row numbers
    computed from the indices.
  }];
}

let opDocGroup = Train_IndexOps in {

def Train_ScatterOp : Train_InferOp<"scatter", [Differentiable, ComputedCost]> {
  let summary = "Combine slices along an axis, named by index, with others";
  let description = [{
    `data`, in which the slice along `axis` that each index names is combined
    with the slice of `updates` at the place of that index: the reverse of
    `gather`. A negative index counts from the end. `reduction` says how two
    elements combine:

    - `"none"`: the update replaces the element; of several the last one stays
      (the derivative takes it that there is only one),
    - `"add"`, `"mul"`, `"max"`, `"min"`: in the row-major order of `indices`,
      rounded to the element type each time.

    The gradient of a largest or smallest element is shared evenly by equals.

    **Constraints**
    - `updates` has the shape that a gather of `data` by `indices` has;
    - only `"none"` takes booleans.

    ```mlir
    %y = train.scatter %cache, %places, %rows axis 0 reduction "none"
        : (tensor<100x16xf32>, tensor<4xi64>, tensor<4x16xf32>)
        -> tensor<100x16xf32>
    ```
  }];
  let arguments = (ins Train_AnyTensor:$data, Train_IndexTensor:$indices,
                       Train_AnyTensor:$updates, I64Attr:$axis,
                       StrAttr:$reduction);
  let results = (outs Train_AnyTensor:$result);
  let assemblyFormat = [{
    $data `,` $indices `,` $updates `axis` $axis `reduction` $reduction
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Train_TopKOp : Train_InferOp<"top_k", [Differentiable, ComputedCost]> {
  let summary = "The largest elements along an axis, in order";
  let description = [{
    The `k` largest elements along `axis`, largest first, and where along the
    axis they lie; with `smallest` the smallest, smallest first. Of equal
    elements the one at the lower index comes first; what is not a number is
    larger than any number.

    **Constraints**
    - `0 <= k <=` the size of the axis.

    ```mlir
    %values, %indices = train.top_k %x, 2 axis 1
        : (tensor<8x16xf32>) -> (tensor<8x2xf32>, tensor<8x2xi64>)
    ```
  }];
  let arguments = (ins Train_NumberTensor:$input, I64Attr:$k, I64Attr:$axis,
                       UnitAttr:$smallest);
  let results = (outs Train_NumberTensor:$values, Train_IndexTensor:$indices);
  let assemblyFormat = [{
    $input `,` $k `axis` $axis attr-dict `:` functional-type(operands, results)
  }];
}

def Train_CumulativeSumOp : Train_Op<"cumulative_sum", [
    SameOperandsAndResultType, Differentiable, CostPerElement<1>
  ]> {
  let summary = "Running sum along an axis";
  let description = [{
    Each element is the sum of those up to its place along `axis`; without that
    at its place where `exclusive`, and counted from the end where `reverse`.
    Floats narrower than f32 add up in f32.

    ```mlir
    %y = train.cumulative_sum %x axis 1 {reverse} : tensor<8x16xf32>
    ```
  }];
  let arguments = (ins Train_NumberTensor:$input, I64Attr:$axis,
                       UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs Train_NumberTensor:$result);
  let assemblyFormat = [{
    $input `axis` $axis attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Train_LinearRecurrenceOp : Train_Op<"linear_recurrence", [
    SameOperandsAndResultType, Differentiable, CostPerElement<2>
  ]> {
  let summary = "State that decays and takes an input at each place of an axis";
  let description = [{
    `h[i] = decay[i] * h[i - 1] + input[i]` along `axis`, and `h[0] = input[0]`;
    from the end to the start where `reverse`. Floats narrower than f32 are
    carried in f32. A running product is a recurrence whose decay is the operand
    and whose input is its first element, then zeros.

    **Constraints**
    - `decay` and `input` have the same shape.

    ```mlir
    %h = train.linear_recurrence %decay, %input axis 1 : tensor<8x16xf32>
    ```
  }];
  let arguments = (ins Train_NumberTensor:$decay, Train_NumberTensor:$input,
                       I64Attr:$axis, UnitAttr:$reverse);
  let results = (outs Train_NumberTensor:$result);
  let assemblyFormat = [{
    $decay `,` $input `axis` $axis attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

}

#endif // ZERO_DIALECTS_TRAIN_TRAINOPSINDEX_TD
