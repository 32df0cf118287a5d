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
    each is one library call.
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
    (a vector is reshaped by whoever has one).

    ```mlir
    %y = train.matmul %a, %b {transpose_b}
        : (tensor<4x8x64xf32>, tensor<10x64xf32>) -> tensor<4x8x10xf32>
    ```
  }];
  let arguments = (ins Train_FloatTensor:$lhs, Train_FloatTensor:$rhs,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Train_GemmOp : Train_InferOp<"gemm", [
    SameOperandsElementType, Differentiable, ComputedCost]> {
  let summary = "Matrix product plus a bias";
  let description = [{
    `a * b + c` of rank-2 `a` and `b`, where `c` broadcasts to the result: one
    library call. `transpose_a` and `transpose_b` transpose an operand first.

    ```mlir
    %y = train.gemm %x, %w, %b {transpose_b}
        : (tensor<8x64xf32>, tensor<10x64xf32>, tensor<10xf32>)
        -> tensor<8x10xf32>
    ```
  }];
  let arguments = (ins Train_FloatTensor:$a, Train_FloatTensor:$b,
                       Train_FloatTensor:$c,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

class Train_ConvOpBase<string mnemonic, list<Trait> traits = []>
    : Train_InferOp<mnemonic, !listconcat(traits, [SameOperandsElementType,
                                                   ComputedCost])> {
  let results = (outs Train_FloatTensor:$result);
  let extraClassDeclaration = [{
    /// The number of spatial dimensions.
    int64_t getSpatialRank() { return getStrides().size(); }
  }];
}

def Train_ConvOp : Train_ConvOpBase<"conv", [Differentiable]> {
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
  let arguments = (ins Train_FloatTensor:$input, Train_FloatTensor:$weight,
                       Optional<Train_FloatTensor>:$bias,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
                       DenseI64ArrayAttr:$dilations,
                       DefaultValuedAttr<I64Attr, "1">:$group);
  let assemblyFormat = [{
    operands `strides` $strides `pads` $pads `dilations` $dilations
    (`group` $group^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Train_ConvGradInputOp : Train_ConvOpBase<"conv_grad_input"> {
  let summary = "Gradient of a convolution by its input";
  let description = [{
    The gradient by the input, which has `input_shape`, of a convolution with
    these attributes; `grad` is the gradient by its result.

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

def Train_ConvGradWeightOp : Train_ConvOpBase<"conv_grad_weight"> {
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
    spatial dimension, `pads` all begins, then all ends.
  }];
}

let opDocGroup = Train_PoolingOps in {

class Train_PoolOpBase<string mnemonic, list<Trait> traits = []>
    : Train_InferOp<mnemonic, !listconcat(traits, [SameOperandsElementType,
                                                   ComputedCost])> {
  let results = (outs Train_FloatTensor:$result);
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
  let arguments = (ins Train_FloatTensor:$input,
                       DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations);
  let assemblyFormat = [{
    operands `kernel` $kernel `strides` $strides `pads` $pads `dilations`
    $dilations attr-dict `:` functional-type(operands, results)
  }];
}

def Train_MaxPoolGradOp : Train_PoolOpBase<"max_pool_grad"> {
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
  let arguments = (ins Train_FloatTensor:$grad, Train_FloatTensor:$input,
                       DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations);
  let assemblyFormat = [{
    operands `kernel` $kernel `strides` $strides `pads` $pads `dilations`
    $dilations attr-dict `:` functional-type(operands, results)
  }];
}

def Train_AvgPoolOp : Train_PoolOpBase<"avg_pool", [Differentiable]> {
  let summary = "Mean of each window";
  let description = [{
    The sum of a window divided by the number of its elements that lie in the
    input, or with `count_include_pad` in the input or its padding.

    ```mlir
    %y = train.avg_pool %x kernel [2, 2] strides [2, 2] pads [0, 0, 0, 0]
        dilations [1, 1] : (tensor<8x16x28x28xf32>) -> tensor<8x16x14x14xf32>
    ```
  }];
  let arguments = (ins Train_FloatTensor:$input,
                       DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations,
                       UnitAttr:$count_include_pad);
  let assemblyFormat = [{
    operands `kernel` $kernel `strides` $strides `pads` $pads `dilations`
    $dilations attr-dict `:` functional-type(operands, results)
  }];
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
  let arguments = (ins Train_FloatTensor:$grad,
                       DenseI64ArrayAttr:$input_shape,
                       DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations,
                       UnitAttr:$count_include_pad);
  let assemblyFormat = [{
    operands `input_shape` $input_shape `kernel` $kernel `strides` $strides
    `pads` $pads `dilations` $dilations attr-dict `:`
    functional-type(operands, results)
  }];
}

}

#endif // ZERO_DIALECTS_TRAIN_TRAINOPSCONTRACTION_TD
