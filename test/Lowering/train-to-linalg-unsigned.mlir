// Unsigned tensors of a kernel become signless ones; where the sign matters the
// operation is an unsigned one.
// RUN: zero-opt %s -split-input-file -train-to-linalg | FileCheck %s

// CHECK-LABEL: func private @arithmetic
// CHECK-SAME: (%{{.*}}: tensor<8xi8>, %{{.*}}: tensor<8xi8>) -> (tensor<8xi8>, tensor<8xi8>, tensor<8xi1>)
// CHECK: arith.maxui
// CHECK: arith.shrui
// CHECK: arith.cmpi ult
func.func private @arithmetic(%a: tensor<8xui8>, %b: tensor<8xui8>) -> (tensor<8xui8>, tensor<8xui8>, tensor<8xi1>) attributes {plan.kernel} {
  %0 = train.max %a, %b : tensor<8xui8>
  %1 = train.shift_right %a, %b : tensor<8xui8>
  %2 = train.less %a, %b : (tensor<8xui8>, tensor<8xui8>) -> tensor<8xi1>
  return %0, %1, %2 : tensor<8xui8>, tensor<8xui8>, tensor<8xi1>
}

// -----

// By 0 the quotient is 0: the processor is never asked.
// CHECK-LABEL: func private @division
// CHECK: %[[UNSAFE:.*]] = arith.cmpi eq, %[[B:.*]], %{{.*}} : i32
// CHECK: %[[DIVISOR:.*]] = arith.select %[[UNSAFE]], %{{.*}}, %[[B]] : i32
// CHECK: arith.divui %{{.*}}, %[[DIVISOR]]
func.func private @division(%a: tensor<8xui32>, %b: tensor<8xui32>) -> tensor<8xui32> attributes {plan.kernel} {
  %0 = train.div %a, %b : tensor<8xui32>
  return %0 : tensor<8xui32>
}

// -----

// CHECK-LABEL: func private @constants
// CHECK: arith.constant dense<-1> : tensor<8xi8>
func.func private @constants(%a: tensor<8xui8>) -> tensor<8xui8> attributes {plan.kernel} {
  %c = arith.constant dense<255> : tensor<8xui8>
  %0 = train.add %a, %c : tensor<8xui8>
  return %0 : tensor<8xui8>
}

// -----

// CHECK-LABEL: func private @casts
// CHECK: arith.uitofp %{{.*}} : i8 to f32
// CHECK: arith.extui %{{.*}} : i8 to i64
// What lies outside becomes the nearest bound, not a number 0.
// CHECK: %[[INSIDE:.*]] = arith.fptoui %[[X:.*]] : f32 to i8
// CHECK: %[[ABOVE:.*]] = arith.cmpf oge, %[[X]]
// CHECK: %[[BELOW:.*]] = arith.cmpf olt, %[[X]]
// CHECK: %[[NAN:.*]] = arith.cmpf uno, %[[X]], %[[X]]
// CHECK: %[[FIRST:.*]] = arith.select %[[ABOVE]], %{{.*}}, %[[INSIDE]]
// CHECK: %[[SECOND:.*]] = arith.select %[[BELOW]], %{{.*}}, %[[FIRST]]
// CHECK: arith.select %[[NAN]], %{{.*}}, %[[SECOND]]
func.func private @casts(%a: tensor<8xui8>, %x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xi64>, tensor<8xui8>) attributes {plan.kernel} {
  %0 = train.cast %a : tensor<8xui8> to tensor<8xf32>
  %1 = train.cast %a : tensor<8xui8> to tensor<8xi64>
  %2 = train.cast %x : tensor<8xf32> to tensor<8xui8>
  return %0, %1, %2 : tensor<8xf32>, tensor<8xi64>, tensor<8xui8>
}

// -----

// A float of 8 bits is integer arithmetic on its bits.
// CHECK-LABEL: func private @tiny
// CHECK: arith.bitcast %{{.*}} : f8E4M3FN to i8
// CHECK: arith.mulf
// CHECK: arith.bitcast %{{.*}} : i8 to f8E5M2
func.func private @tiny(%a: tensor<8xf8E4M3FN>, %x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf8E5M2>) attributes {plan.kernel} {
  %0 = train.cast %a : tensor<8xf8E4M3FN> to tensor<8xf32>
  %1 = train.cast %x : tensor<8xf32> to tensor<8xf8E5M2>
  return %0, %1 : tensor<8xf32>, tensor<8xf8E5M2>
}
