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
    A kind and its numbers, by the names that their source has. `lr` is the base
    learning rate; numbers in brackets have a default. Truth values and choices
    are numbers too. `k` below counts updates from 0.

    | Kind | Numbers |
    |---|---|
    | `WarmupLR` | `lr`, `warmup_min_lr` [0], `warmup_max_lr` [`lr`], `warmup_num_steps` [1000], `warmup_type` [0: log, 1: linear] |
    | `WarmupDecayLR` | those, `warmup_max_lr` [0.001], and `total_num_steps` |
    | `WarmupCosineLR` | `lr`, `total_num_steps`, `warmup_min_ratio` [0], `warmup_num_steps` [1000], `cos_min_ratio` [0.0001], `warmup_type` [0] |
    | `LRRangeTest` | `lr_range_test_min_lr` [0.001], `lr_range_test_step_size` [2000], `lr_range_test_step_rate` [1], `lr_range_test_staircase` [0] |
    | `OneCycle` | `cycle_min_lr`, `cycle_max_lr`, `decay_lr_rate` [0], `cycle_first_step_size` [2000], `cycle_second_step_size` [the first], `cycle_first_stair_count` [0], `cycle_second_stair_count` [the first], `decay_step_size` [0] |
    | `OneCycleMomentum` | `cycle_min_mom` [0.8], `cycle_max_mom` [0.9], `decay_mom_rate` [0] and the sizes and stairs of `OneCycle` |
    | `ConstantLR` | `lr`, `factor` [1/3], `total_iters` [5] |
    | `LinearLR` | `lr`, `start_factor` [1/3], `end_factor` [1], `total_iters` [5] |
    | `CosineAnnealingLR` | `lr`, `T_max`, `eta_min` [0] |
    | `PolynomialLR` | `lr`, `total_iters` [5], `power` [1] |
    | `constant` | `lr` |
    | `constant_with_warmup` | `lr`, `warmup` |
    | `linear` | `lr`, `warmup` [0], `total` |
    | `cosine` | `lr`, `warmup` [0], `total`, `num_cycles` [0.5] |
    | `polynomial` | `lr`, `warmup` [0], `total`, `lr_end` [1e-7], `power` [1] |
    | `warmup_stable_decay` | `lr`, `warmup` [0], `stable` [0], `decay`, `min_factor` [0], `decay_type` [0: linear, 1: sqrt, 2: cosine] |

    The first six are DeepSpeed's (`deepspeed/runtime/lr_schedules.py`), whose
    engine steps the schedule after each update: update 0 has the rate of the
    schedule's constructor, update k that of iteration k - 1. The next four are
    PyTorch's (`torch.optim.lr_scheduler`); each also takes `warmup` [0] and
    `warmup_start_factor` [1/3]: so many updates of `LinearLR` before it, from
    whose end it counts (`SequentialLR`). The next five are Hugging Face's
    (`transformers.get_scheduler`), the last one TorchTitan's.

    ```mlir
    #train.schedule<"WarmupCosineLR", {lr = 1.0e-3 : f64,
                    total_num_steps = 1000.0 : f64, warmup_num_steps = 100.0 : f64}>
    ```

    Constraints: the kind is one of these; all numbers are f64, known to the
    kind and finite; those without a default are given; sizes are in their range
    (a number of warm-up steps is at least 1 for DeepSpeed, for instance).
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

    ```mlir
    // One step with loss scaling, clipping and a schedule, without the model.
    %scale = zero.read @loss_scale : tensor<f32>
    %seed = train.loss_seed scale %scale : (tensor<f32>) -> tensor<f32>
    ...                                            // backward: %dw
    %sum = train.sum_squares %dw : (tensor<8xf32>) -> tensor<f64>
    %factor, %norm, %overflow = train.gradient_factor %sum scale %scale {max_norm = 1.0 : f64} : ...
    %done = zero.read @optimizer_step : tensor<i64>
    %step = train.add %done, %one : tensor<i64>    // the number of this step, from 1
    %lr = train.schedule %step <"cosine", {...}> : tensor<i64> -> tensor<f32>
    %w1, %m1, %v1 = train.adamw %w, %dw, %m, %v, %lr, %step scale %factor skip %overflow {...} : ...
    %next = train.next_step %done, %overflow : (tensor<i64>, tensor<i1>) -> tensor<i64>
    zero.assign @optimizer_step, %next : tensor<i64>
    ```
  }];
}

let opDocGroup = Train_StepOps in {

def Train_ScheduleOp : Train_Op<"schedule", [CostPerElement<16, 2>]> {
  let summary = "A hyperparameter at a step";
  let description = [{
    The value of the schedule at the number of the step, counted from 1 (update
    k = step - 1; less than 1 counts as 1), times `factor` (of a group of
    parameters). Computed in f64 and rounded once.

    ```mlir
    %lr = train.schedule %step <"WarmupLR", {lr = 0.001 : f64,
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
    DeepSpeed's rule (`DynamicLossScaler` of
    deepspeed/runtime/fp16/loss_scaler.py).

    ```
    if overflow:
      if hysteresis == 1 or hysteresis_left == 1:
        exhausted = scale == min_scale
        scale = max(scale / factor, min_scale)
      else:
        hysteresis_left -= 1
      last_overflow = iteration
    else:
      if consecutive_hysteresis: hysteresis_left = hysteresis
      clean = iteration - last_overflow - 1
      if clean > 0 and clean % window == 0:
        hysteresis_left = hysteresis
        scale *= factor
    iteration += 1
    ```

    `exhausted` says that gradients overflowed at `min_scale`: training cannot
    go on. It starts from hysteresis_left = `hysteresis`, iteration 0 and
    last_overflow -1.

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
