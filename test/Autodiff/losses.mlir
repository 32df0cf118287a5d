// Each loss, with the labels it adds.
// RUN: split-file %s %t
// RUN: zero-opt %t/class.mlir -train-step='loss=cross-entropy ignore-index=7' | FileCheck %s --check-prefix=LAST
// RUN: zero-opt %t/class.mlir -train-step='loss=cross-entropy labels-shape=2,4' | FileCheck %s --check-prefix=MIDDLE
// RUN: zero-opt %t/square.mlir -train-step='loss=cross-entropy labels-shape=3' | FileCheck %s --check-prefix=SQUARE
// RUN: zero-opt %t/causal.mlir -train-step='loss=causal-lm' | FileCheck %s --check-prefixes=CAUSAL,SEPARATE
// RUN: zero-opt %t/causal.mlir -train-step='loss=causal-lm labels=input' | FileCheck %s --check-prefixes=CAUSAL,INPUT
// RUN: zero-opt %t/class.mlir -train-step='loss=mse' | FileCheck %s --check-prefix=MSE
// RUN: zero-opt %t/half.mlir -train-step='loss=mse' | FileCheck %s --check-prefix=HALF
// RUN: zero-opt %t/class.mlir -train-step='loss=bce' | FileCheck %s --check-prefix=BCE
// RUN: zero-opt %t/several.mlir -train-step='loss=mse:b' | FileCheck %s --check-prefix=CHOSEN
// RUN: zero-opt %t/several.mlir -train-step='loss=output:own' | FileCheck %s --check-prefix=OWN

// The class axis is the last one,
// LAST: %[[LABELS:[a-z0-9]*]]: tensor<2x3xi64> {zero.input = "labels"}
// LAST: train.cross_entropy %{{.*}}, %[[LABELS]] {axis = 2 : i64, ignore_index = 7 : i64}
// or the one that the labels' shape lacks,
// MIDDLE: %[[LABELS:[a-z0-9]*]]: tensor<2x4xi64> {zero.input = "labels"}
// MIDDLE: train.cross_entropy %{{.*}}, %[[LABELS]] {axis = 1 : i64}
// the last, where two fit.
// SQUARE: train.cross_entropy %{{.*}}, %{{.*}} {axis = 1 : i64}

// Label t is the token t + 1; the last position has none.
// SEPARATE: %[[LABELS:[a-z0-9]*]]: tensor<2x3xi64> {zero.input = "labels"}
// INPUT: func.func @step(%[[LABELS:[a-z0-9]*]]: tensor<2x3xi64> {zero.input = "input_ids"}, %{{.*}}: tensor<2x3xi64> {zero.input = "attention_mask"}, %{{.*}}: tensor<f32> {zero.hyper
// CAUSAL: %[[REST:.*]] = train.slice %[[LABELS]] starts [0, 1] limits [2, 3] strides [1, 1]
// CAUSAL: %[[NONE:.*]] = arith.constant dense<-100> : tensor<2x1xi64>
// CAUSAL: %[[SHIFTED:.*]] = train.concat %[[REST]], %[[NONE]] axis 1
// CAUSAL: train.cross_entropy %{{.*}}, %[[SHIFTED]] {axis = 2 : i64}

// MSE: %[[LABELS:[a-z0-9]*]]: tensor<2x3x4xf32> {zero.input = "labels"}
// MSE: %[[D:.*]] = train.sub %{{.*}}, %[[LABELS]]
// MSE: %[[S:.*]] = train.mul %[[D]], %[[D]]
// MSE: train.reduce_mean %[[S]] axes [0, 1, 2] : (tensor<2x3x4xf32>) -> tensor<f32>

// A loss of f16 values is computed in f32.
// HALF: %[[LABELS:[a-z0-9]*]]: tensor<4xf32> {zero.input = "labels"}
// HALF-SAME: -> (tensor<f32> {zero.across = "mean", zero.output = "loss"}
// HALF: %[[P:.*]] = train.cast %{{.*}} : tensor<4xf16> to tensor<4xf32>
// HALF: train.sub %[[P]], %[[LABELS]]
// HALF: train.cast %{{.*}} : tensor<4xf32> to tensor<4xf16>

// max(x, 0) - x y + log(1 + exp(-|x|))
// BCE: %[[LABELS:[a-z0-9]*]]: tensor<2x3x4xf32> {zero.input = "labels"}
// BCE: %[[X:.*]] = train.mul
// BCE: %[[MAX:.*]] = train.max %[[X]], %cst
// BCE: %[[XY:.*]] = train.mul %[[X]], %[[LABELS]]
// BCE: %[[LINEAR:.*]] = train.sub %[[MAX]], %[[XY]]
// BCE: %[[ABS:.*]] = train.abs %[[X]]
// BCE: %[[NEG:.*]] = train.neg %[[ABS]]
// BCE: %[[EXP:.*]] = train.exp %[[NEG]]
// BCE: %[[SUM:.*]] = train.add %[[EXP]], %cst_0
// BCE: %[[LOG:.*]] = train.log %[[SUM]]
// BCE: %[[ALL:.*]] = train.add %[[LINEAR]], %[[LOG]]
// BCE: train.reduce_mean %[[ALL]] axes [0, 1, 2]

// CHOSEN: %[[LABELS:[a-z0-9]*]]: tensor<5xf32> {zero.input = "labels"}
// CHOSEN: train.sub %{{.*}}, %[[LABELS]] : tensor<5xf32>

// A loss of one element becomes a scalar.
// OWN-NOT: labels
// OWN: %[[L:.*]] = train.reduce_sum %{{.*}} axes [0] {keepdims}
// OWN: %[[R:.*]] = train.reshape %[[L]] : tensor<1xf32> to tensor<f32>
// OWN: return %[[R]]

//--- class.mlir
zero.param @w : tensor<4xf32>
func.func @forward(%x: tensor<2x3x4xf32> {zero.input = "x"}) -> (tensor<2x3x4xf32> {zero.output = "y"}) {
  %w = zero.read @w : tensor<4xf32>
  %0 = train.mul %x, %w : (tensor<2x3x4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

//--- square.mlir
zero.param @w : tensor<3x3xf32>
func.func @forward() -> (tensor<3x3xf32> {zero.output = "y"}) {
  %w = zero.read @w : tensor<3x3xf32>
  return %w : tensor<3x3xf32>
}

//--- causal.mlir
zero.param @wte : tensor<9x5xf32>
func.func @forward(%ids: tensor<2x3xi64> {zero.input = "input_ids"},
                   %mask: tensor<2x3xi64> {zero.input = "attention_mask"})
    -> (tensor<2x3x5xf32> {zero.output = "logits"}) {
  %w = zero.read @wte : tensor<9x5xf32>
  %0 = train.gather %w, %ids axis 0 : (tensor<9x5xf32>, tensor<2x3xi64>) -> tensor<2x3x5xf32>
  return %0 : tensor<2x3x5xf32>
}

//--- half.mlir
zero.param @w : tensor<4xf16>
func.func @forward() -> (tensor<4xf16> {zero.output = "y"}) {
  %w = zero.read @w : tensor<4xf16>
  return %w : tensor<4xf16>
}

//--- several.mlir
zero.param @w : tensor<5xf32>
func.func @forward() -> (tensor<5xf32> {zero.output = "a"}, tensor<5xf32> {zero.output = "b"}, tensor<1xf32> {zero.output = "own"}) {
  %w = zero.read @w : tensor<5xf32>
  %0 = train.exp %w : tensor<5xf32>
  %1 = train.reduce_sum %0 axes [0] {keepdims} : (tensor<5xf32>) -> tensor<1xf32>
  return %w, %0, %1 : tensor<5xf32>, tensor<5xf32>, tensor<1xf32>
}
