//===- TrainOpsStep.td - accumulation, scaling, schedules --*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a training step computes besides gradients and updates: sums over
// micro-batches, the factor of the gradients, the loss scale, and hyperparameters
// that follow a schedule.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECTS_TRAIN_TRAINOPSSTEP_TD
#define ZERO_DIALECTS_TRAIN_TRAINOPSSTEP_TD

include "dialects/Train/TrainDialect.td"
include "dialects/Zero/ZeroInterfaces.td"

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

def Train_ScheduleAttr : AttrDef<Train_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "how a hyperparameter changes from step to step";
  let description = [{
    A kind and its numbers, as DeepSpeed and PyTorch name them. The verifier
    knows the kinds and which numbers each takes; missing ones have the
    defaults of their source.

    ```mlir
    #train.schedule<"WarmupCosineLR", {lr = 1.0e-3 : f64,
                    total_num_steps = 1000.0 : f64, warmup_num_steps = 100.0 : f64}>
    ```
  }];
  let parameters = (ins StringRefParameter<"name of the rule">:$kind,
                        "::mlir::DictionaryAttr":$numbers);
  let assemblyFormat = "`<` $kind `,` $numbers `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

def Train_StepOps : OpDocGroup {
  let summary = "Accumulation, loss scaling and schedules";
  let description = [{
    Except for `accumulate` these work on rank-0 tensors and are the same on all
    ranks. They are ordinary values of the step: what a run does about an
    overflow, or which learning rate it has, can be read in the IR.
  }];
}

let opDocGroup = Train_StepOps in {

def Train_ScheduleOp : Train_Op<"schedule", [CostPerElement<8, 1>]> {
  let summary = "A hyperparameter at a step";
  let description = [{
    The value of the schedule at the number of the step, counted from 1, times
    `factor` (of a group of parameters).

    ```mlir
    %lr = train.schedule %step #train.schedule<"WarmupLR", {lr = 0.001 : f64,
                         warmup_num_steps = 100.0 : f64}>
        : tensor<i64> -> tensor<f32>
    ```
  }];
  let arguments = (ins Train_StepScalar:$step, Train_ScheduleAttr:$schedule,
                       DefaultValuedAttr<F64Attr, "::llvm::APFloat(1.0)">:$factor);
  let results = (outs Train_FloatScalar:$result);
  let assemblyFormat =
      "$step $schedule attr-dict `:` type($step) `->` type($result)";
}

def Train_LossSeedOp : Train_Op<"loss_seed", [CostPerElement<1>]> {
  let summary = "The gradient that the backward pass starts from";
  let description = [{
    `scale / micro_batches`: gradients of the micro-batches of a step, added up,
    are then those of the scaled mean. `zero-verify` relies on it to know that
    gradients are divided by the number of micro-batches exactly once.

    ```mlir
    %seed = train.loss_seed scale %loss_scale {micro_batches = 4 : i64}
        : (tensor<f32>) -> tensor<f32>
    ```
    Constraint: at least one micro-batch.
  }];
  let arguments = (ins Optional<Train_FloatScalar>:$loss_scale,
                       DefaultValuedAttr<I64Attr, "1">:$micro_batches);
  let results = (outs Train_FloatScalar:$result);
  let assemblyFormat =
      "(`scale` $loss_scale^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_AccumulateOp : Train_InferOp<"accumulate", [
    Elementwise, BroadcastElementwise, CostPerElement<1>]> {
  let summary = "Adds a gradient to the sum over micro-batches";
  let description = [{
    The element type is that of the sum; a narrower gradient is widened first.
    The result takes the storage of the sum when the plan is made.

    ```mlir
    %sum = train.accumulate %acc, %dw
        : (tensor<8xf32>, tensor<8xbf16>) -> tensor<8xf32>
    ```
    Constraint: both have the same shape.
  }];
  let arguments = (ins Train_FloatTensor:$sum, Train_FloatTensor:$grad);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Train_GradientFactorOp : Train_Op<"gradient_factor", [CostPerElement<8, 1>]> {
  let summary = "Norm of the gradients, and the factor that unscales and clips them";
  let description = [{
    ```
    norm     = sqrt(sum_squares) / scale
    factor   = min(1, max_norm / (norm + 1e-6)) / scale
    overflow = sum_squares is not finite
    ```
    `scale` is the loss scale (1 without it); without `max_norm` nothing is
    clipped. The formula is that of `torch.nn.utils.clip_grad_norm_`, computed in
    f64; DeepSpeed's combined scale is its reciprocal.

    ```mlir
    %factor, %norm, %overflow = train.gradient_factor %sum scale %loss_scale
        {max_norm = 1.0 : f64}
        : (tensor<f64>, tensor<f32>) -> (tensor<f32>, tensor<f64>, tensor<i1>)
    ```
    Constraint: `max_norm` is positive.
  }];
  let arguments = (ins Train_FloatScalar:$sum_squares,
                       Optional<Train_FloatScalar>:$loss_scale,
                       OptionalAttr<F64Attr>:$max_norm);
  let results = (outs Train_FloatScalar:$factor, Train_FloatScalar:$norm,
                      Train_BoolScalar:$overflow);
  let assemblyFormat = [{
    $sum_squares (`scale` $loss_scale^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Train_UpdateLossScaleOp : Train_InferOp<"update_loss_scale", [
    CostPerElement<8>]> {
  let summary = "The loss scale of the next step";
  let description = [{
    DeepSpeed's rule (deepspeed/runtime/fp16/loss_scaler.py). On overflow: with
    hysteresis 1 left, or `consecutive_hysteresis` off and none left, the scale
    is divided by `factor`, not below `min_scale`; otherwise the hysteresis
    shrinks by one. Without overflow the scale is multiplied by `factor`, and
    the hysteresis restored, on every `window`-th step since the last overflow.
    `exhausted` says that it overflowed at `min_scale`: training cannot go on.

    ```mlir
    %s1, %h1, %i1, %l1, %exhausted = train.update_loss_scale
        %scale, %hysteresis, %iteration, %last_overflow, %overflow
        {window = 1000 : i64, hysteresis = 2 : i64}
        : (tensor<f32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i1>)
        -> (tensor<f32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i1>)
    ```
    Constraints: `window` and `hysteresis` are at least 1, `factor` is greater
    than 1, `min_scale` is positive.
  }];
  let arguments = (ins Train_FloatScalar:$scale, Train_StepScalar:$hysteresis_left,
                       Train_StepScalar:$iteration,
                       Train_StepScalar:$last_overflow,
                       Train_BoolScalar:$overflow,
                       DefaultValuedAttr<I64Attr, "1000">:$window,
                       DefaultValuedAttr<I64Attr, "2">:$hysteresis,
                       UnitAttr:$consecutive_hysteresis,
                       DefaultValuedAttr<F64Attr, "::llvm::APFloat(2.0)">:$factor,
                       DefaultValuedAttr<F64Attr, "::llvm::APFloat(1.0)">:$min_scale);
  let results = (outs Train_FloatScalar:$new_scale,
                      Train_StepScalar:$new_hysteresis,
                      Train_StepScalar:$new_iteration,
                      Train_StepScalar:$new_last_overflow,
                      Train_BoolScalar:$exhausted);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_NextStepOp : Train_InferOp<"next_step", [CostPerElement<1>]> {
  let summary = "Counts the steps that were not skipped";
  let description = [{
    `skip ? step : step + 1`: an optimizer that skips a step does not age, and
    neither does its schedule.

    ```mlir
    %n = train.next_step %step, %overflow : (tensor<i64>, tensor<i1>) -> tensor<i64>
    ```
  }];
  let arguments = (ins Train_StepScalar:$step, Train_BoolScalar:$skip);
  let results = (outs Train_StepScalar:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

}

#endif // ZERO_DIALECTS_TRAIN_TRAINOPSSTEP_TD
