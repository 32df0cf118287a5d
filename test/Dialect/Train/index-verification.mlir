// What the operations that write by index, order elements or carry a value
// along an axis do not take.
// RUN: zero-opt %s -split-input-file -verify-diagnostics

func.func @axis(%d: tensor<4x3xf32>, %i: tensor<2xi64>, %u: tensor<2x3xf32>) {
  // expected-error @+2 {{'train.scatter' op axis 2 is out of range for rank 2}}
  // expected-error @+1 {{'train.scatter' op failed to infer returned types}}
  %0 = train.scatter %d, %i, %u axis 2 reduction "none" : (tensor<4x3xf32>, tensor<2xi64>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @updates(%d: tensor<4x3xf32>, %i: tensor<2xi64>, %u: tensor<3x3xf32>) {
  // expected-error @+2 {{'train.scatter' op updates has shape [3, 3], expected [2, 3]}}
  // expected-error @+1 {{'train.scatter' op failed to infer returned types}}
  %0 = train.scatter %d, %i, %u axis 0 reduction "none" : (tensor<4x3xf32>, tensor<2xi64>, tensor<3x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @types(%d: tensor<4x3xf32>, %i: tensor<2xi64>, %u: tensor<2x3xf64>) {
  // expected-error @+1 {{updates have element type 'f64', expected 'f32' as the data}}
  %0 = train.scatter %d, %i, %u axis 0 reduction "none" : (tensor<4x3xf32>, tensor<2xi64>, tensor<2x3xf64>) -> tensor<4x3xf32>
  return
}

// -----

func.func @reduction(%d: tensor<4x3xf32>, %i: tensor<2xi64>, %u: tensor<2x3xf32>) {
  // expected-error @+1 {{reduction is "mean", expected "none", "add", "mul", "max" or "min"}}
  %0 = train.scatter %d, %i, %u axis 0 reduction "mean" : (tensor<4x3xf32>, tensor<2xi64>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @booleans(%d: tensor<4x3xi1>, %i: tensor<2xi64>, %u: tensor<2x3xi1>) {
  // expected-error @+1 {{reduction "add" is not defined for booleans}}
  %0 = train.scatter %d, %i, %u axis 0 reduction "add" : (tensor<4x3xi1>, tensor<2xi64>, tensor<2x3xi1>) -> tensor<4x3xi1>
  return
}

// -----

func.func @many(%x: tensor<4x5xf32>) {
  // expected-error @+2 {{'train.top_k' op k is 6, but axis 1 has 5 elements}}
  // expected-error @+1 {{'train.top_k' op failed to infer returned types}}
  %0, %1 = train.top_k %x, 6 axis 1 : (tensor<4x5xf32>) -> (tensor<4x6xf32>, tensor<4x6xi64>)
  return
}

// -----

func.func @sum(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{'train.cumulative_sum' op axis -1 is out of range for rank 2}}
  %0 = train.cumulative_sum %x axis -1 : tensor<4x5xf32>
  return
}

// -----

func.func @recurrence(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{'train.linear_recurrence' op axis 2 is out of range for rank 2}}
  %0 = train.linear_recurrence %x, %x axis 2 : tensor<4x5xf32>
  return
}
