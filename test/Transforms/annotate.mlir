// zero-annotate declares the grid and names units, and changes nothing that is set.
// RUN: zero-opt %s --zero-annotate=ranks=4 | FileCheck %s
// RUN: zero-opt %s --zero-annotate=grid=2,3 | FileCheck %s --check-prefix=GRID
// RUN: zero-opt %s --zero-annotate 2>&1 | FileCheck %s --check-prefix=DEFAULT

// CHECK: shard.grid @dp(shape = 4)
// GRID: shard.grid @hsdp(shape = 2x3)
// DEFAULT: remark: no grid and no number of ranks given, using 8 ranks
// DEFAULT: shard.grid @dp(shape = 8)

// The first number between dots ends the unit, wherever the rest branches.
// CHECK: zero.param @h.0.attn.weight : tensor<4x4xf32> unit("h.0")
zero.param @h.0.attn.weight : tensor<4x4xf32>
// CHECK: zero.param @encoder.layers.11.fc.bias : tensor<4xf32> unit("encoder.layers.11")
zero.param @encoder.layers.11.fc.bias : tensor<4xf32>
// CHECK: zero.param @fc1.bias : tensor<4xf32> unit("fc1")
zero.param @fc1.bias : tensor<4xf32>
// CHECK: zero.param @"0.weight" : tensor<4xf32> unit("0")
zero.param @"0.weight" : tensor<4xf32>
// CHECK: zero.param @scale : tensor<f32> unit("scale")
zero.param @scale : tensor<f32>
// A name that is a number only at its end says nothing about a layer.
// CHECK: zero.param @bias.1 : tensor<4xf32> unit("bias")
zero.param @bias.1 : tensor<4xf32>
// CHECK: zero.param @given.weight : tensor<4xf32> unit("mine")
zero.param @given.weight : tensor<4xf32> unit("mine")
