//===- Passes.td - the autodiff passes ---------------------*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From a forward pass to gradients and to a whole training step.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_AUTODIFF_PASSES_TD
#define ZERO_AUTODIFF_PASSES_TD

include "mlir/Pass/PassBase.td"

def TrainAutodiffPass : Pass<"train-autodiff", "::mlir::ModuleOp"> {
  let summary = "add the gradients of a scalar output as outputs";
  let description = [{
    Reverse-mode differentiation of one function. The loss is the output
    `loss`, or the only rank-0 float output. For each trained parameter that
    the loss depends on there is a new output `grad.NAME`; with `inputs` also
    for each float argument with a `zero.input` name. Reads of one parameter
    (ties) give one gradient, their sum. Frozen parameters and buffers have
    none. The backward operations stand in reverse order of the forward ones.

    A gradient that would have to pass through an operation without a
    derivative is an error that names it.

    ```mlir
    zero.param @w : tensor<4xf32>
    func.func @forward(%x: tensor<4xf32> {zero.input = "x"})
        -> (tensor<f32> {zero.output = "loss"}) {
      %w = zero.read @w : tensor<4xf32>
      %p = train.mul %x, %w : tensor<4xf32>
      %l = train.reduce_sum %p axes [0] : (tensor<4xf32>) -> tensor<f32>
      return %l : tensor<f32>
    }
    // train-autodiff
    func.func @forward(%x: tensor<4xf32> {zero.input = "x"})
        -> (tensor<f32> {zero.output = "loss"},
            tensor<4xf32> {zero.output = "grad.w"}) {
      ...
      %one = arith.constant dense<1.0> : tensor<f32>
      %d = train.reshape %one : tensor<f32> to tensor<1xf32>
      %dp = train.broadcast %d : tensor<1xf32> to tensor<4xf32>
      %dw = train.mul %dp, %x : tensor<4xf32>
      return %l, %dw : tensor<f32>, tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", "\"forward\"",
           "The function to differentiate">,
    Option<"loss", "loss", "std::string", "\"\"",
           "The output (zero.output) to differentiate; by default the only "
           "rank-0 float output">,
    Option<"inputs", "inputs", "bool", "false",
           "Also give the gradients by float inputs">
  ];
  let dependentDialects = ["::mlir::train::TrainDialect"];
}

def TrainPrecisionPass : Pass<"train-precision", "::mlir::ModuleOp"> {
  let summary = "compute the forward function in bf16 or f16";
  let description = [{
    Retypes `@forward`, before `train-step` builds the rest from it: f32
    parameters, constants and activations become `type`, so that gathers and
    gradients have it too. The rules:

    - A float input stays what its file has and is cast where it is used; a
      float output is cast back to the type it had.
    - A buffer (running statistics) stays f32, and so does what is computed from
      it for its own update; elsewhere it is cast.
    - Statistics and losses that operations give in f32 stay f32; an elementwise
      operation on an f32 value computes in f32, a matrix product or convolution
      in `type`.
    - Integers, booleans and f64 stay as they are. A finite constant that `type`
      cannot hold becomes its largest number (masks, in f16).

    `train-step` then gives every trained parameter that is narrower than f32 an
    f32 master, which the optimizer updates; frozen parameters have none.

    ```mlir
    zero.param @w : tensor<10x64xf32> init("w.safetensors")
    func.func @forward(%x: tensor<8x64xf32> {zero.input = "x"})
        -> (tensor<8x10xf32> {zero.output = "logits"}) {
      %w = zero.read @w : tensor<10x64xf32>
      %y = train.matmul %x, %w {transpose_b} : ...
      return %y : tensor<8x10xf32>
    }
    // train-precision{type=bf16}
    zero.param @w : tensor<10x64xbf16> init("w.safetensors")
    func.func @forward(%x: tensor<8x64xf32> {zero.input = "x"})
        -> (tensor<8x10xf32> {zero.output = "logits"}) {
      %x16 = train.cast %x : tensor<8x64xf32> to tensor<8x64xbf16>
      %w = zero.read @w : tensor<10x64xbf16>
      %y16 = train.matmul %x16, %w {transpose_b} : ...
      %y = train.cast %y16 : tensor<8x10xbf16> to tensor<8x10xf32>
      return %y : tensor<8x10xf32>
    }
    ```
  }];
  let options = [
    Option<"type", "type", "std::string", "\"bf16\"",
           "bf16 or f16; f32 changes nothing">
  ];
  let dependentDialects = ["::mlir::train::TrainDialect"];
}

def TrainRaiseAttentionPass
    : Pass<"train-raise-attention", "::mlir::ModuleOp"> {
  let summary = "find attention in products and softmax";
  let description = [{
    Replaces a softmax between two matrix products by `train.attention`, before
    autodiff, whose backward pass then is one operation too and keeps no
    probabilities. What it finds: queries times transposed keys, scaled before
    or after the product, plus any masks, the softmax along the last axis, times
    values. A constant mask that hides just the keys after each query becomes
    `causal`; other masks are added up. Heads of keys and values that are
    repeated for their group of queries are taken before the repetition.

    A mask keeps the shape that it has before it is broadcast, and a conjunction
    of conditions is taken apart, so that no part has a score's two dimensions
    which need not. Zeros in place of what is no number, which exporters write
    behind the softmax, are what the operation computes for a query that sees no
    key.

    Dropout of the probabilities becomes part of it where its samples lie along
    the batch, or along no dimension: it draws the same numbers.

    Only where the library has it: on GPUs in bf16 and f16, with heads of sizes
    that are multiples of 8 up to 128; with `host` in all types but f64; and
    with masks that depend on no trained parameter. Where a softmax between two
    products stays, a remark says why.

    ```mlir
    %s = train.matmul %q, %k {transpose_b} : ...
    %s1 = train.mul %s, %quarter : ...
    %p = train.softmax %s1 axis 3 : tensor<2x12x64x64xbf16>
    %y = train.matmul %p, %v : ...
    // train-raise-attention
    %y, %lse = train.attention %q, %k, %v scale 2.5e-01 : ...
    ```
  }];
  let options = [
    Option<"any", "any", "bool", "false",
           "Of any type and size, as the decomposition takes it">,
    Option<"host", "host", "bool", "false",
           "What the host's runtime has, instead of what GPUs have">
  ];
  let dependentDialects = ["::mlir::train::TrainDialect"];
}

def TrainDecomposeAttentionPass : Pass<"train-decompose-attention"> {
  let summary = "attention as products and softmax";
  let description = [{
    Replaces `train.attention` and `train.attention_grad` by matrix products, a
    softmax and elementwise operations: what targets without such a library
    function compute.

    ```mlir
    %y, %lse = train.attention %q, %k, %v scale 2.5e-01 : ...
    // train-decompose-attention
    %s = train.matmul %q, %k {transpose_b} : ...
    %s1 = train.mul %s, %quarter : ...
    %p = train.softmax %s1 axis 3 : tensor<2x12x64x64xf32>
    %y = train.matmul %p, %v : ...
    ```
  }];
  let dependentDialects = ["::mlir::train::TrainDialect",
                           "::mlir::arith::ArithDialect"];
}

def TrainStepPass : Pass<"train-step", "::mlir::ModuleOp"> {
  let summary = "turn the forward function into a training step";
  let description = [{
    Takes `@forward`, whose inputs have `zero.input` names and whose outputs
    have `zero.output` names, and makes it `@step`: forward, loss, backward,
    gradient norm, optimizer updates, in this order.

    - Arguments: the inputs, `labels` where the loss needs them, `%lr` and
      `%step` (from 1). Results: `loss` and `grad_norm_sq`; with
      `optimizer=none` also `grad.NAME` for each trained parameter. The other
      outputs disappear.
    - `cross-entropy`: integer labels of the logits' shape without the class
      axis; mean over labels that are not -100. `causal-lm`: the same with
      position t of the logits against label t + 1. `mse`: mean of squared
      differences. `bce`: mean binary cross-entropy with logits.
      `KIND:OUTPUT` chooses among several outputs; `output:NAME` is an output
      that is the loss.
    - Each trained parameter that the loss depends on gets state symbols of
      zeros and one update with PyTorch's semantics and defaults; a remark
      names those that it does not depend on. Assignments that the forward pass
      has (running statistics) stay where they are.
    - The module's attribute `zero.optimizer` names the optimizer.
    - A trained parameter narrower than f32 gets a state `NAME.master` in f32,
      which is updated in its place; the parameter is assigned its rounded value.
      Gradients are cast to `reduce-type` first.

    Options beyond the plain step, each of which is ordinary IR (the ops of
    "Accumulation, loss scaling and schedules" in the train dialect):

    - `clip-norm`: `train.gradient_factor` makes one factor from the sum of
      squares, and each update takes it as `scale`. `clip-value`: an attribute
      of each update.
    - `loss-scale`: the backward pass starts from the scale, the factor divides
      by it, updates `skip` a step that overflowed, and `dynamic` keeps DeepSpeed's
      state in `@loss_scale`, `@loss_scale.hysteresis`, `@loss_scale.iteration`
      and `@loss_scale.last_overflow`. `skip-non-finite` skips without scaling.
      A step that may be skipped counts itself in `@optimizer_step` and has no
      `%step` argument.
    - `no-decay` and `groups`: other weight decay and learning rates by name. A
      pattern that matches no parameter is named by a remark.
    - `schedule`: `train.schedule` in place of the `%lr` argument;
      `momentum-schedule` in place of sgd's momentum or Adam's beta1.
    - `micro-batches`: the step accumulates gradients; see `train-accumulate`.

    A state of the optimizer that the module declares (`@w.exp_avg of @w`) keeps
    its start, and a declared `@optimizer_step` is the number of steps before
    this one: training goes on. A warning says what this optimizer has no use for.

    Further results then: `grad_norm` in place of `grad_norm_sq` (before
    clipping, without the loss scale) and `grad_norm_clipped`, `lr`,
    `loss_scale` (that this step used), `overflow` and `loss_scale_exhausted`.

    ```mlir
    zero.param @w : tensor<10x64xf32>
    func.func @forward(%x: tensor<8x64xf32> {zero.input = "x"})
        -> (tensor<8x10xf32> {zero.output = "logits"}) {
      %w = zero.read @w : tensor<10x64xf32>
      %y = train.matmul %x, %w {transpose_b} : ...
      return %y : tensor<8x10xf32>
    }
    // train-step{loss=cross-entropy optimizer=sgd momentum=0.9}
    zero.param @w : tensor<10x64xf32>
    zero.state @w.momentum of @w : tensor<10x64xf32> zeros
    func.func @step(%x: tensor<8x64xf32> {zero.input = "x"},
                    %labels: tensor<8xi64> {zero.input = "labels"},
                    %lr: tensor<f32> {zero.hyper = "lr"},
                    %step: tensor<i64> {zero.hyper = "step"})
        -> (tensor<f32> {zero.output = "loss", zero.across = "mean"},
            tensor<f64> {zero.output = "grad_norm_sq", zero.across = "same"}) {
      %w = zero.read @w : tensor<10x64xf32>
      %y = train.matmul %x, %w {transpose_b} : ...
      %loss, %lse = train.cross_entropy %y, %labels ...
      %one = arith.constant dense<1.0> : tensor<f32>
      %dy = train.cross_entropy_grad %one, %y, %labels, %lse ...
      %dw = train.matmul %dy, %x {transpose_a} : ...
      %n = train.sum_squares %dw : ...
      %m = zero.read @w.momentum : tensor<10x64xf32>
      %w1, %m1 = train.sgd %w, %dw, %m, %lr {momentum = 0.9} : ...
      zero.assign @w, %w1 : tensor<10x64xf32>
      zero.assign @w.momentum, %m1 : tensor<10x64xf32>
      return %loss, %n : tensor<f32>, tensor<f64>
    }
    ```

    The update of a bf16 parameter with `clip-norm=1 schedule=constant:lr=0.1`:

    ```mlir
    %lr = train.schedule %step <"constant", {lr = 1.0e-01 : f64}> : tensor<i64> -> tensor<f32>
    %g = train.cast %dw : tensor<10x64xbf16> to tensor<10x64xf32>
    %n = train.sum_squares %g : (tensor<10x64xf32>) -> tensor<f64>
    %factor, %norm, %overflow = train.gradient_factor %n {max_norm = 1.0 : f64} : ...
    %m = zero.read @w.master : tensor<10x64xf32>
    %m1 = train.sgd %m, %g, %lr scale %factor : ...
    zero.assign @w.master, %m1 : tensor<10x64xf32>
    %w1 = train.cast %m1 : tensor<10x64xf32> to tensor<10x64xbf16>
    zero.assign @w, %w1 : tensor<10x64xbf16>
    ```

    A function whose results are marked `train.gradient` computes the gradients
    itself: then none are made, the loss is the result marked `train.loss`, and
    the argument marked `train.loss_seed`, if there is one, becomes 1, or what
    micro-batches and loss scale make of it.

    ```mlir
    func.func @forward(%x: tensor<4xf32>, %seed: tensor<f32> {train.loss_seed})
        -> (tensor<f32> {train.loss}, tensor<4xf32> {train.gradient = "w"})
    ```
  }];
  let options = [
    Option<"loss", "loss", "std::string", "\"cross-entropy\"",
           "cross-entropy, causal-lm, mse or bce (with :OUTPUT to choose an "
           "output), or output:NAME">,
    Option<"optimizer", "optimizer", "std::string", "\"adamw\"",
           "sgd, adam, adamw, adamw-hf, adagrad, or none for gradients as outputs">,
    Option<"momentum", "momentum", "double", "0.0", "sgd: momentum">,
    Option<"dampening", "dampening", "double", "0.0",
           "sgd: dampening of the momentum">,
    Option<"nesterov", "nesterov", "bool", "false", "sgd: Nesterov momentum">,
    Option<"weightDecay", "weight-decay", "double", "-1.0",
           "Weight decay; negative: 0.01 for adamw, otherwise 0">,
    Option<"beta1", "beta1", "double", "0.9",
           "adam, adamw: decay of the mean gradient">,
    Option<"beta2", "beta2", "double", "0.999",
           "adam, adamw: decay of the mean squared gradient">,
    Option<"epsilon", "epsilon", "double", "1e-8",
           "adam, adamw: what is added to the denominator">,
    Option<"labels", "labels", "std::string", "\"separate\"",
           "causal-lm: separate, an argument called labels, or input, the "
           "integer input itself">,
    Option<"ignoreIndex", "ignore-index", "int64_t", "-100",
           "The label that does not count">,
    ListOption<"labelsShape", "labels-shape", "int64_t",
           "cross-entropy: the labels' shape, which tells the class axis; by "
           "default the class axis is the last one">,
    Option<"noBiasCorrection", "no-bias-correction", "bool", "false",
           "adam, adamw: leave out the bias corrections">,
    Option<"precision", "precision", "std::string", "\"f32\"",
           "f32, bf16 or f16: run train-precision first">,
    Option<"reduceType", "reduce-type", "std::string", "\"f32\"",
           "f32, bf16 or f16: the type that gradients are reduced in">,
    Option<"lossScale", "loss-scale", "std::string", "\"\"",
           "dynamic, or a number; by default the loss is not scaled">,
    Option<"initialScale", "initial-scale", "double", "65536.0",
           "loss-scale=dynamic: the scale of the first step">,
    Option<"lossScaleWindow", "loss-scale-window", "int64_t", "1000",
           "loss-scale=dynamic: steps without overflow until it grows">,
    Option<"hysteresis", "loss-scale-hysteresis", "int64_t", "2",
           "loss-scale=dynamic: overflows until it shrinks">,
    Option<"consecutiveHysteresis", "consecutive-hysteresis", "bool", "false",
           "loss-scale=dynamic: these overflows have to follow each other">,
    Option<"minScale", "min-scale", "double", "1.0",
           "loss-scale=dynamic: the least scale">,
    Option<"skipNonFinite", "skip-non-finite", "bool", "false",
           "Change nothing in a step whose gradients are not finite">,
    Option<"microBatches", "micro-batches", "int64_t", "1",
           "Micro-batches of a step, whose gradients are averaged">,
    Option<"clipNorm", "clip-norm", "double", "0.0",
           "Largest norm of all gradients together; 0: any">,
    Option<"clipValue", "clip-value", "double", "0.0",
           "Largest magnitude of a gradient's element; 0: any">,
    ListOption<"noDecay", "no-decay", "std::string",
           "Parameters without weight decay: globs, or auto for those of at most "
           "one dimension">,
    ListOption<"groups", "groups", "std::string",
           "GLOB:weight-decay=W:lr-factor=F; of those that match, the first with "
           "a weight decay and the first with a factor hold, no-decay after them">,
    Option<"schedule", "schedule", "std::string", "\"\"",
           "KIND:NUMBER=VALUE:...: the learning rate as a #train.schedule">,
    Option<"momentumSchedule", "momentum-schedule", "std::string", "\"\"",
           "KIND:NUMBER=VALUE:...: sgd's momentum or Adam's beta1">
  ];
  let dependentDialects = ["::mlir::train::TrainDialect"];
}

def TrainAccumulatePass : Pass<"train-accumulate", "::mlir::ModuleOp"> {
  let summary = "split a step into micro-batches whose gradients are added up";
  let description = [{
    Makes a step of `steps` micro-batches of a step of one. `@accumulate`, a copy
    of the forward and backward pass, runs for all micro-batches but the last and
    adds its gradients to `accumulator` states; `@step` runs once, for the last
    one, and updates with the sums, which it then sets to zero. Buffers (running
    statistics) are updated in every micro-batch. The `loss` of the step is the
    mean over its micro-batches. Accumulators are f32, or f64 for gradients that
    are.

    Gradients are divided by the number of micro-batches where the backward pass
    begins, by the `train.loss_seed` of the step, so their sums are averages.

    ```mlir
    func.func @step(%x: ..., %lr: tensor<f32> {zero.hyper = "lr"}) -> (tensor<f32> {zero.output = "loss"}) {
      ...
      %seed = train.loss_seed : () -> tensor<f32>
      %dw = train.matmul ...
      %n = train.sgd %w, %dw, %lr
      zero.assign @w, %n
      return %loss
    }
    // train-accumulate{steps=4}
    zero.state @w.grad of @w : tensor<10x4xf32> zeros accumulator
    zero.state @loss_sum : tensor<f32> zeros accumulator
    func.func @accumulate(%x: ...) {
      ...
      %seed = train.loss_seed {micro_batches = 4 : i64} : () -> tensor<f32>
      %dw = train.matmul ...
      %g = zero.read @w.grad : tensor<10x4xf32>
      %sum = train.accumulate %g, %dw
      zero.assign @w.grad, %sum
      ...
    }
    func.func @step(%x: ..., %lr: ...) -> (tensor<f32> {zero.output = "loss"}) {
      ...
      %sum = train.accumulate %g, %dw
      %n = train.sgd %w, %sum, %lr
      zero.assign @w, %n
      zero.assign @w.grad, %zeros
      %mean = train.div %losses, %four
      return %mean
    }
    ```
  }];
  let options = [
    Option<"steps", "steps", "int64_t", "1", "Micro-batches of a step">];
  let dependentDialects = ["::mlir::train::TrainDialect"];
}

def TrainUnrollScansPass : Pass<"train-unroll-scans", "::mlir::func::FuncOp"> {
  let summary = "replace loops by their steps";
  let description = [{
    Replaces each `train.scan` by the operations of its body, once for each
    step: what a target needs that cannot run a loop as one kernel.

    ```mlir
    %last = train.scan init(%h0) over(%xs) steps 2
        : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<4xf32> {
    ^bb0(%h: tensor<4xf32>, %x: tensor<4xf32>):
      %s = train.add %h, %x : tensor<4xf32>
      train.yield %s : tensor<4xf32>
    }
    // train-unroll-scans
    %0 = train.slice %xs starts [0, 0] limits [1, 4] strides [1, 1] : ...
    %x0 = train.reshape %0 : tensor<1x4xf32> to tensor<4xf32>
    %h1 = train.add %h0, %x0 : tensor<4xf32>
    %1 = train.slice %xs starts [1, 0] limits [2, 4] strides [1, 1] : ...
    %x1 = train.reshape %1 : tensor<1x4xf32> to tensor<4xf32>
    %last = train.add %h1, %x1 : tensor<4xf32>
    ```
  }];
  let options = [
    Option<"keepKernels", "keep-kernels", "bool", "false",
           "Keep loops that one kernel of the host runs: those without "
           "attention">
  ];
  let statistics = [
    Statistic<"numUnrolled", "num-unrolled", "Loops that were unrolled">
  ];
  let dependentDialects = ["::mlir::train::TrainDialect"];
}

#endif // ZERO_AUTODIFF_PASSES_TD
