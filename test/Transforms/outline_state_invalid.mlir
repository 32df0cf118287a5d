// Roles that cannot be.
// RUN: zero-opt %s --split-input-file --zero-outline-state --verify-diagnostics

// A role is a string.
// expected-error @below {{argument 0 has zero.role ''; expects param, frozen, buffer, state, input or hyper}}
func.func @step(%w: tensor<4xf32> {zero.role = 1 : i64}) {
  return
}

// -----

// expected-error @below {{argument 0 has zero.role 'weight'; expects param, frozen, buffer, state, input or hyper}}
func.func @step(%w: tensor<4xf32> {zero.role = "weight"}) {
  return
}

// -----

// expected-error @below {{argument 0 ('w') is state and needs a tensor type of static shape, got 'tensor<?xf32>'}}
func.func @step(%w: tensor<?xf32> {zero.role = "param", zero.name = "w"}) {
  return
}

// -----

// expected-error @below {{argument 1 is named 'w', which is already a symbol}}
func.func @step(%a: tensor<4xf32> {zero.role = "param", zero.name = "w"}, %b: tensor<4xf32> {zero.role = "param", zero.name = "w"}) {
  return
}

// -----

// expected-error @below {{argument 0 ('m') is a state of 'w', which is no earlier argument with role param}}
func.func @step(%m: tensor<4xf32> {zero.role = "state", zero.name = "m", zero.of = "w"}) {
  return
}

// -----

// expected-error @below {{result 0 has zero.role 'input'; expects param, state, buffer or output}}
func.func @step(%w: tensor<4xf32> {zero.role = "param"}) -> (tensor<4xf32> {zero.role = "input"}) {
  return %w : tensor<4xf32>
}

// -----

// expected-error @below {{result 0 is the new value of 'v', which is no argument with that role}}
func.func @step(%w: tensor<4xf32> {zero.role = "param", zero.name = "w"}) -> (tensor<4xf32> {zero.role = "param", zero.of = "v"}) {
  return %w : tensor<4xf32>
}

// -----

// expected-error @below {{has zero.role arguments and several blocks; a step function is one block}}
func.func @step(%w: tensor<4xf32> {zero.role = "param"}) {
  cf.br ^next
^next:
  return
}
