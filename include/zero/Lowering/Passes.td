//===- Passes.td - Lowering passes -------------------------*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a partitioned step to the executable plan, and from a kernel on tensors
// to loops on buffers.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LOWERING_PASSES_TD
#define ZERO_LOWERING_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// The step
//===----------------------------------------------------------------------===//

def PlanBoundInputs : Pass<"plan-bound-inputs", "::mlir::func::FuncOp"> {
  let summary = "Derive which integers the step accepts as tokens and labels";
  let description = [{
    An integer input that indexes a table or is a class label gets the range of
    its uses as `zero.bounds` (and the label that does not count as
    `zero.ignore`), so that the runtime refuses bad data before it computes. A
    negative index counts from the end; a label is not negative.
    Must run before kernels are outlined.

    ```mlir
    // before
    func.func @step(%ids: tensor<8x32xi64> {zero.input = "input_ids"}, ...) {
      %e = train.gather %wte, %ids {axis = 0} : tensor<256x64xf32>, ...
    // after
    func.func @step(%ids: tensor<8x32xi64> {zero.input = "input_ids",
                                            zero.bounds = array<i64: -256, 255>}, ...) {
    ```
  }];
}

def PlanLower : Pass<"plan-lower", "::mlir::ModuleOp"> {
  let summary = "Turn the step function into a program of commands";
  let description = [{
    Accepts a partitioned `@step` whose compute is `plan.dispatch` and library
    calls (`train.matmul`, `train.gemm`, `train.conv*`). Every value gets a
    buffer or, for reshapes, shards and transposed operands, a view of one; an
    update runs in place where nobody reads the old value afterwards, and is
    preceded by a `plan.copy` where somebody does. The step function and the
    `zero` symbols become one `plan.program`; kernels stay. Buffers have no
    offsets yet.

    A collective with a future runs on the stream of its kind ("all_gather",
    "reduce_scatter", "all_reduce"; on a 2-D grid "all_reduce.0" if it leaves
    out the last axis). It waits for the compute command before it, and the next
    compute command after `zero.wait` waits for it; waits that others imply are
    not emitted.

    ```mlir
    // before
    zero.param @w : tensor<4xf32> init("w.safetensors")
    func.func @step(%g: tensor<4xf32> {zero.input = "g"}, ...) {
      %w = zero.read @w : tensor<4xf32>
      %w1 = plan.dispatch @sgd(%w, %g, %lr) tied [0] : ...
      zero.assign @w, %w1 : tensor<4xf32>
      return
    }
    // after
    plan.program @step ranks(1) {
      %dev = plan.arena device
      %w = plan.buffer %dev parameter : memref<4xf32>
      plan.parameter "w" %w trained init("w.safetensors") : memref<4xf32>
      ...
      plan.launch @sgd(%w, %g, %lr) writes [0] : ...
    }
    ```

    Each memory that something lies in has an arena; a buffer is in the arena of
    its value's memory, a symbol's in that of its `mem`. A `zero.transfer` is a
    `plan.copy` a tensor, on the stream of its direction ("to_host",
    "to_device", "disk_read", "disk_write"), and none where the value can lie at
    its destination from the start; a copy up into a parameter is the parameter's
    new value. The body of a `zero.on_host` is one or more launches marked `host`
    on the stream "host", of host buffers only, in place where a symbol is
    assigned. Commands of these streams signal and wait for events as
    collectives do; a transfer or `zero.on_host` that is not scheduled is awaited
    at once. Buffers of the disk arena and host buffers that a disk copy touches
    are whole blocks of 4096 bytes.

    ```mlir
    // before: moments on disk, the update on the host
    %s = zero.read @w.m : !zero.sharded<4xf32, @dp, axes = [], dim = 0, mem = disk>
    %h = zero.transfer %s from disk to host : ...
    %m = zero.local %h on @dp axes [] : ... -> tensor<4xf32>
    %n = zero.on_host (%v = %m, %d = %g) : ... {
      %t = plan.dispatch @update(%v, %d) tied [0] : ...
      zero.yield %t : tensor<4xf32>
    }
    %o = zero.transfer %n from host to disk : (tensor<4xf32>) -> tensor<4xf32>
    zero.assign @w.m, %o : tensor<4xf32>
    // after
    %host = plan.arena host
    %disk = plan.arena disk
    %m = plan.buffer %disk state capacity(4096) : memref<4xf32>
    plan.parameter "w.m" %m state of("w") : memref<4xf32>
    %window = plan.buffer %host state capacity(4096) : memref<4xf32>
    ...
    plan.copy %m -> %window label("w.m") stream("disk_read") signal(%read) : ...
    plan.launch @update(%window, %g) writes [0] host stream("host") wait(%read) signal(%done) : ...
    plan.copy %window -> %m label("w.m") stream("disk_write") wait(%done) : ...
    ```
  }];
  let dependentDialects = ["::mlir::plan::PlanDialect"];
}

def PlanFuseEpilogues : Pass<"plan-fuse-epilogues", "::mlir::ModuleOp"> {
  let summary = "Make activations and bias gradients epilogues of products";
  let description = [{
    Accepts programs without offsets. Launches of a kernel that is a single
    operation become part of a `plan.call @matmul` of two matrices, as cuBLASLt
    has them; only GPUs run the result. Attributes of the call say which, and what
    is written stands last, the product's result behind the others:

    | attributes | buffers | computes |
    |---|---|---|
    | `gelu` (of tanh) or `relu` | a, b, [bias,] out | out = gelu(a b + bias) |
    | `gelu`, `aux` | a, b, [bias,] x, out | x = a b + bias too |
    | `gelu_grad` | a, b, x, out | out = gelu'(x) * (a b) |
    | `gelu_grad`, `bias_grad` | a, b, x, d, out | d = the sum of out's rows too |
    | `bias_grad_a` | a, b, d, out | out = a b and d = the sum of a's columns |
    | `bias_grad_b` | a, b, d, out | out = a b and d = the sum of b's rows |

    The fused command stands where the product stood: only launches on the compute
    stream that wait for nothing, and whose result nobody uses in between, are
    fused. x and the matrices that are summed have a multiple of 8 columns.

    ```mlir
    // before
    plan.call @matmul(%a, %b, %bias, %x) writes [3] : ...
    plan.launch @gelu(%x, %y) writes [1] : ...
    // after
    plan.call @matmul(%a, %b, %bias, %x, %y) writes [3, 4] {aux, gelu} : ...
    ```
  }];
  let dependentDialects = ["::mlir::plan::PlanDialect"];
  let statistics = [
    Statistic<"numFused", "fused", "Number of launches that became epilogues">
  ];
}

def PlanAllocate : Pass<"plan-allocate", "::mlir::plan::ProgramOp"> {
  let summary = "Give every buffer its byte offset and every arena its size";
  let description = [{
    Buffers of parameters, state, inputs and constants live through the whole
    program, outputs to its end; every other lives from the first command that
    uses it to the last, a collective on its own stream using its buffers until
    all later commands are ordered after it. Buffers that never live together
    share bytes. A remark tells the arena's size and the lower bound (most bytes
    alive at one time).

    ```mlir
    // before
    %dev = plan.arena device
    %a = plan.buffer %dev activation : memref<16xf32>
    // after
    %dev = plan.arena device bytes(64)
    %a = plan.buffer %dev[0] activation : memref<16xf32>
    ```
  }];
  let options = [
    Option<"alignment", "alignment", "int64_t", /*default=*/"64",
           "Bytes that offsets are a multiple of; a power of two">
  ];
  let statistics = [
    Statistic<"numBuffers", "buffers", "Number of buffers placed">
  ];
}

def PlanOutlineKernels : Pass<"plan-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Move the compute of the step into kernels";
  let description = [{
    In `@step`, every op that is no library call, no collective and no change of
    layout becomes part of a kernel: a private function on tensors with the
    attribute `plan.kernel`, called by `plan.dispatch`. An elementwise op joins
    its consumer where that reads each element once anyway (elementwise,
    reductions, rows of a softmax or a normalization); constants of one value
    are copied into the kernel. A loop (`train.scan`) is a kernel, with products
    and all; its last result is memory for what a step needs. What the kernels
    are depends only on the compute, so that all ZeRO stages run the same ones. Equal kernels share a
    function. Results of optimizer updates are tied to parameter and state.

    ```mlir
    // before
    func.func @step(%x: tensor<8x16xf32>, %b: tensor<16xf32>) -> tensor<8x16xf32> {
      %0 = train.add %x, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
      %1 = train.gelu %0 : tensor<8x16xf32>
      return %1 : tensor<8x16xf32>
    }
    // after
    func.func @step(%x: tensor<8x16xf32>, %b: tensor<16xf32>) -> tensor<8x16xf32> {
      %0 = plan.dispatch @add_gelu_8x16(%x, %b) tied [-1]
        : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
      return %0 : tensor<8x16xf32>
    }
    func.func private @add_gelu_8x16(%arg0: tensor<8x16xf32>, %arg1: tensor<16xf32>)
        -> tensor<8x16xf32> attributes {plan.kernel} {
      %0 = train.add %arg0, %arg1
        : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
      %1 = train.gelu %0 : tensor<8x16xf32>
      return %1 : tensor<8x16xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect",
                           "::mlir::plan::PlanDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numKernels", "kernels", "Number of different kernels">
  ];
}

//===----------------------------------------------------------------------===//
// Inside a kernel
//===----------------------------------------------------------------------===//

def KernelExpandFloats : Pass<"kernel-expand-floats", "::mlir::func::FuncOp"> {
  let summary = "Leave of bf16 and f16 only their bits";
  let description = [{
    Arithmetic on bf16 and f16 becomes arithmetic on f32 between conversions,
    and conversions from and to f64 go by way of f32. Conversions of bf16 become
    integer arithmetic: LLVM would call a function of the compiler's library, or
    use an instruction that takes subnormals for zero. With `expand-half` the
    same is done for f16, for processors without F16C. Both round to the
    nearest, ties to even.

    ```mlir
    // before
    %y = arith.addf %x, %x : bf16
    // after
    %0 = arith.bitcast %x : bf16 to i16
    %1 = arith.extui %0 : i16 to i32
    %2 = arith.shli %1, %c16 : i32
    %3 = arith.bitcast %2 : i32 to f32
    %4 = arith.addf %3, %3 : f32
    ...
    ```
  }];
  let options = [
    Option<"expandHalf", "expand-half", "bool", /*default=*/"false",
           "Convert f16 by integer arithmetic too">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def KernelExpandMath : Pass<"kernel-expand-math", "::mlir::func::FuncOp"> {
  let summary = "Replace math functions on f32 by vectorizable arithmetic";
  let description = [{
    exp, log, tanh, erf, expm1 and log1p become polynomials, accurate to a few
    units in the last place. f16 and bf16 are computed in f32; f64 is left to
    libm.

    ```mlir
    // before
    %y = math.exp %x : f32
    // after
    %0 = arith.mulf %x, %log2e : f32
    %1 = math.floor %0 : f32
    ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

def KernelFuse : Pass<"kernel-fuse", "::mlir::func::FuncOp"> {
  let summary = "Fuse the linalg operations of a kernel";
  let description = [{
    Accepts linalg on tensors. Generalizes named operations, fuses elementwise
    producers into their consumers (also through the row slices of a loop over
    rows) and turns booleans at the function's boundary into bytes, since LLVM
    does not vectorize accesses to i1.

    ```mlir
    // before
    %0 = linalg.generic ... ins(%a, %b) { arith.addf }
    %1 = linalg.generic ... ins(%0) { math.exp }
    // after
    %1 = linalg.generic ... ins(%a, %b) { arith.addf; math.exp }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def KernelMapToGpu : Pass<"kernel-map-to-gpu", "::mlir::func::FuncOp"> {
  let summary = "Turn a bufferized kernel into launches on a GPU";
  let description = [{
    Accepts a kernel whose temporaries are placed (kernel-place-buffers). Its
    linalg operations and loops become `gpu.launch`es of constant sizes, one
    after the other, and nothing else stays outside of them:

    - elementwise operations: a thread has a few elements in a row, 16 bytes at
      a time where the buffers are aligned (tested in the launch);
    - loops over rows: a warp or a block for each row; what is kept of a row is
      in registers, sums go by shuffles and shared memory;
    - sums over the first dimensions: a thread for a few columns, rows cut into
      parts whose sums a second launch adds up;
    - sums to a scalar: one block, or a block's part each and a second launch.

    There are no atomics: the same operands give the same bits. Values that go
    from one launch to the next are in scratch memory, a last argument of bytes
    with the attribute `plan.scratch`.

    ```mlir
    // before
    func.func @k(%x: memref<4096xf32>, %y: memref<4096xf32>) attributes {plan.kernel} {
      linalg.generic ... ins(%x) outs(%y) { math.exp }
      return
    }
    // after
    func.func @k(%x: memref<4096xf32>, %y: memref<4096xf32>) attributes {plan.kernel} {
      gpu.launch blocks(...) in (... = %c4, ...) threads(...) in (... = %c256, ...) {
        ...
        %v = vector.load %x[%i] {alignment = 16 : i64} : memref<4096xf32>, vector<4xf32>
        ...
      }
      return
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def KernelPrepareGpu : Pass<"kernel-prepare-gpu", "::mlir::func::FuncOp"> {
  let summary = "Lower what a GPU computes in another way than the host";
  let description = [{
    Gradients of poolings add up, for each element of the input, the windows that
    it is in: steps are independent of each other, where those over windows
    (train-to-linalg) are not. Runs before train-to-linalg.

    ```mlir
    // before
    %g = train.max_pool_grad %grad, %x ...
    // after
    %g = scf.for %n = ... { scf.for %c = ... { scf.for %i = ... { scf.for %j = ...
      // the windows with x[n, c, i, j]
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def KernelPassDestinations : Pass<"kernel-pass-destinations", "::mlir::func::FuncOp"> {
  let summary = "Turn a kernel's tensor results into buffer arguments";
  let description = [{
    Operands become memref arguments and every result that is not tied to an
    operand (`plan.tied`) becomes a trailing memref argument, into which
    `bufferization.materialize_in_destination` stores it. Upstream's
    `eliminate-empty-tensors` and `one-shot-bufferize` then compute in place.

    ```mlir
    // before
    func.func @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {plan.kernel} {
      ...
      return %y : tensor<4xf32>
    }
    // after
    func.func @k(%0: memref<4xf32>, %1: memref<4xf32>) attributes {plan.kernel} {
      %x = bufferization.to_tensor %0 restrict : memref<4xf32> to tensor<4xf32>
      ...
      bufferization.materialize_in_destination %y in restrict writable %1
        : (tensor<4xf32>, memref<4xf32>) -> ()
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
                           "::mlir::tensor::TensorDialect"];
}

def KernelPlaceBuffers : Pass<"kernel-place-buffers", "::mlir::func::FuncOp"> {
  let summary = "Place a kernel's temporaries on its stack frame";
  let description = [{
    Accepts a bufferized kernel. Every static allocation of at most
    `max-stack-bytes` becomes one `memref.alloca` in the function's entry block,
    copies become loops, and the loops of elementwise operations over contiguous
    buffers are merged into one. What is larger is placed in the kernel's last
    argument where that is memory for temporaries (`plan.scratch_result`); else,
    and where the size is dynamic, it is an error: a kernel never allocates
    memory that the plan does not know of.

    ```mlir
    // before
    scf.for %i = ... {
      %0 = memref.alloc() : memref<16xf32>
      ...
      memref.dealloc %0
    }
    // after
    %0 = memref.alloca() : memref<16xf32>
    scf.for %i = ... {
      ...
    }
    ```
  }];
  let options = [
    Option<"maxStackBytes", "max-stack-bytes", "int64_t", /*default=*/"1048576",
           "Most bytes that the temporaries of one kernel may take">
  ];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect"];
}

def KernelSplit : Pass<"kernel-split", "::mlir::func::FuncOp"> {
  let summary = "Let kernels of the host compute a range of their elements";
  let description = [{
    Accepts a kernel with `plan.host` whose loops are scf.for. Where all of them
    have the same number N of steps, and no step uses what another one writes,
    the kernel gets two more arguments, the steps [begin, end) to run, and the
    attribute `plan.split = N`. Threads that run it on disjoint ranges, however
    cut, together give the bits of one call on [0, N). Other kernels stay as they
    are.

    ```mlir
    // before
    func.func @k(%x: memref<64xf32>) attributes {plan.host, plan.kernel} {
      scf.for %i = %c0 to %c64 step %c1 {
        ...
        memref.store %y, %x[%i] : memref<64xf32>
      }
      return
    }
    // after
    func.func @k(%x: memref<64xf32>, %begin: index, %end: index)
        attributes {plan.host, plan.kernel, plan.split = 64} {
      scf.for %i = %begin to %end step %c1 {
        ...
        memref.store %y, %x[%i] : memref<64xf32>
      }
      return
    }
    ```
  }];
  let statistics = [
    Statistic<"numSplit", "split", "Number of kernels that run in parts">
  ];
}

def KernelTieLoops : Pass<"kernel-tie-loops", "::mlir::func::FuncOp"> {
  let summary = "Keep what a loop carries in the memory that it started with";
  let description = [{
    Accepts a kernel on tensors, just before bufferization. What a loop yields
    is stored, at the end of each step, to the value that it replaces, unless it
    is that value with elements written to it. No loop needs memory of its own
    then, however many steps it has.

    ```mlir
    // before
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %h0) -> (tensor<4xf32>) {
      %next = linalg.generic ... ins(%h : tensor<4xf32>) outs(%e : tensor<4xf32>)
      scf.yield %next : tensor<4xf32>
    }
    // after
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %h0) -> (tensor<4xf32>) {
      %next = linalg.generic ... ins(%h : tensor<4xf32>) outs(%e : tensor<4xf32>)
      %0 = bufferization.materialize_in_destination %next in %h : ...
      scf.yield %0 : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect"];
}

def TrainToLinalg : Pass<"train-to-linalg", "::mlir::func::FuncOp"> {
  let summary = "Lower the train operations of a kernel to linalg";
  let description = [{
    Works on functions with the attribute `plan.kernel`. An elementwise operation
    becomes one linalg.generic. Softmax, normalizations and cross-entropy become
    loops over rows on slices, so that their temporaries are one row. Optimizer
    updates take parameter and state as `outs`, so that they run in place. A
    `train.scan` becomes a loop that carries its values and what it stacks.
    Attention is a library call: in a kernel it is an error.

    ```mlir
    // before
    func.func @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {plan.kernel} {
      %y = train.exp %x : tensor<4xf32>
      return %y : tensor<4xf32>
    }
    // after
    func.func @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {plan.kernel} {
      %e = tensor.empty() : tensor<4xf32>
      %y = linalg.generic {...} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
      ^bb0(%in: f32, %out: f32):
        %0 = math.exp %in : f32
        linalg.yield %0 : f32
      } -> tensor<4xf32>
      return %y : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

#endif // ZERO_LOWERING_PASSES_TD
