//===- ZeroCollectives.td - what moves between ranks -------*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The collectives, transfers and the host's compute, each in a form that is done
// when it returns and a `_start` form that yields a future for `zero.wait`. All
// are variadic: one op is one bucket.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_COLLECTIVES_TD
#define ZERO_COLLECTIVES_TD

include "dialects/Zero/ZeroTypes.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

class Zero_Op<string mnemonic, list<Trait> traits = []>
    : Op<Zero_Dialect, mnemonic, traits>;

def Zero_State : AnyTypeOf<[AnyRankedTensor, Zero_ShardedType],
  "a ranked tensor or a shard at rest">;

// Operands are read; a gather's are the state behind the symbols.
class Zero_Inputs<Type type>
  : Arg<Variadic<type>, "one tensor of the bucket each", [MemRead<Zero_ParameterResource>]>;
// Results are fresh: neither merged with an equal op's nor hoisted.
def Zero_Results
  : Res<Variadic<AnyRankedTensor>, "", [MemAlloc<Zero_ParameterResource>]>;
def Zero_FutureResult
  : Res<Zero_FutureType, "", [MemAlloc<Zero_ParameterResource>]>;

// A collective over `axes` of a grid. Subclasses say how shapes relate.
class Zero_Collective<string mnemonic, list<Trait> traits = []>
    : Zero_Op<mnemonic, !listconcat(traits, [
        DeclareOpInterfaceMethods<SymbolUserOpInterface>,
        DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>])> {
  code common = [{
    /// The types the collective yields, of the op itself or through its future.
    ::llvm::SmallVector<::mlir::Type> getYieldedTypes();
  }];
  let extraClassDeclaration = common;
}

class Zero_Gather<string mnemonic, dag outs, list<Trait> traits = []>
    : Zero_Collective<mnemonic, traits> {
  let arguments = (ins Zero_Inputs<Zero_State>:$inputs, FlatSymbolRefAttr:$grid,
    DefaultValuedAttr<DenseI64ArrayAttr, "{0}">:$axes,
    DefaultValuedAttr<I64Attr, "0">:$dim);
  let results = outs;
  let assemblyFormat = [{
    $inputs `on` $grid (`axes` $axes^)? (`dim` $dim^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

class Zero_Reduce<string mnemonic, dag outs, list<Trait> traits = []>
    : Zero_Collective<mnemonic, traits> {
  let arguments = (ins Zero_Inputs<AnyRankedTensor>:$inputs, UnitAttr:$average,
    FlatSymbolRefAttr:$grid, DefaultValuedAttr<DenseI64ArrayAttr, "{0}">:$axes,
    DefaultValuedAttr<I64Attr, "0">:$dim);
  let results = outs;
  let assemblyFormat = [{
    $inputs (`average` $average^)? `on` $grid (`axes` $axes^)? (`dim` $dim^)?
    attr-dict `:` functional-type(operands, results)
  }];
}

// Starts fix one order of collectives on all ranks: they write the communicator.
defvar Zero_StartTraits = [MemoryEffects<[MemWrite<Zero_CommunicatorResource>]>];

def Zero_AllGatherOp : Zero_Gather<"all_gather", (outs Zero_Results:$results)> {
  let summary = "every rank gets the whole tensors";
  let description = [{
    Collects the chunks of all ranks, in rank order, into whole tensors on
    every rank; padding rows are dropped. Operands are shards at rest or local
    tensors.

    ```
      10 rows over 4 ranks      rank 0   rank 1   rank 2   rank 3
      before                    0 1 2    3 4 5    6 7 8    9 . .
      after                     0 … 9    0 … 9    0 … 9    0 … 9
    ```

    It reads its operands' state and allocates its results: never merged with
    another gather of the same shard, never hoisted, erased when unused.

    **Constraints**: as many results as operands; each operand is the local
    form of its result; the grid of a sharded operand is `grid`.

    Example:

    ```mlir
    %w, %b = zero.all_gather %ws, %bs on @dp
      : (!zero.sharded<10x64xf32, @dp, dim = 0>, tensor<3xf32>) -> (tensor<10x64xf32>, tensor<10xf32>)
    ```
  }];
}

def Zero_AllGatherStartOp : Zero_Gather<"all_gather_start",
    (outs Zero_FutureResult:$future), Zero_StartTraits> {
  let summary = "begins an all_gather";
  let description = [{
    As `zero.all_gather`, but returns at once; `zero.wait` yields the whole
    tensors. Starts keep their order.

    Example:

    ```mlir
    %f = zero.all_gather_start %ws on @dp
      : (!zero.sharded<10x64xf32, @dp, dim = 0>) -> !zero.future<tensor<10x64xf32>>
    ```
  }];
}

def Zero_ReduceScatterOp : Zero_Reduce<"reduce_scatter", (outs Zero_Results:$results)> {
  let summary = "sums tensors over the ranks; each keeps its own chunk";
  let description = [{
    Adds the ranks' tensors element by element in rank order and gives every
    rank its own chunk of the sum; with `average` the sum is divided by the
    number of ranks. Rows of a chunk beyond the data are zero. Over two axes
    both are done along the inner axis, then along the outer one.

    ```
      10 rows over 4 ranks      rank 0   rank 1   rank 2   rank 3
      before                    a0…a9    b0…b9    c0…c9    d0…d9
      after (s = a+b+c+d)       s0 s1 s2 s3 s4 s5 s6 s7 s8 s9 0 0
    ```

    **Constraints**: as many results as operands; each result is the local form
    of its operand.

    Example:

    ```mlir
    %g = zero.reduce_scatter %dw average on @dp : (tensor<10x64xf32>) -> tensor<3x64xf32>
    ```
  }];
}

def Zero_ReduceScatterStartOp : Zero_Reduce<"reduce_scatter_start",
    (outs Zero_FutureResult:$future), Zero_StartTraits> {
  let summary = "begins a reduce_scatter";
  let description = [{
    As `zero.reduce_scatter`, but returns at once; `zero.wait` yields the chunks.

    Example:

    ```mlir
    %f = zero.reduce_scatter_start %dw average on @dp
      : (tensor<10x64xf32>) -> !zero.future<tensor<3x64xf32>>
    ```
  }];
}

def Zero_AllReduceOp : Zero_Reduce<"all_reduce", (outs Zero_Results:$results)> {
  let summary = "sums tensors over the ranks; each keeps the whole sum";
  let description = [{
    Adds the ranks' tensors element by element in rank order, the order of
    `zero.reduce_scatter`, so that both give the same bits; with `average` the
    sum is divided by the number of ranks. Over two axes both are done along the
    inner axis, then along the outer one: the bits of a `zero.reduce_scatter`
    over the inner axis and a `zero.all_reduce` over the outer one.

    ```
                                rank 0   rank 1   rank 2   rank 3
      before                    a0…a9    b0…b9    c0…c9    d0…d9
      after (s = a+b+c+d)       s0…s9    s0…s9    s0…s9    s0…s9
    ```

    **Constraints**: operand and result types are the same.

    Example:

    ```mlir
    %g = zero.all_reduce %dw average on @dp : (tensor<10x64xf32>) -> tensor<10x64xf32>
    ```
  }];
}

def Zero_AllReduceStartOp : Zero_Reduce<"all_reduce_start",
    (outs Zero_FutureResult:$future), Zero_StartTraits> {
  let summary = "begins an all_reduce";
  let description = [{
    As `zero.all_reduce`, but returns at once; `zero.wait` yields the sums.

    Example:

    ```mlir
    %f = zero.all_reduce_start %dw average on @dp
      : (tensor<10x64xf32>) -> !zero.future<tensor<10x64xf32>>
    ```
  }];
}

def Zero_ReshardOp : Zero_Gather<"reshard", (outs Zero_Results:$results)> {
  let summary = "keeps this rank's chunk of gathered tensors";
  let description = [{
    Copies the chunks that a rank holds over `axes` out of gathered tensors, so
    that these may be released: later a gather over `axes` alone, of fewer
    ranks than the first, makes the whole again (hpZ of ZeRO++,
    `reshard_after_forward=N` of FSDP2). It moves nothing between ranks.

    ```
      10 rows, gathered over 2 x 2    rank 0     rank 1     rank 2     rank 3
      at rest                         0 1 2      3 4 5      6 7 8      9 . .
      resharded over axes [1]         0 1 2 3 4  5 6 7 8 9  0 1 2 3 4  5 6 7 8 9
    ```

    It allocates its results, so it is no view: what it read may be released,
    and so may they, once they have been gathered.

    **Constraints**: as many results as operands; each result is the local form
    of its operand; `zero-verify` checks that operands are gathered and that the
    gather of a result spans `axes`.

    Example:

    ```mlir
    %c = zero.reshard %w on @hsdp axes [1] : (tensor<10x64xf32>) -> tensor<5x64xf32>
    zero.release %w : tensor<10x64xf32>
    ...
    %again = zero.all_gather %c on @hsdp axes [1] : (tensor<5x64xf32>) -> tensor<10x64xf32>
    zero.release %c : tensor<5x64xf32>
    ```
  }];
}

// A copy between memory spaces. Subclasses say when it is done.
class Zero_Transfer<string mnemonic, dag outs, list<Trait> traits = []>
    : Zero_Op<mnemonic, !listconcat(traits,
        [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>])> {
  let arguments = (ins Zero_Inputs<Zero_State>:$inputs,
    Zero_MemoryAttr:$from, Zero_MemoryAttr:$to);
  let results = outs;
  let assemblyFormat = [{
    $inputs `from` custom<Memory>($from) `to` custom<Memory>($to) attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Zero_TransferOp : Zero_Transfer<"transfer",
    (outs Res<Variadic<Zero_State>, "", [MemAlloc<Zero_ParameterResource>]>:$results)> {
  let summary = "moves tensors to another memory space";
  let description = [{
    Copies this rank's tensors between `device`, `host` and `disk`; the only op
    that changes where a value lies. Shards at rest say in their type where they
    are; a plain tensor is where the op that made it put it: in device memory,
    unless it is the result of a transfer, of a `zero.on_host`, or the
    `zero.local` of a shard that lies elsewhere. A disk is read into and written
    from host memory.

    ```
      device ──to_host──▶ host ──disk_write──▶ disk
             ◀─to_device─      ◀──disk_read───
    ```

    **Constraints**: `from` and `to` differ, and one of them is `host`; as many
    results as operands; a shard at rest is in `from` and its result, which
    differs in nothing else, in `to`; a plain tensor keeps its type. `zero-verify`
    checks that plain operands are in `from`.

    Example:

    ```mlir
    %d = zero.transfer %h from host to device
      : (!zero.sharded<10x64xf32, @dp, dim = 0, mem = host>) -> !zero.sharded<10x64xf32, @dp, dim = 0>
    %g, %s = zero.transfer %dw, %scale from device to host
      : (tensor<3x64xbf16>, tensor<f32>) -> (tensor<3x64xbf16>, tensor<f32>)
    ```
  }];
}

def Zero_TransferStartOp : Zero_Transfer<"transfer_start",
    (outs Zero_FutureResult:$future), Zero_StartTraits> {
  let summary = "begins a transfer";
  let description = [{
    As `zero.transfer`, but returns at once; `zero.wait` yields the copies.
    Starts between the same two spaces keep their order.

    Example:

    ```mlir
    %f = zero.transfer_start %g from device to host
      : (tensor<3x64xbf16>) -> !zero.future<tensor<3x64xbf16>>
    %h = zero.wait %f : !zero.future<tensor<3x64xbf16>>
    ```
  }];
}

// Compute of the host's processor. Subclasses say when it is done.
class Zero_OnHost<string mnemonic, dag outs, list<Trait> traits = []>
    : Zero_Op<mnemonic, !listconcat(traits, [IsolatedFromAbove,
        SingleBlockImplicitTerminator<"YieldOp">,
        DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>])> {
  let arguments = (ins Zero_Inputs<AnyRankedTensor>:$inputs);
  let results = outs;
  let regions = (region SizedRegion<1>:$body);
  let hasVerifier = 1;
  code common = [{
    /// The types the body yields, of the op itself or through its future.
    ::llvm::SmallVector<::mlir::Type> getYieldedTypes();
    /// The end of the body.
    YieldOp getYield();
  }];
  let extraClassDeclaration = common;
}

def Zero_OnHostOp : Zero_OnHost<"on_host",
    (outs Res<Variadic<AnyRankedTensor>, "", [MemAlloc<Zero_ParameterResource>]>:$results)> {
  let summary = "compute of the host's processor, on host memory";
  let description = [{
    Runs its body on the host: operands are in host memory, and so are the
    results. An optimizer's update stands here where its state lives on the
    host; a state that is replaced is updated in place.

    **Constraints**: the body's arguments have the operands' types, and it yields
    the results'. `zero-verify` checks that operands are in host memory.

    Example:

    ```mlir
    %new, %m1 = zero.on_host (%p = %ph, %g = %gh, %m = %mh, %r = %lr)
      : (tensor<3x64xf32>, tensor<3x64xf32>, tensor<3x64xf32>, tensor<f32>)
      -> (tensor<3x64xf32>, tensor<3x64xf32>) {
      %n, %v = train.sgd %p, %g, %m, %r {momentum = 0.9 : f64} : ...
      zero.yield %n, %v : tensor<3x64xf32>, tensor<3x64xf32>
    }
    zero.assign @w.momentum, %m1 : tensor<3x64xf32>
    ```
  }];
  let assemblyFormat = [{
    custom<HostBody>($inputs, type($inputs), type($results), $body) attr-dict
  }];
}

def Zero_OnHostStartOp : Zero_OnHost<"on_host_start",
    (outs Zero_FutureResult:$future), Zero_StartTraits> {
  let summary = "begins compute of the host's processor";
  let description = [{
    As `zero.on_host`, but returns at once, and the device goes on meanwhile;
    `zero.wait` yields the results. Starts keep their order.

    Example:

    ```mlir
    %f = zero.on_host_start (%x = %a) : (tensor<4xf32>) -> !zero.future<tensor<4xbf16>> {
      %y = train.cast %x : (tensor<4xf32>) -> tensor<4xbf16>
      zero.yield %y : tensor<4xbf16>
    }
    %y = zero.wait %f : !zero.future<tensor<4xbf16>>
    ```
  }];
  let assemblyFormat = [{
    custom<HostBody>($inputs, type($inputs), type($future), $body) attr-dict
  }];
}

def Zero_YieldOp : Zero_Op<"yield", [Pure, ReturnLike, Terminator,
    ParentOneOf<["OnHostOp", "OnHostStartOp"]>]> {
  let summary = "what the body of a zero.on_host yields";
  let description = [{
    Example: `zero.yield %n, %v : tensor<3x64xf32>, tensor<3x64xf32>`
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let builders = [OpBuilder<(ins), "">];
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Zero_WaitOp : Zero_Op<"wait", [InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "yields what a future promised";
  let description = [{
    Returns once the collective or transfer behind the future is complete. It
    consumes (frees) the future, so it is neither moved, merged nor removed;
    `zero-verify` checks that each future is awaited exactly once.

    **Constraints**: the results are the types the future lists.

    Example: `%w, %b = zero.wait %f : !zero.future<tensor<128x64xf32>, tensor<128xf32>>`
  }];
  let arguments = (ins
    Arg<Zero_FutureType, "", [MemFree<Zero_ParameterResource>]>:$future);
  let results = (outs Variadic<Zero_State>:$results);
  let assemblyFormat = "$future attr-dict `:` qualified(type($future))";
}

#endif // ZERO_COLLECTIVES_TD
