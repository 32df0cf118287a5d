//===- TrainOpsNorm.td - normalizations, softmax -----------*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Normalizations and softmax with their gradients; each becomes one kernel.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_TRAINOPSNORM_TD
#define ZERO_DIALECTS_TRAIN_TRAINOPSNORM_TD

include "dialects/Train/TrainDialect.td"

//===----------------------------------------------------------------------===//
// Normalizations
//===----------------------------------------------------------------------===//

def Train_NormOps : OpDocGroup {
  let summary = "Normalizations";
  let description = [{
    Each becomes one kernel. Saved statistics (`mean`, `rstd` = 1 / sqrt(variance
    + epsilon)) are results, so that the gradient does not compute them again;
    they are f32, or f64 for f64 operands.
  }];
}

let opDocGroup = Train_NormOps in {

def Train_LayerNormOp : Train_InferOp<"layer_norm", [
    SameOperandsElementType, Differentiable, CostPerElement<8>]> {
  let summary = "Layer normalization";
  let description = [{
    Normalizes the dimensions from `axis` on to mean 0 and (biased) variance 1,
    multiplies by `scale` and adds `bias`, both of the normalized shape. `mean`
    and `rstd` have the operand's shape with 1 for the normalized dimensions.

    ```mlir
    %y, %mean, %rstd = train.layer_norm %x, %scale, %bias
        {axis = 1 : i64, epsilon = 1.0e-5 : f64}
        : (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>)
        -> (tensor<8x16xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
    ```
  }];
  let arguments = (ins Train_FloatTensor:$input, Train_FloatTensor:$scale,
                       Optional<Train_FloatTensor>:$bias,
                       I64Attr:$axis, F64Attr:$epsilon);
  let results = (outs Train_FloatTensor:$result, Train_FloatTensor:$mean,
                      Train_FloatTensor:$rstd);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Train_LayerNormGradOp : Train_InferOp<"layer_norm_grad", [CostPerElement<14>]> {
  let summary = "Gradients of layer_norm";
  let description = [{
    The gradients by input, scale and bias, from the saved statistics.

    ```mlir
    %dx, %ds, %db = train.layer_norm_grad %dy, %x, %scale, %mean, %rstd
        {axis = 1 : i64}
        : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<16xf32>, tensor<8x1xf32>,
           tensor<8x1xf32>)
        -> (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>)
    ```
  }];
  let arguments = (ins Train_FloatTensor:$grad, Train_FloatTensor:$input,
                       Train_FloatTensor:$scale, Train_FloatTensor:$mean,
                       Train_FloatTensor:$rstd, I64Attr:$axis);
  let results = (outs Train_FloatTensor:$input_grad,
                      Train_FloatTensor:$scale_grad,
                      Train_FloatTensor:$bias_grad);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Train_RmsNormOp : Train_InferOp<"rms_norm", [
    SameOperandsElementType, Differentiable, CostPerElement<5>]> {
  let summary = "Root-mean-square normalization";
  let description = [{
    Divides the dimensions from `axis` on by the root of their mean square (plus
    `epsilon` under the root) and multiplies by `scale`, which has the
    normalized shape.

    ```mlir
    %y, %rstd = train.rms_norm %x, %scale {axis = 1 : i64, epsilon = 1.0e-5 : f64}
        : (tensor<8x16xf32>, tensor<16xf32>)
        -> (tensor<8x16xf32>, tensor<8x1xf32>)
    ```
  }];
  let arguments = (ins Train_FloatTensor:$input, Train_FloatTensor:$scale,
                       I64Attr:$axis, F64Attr:$epsilon);
  let results = (outs Train_FloatTensor:$result, Train_FloatTensor:$rstd);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Train_RmsNormGradOp : Train_InferOp<"rms_norm_grad", [CostPerElement<10>]> {
  let summary = "Gradients of rms_norm";
  let description = [{
    The gradients by input and scale, from the saved statistic.

    ```mlir
    %dx, %ds = train.rms_norm_grad %dy, %x, %scale, %rstd {axis = 1 : i64}
        : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<16xf32>, tensor<8x1xf32>)
        -> (tensor<8x16xf32>, tensor<16xf32>)
    ```
  }];
  let arguments = (ins Train_FloatTensor:$grad, Train_FloatTensor:$input,
                       Train_FloatTensor:$scale, Train_FloatTensor:$rstd,
                       I64Attr:$axis);
  let results = (outs Train_FloatTensor:$input_grad,
                      Train_FloatTensor:$scale_grad);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Train_NormalizeOp : Train_InferOp<"normalize", [
    Differentiable, CostPerElement<6>]> {
  let summary = "Rows of mean 0 and variance 1";
  let description = [{
    `layer_norm` without scale and bias: what group and instance normalization
    are made of, whose scale belongs to a channel and not to a place of the row.
    `rstd` has the operand's shape with 1 for the normalized dimensions.

    ```mlir
    %y, %rstd = train.normalize %x {axis = 1 : i64, epsilon = 1.0e-5 : f64}
        : (tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x1xf32>)
    ```
  }];
  let arguments = (ins Train_FloatTensor:$input, I64Attr:$axis,
                       F64Attr:$epsilon);
  let results = (outs Train_FloatTensor:$result, Train_FloatTensor:$rstd);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Train_NormalizeGradOp : Train_InferOp<"normalize_grad", [CostPerElement<8>]> {
  let summary = "Gradient of normalize";
  let description = [{
    `rstd * (grad - mean(grad) - output * mean(grad * output))`, the means over
    the dimensions from `axis` on; `output` is the normalized tensor, which the
    gradient by a scale needs anyway, so that the input need not be kept.

    ```mlir
    %dx = train.normalize_grad %dy, %y, %rstd {axis = 1 : i64}
        : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x1xf32>)
        -> tensor<8x16xf32>
    ```
  }];
  let arguments = (ins Train_FloatTensor:$grad, Train_FloatTensor:$output,
                       Train_FloatTensor:$rstd, I64Attr:$axis);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Train_BatchNormOp : Train_InferOp<"batch_norm", [
    Differentiable, CostPerElement<8>]> {
  let summary = "Batch normalization in training";
  let description = [{
    Normalizes every channel (dimension 1) of `input` [N, C, spatial...] by the
    mean and (biased) variance of this batch, multiplies by `scale` and adds
    `bias`. The running statistics are updated as
    `running * momentum + batch * (1 - momentum)` (ONNX's momentum: 0.9 keeps 90
    percent); with `unbiased` the running variance takes the unbiased batch
    variance, as PyTorch does. No gradient passes through the statistics that
    are returned.

    ```mlir
    %y, %rm, %rv, %mean, %rstd = train.batch_norm %x, %s, %b, %rm0, %rv0
        {epsilon = 1.0e-5 : f64, momentum = 0.9 : f64, unbiased}
        : (tensor<8x4x5x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>,
           tensor<4xf32>)
        -> (tensor<8x4x5x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>,
            tensor<4xf32>)
    ```
  }];
  let arguments = (ins Train_FloatTensor:$input, Train_FloatTensor:$scale,
                       Train_FloatTensor:$bias, Train_FloatTensor:$running_mean,
                       Train_FloatTensor:$running_var, F64Attr:$epsilon,
                       F64Attr:$momentum, UnitAttr:$unbiased);
  let results = (outs Train_FloatTensor:$result,
                      Train_FloatTensor:$new_running_mean,
                      Train_FloatTensor:$new_running_var,
                      Train_FloatTensor:$save_mean,
                      Train_FloatTensor:$save_rstd);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Train_BatchNormGradOp : Train_InferOp<"batch_norm_grad", [CostPerElement<14>]> {
  let summary = "Gradients of batch_norm";
  let description = [{
    The gradients by input, scale and bias, from the batch's statistics.

    ```mlir
    %dx, %ds, %db = train.batch_norm_grad %dy, %x, %scale, %mean, %rstd
        : (tensor<8x4x5x5xf32>, tensor<8x4x5x5xf32>, tensor<4xf32>,
           tensor<4xf32>, tensor<4xf32>)
        -> (tensor<8x4x5x5xf32>, tensor<4xf32>, tensor<4xf32>)
    ```
  }];
  let arguments = (ins Train_FloatTensor:$grad, Train_FloatTensor:$input,
                       Train_FloatTensor:$scale, Train_FloatTensor:$save_mean,
                       Train_FloatTensor:$save_rstd);
  let results = (outs Train_FloatTensor:$input_grad,
                      Train_FloatTensor:$scale_grad,
                      Train_FloatTensor:$bias_grad);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Train_BatchNormInferenceOp : Train_InferOp<"batch_norm_inference", [
    Differentiable, CostPerElement<4>]> {
  let summary = "Batch normalization by given statistics";
  let description = [{
    `(input - mean) / sqrt(variance + epsilon) * scale + bias` per channel
    (dimension 1).

    ```mlir
    %y = train.batch_norm_inference %x, %s, %b, %mean, %var
        {epsilon = 1.0e-5 : f64}
        : (tensor<8x4x5x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>,
           tensor<4xf32>) -> tensor<8x4x5x5xf32>
    ```
  }];
  let arguments = (ins Train_FloatTensor:$input, Train_FloatTensor:$scale,
                       Train_FloatTensor:$bias, Train_FloatTensor:$mean,
                       Train_FloatTensor:$var, F64Attr:$epsilon);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

def Train_SoftmaxOps : OpDocGroup {
  let summary = "Softmax";
  let description = [{
    Each becomes one kernel; the largest element along the axis is subtracted
    first, so that nothing overflows.
  }];
}

let opDocGroup = Train_SoftmaxOps in {

class Train_SoftmaxOpBase<string mnemonic>
    : Train_Op<mnemonic, [SameOperandsAndResultType, Differentiable,
                          CostPerElement<5, 1>]> {
  let arguments = (ins Train_FloatTensor:$input, I64Attr:$axis);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$input `axis` $axis attr-dict `:` type($input)";
  let hasVerifier = 1;
}

class Train_SoftmaxGradOpBase<string mnemonic>
    : Train_Op<mnemonic, [SameOperandsAndResultType, CostPerElement<4>]> {
  let arguments = (ins Train_FloatTensor:$grad, Train_FloatTensor:$output,
                       I64Attr:$axis);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$grad `,` $output `axis` $axis attr-dict `:` type($grad)";
  let hasVerifier = 1;
}

def Train_SoftmaxOp : Train_SoftmaxOpBase<"softmax"> {
  let summary = "Softmax along an axis";
  let description = [{
    `exp(x) / sum(exp(x))`, the sum along `axis`.

    ```mlir
    %y = train.softmax %x axis 1 : tensor<8x10xf32>
    ```
  }];
}

def Train_SoftmaxGradOp : Train_SoftmaxGradOpBase<"softmax_grad"> {
  let summary = "Gradient of softmax";
  let description = [{
    `(grad - sum(grad * output)) * output`, the sum along `axis`; `output` is
    the softmax.

    ```mlir
    %dx = train.softmax_grad %dy, %y axis 1 : tensor<8x10xf32>
    ```
  }];
}

def Train_LogSoftmaxOp : Train_SoftmaxOpBase<"log_softmax"> {
  let summary = "Logarithm of softmax along an axis";
  let description = [{
    `x - log(sum(exp(x)))`, the sum along `axis`.

    ```mlir
    %y = train.log_softmax %x axis 1 : tensor<8x10xf32>
    ```
  }];
}

def Train_LogSoftmaxGradOp : Train_SoftmaxGradOpBase<"log_softmax_grad"> {
  let summary = "Gradient of log_softmax";
  let description = [{
    `grad - exp(output) * sum(grad)`, the sum along `axis`; `output` is the
    log-softmax.

    ```mlir
    %dx = train.log_softmax_grad %dy, %y axis 1 : tensor<8x10xf32>
    ```
  }];
}

}

#endif // ZERO_DIALECTS_TRAIN_TRAINOPSNORM_TD
