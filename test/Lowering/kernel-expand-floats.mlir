// RUN: zero-opt --kernel-expand-floats %s | FileCheck %s
// RUN: zero-opt --kernel-expand-floats=expand-half %s | FileCheck %s --check-prefixes=CHECK,HALF

// Arithmetic is in f32 between conversions; conversions of bf16 are integers.
// CHECK-LABEL: func.func @sum
// CHECK-SAME: (%[[X:.*]]: bf16, %[[Y:.*]]: bf16)
// CHECK-DAG: %[[XB:.*]] = arith.bitcast %[[X]] : bf16 to i16
// CHECK-DAG: arith.extui %[[XB]] : i16 to i32
// CHECK: arith.shli
// CHECK: arith.addf %{{.*}} : f32
// CHECK-NOT: arith.truncf
// CHECK: arith.select {{.*}} : i32
// CHECK: arith.bitcast %{{.*}} : i16 to bf16
func.func @sum(%x: bf16, %y: bf16) -> bf16 attributes {plan.kernel} {
  %0 = arith.addf %x, %y : bf16
  return %0 : bf16
}

// Functions of math and comparisons too; constants and choices stay.
// CHECK-LABEL: func.func @others
// CHECK: arith.constant 1.000000e+00 : bf16
// CHECK: arith.cmpf ogt, %{{.*}} : f32
// CHECK: arith.select %{{.*}} : bf16
// CHECK: math.exp %{{.*}} : f32
func.func @others(%x: bf16) -> bf16 attributes {plan.kernel} {
  %one = arith.constant 1.0 : bf16
  %0 = arith.cmpf ogt, %x, %one : bf16
  %1 = arith.select %0, %x, %one : bf16
  %2 = math.exp %1 : bf16
  return %2 : bf16
}

// f16 is left to the processor, unless it has no instruction.
// CHECK-LABEL: func.func @half
// HALF-NOT: arith.extf
// HALF-NOT: arith.truncf
// HALF: arith.mulf %{{.*}} : f32
// HALF: arith.addf %{{.*}} : f32
// HALF: return
func.func @half(%x: f16) -> f16 attributes {plan.kernel} {
  %0 = arith.negf %x : f16
  return %0 : f16
}

// From f64 and from integers by way of f32.
// CHECK-LABEL: func.func @conversions
// CHECK: arith.truncf %{{.*}} : f64 to f32
// CHECK: arith.sitofp %{{.*}} : i64 to f32
// CHECK: arith.extf %{{.*}} : f32 to f64
func.func @conversions(%x: f64, %i: i64, %b: bf16) -> (bf16, bf16, f64)
    attributes {plan.kernel} {
  %0 = arith.truncf %x : f64 to bf16
  %1 = arith.sitofp %i : i64 to bf16
  %2 = arith.extf %b : bf16 to f64
  return %0, %1, %2 : bf16, bf16, f64
}

// Other functions are none of its business.
// CHECK-LABEL: func.func @no_kernel
// CHECK: arith.addf %{{.*}} : bf16
func.func @no_kernel(%x: bf16) -> bf16 {
  %0 = arith.addf %x, %x : bf16
  return %0 : bf16
}
