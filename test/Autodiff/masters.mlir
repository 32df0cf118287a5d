// Narrow parameters are updated through f32 masters; gradients are reduced in the type that was asked for.
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=adamw' | FileCheck %s
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=adamw reduce-type=bf16' | FileCheck %s --check-prefix=BF16
// RUN: zero-opt %s -train-step='loss=output:loss optimizer=none' | FileCheck %s --check-prefix=NONE

// A master starts as its parameter does, from a file's own (wider) numbers.
// CHECK: zero.state @w.master of @w : tensor<4xf32> init("w.safetensors", "w")
// CHECK-NEXT: zero.state @w.exp_avg of @w : tensor<4xf32> zeros
// CHECK-NEXT: zero.state @w.exp_avg_sq of @w : tensor<4xf32> zeros
// CHECK: zero.state @renamed.master of @renamed : tensor<4xf32> init("w.safetensors", "old")
// CHECK: zero.state @norm.master of @norm : tensor<4xf32> value(dense<1.000000e+00> : tensor<4xf32>)
// CHECK: zero.state @zeros.master of @zeros : tensor<4xf32> zeros
// CHECK: zero.state @host.master of @host : tensor<4xf32>{{$}}
// What is not narrow has none.
// CHECK-NOT: master
// CHECK: zero.state @wide.exp_avg of @wide : tensor<4xf32> zeros
// CHECK: zero.state @double.exp_avg of @double : tensor<4xf64> zeros
// CHECK: func.func @step
// CHECK: train.cast %{{.*}} : tensor<4xf32> to tensor<4xf64>
// CHECK: %[[G:.*]] = train.cast %{{.*}} : tensor<4xbf16> to tensor<4xf32>
// CHECK-COUNT-4: train.cast %{{.*}} : tensor<4xbf16> to tensor<4xf32>
// CHECK-NEXT: train.sum_squares %[[G]],
// CHECK: %[[M:.*]] = zero.read @w.master : tensor<4xf32>
// CHECK: %[[N:.*]], %{{.*}}, %{{.*}} = train.adamw %[[M]], %[[G]],
// CHECK-NEXT: zero.assign @w.master, %[[N]] : tensor<4xf32>
// CHECK-NEXT: %[[R:.*]] = train.cast %[[N]] : tensor<4xf32> to tensor<4xbf16>
// CHECK-NEXT: zero.assign @w, %[[R]] : tensor<4xbf16>
// CHECK: train.adamw %wide, {{.*}} -> (tensor<4xf32>,
// CHECK: train.adamw %double, {{.*}} -> (tensor<4xf64>,

// The narrow gradient itself; wider ones are rounded.
// BF16: train.cast %{{.*}} : tensor<4xf32> to tensor<4xf64>
// BF16: train.cast %{{.*}} : tensor<4xf32> to tensor<4xbf16>
// BF16: %[[G:.*]] = train.cast %{{.*}} : tensor<4xf32> to tensor<4xbf16>
// BF16-NEXT: train.sum_squares %[[DW:[0-9]*]], {{.*}}%[[G]], %{{.*}} : (tensor<4xbf16>, tensor<4xbf16>, tensor<4xbf16>, tensor<4xbf16>, tensor<4xbf16>, tensor<4xbf16>, tensor<4xf64>) -> tensor<f64>
// BF16: train.adamw %{{.*}}, %[[DW]], {{.*}} : (tensor<4xf32>, tensor<4xbf16>,

// NONE-NOT: master
zero.param @w : tensor<4xbf16> init("w.safetensors")
zero.param @renamed : tensor<4xbf16> init("w.safetensors", "old")
zero.param @norm : tensor<4xbf16> ones
zero.param @zeros : tensor<4xbf16> zeros
zero.param @host : tensor<4xbf16>
zero.param @wide : tensor<4xf32> zeros
zero.param @double : tensor<4xf64> zeros
zero.param @still : tensor<4xbf16> frozen
func.func @forward() -> (tensor<f32> {zero.output = "loss"}) {
  %0 = zero.read @w : tensor<4xbf16>
  %1 = zero.read @renamed : tensor<4xbf16>
  %2 = zero.read @norm : tensor<4xbf16>
  %3 = zero.read @zeros : tensor<4xbf16>
  %4 = zero.read @host : tensor<4xbf16>
  %5 = zero.read @wide : tensor<4xf32>
  %6 = zero.read @double : tensor<4xf64>
  %s = zero.read @still : tensor<4xbf16>
  %a = train.mul %0, %1 : tensor<4xbf16>
  %b = train.mul %a, %2 : tensor<4xbf16>
  %c = train.mul %b, %3 : tensor<4xbf16>
  %d = train.mul %c, %4 : tensor<4xbf16>
  %e = train.mul %d, %s : tensor<4xbf16>
  %f = train.cast %e : tensor<4xbf16> to tensor<4xf32>
  %g = train.mul %f, %5 : tensor<4xf32>
  %h = train.cast %6 : tensor<4xf64> to tensor<4xf32>
  %i = train.mul %g, %h : tensor<4xf32>
  %j = train.reduce_sum %i axes [0] : (tensor<4xf32>) -> tensor<f32>
  return %j : tensor<f32>
}
