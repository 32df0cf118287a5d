// The options of train-autodiff: which function, which output, which inputs.
// RUN: zero-opt %s -train-autodiff='function=eval loss=b inputs' | FileCheck %s
// RUN: not zero-opt %s -train-autodiff='function=eval loss=c' 2>&1 | FileCheck %s --check-prefix=NONE

// NONE: error: @eval has no rank-0 float output called c

// Only a float argument with a name has a gradient of its own.
// CHECK-LABEL: func @eval
// CHECK-SAME: -> (tensor<f32> {zero.output = "a"}, tensor<f32> {zero.output = "b"}, tensor<f32> {zero.output = "grad.y"})
// CHECK: %[[D:.*]] = train.cos %arg1
// CHECK: %[[DY:.*]] = train.mul %{{.*}}, %[[D]]
// CHECK: return %arg0, %{{.*}}, %[[DY]]
func.func @eval(%x: tensor<f32> {zero.input = "x"}, %y: tensor<f32> {zero.input = "y"},
                %lr: tensor<f32> {zero.hyper = "lr"}, %i: tensor<i64> {zero.input = "i"})
    -> (tensor<f32> {zero.output = "a"}, tensor<f32> {zero.output = "b"}) {
  %0 = train.sin %y : tensor<f32>
  %1 = train.mul %0, %lr : tensor<f32>
  return %x, %1 : tensor<f32>, tensor<f32>
}
