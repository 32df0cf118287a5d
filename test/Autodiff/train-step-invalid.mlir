// Options and modules that make no step, each with one error.
// RUN: split-file %s %t
// RUN: not zero-opt %t/mlp.mlir -train-step='optimizer=lion' 2>&1 | FileCheck %s --check-prefix=OPTIMIZER
// RUN: not zero-opt %t/mlp.mlir -train-step='optimizer=adam beta2=1.0' 2>&1 | FileCheck %s --check-prefix=BETA
// RUN: not zero-opt %t/mlp.mlir -train-step='optimizer=sgd momentum=-1.0' 2>&1 | FileCheck %s --check-prefix=MOMENTUM
// RUN: not zero-opt %t/mlp.mlir -train-step='optimizer=adam epsilon=-1.0' 2>&1 | FileCheck %s --check-prefix=EPSILON
// RUN: not zero-opt %t/mlp.mlir -train-step='optimizer=sgd nesterov' 2>&1 | FileCheck %s --check-prefix=NESTEROV
// RUN: not zero-opt %t/mlp.mlir -train-step='optimizer=sgd dampening=0.5' 2>&1 | FileCheck %s --check-prefix=DAMPENING
// RUN: not zero-opt %t/mlp.mlir -train-step='loss-scale=dynamic initial-scale=1e39' 2>&1 | FileCheck %s --check-prefix=SCALE
// RUN: not zero-opt %t/mlp.mlir -train-step='loss=hinge' 2>&1 | FileCheck %s --check-prefix=LOSS
// RUN: not zero-opt %t/mlp.mlir -train-step='loss=output:nothing' 2>&1 | FileCheck %s --check-prefix=NO-OUTPUT
// RUN: not zero-opt %t/mlp.mlir -train-step='loss=mse:nothing' 2>&1 | FileCheck %s --check-prefix=NO-FLOAT-OUTPUT
// RUN: not zero-opt %t/mlp.mlir -train-step='loss=output:y' 2>&1 | FileCheck %s --check-prefix=NO-SCALAR
// RUN: not zero-opt %t/mlp.mlir -train-step='labels-shape=7' 2>&1 | FileCheck %s --check-prefix=LABELS
// RUN: not zero-opt %t/mlp.mlir -train-step='loss=causal-lm labels=input' 2>&1 | FileCheck %s --check-prefix=TOKENS
// RUN: not zero-opt %t/mlp.mlir -train-step='loss=causal-lm labels=inputs' 2>&1 | FileCheck %s --check-prefix=LABELS-OPTION
// RUN: not zero-opt %t/several.mlir -train-step='loss=mse' 2>&1 | FileCheck %s --check-prefix=SEVERAL
// RUN: not zero-opt %t/scalar.mlir -train-step='loss=cross-entropy' 2>&1 | FileCheck %s --check-prefix=SCALAR
// RUN: not zero-opt %t/scalar.mlir -train-step='loss=causal-lm' 2>&1 | FileCheck %s --check-prefix=POSITIONS
// RUN: not zero-opt %t/integer.mlir -train-step='loss=mse' 2>&1 | FileCheck %s --check-prefix=INTEGER
// RUN: not zero-opt %t/labels.mlir -train-step='loss=mse' 2>&1 | FileCheck %s --check-prefix=HAS-LABELS
// RUN: not zero-opt %t/frozen.mlir -train-step='loss=mse' 2>&1 | FileCheck %s --check-prefix=FROZEN
// RUN: not zero-opt %t/constant.mlir -train-step='loss=mse loss-scale=dynamic' 2>&1 | FileCheck %s --check-prefix=FROZEN
// RUN: not zero-opt %t/empty.mlir -train-step 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not zero-opt %t/step.mlir -train-step 2>&1 | FileCheck %s --check-prefix=STEP
// RUN: not zero-opt %t/blocks.mlir -train-step 2>&1 | FileCheck %s --check-prefix=BLOCKS

// SCALE: error: initial and least loss scale are 1.000000e+39 and 1.000000e+00, expected positive numbers of f32, from {{.*}}
// OPTIMIZER: error: unknown optimizer lion, expected sgd, adam, adamw, adamw-hf, adagrad or none
// BETA: error: betas 9.000000e-01 and 1.000000e+00 are not in [0, 1)
// MOMENTUM: error: momentum -1.000000e+00 is negative
// EPSILON: error: epsilon -1.000000e+00 is negative
// NESTEROV: error: nesterov needs a momentum and no dampening, they are 0.000000e+00 and 0.000000e+00
// DAMPENING: error: dampening 5.000000e-01 needs a momentum
// LOSS: error: @forward cannot train with unknown loss hinge, expected cross-entropy, causal-lm, mse, bce or output:NAME
// NO-OUTPUT: error: @forward has no output called nothing
// NO-FLOAT-OUTPUT: error: @forward has no float output called nothing
// NO-SCALAR: error: @forward has output y of shape [6, 4], which is no loss: expected one element
// LABELS: error: @forward gives logits of shape [6, 4], which labels of shape [7] do not fit: no axis can be the class axis
// TOKENS: error: @forward has 0 integer inputs of shape [6] that could be the labels of causal-lm; pass labels=separate
// LABELS-OPTION: error: unknown labels inputs, expected separate or input
// SEVERAL: error: @forward has several float outputs (a, b); choose one, such as loss=mse:a
// SCALAR: error: @forward gives a scalar, but cross-entropy needs logits with a class axis
// POSITIONS: error: @forward gives shape [], but causal-lm needs logits of at least 2 positions
// INTEGER: error: @forward has no float output to compute a loss from
// HAS-LABELS: error: @forward has an input called labels already; a model that computes its own loss trains with loss=output:NAME
// FROZEN: error: the loss of @forward depends on no trained parameter
// EMPTY: error: module has no function @forward to train
// STEP: error: module has a function @step already
// BLOCKS: error: @forward is not straight-line code, expected one block

//--- mlp.mlir
zero.param @w : tensor<6x4xf32>
func.func @forward() -> (tensor<6x4xf32> {zero.output = "y"}) {
  %w = zero.read @w : tensor<6x4xf32>
  return %w : tensor<6x4xf32>
}

//--- several.mlir
zero.param @w : tensor<6x4xf32>
func.func @forward() -> (tensor<6x4xf32> {zero.output = "a"}, tensor<6x4xf32> {zero.output = "b"}) {
  %w = zero.read @w : tensor<6x4xf32>
  return %w, %w : tensor<6x4xf32>, tensor<6x4xf32>
}

//--- scalar.mlir
zero.param @w : tensor<f32>
func.func @forward() -> (tensor<f32> {zero.output = "y"}) {
  %w = zero.read @w : tensor<f32>
  return %w : tensor<f32>
}

//--- integer.mlir
func.func @forward(%x: tensor<4xi64> {zero.input = "x"}) -> (tensor<4xi64> {zero.output = "y"}) {
  return %x : tensor<4xi64>
}

//--- constant.mlir
func.func @forward(%x: tensor<4xf32> {zero.input = "x"}) -> (tensor<4xf32> {zero.output = "y"}) {
  return %x : tensor<4xf32>
}

//--- labels.mlir
zero.param @w : tensor<4xf32>
func.func @forward(%labels: tensor<4xi64> {zero.input = "labels"}) -> (tensor<4xf32> {zero.output = "y"}) {
  %w = zero.read @w : tensor<4xf32>
  return %w : tensor<4xf32>
}

//--- frozen.mlir
zero.param @w : tensor<4xf32> frozen
func.func @forward() -> (tensor<4xf32> {zero.output = "y"}) {
  %w = zero.read @w : tensor<4xf32>
  return %w : tensor<4xf32>
}

//--- empty.mlir
module {
}

//--- step.mlir
func.func @step() {
  return
}

//--- blocks.mlir
func.func @forward() {
  return
^unreachable:
  return
}
