//===- TrainOpsContraction.td - products, convolutions -----*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrix products and convolutions, which become library calls, and poolings.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_TRAINOPSCONTRACTION_TD
#define ZERO_DIALECTS_TRAIN_TRAINOPSCONTRACTION_TD

include "dialects/Train/TrainDialect.td"

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

def Train_ContractionOps : OpDocGroup {
  let summary = "Contractions";
  let description = [{
    Matrix products and convolutions. They stay whole until the plan, where
    each is one library call; of element types that libraries do not take (f64,
    integers) it is one kernel of plain loops.
  }];
}

let opDocGroup = Train_ContractionOps in {

def Train_MatmulOp : Train_InferOp<"matmul", [
    SameOperandsElementType, Differentiable, ComputedCost]> {
  let summary = "Matrix product";
  let description = [{
    The product of the last two dimensions; the dimensions before them are a
    batch and broadcast by numpy's rules. `transpose_a` and `transpose_b` swap
    the last two dimensions of an operand first. Operands have rank 2 or more
    (a vector is reshaped by whoever has one). Products of f16, bf16 and f32 are
    library calls, those of f64 and of integers are kernels.

    ```mlir
    %y = train.matmul %a, %b {transpose_b}
        : (tensor<4x8x64xf32>, tensor<10x64xf32>) -> tensor<4x8x10xf32>
    ```
  }];
  let arguments = (ins Train_NumberTensor:$lhs, Train_NumberTensor:$rhs,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Train_NumberTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Train_GemmOp : Train_InferOp<"gemm", [
    SameOperandsElementType, Differentiable, ComputedCost]> {
  let summary = "Matrix product plus a bias";
  let description = [{
    `a * b + c` of rank-2 `a` and `b`, where `c` broadcasts to the result: one
    library call, or one kernel for f64 and integers. `transpose_a` and
    `transpose_b` transpose an operand first.

    ```mlir
    %y = train.gemm %x, %w, %b {transpose_b}
        : (tensor<8x64xf32>, tensor<10x64xf32>, tensor<10xf32>)
        -> tensor<8x10xf32>
    ```
  }];
  let arguments = (ins Train_NumberTensor:$a, Train_NumberTensor:$b,
                       Train_NumberTensor:$c,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Train_NumberTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

class Train_ConvOpBase<string mnemonic, Type tensor>
    : Train_InferOp<mnemonic, [Differentiable, SameOperandsElementType,
                               ComputedCost]> {
  let results = (outs tensor:$result);
  let extraClassDeclaration = [{
    /// The number of spatial dimensions.
    int64_t getSpatialRank() { return getStrides().size(); }
  }];
}

def Train_ConvOp : Train_ConvOpBase<"conv", Train_NumberTensor> {
  let summary = "Convolution";
  let description = [{
    Cross-correlation of `input` [N, C, spatial...] with `weight` [K, C / group,
    spatial...], plus `bias` [K] where given; any number of spatial dimensions.
    `strides` and `dilations` have one number per spatial dimension, `pads` two:
    all begins, then all ends. The input is padded with zeros.

    ```mlir
    %y = train.conv %x, %w, %b strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1]
        : (tensor<8x1x28x28xf32>, tensor<16x1x3x3xf32>, tensor<16xf32>)
        -> tensor<8x16x28x28xf32>
    ```
  }];
  let arguments = (ins Train_NumberTensor:$input, Train_NumberTensor:$weight,
                       Optional<Train_NumberTensor>:$bias,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
                       DenseI64ArrayAttr:$dilations,
                       DefaultValuedAttr<I64Attr, "1">:$group);
  let assemblyFormat = [{
    operands `strides` $strides `pads` $pads `dilations` $dilations
    (`group` $group^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Train_ConvGradInputOp : Train_ConvOpBase<"conv_grad_input", Train_FloatTensor> {
  let summary = "Gradient of a convolution by its input";
  let description = [{
    The gradient by the input, which has `input_shape`, of a convolution with
    these attributes; `grad` is the gradient by its result. It is linear in both
    operands and is what a transposed convolution computes.

    ```mlir
    %dx = train.conv_grad_input %dy, %w input_shape [8, 1, 28, 28]
        strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1]
        : (tensor<8x16x28x28xf32>, tensor<16x1x3x3xf32>)
        -> tensor<8x1x28x28xf32>
    ```
  }];
  let arguments = (ins Train_FloatTensor:$grad, Train_FloatTensor:$weight,
                       DenseI64ArrayAttr:$input_shape,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
                       DenseI64ArrayAttr:$dilations,
                       DefaultValuedAttr<I64Attr, "1">:$group);
  let assemblyFormat = [{
    operands `input_shape` $input_shape `strides` $strides `pads` $pads
    `dilations` $dilations (`group` $group^)? attr-dict `:`
    functional-type(operands, results)
  }];
}

def Train_ConvGradWeightOp : Train_ConvOpBase<"conv_grad_weight", Train_FloatTensor> {
  let summary = "Gradient of a convolution by its weight";
  let description = [{
    The gradient by the weight, which has `weight_shape`, of a convolution with
    these attributes; `grad` is the gradient by its result.

    ```mlir
    %dw = train.conv_grad_weight %dy, %x weight_shape [16, 1, 3, 3]
        strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1]
        : (tensor<8x16x28x28xf32>, tensor<8x1x28x28xf32>)
        -> tensor<16x1x3x3xf32>
    ```
  }];
  let arguments = (ins Train_FloatTensor:$grad, Train_FloatTensor:$input,
                       DenseI64ArrayAttr:$weight_shape,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
                       DenseI64ArrayAttr:$dilations,
                       DefaultValuedAttr<I64Attr, "1">:$group);
  let assemblyFormat = [{
    operands `weight_shape` $weight_shape `strides` $strides `pads` $pads
    `dilations` $dilations (`group` $group^)? attr-dict `:`
    functional-type(operands, results)
  }];
}

}

//===----------------------------------------------------------------------===//
// Poolings
//===----------------------------------------------------------------------===//

def Train_PoolingOps : OpDocGroup {
  let summary = "Poolings";
  let description = [{
    Reductions over sliding windows of the spatial dimensions of a tensor
    [N, C, spatial...]. `kernel`, `strides` and `dilations` have one number per
    spatial dimension, `pads` all begins, then all ends. With `ceil_mode` the
    number of windows is rounded up instead of down where the stride does not
    divide, unless the last one would start behind the input and its first
    padding.
  }];
}

let opDocGroup = Train_PoolingOps in {

class Train_PoolOpBase<string mnemonic, list<Trait> traits = []>
    : Train_InferOp<mnemonic, !listconcat(traits, [ComputedCost])> {
  dag window = (ins DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
                    DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations,
                    UnitAttr:$ceil_mode);
  string windowFormat = [{
    `kernel` $kernel `strides` $strides `pads` $pads `dilations` $dilations
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// The number of spatial dimensions.
    int64_t getSpatialRank() { return getKernel().size(); }
  }];
}

def Train_MaxPoolOp : Train_PoolOpBase<"max_pool", [Differentiable]> {
  let summary = "Largest element of each window";
  let description = [{
    Padding never wins.

    ```mlir
    %y = train.max_pool %x kernel [2, 2] strides [2, 2] pads [0, 0, 0, 0]
        dilations [1, 1] : (tensor<8x16x28x28xf32>) -> tensor<8x16x14x14xf32>
    ```
  }];
  let arguments = !con((ins Train_NumberTensor:$input), window);
  let results = (outs Train_NumberTensor:$result);
  let assemblyFormat = "operands" # windowFormat;
}

def Train_MaxPoolIndicesOp : Train_PoolOpBase<"max_pool_indices"> {
  let summary = "Where the largest element of each window is";
  let description = [{
    The row-major position in the whole input of what `max_pool` takes, the
    first one where several are equal; with `column_major` the spatial
    dimensions count in the other order, the first of them fastest.

    ```mlir
    %i = train.max_pool_indices %x kernel [2, 2] strides [2, 2]
        pads [0, 0, 0, 0] dilations [1, 1]
        : (tensor<8x16x28x28xf32>) -> tensor<8x16x14x14xi64>
    ```
  }];
  let arguments = !con((ins Train_NumberTensor:$input), window,
                       (ins UnitAttr:$column_major));
  let results = (outs Train_IndexTensor:$result);
  let assemblyFormat = "operands" # windowFormat;
}

def Train_MaxPoolGradOp : Train_PoolOpBase<"max_pool_grad",
                                           [SameOperandsElementType]> {
  let summary = "Gradient of max_pool";
  let description = [{
    Adds each window's gradient to its largest input element, the first one in
    row-major order where several are equal (as PyTorch).

    ```mlir
    %dx = train.max_pool_grad %dy, %x kernel [2, 2] strides [2, 2]
        pads [0, 0, 0, 0] dilations [1, 1]
        : (tensor<8x16x14x14xf32>, tensor<8x16x28x28xf32>)
        -> tensor<8x16x28x28xf32>
    ```
  }];
  let arguments = !con((ins Train_FloatTensor:$grad, Train_FloatTensor:$input),
                       window);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "operands" # windowFormat;
}

def Train_AvgPoolOp : Train_PoolOpBase<"avg_pool", [Differentiable]> {
  let summary = "Mean of each window";
  let description = [{
    The sum of a window divided by the number of its elements that lie in the
    input, or with `count_include_pad` in the input or its padding; or by
    `divisor`, where that is given.

    **Constraints**
    - `divisor` is positive, and not there together with `count_include_pad`.

    ```mlir
    %y = train.avg_pool %x kernel [2, 2] strides [2, 2] pads [0, 0, 0, 0]
        dilations [1, 1] : (tensor<8x16x28x28xf32>) -> tensor<8x16x14x14xf32>
    ```
  }];
  let arguments = !con((ins Train_FloatTensor:$input), window,
                       (ins UnitAttr:$count_include_pad,
                            OptionalAttr<I64Attr>:$divisor));
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "operands" # windowFormat;
  let hasVerifier = 1;
}

def Train_AvgPoolGradOp : Train_PoolOpBase<"avg_pool_grad"> {
  let summary = "Gradient of avg_pool";
  let description = [{
    Spreads each window's gradient evenly over the elements it averaged;
    `input_shape` is the shape of the input of the pooling.

    ```mlir
    %dx = train.avg_pool_grad %dy input_shape [8, 16, 28, 28] kernel [2, 2]
        strides [2, 2] pads [0, 0, 0, 0] dilations [1, 1]
        : (tensor<8x16x14x14xf32>) -> tensor<8x16x28x28xf32>
    ```
  }];
  let arguments = !con((ins Train_FloatTensor:$grad,
                            DenseI64ArrayAttr:$input_shape), window,
                       (ins UnitAttr:$count_include_pad,
                            OptionalAttr<I64Attr>:$divisor));
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "operands `input_shape` $input_shape" # windowFormat;
  let hasVerifier = 1;
}

}

#endif // ZERO_DIALECTS_TRAIN_TRAINOPSCONTRACTION_TD
