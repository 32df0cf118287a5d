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
  }];
  let options = [
    Option<"loss", "loss", "std::string", "\"cross-entropy\"",
           "cross-entropy, causal-lm, mse or bce (with :OUTPUT to choose an "
           "output), or output:NAME">,
    Option<"optimizer", "optimizer", "std::string", "\"adamw\"",
           "sgd, adam, adamw, or none for gradients as outputs">,
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
           "default the class axis is the last one">
  ];
  let dependentDialects = ["::mlir::train::TrainDialect"];
}

#endif // ZERO_AUTODIFF_PASSES_TD
