// Each invariant of the plan dialect, broken once.
// RUN: zero-opt %s -split-input-file -verify-diagnostics

func.func private @k(%p: tensor<4xf32>) -> tensor<4xf32> attributes {plan.kernel} {
  return %p : tensor<4xf32>
}
func.func @two_entries(%p: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has 2 entries in 'tied' for 1 results}}
  %0 = plan.dispatch @k(%p) tied [0, 0] : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @out_of_range(%p: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{ties result 0 to operand 1, but has 1 operands}}
  %0 = plan.dispatch @k(%p) tied [1] : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @other_type(%p: tensor<4xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{ties result 0 of type 'tensor<2xf32>' to operand 0 of type 'tensor<4xf32>'}}
  %0 = plan.dispatch @k(%p) tied [0] : (tensor<4xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @tied_twice(%p: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{ties operand 0 to two results}}
  %0:2 = plan.dispatch @k(%p) tied [0, 0] : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0 : tensor<4xf32>
}

// -----

func.func @no_kernel(%p: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{calls kernel @k, which does not exist}}
  %0 = plan.dispatch @k(%p) tied [0] : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @k(%p: tensor<4xf32>) -> tensor<4xf32>
func.func @not_marked(%p: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{calls @k, which is not marked 'plan.kernel'}}
  %0 = plan.dispatch @k(%p) tied [0] : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @k(%p: tensor<4xf32>) -> tensor<4xf32> attributes {plan.kernel}
func.func @other_kernel_type(%p: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{does not have the type of its kernel, '(tensor<4xf32>) -> tensor<4xf32>'}}
  %0 = plan.dispatch @k(%p) tied [0] : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// expected-error @+1 {{has 0 ranks, but needs at least one}}
plan.program @p ranks(0) {
}

// -----

// expected-error @+1 {{holds 'arith.constant', but may hold only plan ops}}
plan.program @p ranks(1) {
  %0 = arith.constant 0 : i32
}

// -----

plan.program @p ranks(1) {
  // expected-error @+1 {{has -1 bytes}}
  %0 = plan.arena device bytes(-1)
}

// -----

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  // expected-error @+1 {{has type 'memref<2x2xf32, strided<[1, 2]>>', which is not contiguous}}
  %0 = plan.buffer %dev[0] activation : memref<2x2xf32, strided<[1, 2]>>
}

// -----

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  // expected-error @+1 {{has type 'memref<4611686018427387904x8xf32>' of more than 2^48 bytes}}
  %0 = plan.buffer %dev activation : memref<4611686018427387904x8xf32>
}

// -----

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  // expected-error @+1 {{has a capacity of 4 bytes, but its type needs 16}}
  %0 = plan.buffer %dev[0] activation capacity(4) : memref<4xf32>
}

// -----

plan.program @p ranks(1) {
  %dev = plan.arena device
  // expected-error @+1 {{has an offset in an arena without a size}}
  %0 = plan.buffer %dev[0] activation : memref<4xf32>
}

// -----

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  // expected-error @+1 {{takes bytes [56, 72) of an arena of 64 bytes}}
  %0 = plan.buffer %dev[56] activation : memref<4xf32>
}

// -----

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] activation : memref<4xf32>
  // expected-error @+1 {{views 'f32' as 'i32'}}
  %1 = plan.view %0[0] : memref<4xf32> to memref<4xi32>
}

// -----

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] activation : memref<4xf32>
  // expected-error @+1 {{which is not strided from offset 0}}
  %1 = plan.view %0[0] : memref<4xf32> to memref<2xf32, strided<[1], offset: 2>>
}

// -----

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] activation : memref<4xf32>
  // expected-error @+1 {{has a negative offset}}
  %1 = plan.view %0[-1] : memref<4xf32> to memref<2xf32>
}

// -----

// The last rank's shard would start at 3 and end at 6 of 5.
plan.program @p ranks(2) {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] activation : memref<5xf32>
  // expected-error @+1 {{reaches element 6 of 5}}
  %1 = plan.view %0[0] rank_stride(3) : memref<5xf32> to memref<3xf32>
}

// -----

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] constant : memref<4xf32>
  // expected-error @+1 {{writes a value of type 'tensor<2xf32>' to 'memref<4xf32>'}}
  plan.constant %0, dense<0.0> : tensor<2xf32> : memref<4xf32>
}

// -----

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] state : memref<4xf32>
  // expected-error @+1 {{has 'of', which only state and accumulators have}}
  plan.parameter "m" %0 trained of("w") : memref<4xf32>
}

// -----

plan.program @p ranks(2) {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] parameter : memref<2x2xf32>
  // expected-error @+1 {{holds shards of type 'memref<2x2xf32>' of another shape than the logical one}}
  plan.parameter "w" %0 trained shape [4, 3] : memref<2x2xf32>
}

// -----

plan.program @p ranks(2) {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] parameter : memref<2x2xf32>
  // expected-error @+1 {{has shards of 2 rows on 2 ranks, which do not cover 5}}
  plan.parameter "w" %0 trained shape [5, 2] : memref<2x2xf32>
}

// -----

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] input : memref<4xf32>
  // expected-error @+1 {{has bounds, but is not of integers}}
  plan.input "x" %0 data bounds [0, 1] : memref<4xf32>
}

// -----

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] input : memref<4xi64>
  // expected-error @+1 {{needs two bounds, the smaller first}}
  plan.input "x" %0 data bounds [1, 0] : memref<4xi64>
}

// -----

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] activation : memref<4xf32>
  // expected-error @+1 {{must be signalled by exactly one command}}
  %e = plan.event
  plan.fill %0 wait(%e) : memref<4xf32>
}

// -----

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] activation : memref<4xf32>
  // expected-error @+1 {{is waited for before it is signalled}}
  %e = plan.event
  // expected-note @+1 {{waited for here}}
  plan.fill %0 wait(%e) : memref<4xf32>
  plan.fill %0 stream("copy") signal(%e) : memref<4xf32>
}

// -----

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] activation : memref<4xf32>
  // expected-error @+1 {{writes buffer 1 of 1}}
  plan.call @matmul(%0) writes [1] : memref<4xf32>
}

// -----

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] activation : memref<4xf32>
  // expected-error @+1 {{has 1 sources, 1 targets, 2 element counts and 1 chunks}}
  plan.all_reduce %0 -> %0 elements [4, 4] chunks [4] : memref<4xf32> -> memref<4xf32>
}

// -----

plan.program @p ranks(2) {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] activation : memref<4xf32>
  // expected-error @+1 {{has chunks of 1 elements, which do not cover 4 on 2 ranks}}
  plan.reduce_scatter %0 -> %0 elements [4] chunks [1] : memref<4xf32> -> memref<4xf32>
}

// -----

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] activation : memref<4xf32>
  %1 = plan.buffer %dev[32] activation : memref<2xf32>
  // expected-error @+1 {{copies 'memref<4xf32>' to 'memref<2xf32>'}}
  plan.copy %0 -> %1 : memref<4xf32> -> memref<2xf32>
}

// -----

// expected-error @+1 {{has a grid of [2, 4] for 4 ranks; its axes must multiply to them}}
plan.program @p ranks(4) grid [2, 4] {
}

// -----

plan.program @p ranks(8) grid [2, 4] {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] activation : memref<4xf32>
  // expected-error @+1 {{spans axes [2] of a grid of 2 axes; expected them ascending}}
  plan.all_reduce %0 -> %0 elements [4] chunks [4] axes [2] : memref<4xf32> -> memref<4xf32>
}

// -----

plan.program @p ranks(8) grid [2, 4] {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] activation : memref<4xf32>
  // expected-error @+1 {{spans axes [1, 0] of a grid of 2 axes; expected them ascending}}
  plan.all_reduce %0 -> %0 elements [4] chunks [4] axes [1, 0] : memref<4xf32> -> memref<4xf32>
}

// -----

plan.program @p ranks(8) grid [2, 4] {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] activation : memref<16xf32>
  // expected-error @+1 {{has chunks of 2 elements, which do not cover 16 on 2 ranks}}
  plan.reduce_scatter %0 -> %0 elements [16] chunks [2] axes [0] : memref<16xf32> -> memref<16xf32>
}

// -----

plan.program @p ranks(8) grid [2, 4] {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] activation : memref<16xf32>
  // expected-error @+1 {{has 2 shards; expects 4, the last axis of the grid, or all 8 ranks}}
  %1 = plan.view %0[0] rank_stride(2) shards(2) : memref<16xf32> to memref<2xf32>
}

// -----

plan.program @p ranks(8) grid [2, 4] {
  %dev = plan.arena device bytes(64)
  %0 = plan.buffer %dev[0] parameter : memref<2xf32>
  // expected-error @+1 {{has 2 shards; expects 4, the last axis of the grid, or all 8 ranks}}
  plan.parameter "w" %0 trained shape [4] shards(2) : memref<2xf32>
}

// -----

plan.program @step ranks(2) {
  %dev = plan.arena device bytes(64)
  %g = plan.buffer %dev[0] gradient : memref<4xf32>
  // expected-error @+1 {{is an accumulator, which starts as zeros}}
  plan.parameter "w.grad" %g accumulator of("w") ones : memref<4xf32>
}

// -----

plan.program @step ranks(2) {
  %dev = plan.arena device bytes(64)
  %g = plan.buffer %dev[0] state : memref<f32>
  // expected-error @+1 {{has more than one of init, ones and value}}
  plan.parameter "scale" %g state ones value(dense<1.0> : tensor<f32>) : memref<f32>
}

// -----

plan.program @step ranks(2) {
  %dev = plan.arena device bytes(64)
  %g = plan.buffer %dev[0] state : memref<f32>
  // expected-error @+1 {{has a value of type 'tensor<2xf32>' for a buffer of type 'memref<f32>'}}
  plan.parameter "scale" %g state value(dense<1.0> : tensor<2xf32>) : memref<f32>
}

// -----

// expected-error @+1 {{has 4 micro-batches and 0 'plan.micro_batch_end'; expects one of these exactly where there are several micro-batches}}
plan.program @step ranks(2) micro_batches(4) {
}

// -----

// expected-error @+1 {{has 1 micro-batches and 1 'plan.micro_batch_end'}}
plan.program @step ranks(2) {
  plan.micro_batch_end
}

// -----

plan.program @p ranks(1) {
  // expected-note @+1 {{the first}}
  %0 = plan.arena host bytes(64)
  // expected-error @+1 {{is the second in host memory; expects one arena per space}}
  %1 = plan.arena host bytes(64)
}

// -----

func.func private @k(%a: memref<4xf32>) attributes {plan.kernel}

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  %host = plan.arena host bytes(64)
  %disk = plan.arena disk bytes(64)
  %0 = plan.buffer %dev[0] activation : memref<4xf32>
  %1 = plan.buffer %host[0] activation : memref<4xf32>
  %2 = plan.buffer %disk[0] state : memref<4xf32>
  // expected-error @+1 {{runs on buffers in device memory, but one of type 'memref<4xf32>' is in host memory}}
  plan.launch @k(%1) writes [0] : memref<4xf32>
}

// -----

func.func private @k(%a: memref<4xf32>) attributes {plan.kernel}

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  %host = plan.arena host bytes(64)
  %disk = plan.arena disk bytes(64)
  %0 = plan.buffer %dev[0] activation : memref<4xf32>
  %1 = plan.buffer %host[0] activation : memref<4xf32>
  %2 = plan.buffer %disk[0] state : memref<4xf32>
  // expected-error @+1 {{runs on buffers in host memory, but one of type 'memref<4xf32>' is in device memory}}
  plan.launch @k(%1, %0) writes [0] host stream("host") : memref<4xf32>, memref<4xf32>
}

// -----

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  %host = plan.arena host bytes(64)
  %disk = plan.arena disk bytes(64)
  %0 = plan.buffer %dev[0] activation : memref<4xf32>
  %1 = plan.buffer %host[0] activation : memref<4xf32>
  %2 = plan.buffer %disk[0] state : memref<4xf32>
  // expected-error @+1 {{runs on buffers in device memory, but one of type 'memref<4xf32>' is in disk memory}}
  plan.all_reduce %2 -> %2 elements [4] chunks [4] : memref<4xf32> -> memref<4xf32>
}

// -----

plan.program @p ranks(1) {
  %dev = plan.arena device bytes(64)
  %host = plan.arena host bytes(64)
  %disk = plan.arena disk bytes(64)
  %0 = plan.buffer %dev[0] activation : memref<4xf32>
  %1 = plan.buffer %host[0] activation : memref<4xf32>
  %2 = plan.buffer %disk[0] state : memref<4xf32>
  %v = plan.view %2[0] : memref<4xf32> to memref<2x2xf32, strided<[2, 1]>>
  // expected-error @+1 {{copies from device to disk memory; what is on disk is read into and written from host memory}}
  plan.copy %0 -> %v : memref<4xf32> -> memref<2x2xf32, strided<[2, 1]>>
}
