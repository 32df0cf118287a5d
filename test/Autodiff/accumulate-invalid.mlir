// What train-accumulate refuses, one case per message.
// RUN: zero-opt %s --split-input-file --verify-diagnostics --train-accumulate=steps=4
// RUN: not zero-opt %s --split-input-file --train-accumulate=steps=0 2>&1 | FileCheck %s
// RUN: not zero-opt %s --split-input-file --train-accumulate=steps=9999999999 2>&1 | FileCheck %s --check-prefix=MANY

// MANY: expects at most 1048576 micro-batches, got 9999999999
// CHECK: expects at least one micro-batch, got 0

// expected-error @below {{accumulates over 2 : i64 micro-batches already}}
module attributes {zero.micro_batches = 2 : i64} {
}

// -----

// expected-error @below {{is partitioned; accumulate before that}}
module attributes {zero.stage = 2 : i64} {
}

// -----

// expected-error @below {{expects a function @step of one block and no @accumulate}}
module {
}

// -----

zero.param @w : tensor<4xf32>
// expected-error @below {{@step has no train.loss_seed, by which gradients are divided by the number of micro-batches}}
func.func @step(%g: tensor<4xf32> {zero.input = "g"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
  %w = zero.read @w : tensor<4xf32>
  %n = train.sgd %w, %g, %lr : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  zero.assign @w, %n : tensor<4xf32>
  return
}

// -----

// expected-error @below {{@step has no optimizer's update whose gradients could be accumulated}}
func.func @step(%g: tensor<4xf32> {zero.input = "g"}) -> tensor<f32> {
  %s = train.loss_seed : () -> tensor<f32>
  return %s : tensor<f32>
}

// -----

func.func @step(%w: tensor<4xf32> {zero.input = "w"}, %lr: tensor<f32> {zero.hyper = "lr"}) -> tensor<4xf32> {
  %s = train.loss_seed : () -> tensor<f32>
  %g = train.mul %w, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{updates what is no parameter; cannot accumulate its gradient}}
  %n = train.sgd %w, %g, %lr : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %n : tensor<4xf32>
}

// -----

// expected-error @below {{has a symbol @w.grad already, which would be the sum over micro-batches; rename it}}
module {
  zero.param @w : tensor<4xf32>
  zero.param @w.grad : tensor<4xf32>
  func.func @step(%x: tensor<4xf32> {zero.input = "x"}, %lr: tensor<f32> {zero.hyper = "lr"}) {
    %s = train.loss_seed : () -> tensor<f32>
    %g = train.mul %x, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %w = zero.read @w : tensor<4xf32>
    %n = train.sgd %w, %g, %lr : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    zero.assign @w, %n : tensor<4xf32>
    return
  }
}
