//===- ZeroOps.td - state, its reads, ends of life ---------*- tablegen -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Symbols of the training state and the ops that touch it; the collectives
// stand in ZeroCollectives.td.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_OPS_TD
#define ZERO_OPS_TD

include "dialects/Zero/ZeroCollectives.td"

// A symbol's type: the whole tensor, or the sharded form of it.
def Zero_StateTypeAttr : TypeAttrBase<"::mlir::Type", "tensor or !zero.sharded type">;

def Zero_ParamOp : Zero_Op<"param", [Symbol]> {
  let summary = "a parameter of the model, as a symbol";
  let description = [{
    Names a parameter and says what it starts from: a tensor of a weights file
    (`init`, of the same name unless a second string says otherwise), `zeros`,
    `ones`, or nothing where the host program supplies it.

    - `unit`: the layer that is gathered and released as one.
    - `frozen`: read but never trained.
    - `buffer`: not trained but updated by the step itself, one per rank and
      averaged when saved; never partitioned (running statistics).
    - `tied`: other names of the same tensor in the model file.

    **Constraints**: the type is a ranked static tensor or `!zero.sharded`; at
    most one start value; `frozen` and `buffer` exclude each other; a buffer is
    never sharded; the grid of a sharded type exists and has a static shape.

    Example:

    ```mlir
    zero.param @fc1.weight : tensor<128x64xf32> init("mlp.safetensors") unit("fc1")
    zero.param @wte : !zero.sharded<512x64xf32, @dp, dim = 0> init("g.safetensors", "wte.weight") tied("lm_head.weight")
    zero.param @bn.running_mean : tensor<16xf32> zeros buffer
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Zero_StateTypeAttr:$type,
    OptionalAttr<StrAttr>:$init_file, OptionalAttr<StrAttr>:$init_tensor,
    UnitAttr:$zeros, UnitAttr:$ones, OptionalAttr<StrAttr>:$unit,
    UnitAttr:$frozen, UnitAttr:$buffer, OptionalAttr<StrArrayAttr>:$tied);
  let assemblyFormat = [{
    $sym_name `:` $type
    oilist( `init` `(` custom<InitSource>($init_file, $init_tensor) `)`
          | `zeros` $zeros
          | `ones` $ones
          | `unit` `(` $unit `)`
          | `frozen` $frozen
          | `buffer` $buffer
          | `tied` `(` custom<Names>($tied) `)` )
    attr-dict
  }];
  let extraClassDeclaration = [{
    /// The whole tensor, sharded or not.
    ::mlir::RankedTensorType getLogicalType();
    /// Whether the optimizer updates it.
    bool isTrained() { return !getFrozen() && !getBuffer(); }
  }];
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::Type":$type)>];
  let hasVerifier = 1;
}

def Zero_StateOp : Zero_Op<"state", [Symbol,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a state of the optimizer or of the step, as a symbol";
  let description = [{
    A tensor that the optimizer keeps for one parameter between steps, or, with
    no parameter, one that the step itself keeps (the loss scale, the number of
    the step). It starts from `zeros`, from a `value`, from a tensor of a weights
    file (`init`, as a parameter does: the f32 master of a bf16 parameter), or
    from nothing where the host program supplies it. An `accumulator` sums
    over the micro-batches of one step: the gradients of its parameter, or, with
    no parameter, something of the step itself (the loss), where each rank has
    its own sum. It is zero between steps and is never saved.

    **Constraints**: the parameter exists, is trained and has the same logical
    shape; where the state is sharded, it is cut as its parameter is or would be;
    without a parameter it is not sharded. At most one of `zeros`, `value` and
    `init`; a `value` has the logical type. An accumulator starts as zeros.

    Example:

    ```mlir
    zero.state @fc1.weight.momentum of @fc1.weight : tensor<128x64xf32> zeros
    zero.state @fc1.weight.master of @fc1.weight : tensor<128x64xf32> init("mlp.safetensors", "fc1.weight")
    zero.state @fc1.weight.grad of @fc1.weight : tensor<128x64xf32> zeros accumulator
    zero.state @loss_scale : tensor<f32> value(dense<65536.0> : tensor<f32>)
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
    OptionalAttr<FlatSymbolRefAttr>:$param, Zero_StateTypeAttr:$type,
    OptionalAttr<StrAttr>:$init_file, OptionalAttr<StrAttr>:$init_tensor,
    UnitAttr:$zeros, OptionalAttr<ElementsAttr>:$value, UnitAttr:$accumulator);
  let assemblyFormat = [{
    $sym_name (`of` $param^)? `:` $type
    oilist( `init` `(` custom<InitSource>($init_file, $init_tensor) `)`
          | `zeros` $zeros
          | `value` `(` $value `)`
          | `accumulator` $accumulator )
    attr-dict
  }];
  let extraClassDeclaration = [{
    /// The whole tensor, sharded or not.
    ::mlir::RankedTensorType getLogicalType();
  }];
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name,
    "::llvm::StringRef":$param, "::mlir::Type":$type)>];
  let hasVerifier = 1;
}

def Zero_ReadOp : Zero_Op<"read", [
    MemoryEffects<[MemRead<Zero_ParameterResource>]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the value of a parameter or state";
  let description = [{
    Yields the value a symbol holds at this point of the step: of the symbol's
    own type, so a read of a sharded symbol is a shard at rest. It reads the
    resource `Parameter` and is therefore never moved across the `zero.assign`
    that replaces the value, though equal reads between two assignments may be
    merged.

    **Constraints**: the symbol is a `zero.param` or `zero.state`; the types agree.

    Example: `%w = zero.read @fc1.weight : tensor<128x64xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$symbol);
  let results = (outs Zero_State:$value);
  let assemblyFormat = "$symbol attr-dict `:` type($value)";
}

def Zero_AssignOp : Zero_Op<"assign", [
    MemoryEffects<[MemWrite<Zero_ParameterResource>]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a parameter or state gets its value for the next step";
  let description = [{
    Stores a value back under a symbol. A sharded symbol takes the local
    tensor that `zero.local` would yield: each rank stores its own chunk.

    **Constraints**: the symbol is a `zero.state` or a `zero.param` that is not
    frozen; the value has the symbol's tensor type or, where that is sharded,
    its local type.

    Example: `zero.assign @fc1.weight, %new : tensor<32x64xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$symbol, AnyRankedTensor:$value);
  let assemblyFormat = "$symbol `,` $value attr-dict `:` type($value)";
}

def Zero_LocalOp : Zero_Op<"local", [Pure,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "this rank's own chunk as a plain tensor";
  let description = [{
    Views the chunk a rank owns, of a shard at rest or of a tensor that all
    ranks hold whole. The result has ceil(d/N) rows along `dim`; rows beyond
    the data are zero.

    ```
      tensor<10x64> on rank 3 of 4:   rows 9 . .   -> tensor<3x64>
    ```

    **Constraints**: the grid exists and, for a sharded operand, is its own;
    the result has the local shape.

    Example:

    ```mlir
    %l = zero.local %s on @dp : !zero.sharded<10x64xf32, @dp, dim = 0> -> tensor<3x64xf32>
    %m = zero.local %w on @dp : tensor<10x64xf32> -> tensor<3x64xf32>
    ```
  }];
  let arguments = (ins Zero_State:$source, FlatSymbolRefAttr:$grid,
    DefaultValuedAttr<DenseI64ArrayAttr, "{0}">:$axes,
    DefaultValuedAttr<I64Attr, "0">:$dim);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $source `on` $grid (`axes` $axes^)? (`dim` $dim^)? attr-dict
    `:` type($source) `->` type($result)
  }];
}

def Zero_ReleaseOp : Zero_Op<"release"> {
  let summary = "the end of a gathered value's life";
  let description = [{
    After this op the gathered tensors, and all views of them, are gone; their
    memory may hold something else. It frees its operands, so nothing moves it
    or removes it.

    **Constraints**: each operand is the result of a gather, of the wait for
    one, or of a `zero.reshard`; `zero-verify` checks that nothing uses it, or a view of it, later and
    that nothing releases it twice.

    Example: `zero.release %w, %b : tensor<128x64xf32>, tensor<128xf32>`
  }];
  let arguments = (ins
    Arg<Variadic<AnyRankedTensor>, "gathered", [MemFree<Zero_ParameterResource>]>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
  let hasVerifier = 1;
}

#endif // ZERO_OPS_TD
