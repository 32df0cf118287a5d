// Every rule of loops, each broken once.
// RUN: zero-opt %s -split-input-file -verify-diagnostics

zero.param @w : tensor<f32>
func.func @f(%a: tensor<f32>) {
  %0 = train.scan init(%a) steps 2 : (tensor<f32>) -> tensor<f32> {
  ^bb0(%v: tensor<f32>):
    // expected-error @+1 {{'zero.read' op has effects, which the body of a train.scan cannot have}}
    %w = zero.read @w : tensor<f32>
    train.yield %w : tensor<f32>
  }
  return
}

// -----

func.func @f(%a: tensor<f32>) {
  // expected-error @+1 {{'train.scan' op has 0 steps, expected at least 1}}
  %0 = train.scan init(%a) steps 0 : (tensor<f32>) -> tensor<f32> {
  ^bb0(%v: tensor<f32>):
    train.yield %v : tensor<f32>
  }
  return
}

// -----

// The leading axis.
func.func @f(%a: tensor<3x2xf32>) {
  // expected-error @+1 {{'train.scan' op has 2 steps, but is over a 'tensor<3x2xf32>'}}
  %0 = train.scan over(%a) steps 2 : (tensor<3x2xf32>) -> tensor<2x2xf32> {
  ^bb0(%v: tensor<2xf32>):
    train.yield %v : tensor<2xf32>
  }
  return
}

// -----

func.func @f(%a: tensor<f32>) {
  // expected-error @+1 {{'train.scan' op has 2 steps, but is over a 'tensor<f32>'}}
  %0 = train.scan over(%a) steps 2 : (tensor<f32>) -> tensor<2xf32> {
  ^bb0(%v: tensor<f32>):
    train.yield %v : tensor<f32>
  }
  return
}

// -----

// Arguments of the body.
func.func @f(%a: tensor<f32>) {
  // expected-error @+1 {{'train.scan' op has a body with 2 arguments, expected 1}}
  %0 = train.scan init(%a) steps 2 : (tensor<f32>) -> tensor<f32> {
  ^bb0(%v: tensor<f32>, %w: tensor<f32>):
    train.yield %v : tensor<f32>
  }
  return
}

// -----

func.func @f(%a: tensor<3x2xf32>) {
  // expected-error @+1 {{'train.scan' op has a body whose argument 0 is a 'tensor<3xf32>', expected 'tensor<2xf32>'}}
  %0 = train.scan over(%a) steps 3 : (tensor<3x2xf32>) -> tensor<3x3xf32> {
  ^bb0(%v: tensor<3xf32>):
    train.yield %v : tensor<3xf32>
  }
  return
}

// -----

// What is yielded.
func.func @f(%a: tensor<f32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{'train.scan' op carries a 'tensor<f32>' as its value 0, but yields a 'tensor<2xf32>'}}
  %0 = train.scan init(%a) with(%b) steps 2 : (tensor<f32>, tensor<2xf32>) -> tensor<f32> {
  ^bb0(%v: tensor<f32>, %w: tensor<2xf32>):
    train.yield %w : tensor<2xf32>
  }
  return
}

// -----

func.func @f(%a: tensor<f32>) {
  // expected-error @+2 {{'train.scan' op has a body that does not yield all of its 1 carried values}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.scan init(%a) steps 2 : (tensor<f32>) -> tensor<f32> {
  ^bb0(%v: tensor<f32>):
    train.yield
  }
  return
}

// -----

// Result types.
func.func @f(%a: tensor<2xf32>) {
  // expected-error @+2 {{'train.scan' op inferred type(s) 'tensor<2xf32>' are incompatible with return type(s) of operation 'tensor<3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = train.scan over(%a) steps 2 : (tensor<2xf32>) -> tensor<3xf32> {
  ^bb0(%v: tensor<f32>):
    train.yield %v : tensor<f32>
  }
  return
}
