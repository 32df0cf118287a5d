// What computes in bf16 or f16, and what does not.
// RUN: zero-opt %s -split-input-file -train-precision | FileCheck %s
// RUN: zero-opt %s -split-input-file -train-precision='type=f16' | FileCheck %s --check-prefix=F16
// RUN: zero-opt %s -split-input-file -train-precision='type=f32' | FileCheck %s --check-prefix=F32

// Parameters, frozen ones too, and constants are retyped; inputs and outputs keep their types and are cast.
// CHECK: zero.param @w : tensor<10x64xbf16> init("w.safetensors")
// CHECK: zero.param @b : tensor<10xbf16> frozen
// CHECK: zero.param @tokens : tensor<8xi64> frozen
// CHECK: zero.param @double : tensor<10xf64>
// CHECK: func.func @forward(%[[X:.*]]: tensor<8x64xf32> {zero.input = "x"}, %[[I:.*]]: tensor<8xi64> {zero.input = "i"}) -> (tensor<8x10xf32> {zero.output = "y"}, tensor<8xi64> {zero.output = "i"}, tensor<10xf64> {zero.output = "d"})
// CHECK: %[[X16:.*]] = train.cast %[[X]] : tensor<8x64xf32> to tensor<8x64xbf16>
// CHECK: %[[W:.*]] = zero.read @w : tensor<10x64xbf16>
// CHECK: %[[T:.*]] = zero.read @tokens : tensor<8xi64>
// CHECK: %[[D:.*]] = zero.read @double : tensor<10xf64>
// CHECK: %[[Y:.*]] = train.gemm %[[X16]], %[[W]], %{{.*}} -> tensor<8x10xbf16>
// A mask is the least number, not infinity, and only one constant of a type is left.
// CHECK: %[[C:.*]] = arith.constant dense<-3.389530e+38> : tensor<bf16>
// CHECK: train.add %[[Y]], %[[C]] : (tensor<8x10xbf16>, tensor<bf16>) -> tensor<8x10xbf16>
// CHECK: train.add %[[I]], %[[T]] : tensor<8xi64>
// An integer becomes bf16 at once.
// CHECK: %[[F:.*]] = train.cast %[[I]] : tensor<8xi64> to tensor<8xbf16>
// CHECK: %[[R:.*]] = train.cast %{{.*}} : tensor<8x10xbf16> to tensor<8x10xf32>
// CHECK: return %[[R]], %{{.*}}, %[[D]] : tensor<8x10xf32>, tensor<8xi64>, tensor<10xf64>

// F16: zero.param @w : tensor<10x64xf16>
// F16: arith.constant dense<-6.550400e+04> : tensor<f16>
// F32: zero.param @w : tensor<10x64xf32>
// F32-NOT: train.cast %{{.*}} : tensor<8x64xf32>
zero.param @w : tensor<10x64xf32> init("w.safetensors")
zero.param @b : tensor<10xf32> frozen
zero.param @tokens : tensor<8xi64> frozen
zero.param @double : tensor<10xf64>
func.func @forward(%x: tensor<8x64xf32> {zero.input = "x"}, %i: tensor<8xi64> {zero.input = "i"})
    -> (tensor<8x10xf32> {zero.output = "y"}, tensor<8xi64> {zero.output = "i"}, tensor<10xf64> {zero.output = "d"}) {
  %w = zero.read @w : tensor<10x64xf32>
  %b = zero.read @b : tensor<10xf32>
  %t = zero.read @tokens : tensor<8xi64>
  %d = zero.read @double : tensor<10xf64>
  %y = train.gemm %x, %w, %b {transpose_b} : (tensor<8x64xf32>, tensor<10x64xf32>, tensor<10xf32>) -> tensor<8x10xf32>
  %c = arith.constant dense<-3.40282347E+38> : tensor<f32>
  %m = train.add %y, %c : (tensor<8x10xf32>, tensor<f32>) -> tensor<8x10xf32>
  %j = train.add %i, %t : tensor<8xi64>
  %f = train.cast %i : tensor<8xi64> to tensor<8xf32>
  %g = train.reshape %f : tensor<8xf32> to tensor<8x1xf32>
  %z = train.mul %m, %g : (tensor<8x10xf32>, tensor<8x1xf32>) -> tensor<8x10xf32>
  return %z, %j, %d : tensor<8x10xf32>, tensor<8xi64>, tensor<10xf64>
}

// -----

// Buffers stay f32, and so does their own update; batch_norm takes them beside a bf16 input. Elsewhere they are cast.
// CHECK: zero.param @mean : tensor<4xf32> zeros buffer
// CHECK: zero.param @count : tensor<4xf32> zeros buffer
// CHECK: %[[MEAN:.*]] = zero.read @mean : tensor<4xf32>
// CHECK: %[[COUNT:.*]] = zero.read @count : tensor<4xf32>
// CHECK: %[[COUNT16:.*]] = train.cast %[[COUNT]] : tensor<4xf32> to tensor<4xbf16>
// CHECK: %{{.*}}, %[[NEW:.*]], %{{.*}}, %{{.*}}, %{{.*}} = train.batch_norm {{.*}} : (tensor<2x4x3xbf16>, tensor<4xbf16>, tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4x3xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
// CHECK: zero.assign @mean, %[[NEW]] : tensor<4xf32>
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[MORE:.*]] = train.add %[[COUNT]], %[[ONE]] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: zero.assign @count, %[[MORE]] : tensor<4xf32>
// CHECK: train.add %{{.*}}, %[[COUNT16]] : tensor<4xbf16>
zero.param @s : tensor<4xf32>
zero.param @mean : tensor<4xf32> zeros buffer
zero.param @count : tensor<4xf32> zeros buffer
func.func @forward(%x: tensor<2x4x3xf32> {zero.input = "x"}) -> (tensor<2x4x3xf32> {zero.output = "y"}, tensor<4xf32> {zero.output = "z"}) {
  %s = zero.read @s : tensor<4xf32>
  %m = zero.read @mean : tensor<4xf32>
  %n = zero.read @count : tensor<4xf32>
  %y:5 = train.batch_norm %x, %s, %s, %m, %m {epsilon = 1.0e-5 : f64, momentum = 0.9 : f64} : (tensor<2x4x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  zero.assign @mean, %y#1 : tensor<4xf32>
  %one = arith.constant dense<1.0> : tensor<f32>
  %more = train.add %n, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  zero.assign @count, %more : tensor<4xf32>
  %z = train.add %s, %n : tensor<4xf32>
  return %y#0, %z : tensor<2x4x3xf32>, tensor<4xf32>
}

// -----

// Statistics and losses stay f32, with what is computed from them; a product goes back.
// CHECK: %[[Y:.*]], %[[MEAN:.*]], %[[RSTD:.*]] = train.layer_norm {{.*}} -> (tensor<8x4xbf16>, tensor<8x1xf32>, tensor<8x1xf32>)
// CHECK: %[[WIDE:.*]] = train.cast %[[Y]] : tensor<8x4xbf16> to tensor<8x4xf32>
// CHECK: %[[Z:.*]] = train.sub %[[WIDE]], %[[MEAN]] : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
// CHECK: %[[Z16:.*]] = train.cast %[[Z]] : tensor<8x4xf32> to tensor<8x4xbf16>
// CHECK: %[[P:.*]] = train.matmul %[[Z16]], %{{.*}} -> tensor<8x4xbf16>
// CHECK: %[[LOSS:.*]], %{{.*}} = train.cross_entropy %[[P]], %{{.*}} -> (tensor<f32>, tensor<8xf32>)
// CHECK: return %[[LOSS]] : tensor<f32>
zero.param @s : tensor<4xf32>
zero.param @w : tensor<4x4xf32>
func.func @forward(%x: tensor<8x4xf32> {zero.input = "x"}, %l: tensor<8xi64> {zero.input = "l"}) -> (tensor<f32> {zero.output = "loss"}) {
  %s = zero.read @s : tensor<4xf32>
  %w = zero.read @w : tensor<4x4xf32>
  %y:3 = train.layer_norm %x, %s, %s {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
  %z = train.sub %y#0, %y#1 : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
  %p = train.matmul %z, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %loss:2 = train.cross_entropy %p, %l {axis = 1 : i64} : (tensor<8x4xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>)
  return %loss#0 : tensor<f32>
}

// -----

// The model's own casts between float types say nothing any more.
// CHECK: zero.param @w : tensor<4xbf16>
// CHECK: %[[W:.*]] = zero.read @w
// CHECK-NEXT: %[[E:.*]] = train.exp %[[W]] : tensor<4xbf16>
// CHECK-NEXT: %[[R:.*]] = train.cast %[[E]] : tensor<4xbf16> to tensor<4xf32>
// CHECK-NEXT: return %[[R]]
zero.param @w : tensor<4xf16>
func.func @forward() -> (tensor<4xf32> {zero.output = "y"}) {
  %w = zero.read @w : tensor<4xf16>
  %0 = train.cast %w : tensor<4xf16> to tensor<4xf32>
  %1 = train.exp %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
