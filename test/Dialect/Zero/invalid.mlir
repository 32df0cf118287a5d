// One case per message of the verifiers and parsers of the dialect.
// RUN: zero-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expects an integer or float element type, not 'complex<f32>'}}
func.func private @f(!zero.sharded<4xcomplex<f32>, @dp, dim = 0>)

// -----

// expected-error @below {{dim = 2 is not a dimension of a tensor of rank 2}}
func.func private @f(!zero.sharded<4x4xf32, @dp, dim = 2>)

// -----

// expected-error @below {{axes lists 1, which is negative or a repetition}}
func.func private @f(!zero.sharded<4x4xf32, @dp, axes = [1, 1], dim = 0>)

// -----

// expected-error @below {{expects mem to be device, host or disk, not 'tape'}}
func.func private @f(!zero.sharded<4x4xf32, @dp, dim = 0, mem = tape>)

// -----

// expected-error @below {{expects axes, dim or mem, not 'row'}}
func.func private @f(!zero.sharded<4x4xf32, @dp, row = 0>)

// -----

// expected-error @below {{expects ranked tensors or !zero.sharded, not 'f32'}}
func.func private @f(!zero.future<f32>)

// -----

// expected-error @below {{expects a tensor of static shape or a !zero.sharded, got 'tensor<?xf32>'}}
zero.param @w : tensor<?xf32>

// -----

// expected-error @below {{expects a tensor of static shape or a !zero.sharded, got 'f32'}}
zero.param @w : f32

// -----

// expected-error @below {{expects at most one of init, zeros and ones}}
zero.param @w : tensor<4xf32> zeros ones

// -----

// expected-error @below {{names a tensor to start from but no file}}
"zero.param"() <{sym_name = "w", type = tensor<4xf32>, init_tensor = "a"}> : () -> ()

// -----

// expected-error @below {{cannot be both frozen and a buffer}}
zero.param @w : tensor<4xf32> frozen buffer

// -----

// expected-error @below {{is a buffer, which every rank holds whole; expects a tensor type, got '!zero.sharded<4xf32, @dp, dim = 0>'}}
zero.param @w : !zero.sharded<4xf32, @dp, dim = 0> buffer

// -----

// expected-error @below {{refers to @w, which is not a zero.param of this module}}
zero.state @m of @w : tensor<4xf32> zeros

// -----

zero.param @w : tensor<4xf32> frozen
// expected-error @below {{is the state of @w, which is not trained}}
zero.state @m of @w : tensor<4xf32> zeros

// -----

zero.param @w : tensor<4xf32>
// expected-error @below {{expects the shape of its parameter 'tensor<4xf32>', got 'tensor<5xf32>'}}
zero.state @m of @w : tensor<5xf32> zeros

// -----

zero.param @w : !zero.sharded<4x4xf32, @dp, dim = 0>
// expected-error @below {{expects to be cut as its parameter '!zero.sharded<4x4xf32, @dp, dim = 0>', got '!zero.sharded<4x4xf32, @dp, dim = 1>'}}
zero.state @m of @w : !zero.sharded<4x4xf32, @dp, dim = 1> zeros

// -----

// expected-error @below {{expects a tensor of static shape or a !zero.sharded, got 'tensor<?xf32>'}}
zero.state @m of @w : tensor<?xf32> zeros

// -----

func.func @f() {
  // expected-error @below {{refers to @w, which is not a zero.param or zero.state}}
  %w = zero.read @w : tensor<4xf32>
  return
}

// -----

zero.param @w : tensor<4xf32>
func.func @f() {
  // expected-error @below {{expects the type of @w, 'tensor<4xf32>', got 'tensor<5xf32>'}}
  %w = zero.read @w : tensor<5xf32>
  return
}

// -----

zero.param @w : tensor<4xf32> frozen
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{assigns @w, which is frozen}}
  zero.assign @w, %x : tensor<4xf32>
  return
}

// -----

zero.param @w : tensor<4xf32>
func.func @f(%x: tensor<5xf32>) {
  // expected-error @below {{expects 'tensor<4xf32>' for @w of type 'tensor<4xf32>', got 'tensor<5xf32>'}}
  zero.assign @w, %x : tensor<5xf32>
  return
}

// -----

shard.grid @dp(shape = 4)
zero.param @w : !zero.sharded<10xf32, @dp, dim = 0>
func.func @f(%x: tensor<10xf32>) {
  // expected-error @below {{expects 'tensor<3xf32>' for @w of type '!zero.sharded<10xf32, @dp, dim = 0>', got 'tensor<10xf32>'}}
  zero.assign @w, %x : tensor<10xf32>
  return
}

// -----

zero.param @w : !zero.sharded<10xf32, @dp, dim = 0>
func.func @f(%x: tensor<10xf32>) {
  // expected-error @below {{assigns @w, whose grid is not declared: '!zero.sharded<10xf32, @dp, dim = 0>'}}
  zero.assign @w, %x : tensor<10xf32>
  return
}

// -----

func.func @f(%x: tensor<10xf32>) {
  // expected-error @below {{refers to @dp, which is not a shard.grid of this module}}
  %l = zero.local %x on @dp : tensor<10xf32> -> tensor<3xf32>
  return
}

// -----

// expected-note @below {{the grid is declared here}}
shard.grid @dp(shape = 4)
func.func @f(%x: tensor<10xf32>) {
  // expected-error @below {{expects axes of static size in grid @dp, got [1]}}
  %l = zero.local %x on @dp axes [1] : tensor<10xf32> -> tensor<3xf32>
  return
}

// -----

shard.grid @dp(shape = 4)
func.func @f(%x: tensor<10xf32>) {
  // expected-error @below {{expects 'tensor<3xf32>' as the part of 'tensor<10xf32>' on one of 4 ranks, got 'tensor<2xf32>'}}
  %l = zero.local %x on @dp : tensor<10xf32> -> tensor<2xf32>
  return
}

// -----

shard.grid @dp(shape = 4)
func.func @f(%x: tensor<f32>) {
  // expected-error @below {{cannot cut 'tensor<f32>' along dimension 0; expects a static tensor that has it}}
  %l = zero.local %x on @dp : tensor<f32> -> tensor<f32>
  return
}

// -----

shard.grid @dp(shape = 4)
shard.grid @other(shape = 4)
func.func @f(%x: !zero.sharded<10xf32, @dp, dim = 0>) {
  // expected-error @below {{expects the grid and axes of its operand '!zero.sharded<10xf32, @dp, dim = 0>', got @other axes [0]}}
  %l = zero.local %x on @other : !zero.sharded<10xf32, @dp, dim = 0> -> tensor<3xf32>
  return
}

// -----

shard.grid @dp(shape = 4)
func.func @f(%x: !zero.sharded<10xf32, @dp, dim = 0>) {
  // expected-error @below {{expects 'tensor<10xf32>' gathered from '!zero.sharded<10xf32, @dp, dim = 0>', got 'tensor<12xf32>'}}
  %w = zero.all_gather %x on @dp : (!zero.sharded<10xf32, @dp, dim = 0>) -> tensor<12xf32>
  return
}

// -----

shard.grid @dp(shape = 4)
func.func @f(%x: tensor<3xf32>, %y: tensor<3xf32>) {
  // expected-error @below {{expects one result per operand, got 2 operands and 1 results}}
  %w = zero.all_gather %x, %y on @dp : (tensor<3xf32>, tensor<3xf32>) -> tensor<10xf32>
  return
}

// -----

shard.grid @dp(shape = 4)
func.func @f(%x: tensor<10xf32>) {
  // expected-error @below {{expects 'tensor<3xf32>' as the part of 'tensor<10xf32>' on one of 4 ranks, got 'tensor<10xf32>'}}
  %g = zero.reduce_scatter %x average on @dp : (tensor<10xf32>) -> tensor<10xf32>
  return
}

// -----

shard.grid @dp(shape = 4)
func.func @f(%x: tensor<10xf32>) {
  // expected-error @below {{expects 'tensor<10xf32>' as the sum of tensors of that type, got 'tensor<3xf32>'}}
  %g = zero.all_reduce %x average on @dp : (tensor<10xf32>) -> tensor<3xf32>
  return
}

// -----

shard.grid @dp(shape = 4)
func.func @f(%x: tensor<10xf32>) {
  // expected-error @below {{expects 'tensor<3xf32>' as the part of 'tensor<10xf32>' on one of 4 ranks, got 'tensor<5xf32>'}}
  %g = zero.reduce_scatter_start %x average on @dp : (tensor<10xf32>) -> !zero.future<tensor<5xf32>>
  return
}

// -----

func.func @f(%x: !zero.sharded<10xf32, @dp, dim = 0>) {
  // expected-error @below {{changes mem and nothing else; cannot turn '!zero.sharded<10xf32, @dp, dim = 0>' in device memory into '!zero.sharded<10xf32, @dp, dim = 0>' in host memory}}
  %y = zero.transfer %x from device to host : (!zero.sharded<10xf32, @dp, dim = 0>) -> !zero.sharded<10xf32, @dp, dim = 0>
  return
}

// -----

func.func @f(%x: tensor<10xf32>) {
  // expected-error @below {{moves from device to disk; one side, and only one, must be host}}
  %y = zero.transfer %x from device to disk : (tensor<10xf32>) -> tensor<10xf32>
  return
}

// -----

func.func @f(%x: tensor<10xf32>) {
  // expected-error @below {{expects at least one tensor and as many results, got 1 tensors and 2 results}}
  %y = zero.transfer_start %x from host to device : (tensor<10xf32>) -> !zero.future<tensor<10xf32>, tensor<10xf32>>
  return
}

// -----

func.func @f(%x: tensor<10xf32>) {
  // expected-error @below {{expected device, host or disk, got 'tape'}}
  %y = zero.transfer %x from device to tape : (tensor<10xf32>) -> tensor<10xf32>
  return
}

// -----

func.func @f(%x: tensor<10xf32>) {
  // expected-error @below {{has a body whose arguments differ from the operands in number or type}}
  "zero.on_host"(%x) ({
  ^bb0(%a: tensor<9xf32>):
    zero.yield
  }) : (tensor<10xf32>) -> ()
  return
}

// -----

func.func @f(%x: tensor<10xf32>) {
  // expected-error @below {{has a body that yields 'tensor<10xf32>', expected 'tensor<9xf32>'}}
  %y = zero.on_host (%a = %x) : (tensor<10xf32>) -> tensor<9xf32> {
    zero.yield %a : tensor<10xf32>
  }
  return
}

// -----

func.func @f(%x: tensor<10xf32>) {
  // expected-error @below {{expected 1 operand types, got 0}}
  %y = zero.on_host (%a = %x) : () -> () {
  }
  return
}

// -----

func.func @f(%x: tensor<10xf32>) {
  // expected-error @below {{expected one future, got 0 results}}
  zero.on_host_start (%a = %x) : (tensor<10xf32>) -> () {
  }
  return
}

// -----

func.func @f(%x: tensor<10xf32>) {
  // expected-error @below {{expects results of zero.all_gather, zero.wait or zero.reshard, got another value of type 'tensor<10xf32>'}}
  zero.release %x : tensor<10xf32>
  return
}

// -----

func.func @f() {
  // expected-error @below {{expects at least one gathered value}}
  "zero.release"() : () -> ()
  return
}

// -----

shard.grid @hsdp(shape = 2x4)
func.func @f(%x: tensor<10xf32>) {
  // expected-error @below {{expects 'tensor<3xf32>' as the part of 'tensor<10xf32>' on one of 4 ranks, got 'tensor<2xf32>'}}
  %y = zero.reshard %x on @hsdp axes [1] : (tensor<10xf32>) -> tensor<2xf32>
  return
}

// -----

zero.param @w : tensor<4xf32>
// expected-error @below {{is an accumulator; expects zeros to start from}}
zero.state @w.grad of @w : tensor<4xf32> accumulator

// -----

// expected-error @below {{expects at most one of init, zeros and value}}
zero.state @scale : tensor<f32> zeros value(dense<1.0> : tensor<f32>)

// -----

// expected-error @below {{expects a value of type 'tensor<f32>', got 'tensor<2xf32>'}}
zero.state @scale : tensor<f32> value(dense<1.0> : tensor<2xf32>)

// -----

// expected-error @below {{names a tensor to start from but no file}}
"zero.state"() <{sym_name = "scale", type = tensor<f32>, init_tensor = "s"}> : () -> ()

// -----

shard.grid @dp(shape = 2)
// expected-error @below {{is a state of no parameter, which every rank holds whole; expects a tensor type}}
zero.state @scale : !zero.sharded<4xf32, @dp, dim = 0>
