// RUN: zero-opt --train-to-linalg --split-input-file %s | FileCheck %s

// Elementwise: one generic, broadcasting in the map.
// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[COLUMN:.*]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-LABEL: func.func @add
// CHECK: %[[E:.*]] = tensor.empty() : tensor<3x5xf32>
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[COLUMN]], #[[ID]]], iterator_types = ["parallel", "parallel"]}
// CHECK-SAME: outs(%[[E]] : tensor<3x5xf32>)
// CHECK: arith.addf
// CHECK-NOT: fastmath
func.func @add(%a: tensor<3x5xf32>, %b: tensor<3x1xf32>) -> tensor<3x5xf32>
    attributes {plan.kernel} {
  %0 = train.add %a, %b : (tensor<3x5xf32>, tensor<3x1xf32>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}

// -----

// A loop over rows; sums may be reordered, everything else is strict.
// CHECK-LABEL: func.func @softmax
// CHECK: scf.for {{.*}} iter_args(%[[OUT:.*]] = %{{.*}}) -> (tensor<3x5xf32>)
// CHECK: %[[ROW:.*]] = tensor.extract_slice %{{.*}} [1, 5] [1, 1] : tensor<3x5xf32> to tensor<5xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[ROW]]
// CHECK: arith.maximumf
// CHECK: math.exp
// CHECK: arith.addf {{.*}} fastmath<reassoc>
// CHECK: arith.divf
// CHECK: tensor.insert_slice %{{.*}} into %[[OUT]]
func.func @softmax(%x: tensor<3x5xf32>) -> tensor<3x5xf32>
    attributes {plan.kernel} {
  %0 = train.softmax %x axis 1 : tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}

// -----

// Parameter and state are outs; the corrections are computed once, in f64.
// CHECK-LABEL: func.func @adamw
// CHECK-SAME: %[[P:.*]]: tensor<4xf32>, %[[G:.*]]: tensor<4xf32>, %[[M:.*]]: tensor<4xf32>, %[[V:[^:]*]]: tensor<4xf32>
// CHECK-COUNT-2: math.powf {{.*}} : f64
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[G]] : tensor<4xf32>) outs(%[[P]], %[[M]], %[[V]] :
// CHECK-NOT: math.powf
// CHECK: math.sqrt
func.func @adamw(%p: tensor<4xf32>, %g: tensor<4xf32>, %m: tensor<4xf32>,
                 %v: tensor<4xf32>, %lr: tensor<f32>, %s: tensor<i64>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    attributes {plan.kernel} {
  %0:3 = train.adamw %p, %g, %m, %v, %lr, %s
      {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64,
       weight_decay = 0.01 : f64}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>,
         tensor<f32>, tensor<i64>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1, %0#2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Only kernels are lowered.
// CHECK-LABEL: func.func @step
// CHECK: train.exp
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = train.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
