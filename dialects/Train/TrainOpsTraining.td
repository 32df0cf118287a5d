//===- TrainOpsTraining.td - losses, optimizers ------------*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What only a training step has: the fused loss, the gradient norm and the
// optimizer updates.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_TRAINOPSTRAINING_TD
#define ZERO_DIALECTS_TRAIN_TRAINOPSTRAINING_TD

include "dialects/Train/TrainDialect.td"
include "dialects/Zero/ZeroInterfaces.td"

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

def Train_LossOps : OpDocGroup {
  let summary = "Losses";
  let description = [{
    Cross-entropy is one kernel; mean squared error and binary cross-entropy are
    composed of elementwise operations and a reduction.
  }];
}

let opDocGroup = Train_LossOps in {

def Train_CrossEntropyOp : Train_InferOp<"cross_entropy", [
    Differentiable, CostPerElement<4, 1>]> {
  let summary = "Cross-entropy of logits against integer labels";
  let description = [{
    `w * (lse - logits[label])` for each label, 0 for those that are
    `ignore_index`; `w` is the element of `weights` that the label names, 1
    without weights. `axis` is the class axis, and the labels have the logits'
    shape without it. `lse`, the logarithm of the sum of exponentials along
    `axis`, is saved for the gradient. Loss and `lse` are f32, or f64 for f64
    logits. `reduction` is

    - `"mean"`: the sum divided by the sum of `w` over the labels that are not
      ignored; not a number without any, as in PyTorch;
    - `"sum"`: the sum;
    - `"none"`: the loss has the labels' shape.

    A label that is no class makes its loss not a number. The weights have no
    gradient.

    ```mlir
    %loss, %lse = train.cross_entropy %logits, %labels
        {axis = 1 : i64, ignore_index = -100 : i64}
        : (tensor<8x10xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>)
    ```
  }];
  let arguments = (ins Train_FloatTensor:$logits, Train_IndexTensor:$labels,
                       Optional<Train_FloatTensor>:$weights, I64Attr:$axis,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index,
                       DefaultValuedStrAttr<StrAttr, "mean">:$reduction);
  let results = (outs Train_FloatTensor:$loss, Train_FloatTensor:$lse);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Train_CrossEntropyGradOp : Train_InferOp<"cross_entropy_grad", [
    CostPerElement<4, 1>]> {
  let summary = "Gradient of cross_entropy by the logits";
  let description = [{
    `(exp(logits - lse) - onehot(label)) * w * grad`, for the mean divided by the
    sum of `w`, and 0 where the label is `ignore_index`. `grad` has the shape of
    the loss.

    ```mlir
    %dlogits = train.cross_entropy_grad %dloss, %logits, %labels, %lse
        {axis = 1 : i64, ignore_index = -100 : i64}
        : (tensor<f32>, tensor<8x10xf32>, tensor<8xi64>, tensor<8xf32>)
        -> tensor<8x10xf32>
    ```
  }];
  let arguments = (ins Train_FloatTensor:$grad, Train_FloatTensor:$logits,
                       Train_IndexTensor:$labels, Train_FloatTensor:$lse,
                       Optional<Train_FloatTensor>:$weights, I64Attr:$axis,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index,
                       DefaultValuedStrAttr<StrAttr, "mean">:$reduction);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

}

//===----------------------------------------------------------------------===//
// Optimizer updates
//===----------------------------------------------------------------------===//

def Train_OptimizerOps : OpDocGroup {
  let summary = "Gradient norm and optimizer updates";
  let description = [{
    Updates are elementwise in parameter, gradient and state, so that they work
    on any shard, and each becomes one kernel. The results take the storage of
    the parameter and the state when the plan is made. The formulas and their
    order of operations are PyTorch's; the learning rate and the number of the
    step (from 1) are rank-0 tensors.

    What every update may have besides: `scale`, by which the gradient is
    multiplied before all else; the attribute `clip_value`, to whose range
    [-v, v] its elements are then clamped; `skip`, which leaves parameter and
    state as they are where it is true, whatever the gradient and `scale` are
    (not finite, usually); `momentum`, a rank-0 tensor that takes the place of
    the attribute `momentum` or `beta1`.

    ```mlir
    %p1 = train.sgd %p, %g, %lr scale %factor skip %overflow
        {clip_value = 0.5 : f64}
        : (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<i1>)
        -> tensor<8xf32>
    ```
    Constraints: `clip_value` is positive; sgd takes `momentum` only where it has
    a momentum buffer.
  }];
}

let opDocGroup = Train_OptimizerOps in {

def Train_SumSquaresOp : Train_InferOp<"sum_squares", [
    Zero_ElementSum, ComputedCost]> {
  let summary = "Sum of the squares of all elements of all operands";
  let description = [{
    Accumulated in f64, in the order of the operands: the square of the gradient
    norm.

    ```mlir
    %n = train.sum_squares %dw, %db
        : (tensor<10x64xf32>, tensor<10xf32>) -> tensor<f64>
    ```
  }];
  let arguments = (ins Variadic<Train_FloatTensor>:$inputs);
  let results = (outs Train_FloatScalar:$result);
  let assemblyFormat = "$inputs attr-dict `:` functional-type(operands, results)";
}

/// An update; results after the first replace the states in order.
class Train_OptimizerOp<string mnemonic, int flops, int transcendentals,
                        list<Trait> traits = []>
    : Train_InferOp<mnemonic, !listconcat(traits, [
        AttrSizedOperandSegments,
        DeclareOpInterfaceMethods<Zero_OptimizerUpdate>,
        CostPerElement<flops, transcendentals>])> {
  let hasVerifier = 1;
  /// What every update may have besides its own operands.
  dag control = (ins Optional<Train_FloatScalar>:$grad_scale,
                     Optional<Train_BoolScalar>:$skip,
                     Optional<Train_FloatScalar>:$current_momentum,
                     OptionalAttr<F64Attr>:$clip_value);
  string controlFormat = [{
    (`scale` $grad_scale^)? (`skip` $skip^)? (`momentum` $current_momentum^)?
    attr-dict `:` functional-type(operands, results)
  }];
}

def Train_SgdOp : Train_OptimizerOp<"sgd", 8, 0> {
  let summary = "Stochastic gradient descent, with momentum";
  let description = [{
    ```
    g = grad + weight_decay * param
    m = momentum * m + (1 - dampening) * g      with momentum; in step 1 m = g
    g = nesterov ? g + momentum * m : m         with momentum
    param = param - lr * g
    ```
    The buffer `m` is an operand and a result exactly when momentum is not 0; it
    starts as zeros. `step` is an operand exactly when dampening is not 0, the
    only case where the first step differs from the others.

    ```mlir
    %p1, %m1 = train.sgd %p, %g, %m, %lr {momentum = 0.9 : f64}
        : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>)
        -> (tensor<8xf32>, tensor<8xf32>)
    %p2 = train.sgd %p, %g, %lr
        : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    ```
  }];
  let arguments = !con((ins
      Train_FloatTensor:$param, Train_FloatTensor:$grad,
      Optional<Train_FloatTensor>:$momentum_buffer, Train_FloatScalar:$lr,
      Optional<Train_StepScalar>:$step,
      DefaultValuedAttr<F64Attr, "::llvm::APFloat(0.0)">:$momentum,
      DefaultValuedAttr<F64Attr, "::llvm::APFloat(0.0)">:$dampening,
      DefaultValuedAttr<F64Attr, "::llvm::APFloat(0.0)">:$weight_decay,
      UnitAttr:$nesterov), control);
  let results = (outs Train_FloatTensor:$new_param,
                      Optional<Train_FloatTensor>:$new_momentum_buffer);
  let assemblyFormat =
      "custom<SgdOperands>($param, $grad, $momentum_buffer, $lr, $step)" #
      controlFormat;
}

class Train_AdamOpBase<string mnemonic> : Train_OptimizerOp<mnemonic, 16, 1> {
  let arguments = !con((ins
      Train_FloatTensor:$param, Train_FloatTensor:$grad,
      Train_FloatTensor:$exp_avg, Train_FloatTensor:$exp_avg_sq,
      Train_FloatScalar:$lr, Train_StepScalar:$step, F64Attr:$beta1,
      F64Attr:$beta2, F64Attr:$epsilon, F64Attr:$weight_decay,
      UnitAttr:$no_bias_correction), control);
  let results = (outs Train_FloatTensor:$new_param,
                      Train_FloatTensor:$new_exp_avg,
                      Train_FloatTensor:$new_exp_avg_sq);
  let assemblyFormat =
      "$param `,` $grad `,` $exp_avg `,` $exp_avg_sq `,` $lr `,` $step" #
      controlFormat;
}

def Train_AdamOp : Train_AdamOpBase<"adam"> {
  let summary = "Adam";
  let description = [{
    ```
    g = grad + weight_decay * param
    m = m + (g - m) * (1 - beta1)
    v = beta2 * v + (1 - beta2) * g * g
    param = param - lr / (1 - beta1^step) * m
                    / (sqrt(v) / sqrt(1 - beta2^step) + epsilon)
    ```
    The bias corrections are computed in f64, once per tensor; with
    `no_bias_correction` they are 1. A state of zeros is the start.

    ```mlir
    %p1, %m1, %v1 = train.adam %p, %g, %m, %v, %lr, %step
        {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64,
         weight_decay = 0.0 : f64}
        : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>,
           tensor<f32>, tensor<i64>)
        -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
    ```
  }];
}

def Train_AdamwOp : Train_AdamOpBase<"adamw"> {
  let summary = "Adam with decoupled weight decay";
  let description = [{
    As `adam`, but the weight decay does not enter the gradient:
    `param = param * (1 - lr * weight_decay)` comes first.

    ```mlir
    %p1, %m1, %v1 = train.adamw %p, %g, %m, %v, %lr, %step
        {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64,
         weight_decay = 0.01 : f64}
        : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>,
           tensor<f32>, tensor<i64>)
        -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
    ```
  }];
}

def Train_AdamHatOp : Train_OptimizerOp<"adam_hat", 18, 1> {
  let summary = "Adam whose epsilon is added before the bias correction";
  let description = [{
    The form of the end of section 2 of the paper, which Hugging Face's and
    onnxruntime's AdamW (`adam_mode` 1) and ONNX's Adam have:
    ```
    g = grad + weight_decay * param
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    rate = lr * sqrt(1 - beta2^step) / (1 - beta1^step)
    param = param - rate * m / (sqrt(v) + epsilon)
    param = param * (1 - lr * decoupled_decay - final_decay)
    ```
    With `no_bias_correction`, and in a step 0, `rate` is `lr`.

    ```mlir
    %p1, %m1, %v1 = train.adam_hat %p, %g, %m, %v, %lr, %step
        {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-6 : f64,
         decoupled_decay = 0.01 : f64}
        : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>,
           tensor<f32>, tensor<i64>)
        -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
    ```
  }];
  let arguments = !con((ins
      Train_FloatTensor:$param, Train_FloatTensor:$grad,
      Train_FloatTensor:$exp_avg, Train_FloatTensor:$exp_avg_sq,
      Train_FloatScalar:$lr, Train_StepScalar:$step, F64Attr:$beta1,
      F64Attr:$beta2, F64Attr:$epsilon,
      DefaultValuedAttr<F64Attr, "::llvm::APFloat(0.0)">:$weight_decay,
      DefaultValuedAttr<F64Attr, "::llvm::APFloat(0.0)">:$decoupled_decay,
      DefaultValuedAttr<F64Attr, "::llvm::APFloat(0.0)">:$final_decay,
      UnitAttr:$no_bias_correction), control);
  let results = (outs Train_FloatTensor:$new_param,
                      Train_FloatTensor:$new_exp_avg,
                      Train_FloatTensor:$new_exp_avg_sq);
  let assemblyFormat =
      "$param `,` $grad `,` $exp_avg `,` $exp_avg_sq `,` $lr `,` $step" #
      controlFormat;
}

def Train_AdagradOp : Train_OptimizerOp<"adagrad", 10, 1> {
  let summary = "Adagrad";
  let description = [{
    ```
    g = grad + weight_decay * param
    sum = sum + g * g
    param = param - lr / (1 + (step - 1) * lr_decay) * g / (sqrt(sum) + epsilon)
    ```
    It has no momentum, and takes no operand `momentum`.

    ```mlir
    %p1, %s1 = train.adagrad %p, %g, %s, %lr, %step {epsilon = 1.0e-10 : f64}
        : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<i64>)
        -> (tensor<8xf32>, tensor<8xf32>)
    ```
  }];
  let arguments = !con((ins
      Train_FloatTensor:$param, Train_FloatTensor:$grad, Train_FloatTensor:$sum,
      Train_FloatScalar:$lr, Train_StepScalar:$step, F64Attr:$epsilon,
      DefaultValuedAttr<F64Attr, "::llvm::APFloat(0.0)">:$lr_decay,
      DefaultValuedAttr<F64Attr, "::llvm::APFloat(0.0)">:$weight_decay),
      control);
  let results = (outs Train_FloatTensor:$new_param, Train_FloatTensor:$new_sum);
  let assemblyFormat =
      "$param `,` $grad `,` $sum `,` $lr `,` $step" # controlFormat;
}

}

#endif // ZERO_DIALECTS_TRAIN_TRAINOPSTRAINING_TD
